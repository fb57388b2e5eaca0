"""The exact part of the PTAS where tables would be too large: the compact integer program.

Machines of each configuration and blocks of each type for each job (theory 1.2): up to naming, that
is a schedule.
"""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from ..solvers.integer import Outcome, Program, Settings, TooLarge, terms_of
from .fleet import Fleet, FleetFound

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from cms.plugin.algorithm import Budget

#: Where costs have no short common denominator, they count in this part of the least one at most.
_FINEST = 2**20


class Ended(NamedTuple):
    """The last word: what a schedule costs at least, None if the program was not decided."""

    bound: Fraction | None


class CompactProgram:
    """The integer program for schedules that cost less than a known one.

    Costs count as multiples of their common step. Where these numbers are too large for the solver
    they are rounded down to multiples of a unit, by less than a part ``epsilon`` of each: what the
    program proves of them holds for the costs themselves, and its best schedule costs less than
    1 + epsilon times the optimum.

    Parameters
    ----------
    fleet : Fleet
        Of a problem in which every job can be served; some machine costs something.
    lowest, highest : Fraction
        A lower bound, and the cost of the known schedule.
    epsilon : Fraction

    Attributes
    ----------
    unit : Fraction
        What costs are multiples of.
    too_large : str or None
        Which numbers leave the solver's range.
    """

    def __init__(
        self, fleet: Fleet, lowest: Fraction, highest: Fraction, epsilon: Fraction
    ) -> None:
        self._fleet, self._program = fleet, Program()
        self._lowest, self._highest = lowest, highest
        self.unit = fleet.step
        self.too_large = self._built(epsilon)

    def _built(self, epsilon: Fraction) -> str | None:
        try:
            self._serve()
        except TooLarge:
            return "demands would be numbers beyond 2**60 in the integer program"
        try:
            self._pay()
        except TooLarge:
            least = min(steps for steps in self._fleet.steps if steps)
            self.unit = self._fleet.step * least / max(_FINEST, ceil(1 / epsilon))
        else:
            return None
        try:
            self._pay()
        except TooLarge:
            return "costs of machines would be numbers beyond 2**60 in the integer program"
        return None

    def _serve(self) -> None:
        """State that every job is served, by blocks that machines have."""
        fleet, program = self._fleet, self._program
        everything = sum(fleet.useful)
        below = [
            ceil(self._highest / (fleet.step * steps)) - 1 if steps else everything
            for steps in fleet.steps
        ]
        self._machines = [program.variable(min(everything, max(0, most))) for most in below]
        self._blocks = [
            [program.variable(n) if n else None for n in demand.enough] for demand in fleet.demands
        ]
        for demand, blocks in zip(fleet.demands, self._blocks, strict=True):
            served = zip(blocks, demand.supply, strict=True)
            program.at_least({y: f for y, f in served if y is not None}, demand.demand)
        for i in range(len(fleet.useful)):
            held = zip(self._machines, (counts[i] for counts in fleet.counts), strict=True)
            taken = ((blocks[i], -1) for blocks in self._blocks)
            program.at_least(terms_of([*held, *((y, n) for y, n in taken if y is not None)]), 0)
        # Machines that cost as much as the known schedule by themselves do not take part.
        self._costs = {
            x: fleet.step * steps
            for x, steps, most in zip(self._machines, fleet.steps, below, strict=True)
            if steps and most > 0
        }

    def _pay(self) -> None:
        """State what machines cost, in multiples of the unit."""
        program, unit = self._program, self.unit
        up = {x: ceil(cost / unit) for x, cost in self._costs.items()}
        program.at_least(up, ceil(self._lowest / unit))
        down = {x: int(cost / unit) for x, cost in self._costs.items()}
        program.at_most(down, ceil(self._highest / unit) - 1)
        program.minimise(down)

    def run(self, budget: Budget) -> Generator[FleetFound | Ended, None, None]:
        """Yield better and better schedules, and at last what a schedule costs at least."""
        bound = self._highest
        with closing(self._program.improvements(budget, Settings())) as items:
            for item in items:
                if isinstance(item, Outcome):
                    proved = item.status in ("optimal", "infeasible")
                    yield Ended(bound if proved else None)
                else:
                    counted = (item[x] * int(cost / self.unit) for x, cost in self._costs.items())
                    bound = sum(counted) * self.unit
                    yield self._found(item)

    def _found(self, values: Sequence[int]) -> FleetFound:
        fleet, problem = self._fleet, self._fleet.problem
        machines = {
            shape: values[x]
            for shape, x in zip(fleet.shapes, self._machines, strict=True)
            if values[x]
        }
        given = {
            (problem.blocks[i], name): values[y]
            for name, blocks in zip(problem.job_names, self._blocks, strict=True)
            for i, y in enumerate(blocks)
            if y is not None and values[y]
        }
        return fleet.found(machines, given)
