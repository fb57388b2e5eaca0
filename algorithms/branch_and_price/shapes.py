"""The configurations that integer programs use."""

from __future__ import annotations

from fractions import Fraction
from operator import ge
from typing import TYPE_CHECKING

from cms.values.numbers import common_step

from ..integer_problem import listed
from ..prices.limits import limits_of
from ..prices.region import Row, configuration_of

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
        more = (
            configuration_of(problem, row)
            for row in rows
            if row.shape is None and names[row.machine] in left_out and any(row.counts)
        )
        self.shapes: tuple[Configuration, ...] = tuple(dict.fromkeys([*shapes, *more]))
        self.counts = [
            tuple(shape.blocks.get(block, 0) for block in problem.blocks) for shape in self.shapes
        ]
        #: The machine type of each.
        self.types = [names.index(shape.machine or "") for shape in self.shapes]
        self.costs = [problem.machine_types[m].cost for m in self.types]
        self.step = common_step(self.costs) or Fraction(1)
        self.steps = [int(cost / self.step) for cost in self.costs]
        self._index = {
            (counts, m): c
            for c, (counts, m) in enumerate(zip(self.counts, self.types, strict=True))
        }
        #: The most of each limit, with what a machine of each configuration counts there.
        self.limited: list[tuple[int, dict[int, int]]] = []
        for limit in limits_of(problem):
            counting = {c: limit.weights[m] for c, m in enumerate(self.types) if m in limit.weights}
            if counting:
                self.limited.append((limit.at_most, counting))

    def __len__(self) -> int:
        return len(self.shapes)

    def cost(self, machines: Sequence[int]) -> Fraction:
        """Return the cost of the given number of machines of each configuration."""
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
                c = next(
                    at
                    for at, (counts, m) in enumerate(zip(self.counts, self.types, strict=True))
                    if m == row.machine and all(map(ge, counts, row.counts))
                )
            amounts[c] += amount
        return amounts

    def reduced_costs(self, vector: Vector, region: Region) -> list[Fraction]:
        """Return how much more each machine costs than it is worth, branches counted."""
        found = []
        columns = zip(self.shapes, self.counts, self.costs, self.types, strict=True)
        for shape, counts, cost, m in columns:
            pairs = zip(vector.prices, counts, strict=True)
            worth = sum((price * n for price, n in pairs if n), Fraction(0))
            for at, factor in region.row_terms(Row(counts, m, shape)):
                worth += factor * vector.multipliers[at]
            allowed = (n * vector.limit_prices[at] for at, n in region.room.counting(m))
            found.append(sum(allowed, cost) - worth)
        return found
