"""Schedules near the fractional solution of a node of the tree."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import next_below, round_up

from ..prices.choices import choices_of
from ..prices.fraction import Fractional
from ..prices.region import configuration_of
from .dive import MOST_UNDECIDED, Diver, Undecided
from .neighbourhood import Neighbourhood, Rung
from .program import Found, schedule_of
from .rounding import Rounded
from .shapes import Shapes
from .whole_fleets import MAX_KINDS, WholeFleets, alike

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction
    from cms.schedule.schedule import Schedule

    from ..prices.jobs import Jobs
    from ..prices.region import PricePoint
    from ..prices.search import PriceSearch
    from .dive import Dived, Pick
    from .proof_tree import Node
    from .restricted_master import NodeSolution

#: Fleets for which schedules are looked for, and dives for each.
_MOST_FLEETS, _DIVES = 12, slice(6)
#: One node in so many is tried though its fleet was; what is tried.
_TRY_EVERY = 8
_RUNGS = (Rung(40, 15, 100), Rung(60, 15, 100), Rung(30, 12, 50))


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
        self._asked = 0
        few = len(jobs) <= MAX_KINDS and jobs.problem.cost_step > 0 and search.region.bounded
        self.fleets = WholeFleets(search, point, jobs, budget) if few else None

    def first(self, point: PricePoint, cost: Fraction | None) -> Iterator[Schedule]:
        """Yield schedules of whole fleets, where jobs are alike and sets are cut at will."""
        if cost is not None and self.fleets is not None and alike(self._jobs):
            least = round_up(point.bound, self._jobs.problem.cost_step)
            for dived in self.fleets.improve(self._diver, least, cost):
                yield self._schedule(dived)

    def find(
        self, node: Node, solution: NodeSolution, cost: Fraction | None, known: Iterable[Pick]
    ) -> Iterator[Schedule]:
        """Yield schedules that cost less and less: for each fleet once, and now and then."""
        region, jobs = self._search.region, self._jobs
        machines = tuple(map(round, solution.totals[: len(region.costs)]))
        self._asked += 1
        least = sum((m * c for m, c in zip(machines, region.costs, strict=True)), Fraction(0))
        again = not region.bounded and not self._asked % _TRY_EVERY
        if not again and (machines in self._tried or len(self._tried) >= _MOST_FLEETS):
            return
        self._tried.add(machines)
        if not region.bounded:
            yield from self._near(node, solution, cost)
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
        self, node: Node, solution: NodeSolution, cost: Fraction | None
    ) -> Iterator[Schedule]:
        """Free the kinds that the solution mixes options of, and some others."""
        jobs, region, point = self._jobs, self._search.region.below(node.path), node.point
        shapes = Shapes(jobs.problem, region.rows)
        machines = [(row, Fraction(x)) for row, x in solution.contents.items()]
        given = point, shapes, Fractional([], machines), self._random
        neighbourhood = Neighbourhood(jobs, region, *given)
        most: dict[int, tuple[float, tuple[int, ...]]] = {}
        for (kind, option), x in solution.options.items():
            most[kind] = max(most.get(kind, (0.0, ())), (x, option))
        rows = [(kind, option, jobs.weight(kind)) for kind, (_, option) in sorted(most.items())]
        origin: Rounded | Found = Rounded(choices_of(rows, len(region.blocks)), ())
        mixed = Undecided.of_amounts(solution.options, jobs).open
        failed = number = 0
        while failed < len(_RUNGS) and not self._budget.stopped:
            target = None if cost is None else next_below(cost, shapes.step)
            if target is not None and target < point.bound:
                break
            if target is not None and not number % len(_RUNGS):
                # Few options and machines are left for a schedule that costs no more than this
                # fleet at its best, and programs of few are quick.
                target = min(target, round_up(point.bound, shapes.step))
            found, _ = neighbourhood.look(
                _RUNGS[number % len(_RUNGS)],
                origin,
                least=point.bound,
                target=target,
                budget=self._budget,
                mixed=mixed,
            )
            number, failed = number + 1, failed + 1
            if found is not None:
                origin, mixed, cost, failed = found, {}, found.cost, 0
                yield self._given.restore(schedule_of(shapes, jobs, found))
