"""Jobs that are alike: equal rows are priced once and counted by weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

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
    """Find the jobs with the same integers: rows are sorted by a hash, of equal ones compared."""
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
    """Hash each row (with the finisher of splitmix64)."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), _ROWS):
        look(stopped)
        part = slice(start, start + _ROWS)
        mine = hashes[part]
        for column in (rows.demands, *rows.supplies.T):
            mine ^= column[part].view(np.uint64)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                mine ^= mine >> np.uint64(shift)
                mine *= np.uint64(factor)
            mine ^= mine >> np.uint64(31)
    for j, row in rows.wide.items():
        hashes[j] = hash(row[:2]) & (2**64 - 1)
    return hashes


def _split_strangers(rows: Rows, leader: NDArray[np.int64]) -> None:
    """Give jobs that are not of their leader's kind another one, in place."""
    jobs = np.flatnonzero(leader != np.arange(len(leader)))
    strange = rows.is_wide[jobs] | rows.is_wide[leader[jobs]]
    for column in (rows.demands, *rows.supplies.T):
        strange |= column[jobs] != column[leader[jobs]]
    leaders: dict[tuple[object, ...], int] = {}
    for j in jobs[strange].tolist():
        lead = int(leader[j])
        leaders.setdefault(rows.row(lead)._replace(denominator=1), lead)
        leader[j] = leaders.setdefault(rows.row(j)._replace(denominator=1), j)
