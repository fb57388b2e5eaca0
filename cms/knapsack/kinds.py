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

# Rows handled between two looks at the budget.
_ROWS = 2**17


class Kinds(NamedTuple):
    """The kinds of jobs, in the order of their first jobs; ``kind_of`` has that of each job."""

    rows: Rows
    weights: NDArray[np.int64]
    kind_of: NDArray[np.int64]


def kinds(rows: Rows, stopped: Callable[[], bool] = never) -> Kinds:
    """Find the jobs that have the same options at every price vector.

    Rows are sorted by a hash; only rows of equal hash are then compared, exactly. Linear but for
    the sort. Where no two jobs are alike the rows are those given.
    """
    n = len(rows)
    hashes = _hashes(rows, stopped)
    look(stopped)
    order, every = np.argsort(hashes, kind="stable"), np.arange(n)
    ordered = hashes[order]
    begins = np.append(True, ordered[1:] != ordered[:-1])[:n]
    look(stopped)
    # Stable, so the first of each hash is the smallest.
    leader = np.empty(n, dtype=np.int64)
    leader[order] = order[np.maximum.accumulate(np.where(begins, every, 0))]
    _split_strangers(rows, leader)
    look(stopped)
    first = np.flatnonzero(leader == every)
    kind_of = np.empty(n, dtype=np.int64)
    kind_of[first] = np.arange(len(first))
    kind_of = kind_of[leader]
    return Kinds(rows if len(first) == n else rows.take(first), np.bincount(kind_of), kind_of)


def _hashes(rows: Rows, stopped: Callable[[], bool]) -> NDArray[np.uint64]:
    """Hash each row so that rows of one kind have the same value."""
    hashes = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), _ROWS):
        look(stopped)
        part = slice(start, start + _ROWS)
        hashes[part] = _hash(_canonical(rows, part))
    for j in rows.wide:
        numbers = _canonical_row(rows, j)
        if numbers[0] < 2**63:
            hashes[j] = _hash([np.array([number]) for number in numbers])[0]
        else:
            hashes[j] = hash(numbers) & (2**64 - 1)
    return hashes


def _hash(columns: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """Hash rows, given by columns (with the finisher of splitmix64)."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        hashes ^= column.view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            hashes ^= hashes >> np.uint64(shift)
            hashes *= np.uint64(factor)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _canonical(rows: Rows, jobs: Any) -> list[NDArray[np.int64]]:
    """Return demand and supply of some jobs by columns, cut at the demand and without divisors."""
    demand = rows.demands[jobs].copy()
    columns = [demand, *(np.minimum(column[jobs], demand) for column in rows.supplies.T)]
    common = np.gcd.reduce(columns)
    places = np.flatnonzero(common > 1)  # mostly few, and divisions are slow
    for column in columns:
        column[places] //= common[places]
    return columns


def _canonical_row(rows: Rows, job: int) -> tuple[int, ...]:
    row = rows.row(job)
    numbers = [row.demand, *(min(f, row.demand) for f in row.supply)]
    common = max(1, gcd(*numbers))
    return tuple(number // common for number in numbers)


def _split_strangers(rows: Rows, leader: NDArray[np.int64]) -> None:
    """Give jobs that are not of their leader's kind another one, in place."""
    jobs = np.flatnonzero(leader != np.arange(len(leader)))
    # Most jobs that are alike are equal; only for the others is a common factor looked for.
    for columns_of in (lambda of: [column[of] for column in (rows.demands, *rows.supplies.T)],
                       lambda of: _canonical(rows, of)):  # fmt: skip
        strange = rows.is_wide[jobs] | rows.is_wide[leader[jobs]]
        for one, other in zip(columns_of(jobs), columns_of(leader[jobs]), strict=True):
            strange |= one != other
        jobs = jobs[strange]
    leaders: dict[tuple[int, ...], int] = {}
    for j in jobs.tolist():
        lead = int(leader[j])
        leaders.setdefault(_canonical_row(rows, lead), lead)
        leader[j] = leaders.setdefault(_canonical_row(rows, j), j)
