"""Blocks that jobs share in time, from the definition alone: toys, and their image in plain CMS.

A time-shared problem is a plain one in disguise: let a block type (s, r) stand for "gives job s its
rate r", and replace each configuration by all multisets of such pairs that arise when each of its
blocks takes an admitted mix or nothing. Schedules and costs correspond one to one. As a way to
solve it is hopeless, on toys it is exact, and it shares nothing with cycles, check or price
functions of the package.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

from cms import (
    Configuration,
    GroupLimit,
    Job,
    MachineGroup,
    MachineType,
    Mix,
    Problem,
    Schedule,
    TimeSharedJob,
    TimeSharedProblem,
)
from tests.oracle import limit_rows

Rates = Mapping[str, Fraction]


def time_shared_toy(rng: random.Random) -> TimeSharedProblem:
    """At most 3 jobs of at most 3 points on at most 3 blocks, small numbers, some limits."""
    blocks = ["a", "b", "c"][: rng.randint(1, 3)]
    types = [MachineType("m", Fraction(rng.choice([2, 2, 3]), 2), rng.choice([None, None, 1, 2]))]
    if rng.random() < 0.3:
        types.append(MachineType("n", rng.choice([1, 2]), None))
    shapes = [Configuration({b: 1}, types[0].name) for b in blocks]
    for _ in range(rng.randint(0, 2)):
        counts = {b: rng.randint(0, 2) for b in blocks}
        if 0 < sum(counts.values()) <= 3:
            shapes.append(Configuration(counts, rng.choice(types).name))
    jobs = []
    for at in range(rng.randint(1, 3)):
        points = {
            b: [(a, Fraction(rng.randint(1, 8), rng.choice([1, 2]))) for a in amounts]
            for b in blocks
            if (amounts := rng.sample([1, 2, 4], rng.randint(0, 3)))
        }
        demand = Fraction(rng.randint(0, 6), rng.choice([2, 3, 4]))
        jobs.append(TimeSharedJob(f"j{at}", demand, rng.randint(3, 24), points))
    problem = TimeSharedProblem(
        configurations=shapes,
        jobs=jobs,
        machine_types=types,
        rule=rng.choice(["round_robin", "collect_then_run"]),
        max_jobs=rng.choice([None, None, 1, 2]),
    )
    weights = {each.name: Fraction(rng.choice([2, 2, 3]), 2) for each in types}
    group = GroupLimit("all", weights, rng.choice([1, 2, 3, 4]))
    return problem.replace(group_limits=[group] if rng.random() < 0.3 else [])


def needed(rule: str, cycle: Fraction, length: Fraction) -> Fraction:
    """How long an item may take in a cycle, its own length included."""
    return {"round_robin": cycle + length, "collect_then_run": cycle + cycle}[rule]


def rates_on(problem: TimeSharedProblem, block: str, mix: Mapping[str, Fraction]) -> Rates | None:
    """What a mix gives on a block; None if it is none of the problem's there."""
    if problem.max_jobs is not None and len(mix) > problem.max_jobs:
        return None
    jobs = {job.name: job for job in problem.jobs}
    lengths = {}
    for name, amount in mix.items():
        if name not in jobs:
            return None
        lengths[name] = dict(jobs[name].points.get(block, ())).get(amount)
    cycle = Fraction(0)
    for length in lengths.values():
        if length is None:
            return None
        cycle += length
    for name, length in lengths.items():
        if length is None or needed(problem.rule, cycle, length) > jobs[name].limit:
            return None
    return {name: amount / cycle for name, amount in mix.items()}


def mixes_on(problem: TimeSharedProblem, block: str) -> Iterator[tuple[Mix, Rates]]:
    """All admitted mixes on a block, and what each gives."""
    for size in range(1, len(problem.jobs) + 1):
        for chosen in combinations(problem.jobs, size):
            for points in product(*(job.points.get(block, ()) for job in chosen)):
                mix = Mix({job.name: p.amount for job, p in zip(chosen, points, strict=True)})
                rates = rates_on(problem, block, mix)
                if rates is not None:
                    yield mix, rates


#: Who gets which rate on which block, and whether alone.
Output = tuple[str, Fraction, str, bool]


def images(problem: TimeSharedProblem) -> tuple[Problem, dict[str, Output]]:
    """The plain problem of the same schedules, and what its blocks stand for."""
    outputs: dict[str, Output] = {}
    shapes: dict[Configuration, None] = {}
    for shape in problem.listed_configurations:
        per_type = []
        for block, count in shape.blocks.items():
            offers: set[tuple[str, ...]] = {()}
            for mix, rates in mixes_on(problem, block):
                named = {
                    f"{j} {r} {block} {len(mix)}": (j, r, block, len(mix) == 1)
                    for j, r in rates.items()
                }
                outputs |= named
                offers.add(tuple(sorted(named)))
            per_type.append(list(combinations_with_replacement(sorted(offers), count)))
        for choice in product(*per_type):
            held = Counter(name for of_type in choice for offer in of_type for name in offer)
            if held:
                shapes[Configuration(held, shape.machine)] = None
    jobs = [
        Job(
            job.name,
            job.demand,
            {name: rate for name, (whose, rate, _, _) in outputs.items() if whose == job.name},
        )
        for job in problem.jobs
    ]
    shapes = shapes or {Configuration({"nothing": 1}, problem.machine_types[0].name): None}
    plain = Problem(
        configurations=list(shapes),
        jobs=jobs,
        machine_types=problem.machine_types,
        group_limits=problem.group_limits,
    )
    return plain, outputs


def expanded(problem: TimeSharedProblem) -> Problem:
    """The plain problem of the same schedules, of listed configurations."""
    return images(problem)[0]


def serves(problem: TimeSharedProblem, schedule: Schedule) -> bool:
    """Whether a schedule is valid, by the definition."""
    served: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for group in schedule.groups:
        shape = problem.own(group.configuration)
        if group.count < 1 or shape not in problem.configurations:
            return False
        used[str(shape.machine)] += group.count
        taken: Counter[str] = Counter()
        for (block, content), count in group.assignment.items():
            taken[block] += count
            rates = rates_on(problem, block, content) if isinstance(content, Mix) else None
            if rates is None or count < 1:
                return False
            for name, rate in rates.items():
                served[name] += rate * count * group.count  # type: ignore[assignment]
        if any(count > shape.blocks.get(block, 0) for block, count in taken.items()):
            return False
    return all(served[job.name] >= job.demand for job in problem.jobs) and all(
        sum(n * used[m.name] for n, m in zip(row.weights, problem.machine_types, strict=True))
        <= row.most
        for row in limit_rows(problem).values()
    )


def random_schedule(rng: random.Random, problem: TimeSharedProblem) -> Schedule:
    """One that is often valid, and sometimes breaks one rule or another."""
    groups = []
    for _ in range(rng.randint(0, 4)):
        shape = rng.choice(problem.listed_configurations)
        assignment: dict[tuple[str, Mix], int] = {}
        for block, count in shape.blocks.items():
            offered = [mix for mix, _ in mixes_on(problem, block)]
            if offered and rng.random() < 0.9:
                assignment[block, rng.choice(offered)] = count
            elif rng.random() < 0.2:
                job = rng.choice(problem.jobs)
                assignment[block, Mix({job.name: rng.choice([1, 2, 3, 4])})] = count
        if assignment and rng.random() < 0.1:
            (block, mix), count = assignment.popitem()
            more = {job.name: rng.choice([1, 2, 4]) for job in problem.jobs}
            assignment[block, Mix({**more, **mix})] = count + rng.choice([0, 0, 1])
        groups.append(MachineGroup(shape, assignment, rng.randint(1, 4)))
    return Schedule(groups)
