"""Schedules from the mixes in sight."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import next_below, round_up
from cms.plugin.algorithm import Named

from ..branch_and_price.shapes import Shapes
from ..solvers.floats import near
from ..solvers.integer import TooLarge
from .program import Found, MixProgram, Rules, schedule_of
from .tidy import smaller_mixes, tidied

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cms.plugin.algorithm import Budget, Claim
    from cms.schedule.schedule import Schedule

    from .columns import Column
    from .knapsack import Prices
    from .prices import PriceSearch

#: Mixes of a program that looks for schedules, those of the least reduced cost.
_MOST_MIXES = 1_000
#: SCIP's nodes and CP-SAT's deterministic time, for schedules.
_NODES, _EFFORT = 200, 0.5
#: With more jobs a program takes longer by itself: dives come first, and SCIP has fewer nodes.
FEW_JOBS, _FEWER_NODES = 12, 30
#: SCIP's nodes for the tidiest schedule, and the mixes of least reduced cost that it may have.
_TIDY_NODES, _TIDY_MIXES = 50, 200


class Closing:
    """Closes the gap between a bound and a schedule, once the search has solved a program."""

    def __init__(self, search: PriceSearch, budget: Budget) -> None:
        self._search, self._budget = search, budget
        self._columns, self._problem = search.columns, search.columns.problem
        self._shapes = Shapes(self._problem, search.region.rows)
        self._step = self._problem.cost_step

    def look(self, cost: Fraction | None, part: str) -> Iterator[Claim]:
        """Look for a schedule cheaper than ``cost``, of mixes of small reduced cost."""
        if not self._step and cost is not None:
            return
        if not self._shapes.complete:
            self._shapes = Shapes(self._problem, self._search.region.rows)
        listed, point = self._cheapest(), self._search.point
        target = None if cost is None else next_below(cost, self._step)
        rules = Rules(self._least, target, () if point is None else tuple(point.steps))
        program = self._built(listed, rules)
        found = None if program is None else self._found(program)
        if found is not None:
            yield Named(self._tidy(dict(zip(listed, found.mixes, strict=True)), found), part)

    def _found(self, program: MixProgram) -> Found | None:
        """Ask SCIP, then CP-SAT: only if SCIP did not come to an end."""
        few = len(self._columns.jobs) <= FEW_JOBS
        found, hint = program.search(self._budget, nodes=_NODES if few else _FEWER_NODES, cuts=few)
        if found is None and not hint.ended and not self._budget.stopped:
            found = program.solve(self._budget, effort=_EFFORT)
        return found

    def _built(self, listed: Sequence[int], rules: Rules) -> MixProgram | None:
        mixes = [self._columns.listed[number] for number in listed]
        try:
            return MixProgram(mixes, self._shapes, rules)
        except TooLarge:
            return None

    @property
    def _least(self) -> Fraction:
        least = self._budget.lower_bound
        if self._search.best is not None:
            least = max(least, round_up(self._search.best.bound, self._step))
        return least

    def _cheapest(self) -> list[int]:
        """Return the numbers of mixes whose reduced cost is small."""
        point = self._search.point
        if point is None or len(self._columns) <= _MOST_MIXES:
            return list(range(len(self._columns)))
        missing = [
            (point.blocks[column.block] - _worth(point.prices, column), number)
            for number, column in enumerate(self._columns.listed)
        ]
        return sorted(number for _, number in sorted(missing)[:_MOST_MIXES])

    def _tidy(self, counts: Mapping[int, int], found: Found) -> Schedule:
        """Return the schedule of a solution, with as few turns of jobs on blocks as are found."""
        columns, best = self._columns, tidied(self._columns, counts)
        if found.cost <= self._least:
            listed = sorted({*smaller_mixes(columns, best), *self._cheapest()[:_TIDY_MIXES]})
            program = self._built(listed, Rules(found.cost, found.cost, fewest=True))
            tidiest = None
            if program is not None:
                tidiest, _ = program.search(self._budget, nodes=_TIDY_NODES)
            if tidiest is not None and tidiest.cost <= found.cost:
                again = tidied(columns, dict(zip(listed, tidiest.mixes, strict=True)))
                if turns(columns.listed, again) < turns(columns.listed, best):
                    best, found = again, tidiest
        mixes = [columns.listed[number] for number in best]
        return schedule_of(self._shapes, mixes, found._replace(mixes=tuple(best.values())))


def _worth(prices: Prices, column: Column) -> float:
    worths = (prices.worth(job, np.array([near(share)])) for job, share in column.shares)
    return sum((float(worth[0]) for worth in worths), 0.0)


def turns(listed: list[Column], counts: Mapping[int, int]) -> int:
    """Count the turns of jobs on blocks."""
    return sum(count * len(listed[number].shares) for number, count in counts.items())
