"""The exact part of the PTAS where tables would be too large: the compact integer program.

Machines of each configuration and blocks of each type for each job (theory 1.2): up to naming, that
is a schedule.
"""

from __future__ import annotations

from contextlib import closing
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from algorithms.shared.program import Outcome, Program, Settings, TooLarge, terms_of
from cms.errors import UnsupportedProblem

from .fleet import Fleet, Found

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from fractions import Fraction

    from cms.algorithm import Budget


class Ended(NamedTuple):
    """The last word: whether it is proved that nothing costs less than what was found."""

    proved: bool


class CompactProgram:
    """The integer program for schedules that cost less than a known one.

    Parameters
    ----------
    fleet : Fleet
        Of a problem in which every job can be served; some machine costs something.
    lowest, highest : Fraction
        A lower bound, and the cost of the known schedule.

    Raises
    ------
    UnsupportedProblem
        If a number leaves the solver's range.
    """

    def __init__(self, fleet: Fleet, lowest: Fraction, highest: Fraction) -> None:
        self._fleet, self._program = fleet, Program()
        try:
            self._build(ceil(lowest / fleet.step), ceil(highest / fleet.step) - 1)
        except TooLarge:
            raise UnsupportedProblem(
                "the exact part would be an integer program with numbers beyond 2**60, or tables "
                "that are too large; scale the demands down, or take a larger epsilon"
            ) from None

    def _build(self, least: int, most: int) -> None:
        fleet, program = self._fleet, self._program
        rows = fleet.problem.rows
        everything = sum(fleet.useful)
        self._machines = [
            program.variable(min(everything, max(0, most) // steps) if steps else everything)
            for steps in fleet.steps
        ]
        self._blocks = [
            [program.variable(n) if n else None for n in fleet.most_blocks(j)]
            for j in range(len(rows))
        ]
        for j, blocks in enumerate(self._blocks):
            row = rows.row(j)
            served = zip(blocks, row.supply, strict=True)
            program.at_least({y: f for y, f in served if y is not None}, row.demand)
        for i in range(len(fleet.useful)):
            held = zip(self._machines, (counts[i] for counts in fleet.counts), strict=True)
            taken = ((blocks[i], -1) for blocks in self._blocks)
            program.at_least(terms_of([*held, *((y, n) for y, n in taken if y is not None)]), 0)
        cost = dict(zip(self._machines, fleet.steps, strict=True))
        cost = {x: steps for x, steps in cost.items() if steps}
        program.at_least(cost, least)
        program.at_most(cost, most)
        program.minimise(cost)

    def run(self, budget: Budget) -> Generator[Found | Ended, None, None]:
        """Yield better and better schedules, and at last whether the best one is optimal."""
        with closing(self._program.improvements(budget, Settings())) as items:
            for item in items:
                if isinstance(item, Outcome):
                    yield Ended(item.status in ("optimal", "infeasible"))
                else:
                    yield self._found(item)

    def _found(self, values: Sequence[int]) -> Found:
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
