"""Jobs that are alike: equal rows, up to a factor, are priced once and counted by weight.

An option serves a job if ``supply . o >= demand``. Multiplying a row by a number changes nothing
in that, nor does supply beyond the demand. A million services may be a few thousand kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..problem.rows import Rows
from ..running.stopping import look, never

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Integers up to this are exact as floats, and so are quotients told apart by their bits.
_EXACT_FLOATS = 2**53
# Products of two integers below this fit into 62 bits.
_EXACT_PRODUCTS = 2**31
# Rows handled between two looks at the budget.
_ROWS = 2**17


class Kinds(NamedTuple):
    """The kinds of jobs, in the order of their first jobs.

    Attributes
    ----------
    rows : Rows
        The row of each kind's first job; the very rows given if no two jobs are alike.
    weights : ndarray of int64, shape (kinds,)
        How many jobs are of each kind.
    first : ndarray of int64, shape (kinds,)
        Each kind's first job.
    kind_of : ndarray of int64, shape (n,)
        The kind of each job.
    """

    rows: Rows
    weights: NDArray[np.int64]
    first: NDArray[np.int64]
    kind_of: NDArray[np.int64]


def kinds(rows: Rows, stopped: Callable[[], bool] = never) -> Kinds:
    """Find the jobs that have the same options at every price vector.

    Parameters
    ----------
    rows : Rows
    stopped : callable, optional
        Asked a few times a second, however many rows there are.

    Returns
    -------
    Kinds
        Two jobs are of one kind if and only if their rows, with supply cut at the demand, are
        equal up to a factor.

    Raises
    ------
    Stopped

    Notes
    -----
    Rows are sorted by a hash of the quotients supply / demand, which are equal to the last bit if
    the rationals are; only rows of equal hash are then compared, exactly. Linear but for the sort.

    Examples
    --------
    >>> found = kinds(Rows.from_arrays([6, 5, 3], [[4, 9], [1, 1], [2, 3]], "abc", "xy"))
    >>> found.kind_of, found.weights
    (array([0, 1, 0]), array([2, 1]))
    >>> found.rows.row(0)
    Row(demand=6, supply=(4, 9), denominator=1)
    """
    n = len(rows)
    leader = _leaders(_hashes(rows, stopped), stopped)
    if leader is None:
        every = np.arange(n)
        return Kinds(rows, np.ones(n, dtype=np.int64), every, every)
    look(stopped)
    _split_strangers(rows, leader)
    look(stopped)
    first = np.flatnonzero(leader == np.arange(n))
    kind_of = np.empty(n, dtype=np.int64)
    kind_of[first] = np.arange(len(first))
    kind_of = kind_of[leader]
    if len(first) == n:
        return Kinds(rows, np.ones(n, dtype=np.int64), first, kind_of)
    return Kinds(rows.take(first), np.bincount(kind_of), first, kind_of)


def _leaders(hashes: NDArray[np.uint64], stopped: Callable[[], bool]) -> NDArray[np.int64] | None:
    """Return the first job of each job's hash; None if no two are equal.

    Hashes are sorted in parts, by their highest bits: that can be stopped, and is no slower.
    """
    n, found = len(hashes), False
    leader = np.arange(n)
    bits = max(0, (n // _ROWS).bit_length())
    highest = (hashes >> np.uint64(64 - bits)).astype(np.int16) if bits else np.zeros(n, np.int16)
    for value in range(2**bits):
        look(stopped)
        jobs = np.flatnonzero(highest == value)
        order = np.argsort(hashes[jobs], kind="stable")
        ordered = hashes[jobs][order]
        same = ordered[1:] == ordered[:-1]
        if same.any():
            found = True
            begins = np.concatenate([[True], ~same])
            # Stable, so it is the smallest.
            first = np.maximum.accumulate(np.where(begins, np.arange(len(jobs)), 0))
            leader[jobs[order]] = jobs[order[first]]
    return leader if found else None


def _hashes(rows: Rows, stopped: Callable[[], bool]) -> NDArray[np.uint64]:
    """Hash each row so that rows of one kind have the same value."""
    hashes = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), _ROWS):
        look(stopped)
        part = slice(start, start + _ROWS)
        hashes[part] = _hashes_of([rows.demands[part], *rows.supplies[part].T])
    large = np.flatnonzero(rows.demands > _EXACT_FLOATS)
    if len(large):
        hashes[large] = _hashes_of(_reduced(_cut(rows, large)))
    for j in rows.wide:
        numbers = _canonical(rows, j)
        if numbers[0] < 2**63:
            hashes[j] = _hashes_of([np.array([number]) for number in numbers])[0]
        else:
            hashes[j] = hash(numbers) & (2**64 - 1)
    return hashes


def _hashes_of(columns: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """Hash the quotients supply / demand, or the integers themselves where these are large.

    Up to 2**53 both are exact, so the quotient is the rational's nearest float, whatever the
    factor; large integers need to be without common divisor.
    """
    demands = columns[0]
    hashes = (demands > 0).astype(np.uint64)
    large = demands > _EXACT_FLOATS
    divisor = np.maximum(demands, 1).astype(np.float64)
    for column in columns[1:]:
        cut = np.minimum(column, demands)
        _mix(hashes, np.where(large, cut, (cut / divisor).view(np.int64)).view(np.uint64))
    hashes[large] ^= demands[large].view(np.uint64)
    return hashes


def _reduced(columns: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    common = columns[0]
    for column in columns[1:]:
        common = np.gcd(common, column)
    common = np.maximum(common, 1)
    return [column // common for column in columns]


def _mix(hashes: NDArray[np.uint64], more: NDArray[np.uint64]) -> None:
    """Stir another number into each hash, in place (the finisher of splitmix64)."""
    hashes ^= more
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)


def _canonical(rows: Rows, job: int) -> tuple[int, ...]:
    """Return a job's demand and supply, cut and without common divisor."""
    row = rows.row(job)
    numbers = [row.demand, *(min(f, row.demand) for f in row.supply)]
    common = max(1, gcd(*numbers))
    return tuple(number // common for number in numbers)


def _split_strangers(rows: Rows, leader: NDArray[np.int64]) -> None:
    """Give jobs that are not of their leader's kind another one, in place."""
    jobs = np.flatnonzero(leader != np.arange(len(leader)))
    # Most jobs that are alike are equal; only for the others is a common factor looked for.
    jobs = jobs[~_equal(_cut(rows, jobs), _cut(rows, leader[jobs]))]
    theirs = leader[jobs]
    small = np.maximum(rows.demands[jobs], rows.demands[theirs]) < _EXACT_PRODUCTS
    small &= ~rows.is_wide[jobs] & ~rows.is_wide[theirs]
    one, two = _cut(rows, jobs[small]), _cut(rows, theirs[small])
    alike = _equal([column * two[0] for column in one], [column * one[0] for column in two])
    # 0 is a multiple of everything, but a job without a demand is not like one with.
    alike &= (one[0] > 0) == (two[0] > 0)
    unsure = np.sort(np.concatenate([jobs[small][~alike], jobs[~small]]))
    leaders: dict[tuple[int, ...], int] = {}
    for j, lead in zip(unsure.tolist(), leader[unsure].tolist(), strict=True):
        leaders.setdefault(_canonical(rows, lead), lead)
        leader[j] = leaders.setdefault(_canonical(rows, j), j)


def _cut(rows: Rows, jobs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return demand and supply of some jobs by columns; for wide rows no two are equal."""
    demand = rows.demands[jobs]
    columns = [demand, *(np.minimum(column[jobs], demand) for column in rows.supplies.T)]
    if rows.wide:
        columns[0] = np.where(rows.is_wide[jobs], -1 - jobs, demand)
    return columns


def _equal(ones: list[NDArray[np.int64]], others: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
    result = np.ones(len(ones[0]), dtype=np.bool_)
    for one, other in zip(ones, others, strict=True):
        result &= one == other
    return result
