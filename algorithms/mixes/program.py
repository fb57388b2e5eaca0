"""The integer program over mixes and machines: how many of each serve all jobs.

Shares of demands are rounded down to whole parts, so that every solution is a schedule.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, lcm
from typing import TYPE_CHECKING, NamedTuple

from cms.schedule.schedule import Schedule

from ..branch_and_price.program import MachineVariables, within_limits
from ..solvers.integer import LARGEST, Hint, Program, Settings, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.plugin.algorithm import Budget

    from ..branch_and_price.shapes import Shapes
    from .columns import Column, Step

#: Parts of a demand: a multiple of all numbers to 20, as equal shares are the usual tie.
_PARTS = 232_792_560
#: Common denominators up to here are taken as they are, so that nothing is rounded.
_SHORT = 2**28
#: The largest share of a demand has at least so many parts.
_FINE = 10**6


class Found(NamedTuple):
    """A solution: how many machines of each configuration, and of each mix."""

    cost: Fraction
    machines: tuple[int, ...]
    mixes: tuple[int, ...]


class Rules(NamedTuple):
    """A lower bound on the cost, the highest cost of interest, and cuts of the jobs' rows."""

    least: Fraction
    target: Fraction | None
    steps: Sequence[Step] = ()


class MixProgram:
    """An integer program over some mixes; TooLarge if the numbers leave the solver's range."""

    def __init__(self, columns: Sequence[Column], shapes: Shapes, rules: Rules) -> None:
        self._columns, self._shapes, self._rules = columns, shapes, rules
        self._program = Program()
        self._mixes = [self._program.variable(column.most) for column in columns]
        self._serve()
        self._add_machines()

    def _serve(self) -> None:
        jobs: dict[int, list[tuple[int, Fraction]]] = {}
        for number, column in enumerate(self._columns):
            for job, share in column.shares:
                jobs.setdefault(job, []).append((number, share))
        for listed in jobs.values():
            self._serve_job(listed)
        for step in self._rules.steps:
            terms = {self._mixes[n]: step.count(share) for n, share in jobs.get(step.job, ())}
            self._program.at_least(terms, ceil(step.times))

    def _serve_job(self, listed: Sequence[tuple[int, Fraction]]) -> None:
        parts = lcm(*(share.denominator for _, share in listed))
        if parts > _SHORT:
            parts = _PARTS
            while parts * max(share for _, share in listed) < _FINE:
                parts *= 2
        terms = {self._mixes[number]: floor(share * parts) for number, share in listed}
        self._program.at_least({v: n for v, n in terms.items() if n}, parts)

    def _add_machines(self) -> None:
        """Add the machines that hold the mixes, and the cost."""
        shapes, rules, program = self._shapes, self._rules, self._program
        lows = [0] * len(shapes)
        most = sum(map(program.high, self._mixes))
        highs = [
            min(most, floor(rules.target / cost)) if rules.target is not None and cost else most
            for cost in shapes.costs
        ]
        within_limits(shapes, lows, highs, LARGEST)
        self._machines = machines = MachineVariables(shapes, program, lows, highs)
        terms = machines.keep_cost(rules.least, rules.target)
        if terms and (rules.target is None or rules.target > rules.least):
            program.minimise(terms)
        for i in range(len(shapes.problem.blocks)):
            mine = [v for v, c in zip(self._mixes, self._columns, strict=True) if c.block == i]
            held = machines.held(i, enough=max(1, sum(map(program.high, mine))))
            program.at_least(terms_of([*held, *((v, -1) for v in mine)]), 0)

    def search(self, budget: Budget, *, nodes: int, cuts: bool = True) -> tuple[Found | None, Hint]:
        """Look for a good solution with SCIP; there may be none, and that proves nothing."""
        hint = self._program.search(budget, nodes=nodes, cuts=cuts)
        return self.read(hint.values), hint

    def solve(self, budget: Budget, *, effort: float) -> Found | None:
        """Ask CP-SAT, for so much of its deterministic time (about seconds)."""
        return self.read(self._program.solve(budget, Settings(), effort=effort).values)

    def read(self, values: Sequence[int] | None) -> Found | None:
        """Turn the variables' values into machines and mixes, if these serve the jobs."""
        if values is None:
            return None
        machines = self._machines.numbers(values)
        mixes = tuple(values[v] for v in self._mixes)
        return Found(self._shapes.cost(machines), machines, mixes)


def schedule_of(shapes: Shapes, columns: Sequence[Column], found: Found) -> Schedule:
    """Build the schedule of a solution."""
    totals = {shapes.shapes[c]: number for c, number in enumerate(found.machines) if number}
    given = {
        (shapes.problem.blocks[column.block], column.mix): number
        for column, number in zip(columns, found.mixes, strict=True)
        if number
    }
    return Schedule.from_counts(shapes.problem, totals, given)
