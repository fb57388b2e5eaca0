"""Families of tiny random problems whose optimum ``tests.oracle`` finds in milliseconds.

Every family draws from a ``random.Random`` alone, so that a number names a problem for ever.
Demands are a few blocks each; what varies is where things go wrong: fractions, zeros, ties, costs,
limits, sizes, infeasibility, and numbers that do not fit into 63 bits.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from cms import Configuration, GroupLimit, Job, MachineType, Problem, SizeBoundedConfigurations
from cms.fleet import get_gpu
from tests.oracle import given

Family = Callable[[random.Random], Problem]
Shape = Configuration | SizeBoundedConfigurations

_DATA = Path(__file__).parent.parent / "instances" / "data" / "a100_operating_points.csv"
_A100 = "a100-80gb"


@cache
def measured_throughputs() -> dict[str, dict[str, list[tuple[Fraction, Fraction]]]]:
    """{model: {profile: [(latency, throughput)]}} measured on an A100, at most 3 processes."""
    found: dict[str, dict[str, list[tuple[Fraction, Fraction]]]] = {}
    for row in csv.DictReader(_DATA.read_text("utf-8").splitlines()):
        if int(row["processes"]) <= 3:
            point = Fraction(row["latency_ms"]), Fraction(row["throughput_rps"])
            found.setdefault(row["model"], {}).setdefault(row["profile"], []).append(point)
    return found


def a100(rng: random.Random) -> Problem:
    """Models with their measured throughputs within a latency limit, on the shapes of an A100."""
    jobs = []
    number = rng.randint(1, 4)
    for j in range(number):
        table = measured_throughputs()[rng.choice(sorted(measured_throughputs()))]
        limit = rng.choice([20, 50, 100, 500, 5000])
        supply = {
            profile: max(
                (rate for latency, rate in points if latency <= limit), default=Fraction(0)
            )
            for profile, points in table.items()
        }
        best = max(supply.values())
        demand = (
            Fraction(int(best * rng.randint(1, 240 // number)), 100) if best else rng.randint(0, 1)
        )
        jobs.append(Job(f"model-{j}", demand, supply))
    return Problem(
        configurations=get_gpu(_A100).configurations, jobs=jobs, machine_types=[MachineType(_A100)]
    )


def a100_arbitrary(rng: random.Random) -> Problem:
    """The shapes of an A100 with tables that no hardware would show."""
    shapes = [Configuration(shape.blocks) for shape in get_gpu(_A100).configurations]
    return Problem(configurations=shapes, jobs=_jobs(rng, held(shapes), rng.randint(1, 3)))


def sparse(rng: random.Random) -> Problem:
    """Most blocks give most jobs nothing; a block may serve nobody."""
    shapes = _shapes(rng, _names("b", rng.randint(2, 5)))
    jobs = _jobs(rng, held(shapes), rng.randint(1, 4), chance_of_zero=0.65)
    return Problem(configurations=shapes, jobs=jobs)


def random_configurations(rng: random.Random) -> Problem:
    """Any list of configurations, dominated and equal ones among them."""
    shapes = _shapes(rng, _names("b", rng.randint(1, 4)), most=6)
    if rng.random() < 0.3:
        shapes.append(rng.choice(shapes))
    return Problem(configurations=shapes, jobs=_jobs(rng, held(shapes), rng.randint(1, 5)))


def costs(rng: random.Random) -> Problem:
    """Several machine types, costs that are fractions, now and then 0."""
    return _fleet(rng, [_cost(rng) for _ in range(rng.randint(1, 3))], [None] * 3)


def limits(rng: random.Random) -> Problem:
    """Limits on most machine types; a good part of these problems has no schedule."""
    number = rng.randint(1, 3)
    wanted = [rng.choice([None, 0, 1, 1, 2, 2, 3, 4, 6]) for _ in range(number)]
    return _fleet(rng, [_cost(rng) for _ in range(number)], wanted)


def groups(rng: random.Random) -> Problem:
    """Limits of groups of machine types, beside those of some types; many have no schedule."""
    number = rng.randint(1, 3)
    wanted = [rng.choice([None, None, 1, 2, 3, 6]) for _ in range(number)]
    problem = _fleet(rng, [_cost(rng) for _ in range(number)], wanted)
    found = []
    for at in range(rng.randint(1, 2)):
        some = rng.sample(problem.machine_types, rng.randint(1, number))
        weights = {each.name: Fraction(rng.choice(["1", "1", "2", "1/2", "0.7"])) for each in some}
        found.append(GroupLimit(f"group-{at}", weights, Fraction(rng.randint(0, 24), 4)))
    return problem.replace(group_limits=found)


def machine_types(rng: random.Random) -> Problem:
    """Types that share blocks, types without configurations, equal shapes on different types."""
    blocks = _names("b", rng.randint(2, 4))
    types = [MachineType(name, rng.randint(1, 4)) for name in _names("type-", rng.randint(2, 4))]
    shapes = [
        Configuration(shape.blocks, machine=machine.name)
        for machine in types
        for shape in _shapes(rng, blocks, most=2, least=0)
    ] or [Configuration({blocks[0]: 1}, machine=types[0].name)]
    jobs = _jobs(rng, held(shapes), rng.randint(1, 4))
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)


def size_bounded(rng: random.Random, max_blocks: bool = False) -> Problem:
    """All multisets up to a capacity, on one machine type."""
    blocks = _names("b", rng.randint(1, 3))
    unit = rng.choice([Fraction(1), Fraction(1, 3), Fraction("0.1")])
    sizes = {block: rng.randint(2, 9) * unit for block in blocks}
    capacity = rng.randint(6, 16) * unit
    most = rng.choice([None, 1, 2, 3, 4]) if max_blocks else None
    shapes: list[Shape] = [SizeBoundedConfigurations(sizes, capacity, max_blocks=most)]
    if max_blocks and rng.random() < 0.5:
        shapes += _shapes(rng, [*blocks, "listed"], most=2)
    return Problem(configurations=shapes, jobs=_jobs(rng, held(shapes), rng.randint(1, 4)))


def max_blocks(rng: random.Random) -> Problem:
    """All multisets up to a capacity and a number of blocks, beside listed configurations."""
    return size_bounded(rng, max_blocks=True)


def infeasible_by_block(rng: random.Random) -> Problem:
    """One job that no block serves, or only blocks that no machine can hold."""
    problem = random_configurations(rng)
    jobs = [*problem.jobs, Job("lost", rng.randint(1, 3), {})]
    shapes: list[Shape] = list(problem.configurations)
    if rng.random() < 0.5:
        shapes.append(SizeBoundedConfigurations({"giant": 3, "small": 1}, capacity=2))
        jobs[-1] = Job("lost", rng.randint(1, 3), {"giant": 5})
    rng.shuffle(jobs)
    return Problem(configurations=shapes, jobs=jobs)


def infeasible_by_limit(rng: random.Random) -> Problem:
    """Too few machines: by far, by one block, or only because blocks cannot be split."""
    kind, price = rng.randrange(4), _cost(rng)
    shapes: list[Shape]
    if kind == 0:  # one job more than there are blocks
        limit, held = rng.randint(0, 3), rng.randint(1, 2)
        shapes = [Configuration({"b": held}, "few")]
        jobs = [Job(f"j{j}", rng.randint(1, 9), {"b": 9}) for j in range(limit * held + 1)]
    elif kind == 1:  # one job that wants a little more than all blocks give
        limit, blocks = rng.randint(0, 3), _names("b", rng.randint(1, 3))
        counts = {block: rng.randint(1, 3) for block in blocks}
        supply = {block: rng.randint(1, 5) for block in blocks}
        total = limit * sum(counts[block] * supply[block] for block in blocks)
        shapes = [Configuration(counts, "few")]
        jobs = [Job("j0", total + Fraction(1, rng.randint(1, 5)), supply)]
    elif kind == 2:  # no prices prove it: sets over F_2^3 cover in 3, fractionally in 7/4
        limit = 2
        shapes = [
            Configuration({f"e{e}": 1 for e in range(1, 8) if (e & v).bit_count() % 2}, "few")
            for v in range(1, 8)
        ]
        jobs = [Job(f"j{e}", rng.randint(1, 3), {f"e{e}": 3}) for e in range(1, 8)]
    else:  # nor here: 259/132 machines by the prices, 3 in truth
        limit, unit = 2, rng.choice([Fraction(1), Fraction(1, 3)])
        sizes = {"a": 44 * unit, "b": 33 * unit, "c": 12 * unit}
        shapes = [SizeBoundedConfigurations(sizes, 132 * unit, "few")]
        needs = {"a": 2, "b": 3, "c": 6}
        jobs = [Job(f"j-{b}", rng.randint(9 * n - 8, 9 * n), {b: 9}) for b, n in needs.items()]
    rng.shuffle(jobs)
    rng.shuffle(shapes)
    types = [MachineType("few", price, limit), MachineType("none")]
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)


def decimals(rng: random.Random) -> Problem:
    """Thirds, tenths and sevenths that must add up to the last digit, as all kinds of numbers."""
    shapes = _shapes(rng, _names("b", rng.randint(1, 3)))
    blocks = held(shapes)
    parts: list[Any] = ["1/3", 0.1, "0.1", Decimal("0.3"), Fraction(2, 7), 0.7, "1e-1", 1, "3.3e0"]
    wholes: list[Any] = [1, 0.3, "0.9", Decimal("0.7"), "2/3", "4/7", 2, "1.1", 0.8]
    jobs = [
        Job(f"j{j}", rng.choice(wholes), {block: rng.choice(parts) for block in blocks})
        for j in range(rng.randint(1, 4))
    ]
    return Problem(configurations=shapes, jobs=jobs)


def equal_ratios(rng: random.Random) -> Problem:
    """Supply in proportion to size: all blocks are equally good, or off by one unit."""
    sizes = {block: rng.randint(1, 7) for block in _names("b", rng.randint(2, 4))}
    capacity = max(sizes.values()) + rng.randint(0, 4)
    shapes = [
        Configuration({block: capacity // size, **({"b0": 1} if rng.random() < 0.2 else {})})
        for block, size in sizes.items()
    ]
    jobs = []
    for j in range(rng.randint(1, 4)):
        unit = rng.randint(1, 9)
        near = {b: s * unit + rng.choice([0, 0, 0, 0, 1, -1]) for b, s in sizes.items()}
        jobs.append(Job(f"j{j}", rng.randint(1, 12 * unit), near))
    return Problem(configurations=shapes, jobs=jobs)


def identical_jobs(rng: random.Random) -> Problem:
    """The same few rows again and again, some of them in another unit."""
    shapes = _shapes(rng, _names("b", rng.randint(1, 3)))
    blocks = held(shapes)
    kinds = _jobs(rng, blocks, rng.randint(1, 2))
    jobs = []
    for j in range(rng.randint(2, 8)):
        kind = rng.choice(kinds)
        unit = Fraction(rng.choice([7, 7, 21, 1]), 7)
        table = {block: given(kind, block) * unit for block in blocks}
        jobs.append(Job(f"j{j}", kind.demand * unit, table))
    return Problem(configurations=shapes, jobs=jobs)


def long_numbers(rng: random.Random) -> Problem:
    """Demands of a few blocks in numbers that need more than 63 bits; some demands are 0."""
    shapes = _shapes(rng, _names("b", rng.randint(1, 3)))
    blocks, jobs = held(shapes), []
    for j in range(rng.randint(1, 4)):
        tiny = Fraction(10**9, 10**21 + 7)
        unit = rng.choice([Fraction(10**25), Fraction(10**18 + 9), Fraction(2**63), tiny])
        table = {
            block: rng.choice([0, 1, 2, 3, 5, 9])
            * (unit + rng.choice([0, 0, 0, 1]) * unit / 10**20)
            for block in blocks
        }
        little = rng.choice(
            [Fraction(0), Fraction(0), unit / 10**19, min(unit, Fraction(1)) / 10**9]
        )
        demand = rng.randint(0, 9) * unit + little
        jobs.append(Job(f"j{j}", demand if rng.random() < 0.8 else 0, table))
    if rng.random() < 0.5:
        jobs += _jobs(rng, blocks, 2)
        jobs[-2:] = [Job(f"short-{job.name}", job.demand, job.demand_function) for job in jobs[-2:]]
    return Problem(configurations=shapes, jobs=jobs)


def set_cover(rng: random.Random) -> Problem:
    """Every job needs blocks of its own; prices alone leave a gap here now and then."""
    blocks = _names("e", rng.randint(3, 6))
    if rng.random() < 0.3:
        shapes: list[Shape] = [
            SizeBoundedConfigurations(
                {block: rng.randint(3, 9) for block in blocks[:3]}, rng.randint(9, 20)
            )
        ]
        blocks = blocks[:3]
    else:
        sets = [rng.sample(blocks, rng.randint(1, 3)) for _ in range(rng.randint(3, 7))]
        shapes = [Configuration(dict.fromkeys(chosen, 1)) for chosen in [*sets, blocks[:1]]]
        blocks = sorted({block for chosen in [*sets, blocks[:1]] for block in chosen})
    jobs = [Job(f"j-{block}", rng.randint(1, 4), {block: rng.randint(1, 3)}) for block in blocks]
    return Problem(configurations=shapes, jobs=jobs)


def edges(rng: random.Random) -> Problem:
    """Nothing to do, demand 0, no configuration that fits, free machines, one block."""
    kind = rng.randrange(6)
    if kind == 0:
        return Problem(configurations=[Configuration({"b": 1})])
    if kind == 1:
        jobs = [
            Job(f"j{j}", 0, {"b": rng.choice([0, 1, 10**30])}) for j in range(rng.randint(1, 3))
        ]
        return Problem(configurations=[Configuration({"b": 1})], jobs=jobs)
    if kind == 2:
        tiny = SizeBoundedConfigurations({"b": 3, "c": 4}, capacity=2)
        return Problem(configurations=tiny, jobs=[Job("j", rng.randint(0, 1), {"b": 2})])
    if kind == 3:
        return _fleet(rng, [Fraction(0)] * 2, [None, rng.randint(0, 3)])
    if kind == 4:
        return Problem(configurations=[], jobs=[Job("j", rng.randint(0, 1), {})])
    table = {"b": rng.randint(1, 3)}
    jobs = [Job(f"j{j}", rng.randint(0, 20), table) for j in range(rng.randint(1, 6))]
    return Problem(configurations=[Configuration({"b": rng.randint(1, 4)})], jobs=jobs)


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        *(a100, a100_arbitrary, sparse, random_configurations, costs, limits, machine_types),
        *(size_bounded, max_blocks, infeasible_by_block, infeasible_by_limit, decimals),
        *(groups, equal_ratios, identical_jobs, long_numbers, set_cover, edges),
    )
}


def instance(family: str, number: int) -> Problem:
    """The problem of this number in a family."""
    return FAMILIES[family](random.Random(f"{family} {number}"))


# --- parts ----------------------------------------------------------------------------------------


def _names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(number)]


def held(shapes: Iterable[Shape]) -> list[str]:
    """The blocks of some configurations, in order."""
    return sorted(
        {b for s in shapes for b in (s.blocks if isinstance(s, Configuration) else s.sizes)}
    )


def _cost(rng: random.Random) -> Fraction:
    return Fraction(rng.choice(["1", "2", "3", "1.5", "1/3", "2/3", "0.7", "5/4", "0"]))


def _shapes(
    rng: random.Random, blocks: list[str], *, most: int = 4, least: int = 1
) -> list[Configuration]:
    shapes = []
    for _ in range(rng.randint(least, most)):
        counts = {block: rng.choice([0, 0, 1, 1, 2, 3]) for block in blocks}
        counts[rng.choice(blocks)] = rng.randint(1, 4)
        shapes.append(Configuration(counts))
    return shapes


def _jobs(
    rng: random.Random, blocks: list[str], number: int, *, chance_of_zero: float = 0.15
) -> list[Job]:
    jobs = []
    for j in range(number):
        largest = rng.choice([3, 10, 10, 40])
        supply = {
            block: 0 if rng.random() < chance_of_zero else rng.randint(1, largest)
            for block in blocks
        }
        least = min((f for f in supply.values() if f), default=1)
        demand = rng.randint(0 if rng.random() < 0.1 else 1, min(6 * least, 2 * largest))
        jobs.append(Job(f"j{j}", demand, supply))
    return jobs


def _fleet(rng: random.Random, prices: list[Fraction], most: list[int | None]) -> Problem:
    """Machine types of these costs and limits, with listed and size-bounded configurations."""
    blocks = _names("b", rng.randint(1, 4))
    types = [
        MachineType(f"type-{at}", price, limit)
        for at, (price, limit) in enumerate(zip(prices, most, strict=False))
    ]
    shapes: list[Shape] = []
    for machine in types:
        if rng.random() < 0.25:
            mine = rng.sample(blocks, rng.randint(1, len(blocks)))
            sizes = {block: Fraction(rng.randint(2, 6), 2) for block in mine}
            shapes.append(SizeBoundedConfigurations(sizes, rng.randint(2, 6), machine.name))
        shapes += [Configuration(s.blocks, machine.name) for s in _shapes(rng, blocks, most=2)]
    jobs = _jobs(rng, held(shapes), rng.randint(1, 4))
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)
