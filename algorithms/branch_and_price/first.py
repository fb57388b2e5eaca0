"""A first schedule, at once: before any prices, programs or solvers.

Every job takes the type of block that costs least for what it gives, counted as its share of a
machine that is full of it, and one block of the cheapest type that does for the rest; machines are
then opened for all of these blocks together. That is a few passes over jobs and configurations.
Where limits leave some jobs without, these choose again among what is left, and at last job by job
from whatever there is. Whether limited machines suffice is NP-hard to say: here one order is tried.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.schedule.schedule import Schedule

from .open_machines import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from cms.problem.problem import Problem
    from cms.problem.rows import Row, Rows

#: Numbers of a table of supply that are looked at between two looks at the budget.
_ENTRIES_PER_LOOK = 2**20
#: Fewer jobs than this are given limited machines one job at a time. A round that serves a smaller
#: part of the jobs than this is the last one for all jobs together.
_FEW_JOBS, _MIN_SERVED = 2_000, 0.01
#: A part of what another block gives that counts as no less.
_LEAST = 1e-100
#: A block of an open machine costs this part of its price: it is paid for, but another may need it.
_IDLE = 1e-3


def first_schedule(problem: Problem, stopped: Callable[[], bool]) -> Schedule | None:
    """Find a schedule, in time about linear in the jobs and configurations."""
    handing = _Handing(problem.rows, Fleet(problem, stopped), stopped)
    if not handing.run(np.flatnonzero(problem.rows.wants)):
        return None
    schedule = Schedule.from_counts(problem, handing.fleet.machines, handing.given())
    return schedule.without_idle_machines()


class _Handing:
    """Hands blocks out to all jobs."""

    def __init__(self, rows: Rows, fleet: Fleet, stopped: Callable[[], bool]) -> None:
        self._rows, self.fleet, self._stopped = rows, fleet, stopped
        self._given: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]] = []

    def run(self, left: NDArray[np.int64]) -> bool:
        """Say whether all jobs were served."""
        while len(left) > (_FEW_JOBS if self.fleet.limited else 0):
            before = len(left)
            left = self._serve_together(left)
            if self._stopped():
                return False
            if before - len(left) < before * _MIN_SERVED:
                break
        return self._serve_one_by_one(left)

    def given(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return jobs, blocks and numbers, one entry for each pair of a job and a block."""
        no_job = np.zeros(0, dtype=np.int64)
        parts = zip(*[(no_job,) * 3, *self._given], strict=True)
        jobs, blocks, numbers = (np.concatenate(part) for part in parts)
        return jobs, blocks, numbers

    def _serve_together(self, jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Serve as many jobs as the machines suffice for; return the others."""
        fleet, blocks = self.fleet, range(self._rows.n_blocks)
        best, number, last = self._choose(jobs, fleet.prices())
        if self._stopped():
            return jobs
        load = [_total(number[best == i]) + int((last == i).sum()) for i in blocks]
        if not fleet.pack(load):
            return jobs
        served = best >= 0
        for i in blocks:
            if load[i] > fleet.idle[i]:
                taken = np.where(best == i, number, 0) + (last == i)
                if _total(taken) >= 2**62:
                    taken = taken.astype(object)
                served &= (taken == 0) | (np.cumsum(taken) <= fleet.idle[i])
        same = best == last
        number = number + same
        some, other = served & (number > 0), served & ~same
        ones = np.ones(int(other.sum()), dtype=np.int64)
        for part in ((jobs[some], best[some], number[some]), (jobs[other], last[other], ones)):
            self._given.append(part)
            for i in np.unique(part[1]).tolist():
                fleet.idle[i] -= _total(part[2][part[1] == i])
        return jobs[~served]

    def _choose(
        self, jobs: NDArray[np.int64], prices: Sequence[float]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Let each job choose by itself: ``number`` blocks of type ``best`` and one ``last``.

        A job that nothing serves has -1 for types; slices of jobs may be left out once stopped.
        """
        rows, n = self._rows, len(jobs)
        # What serves the image of a row of long numbers serves the row.
        demands, supplies = rows.inner if rows.wide else (rows.demands, rows.supplies)
        best, last = np.full((2, n), -1, dtype=np.int64)
        number = np.zeros(n, dtype=np.int64)
        size = max(1, _ENTRIES_PER_LOOK // max(1, rows.n_blocks))
        for start in range(0, n, size):
            if self._stopped():
                break
            part = slice(start, start + size)
            mine = jobs[part]
            chosen = _choose(demands[mine], supplies[mine], prices)
            best[part], number[part], last[part] = chosen
        return best, number, last

    def _serve_one_by_one(self, jobs: NDArray[np.int64]) -> bool:
        """Serve the jobs that are left, those with the least choice first."""
        entries: list[tuple[int, int, int]] = []
        rows = {j: self._rows.row(j) for j in jobs.tolist()}
        for j, row in sorted(rows.items(), key=lambda each: sum(map(bool, each[1].supply))):
            taken = None if self._stopped() else self._serve(row)
            if taken is None:
                return False
            entries += [(j, i, n) for i, n in taken.items()]
        if entries:
            served, blocks, numbers = zip(*entries, strict=True)
            kind: Any = np.int64 if max(numbers) < 2**62 else object
            self._given.append((np.array(served), np.array(blocks), np.array(numbers, dtype=kind)))
        return True

    def _serve(self, row: Row) -> dict[int, int] | None:
        """Take blocks for one job; None if there are too few."""
        fleet, left = self.fleet, row.demand
        taken: dict[int, int] = {}
        prices = np.array(fleet.prices(limited=False))
        prices[[not f for f in row.supply]] = inf
        while left > 0:
            most = max(1, min(left, max(row.supply)))
            shares = np.array([max(_LEAST, min(f, left) / most) for f in row.supply])
            idle = np.where([n > 0 for n in fleet.idle], _IDLE, 1)
            i = int(np.argmin(prices * idle / shares))
            if prices[i] == inf or self._stopped():
                return None
            got = fleet.take(i, max(1, left // row.supply[i]))
            if got:
                taken[i] = taken.get(i, 0) + got
                left -= got * row.supply[i]
            else:
                prices[i] = inf
        # What later blocks have made superfluous goes back.
        for i in sorted(taken, key=lambda i: row.supply[i]):
            spare = min(taken[i], -left // row.supply[i])
            fleet.idle[i] += spare
            taken[i] -= spare
            left += spare * row.supply[i]
        return {i: number for i, number in taken.items() if number}


def _choose(
    demand: NDArray[np.int64], supply: NDArray[np.int64], prices: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Choose for rows: the best type, how many of it, and the last block's type."""
    n = len(demand)
    best, ratio = np.full(n, -1, dtype=np.int64), np.full(n, inf)
    gain = np.ones(n, dtype=np.int64)
    usable = [i for i, price in enumerate(prices) if price < inf]
    for i in usable:
        cut = np.minimum(supply[:, i], demand)
        mine = np.full(n, inf)
        np.divide(prices[i], cut, out=mine, where=cut > 0)
        better = mine < ratio
        best[better], ratio[better], gain[better] = i, mine[better], cut[better]
    number = np.maximum(0, -(-demand // gain) - 1)
    rest = demand - number * gain
    last, price = best.copy(), np.full(n, inf)
    for i in usable:
        better = (supply[:, i] >= rest) & (prices[i] < price)
        last[better], price[better] = i, prices[i]
    number[best < 0] = 0
    last[best < 0] = -1
    return best, number, last


def _total(numbers: NDArray[Any]) -> int:
    """Add up numbers without overflow."""
    if not len(numbers):
        return 0
    if int(numbers.max()) * len(numbers) >= 2**62:
        numbers = numbers.astype(object)
    return int(numbers.sum())
