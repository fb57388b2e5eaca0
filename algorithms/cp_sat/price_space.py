"""The price region of a problem: which block prices keep every machine within its cost."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cms.certificate import BlockPrices
from cms.model import Configuration, SizeBoundedConfigurations
from cms.packing import fullest_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem import Problem


class Row(NamedTuple):
    """One constraint of the region: ``counts . prices <= cost + limit price`` of a machine type."""

    counts: tuple[int, ...]
    machine: int


class PriceSpace:
    """Block prices and limit prices of a problem, checked and rescaled in exact arithmetic.

    Parameters
    ----------
    problem : Problem
    free_machines : bool, default False
        Whether all costs count as 0: valid prices of a positive bound are then a proof that there
        is no schedule at all.
    """

    def __init__(self, problem: Problem, *, free_machines: bool = False) -> None:
        self.problem = problem
        self.blocks = problem.blocks
        names = [machine.name for machine in problem.machine_types]
        self.costs = [
            Fraction(0) if free_machines else machine.cost for machine in problem.machine_types
        ]
        self.limits = [machine.limit for machine in problem.machine_types]
        self.rows: list[Row] = []
        self._bounded: list[tuple[SizeBoundedConfigurations, list[int], int]] = []
        index = problem.block_index
        for shape in problem.configurations:
            machine = names.index(shape.machine or "")
            if isinstance(shape, Configuration):
                counts = tuple(shape.blocks.get(block, 0) for block in self.blocks)
                self.rows.append(Row(counts, machine))
            else:
                self._bounded.append((shape, [index[block] for block in shape.sizes], machine))
        # Start each set with the machines filled with one type.
        for shape, columns, machine in self._bounded:
            for block, column in zip(shape.sizes, columns, strict=True):
                count = shape.largest_count(block)
                if count:
                    self.rows.append(Row(self._unit(column, count), machine))

    def _unit(self, column: int, count: int) -> tuple[int, ...]:
        return tuple(count if i == column else 0 for i in range(len(self.blocks)))

    @property
    def fixed_at_zero(self) -> set[int]:
        """Blocks that must be free: an unlimited machine of cost 0 has them."""
        return {
            i
            for row in self.rows
            if self.limits[row.machine] is None and self.costs[row.machine] == 0
            for i, count in enumerate(row.counts)
            if count
        }

    def worth(self, prices: Sequence[Fraction]) -> list[Fraction]:
        """Return the value of the most valuable machine of each type; remember new rows."""
        most = [Fraction(0)] * len(self.costs)
        for row in self.rows:
            pairs = zip(prices, row.counts, strict=True)
            value = sum((price * count for price, count in pairs if count), Fraction(0))
            most[row.machine] = max(most[row.machine], value)
        for shape, columns, machine in self._bounded:
            found = fullest_machine(
                [prices[i] for i in columns],
                list(shape.sizes.values()),
                shape.capacity,
                shape.max_blocks,
            )
            if found.value > most[machine]:
                most[machine] = found.value
                counts = [0] * len(self.blocks)
                for i, count in zip(columns, found.content, strict=True):
                    counts[i] = count
                row = Row(tuple(counts), machine)
                if row not in self.rows:
                    self.rows.append(row)
        return most

    def valid(self, prices: Sequence[Fraction]) -> tuple[Fraction, list[Fraction]]:
        """Return the scale that makes prices valid, and the limit prices that then go with them."""
        worth = self.worth(prices)
        scales = [
            cost / value
            for value, cost, limit in zip(worth, self.costs, self.limits, strict=True)
            if limit is None and value > 0
        ]
        # Without limits the bound grows with the prices, so they may also be scaled up.
        unlimited = all(limit is None for limit in self.limits)
        scale = min([*scales, *([] if unlimited and scales else [Fraction(1)])])
        limit_prices = [
            Fraction(0) if limit is None else max(Fraction(0), value * scale - cost)
            for value, cost, limit in zip(worth, self.costs, self.limits, strict=True)
        ]
        return scale, limit_prices

    def rent(self, limit_prices: Sequence[Fraction]) -> Fraction:
        """Return what the limits take off the bound."""
        pairs = zip(self.limits, limit_prices, strict=True)
        return sum((price * limit for limit, price in pairs if limit is not None), Fraction(0))

    def certificate(
        self, prices: Sequence[Fraction], limit_prices: Sequence[Fraction]
    ) -> BlockPrices:
        """Name the numbers."""
        machines = self.problem.machine_types
        return BlockPrices(
            {block: price for block, price in zip(self.blocks, prices, strict=True) if price},
            {
                machine.name: price
                for machine, price in zip(machines, limit_prices, strict=True)
                if price
            },
        )
