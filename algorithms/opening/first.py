"""A first schedule, at once: before any prices, programs or solvers.

Every job takes the type of block that costs least for what it gives, counted as its share of a
machine that is full of it, and one block of the cheapest type that does for the rest; machines are
then opened for all of these blocks together. That is a few passes over jobs and configurations.
Where limits leave some jobs without, these choose again among what is left, and at last job by job
from whatever there is. Whether limited machines suffice is NP-hard to say; should they not suffice
in one order they are tried in others, with what was short counted as dearer.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.schedule.schedule import Schedule

from .depot import Depot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from cms.problem.problem import Problem
    from cms.problem.rows import Row, Rows

#: Numbers of a table of supply that are looked at between two looks at the budget.
_AT_ONCE = 2**20
#: With fewer jobs than this left, limited machines are handed out job by job.
_ONE_BY_ONE = 5_000
#: Orders in which limited machines are tried, and how much dearer what was short becomes.
_ATTEMPTS, _DEARER = 12, 1.5
#: Jobs served one by one in all attempts together; of more than these the first left without ends
#: an attempt.
_HANDINGS = 2_000
#: While so many of the jobs are served together it is worth another round.
_WORTH_A_ROUND = 0.01
#: A part of what another block gives that counts as no less.
_LEAST = 1e-100
#: A block of an open machine costs this part of its price: it is paid for, but another may need it.
_IDLE = 1e-3


def first_schedule(problem: Problem, stopped: Callable[[], bool]) -> Schedule | None:
    """Find a schedule, in time about linear in the jobs and configurations.

    Parameters
    ----------
    problem : Problem
    stopped : callable
        Asked a few times a second, however large the problem is.

    Returns
    -------
    Schedule or None
        None if it was stopped, some job cannot be served, or limits on machines are too low, or so
        low that only a search would find a schedule. Without limits there always is one.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> shapes = [Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})]
    >>> job = Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420})
    >>> first_schedule(Problem(configurations=shapes, jobs=[job]), lambda: False).machine_count
    2
    """
    depot = Depot(problem, stopped)
    jobs = np.flatnonzero(problem.rows.wants)
    attempts = min(_ATTEMPTS, max(1, _HANDINGS // max(1, len(jobs)))) if depot.limited else 1
    order = _Order(problem.rows, jobs, depot)
    for number in range(attempts):
        if stopped():
            return None
        if number:
            order.change(depot)
        handing = _Handing(problem.rows, depot, order, stopped)
        if handing.run():
            schedule = Schedule.from_counts(problem, depot.machines(), handing.given())
            return schedule.without_idle_machines()
    return None


class _Order:
    """In which order jobs choose, and what blocks count for them."""

    def __init__(self, rows: Rows, jobs: NDArray[np.int64], depot: Depot) -> None:
        self._rows, self.jobs = rows, jobs
        self._supply = depot.supply()
        self._dearer = [1.0] * rows.n_blocks
        self.scarce = False
        self.short: list[int] = []

    def sorted(self, jobs: Iterable[int]) -> list[int]:
        """Put jobs first that were left without the last time, then those with the least choice."""
        first = {j: at for at, j in enumerate(self.short)}
        return sorted(jobs, key=lambda j: (first.get(j, len(first)), self._choice(j), j))

    def _choice(self, j: int) -> float:
        """How often all machines there may be would serve a job."""
        row = self._rows.row(j)
        return sum(
            more * (min(f, row.demand) / row.demand)
            for f, more in zip(row.supply, self._supply, strict=True)
            if f and more
        )

    def change(self, depot: Depot) -> None:
        """Count what was short as dearer, and machines by their use instead of their costs."""
        self.scarce = True
        for i, left in enumerate(depot.supply()):
            if not left:
                self._dearer[i] *= _DEARER
        use = [0.0] * self._rows.n_blocks
        for j in self.jobs.tolist():
            row = self._rows.row(j)
            for i, f in enumerate(row.supply):
                use[i] += min(f, row.demand) / row.demand
        depot.reset([u * d for u, d in zip(use, self._dearer, strict=True)], costs=False)


class _Options(NamedTuple):
    """What jobs take: ``number`` blocks of type ``best`` (-1: none serves it), and one ``last``."""

    best: NDArray[np.int64]
    number: NDArray[Any]
    last: NDArray[np.int64]


class _Handing:
    """Hands blocks out to all jobs, from closed machines on."""

    def __init__(
        self, rows: Rows, depot: Depot, order: _Order, stopped: Callable[[], bool]
    ) -> None:
        self._rows, self._depot, self._order, self._stopped = rows, depot, order, stopped
        self._given: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]] = []

    def run(self) -> bool:
        """Say whether all jobs were served."""
        left = self._order.jobs
        while len(left) > (_ONE_BY_ONE if self._depot.limited else 0):
            before = len(left)
            left = self._together(left)
            if self._stopped():
                return False
            if before - len(left) < before * _WORTH_A_ROUND:
                break
        return self._one_by_one(left)

    def given(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Return jobs, blocks and numbers, one entry for each pair of a job and a block."""
        nobody = np.zeros(0, dtype=np.int64)
        parts = zip(*[(nobody,) * 3, *self._given], strict=True)
        jobs, blocks, numbers = (np.concatenate(part) for part in parts)
        return jobs, blocks, numbers

    def _together(self, jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Serve as many jobs as the machines suffice for; return the others."""
        depot, k = self._depot, self._rows.n_blocks
        options = self._options(jobs, self._prices())
        if self._stopped():
            return jobs
        load = [
            _total(options.number[options.best == i]) + int((options.last == i).sum())
            for i in range(k)
        ]
        if not depot.pack(load):
            return jobs
        served = options.best >= 0
        for i in range(k):
            if load[i] > depot.idle[i]:
                taken = np.where(options.best == i, options.number, 0) + (options.last == i)
                if taken.dtype.kind != "O" and _total(taken) >= 2**62:
                    taken = taken.astype(object)
                served &= (taken == 0) | (np.cumsum(taken) <= depot.idle[i])
        self._give(jobs[served], options.best[served], options.number[served], options.last[served])
        return jobs[~served]

    def _give(
        self,
        jobs: NDArray[np.int64],
        best: NDArray[np.int64],
        number: NDArray[Any],
        last: NDArray[np.int64],
    ) -> None:
        same = best == last
        number = number + same
        some = np.flatnonzero(number > 0)
        other = np.flatnonzero(~same)
        ones = np.ones(len(other), dtype=np.int64)
        for part in ((jobs[some], best[some], number[some]), (jobs[other], last[other], ones)):
            self._given.append(part)
            for i in np.unique(part[1]).tolist():
                self._depot.idle[i] -= _total(part[2][part[1] == i])

    def _prices(self) -> list[float]:
        """Return what blocks count now; infinity where there are none left."""
        prices = self._depot.prices()
        if not self._order.scarce:
            return prices
        return [
            inf if price == inf else worth
            for price, worth in zip(prices, self._depot.worth.tolist(), strict=True)
        ]

    def _options(self, jobs: NDArray[np.int64], prices: Sequence[float]) -> _Options:
        """Let each job choose by itself; some slices of jobs may be left out once stopped."""
        rows, n = self._rows, len(jobs)
        best, last = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
        number: NDArray[Any] = np.zeros(n, dtype=np.int64)
        size = max(1, _AT_ONCE // max(1, rows.n_blocks))
        for start in range(0, n, size):
            if self._stopped():
                break
            part = slice(start, start + size)
            mine = jobs[part]
            best[part], number[part], last[part] = _chosen(
                rows.demands[mine], rows.supplies[mine], prices
            )
        for at in np.flatnonzero(rows.is_wide[jobs]).tolist():
            if self._stopped():
                break
            best[at], many, last[at] = _chosen_by_hand(rows.wide[int(jobs[at])], prices)
            if many >= 2**62:
                number = number.astype(object)
            number[at] = many
        return _Options(best, number, last)

    def _one_by_one(self, jobs: NDArray[np.int64]) -> bool:
        """Serve the jobs that are left from whatever there is."""
        short: list[int] = []
        entries: list[tuple[int, int, int]] = []
        prices, full = self._prices(), self._full()
        for j in self._order.sorted(jobs.tolist()) if len(jobs) else ():
            if self._stopped():
                return False
            if full != self._full():
                prices, full = self._prices(), self._full()
            taken = self._served(self._rows.row(j), prices)
            if taken is None:
                short.append(j)
                if len(jobs) > _HANDINGS:
                    return False
                continue
            entries += [(j, i, n) for i, n in taken.items()]
        self._order.short = short + [j for j in self._order.short if j not in short]
        if entries:
            served, blocks, numbers = zip(*entries, strict=True)
            kind: Any = np.int64 if max(numbers) < 2**62 else object
            self._given.append((np.array(served), np.array(blocks), np.array(numbers, dtype=kind)))
        return not short

    def _full(self) -> list[bool]:
        return [room == 0 for room in self._depot.room]

    def _served(self, row: Row, prices: Sequence[float]) -> dict[int, int] | None:
        """Take blocks for one job; None, and nothing taken, if there are too few."""
        depot, left = self._depot, row.demand
        taken: dict[int, int] = {}
        price, largest = np.array(prices), max(row.supply, default=0)
        at_work = np.where(price == inf, depot.worth, price) * _IDLE
        useless = [not f for f in row.supply]
        price[useless] = at_work[useless] = inf
        shares = _shares(row, left)
        while left > 0:
            ratio = np.where([number > 0 for number in depot.idle], at_work, price) / shares
            i = int(np.argmin(ratio)) if len(ratio) else -1
            if i < 0 or ratio[i] == inf or self._stopped():
                for at, number in taken.items():
                    depot.idle[at] += number
                return None
            wanted = max(1, left // row.supply[i])
            got = depot.take(i, min(wanted, depot.idle[i] or wanted))
            if got:
                taken[i] = taken.get(i, 0) + got
                left -= got * row.supply[i]
                if 0 < left < largest:
                    shares = _shares(row, left)
            else:
                price[i] = at_work[i] = inf
        # What later blocks have made superfluous goes back.
        for i in sorted(taken, key=lambda i: row.supply[i]):
            spare = min(taken[i], -left // row.supply[i])
            depot.idle[i] += spare
            taken[i] -= spare
            left += spare * row.supply[i]
        return {i: number for i, number in taken.items() if number}


def _shares(row: Row, left: int) -> NDArray[np.float64]:
    """Return what a block of each type gives of the most that one does; next to none at least."""
    most = max(1, min(left, max(row.supply, default=0)))
    return np.array([max(_LEAST, min(f, left) / most) for f in row.supply])


def _chosen(
    demand: NDArray[np.int64], supply: NDArray[np.int64], prices: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Choose for rows in arrays: the best type, how many of it, and the last block's type."""
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


def _chosen_by_hand(row: Row, prices: Sequence[float]) -> tuple[int, int, int]:
    """Choose for one row of integers of any size."""
    usable = [i for i, f in enumerate(row.supply) if f and prices[i] < inf]
    if not row.demand or not usable:
        return -1, 0, -1
    gains = {i: min(row.supply[i], row.demand) for i in usable}
    most = max(gains.values())
    best = min(usable, key=lambda i: prices[i] / max(_LEAST, gains[i] / most))
    number = -(-row.demand // gains[best]) - 1
    rest = row.demand - number * gains[best]
    return best, number, min((i for i in usable if gains[i] >= rest), key=lambda i: prices[i])


def _total(numbers: NDArray[Any]) -> int:
    """Add up numbers without overflow."""
    if not len(numbers):
        return 0
    if int(numbers.max()) * len(numbers) >= 2**62:
        numbers = numbers.astype(object)
    return int(numbers.sum())
