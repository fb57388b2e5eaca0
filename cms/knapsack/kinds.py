"""Jobs that are alike: equal rows, up to a factor, are priced once and counted by weight.

An option serves a job if ``supply . o >= demand``. Multiplying a row by a number changes nothing
in that, nor does supply beyond the demand. A million services may be a few thousand kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.rows import Rows
from ..running.stopping import look, never

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Integers up to this are exact as floats, and equal quotients have equal bits; of larger ones
# common divisors are taken out first.
_EXACT_FLOATS = 2**53
# Rows handled between two looks at the budget.
_ROWS = 2**17


class Kinds(NamedTuple):
    """The kinds of jobs, in the order of their first jobs; ``kind_of`` has that of each job."""

    rows: Rows
    weights: NDArray[np.int64]
    first: NDArray[np.int64]
    kind_of: NDArray[np.int64]


def kinds(rows: Rows, stopped: Callable[[], bool] = never) -> Kinds:
    """Find the jobs that have the same options at every price vector.

    Rows are sorted by a hash; only rows of equal hash are then compared, exactly. Linear but for
    the sort.
    """
    n = len(rows)
    every = np.arange(n)
    hashes = _hashes(rows, stopped)
    look(stopped)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return Kinds(rows, np.ones(n, dtype=np.int64), every, every)
    look(stopped)
    begins = np.concatenate([[True], ~same])
    leader = np.empty(n, dtype=np.int64)
    # Stable, so the first of each hash is the smallest.
    leader[order] = order[np.maximum.accumulate(np.where(begins, every, 0))]
    _split_strangers(rows, leader)
    look(stopped)
    first = np.flatnonzero(leader == every)
    kind_of = np.empty(n, dtype=np.int64)
    kind_of[first] = np.arange(len(first))
    kind_of = kind_of[leader]
    if len(first) == n:
        return Kinds(rows, np.ones(n, dtype=np.int64), first, kind_of)
    return Kinds(rows.take(first), np.bincount(kind_of), first, kind_of)


def _hashes(rows: Rows, stopped: Callable[[], bool]) -> NDArray[np.uint64]:
    """Hash each row so that rows of one kind have the same value."""
    hashes = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), _ROWS):
        look(stopped)
        part = slice(start, start + _ROWS)
        hashes[part] = _hash(_cut(rows, part))
    large = np.flatnonzero(rows.demands > _EXACT_FLOATS)
    hashes[large] = _hash(_canonical(rows, large))
    for j in rows.wide:
        numbers = _canonical_row(rows, j)
        if numbers[0] < 2**63:
            hashes[j] = _hash([np.array([number]) for number in numbers])[0]
        else:
            hashes[j] = hash(numbers) & (2**64 - 1)
    return hashes


def _hash(columns: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """Hash the quotients supply / demand (with the finisher of splitmix64)."""
    hashes = (columns[0] > 0).astype(np.uint64)
    divisor = np.maximum(columns[0], 1).astype(np.float64)
    for column in columns[1:]:
        hashes ^= (column / divisor).view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            hashes ^= hashes >> np.uint64(shift)
            hashes *= np.uint64(factor)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _cut(rows: Rows, jobs: Any) -> list[NDArray[np.int64]]:
    """Return demand and supply of some jobs by columns, supply cut at the demand."""
    demand = rows.demands[jobs]
    return [demand, *(np.minimum(column[jobs], demand) for column in rows.supplies.T)]


def _canonical(rows: Rows, jobs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the same without common divisors."""
    columns = _cut(rows, jobs)
    common = np.gcd.reduce(columns)
    common = np.maximum(common, 1)
    return [column // common for column in columns]


def _canonical_row(rows: Rows, job: int) -> tuple[int, ...]:
    row = rows.row(job)
    numbers = [row.demand, *(min(f, row.demand) for f in row.supply)]
    common = max(1, gcd(*numbers))
    return tuple(number // common for number in numbers)


def _split_strangers(rows: Rows, leader: NDArray[np.int64]) -> None:
    """Give jobs that are not of their leader's kind another one, in place."""
    jobs = np.flatnonzero(leader != np.arange(len(leader)))
    # Most jobs that are alike are equal; only for the others is a common factor looked for.
    for numbers_of in (_cut, _canonical):
        strange = rows.is_wide[jobs] | rows.is_wide[leader[jobs]]
        both = zip(numbers_of(rows, jobs), numbers_of(rows, leader[jobs]), strict=True)
        for one, other in both:
            strange |= one != other
        jobs = jobs[strange]
    leaders: dict[tuple[int, ...], int] = {}
    for j in jobs.tolist():
        lead = int(leader[j])
        leaders.setdefault(_canonical_row(rows, lead), lead)
        leader[j] = leaders.setdefault(_canonical_row(rows, j), j)
