"""The restricted master problem at the nodes of a branch-and-price tree.

Columns are options of kinds of jobs and contents of machines, shared by all nodes. Nodes differ in
a few bounds, so the simplex method goes on from where it ended. While columns are missing the value
is no lower bound; :meth:`RestrictedMaster.certify` prices, and either proves one or adds columns.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.certificate.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    MachinesWith,
)

from ..prices.passes import Passes
from ..prices.region import PricePoint, Row
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
    from .dive import Pick

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


class NodeSolution(NamedTuple):
    """A fractional schedule and the prices behind it, in the region's unit: hints, never proofs.

    ``totals`` and ``worth`` have an entry for each of the master's quantities: how much of it there
    is, and what one more of it in a content is worth (a machine, less what it costs). ``paid`` is
    what a job of each kind pays, ``duals`` are those of bounds by the number of the quantity, and
    ``known`` counts the columns there were.
    """

    value: float
    options: dict[Pick, float]
    contents: dict[Row, float]
    totals: list[float]
    worth: NDArray[np.float64]
    prices: list[float]
    duals: dict[int, float]
    paid: NDArray[np.float64]
    known: int


class RestrictedMaster:
    """A linear program over options and contents, below bounds on what machines have in all.

    ``quantities`` are what can be bounded: machines of each type, then blocks of each, then others.
    """

    def __init__(self, jobs: Jobs, region: Region, budget: Budget) -> None:
        self._jobs, self._region, self._budget = jobs, region, budget
        self._costs = [near(cost / region.unit) for cost in region.costs]
        self._program = program = LinearProgram()
        # Blocks that no machine holds cost more than any machine that does.
        self._dear = 100.0 * max([1.0, *self._costs])
        missing = [program.variable(self._dear) for _ in region.blocks]
        self._needs = [program.row([(variable, 1.0)], low=0.0) for variable in missing]
        self._choose = [program.row([], low=float(jobs.weight(kind))) for kind in range(len(jobs))]
        self.options: dict[Pick, int] = {}
        self._contents: dict[Row, int] = {}
        self.quantities: list[Quantity] = [MachinesOfType(name) for name in region.names]
        self.quantities += map(BlocksOf, region.blocks)
        # How much of each quantity a content has.
        self._counts: NDArray[np.float64] = np.zeros((0, len(self.quantities)))
        self._rows = {
            m: program.row([], high=_INFINITY if limit is None else float(limit))
            for m, limit in enumerate(region.limits)
        }
        for row in region.rows:
            self.add_content(row)
        for m in range(len(region.costs)):
            # No schedule needs an empty machine, but a branch may.
            self.add_content(Row((0,) * len(region.blocks), m, None))
        self._bounded: set[int] = set()
        # The kind and block of a quantity that one job has, and the variable of what it has beyond
        # its option, once there are bounds on it.
        self._of_jobs: dict[int, tuple[int, int]] = {}
        self._beyond: dict[int, int] = {}
        self._starts = np.arange(len(jobs), dtype=np.int64)

    @property
    def known(self) -> int:
        """How many options and contents are known."""
        return len(self.options) + len(self._contents)

    def add_quantity(self, quantity: Quantity) -> int:
        """Let something more be bounded; return its number."""
        if quantity in self.quantities:
            return self.quantities.index(quantity)
        at = len(self.quantities)
        self.quantities.append(quantity)
        if isinstance(quantity, BlocksOfJob):
            problem, index = self._jobs.problem, self._region.problem.block_index
            kind = int(self._jobs.kind_of[problem.job_index(quantity.job)])
            self._of_jobs[at] = kind, index[quantity.block]
        column = [[self._count(quantity, row)] for row in self._contents]
        self._counts = np.hstack([self._counts, np.array(column, dtype=np.float64)])
        return at

    def total(self, quantity: Quantity, solution: NodeSolution) -> float:
        """Return how much of a quantity of configurations a solution has."""
        return sum(x * self._count(quantity, row) for row, x in solution.contents.items())

    def _count(self, quantity: Quantity, row: Row) -> int:
        """Return how much of a quantity a machine has."""
        region = self._region
        name = region.names[row.machine]
        if isinstance(quantity, MachinesOfType):
            return quantity.weights.get(name, 0)
        if isinstance(quantity, MachinesOf):
            return int(row.shape == quantity.configuration)
        if isinstance(quantity, MachinesWith):
            held = dict(zip(region.blocks, row.counts, strict=True))
            least = quantity.content.blocks.items()
            return int(quantity.content.machine == name and all(held[b] >= n for b, n in least))
        if isinstance(quantity, BlocksOfJob):
            return 0
        raise AssertionError(f"no branch is on {quantity!r}")

    def _counts_of(self, row: Row) -> NDArray[np.float64]:
        """Return how much of each quantity a machine has."""
        one = [int(m == row.machine) for m in range(len(self._costs))]
        more = self.quantities[len(one) + len(row.counts) :]
        counts = [*one, *row.counts, *(self._count(quantity, row) for quantity in more)]
        return np.array(counts, dtype=np.float64)

    def add_content(self, row: Row) -> bool:
        """Add a content; say whether it is new."""
        if row in self._contents:
            return False
        counts = self._counts_of(row)
        terms = [(self._needs[i], float(n)) for i, n in enumerate(row.counts) if n]
        terms += [(number, float(counts[at])) for at, number in self._rows.items() if counts[at]]
        self._counts = np.vstack([self._counts, counts])
        self._contents[row] = self._program.column(self._costs[row.machine], terms)
        return True

    def add_option(self, kind: int, option: tuple[int, ...]) -> bool:
        """Add an option of a kind; say whether it is new."""
        if (kind, option) in self.options:
            return False
        terms = [(self._needs[i], -float(n)) for i, n in enumerate(option) if n]
        terms += [
            (self._rows[at], float(option[i]))
            for at, (mine, i) in self._of_jobs.items()
            if mine == kind and at in self._rows and option[i]
        ]
        self.options[kind, option] = self._program.column(0.0, [(self._choose[kind], 1.0), *terms])
        return True

    def solve(self, bounds: Mapping[int, tuple[float, float]]) -> NodeSolution | None:
        """Solve between bounds of quantities; None if GLOP comes to no end, or if stopped."""
        for at in self._bounded - bounds.keys():
            self._bind(at, -_INFINITY, _INFINITY)
        for at, (low, high) in bounds.items():
            self._bind(at, low, high)
        self._bounded = set(bounds)
        answer = self._program.solve(self._budget, _WAYS)
        if answer is None:
            return None
        x, duals = np.array(answer.values), answer.duals
        amounts = x[[*self._contents.values()]]
        totals: list[float] = (amounts @ self._counts).tolist()
        for at, (kind, i) in self._of_jobs.items():
            mine = (x[c] * option[i] for (k, option), c in self.options.items() if k == kind)
            totals[at] = float(sum(mine)) + (
                float(x[self._beyond[at]]) if at in self._beyond else 0
            )
        types, k = len(self._costs), len(self._needs)
        prices = [max(0.0, duals[row]) for row in self._needs]
        worth = np.zeros(len(self.quantities))
        worth[types : types + k] = prices
        for at in {*range(types), *bounds}:
            worth[at] += duals[self._rows[at]]
        worth[:types] -= self._costs
        return NodeSolution(
            answer.value,
            {pick: float(x[at]) for pick, at in self.options.items() if x[at] > _NOTHING},
            {row: float(x[at]) for row, at in self._contents.items() if x[at] > _NOTHING},
            totals,
            worth,
            prices,
            {at: duals[self._rows[at]] for at in bounds},
            np.array([duals[row] for row in self._choose]),
            self.known,
        )

    def _bind(self, at: int, low: float, high: float) -> None:
        if at not in self._rows:
            columns = zip(self._contents.values(), self._counts[:, at].tolist(), strict=True)
            terms = [(column, n) for column, n in columns if n]
            if at in self._of_jobs:
                kind, i = self._of_jobs[at]
                terms += [(c, float(o[i])) for (k, o), c in self.options.items() if k == kind]
            row = self._rows[at] = self._program.row(terms)
            # Branches may contradict each other, or all that is known so far.
            for sign in (-1.0, 1.0):
                self._program.column(self._dear, [(row, sign)])
            if at in self._of_jobs:
                self._beyond[at] = self._program.column(0.0, [(self._needs[i], -1.0), (row, 1.0)])
        limit = self._region.limits[at] if at < len(self._costs) else None
        self._program.set_low(self._rows[at], low)
        self._program.set_high(self._rows[at], high if limit is None else min(high, float(limit)))

    def certify(
        self, solution: NodeSolution, path: Sequence[Condition], above: Fraction
    ) -> tuple[PricePoint | None, bool]:
        """Return what a solution's prices prove exactly, and whether that brought up columns.

        Where more than ``above`` is proved, none are added.
        """
        multipliers = self._multipliers(solution.duals, path)
        region = self._region.below(path)
        passes = Passes(self._jobs, self._budget, self._starts, region)
        known = len(region.rows)
        numbers = [floor(price * _SHRUNK) for price in solution.prices]
        numbers += [
            c.sign * floor(c.sign * m * _SHRUNK) for c, m in zip(path, multipliers, strict=True)
        ]
        found = passes.evaluate(numbers, _GRID)
        if found is None:
            return None, False
        before = self.known
        if found[0].bound <= above:
            options = passes.options[-1]
            gains = solution.paid - options @ np.array(solution.prices)
            for kind in np.flatnonzero(gains > _GAIN).tolist():
                self.add_option(kind, tuple(options[kind].tolist()))
            for job, own in zip(region.own_priced, passes.own_options[-1], strict=True):
                self.add_option(int(self._jobs.kind_of[job]), own)
            for row in region.rows[known:]:
                if self._counts_of(row)[: len(solution.worth)] @ solution.worth > _GAIN:
                    self.add_content(row)
        return found[0], self.known > before

    def _multipliers(self, duals: Mapping[int, float], path: Sequence[Condition]) -> list[float]:
        """Share duals out to conditions: of several on one side of a quantity the tightest one."""
        found = [0.0] * len(path)
        for at, dual in duals.items():
            sign, quantity = 1 if dual > 0 else -1, self.quantities[at]
            mine = [n for n, c in enumerate(path) if c.sign == sign and c.quantity == quantity]
            if mine and dual:
                found[max(mine, key=lambda n: sign * path[n].value)] = abs(dual)
        return found
