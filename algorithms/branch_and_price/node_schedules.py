"""A schedule near the fractional solution of a node of the tree."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import next_below, round_up

from ..prices.fraction import fractional
from ..prices.region import configuration_of
from .diver import MOST_UNDECIDED, Diver
from .neighbourhood import FIRST_RUNGS, FLEET_RUNGS, Neighbourhood, Rung
from .program import schedule_of
from .rounding import rounded
from .shapes import Shapes
from .undecided import Undecided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cms.plugin.algorithm import Budget
    from cms.schedule.schedule import Schedule

    from ..prices.jobs import Jobs
    from ..prices.points import PricePoint
    from ..prices.search import PriceSearch

#: So many kinds of jobs are all free at once.
_MOST_KINDS = 100
_ALL_FREE = (Rung(_MOST_KINDS, 40, 100),)
#: One in so many attempts frees more jobs.
_LARGER_EVERY = 3
#: What part of the root's prices is added to a node's.
_LEANING = Fraction(1, 64)
#: Dives at a node.
_DIVES = slice(2)
#: Dives for the machines of a fleet, and options of all jobs in all these: of more options programs
#: with some free jobs find as much sooner. What part of the jobs chooses after the first dive.
_ONE_DIVE, _FLEET_DIVES, _CHOICES, _MOST_FREE = slice(1), 8, 4_000, 0.8


class NodeSchedules:
    """Looks for schedules with a small integer program (theory 6.6).

    Where a node's branches have settled how many machines of each type there are, what jobs take at
    its prices fits together as it never did at the root.
    """

    def __init__(self, jobs: Jobs, budget: Budget) -> None:
        self._jobs, self._budget = jobs, budget
        self._tries = self._fleets = 0
        self.root: PricePoint | None = None

    @property
    def thorough(self) -> bool:
        """Whether all jobs are free at once: then another try at the same fleet tells little."""
        return len(self._jobs) <= _MOST_KINDS

    def schedule(self, search: PriceSearch, cost: Fraction | None) -> Schedule | None:
        """Look for a schedule that is cheaper than ``cost``."""
        point, jobs = search.best, self._jobs
        if point is None:
            return None
        dived = self._dived(search, point, cost)
        if dived is not None:
            return dived
        if search.region.own_priced:
            return None
        shapes = Shapes(jobs.problem, search.region.rows)
        target = None if cost is None else next_below(cost, shapes.step)
        return self._around(search, point, shapes, target)

    def of_fleet(
        self, search: PriceSearch, fleet: Mapping[int, int], cost: Fraction | None
    ) -> Schedule | None:
        """Dive for a schedule with no more machines of each type than a fleet has.

        Where all fleets within reach have something to spare, one pass over the jobs often is a
        best fractional solution, and leaves nothing open but how machines are cut. Here all jobs
        choose, among what they took in any pass, until all fits the fleet; then most of them.
        """
        point, region = search.best, search.region
        if point is None or region.own_priced or not region.bounded:
            return None
        least = sum((n * region.costs[m] for m, n in fleet.items()), Fraction(0))
        if cost is not None and least >= cost:
            return None
        passes = zip(*(options.tolist() for options in search.options), strict=True)
        taken = [tuple(dict.fromkeys(map(tuple, each))) for each in passes]
        near = Undecided.of(search, fractional(search))
        self._fleets += 1
        random = np.random.default_rng((self._budget.seed, self._fleets))
        diver = Diver(self._jobs, region.of_fleet(fleet), self._budget)
        for number in range(min(_FLEET_DIVES, _CHOICES // sum(map(len, taken)))):
            free = random.random(len(taken)) < (_MOST_FREE if number else 1)
            decided = {pick: n for pick, n in near.decided.items() if not free[pick[0]]}
            choosing = {k: each for k, each in enumerate(taken) if free[k] or k in near.open}
            start = Undecided(decided, choosing)
            found = self._last(diver, start, least, cost, _ONE_DIVE)
            if found is not None:
                return found
        return None

    def _last(
        self, diver: Diver, start: Undecided, least: Fraction, cost: Fraction | None, dives: slice
    ) -> Schedule | None:
        """Return what dives end with, if anything."""
        best, jobs = None, self._jobs
        for dived in diver.dives(start, least, cost, dives):
            machines = {configuration_of(jobs.problem, row): n for row, n in dived.machines.items()}
            best = dived.choices.schedule(jobs, machines)
        return best

    def _leaning(self, point: PricePoint) -> PricePoint:
        """Let what costs the same at a node's prices be told apart by those of the root.

        Where a fleet is more than enough, what is short at the root costs nothing, and of a hundred
        options that cost the same most take whole machines.
        """
        vector = point.vector
        if self.root is None:
            return point
        pairs = zip(vector.prices, self.root.vector.prices, strict=True)
        prices = tuple(price + first * _LEANING for price, first in pairs)
        return point._replace(vector=vector._replace(prices=prices))

    def _dived(
        self, search: PriceSearch, point: PricePoint, cost: Fraction | None
    ) -> Schedule | None:
        """Dive from what is mixed at this node."""
        region = search.region
        if not region.bounded or region.own_priced:
            return None
        start = Undecided.of(search, fractional(search))
        if len(start.open) > MOST_UNDECIDED:
            return None
        return self._last(Diver(self._jobs, region, self._budget), start, point.bound, cost, _DIVES)

    def _around(
        self, search: PriceSearch, point: PricePoint, shapes: Shapes, target: Fraction | None
    ) -> Schedule | None:
        """Look as the root did, but at this node's prices."""
        mixture, best = fractional(search), None
        self._tries += 1
        seed = self._budget.seed + self._tries
        random, leaning = np.random.default_rng(seed), self._leaning(point)
        neighbourhood = Neighbourhood(search, point, shapes, mixture, random, leaning)
        start = rounded(search, mixture, seed)
        rungs = FLEET_RUNGS if self._tries % _LARGER_EVERY else FIRST_RUNGS[-1:]
        if self.thorough:
            rungs = _ALL_FREE
        failed = number = 0
        while failed < len(rungs) and not self._budget.stopped:
            if target is not None and target < point.bound:
                break
            aim = target
            if target is not None and not number % 2:
                # Few options and machines are left for a schedule that costs no more than this
                # fleet at its best, and programs of few are quick.
                aim = min(target, round_up(point.bound, shapes.step))
            found, _ = neighbourhood.look(
                rungs[number % len(rungs)],
                start if best is None or not number % 2 else best,
                least=point.bound,
                target=aim,
                budget=self._budget,
            )
            number, failed = number + 1, failed + 1
            if found is not None:
                best, target, failed = found, next_below(found.cost, shapes.step), 0
        return None if best is None else schedule_of(shapes, self._jobs, best)
