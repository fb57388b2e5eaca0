"""One run of price-and-branch where jobs share blocks in time: prices, programs, dives, a proof."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from cms.certificate.certificate import round_up
from cms.plugin.algorithm import Claim, Named
from cms.running.stopping import Stopped

from ..prices.region import Region
from .branching import Tree
from .closing import FEW_JOBS, Closing
from .columns import Columns
from .dive import Diver
from .first_fit import FirstFit, MixFirstFit, MixFirstFitOptions
from .hosting import Hosting
from .machines import schedule_of
from .prices import PriceSearch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.mixes.problem import TimeSharedProblem
    from cms.plugin.algorithm import Budget

    from .bounds import Priced

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
        self._step = problem.cost_step
        self._columns = Columns(problem)
        self._hosting = Hosting(problem)

    def claims(self) -> Iterator[Claim]:
        problem, budget, columns = self._problem, self._budget, self._columns
        columns.add_alone()
        yield from self._start()
        if any(machine.limit is not None for machine in problem.machine_types):
            yield from self._ray()
        search = PriceSearch(columns, Region(problem), budget)
        for priced in search.run():
            yield self._certificate(search, priced)
        if self._met(search):
            return
        closing = Closing(search, budget)
        few = len(columns.jobs) <= FEW_JOBS
        if not few:
            yield from self._dived(search)
        if not self._met(search):
            yield from closing.look(self._cost, "mixes of the linear program")
        if self._met(search):
            return
        for priced in search.refine():
            yield self._certificate(search, priced)
            if self._met(search):
                return
        for priced in search.settle():
            yield self._certificate(search, priced)
        if self._met(search):
            return
        yield from closing.look(self._cost, "mixes of the linear program, refined")
        if self._met(search):
            return
        if few:
            yield from self._branched(search)
            if not self._met(search):
                yield from closing.look(self._cost, "mixes of a tree")

    def _branched(self, search: PriceSearch) -> Iterator[Claim]:
        """Prove the cost that is known by a tree of prices, where one that is not large does."""
        cost = self._cost
        if cost is not None:
            proof = Tree(search, self._budget).proof(cost)
            if proof is not None:
                yield Named(proof, "branching")

    def _dived(self, search: PriceSearch) -> Iterator[Claim]:
        """Dive for schedules until one meets the bound."""
        diver = Diver(search, self._hosting, Random(self._budget.seed), self._budget)
        for schedule in diver.schedules():
            cost = self._cost
            if cost is None or schedule.cost(self._problem) < cost:
                yield Named(schedule, "diving")
            if self._met(search):
                return

    def _start(self) -> Iterator[Claim]:
        """Yield the best of a few orders of first fit, where that takes the problem."""
        problem, budget = self._problem, self._budget
        if budget.best is None and MixFirstFit().support(problem, MixFirstFitOptions()):
            first_fit = FirstFit(self._hosting, Random(budget.seed), lambda: budget.stopped)
            for _ in range(_ORDERS):
                machines = first_fit.order(self._cost)
                if machines is not None:
                    yield Named(schedule_of(machines), "first fit")
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

    def _certificate(self, search: PriceSearch, priced: Priced) -> Named:
        cuts = ", with cuts" if any(f.steps for f in priced.functions.values()) else ""
        return Named(priced.leaf, f"price functions, {search.rounds} programs{cuts}")

    @property
    def _cost(self) -> Fraction | None:
        best = self._budget.best
        return None if best is None else best.cost(self._problem)

    def _met(self, search: PriceSearch) -> bool:
        """Whether there is nothing left to look for, or no time."""
        least = self._budget.lower_bound
        if search.best is not None:
            least = max(least, round_up(search.best.bound, self._step))
        cost = self._cost
        return self._budget.stopped or (cost is not None and cost <= least)
