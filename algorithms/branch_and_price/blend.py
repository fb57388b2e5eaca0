"""The linear program of jobs' options and machines' contents, below branches on totals.

A price search looks for prices from nothing. Here the options and contents that matter are known
from the root, and a node differs from the last one by a bound or two: the simplex method goes on
from where it ended. What the program costs is no bound, as options or contents may be missing; its
prices prove one (:meth:`Blends.proved`), or bring up what is missing.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.certificate.quantity import BlocksOf, MachinesOfType

from ..prices.passes import Passes
from ..prices.points import PricePoint
from ..prices.region import Row
from ..solvers.floats import near
from ..solvers.linear import LinearProgram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from cms.certificate.conditions import Condition
    from cms.certificate.quantity import Quantity
    from cms.plugin.algorithm import Budget

    from ..prices.jobs import Jobs
    from ..prices.region import Region
    from .undecided import Pick

#: What this branch counts, machines of a type or blocks of one: (True, type) or (False, block).
#: Numbers beyond those of types are of weighted sums of machines.
Total = tuple[bool, int]
#: Prices are multiples of so small a part of the cheapest machine's cost, and less than the
#: program's by so much that no machine is worth more than it costs: then their digits stay few.
_GRID = 10**9
_SHRUNK = 10**9 - 20
#: GLOP's parameters: a node differs from the one before by bounds, which the dual method takes up.
_WAYS = (
    "max_number_of_iterations: 20000 use_dual_simplex: true use_preprocessing: false",
    "max_number_of_iterations: 20000 use_dual_simplex: false use_preprocessing: false",
    "max_number_of_iterations: 20000 use_dual_simplex: false use_preprocessing: true",
)
_INFINITY = float("inf")
#: What is added costs so much less, in the region's unit, than what there is.
_GAIN = 1e-8
_NOTHING = 1e-9


class Blend(NamedTuple):
    """A fractional schedule, and the prices behind it."""

    value: float
    options: dict[Pick, float]
    contents: dict[Row, float]
    totals: dict[Total, float]
    prices: list[float]
    duals: dict[Total, float]
    paid: list[float]
    machines: list[float]
    known: int


class Blends:
    """Fractional schedules below branches on machines of a type and on blocks of a type."""

    def __init__(self, jobs: Jobs, region: Region, budget: Budget) -> None:
        self._jobs, self._region, self._budget = jobs, region, budget
        self._costs = [near(cost / region.unit) for cost in region.costs]
        self._names = [machine.name for machine in jobs.problem.machine_types]
        self._program = program = LinearProgram()
        k = len(region.blocks)
        dear = 100.0 * max([1.0, *self._costs])
        self._missing = [program.variable(dear) for _ in range(k)]
        self._needs = [program.row([(missing, 1.0)], low=0.0) for missing in self._missing]
        self._choose = [program.row([], low=float(jobs.weight(kind))) for kind in range(len(jobs))]
        self._options: dict[Pick, int] = {}
        self._contents: dict[Row, int] = {}
        # The weights of sums of machines.
        self._sums: list[list[int]] = []
        self._rows: dict[Total, int] = {
            (True, m): program.row([], high=_INFINITY if limit is None else float(limit))
            for m, limit in enumerate(region.limits)
        }
        for row in region.rows:
            self.add_content(row)
        for m in range(len(region.costs)):
            # No schedule needs an empty machine, but a branch may.
            self.add_content(Row((0,) * k, m, None))
        self._held: set[Total] = set()
        self._starts = np.arange(len(jobs), dtype=np.int64)

    @property
    def known(self) -> int:
        """How many options and contents are known."""
        return len(self._options) + len(self._contents)

    def quantity(self, total: Total) -> Quantity:
        """Name what a total counts."""
        machines, at = total
        if not machines:
            return BlocksOf(self._region.blocks[at])
        if at < len(self._names):
            return MachinesOfType(self._names[at])
        weights = self._sums[at - len(self._names)]
        return MachinesOfType({name: n for name, n in zip(self._names, weights, strict=True) if n})

    def add_sum(self, weights: Sequence[int]) -> None:
        """Let a weighted sum of machines be a total."""
        self._sums.append([*weights])

    def _factor(self, total: Total, row: Row) -> int:
        """How much a machine with some content adds to a total."""
        machines, at = total
        if not machines:
            return row.counts[at]
        types = len(self._names)
        return int(row.machine == at) if at < types else self._sums[at - types][row.machine]

    def add_content(self, row: Row) -> bool:
        """Add a content; say whether it is new."""
        if row in self._contents:
            return False
        terms = [(self._needs[i], float(n)) for i, n in enumerate(row.counts) if n]
        for total, number in self._rows.items():
            if factor := self._factor(total, row):
                terms.append((number, float(factor)))
        self._contents[row] = self._program.column(self._costs[row.machine], terms)
        return True

    def add_option(self, kind: int, option: tuple[int, ...]) -> bool:
        """Add an option of a kind; say whether it is new."""
        if (kind, option) in self._options:
            return False
        terms = [(self._needs[i], -float(n)) for i, n in enumerate(option) if n]
        self._options[kind, option] = self._program.column(0.0, [(self._choose[kind], 1.0), *terms])
        return True

    def solved(self, bounds: Mapping[Total, tuple[float, float]]) -> Blend | None:
        """Solve between bounds of totals; None if GLOP comes to no end, or if stopped."""
        program = self._program
        for total in self._held - bounds.keys():
            self._bind(total, -_INFINITY, _INFINITY)
        for total, (low, high) in bounds.items():
            self._bind(total, low, high)
        self._held = set(bounds)
        answer = program.solve(self._budget, _WAYS)
        if answer is None:
            return None
        x, duals = answer.values, answer.duals
        contents = {row: x[at] for row, at in self._contents.items() if x[at] > _NOTHING}
        totals: dict[Total, float] = {}
        for row, amount in contents.items():
            totals[True, row.machine] = totals.get((True, row.machine), 0.0) + amount
            for i, n in enumerate(row.counts):
                if n:
                    totals[False, i] = totals.get((False, i), 0.0) + n * amount
        for number, weights in enumerate(self._sums, len(self._costs)):
            totals[True, number] = sum(
                n * totals.get((True, m), 0.0) for m, n in enumerate(weights) if n
            )
        return Blend(
            answer.value,
            {pick: x[at] for pick, at in self._options.items() if x[at] > _NOTHING},
            contents,
            totals,
            [max(0.0, duals[row]) for row in self._needs],
            {total: duals[self._rows[total]] for total in bounds},
            [duals[row] for row in self._choose],
            [duals[self._rows[True, m]] - cost for m, cost in enumerate(self._costs)],
            self.known,
        )

    def _bind(self, total: Total, low: float, high: float) -> None:
        row = self._rows.get(total)
        if row is None:
            terms = [
                (at, float(factor))
                for content, at in self._contents.items()
                if (factor := self._factor(total, content))
            ]
            row = self._rows[total] = self._program.row(terms)
        single = total[0] and total[1] < len(self._costs)
        limit = self._region.limits[total[1]] if single else None
        self._program.set_low(row, low)
        self._program.set_high(row, high if limit is None else min(high, float(limit)))

    def proved(
        self, blend: Blend, path: Sequence[Condition], totals: Sequence[Total], above: Fraction
    ) -> tuple[PricePoint | None, bool]:
        """Return what a blend's prices prove exactly, and whether they brought up anything new."""
        multipliers = _multipliers(blend.duals, path, totals)
        passes = Passes(
            self._jobs, self._budget, path, self._starts, region=self._region.below(path)
        )
        known = len(passes.region.rows)
        numbers = [floor(price * _SHRUNK) for price in blend.prices]
        numbers += [
            c.sign * floor(c.sign * m * _SHRUNK) for c, m in zip(path, multipliers, strict=True)
        ]
        found = passes.evaluate(numbers, _GRID)
        if found is None:
            return None, False
        new = False
        if found[0].bound <= above:
            new = self._add_cheaper(blend, passes.options[-1])
            for row in passes.region.rows[known:]:
                new |= self._worth(blend, row) > _GAIN and self.add_content(row)
        return found[0], new

    def _add_cheaper(self, blend: Blend, options: NDArray[np.int64]) -> bool:
        """Add options, one of each kind, that cost less than those of a blend."""
        gains = np.array(blend.paid) - options @ np.array(blend.prices)
        found = False
        for kind in np.flatnonzero(gains > _GAIN).tolist():
            found |= self.add_option(kind, tuple(options[kind].tolist()))
        return found

    def _worth(self, blend: Blend, row: Row) -> float:
        """How much more a content is worth at the prices of a blend than it costs."""
        worth = blend.machines[row.machine]
        for i, n in enumerate(row.counts):
            if n:
                worth += n * (blend.prices[i] + blend.duals.get((False, i), 0.0))
        for number, weights in enumerate(self._sums, len(self._costs)):
            worth += weights[row.machine] * blend.duals.get((True, number), 0.0)
        return worth


def _multipliers(
    duals: Mapping[Total, float], path: Sequence[Condition], totals: Sequence[Total]
) -> list[float]:
    """Share duals out to conditions: of several on one side of a total the tightest counts."""
    found = [0.0] * len(path)
    for total, dual in duals.items():
        sign = 1 if dual > 0 else -1
        mine = [
            at
            for at, condition in enumerate(path)
            if totals[at] == total and condition.sign == sign
        ]
        if mine and dual:
            found[max(mine, key=lambda at: sign * path[at].value)] = abs(dual)
    return found
