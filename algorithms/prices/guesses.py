"""Prices to start from, prices that floats stand for, and the jobs in groups that share them.

What a search for good block prices begins with, whatever linear program it solves on the way.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.knapsack.pricing import COMPILED_FROM, common_denominator

from ..solvers.recognise import recognised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .jobs import Jobs
    from .region import Region

#: Up to so many kinds of jobs each is a group of its own; beyond, there are so many groups.
MOST_SINGLE, GROUPS = 128, 64
#: Binary digits that the smallest price keeps when prices are rounded.
_DIGITS = 20


def full_machines(region: Region) -> list[Fraction]:
    """Return prices at which a machine that is full of one type of block is worth what it costs.

    Machines that cost nothing but are limited count as if they cost 1.

    Examples
    --------
    >>> from algorithms.prices.region import Region
    >>> from cms import Configuration, Problem
    >>> shapes = [Configuration({"a": 2}), Configuration({"a": 1, "b": 5})]
    >>> full_machines(Region(Problem(configurations=shapes)))
    [Fraction(1, 2), Fraction(1, 5)]
    """
    free, _ = region.free()
    prices = []
    for i in range(len(region.blocks)):
        each = [
            (region.costs[row.machine] or Fraction(1)) / row.counts[i]
            for row in region.rows
            if row.counts[i]
        ]
        prices.append(Fraction(0) if i in free else min(each, default=Fraction(0)))
    return prices


def whole(values: Sequence[Fraction], jobs: Jobs, *, exactly: bool) -> tuple[list[int], int]:
    """Write prices over a common denominator.

    Parameters
    ----------
    values : sequence of Fractions
        In units that make about 1 of a machine's cost.
    jobs : Jobs
        That are to pay them.
    exactly : bool
        Whether the prices are meant as they are, and not as floats that rationals of a small
        denominator may stand behind. They are rounded all the same where they would be too long for
        compiled code.

    Examples
    --------
    >>> from algorithms.prices.jobs import Jobs
    >>> from cms import Configuration, Job, Problem
    >>> jobs = Jobs(Problem(configurations=Configuration({"a": 1}), jobs=[Job("x", 1, {"a": 1})]))
    >>> whole([Fraction(0.3), Fraction(0.7)], jobs, exactly=False)
    ([3, 7], 10)
    """
    many = len(jobs) >= COMPILED_FROM
    if exactly:
        numbers, denominator = common_denominator(values)
        if not many or max(numbers).bit_length() <= jobs.grid_bits:
            return numbers, denominator
    else:
        found = recognised(values)
        if found is not None:
            return found
    bits = jobs.grid_bits
    if not many:
        # No price may round to nothing, were it for a trillionth of a machine.
        least = min((value for value in values if value > 0), default=Fraction(1))
        bits = max(bits, _DIGITS + (least.denominator // least.numerator).bit_length())
    return [int(value * 2**bits) for value in values], 2**bits


def ranges(n: int, most_single: int = MOST_SINGLE, groups: int = GROUPS) -> NDArray[np.int64]:
    """Return where groups of kinds begin: one for each kind, or ranges where there are many.

    Examples
    --------
    >>> ranges(3).tolist(), ranges(1000, groups=4).tolist()
    ([0, 1, 2], [0, 250, 500, 750])
    """
    count = n if n <= most_single else groups
    return np.arange(count, dtype=np.int64) * n // max(1, count)


def group_totals(
    options: NDArray[Any],
    starts: NDArray[np.int64],
    weights: NDArray[np.int64] | None = None,
    order: NDArray[np.int64] | None = None,
) -> list[list[int]]:
    """Add up the blocks that each group of kinds buys, exactly.

    Parameters
    ----------
    options : ndarray of shape (kinds, k)
        What a job of each kind buys.
    starts : ndarray of int64
        Where the groups begin; none is empty.
    weights : ndarray of int64, shape (kinds,), optional
        How many jobs of each kind there are, by default one.
    order : ndarray of int64, shape (kinds,), optional
        The kinds, those of one group together.

    Examples
    --------
    >>> group_totals(np.array([[1, 0], [0, 2], [1, 1]]), ranges(3, 1, 2), np.array([1, 1, 2**62]))
    [[1, 0], [4611686018427387904, 4611686018427387906]]
    """
    most = 1 if weights is None else int(weights.max(initial=0))
    reach = int(options.max(initial=0)) * most * max(1, len(options))
    totals = options.astype(np.int64 if reach < 2**62 else object, copy=False)
    if weights is not None:
        totals = totals * weights[:, None]
    if order is not None:
        totals = totals[order]
    if len(starts) < len(options):
        totals = np.add.reduceat(totals, starts, axis=0)
    return list(totals.tolist())
