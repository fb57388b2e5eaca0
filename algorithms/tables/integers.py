"""A reduced problem as plain integers: what its jobs want, what blocks give, what machines hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from cms.plugin.algorithm import Support
from cms.reduction.reduction import reduce
from cms.schedule.columns import whole_array
from cms.schedule.schedule import Schedule

from .costs import supported_costs
from .machines import full_of_one, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem
    from cms.reduction.reduction import Reduction

#: Maximal multisets of size-bounded sets that are listed one by one.
MOST_SHAPES = 2_000


@dataclass(frozen=True)
class Tables:
    """The integers of a reduced problem (every supply is cut at its job's demand).

    Attributes
    ----------
    problem : Problem
    shapes : tuple of c Configurations
        Those listed, and the maximal multisets of size-bounded sets; or some chosen ones.
    vast : tuple of str
        Machine types of sets that have too many of these. Of such a set ``shapes`` has the machines
        full of one block type, and others as prices asked for them.
    counts : list of c lists of k ints
        Blocks of each type in each configuration.
    costs : list of c Fractions
    demands : list of n ints
    supply : list of n lists of k ints
        Each job's demand and supply without a common divisor.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> tables = Tables.of(
    ...     Problem(
    ...         configurations=Configuration({"half": 2}), jobs=[Job("bert", "1.5", {"half": 1})]
    ...     )
    ... )
    >>> tables.demands, tables.supply, tables.counts
    ([3], [[2]], [[2]])
    """

    problem: Problem
    shapes: tuple[Configuration, ...]
    counts: list[list[int]]
    costs: list[Fraction]
    demands: list[int]
    supply: list[list[int]]
    vast: tuple[str, ...] = ()

    @classmethod
    def of(cls, problem: Problem, shapes: Iterable[Configuration] | None = None) -> Tables:
        """Read the tables off a reduced problem, with all its configurations or those given."""
        vast: tuple[str, ...] = ()
        if shapes is None:
            shapes, left_out = listed(problem, MOST_SHAPES)
            vast = tuple(sorted(left_out))
            shapes += tuple(full_of_one(problem, left_out))
        counts, costs = _read(problem, shapes := tuple(dict.fromkeys(shapes)))
        rows = problem.rows
        common = np.maximum(1, np.gcd(np.gcd.reduce(rows.supplies, axis=1), rows.demands))
        demands = (rows.demands // common).tolist()
        supply = (rows.supplies // common[:, None]).tolist()
        for j, row in rows.wide.items():
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
        return any(not any(row) for row in self.supply)

    @cached_property
    def phi(self) -> Fraction:
        """The largest part of a job's demand that one block can satisfy, at most 1."""
        parts = (
            Fraction(max(row, default=0), d)
            for row, d in zip(self.supply, self.demands, strict=True)
        )
        return max(parts, default=Fraction(0))

    def held(self, machines: Sequence[int]) -> list[int]:
        """Add up the blocks of each type that so many machines of each configuration have."""
        pairs = [(x, row) for x, row in zip(machines, self.counts, strict=True) if x]
        return [sum(x * row[i] for x, row in pairs) for i in range(self.k)]

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

    def by_shape(self, machines: Sequence[int]) -> Mapping[Configuration, int]:
        """Name the configurations of so many machines."""
        return {shape: x for shape, x in zip(self.shapes, machines, strict=True) if x}


def _read(
    problem: Problem, shapes: Sequence[Configuration]
) -> tuple[list[list[int]], list[Fraction]]:
    """Return the blocks and the costs of configurations."""
    counts = [[shape.blocks.get(block, 0) for block in problem.blocks] for shape in shapes]
    return counts, [problem.machine_type(shape.machine).cost for shape in shapes]


def schedule(
    reduction: Reduction,
    tables: Tables,
    machines: Sequence[int],
    given: Mapping[tuple[int, int], int],
) -> Schedule:
    """Build the schedule of the original problem from counts.

    Parameters
    ----------
    reduction : Reduction
    tables : Tables
        Of the reduced problem.
    machines : sequence of c ints
    given : Mapping[(block type, job), int]

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, reduce
    >>> small = reduce(
    ...     Problem(configurations=Configuration({"half": 2}), jobs=[Job("bert", 3, {"half": 2})])
    ... )
    >>> schedule(small, Tables.of(small.problem), [1], {(0, 0): 2})
    Schedule(1 machines in 1 groups)
    """
    jobs = np.array([j for _, j in given], dtype=np.int64)
    blocks = np.array([i for i, _ in given], dtype=np.int64)
    counts = whole_array(list(given.values()), "blocks given")
    built = Schedule.from_counts(tables.problem, tables.by_shape(machines), (jobs, blocks, counts))
    return reduction.restore(built)


def without_limits(problem: Problem, most_shapes: int | None = MOST_SHAPES) -> Support:
    """Refuse limits on machines, sets that cannot be listed, and costs too far apart.

    Block types that serve nobody are left out before sets are listed. Without ``most_shapes`` sets
    may be of any size.

    Examples
    --------
    >>> from cms import Configuration, MachineType, Problem
    >>> types = [MachineType("a100", limit=3)]
    >>> without_limits(
    ...     Problem(configurations=Configuration({"7g": 1}), machine_types=types)
    ... ).reason
    "machine type 'a100' has a limit of 3 machines; rounding up does not keep limits; use auto or \
price_and_branch"
    """
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
