"""The optimum of a tiny problem, found by enumeration from the definition alone.

It shares nothing with the algorithms or the certificates: no prices, no linear programs, no floats.
A problem is read through its public face only (jobs, blocks, configurations, machine types).

1. Every job has its *options*: the vectors of blocks that meet its demand. Only those without a
   superfluous block of the last type are listed; a schedule may give up superfluous blocks.
2. What all jobs take together is a *load*: the sums of one option of each job, of which only those
   matter that no other load is below.
3. Machines are added one by one, cheapest fleet first (Dijkstra), within the limits; the first
   fleet that has the blocks of some load is optimal. If no fleet is left, there is no schedule.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from cms import (
    Configuration,
    DemandFunction,
    Job,
    MachineProblem,
    Problem,
    SizeBoundedConfigurations,
)

Vector = tuple[int, ...]
Counts = tuple[Fraction, ...]


def optimum(problem: Problem) -> Fraction | None:
    """The least cost of a schedule, or None if there is none."""
    loads = minimal_loads(problem)
    if not loads:
        return None
    most = tuple(max(column) for column in zip(*loads, strict=True))
    limits = limit_rows(problem).values()
    moves = [
        (machine, problem.machine_types[machine].cost, held)
        for machine, held in _useful_machines(problem, most)
    ]
    # A fleet: its blocks (no more than any load has) and what its machines count in each limit.
    start: tuple[Vector, Counts] = (tuple(0 for _ in most), tuple(Fraction(0) for _ in limits))
    waiting: list[tuple[Fraction, Vector, Counts]] = [(Fraction(0), *start)]
    done = set()
    while waiting:
        cost, blocks, used = heapq.heappop(waiting)
        if (blocks, used) in done:
            continue
        done.add((blocks, used))
        if any(_within(load, blocks) for load in loads):
            return cost
        for machine, price, held in moves:
            now = tuple(n + row.weights[machine] for n, row in zip(used, limits, strict=True))
            if any(n > row.most for n, row in zip(now, limits, strict=True)):
                continue
            more = tuple(min(a + b, m) for a, b, m in zip(blocks, held, most, strict=True))
            if more == blocks:
                continue
            if (more, now) not in done:
                heapq.heappush(waiting, (cost + price, more, now))
    return None


class LimitRow(NamedTuple):
    """What a machine of each type counts in a limit, and the most that all machines may count."""

    weights: Counts
    most: Fraction

    @property
    def reach(self) -> Fraction:
        """The most that whole machines can count: their weights have a measure in common."""
        unit = math.lcm(*(weight.denominator for weight in self.weights))
        measure = Fraction(math.gcd(*(int(weight * unit) for weight in self.weights)), unit)
        return math.floor(self.most / measure) * measure


def limit_rows(problem: MachineProblem) -> dict[str, LimitRow]:
    """The limits of machine types and of groups, by name."""
    names = [machine.name for machine in problem.machine_types]
    tables = {m.name: ({m.name: Fraction(1)}, m.limit) for m in problem.machine_types}
    found = {
        name: LimitRow(tuple(table.get(each, Fraction(0)) for each in names), Fraction(most))
        for name, (table, most) in tables.items()
        if most is not None
    }
    for group in problem.group_limits:
        weights = tuple(group.weights.get(each, Fraction(0)) for each in names)
        found[group.name] = LimitRow(weights, group.at_most)
    return found


def minimal_loads(problem: Problem) -> list[Vector]:
    """The vectors of blocks that all jobs can do with, and none of which is above another."""
    available = set().union(*(_occurring(shape) for shape in problem.configurations))
    loads: list[Vector] = [tuple(0 for _ in problem.blocks)]
    for job in problem.jobs:
        supply = [
            given(job, block) if block in available else Fraction(0) for block in problem.blocks
        ]
        enough = _undominated(_options_of(job, supply))
        loads = _undominated(
            tuple(a + b for a, b in zip(load, option, strict=True))
            for load in loads
            for option in enough
        )
    return loads


def given(job: Job, block: str) -> Fraction:
    """What one block of a type gives a job."""
    table = job.demand_function
    assert isinstance(table, DemandFunction), "a problem's jobs have tables"
    return table(block)


def serves(job: Job, supply: Sequence[Fraction], bundle: Vector) -> bool:
    """Whether a bundle serves a job, by the words of the definition."""
    if not job.demand:
        return True
    counts_for = [(f, n) for f, n in zip(supply, bundle, strict=True) if n]
    if job.routing == "equal":
        least = min((f for f, _ in counts_for), default=Fraction(0))
        counts_for = [(least, n) for _, n in counts_for]
    if sum(f * n for f, n in counts_for) < job.demand:
        return False
    if job.replicas is None:
        return True
    able = sum(n for f, n in counts_for if f and f >= job.replicas.share * job.demand)
    return able >= job.replicas.count


def _options_of(job: Job, supply: Sequence[Fraction]) -> Iterator[Vector]:
    if job.replicas is None and job.routing == "weighted":
        yield from options(supply, job.demand)
        return
    count = 0 if job.replicas is None else job.replicas.count
    most = [max(count, math.ceil(job.demand / f)) if f else 0 for f in supply]
    for bundle in itertools.product(*(range(n + 1) for n in most)):
        if serves(job, supply, bundle):
            yield bundle


def options(supply: Sequence[Fraction], demand: Fraction) -> Iterator[Vector]:
    """Options of one job: any number of the first types, as many of the last as it then needs."""
    if demand <= 0:
        yield (0,) * len(supply)
        return
    if not supply:
        return
    *others, last = supply
    if not others:
        if last > 0:
            yield (-int(-demand // last),)
        return
    first = supply[0]
    for number in range(-int(-demand // first) + 1 if first > 0 else 1):
        for rest in options(supply[1:], demand - number * first):
            yield (number, *rest)


@lru_cache(maxsize=8)  # asked for the same few again and again, by every leaf of every tree
def multisets(shape: SizeBoundedConfigurations, blocks: tuple[str, ...]) -> tuple[Vector, ...]:
    """Every multiset of blocks of a size-bounded set, the empty one too."""
    sizes = [shape.sizes.get(block, Fraction(0)) for block in blocks]
    most = [int(shape.capacity / size) if size else 0 for size in sizes]
    every = itertools.product(*(range(n + 1) for n in most))
    blocks_at_most = sum(most) if shape.max_blocks is None else shape.max_blocks
    return tuple(
        counts
        for counts in every
        if sum(map(operator.mul, sizes, counts)) <= shape.capacity and sum(counts) <= blocks_at_most
    )


def useful(problem: Problem, block: str) -> int:
    """How many blocks of a type all jobs have, if each is served by these alone."""
    supplies = [(job.demand, given(job, block)) for job in problem.jobs]
    return sum(math.ceil(demand / supply) for demand, supply in supplies if supply)


def machines(problem: Problem, *, proper: bool = False) -> Iterator[tuple[int, Vector]]:
    """Every content a machine can have, with the position of its machine type.

    If they are to be proper, those of a set have no more of any block than all jobs can use.
    """
    most = [useful(problem, block) for block in problem.blocks]
    names = [machine.name for machine in problem.machine_types]
    for shape in problem.configurations:
        machine = names.index(shape.machine or names[0])
        if isinstance(shape, Configuration):
            yield machine, tuple(shape.blocks.get(block, 0) for block in problem.blocks)
        else:
            for counts in multisets(shape, problem.blocks):
                if not proper or all(map(operator.le, counts, most)):
                    yield machine, counts


def _useful_machines(problem: Problem, most: Vector) -> list[tuple[int, Vector]]:
    """The contents of machines, without those that hold no more than another of the same type."""
    found: list[tuple[int, Vector]] = []
    contents = sorted(set(machines(problem)))
    for machine in range(len(problem.machine_types)):
        mine = [tuple(map(min, held, most)) for at, held in contents if at == machine]
        found += [(machine, held) for held in _undominated(tuple(-n for n in h) for h in mine)]
    return [(machine, tuple(-n for n in held)) for machine, held in found]


def _occurring(shape: Configuration | SizeBoundedConfigurations) -> set[str]:
    if isinstance(shape, Configuration):
        return set(shape.blocks)
    return {block for block, size in shape.sizes.items() if size <= shape.capacity}


def _within(one: Vector, other: Vector) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _undominated(vectors: Iterable[Vector]) -> list[Vector]:
    """The vectors that no other one is below."""
    kept: list[Vector] = []
    for vector in sorted(set(vectors), key=lambda v: (sum(v), v)):
        if not any(_within(other, vector) for other in kept):
            kept.append(vector)
    return kept
