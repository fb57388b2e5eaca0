"""The exact part of the PTAS where tables would be too large: the compact integer program.

Machines of each configuration and blocks of each type for each job (theory 1.2): up to naming, that
is a schedule.
"""

from __future__ import annotations

from contextlib import closing
from math import ceil
from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem

from ..solvers.integer import Outcome, Program, Settings, TooLarge, terms_of
from .fleet import Fleet, FleetFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from cms.plugin.algorithm import Budget


class CompactProgram:
    """The integer program for schedules that cost at least ``lowest`` and less than ``highest``.

    Every job can be served, and some machine costs something. Raises UnsupportedProblem if numbers
    leave the solver's range.
    """

    def __init__(self, fleet: Fleet, lowest: Fraction, highest: Fraction) -> None:
        self._fleet, self._program = fleet, Program()
        try:
            self._serve(ceil(highest / fleet.step) - 1)
            self._pay(ceil(lowest / fleet.step), ceil(highest / fleet.step) - 1)
        except TooLarge:
            raise UnsupportedProblem(
                "demands, or costs in their common step, would be numbers beyond 2**60 in the "
                "integer program"
            ) from None

    def _serve(self, most: int) -> None:
        """State that every job is served, by blocks that machines have."""
        fleet, program = self._fleet, self._program
        everything = sum(fleet.useful)
        # Machines that cost as much as the known schedule by themselves do not take part.
        self._machines = [
            program.variable(min(everything, max(0, most // steps)) if steps else everything)
            for steps in fleet.steps
        ]
        self._blocks = [[program.variable(n) for n in demand.enough] for demand in fleet.demands]
        for demand, blocks in zip(fleet.demands, self._blocks, strict=True):
            program.at_least(terms_of(zip(blocks, demand.supply, strict=True)), demand.demand)
        for i in range(len(fleet.useful)):
            held = zip(self._machines, (counts[i] for counts in fleet.counts), strict=True)
            taken = ((blocks[i], -1) for blocks in self._blocks)
            program.at_least(terms_of([*held, *taken]), 0)

    def _pay(self, least: int, most: int) -> None:
        """State what machines cost, in steps."""
        costs = terms_of(zip(self._machines, self._fleet.steps, strict=True))
        self._program.at_least(costs, least)
        self._program.at_most(costs, most)
        self._program.minimise(costs)

    def run(self, budget: Budget) -> Iterator[FleetFound | None]:
        """Yield better and better schedules, and None at last if there are no better ones."""
        with closing(self._program.improvements(budget, Settings())) as items:
            for item in items:
                if not isinstance(item, Outcome):
                    yield self._read(item)
                elif item.status in ("optimal", "infeasible"):
                    yield None

    def _read(self, values: Sequence[int]) -> FleetFound:
        given = [[values[y] for y in blocks] for blocks in self._blocks]
        return FleetFound([values[x] for x in self._machines], given)
