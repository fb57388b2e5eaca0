"""Random valid schedules."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

from cms import Configuration, Problem, Schedule
from tests.oracle import given, limit_rows, options
from tests.property.definition import machines_of


def random_schedule(rng: random.Random, problem: Problem) -> Schedule | None:
    """Random options for all jobs on random machines; None where that does not come out."""
    names = [machine.name for machine in problem.machine_types]
    kinds = [machine for machine in machines_of(problem) if any(machine.held)]
    available = [any(machine.held[i] for machine in kinds) for i in range(len(problem.blocks))]
    need: Counter[int] = Counter()
    taken: dict[tuple[str, str], int] = {}
    for job in problem.jobs:
        supply = [
            given(job, block) if there else Fraction(0)
            for block, there in zip(problem.blocks, available, strict=True)
        ]
        choices = list(options(supply, job.demand))
        if not choices:
            return None
        for i, count in enumerate(rng.choice(choices)):
            if count:
                need[i] += count
                taken[problem.blocks[i], job.name] = count
    machines: Counter[Configuration] = Counter()
    used: Counter[int] = Counter()
    for _ in range(400):
        short = [i for i, count in need.items() if count > 0]
        if not short and rng.random() < 0.7:
            return Schedule.from_counts(problem, machines, taken)
        useful = [
            machine
            for machine in kinds
            if any(machine.held[i] for i in short) or not short
            if _has_room(problem, used, machine.type)
        ]
        if not useful:
            return Schedule.from_counts(problem, machines, taken) if not short else None
        machine = rng.choice(useful)
        used[machine.type] += 1
        need.subtract({i: count for i, count in enumerate(machine.held) if count})
        blocks = dict(zip(problem.blocks, machine.held, strict=True))
        machines[Configuration(blocks, names[machine.type])] += 1
    return None


def _has_room(problem: Problem, used: Counter[int], machine: int) -> bool:
    more = used + Counter([machine])
    return all(
        sum(weight * more[at] for at, weight in enumerate(row.weights)) <= row.most
        for row in limit_rows(problem).values()
    )
