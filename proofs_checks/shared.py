"""A tiny problem of blocks that jobs share in time, as plain tuples, and what it comes to.

All of it is written down from the definitions: every admitted mix, what machines can give, the
optimum by search, the linear bound without truncation, and its image, a plain problem.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import NamedTuple, TypeAlias

from cms import Configuration, TimeSharedJob, TimeSharedProblem

from .lp import minimise
from .tiny import Tiny

RULES = ("round_robin", "collect_then_run")
ZERO = Fraction(0)

Rates: TypeAlias = tuple[Fraction, ...]
#: An amount and a length.
BatchPoint: TypeAlias = tuple[Fraction, Fraction]


class Share(NamedTuple):
    """A job: its demand, its limit, and its points on each type of block."""

    demand: Fraction
    limit: Fraction
    points: tuple[tuple[BatchPoint, ...], ...]


class Shared(NamedTuple):
    """A problem of unit costs; configurations are counts of each type of block."""

    rule: str
    jobs: tuple[Share, ...]
    configurations: tuple[tuple[int, ...], ...]

    def admits(self, cycle: Fraction, length: Fraction, limit: Fraction) -> bool:
        """Whether a slot of this length meets a limit in such a cycle."""
        return (cycle + length if self.rule == RULES[0] else 2 * cycle) <= limit

    def problem(self) -> TimeSharedProblem:
        """The problem as the package has it: blocks b0, b1, ..., jobs j0, j1, ..."""
        return TimeSharedProblem(
            configurations=[
                Configuration({f"b{i}": n for i, n in enumerate(row)})
                for row in self.configurations
            ],
            jobs=[
                TimeSharedJob(
                    f"j{s}", job.demand, job.limit, {f"b{i}": p for i, p in enumerate(job.points)}
                )
                for s, job in enumerate(self.jobs)
            ],
            rule=self.rule,
        )


class Mixed(NamedTuple):
    """An admitted mix: its cycle, and the rate of every job, 0 for those it does not have."""

    cycle: Fraction
    rates: Rates


@cache
def mixes(shared: Shared, i: int) -> tuple[Mixed, ...]:
    """List all admitted mixes on a type of block."""
    found = []
    for chosen in product(*((None, *job.points[i]) for job in shared.jobs)):
        cycle = sum((point[1] for point in chosen if point is not None), ZERO)
        pairs = zip(shared.jobs, chosen, strict=True)
        kept = [p is None or shared.admits(cycle, p[1], job.limit) for job, p in pairs]
        if cycle and all(kept):
            found.append(Mixed(cycle, tuple(p[0] / cycle if p else ZERO for p in chosen)))
    return tuple(found)


def drawn(rng: random.Random) -> Shared:
    """Draw a problem that every job can be served in: up to three jobs and two types of block."""
    while True:
        types, rule = rng.randint(1, 2), rng.choice(RULES)
        jobs = []
        for _ in range(rng.randint(1, 3)):
            limit = Fraction(rng.randint(6, 24))
            points = []
            for _ in range(types):
                amounts = sorted(rng.sample((1, 2, 4), rng.randint(1, 2)))
                lengths = [Fraction(rng.randint(1, 6 + a), 2) for a in amounts]
                points.append(tuple(zip(map(Fraction, amounts), lengths, strict=True)))
            jobs.append(Share(Fraction(rng.randint(1, 12), 4), limit, tuple(points)))
        every = [row for row in product(range(3), repeat=types) if 0 < sum(row) <= 2]
        rows = tuple(sorted(rng.sample(every, rng.randint(1, 2))))
        shared = Shared(rule, tuple(jobs), rows)
        if not all(map(any, zip(*rows, strict=True))):
            continue  # some block is in no configuration
        given = [mix.rates for i in range(types) for mix in mixes(shared, i)]
        served = {s for rates in given for s, rate in enumerate(rates) if rate}
        # Enumeration of its image takes long where many machines of many contents are needed.
        if len(served) == len(jobs) and len(contents(shared)) <= 30 and best_cost(shared) <= 3:
            return shared


def alone(shared: Shared) -> Tiny:
    """Return the problem in which a block serves one job."""
    supply = [
        [max((m.rates[s] for m in mixes(shared, i)), default=ZERO) for i in range(len(row))]
        for s in range(len(shared.jobs))
        for row in shared.configurations[:1]
    ]
    return Tiny.of([job.demand for job in shared.jobs], supply, shared.configurations)


@cache
def contents(shared: Shared) -> tuple[tuple[Rates, ...], ...]:
    """List what machines can give: the rates that each of their blocks gives, or nothing.

    Of one block's rates, cut off at the demands, only those that no other equals or beats.
    """
    demands = [job.demand for job in shared.jobs]
    best = []
    for i in range(len(shared.configurations[0])):
        cut = {tuple(map(min, m.rates, demands)) for m in mixes(shared, i)}
        best.append([one for one in sorted(cut) if not any(_beats(two, one) for two in cut)])
    found = set()
    for row in shared.configurations:
        slots = [best[i] or [tuple(map(Fraction, (0,) * len(demands)))] for i in _blocks(row)]
        found |= {tuple(sorted(given)) for given in product(*slots)}
    return tuple(sorted(found))


def _blocks(row: Sequence[int]) -> Iterator[int]:
    return (i for i, n in enumerate(row) for _ in range(n))


def _beats(two: Sequence[Fraction], one: Sequence[Fraction]) -> bool:
    return two != one and all(b >= a for a, b in zip(one, two, strict=True))


def lp_0(shared: Shared) -> Fraction:
    """Return the linear bound over whole machines with mixes, no rate cut off."""
    blocks = [mixes(shared, i) for i in range(len(shared.configurations[0]))]
    c = len(shared.configurations)
    costs = [1] * c + [0] * sum(map(len, blocks))
    rows: list[Sequence[Fraction | int]] = []
    for i in range(len(blocks)):
        used = [-1 if i == j else 0 for j, own in enumerate(blocks) for _ in own]
        rows.append([*(row[i] for row in shared.configurations), *used])
    for s in range(len(shared.jobs)):
        rows.append([0] * c + [m.rates[s] for own in blocks for m in own])
    found = minimise(costs, rows, [0] * len(blocks) + [job.demand for job in shared.jobs])
    if found is None:
        raise ValueError("some job is served by no mix")
    return found.value


@cache
def best_cost(shared: Shared) -> int:
    """Return the fewest machines, by search: what demands are left after one machine, after two."""
    gives = [tuple(map(sum, zip(*given, strict=True))) for given in contents(shared)]
    left, machines = {tuple(job.demand for job in shared.jobs)}, 0
    while not any(not any(rest) for rest in left):
        after = {
            tuple(max(ZERO, d - g) for d, g in zip(rest, one, strict=True))
            for rest in left
            for one in gives
        }
        left = {one for one in after if not any(_beats(one, two) for two in after)}
        machines += 1
    return machines


@cache
def image(shared: Shared) -> Tiny:
    """Return the plain problem in which a block type is a job and a rate of it."""
    given = contents(shared)
    pairs = {pair for blocks in given for rates in blocks for pair in enumerate(rates)}
    types = sorted((s, rate) for s, rate in pairs if rate)
    at = {kind: number for number, kind in enumerate(types)}
    rows = set()
    for blocks in given:
        row = [0] * len(types)
        for rates in blocks:
            for s, rate in enumerate(rates):
                if rate:
                    row[at[s, rate]] += 1
        rows.add(tuple(row))
    supply = [[r if s == j else ZERO for s, r in types] for j in range(len(shared.jobs))]
    return Tiny.of([job.demand for job in shared.jobs], supply, sorted(rows))
