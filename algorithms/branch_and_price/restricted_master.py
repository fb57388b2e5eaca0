"""The restricted master problem at the nodes of a branch-and-price tree, and what it has in part.

Columns are options of kinds of jobs and contents of machines, shared by all nodes. Nodes differ in
a few bounds, so the simplex method goes on from where it ended. While columns are missing the value
is no lower bound; :meth:`RestrictedMaster.certify` prices, and either proves one or adds columns.
"""

from __future__ import annotations

from itertools import product
from math import ceil, floor, gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.certificate.price_conditions import Condition
from cms.certificate.quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
)
from cms.problem.parts import Configuration

from ..prices.passes import Passes
from ..prices.region import PricePoint, Row
from ..solvers.floats import near
from ..solvers.linear import LinearProgram

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from cms.certificate.quantity import Quantity
    from cms.plugin.algorithm import Budget

    from ..prices.jobs import Jobs
    from ..prices.region import Region
    from .mixture_rounding import Pick

#: Prices are multiples of 1/_GRID of the unit of cost, so that they have few digits, and are scaled
#: by _SHRUNK/_GRID, so that no machine is worth more than it costs.
_GRID = 10**9
_SHRUNK = 10**9 - 20
#: GLOP's parameters: a node differs from the one before by bounds, which the dual method takes up.
_WAYS = (
    "max_number_of_iterations: 20000 use_dual_simplex: true use_preprocessing: false",
    "max_number_of_iterations: 20000 use_dual_simplex: false use_preprocessing: false",
    "max_number_of_iterations: 20000 use_dual_simplex: false use_preprocessing: true",
)
_INFINITY = float("inf")
#: Limits that count machines more often are for prices alone: floats do not hold their sums.
_LARGEST_WEIGHT = 2**53
#: Least gain in reduced cost, in the region's unit, for which a column is added.
_GAIN = 1e-8
_NOTHING = 1e-9
#: Nearer to an integer than this counts as one where branches are chosen; nothing is proved by it.
NEAR = 1e-5
#: So many sums, of units down to so small a part of a machine, and about a cost step at least.
_SUMS, _MOST_PARTS, _MOST_WEIGHT, _FINEST = 12, 8, 1_000, 0.9
#: Blocks of a type that tell machines apart: this many, of the contents that are used most in part.
_FEW_OF_A_TYPE, _MOST_CONTENTS = 64, 40
#: Blocks of single jobs that are looked at.
_MOST_JOBS = 40


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
        self.contents: dict[Row, int] = {}
        self.quantities: list[Quantity] = [MachinesOfType(name) for name in region.names]
        self.quantities += map(BlocksOfType, region.blocks)
        # How much of each quantity a content has; a region with branches on all of them knows.
        self._counting = region.below([Condition(each, 1, 0) for each in self.quantities])
        self._table: NDArray[np.float64] = np.zeros((0, len(self.quantities)))
        self._new_rows: list[NDArray[np.float64]] = []
        # Limits bound quantities, too: those of several types follow all others.
        self._most: dict[int, float] = {}
        for limit in region.limits:
            if limit.size > _LARGEST_WEIGHT:
                continue
            named = {region.names[m]: n for m, n in limit.weights.items()}
            at = self.add_quantity(MachinesOfType(named))
            self._most[at] = min(near(limit.at_most), self._most.get(at, _INFINITY))
        bounded = {*range(len(region.names)), *self._most}
        self._rows = {
            at: program.row([], high=self._most.get(at, _INFINITY)) for at in sorted(bounded)
        }
        for at in bounded - {*range(len(region.names))}:
            # Branches may leave no room within a limit of several types.
            program.column(self._dear, [(self._rows[at], -1.0)])
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
        return len(self.options) + len(self.contents)

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
        self._counting = self._region.below([Condition(each, 1, 0) for each in self.quantities])
        column = np.array(self._count(quantity, self.contents), dtype=np.float64)
        self._table = np.column_stack([self._counts, column])
        return at

    def total(self, quantity: Quantity, solution: NodeSolution) -> float:
        """Return how much of a quantity of configurations a solution has."""
        counts = self._count(quantity, solution.contents)
        return sum(x * n for x, n in zip(solution.contents.values(), counts, strict=True))

    def _count(self, quantity: Quantity, rows: Iterable[Row]) -> list[int]:
        """Return how much of a quantity machines have."""
        region = self._region.below([Condition(quantity, 1, 0)])
        return [sum(n for _, n in region.row_terms(row)) for row in rows]

    @property
    def _counts(self) -> NDArray[np.float64]:
        """How much of each quantity the contents have, a row each."""
        if self._new_rows:
            self._table, self._new_rows = np.vstack([self._table, *self._new_rows]), []
        return self._table

    def _counts_of(self, row: Row) -> NDArray[np.float64]:
        """Return how much of each quantity a machine has."""
        counts = np.zeros(len(self.quantities))
        for at, n in self._counting.row_terms(row):
            counts[at] = n
        return counts

    def add_content(self, row: Row) -> bool:
        """Add a content; say whether it is new."""
        if row in self.contents:
            return False
        counts = self._counts_of(row)
        terms = [(self._needs[i], float(n)) for i, n in enumerate(row.counts) if n]
        terms += [(number, float(counts[at])) for at, number in self._rows.items() if counts[at]]
        self._new_rows.append(counts)
        self.contents[row] = self._program.column(self._costs[row.machine], terms)
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
        amounts = x[[*self.contents.values()]]
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
        for at in {*range(types), *self._most, *bounds}:
            worth[at] += duals[self._rows[at]]
        worth[:types] -= self._costs
        return NodeSolution(
            answer.value,
            {pick: float(x[at]) for pick, at in self.options.items() if x[at] > _NOTHING},
            {row: float(x[at]) for row, at in self.contents.items() if x[at] > _NOTHING},
            totals,
            worth,
            prices,
            {at: duals[self._rows[at]] for at in bounds},
            np.array([duals[row] for row in self._choose]),
            self.known,
        )

    def _bind(self, at: int, low: float, high: float) -> None:
        if at not in self._rows:
            columns = zip(self.contents.values(), self._counts[:, at].tolist(), strict=True)
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
        self._program.set_low(self._rows[at], low)
        self._program.set_high(self._rows[at], min(high, self._most.get(at, _INFINITY)))

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


def is_whole(value: float) -> bool:
    """Whether a number is near an integer."""
    return abs(value - round(value)) <= NEAR


def find_sums(
    amounts: Sequence[float], worth: Sequence[float], step: float, gap: float
) -> list[list[int]]:
    """List weights of machine types by which these are ``worth`` as much; the best sums first.

    A cut of Chvátal and Gomory is a branch on such a sum, of which one side is empty: where all
    machines of which there may be more are worth a whole number of parts of one, costs are too.
    ``amounts`` are how many machines there are, and bounds are to rise by ``gap``.
    """
    found: dict[tuple[int, ...], float] = {}
    for m, parts in product(range(len(worth)), range(1, _MOST_PARTS + 1)):
        unit = worth[m] / parts
        if is_whole(amounts[m]) or unit < _FINEST * step:
            continue
        weights = tuple(round(each / unit) for each in worth)
        if gcd(*weights) != 1 or sum(map(bool, weights)) < 2:
            continue
        if min(weights) < 0 or max(weights) > _MOST_WEIGHT:
            continue
        total = sum(n * amount for n, amount in zip(weights, amounts, strict=True))
        found[weights] = min(unit * (ceil(total - NEAR) - total), gap)
    best = sorted(found, key=lambda weights: (-found[weights], weights))
    return [[*weights] for weights in best[:_SUMS]]


def find_contents(region: Region, solution: NodeSolution) -> Iterator[Quantity]:
    """Yield machines with some content, for where totals tell nothing: most used in part first."""
    mixed = [(x, row) for row, x in solution.contents.items() if not is_whole(x)]
    for _, row in sorted(mixed, key=lambda pair: -pair[0])[:_MOST_CONTENTS]:
        if row.shape is not None:
            if not any(region.problem.sets_with(row.shape)):
                yield MachinesOfConfiguration(row.shape)
            continue
        for i, count in enumerate(row.counts):
            for n in range(max(1, count + 1 - _FEW_OF_A_TYPE), count + 1):
                content = Configuration({region.blocks[i]: n}, region.names[row.machine])
                yield MachinesWithBlocks(content)


def find_jobs(jobs: Jobs, region: Region, solution: NodeSolution) -> dict[BlocksOfJob, float]:
    """Return blocks that a job without equals has in part, those worth most first."""
    means: dict[tuple[int, int], float] = {}
    for (kind, option), x in solution.options.items():
        for i, n in enumerate(option) if jobs.weight(kind) == 1 else ():
            means[kind, i] = means.get((kind, i), 0.0) + x * n
    mixed = [at for at, x in means.items() if not is_whole(x)]
    mixed.sort(key=lambda at: (-solution.prices[at[1]] * abs(means[at] - round(means[at])), at))
    names = jobs.problem.job_names
    return {
        BlocksOfJob(region.blocks[i], names[int(jobs.members(kind)[0])]): means[kind, i]
        for kind, i in mixed[:_MOST_JOBS]
    }
