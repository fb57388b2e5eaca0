"""What a price search starts from and leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from .region import Vector


class PricePoint(NamedTuple):
    """Prices that keep to the region, and the exact bound they prove."""

    vector: Vector
    bound: Fraction


class Share(NamedTuple):
    """How much of a pass's choice the fractional solution takes for a group of jobs.

    Groups are numbered; those from ``PriceSearch.n_groups`` on are single jobs with a branch of
    their own, in the order of ``Region.own_priced``.
    """

    group: int
    number: int
    weight: float | Fraction
    load: tuple[int, ...]


class Warm(NamedTuple):
    """What a search starts from instead of nothing.

    ``point`` keeps to the region and proves its bound (the branches above it included); each of
    ``options`` has one option a kind, shape (kinds, k).
    """

    point: PricePoint
    options: Sequence[NDArray[Any]]
