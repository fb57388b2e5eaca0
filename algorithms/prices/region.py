"""The price region: which block prices keep every machine within its cost (theory 6.1, 6.8, 6.9).

Below branches the region has one more dimension a branch, the multiplier of its condition; the
conditions are those that :mod:`cms.certificate.price_conditions` checks.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cms.certificate.certificate import BlockPrices
from cms.certificate.quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
)  # fmt: skip
from cms.knapsack.pricing import common_denominator
from cms.problem.parts import Configuration, SizeBoundedConfigurations

from .limits import Limit, Room, limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cms.certificate.price_conditions import Condition
    from cms.knapsack.packing import Found, Packing
    from cms.problem.machine_problem import MachineProblem

#: Up to here limits are kept without asking whether they bind.
_LARGE_LIMIT = 10**9
#: How many types a set has for each further content that a pass looks for, and the most of these.
_TYPES_A_ROW, _MORE_ROWS = 4, 64
#: Nodes of the search for one of these.
_PATIENCE = 500
#: Exact prices, over a common denominator or not.
_Price = TypeVar("_Price", int, Fraction)


class Row(NamedTuple):
    """A machine's blocks, its type's number, and the configuration if it is a listed one."""

    counts: tuple[int, ...]
    machine: int
    shape: Configuration | None


class Bounded(NamedTuple):
    """A size-bounded set: its types in columns, with their sizes and how many a machine needs."""

    shape: SizeBoundedConfigurations
    machine: int
    columns: tuple[int, ...]
    most: tuple[int, ...]
    packing: Packing

    @classmethod
    def of(
        cls,
        problem: MachineProblem,
        shape: SizeBoundedConfigurations,
        machine: int,
        *,
        proper: bool = True,
    ) -> Bounded:
        """Read a set, as far as its types are the problem's."""
        from cms.knapsack.packing import Packing

        index = problem.block_index
        blocks = [block for block in shape.sizes if block in index]
        columns = tuple(index[block] for block in blocks)
        most = tuple(shape.largest_count(block) for block in blocks)
        if proper:
            useful = problem.useful_blocks()
            most = tuple(min(count, useful[i]) for count, i in zip(most, columns, strict=True))
        sizes = [shape.sizes[block] for block in blocks]
        packing = Packing(sizes, shape.capacity, shape.max_blocks, most)
        return cls(shape, machine, columns, most, packing)


class _Counted(NamedTuple):
    """Machines that a branch counts, each ``times`` times, with the branch's sign."""

    branch: int
    machine: int
    times: int
    least: Mapping[int, int] = {}
    shape: Configuration | None = None


class Vector(NamedTuple):
    """Exact prices that keep to the region: of blocks, of limits, and the branches' multipliers."""

    prices: tuple[Fraction, ...]
    limit_prices: tuple[Fraction, ...]
    multipliers: tuple[Fraction, ...] = ()


class PricePoint(NamedTuple):
    """Prices that keep to the region, and the exact bound they prove."""

    vector: Vector
    bound: Fraction


class Share(NamedTuple):
    """How much of a pass's choice the fractional solution takes for a group of jobs."""

    group: int
    number: int
    weight: float | Fraction
    load: tuple[int, ...]


class Region:
    """Prices of a problem, possibly below branches, checked and rescaled in exact arithmetic.

    With ``free_machines`` all costs count as 0: prices of a positive bound then prove that there is
    no schedule. If ``proper``, no machine of a size-bounded set has more blocks of a type than all
    jobs together can use.
    """

    def __init__(
        self,
        problem: MachineProblem,
        path: Sequence[Condition] = (),
        *,
        free_machines: bool = False,
        proper: bool = True,
    ) -> None:
        self.problem, self.free_machines = problem, free_machines
        self.blocks = problem.blocks
        self.names = [machine.name for machine in problem.machine_types]
        self.costs = [
            Fraction(0) if free_machines else machine.cost for machine in problem.machine_types
        ]
        limits = limits_of(problem)
        if max((limit.at_most for limit in limits), default=0) > _LARGE_LIMIT:
            # Limits that never bind, of more machines than blocks, are none.
            most = sum(problem.useful_blocks())
            limits = [limit for limit in limits if limit.at_most < most * limit.size]
        self.room = Room(limits)
        self.rows: list[Row] = []
        self.bounded: list[Bounded] = []
        #: The most blocks of a type that a machine of a size-bounded set needs, where more would
        #: fit: all that the jobs together can use.
        self.proper: dict[int, int] = {}
        for shape in problem.configurations:
            machine = self.names.index(shape.machine or "")
            if isinstance(shape, Configuration):
                counts = tuple(shape.blocks.get(block, 0) for block in self.blocks)
                self.rows.append(Row(counts, machine, shape))
            else:
                self.bounded.append(Bounded.of(problem, shape, machine, proper=proper))
        # Start each set with the machines filled with one type.
        for bounded in self.bounded:
            for at, (column, count) in enumerate(zip(bounded.columns, bounded.most, strict=True)):
                if count < bounded.shape.largest_count(self.blocks[column]):
                    self.proper[column] = count
                if count:
                    self.rows.append(self.row_of(bounded, [*([0] * at), count]))
        self._found = {row for row in self.rows if row.shape is None}
        # The cheapest machine's cost, to count in.
        used = [self.costs[row.machine] for row in self.rows]
        self.unit = min((cost for cost in used if cost), default=Fraction(1))
        self.dearest = max(used, default=Fraction(0))
        self._branch(path)

    def below(self, path: Sequence[Condition]) -> Region:
        """Return the region below other branches, with the rows that are known by now."""
        found = copy(self)
        found.rows, found._found = list(self.rows), set(self._found)
        found._branch(path)
        return found

    @property
    def limits(self) -> Sequence[Limit]:
        """The limits on machines."""
        return self.room.limits

    def _branch(self, path: Sequence[Condition]) -> None:
        problem, index = self.problem, self.problem.block_index
        self.path = tuple(path)
        # What each branch counts: blocks of all machines, machines, or blocks of a job.
        self.block_terms: list[tuple[int, int]] = []  # (branch, block)
        self._machine_terms: list[_Counted] = []
        self.job_terms: list[tuple[int, int, int]] = []  # (branch, block, job)
        for at, condition in enumerate(self.path):
            quantity = condition.quantity
            if isinstance(quantity, BlocksOfType):
                self.block_terms.append((at, index[quantity.block]))
            elif isinstance(quantity, MachinesOfType):
                for name, times in quantity.weights.items():
                    machine = self.names.index(name)
                    self._machine_terms.append(_Counted(at, machine, condition.sign * times))
            elif isinstance(quantity, MachinesOfConfiguration):
                shape = problem.own(quantity.configuration)
                machine = self.names.index(shape.machine or "")
                self._machine_terms.append(_Counted(at, machine, condition.sign, {}, shape))
            elif isinstance(quantity, MachinesWithBlocks):
                content = problem.own(quantity.content)
                machine = self.names.index(content.machine or "")
                least = {index[block]: n for block, n in content.blocks.items()}
                self._machine_terms.append(_Counted(at, machine, condition.sign, least))
            elif isinstance(quantity, BlocksOfJob):
                job = problem.job_index(quantity.job)
                self.job_terms.append((at, index[quantity.block], job))

    def free(self) -> set[int]:
        """Blocks of unlimited machines of cost 0: their prices must be 0."""
        free = {m for m, cost in enumerate(self.costs) if not cost and not self.room.counting(m)}
        rows = (row for row in self.rows if row.machine in free)
        return {i for row in rows for i, count in enumerate(row.counts) if count}

    def row_terms(self, row: Row) -> list[tuple[int, int]]:
        """Coefficients of the branches' multipliers in a row, as (branch, coefficient)."""
        terms = [
            (at, self.path[at].sign * row.counts[i]) for at, i in self.block_terms if row.counts[i]
        ]
        terms += [
            (at, times)
            for at, m, times, least, shape in self._machine_terms
            if m == row.machine
            and shape in (None, row.shape)
            and all(row.counts[i] >= n for i, n in least.items())
        ]
        return terms

    def worth(
        self, prices: Sequence[Fraction], multipliers: Sequence[Fraction] = ()
    ) -> list[Fraction]:
        """Return the value of the most valuable machine of each type; remember new rows."""
        # Over a common denominator: integers are many times faster than fractions.
        k = len(self.blocks)
        numbers, denominator = common_denominator([*prices, *multipliers])
        largest = [0] * len(self.costs)
        if self.bounded:
            from cms.knapsack.packing import fullest_in_boxes
        for row in self.rows:
            if row.shape is None:
                continue  # the fullest machine of its set is worth no less
            value = sum(map(mul, numbers, row.counts))
            if self.path:
                value += sum(c * numbers[k + at] for at, c in self.row_terms(row))
            largest[row.machine] = max(largest[row.machine], value)
        worth = numbers[:k]
        for at, i in self.block_terms:
            worth[i] += self.path[at].sign * numbers[k + at]
        for bounded in self.bounded:
            machine, column = bounded.machine, {i: at for at, i in enumerate(bounded.columns)}
            mine = [worth[i] for i in bounded.columns]
            extra, extras = 0, []
            for at, m, times, least, shape in self._machine_terms:
                amount = times * numbers[k + at]
                if m != machine or not amount or shape is not None:
                    continue
                if not least:
                    extra += amount
                elif least.keys() <= column.keys():
                    extras.append(({column[i]: n for i, n in least.items()}, amount))
            if extras:
                for found in fullest_in_boxes(bounded.packing, mine, extras):
                    largest[machine] = max(largest[machine], found.ceiling + extra)
                    self._remember(bounded, found)
                continue
            found = bounded.packing.fullest(mine)
            largest[machine] = max(largest[machine], found.ceiling + extra)
            self._remember(bounded, found)
            # Of many types most are in no content of one pass: further ones without those before.
            left = list(bounded.most)
            for _ in range(min(_MORE_ROWS, len(left) // _TYPES_A_ROW)):
                left = [n if not c else 0 for n, c in zip(left, found.content, strict=True)]
                found = bounded.packing.fullest(mine, left, _PATIENCE)
                if found.value + extra <= self.costs[machine] * denominator:
                    break
                self._remember(bounded, found)
        return [Fraction(value, denominator) for value in largest]

    def _remember(self, bounded: Bounded, found: Found) -> None:
        row = self.row_of(bounded, found.content)
        if row not in self._found:
            self._found.add(row)
            self.rows.append(row)

    def row_of(self, bounded: Bounded, content: Sequence[int]) -> Row:
        """Return the row of a content of a size-bounded set, of whose first types at least."""
        full = [0] * len(self.blocks)
        for i, count in zip(bounded.columns, content, strict=False):
            full[i] = count
        return Row(tuple(full), bounded.machine, None)

    def fitted(
        self,
        prices: Sequence[Fraction],
        multipliers: Sequence[Fraction] = (),
        *,
        no_limit_prices: bool = False,
    ) -> tuple[Fraction, Vector]:
        """Scale prices into the region; returns the scale too.

        The cheapest options are homogeneous in prices and multipliers, so a bound scales with them.
        With ``no_limit_prices`` the prices keep to what machines cost, limited or not.
        """
        worth = self.worth(prices, multipliers)
        pairs = list(zip(worth, self.costs, strict=True))
        scales = [
            cost / value
            for m, (value, cost) in enumerate(pairs)
            if value > 0 and (no_limit_prices or not self.room.counting(m))
        ]
        # Without limits and branches the bound grows with the prices, so they may go up as well.
        grows = not self.path and not self.limits
        scale = min([*scales, *([] if grows and scales else [Fraction(1)])])
        over = {m: value * scale - cost for m, (value, cost) in enumerate(pairs)}
        vector = Vector(
            tuple(scale * price if price else price for price in prices),
            self.room.cheapest_prices(over),
            tuple(scale * multiplier for multiplier in multipliers),
        )
        return scale, vector

    def constant(self, vector: Vector) -> Fraction:
        """Return what limits and branches add to the jobs' values."""
        value = -self.room.worth(vector.limit_prices)
        for condition, multiplier in zip(self.path, vector.multipliers, strict=True):
            value += condition.sign * condition.value * multiplier
        return value

    def leaf(self, vector: Vector) -> BlockPrices:
        """Name the numbers."""
        pairs = zip(self.blocks, vector.prices, strict=True)
        limits = zip(self.limits, vector.limit_prices, strict=True)
        return BlockPrices(
            {block: price for block, price in pairs if price},
            {limit.name: price / limit.unit for limit, price in limits if price},
            vector.multipliers,
            {self.blocks[i]: count for i, count in self.proper.items()},
        )

    def prices_of_job(
        self, job: int, prices: Sequence[_Price], multipliers: Sequence[_Price]
    ) -> tuple[_Price, ...]:
        """Return what one job pays for each block: branches on its own blocks change that."""
        vector = list(prices)
        for at, i, j in self.job_terms:
            if j == job:
                vector[i] -= self.path[at].sign * multipliers[at]
        return tuple(vector)

    @property
    def own_priced(self) -> tuple[int, ...]:
        """Jobs with a branch of their own, in order."""
        return tuple(sorted({job for _, _, job in self.job_terms}))


def configuration_of(problem: MachineProblem, row: Row) -> Configuration:
    """Return the configuration of a machine; one of a size-bounded set is made up of its blocks."""
    if row.shape is not None:
        return row.shape
    blocks = {block: n for block, n in zip(problem.blocks, row.counts, strict=True) if n}
    return Configuration(blocks, problem.machine_types[row.machine].name)
