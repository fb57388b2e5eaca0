"""A reduced problem in integers: what jobs want, blocks give, and the configurations listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import gcd
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from cms.knapsack.pricing import common_denominator
from cms.plugin.algorithm import Support
from cms.presolver.presolve import presolve
from cms.problem.parts import Configuration, SizeBoundedConfigurations
from cms.running.stopping import Stopped
from cms.schedule.schedule import Schedule
from cms.values.numbers import shown

from .solvers.floats import near

Number = TypeVar("Number", int, Fraction)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem
    from cms.problem.machine_problem import MachineProblem
    from cms.problem.problem import Problem

#: Machines of each configuration, and blocks of each type given to each job, n rows of k.
Counts: TypeAlias = "tuple[list[int], NDArray[Any]]"
#: Maximal multisets of size-bounded sets that are listed one by one.
MOST_SHAPES = 2_000
#: Costs are multiples of the cheapest in linear programs; a float holds no more than 1e308.
_FURTHEST = 10**100
#: Sums over all jobs stay below this in int64; else arrays hold Python's integers.
_FITS = 2**60
#: Steps of the enumeration for each content allowed, before it gives up.
_STEPS_A_CONTENT = 10
#: It also gives up where a machine has more types, each a level of recursion, and not all of them.
_MOST_TYPES = 500
#: Wide rows read between two looks at the clock.
_ROWS = 2**10


def least_pay(alone: NDArray[np.float64], prices: Sequence[float]) -> NDArray[np.float64]:
    """Return what each job pays at least at block prices, if blocks can be cut: a row of floats."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(alone < np.inf, alone * prices, np.inf).min(1, initial=np.inf))


def look_at(budget: Budget | None) -> None:
    """Raise Stopped if a run is to end."""
    if budget is not None and budget.stopped:
        raise Stopped


@dataclass(frozen=True)
class Tables:
    """The integers of a reduced problem (every supply is cut at its job's demand).

    ``demands`` (n) and ``supply`` (n, k) have each job's numbers without a common divisor, as int64
    where sums over all jobs fit, else as Python's integers. Of machine types in ``vast``, whose
    sets are too large to be listed, ``shapes`` are full of one block type, or prices asked for
    them. ``counts`` are their blocks of each type.
    """

    problem: Problem
    shapes: tuple[Configuration, ...]
    counts: list[list[int]]
    costs: list[Fraction]
    demands: NDArray[Any]
    supply: NDArray[Any]
    vast: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        problem: Problem,
        shapes: Iterable[Configuration] | None = None,
        budget: Budget | None = None,
    ) -> Tables:
        """Read the tables off a reduced problem, with all its configurations or those given."""
        vast: tuple[str, ...] = ()
        if shapes is None:
            shapes, left_out = listed(problem, MOST_SHAPES)
            vast = tuple(sorted(left_out))
            shapes += tuple(_full_of_one(problem, left_out))
        counts, costs = blocks_and_costs(problem, shapes := tuple(dict.fromkeys(shapes)))
        rows = problem.rows
        look_at(budget)
        common = rows.demands
        for column in rows.supplies.T:
            common = np.gcd(common, column)
            look_at(budget)
        common = np.maximum(1, common)
        demands, supply = rows.demands // common, rows.supplies // common[:, None]
        largest = int(max(demands.max(initial=0), supply.max(initial=0)))
        if rows.wide or 4 * largest * (len(rows) + rows.n_blocks) >= _FITS:
            look_at(budget)
            demands, supply = demands.astype(object), supply.astype(object)
        for number, (j, row) in enumerate(rows.wide.items()):
            if not number % _ROWS:
                look_at(budget)
            divisor = gcd(row.demand, *row.supply)
            demands[j] = row.demand // divisor
            supply[j] = [amount // divisor for amount in row.supply]
        return cls(problem, shapes, counts, costs, demands, supply, vast)

    def joined(self, shapes: Iterable[Configuration]) -> Tables:
        """Return the tables with further configurations, after those there are."""
        shapes = tuple(dict.fromkeys([*self.shapes, *shapes]))
        counts, costs = blocks_and_costs(self.problem, shapes[self.c :])
        counts, costs = self.counts + counts, self.costs + costs
        return replace(self, shapes=shapes, counts=counts, costs=costs)

    @property
    def n(self) -> int:
        """Number of jobs."""
        return len(self.demands)

    @property
    def k(self) -> int:
        """Number of block types."""
        return len(self.problem.blocks)

    @property
    def c(self) -> int:
        """Number of configurations."""
        return len(self.shapes)

    @property
    def p(self) -> int:
        """The most configurations that a vertex of the aggregated program uses: min(c, k)."""
        return self.k if self.vast else min(self.c, self.k)

    @property
    def unservable(self) -> bool:
        """Whether some job has no block that serves it."""
        return not bool((self.supply > 0).any(axis=1).all())

    @cached_property
    def phi(self) -> Fraction:
        """The largest part of a job's demand that one block can satisfy, at most 1."""
        if not self.n or not self.k:
            return Fraction(0)
        best = self.supply.max(axis=1)
        if (best == self.demands).any():
            return Fraction(1)
        parts = (best / self.demands).astype(np.float64)
        # Floats tell all but near ties apart.
        near = np.flatnonzero(parts >= parts.max() * (1 - 1e-12))
        pairs = {(int(best[j]), int(self.demands[j])) for j in near}
        return max(Fraction(*pair) for pair in pairs)

    @property
    def alone(self) -> NDArray[np.float64]:
        """How many blocks of each type serve each job alone, in n rows; infinite where none do."""
        demands, supply = self.demands[:, None], self.supply
        if supply.dtype == object:
            cut = np.frompyfunc(lambda d, f: near(d, f) if f else np.inf, 2, 1)
            return np.asarray(cut(demands, supply), dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(demands / supply)

    def held(self, machines: Sequence[Number]) -> list[Number]:
        """Add up the blocks of each type that numbers of machines of each configuration have."""
        pairs = [(x, row) for x, row in zip(machines, self.counts, strict=True) if x]
        blocks: list[Any] = [sum(x * row[i] for x, row in pairs) for i in range(self.k)]
        return blocks

    def served_by(self, machines: Sequence[int], free: Iterable[int] = ()) -> bool:
        """Whether machines, and others of some configurations, have a block for every job."""
        held = [*self.held(machines)]
        for at in free:
            held = [max(pair) for pair in zip(held, self.counts[at], strict=True)]
        types = [i for i, number in enumerate(held) if number]
        return bool((self.supply[:, types] > 0).any(axis=1).all())

    def cost(self, machines: Sequence[int]) -> Fraction:
        """Add up what numbers of machines of each configuration cost."""
        pairs = zip(machines, self.costs, strict=True)
        return sum((x * cost for x, cost in pairs if x), Fraction(0))

    def dearest(self, number: int) -> Fraction:
        """Add up the largest costs of a number of configurations."""
        vast = [self.problem.machine_type(name).cost for name in self.vast] * number
        return sum(sorted([*self.costs, *vast], reverse=True)[:number], Fraction(0))

    def cheapest_with(self, block: int) -> int:
        """Return the cheapest configuration that has a block; more of such blocks break ties."""
        holders = [at for at in range(self.c) if self.counts[at][block]]
        return min(holders, key=lambda at: (self.costs[at], -self.counts[at][block], at))

    def schedule(
        self, reduction: PresolvedProblem, machines: Sequence[int], given: Any
    ) -> Schedule:
        """Build the schedule of the original problem from counts."""
        opened = dict(zip(self.shapes, machines, strict=True))
        return reduction.restore(schedule_of(self.problem, opened, given))


def blocks_and_costs(
    problem: Problem, shapes: Sequence[Configuration]
) -> tuple[list[list[int]], list[Fraction]]:
    """Return the blocks and the costs of configurations."""
    counts = [[shape.blocks.get(block, 0) for block in problem.blocks] for shape in shapes]
    return counts, [problem.machine_type(shape.machine).cost for shape in shapes]


class Demand(NamedTuple):
    """A job in integers."""

    demand: int
    supply: tuple[int, ...]

    @property
    def enough(self) -> list[int]:
        """How many blocks of each type serve the job alone; 0 where none do."""
        return [-(-self.demand // f) if f else 0 for f in self.supply]


def demands_of(problem: Problem) -> tuple[Demand, ...]:
    """Return the jobs of a reduced problem, demands rounded up in units of common divisors."""
    rows = [problem.rows.row(j) for j in range(problem.n_jobs)]
    divisors = [gcd(*row.supply) or 1 for row in rows]
    return tuple(
        Demand(-(-row.demand // divisor), tuple(f // divisor for f in row.supply))
        for row, divisor in zip(rows, divisors, strict=True)
    )


def supported(problem: Problem, small: Problem, most_shapes: int | None = MOST_SHAPES) -> Support:
    """Refuse costs that floats cannot tell apart, and sets that are not to be listed."""
    paid = sorted((m for m in problem.machine_types if m.cost), key=lambda machine: machine.cost)
    if paid and paid[-1].cost > _FURTHEST * paid[0].cost:
        return Support(
            False,
            f"machine type {paid[-1].name!r} costs more than 10**100 times as much as "
            f"{paid[0].name!r}; leave one of them out",
        )
    if most_shapes is not None and listed(small, most_shapes).left_out:
        return Support(
            False,
            f"a size-bounded set has more than {most_shapes} maximal configurations, which are "
            "listed one by one here; use auto or branch_and_price",
        )
    return Support(True)


def without_rules(problem: Problem) -> Support:
    """Refuse jobs with replicas or of equal routing."""
    words = "has replicas or equal routing, of which no theorem here speaks; use auto or cp_sat"
    refused = (f"job {problem.job_names[j]!r} {words}" for j in sorted(problem.rows.ruled))
    return next((Support(False, reason) for reason in refused), Support(True))


def without_limits(problem: Problem, most_shapes: int | None = MOST_SHAPES) -> Support:
    """Refuse limits on machines, rules for bundles, and what :func:`supported` refuses."""
    if not (plain := without_rules(problem)):
        return plain
    for limit in problem.limits:
        return Support(
            False,
            f"{problem.limit_label(limit)} has a limit of {shown(limit.at_most)}; rounding up does "
            "not keep limits; use auto or branch_and_price",
        )
    return supported(
        problem, problem if most_shapes is None else presolve(problem).problem, most_shapes
    )


def maximal_contents(
    shape: SizeBoundedConfigurations, most: int, useful: Mapping[str, int] | None = None
) -> list[dict[str, int]] | None:
    """List a set's multisets to which no useful block can be added; None if more than ``most``."""
    highest = {block: shape.largest_count(block) for block in shape.sizes}
    if useful is not None:
        highest = {block: min(count, useful.get(block, 0)) for block, count in highest.items()}
    blocks = sorted(
        (block for block in shape.sizes if highest[block]),
        key=lambda block: -shape.sizes[block],
    )
    if not blocks:
        return []
    measures = [shape.capacity, *(shape.sizes[block] for block in blocks)]
    capacity, *sizes = common_denominator(measures)[0]
    highs = [highest[block] for block in blocks]
    # What the types from each one on take at most: room and slots.
    rooms = [*accumulate(map(mul, reversed(sizes), reversed(highs)), initial=0)][::-1]
    slots = [*accumulate(reversed(highs), initial=0)][::-1]
    most_blocks = slots[0] if shape.max_blocks is None else shape.max_blocks
    if rooms[0] <= capacity and slots[0] <= most_blocks:
        return [dict(zip(blocks, highs, strict=True))] if most > 0 else None
    found: list[dict[str, int]] = []
    counts: dict[str, int] = {}
    steps = 0

    def descend(at: int, room: int, free: int) -> bool:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal steps
        for here in range(at, len(blocks)):
            if room < sizes[-1] or not free:
                break
            steps += 1
            if steps > _STEPS_A_CONTENT * most or len(counts) > _MOST_TYPES:
                return False
            block, size, high = blocks[here], sizes[here], highs[here]
            for number in range(min(high, room // size, free), -1, -1):
                left, still = room - number * size, free - number
                if number < high and left - rooms[here + 1] >= size and still > slots[here + 1]:
                    # One more fits, whatever the types after it take.
                    counts.pop(block, None)
                    return True
                if number:
                    counts[block] = number
                    if not descend(here + 1, left, still):
                        return False
            counts.pop(block, None)
        # It is maximal: were there room for one more, the last such type had returned above.
        found.append(dict(counts))
        return len(found) <= most

    return found if descend(0, capacity, most_blocks) else None


class Listing(NamedTuple):
    """Configurations one by one, and the machine types of sets too large to be listed."""

    shapes: tuple[Configuration, ...]
    left_out: frozenset[str]


def listed(problem: MachineProblem, most: int) -> Listing:
    """List the configurations that a best schedule may need, and sets left out as too large."""
    shapes: dict[Configuration, None] = {}
    left_out: set[str] = set()
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            shapes[shape] = None
            continue
        contents = maximal_contents(shape, most)
        if contents is None:
            useful = dict(zip(problem.blocks, problem.useful_blocks(), strict=True))
            contents = maximal_contents(shape, most, useful)
        if contents is None:
            left_out.add(shape.machine or "")
        for content in contents or ():
            shapes[Configuration(content, shape.machine)] = None
    return Listing(tuple(shapes), frozenset(left_out))


def _full_of_one(problem: Problem, machines: Collection[str]) -> Iterator[Configuration]:
    for shape in problem.configurations:
        if isinstance(shape, SizeBoundedConfigurations) and shape.machine in machines:
            for block in shape.sizes:
                if count := shape.largest_count(block):
                    yield Configuration({block: count}, shape.machine)


def schedule_of(problem: Problem, machines: Mapping[Configuration, int], given: Any) -> Schedule:
    """Build a schedule from machines by configuration, and blocks of each type for each job."""
    opened = {shape: number for shape, number in machines.items() if number}
    numbers = np.asarray(given)
    jobs, blocks = np.nonzero(numbers)
    return Schedule.from_counts(problem, opened, (jobs, blocks, numbers[jobs, blocks]))
