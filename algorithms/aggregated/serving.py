"""What can be bought, and who serves whom: what proposals are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray


class Column(NamedTuple):
    """What can be bought, in parts: its cost, and its blocks of each type."""

    cost: Fraction
    counts: Sequence[int]


@dataclass
class Serving:
    """Which block types serve each job.

    Attributes
    ----------
    main : ndarray of n ints
        A block type of each job; -1 where none is known.
    more : dict
        ``{job: its block types}`` where there are several.
    """

    main: NDArray[np.int64]
    more: dict[int, set[int]] = field(default_factory=dict)

    @classmethod
    def unknown(cls, n: int) -> Serving:
        """Nothing is known of any job."""
        return cls(np.full(n, -1, dtype=np.int64))

    def add(self, job: int, block: int) -> None:
        """Let a block type serve a job as well."""
        main = int(self.main[job])
        if main < 0:
            self.main[job] = block
        elif main != block:
            self.more.setdefault(job, {main}).add(block)


class Hint(NamedTuple):
    """What a floating-point solver says.

    Attributes
    ----------
    columns : set of int
        Columns that are bought, or nearly tie.
    types : Serving
        Block types that serve each job, or nearly tie.
    """

    columns: set[int]
    types: Serving
