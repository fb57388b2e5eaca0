"""Sums of machines that are whole numbers where costs are not: cuts of Chvátal and Gomory."""

from __future__ import annotations

from itertools import product
from math import ceil, gcd
from typing import TYPE_CHECKING

from .open_nodes import NEAR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .blend import Blend

#: So many sums, of units down to so small a part of a machine, and about a cost step at least.
_SUMS, _MOST_PARTS, _MOST_WEIGHT, _FINEST = 12, 8, 1_000, 0.9


def weighted_sums(
    blend: Blend, worth: Sequence[float], step: float, gap: float
) -> list[tuple[int, ...]]:
    """List weights of machine types; the best sums first.

    Parameters
    ----------
    blend : Blend
    worth : sequence of float
        What a machine of each type is worth at the prices of the blend.
    step, gap : float
        The cost step, and what bounds are to rise by.
    """
    found: dict[tuple[int, ...], float] = {}
    for m, parts in product(range(len(worth)), range(1, _MOST_PARTS + 1)):
        value, unit = blend.totals.get((True, m), 0.0), worth[m] / parts
        if abs(value - round(value)) <= NEAR or unit < _FINEST * step:
            continue
        weights = tuple(round(each / unit) for each in worth)
        if gcd(*weights) != 1 or sum(map(bool, weights)) < 2:
            continue
        if min(weights) < 0 or max(weights) > _MOST_WEIGHT:
            continue
        total = sum(n * blend.totals.get((True, at), 0.0) for at, n in enumerate(weights))
        found[weights] = min(unit * (ceil(total - NEAR) - total), gap)
    return sorted(found, key=lambda weights: (-found[weights], weights))[:_SUMS]
