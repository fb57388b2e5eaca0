"""What it costs to tell activities apart by whole steps only: two problems around the true one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import InvalidProblem
from ...problem.checking import each_of
from ...values.numbers import whole
from .classes import OfflineClass, OnlineClass
from .problem import FORBIDDEN, SharingProblem

if TYPE_CHECKING:
    from .problem import WeightFunction


class Buckets(NamedTuple):
    """Two problems with fewer classes, below and above the one with all activities told apart."""

    up: SharingProblem  #: Activities rounded up: what a plan of it is worth can be had.
    #: Activities rounded down: what no plan of it exceeds, no plan at all does.
    down: SharingProblem


def buckets(
    *,
    online: Iterable[OnlineClass],
    offline: Iterable[OfflineClass],
    weights: WeightFunction,
    step: int = 1,
    margin: int = 10,
    lowest_share: int = 5,
) -> Buckets:
    """Round activities to whole steps, both ways; classes that are then alike become one.

    A plan of ``up`` is one for the true activities and worth no less there, and such a plan is one
    of ``down`` and worth no less there, if no weight rises on the way: one that rises is refused.
    Online classes lose their own names. A step is in whole per cent, 1 to 100; weights, of which
    only activities differ, and the rest are as for :class:`SharingProblem`.
    """
    width = whole(step, "step", least=1)
    work = each_of(offline, OfflineClass, "offline")
    true, _ = merged(each_of(online, OnlineClass, "online"))

    def posed(classes: Sequence[OnlineClass]) -> SharingProblem:
        return SharingProblem(
            online=classes, offline=work, weights=weights, margin=margin, lowest_share=lowest_share
        )

    given = posed(true).weights
    found = []
    for end, sign in (("up", -1), ("down", 1)):
        classes, places = merged([rounded(each, width, sign) for each in true])
        problem = posed(classes)
        rows = problem.weights[places]
        for row, column in np.argwhere(sign * given > sign * rows)[:1]:
            raise InvalidProblem(
                f"{work[column].name!r} beside {true[row].name!r} is worth "
                f"{_shown(given[row, column])}, and {_shown(rows[row, column])} with its activity "
                f"rounded {end}; roundings prove nothing where weights rise with activity"
            )
        found.append(problem)
    return Buckets(*found)


def rounded(gpus: OnlineClass, width: int, sign: int) -> OnlineClass:
    """Return a class with its activity on a whole step: below it, or above if the sign is -1."""
    steps = sign * (sign * gpus.sm_activity // width)
    return gpus.again(count=gpus.count, sm_activity=min(Fraction(100), steps * Fraction(width)))


def merged(classes: Sequence[OnlineClass]) -> tuple[list[OnlineClass], list[int]]:
    """Return one class for all that are alike, and which one each has become."""
    counts: dict[OnlineClass, int] = {}
    keys = [each.again(count=0) for each in classes]
    for key, each in zip(keys, classes, strict=True):
        counts[key] = counts.get(key, 0) + each.count
    at = {key: place for place, key in enumerate(counts)}
    return [key.again(count=count) for key, count in counts.items()], [at[key] for key in keys]


def _shown(weight: int) -> str:
    return "nothing, being forbidden" if weight == FORBIDDEN else str(weight)
