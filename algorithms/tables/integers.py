"""A reduced problem as plain integers: what its jobs want, what blocks give, what machines hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from cms.plugin.algorithm import Support
from cms.reduction.reduction import reduce
from cms.running.stopping import Stopped
from cms.schedule.schedule import Schedule

from ..solvers.floats import near
from .machines import full_of_one, listed, schedule_of

Number = TypeVar("Number", int, Fraction)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem
    from cms.reduction.reduction import Reduction

#: Machines of each configuration, and blocks of each type given to each job, n rows of k.
Counts: TypeAlias = "tuple[list[int], NDArray[Any]]"
#: Maximal multisets of size-bounded sets that are listed one by one.
MOST_SHAPES = 2_000
#: Costs are multiples of the cheapest in linear programs; a float holds no more than 1e308.
_FURTHEST = 10**100
#: Sums over all jobs stay below this in int64; else arrays hold Python's integers.
_FITS = 2**60
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

    The arrays ``demands`` (n) and ``supply`` (n, k) have each job's numbers without a common
    divisor, as int64 where sums over all jobs fit, else as Python's integers. ``shapes`` are the
    configurations listed, and the maximal multisets of size-bounded sets, or some chosen ones. Of
    machine types in ``vast``, whose sets have too many of these, they are the machines full of one
    block type, and others as prices asked for them. ``counts`` are their blocks of each type.
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
            shapes += tuple(full_of_one(problem, left_out))
        counts, costs = _read(problem, shapes := tuple(dict.fromkeys(shapes)))
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
        there = set(self.shapes)
        shapes = tuple(shape for shape in dict.fromkeys(shapes) if shape not in there)
        counts, costs = _read(self.problem, shapes)
        return replace(
            self,
            shapes=self.shapes + shapes,
            counts=self.counts + counts,
            costs=self.costs + costs,
        )

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
        """Add up the blocks of each type that so many machines of each configuration have."""
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
        """Add up what so many machines of each configuration cost."""
        pairs = zip(machines, self.costs, strict=True)
        return sum((x * cost for x, cost in pairs if x), Fraction(0))

    def dearest(self, number: int) -> Fraction:
        """Add up the largest costs of so many configurations."""
        vast = [self.problem.machine_type(name).cost for name in self.vast] * number
        return sum(sorted([*self.costs, *vast], reverse=True)[:number], Fraction(0))

    def cheapest_with(self, block: int) -> int:
        """Return the cheapest configuration that has a block; more of such blocks break ties."""
        holders = [at for at in range(self.c) if self.counts[at][block]]
        return min(holders, key=lambda at: (self.costs[at], -self.counts[at][block], at))

    def schedule(self, reduction: Reduction, machines: Sequence[int], given: Any) -> Schedule:
        """Build the schedule of the original problem from counts."""
        opened = dict(zip(self.shapes, machines, strict=True))
        return reduction.restore(schedule_of(self.problem, opened, given))


def _read(
    problem: Problem, shapes: Sequence[Configuration]
) -> tuple[list[list[int]], list[Fraction]]:
    """Return the blocks and the costs of configurations."""
    counts = [[shape.blocks.get(block, 0) for block in problem.blocks] for shape in shapes]
    return counts, [problem.machine_type(shape.machine).cost for shape in shapes]


class Demand(NamedTuple):
    """A job in integers; dividing supply by its common divisor keeps demands small."""

    name: str
    demand: int
    supply: tuple[int, ...]

    @property
    def enough(self) -> list[int]:
        """How many blocks of each type serve the job alone; 0 where none do."""
        return [-(-self.demand // f) if f else 0 for f in self.supply]


def demands_of(problem: Problem) -> tuple[Demand, ...]:
    """Return the jobs of a reduced problem, demands rounded up to multiples of common divisors."""
    found = []
    for j, name in enumerate(problem.job_names):
        row = problem.rows.row(j)
        divisor = gcd(*row.supply) or 1
        supply = tuple(f // divisor for f in row.supply)
        found.append(Demand(name, -(-row.demand // divisor), supply))
    return tuple(found)


def supported_costs(problem: Problem) -> Support:
    """Refuse costs that lie astronomically far apart, which floats cannot tell apart."""
    paid = sorted((m for m in problem.machine_types if m.cost), key=lambda machine: machine.cost)
    if paid and paid[-1].cost > _FURTHEST * paid[0].cost:
        return Support(
            False,
            f"machine type {paid[-1].name!r} costs more than 10**100 times as much as "
            f"{paid[0].name!r}; leave one of them out",
        )
    return Support(True)


def without_limits(problem: Problem, most_shapes: int | None = MOST_SHAPES) -> Support:
    """Refuse limits on machines, sets that are not to be listed, and costs too far apart."""
    for machine in problem.machine_types:
        if machine.limit is not None:
            return Support(
                False,
                f"machine type {machine.name!r} has a limit of {machine.limit} machines; rounding "
                "up does not keep limits; use auto or price_and_branch",
            )
    if most_shapes is not None and listed(reduce(problem).problem, most_shapes).left_out:
        return Support(
            False,
            f"a size-bounded set has more than {most_shapes} maximal configurations, which are "
            "listed one by one here; use auto or price_and_branch",
        )
    return supported_costs(problem)
