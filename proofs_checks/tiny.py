"""A tiny problem as plain tuples of exact numbers, as the theory writes it.

``demands[j]`` is d_j, ``supply[j][i]`` is f_ij, ``configurations[C][i]`` is a_iC and ``costs[C]``
what a machine with configuration C costs. A schedule of it is a pair: how many machines take each
configuration, and how many blocks of each type each job is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

from cms import Configuration, Job, MachineType, Problem

from .finding import Breach, require

#: Blocks of each type.
Blocks: TypeAlias = tuple[int, ...]
Number: TypeAlias = int | str | Fraction


class Counts(NamedTuple):
    """A schedule as two counts: machines[C], and blocks given[j][i] of each type to each job."""

    machines: list[int]
    given: list[list[int]]


def dot(one: Sequence[int | Fraction], two: Sequence[int | Fraction]) -> Fraction:
    """Return the sum of the products of two vectors' entries."""
    total = Fraction(0)
    for a, b in zip(one, two, strict=True):
        if b:
            total += a * b
    return total


@dataclass(frozen=True)
class Tiny:
    """A problem with n jobs, k block types and c configurations."""

    demands: tuple[Fraction, ...]
    supply: tuple[tuple[Fraction, ...], ...]
    configurations: tuple[Blocks, ...]
    costs: tuple[Fraction, ...]

    @classmethod
    def of(
        cls,
        demands: Sequence[Number],
        supply: Sequence[Sequence[Number]],
        configurations: Sequence[Sequence[int]],
        costs: Sequence[Number] | None = None,
    ) -> Tiny:
        """Build one from any exact numbers; costs are 1 unless told otherwise."""
        return cls(
            tuple(Fraction(d) for d in demands),
            tuple(tuple(Fraction(f) for f in row) for row in supply),
            tuple(tuple(row) for row in configurations),
            tuple(Fraction(cost) for cost in costs or [1] * len(configurations)),
        )

    @property
    def n(self) -> int:
        """Number of jobs."""
        return len(self.demands)

    @property
    def k(self) -> int:
        """Number of block types."""
        return len(self.configurations[0])

    @property
    def c(self) -> int:
        """Number of configurations."""
        return len(self.configurations)

    @property
    def s(self) -> int:
        """The largest number of blocks of a configuration."""
        return max(sum(row) for row in self.configurations)

    @property
    def has_unit_costs(self) -> bool:
        """Whether the cost of a schedule is its number of machines."""
        return set(self.costs) == {Fraction(1)}

    @property
    def is_whole(self) -> bool:
        """Whether demands and supply are integers."""
        rows = (self.demands, *self.supply)
        return all(number.denominator == 1 for row in rows for number in row)

    @cached_property
    def held(self) -> tuple[int, ...]:
        """The block types that occur in some configuration."""
        return tuple(i for i in range(self.k) if any(row[i] for row in self.configurations))

    @cached_property
    def cut(self) -> tuple[tuple[Fraction, ...], ...]:
        """The truncated amounts f'_ij = min(f_ij, d_j)."""
        return tuple(
            tuple(min(f, demand) for f in row)
            for row, demand in zip(self.supply, self.demands, strict=True)
        )

    @property
    def phi(self) -> Fraction:
        """The largest part of a demand that a single block meets."""
        return max(
            f / demand for row, demand in zip(self.cut, self.demands, strict=True) for f in row
        )

    def cheapest_with(self, i: int) -> int:
        """The cheapest configuration that holds a block type."""
        return min(
            (C for C in range(self.c) if self.configurations[C][i]), key=self.costs.__getitem__
        )

    def cost(self, machines: Sequence[int | Fraction]) -> Fraction:
        """What so many machines of each configuration cost."""
        return dot(machines, self.costs)

    def held_by(self, machines: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
        """How many blocks of each type so many machines hold."""
        return tuple(dot(machines, column) for column in zip(*self.configurations, strict=True))

    def times(self, factor: Number) -> Tiny:
        """The same problem with every demand multiplied."""
        return replace(self, demands=tuple(d * Fraction(factor) for d in self.demands))

    def problem(self, limits: Sequence[int] | None = None) -> Problem:
        """The problem as the package has it: blocks b0, b1, ..., jobs j0, j1, ...

        Types in no configuration are left out. With costs or limits, configuration C is the one of
        the machine type mC.
        """
        types = []
        if limits is not None or not self.has_unit_costs:
            most: Sequence[int | None] = limits or [None] * self.c
            types = [
                MachineType(f"m{C}", cost, limit)
                for C, (cost, limit) in enumerate(zip(self.costs, most, strict=True))
            ]
        shapes = [
            Configuration(
                {f"b{i}": count for i, count in enumerate(row)}, types[C].name if types else None
            )
            for C, row in enumerate(self.configurations)
        ]
        jobs = [
            Job(f"j{j}", demand, {f"b{i}": self.supply[j][i] for i in self.held})
            for j, demand in enumerate(self.demands)
        ]
        return Problem(configurations=shapes, jobs=jobs, machine_types=types)


def check_cost(tiny: Tiny, machines: Sequence[int], given: Sequence[Sequence[int]]) -> Fraction:
    """Return what a schedule costs; refuse what is no valid one, by the definition."""
    if any(type(m) is not int or m < 0 for m in machines):
        raise Breach(f"{list(machines)} are no numbers of machines")
    if any(type(blocks) is not int or blocks < 0 for row in given for blocks in row):
        raise Breach(f"{given} are no numbers of blocks")
    holds = tiny.held_by(machines)
    for i in range(tiny.k):
        used = sum(row[i] for row in given)
        require(used <= holds[i], f"{used} blocks of type {i} are given, there are {holds[i]}")
    for j, row in enumerate(given):
        got = dot(tiny.supply[j], row)
        require(got >= tiny.demands[j], f"job {j} is given {got} of {tiny.demands[j]}")
    return tiny.cost(machines)
