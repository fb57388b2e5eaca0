"""The configurations that integer programs use, and roughly how many of them hold given blocks."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from operator import ge
from typing import TYPE_CHECKING

from cms.values.numbers import common_step

from ..prices.region import Row, configuration_of
from ..solvers.floats import near
from ..solvers.linear import ITERATIONS, LinearProgram
from ..tables.machines import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem.machine_problem import MachineProblem
    from cms.problem.parts import Configuration

    from ..prices.fraction import Fractional
    from ..prices.region import Region, Vector


#: Maximal multisets of size-bounded sets that are listed one by one; of larger sets only those
#: machines are used that prices and dives brought up.
_MOST_SHAPES = 2_000


class Shapes:
    """Configurations with their blocks, costs and limits."""

    def __init__(
        self, problem: MachineProblem, rows: Sequence[Row], most: int = _MOST_SHAPES
    ) -> None:
        self.problem = problem
        names = [machine.name for machine in problem.machine_types]
        shapes, left_out = listed(problem, most // max(1, len(problem.size_bounded_configurations)))
        self.complete = not left_out
        # Below branches an empty machine may count; no schedule needs one.
        found = [
            row
            for row in rows
            if row.shape is None and names[row.machine] in left_out and any(row.counts)
        ]
        more = (configuration_of(problem, row) for row in found)
        self.shapes: tuple[Configuration, ...] = tuple(dict.fromkeys([*shapes, *more]))
        self.counts = [
            tuple(shape.blocks.get(block, 0) for block in problem.blocks) for shape in self.shapes
        ]
        self._machine = [names.index(shape.machine or "") for shape in self.shapes]
        self.costs = [problem.machine_types[m].cost for m in self._machine]
        self.step = common_step(self.costs) or Fraction(1)
        self.steps = [int(cost / self.step) for cost in self.costs]
        self._index = {
            (counts, m): c
            for c, (counts, m) in enumerate(zip(self.counts, self._machine, strict=True))
        }
        self.limited = [
            (machine.limit, [c for c, of in enumerate(self._machine) if of == m])
            for m, machine in enumerate(problem.machine_types)
            if machine.limit is not None and m in self._machine
        ]

    def __len__(self) -> int:
        return len(self.shapes)

    def cost(self, machines: Sequence[int]) -> Fraction:
        """Return what so many machines of each configuration cost."""
        return sum(
            (cost * number for cost, number in zip(self.costs, machines, strict=True)), Fraction(0)
        )

    def around(self, mixture: Fractional) -> list[Fraction]:
        """Return how many machines of each configuration a fractional schedule has.

        A machine that is not maximal is counted as one that has its blocks.
        """
        amounts = [Fraction(0)] * len(self.shapes)
        for row, amount in mixture.machines:
            if not any(row.counts):
                continue
            c = self._index.get((row.counts, row.machine))
            if c is None:
                c = self._beyond(row)
            amounts[c] += amount
        return amounts

    def _beyond(self, row: Row) -> int:
        for c, counts in enumerate(self.counts):
            if self._machine[c] == row.machine and all(map(ge, counts, row.counts)):
                return c
        raise AssertionError(f"no configuration has the blocks of {row}: it was found later on")

    def reduced_costs(self, vector: Vector, region: Region) -> list[Fraction]:
        """Return how much more each machine costs than it is worth, branches counted."""
        found = []
        columns = zip(self.shapes, self.counts, self.costs, self._machine, strict=True)
        for shape, counts, cost, m in columns:
            pairs = zip(vector.prices, counts, strict=True)
            worth = sum((price * n for price, n in pairs if n), Fraction(0))
            for at, factor in region.row_terms(Row(counts, m, shape)):
                worth += factor * vector.multipliers[at]
            found.append(cost + vector.limit_prices[m] - worth)
        return found


#: Limits on machines that are so many times larger than all blocks needed do not matter.
_NEVER_BINDS = 10**9


def covering(shapes: Shapes, load: Sequence[int]) -> list[Fraction] | None:
    """Return cheapest fractional numbers of machines; None if the limits do not allow any."""
    scale = max(1, *load) if load else 1
    dearest = max(shapes.costs, default=Fraction(0)) or Fraction(1)
    program = LinearProgram()
    x = [program.variable(near(cost / dearest)) for cost in shapes.costs]
    for i, need in enumerate(load):
        pairs = zip(x, shapes.counts, strict=True)
        held = [(variable, near(counts[i])) for variable, counts in pairs if counts[i]]
        program.row(held, low=near(need, scale))
    for limit, mine in shapes.limited:
        if limit // scale <= _NEVER_BINDS:
            program.row([(x[c], 1.0) for c in mine], high=near(limit, scale))
    answer = program.solve(None, (ITERATIONS,))
    if answer is None:
        return None
    return [Fraction(max(0.0, value)) * scale for value in answer.values]


def filled(
    shapes: Shapes, load: Sequence[int], around: Sequence[Fraction] | None
) -> tuple[int, ...] | None:
    """Return enough machines, in integers of any size; None if that breaks a limit.

    For numbers that no integer program can take: fractional machines rounded down, then block by
    block the machines that hold what is missing most cheaply.
    """
    machines = [floor(x) for x in around] if around is not None else [0] * len(shapes)
    for limit, mine in shapes.limited:
        # Of very large numbers a float may be some machines too many.
        over = sum(machines[c] for c in mine) - limit
        for c in mine:
            less = max(0, min(over, machines[c]))
            machines[c] -= less
            over -= less
    for i, need in enumerate(load):
        pairs = zip(machines, shapes.counts, strict=True)
        left = need - sum(number * counts[i] for number, counts in pairs)
        holders = [c for c, counts in enumerate(shapes.counts) if counts[i]]
        if left <= 0 or not holders:
            continue
        # The cheapest for all that is missing first, as far as the limits go.
        for c in sorted(holders, key=lambda c: shapes.costs[c] * -(-left // shapes.counts[c][i])):
            more = -(-left // shapes.counts[c][i])
            room = _room(shapes, machines, c)
            more = more if room is None else min(more, room)
            machines[c] += more
            left -= more * shapes.counts[c][i]
            if left <= 0:
                break
    for i, need in enumerate(load):
        if sum(n * counts[i] for n, counts in zip(machines, shapes.counts, strict=True)) < need:
            return None
    if any(sum(machines[c] for c in mine) > limit for limit, mine in shapes.limited):
        return None
    return tuple(machines)


def _room(shapes: Shapes, machines: Sequence[int], c: int) -> int | None:
    """Return how many more machines of a configuration its type allows; None for any number."""
    for limit, mine in shapes.limited:
        if c in mine:
            return max(0, limit - sum(machines[other] for other in mine))
    return None
