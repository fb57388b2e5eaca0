"""One run of branch-and-price where jobs share blocks in time: prices, programs, dives, a proof."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from cms.plugin.algorithm import Claim, Named
from cms.running.stopping import Stopped

from ..prices.region import Region
from .branching import Tree
from .closing import FEW_JOBS, cheaper_schedule
from .columns import Columns
from .dive import Diver
from .first_fit import FirstFit, refusal
from .hosting import Hosting, schedule_of
from .prices import PriceSearch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cms.plugin.algorithm import Budget
    from cms.time_sharing.problem import TimeSharedProblem

    from .prices import Priced

#: Orders of first fit before anything else.
_ORDERS = 4


def mix_claims(problem: TimeSharedProblem, budget: Budget) -> Iterator[Claim]:
    """Yield certificates and schedules of a problem: first of all a schedule, made at once."""
    try:
        yield from _Run(problem, budget).claims()
    except Stopped:
        return


class _Run:
    """A run on one problem."""

    def __init__(self, problem: TimeSharedProblem, budget: Budget) -> None:
        self._problem, self._budget = problem, budget
        self._columns = Columns(problem)
        self._hosting = Hosting(problem)

    def claims(self) -> Iterator[Claim]:
        """Go through the stages until a schedule meets the bound."""
        self._columns.add_alone()
        yield from self._start()
        if self._problem.limits:
            yield from self._ray()
        search = PriceSearch(self._columns, Region(self._problem), self._budget)
        for stage in self._stages(search):
            for claim in stage:
                yield claim
                if self._met(search):
                    return
            if self._met(search):
                return

    def _stages(self, search: PriceSearch) -> Iterator[Iterable[Claim]]:
        few = len(self._columns.jobs) <= FEW_JOBS
        yield self._certificates(search, search.run())
        if not few:
            yield self._dived(search)
        yield self._closed(search, "mixes of the linear program")
        yield self._certificates(search, search.refine())
        yield self._certificates(search, search.settle())
        yield self._closed(search, "mixes of the linear program, refined")
        if few:
            yield self._branched(search)
            yield self._closed(search, "mixes of a tree")

    def _start(self) -> Iterator[Claim]:
        """Yield the best of a few orders of first fit, where that takes the problem."""
        problem, budget = self._problem, self._budget
        if budget.best is None and refusal(problem) is None:
            first_fit = FirstFit(self._hosting, Random(budget.seed), lambda: budget.stopped)
            for _ in range(_ORDERS):
                found = first_fit.order(self._cost)
                if found is not None:
                    yield Named(schedule_of(found[1]), "first fit")
        groups = () if budget.best is None else budget.best.groups
        for group in groups:
            for block, mix in group.assignment:
                self._columns.add_mix(problem.block_index[block], mix)

    def _ray(self) -> Iterator[Claim]:
        """Bring up mixes that serve all jobs within the limits, or prove that none do."""
        region = Region(self._problem, free_machines=True)
        search = PriceSearch(self._columns, region, self._budget)
        for priced in search.run():
            if priced.bound > 0:
                yield Named(priced.leaf, f"ray, {search.rounds} programs")

    def _certificates(self, search: PriceSearch, found: Iterator[Priced]) -> Iterator[Claim]:
        for priced in found:
            cuts = ", with cuts" if any(f.steps for f in priced.leaf.functions.values()) else ""
            yield Named(priced.leaf, f"price functions, {search.rounds} programs{cuts}")

    def _dived(self, search: PriceSearch) -> Iterator[Claim]:
        diver = Diver(search, self._hosting, Random(self._budget.seed), self._budget)
        for schedule in diver.schedules():
            cost = self._cost
            if cost is None or schedule.cost(self._problem) < cost:
                yield Named(schedule, "diving")

    def _closed(self, search: PriceSearch, part: str) -> Iterator[Claim]:
        schedule = cheaper_schedule(search, self._budget, self._cost)
        if schedule is not None:
            yield Named(schedule, part)

    def _branched(self, search: PriceSearch) -> Iterator[Claim]:
        """Prove the cost that is known by a tree of prices, where one that is not large does."""
        cost = self._cost
        proof = None if cost is None else Tree(search, self._budget).proof(cost)
        if proof is not None:
            yield Named(proof, "branching")

    @property
    def _cost(self) -> Fraction | None:
        best = self._budget.best
        return None if best is None else best.cost(self._problem)

    def _met(self, search: PriceSearch) -> bool:
        """Whether there is nothing left to look for, or no time."""
        cost = self._cost
        return self._budget.stopped or (cost is not None and cost <= search.least)
