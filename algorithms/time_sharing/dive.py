"""Dives: machine after machine, as a linear program over what is left would have them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..prices.region import configuration_of
from ..solvers.floats import near
from .closing import schedule_of
from .master import Left, Master, Point

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration
    from cms.schedule.schedule import Schedule

    from ..prices.limits import Room
    from .hosting import Hosted, Hosting
    from .prices import PriceSearch

#: Rounds in which mixes join the linear program of what is left, and how many a block in each.
_ROUNDS, _A_BLOCK = 2, 3
#: How often a dive is begun anew, and what a worse machine may fall short of the best in one.
_DIVES, _SPREAD = 8, 0.5
#: Mixes of which there are fewer count as none.
_IN_USE = 1e-7


class _Choice(NamedTuple):
    """Machines to open, by the row of the region, with columns on the blocks of each."""

    row: int
    machines: int
    mixes: list[int]


class Diver:
    """Finds schedules: machines are opened one by one and never closed again.

    What dives come across joins the columns of the search.
    """

    def __init__(
        self, search: PriceSearch, hosting: Hosting, random: Random, budget: Budget
    ) -> None:
        self._hosting, self._random, self._budget = hosting, random, budget
        self._columns, self._problem = search.columns, search.columns.problem
        self._region = search.region

    def schedules(self) -> Iterator[Schedule]:
        """Dive again and again; some dives end without a schedule."""
        for number in range(_DIVES):
            if self._budget.stopped:
                return
            best = self._budget.best
            below = None if best is None else best.cost(self._problem)
            schedule = self._dive(below, greedy=not number)
            if schedule is not None:
                yield schedule

    def _dive(self, below: Fraction | None, *, greedy: bool) -> Schedule | None:
        """Open machines until all is served; None if it would not cost less, or was stopped."""
        jobs = dict.fromkeys(self._columns.jobs, Fraction(1))
        left = Left(jobs, self._region.room.copy())
        machines: Counter[int] = Counter()
        mixes: Counter[int] = Counter()
        spent = Fraction(0)
        while left.parts:
            point = self._point(left)
            if point is None or self._budget.stopped:
                return None
            if below is not None and near(spent) + point.value * near(self._region.unit) >= near(
                below
            ):
                return None
            choice = self._choice(point, left.room, greedy=greedy)
            if choice is None:
                return None
            machine = self._region.rows[choice.row].machine
            machines[choice.row] += choice.machines
            left.room.take(machine, choice.machines)
            spent += choice.machines * self._region.costs[machine]
            self._fill(choice, left, mixes)
        if below is not None and spent >= below:
            return None
        totals: Counter[Configuration] = Counter()
        for at, count in machines.items():
            totals[configuration_of(self._problem, self._region.rows[at])] += count
        return schedule_of(self._columns, totals, mixes)

    def _point(self, left: Left) -> Point | None:
        """Solve the linear program of what is left, over the mixes in sight and some more."""
        master = Master(self._columns, self._region, left)
        parts = np.zeros(len(self._problem.jobs))
        for job, part in left.parts.items():
            parts[job] = near(part)
        point = None
        for _ in range(1 + _ROUNDS):
            point = master.solve(self._budget)
            if point is None:
                return None
            before = len(self._columns)
            for i, price in enumerate(point.blocks):
                # Measured: guesses on a grid end with fewer machines than lists of all mixes.
                knapsack, above = self._columns.knapsack(i), price * (1 + _IN_USE) + _IN_USE
                for guess in knapsack.guesses(point.prices, above, _A_BLOCK, parts):
                    self._columns.add(i, guess)
            if len(self._columns) == before:
                break
        return point

    def _choice(self, point: Point, room: Room, *, greedy: bool) -> _Choice | None:
        """Choose a machine that the solution has, with the mixes it has most of on its blocks."""

        def rated(amount: float) -> float:
            return amount if greedy else amount * (1 - _SPREAD * self._random.random())

        machines = [row.machine for row in self._region.rows]
        rows = [
            (rated(x), at)
            for at, x in enumerate(point.machines)
            if x > _IN_USE and room.most(machines[at]) != 0
        ]
        if not rows:
            return None
        _, row = max(rows)
        amounts = {n: amount for n, amount in enumerate(point.mixes) if amount > _IN_USE}
        most = room.most(machines[row])
        count = max(1, floor(point.machines[row]))
        count = count if most is None else min(count, most)
        mixes: list[int] = []
        for i, blocks in enumerate(self._region.rows[row].counts):
            for _ in range(blocks):
                mine = [
                    (rated(amount), -n)
                    for n, amount in amounts.items()
                    if amount > _IN_USE and self._columns.listed[n].block == i
                ]
                if not mine:
                    break
                number = -max(mine)[1]
                count = max(1, min(count, floor(amounts[number])))
                amounts[number] -= count
                mixes.append(number)
        return _Choice(row, count, mixes)

    def _fill(self, choice: _Choice, left: Left, mixes: Counter[int]) -> None:
        """Give the blocks of a machine to what is left, each as much as it can carry."""
        count = choice.machines
        for number in choice.mixes:
            hosted = self._stretched(number, left, count)
            if hosted is None:
                continue
            chosen = self._columns.add_mix(self._columns.listed[number].block, hosted.amounts)
            if chosen is None:
                continue
            mixes[chosen] += count
            for job, share in self._columns.listed[chosen].shares:
                if left.parts.get(job, 0) > count * share:
                    left.parts[job] -= count * share
                else:
                    left.parts.pop(job, None)

    def _stretched(self, number: int, left: Left, count: int) -> Hosted | None:
        """Host what a mix gives the jobs that need it, then all that fits beside it."""
        problem, hosting = self._problem, self._hosting
        block = problem.blocks[self._columns.listed[number].block]
        wanted = {job: part * problem.jobs[job].demand / count for job, part in left.parts.items()}
        names = problem.job_names
        rates = {
            names[job]: min(share * problem.jobs[job].demand, wanted[job])
            for job, share in self._columns.listed[number].shares
            if job in wanted
        }
        hosted = hosting.host(block, rates) if rates else None
        if hosted is None:
            return None
        for job in sorted(wanted, key=lambda j: (-wanted[j] / problem.jobs[j].demand, j)):
            name, rate = names[job], wanted[job]
            if hosted.rates.get(name, 0) >= rate or name not in problem.usable_points(block):
                continue
            more = hosting.host(block, {**hosted.rates, name: rate})
            if more is None and name in hosted.rates:
                more = hosting.most(block, hosted.rates, name)
            if more is not None:
                hosted = more
        return hosted
