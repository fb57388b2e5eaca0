"""Schedules near the fractional solution of a node of the tree."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import next_below, round_up

from ..prices.choices import choices_of
from ..prices.region import configuration_of
from .diver import MOST_UNDECIDED, Diver
from .options import NearOptions
from .program import Task, close, schedule_of
from .shapes import Shapes
from .undecided import Undecided
from .whole_fleets import MAX_KINDS, WholeFleets, alike

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction
    from cms.schedule.schedule import Schedule

    from ..prices.jobs import Jobs
    from ..prices.points import PricePoint
    from ..prices.search import PriceSearch
    from .dive import Dived
    from .restricted_master import NodeSolution
    from .undecided import Pick

#: Fleets for which schedules are looked for, and dives for each.
_MOST_FLEETS, _DIVES = 12, slice(6)
#: Options of jobs that are free beside those of the solution: of each and in all; SCIP's nodes.
_OPTIONS, _ALL_OPTIONS, _PROGRAM_NODES = 15, 400, 100


class NodeSchedules:
    """Looks for schedules where branches have settled how many machines of each type there are.

    What jobs take at a node's prices then fits together as it never did at the root.
    """

    def __init__(
        self, given: Reduction, jobs: Jobs, search: PriceSearch, point: PricePoint, budget: Budget
    ) -> None:
        self._given, self._jobs, self._search, self._budget = given, jobs, search, budget
        self._diver = Diver(jobs, search.region, budget)
        self._random = np.random.default_rng(budget.seed)
        self._tried: set[tuple[int, ...]] = set()
        few = len(jobs) <= MAX_KINDS and jobs.problem.cost_step > 0 and search.region.bounded
        self.fleets = WholeFleets(search, point, jobs, budget) if few else None

    def first(self, point: PricePoint, cost: Fraction | None) -> Iterator[Schedule]:
        """Yield schedules of whole fleets, where jobs are alike and sets are cut at will."""
        if cost is not None and self.fleets is not None and alike(self._jobs):
            least = round_up(point.bound, self._jobs.problem.cost_step)
            for dived in self.fleets.improve(self._diver, least, cost):
                yield self._schedule(dived)

    def find(
        self,
        solution: NodeSolution,
        point: PricePoint,
        cost: Fraction | None,
        known: Iterable[Pick],
    ) -> Iterator[Schedule]:
        """Yield schedules that cost less and less, if the node's machines were not tried before."""
        region, jobs = self._search.region, self._jobs
        machines = tuple(map(round, solution.totals[: len(region.costs)]))
        if machines in self._tried or len(self._tried) >= _MOST_FLEETS:
            return
        self._tried.add(machines)
        least = sum((m * c for m, c in zip(machines, region.costs, strict=True)), Fraction(0))
        if not region.bounded:
            yield from self._near(solution, point, cost)
        elif cost is not None and least >= cost:
            return
        elif self.fleets is not None:
            self.fleets.options |= dict.fromkeys(known)
            found = self.fleets.of_fleet(machines)
            yield from map(self._schedule, self.fleets.cut(self._diver, found, cost))
        else:
            start = Undecided.of_amounts(solution.options, jobs)
            if len(start.open) <= MOST_UNDECIDED:
                fleet = Diver(jobs, region.of_fleet(dict(enumerate(machines))), self._budget)
                yield from map(self._schedule, fleet.dives(start, least, cost, _DIVES))

    def _schedule(self, dived: Dived) -> Schedule:
        problem = self._jobs.problem
        machines = {configuration_of(problem, row): n for row, n in dived.machines.items()}
        return self._given.restore(dived.choices.schedule(self._jobs, machines))

    def _near(
        self, solution: NodeSolution, point: PricePoint, cost: Fraction | None
    ) -> Iterator[Schedule]:
        """Free the kinds that the solution mixes options of, and some others."""
        jobs, region = self._jobs, self._search.region
        start = Undecided.of_amounts(solution.options, jobs)
        shapes, near = Shapes(jobs.problem, region.rows), NearOptions(jobs, point)
        target = None if cost is None else next_below(cost, shapes.step)
        slack = max(shapes.costs) if target is None else max(Fraction(0), target - point.bound)
        free: dict[int, list[tuple[int, ...]]] = {}
        size = 0
        for kind in [*start.open, *self._random.permutation(len(jobs)).tolist()]:
            if kind in free or (size >= _ALL_OPTIONS and kind not in start.open):
                continue
            options = near.some(kind, slack, _OPTIONS)
            free[kind] = [*dict.fromkeys((*start.open.get(kind, ()), *options))]
            size += len(free[kind])
        fixed = [(kind, option, n) for (kind, option), n in start.decided.items()]
        choices = choices_of(
            [each for each in fixed if each[0] not in free], len(jobs.problem.blocks)
        )
        task = Task(choices, free, (), max(Fraction(0), point.bound), target)
        found = close(shapes, jobs, task, self._budget, nodes=_PROGRAM_NODES).found
        if found is not None:
            yield self._given.restore(schedule_of(shapes, jobs, found))
