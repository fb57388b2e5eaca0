"""Schedules from the mixes in sight, and the word that there is no cheaper one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cms.certificate.certificate import next_below, round_up
from cms.plugin.algorithm import Named, SolverBound

from ..branch_and_price.shapes import Shapes
from ..solvers.floats import near
from .columns import Column, Step, undominated
from .program import Around, Found, MixProgram, Rules, TooLarge, schedule_of
from .tidy import smaller_mixes, tidied

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cms.plugin.algorithm import Budget, Claim
    from cms.schedule.schedule import Schedule

    from .knapsack import Prices
    from .prices import PriceSearch

#: Mixes of a program that looks for schedules, those of the least reduced cost.
_MOST_MIXES = 1_000
#: SCIP's nodes and CP-SAT's deterministic time, for schedules.
_NODES, _EFFORT, _LITTLE = 200, 5.0, 0.5
#: With more jobs a program takes longer by itself: dives come first, and SCIP has fewer nodes.
FEW_JOBS, _FEWER_NODES = 12, 30
#: SCIP's nodes for the tidiest schedule.
_TIDY_NODES = 50
#: Mixes of one block that are listed, at first and at last, and CP-SAT's time to decide.
_LISTED, _QUICK, _LONG = (3_000, 30_000), 10.0, 60.0
#: Where more machines or mixes of one kind are needed, a solution is looked for near fractions.
_MANY = 60.0


class Closing:
    """Closes the gap between a bound and a schedule.

    Parameters
    ----------
    search : PriceSearch
        With a solution of its linear program.
    budget : Budget

    Attributes
    ----------
    decided : bool
        Whether a solver's word leaves nothing to look for.
    """

    def __init__(self, search: PriceSearch, budget: Budget) -> None:
        self._search, self._budget = search, budget
        self._columns, self._problem = search.columns, search.columns.problem
        self._shapes = Shapes(self._problem, search.region.rows)
        self._step = self._problem.cost_step
        self.decided = False

    def look(self, cost: Fraction | None, part: str, *, thorough: bool = False) -> Iterator[Claim]:
        """Look for a schedule cheaper than ``cost``, of mixes of small reduced cost."""
        if not self._step and cost is not None:
            return
        if not self._shapes.complete:
            self._shapes = Shapes(self._problem, self._search.region.rows)
        listed = self._cheapest()
        mixes = [self._columns.listed[number] for number in listed]
        rules = Rules(self._least, self._target(cost), self._steps)
        program = self._built(mixes, rules, self._around(listed))
        found = None if program is None else self._found(program, thorough=thorough)
        if found is not None:
            yield Named(self.tidy(dict(zip(listed, found.mixes, strict=True)), found), part)

    def _found(self, program: MixProgram, *, thorough: bool) -> Found | None:
        """Ask SCIP, then CP-SAT: only if SCIP did not come to an end, or all is to be tried."""
        few = len(self._columns.jobs) <= FEW_JOBS
        found, hint = program.search(self._budget, nodes=_NODES if few else _FEWER_NODES, cuts=few)
        if found is None and (thorough or not hint.ended) and not self._budget.stopped:
            found, _ = program.solve(self._budget, effort=_EFFORT if thorough else _LITTLE)
        return found

    def _built(
        self, mixes: list[Column], rules: Rules, around: Around | None = None
    ) -> MixProgram | None:
        try:
            return MixProgram(mixes, self._shapes, rules, around)
        except TooLarge:
            return None

    def _around(self, listed: list[int]) -> Around | None:
        """Return the fractional solution where numbers are large."""
        point = self._search.point
        if point is None or max([*point.machines, *point.mixes], default=0.0) < _MANY:
            return None
        rows = self._search.region.rows
        amounts = [0.0] * len(self._shapes)
        index = {
            (counts, cost): c
            for c, (counts, cost) in enumerate(
                zip(self._shapes.counts, self._shapes.costs, strict=True)
            )
        }
        for row, amount in zip(rows, point.machines, strict=False):
            c = index.get((row.counts, self._search.region.costs[row.machine]))
            if c is not None:
                amounts[c] += amount
        mixes = [point.mixes[n] if n < len(point.mixes) else 0.0 for n in listed]
        return Around(amounts, mixes)

    @property
    def _least(self) -> Fraction:
        least = self._budget.lower_bound
        if self._search.best is not None:
            least = max(least, round_up(self._search.best.bound, self._step))
        return least

    def _target(self, cost: Fraction | None) -> Fraction | None:
        return None if cost is None else next_below(cost, self._step)

    @property
    def _steps(self) -> tuple[Step, ...]:
        point = self._search.point
        return () if point is None else tuple(point.steps)

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

    # -- the word that there is nothing cheaper ----------------------------------------------------

    def decide(self, cost: Fraction | None, *, quick: bool) -> Iterator[Claim]:
        """List all mixes that a cheaper schedule can use, and have CP-SAT decide (theory 6.7)."""
        priced = self._search.best
        if priced is None or not self._shapes.complete or (cost is not None and not self._step):
            return
        target = self._target(cost)
        mixes = self._all_mixes(target, quick=quick)
        if mixes is None or self._budget.stopped:
            return
        numbers = [self._columns.add_mix(column.block, column.mix) for column in mixes]
        listed = [number for number in numbers if number is not None]
        rules = Rules(self._least, target, self._steps, self._usable(target))
        effort = _QUICK if quick else _LONG
        part = "all mixes that can matter"
        program = self._built(mixes, rules)
        if program is None:
            return
        found, outcome = program.solve(self._budget, effort=effort)
        if found is not None:
            yield Named(self.tidy(dict(zip(listed, found.mixes, strict=True)), found), part)
        if outcome.status not in ("optimal", "infeasible") or self._budget.stopped:
            return
        cost = found.cost if found is not None else cost
        yield from self._word(mixes, cost, effort, part)

    def _word(
        self, mixes: list[Column], cost: Fraction | None, effort: float, part: str
    ) -> Iterator[Claim]:
        """Ask about shares rounded up whether all of it ends below a cost."""
        target = self._target(cost)
        if target is not None and target < self._least:
            return
        rules = Rules(self._least, target, self._steps, self._usable(target), outer=True)
        program = self._built(mixes, rules)
        if program is None:
            return
        _, outcome = program.solve(self._budget, effort=effort)
        if outcome.status == "infeasible":
            self.decided = True
            yield Named(SolverBound(cost, "CP-SAT"), part)

    def _all_mixes(self, target: Fraction | None, *, quick: bool) -> list[Column] | None:
        """List the mixes that schedules up to a target can use; None if there are too many."""
        priced, most = self._search.best, _LISTED[0 if quick else 1]
        assert priced is not None
        found: list[Column] = []
        for i, price in enumerate(priced.vector.prices):
            slack = self._slack(target)
            slack = price if slack is None else slack
            mixes = self._search.pricing.near(priced, i, slack, most - len(found), quick=quick)
            if mixes is None:
                return None
            for mix in mixes:
                number = self._columns.add_mix(i, mix)
                if number is not None:
                    found.append(self._columns.listed[number])
        return undominated(dict.fromkeys(found))

    def _slack(self, target: Fraction | None) -> Fraction | None:
        priced = self._search.best
        if target is None or priced is None:
            return None
        return max(Fraction(0), target - priced.bound)

    def _usable(self, target: Fraction | None) -> list[bool] | None:
        priced, slack = self._search.best, self._slack(target)
        if priced is None or slack is None:
            return None
        costs = self._shapes.reduced_costs(priced.vector, self._search.region)
        return [cost <= slack for cost in costs]

    # -- without crumbs ----------------------------------------------------------------------------

    def tidy(self, counts: Mapping[int, int], found: Found) -> Schedule:
        """Return the schedule of a solution, with as few turns of jobs on blocks as are found."""
        columns, best = self._columns, tidied(self._columns, counts)
        if found.cost <= self._least:
            listed = sorted(set(smaller_mixes(columns, best)) | set(self._cheapest()[:200]))
            mixes = [columns.listed[number] for number in listed]
            rules = Rules(found.cost, found.cost, fewest=True)
            program = self._built(mixes, rules)
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
    """Return how many turns of jobs on blocks there are."""
    return sum(count * len(listed[number].shares) for number, count in counts.items())
