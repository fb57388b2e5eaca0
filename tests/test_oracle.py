"""The oracle itself: against brute force over single blocks, and on the theory's instances."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations
from cms.plugin.registry import NamedProblem
from instances import hard, small
from tests.oracle import by_hand, optimum

SLOW = ("set-cover-f2-4", "harmonic-trap-4")
# The oracle is for demands of a few blocks; these two have 10^12.
KNOWN = [
    thing
    for module in (hard, small)
    for thing in vars(module).values()
    if isinstance(thing, NamedProblem) and not thing.name.startswith("huge")
]


@pytest.mark.parametrize(
    "named", [n for n in KNOWN if n.name not in SLOW], ids=lambda named: named.name
)
def test_the_oracle_knows_the_theorys_optima(named: NamedProblem) -> None:
    assert optimum(named.make()) == named.optimum


def micro(rng: random.Random) -> Problem:
    """At most 3 jobs on machines of at most 3 blocks: few enough to try every owner of a block."""
    blocks = ["a", "b"][: rng.randint(1, 2)]
    types = [
        MachineType(f"m{at}", rng.choice(["1", "3/2", "1/3", "0"]), rng.choice([None, None, 0, 1]))
        for at in range(rng.randint(1, 2))
    ]
    shapes: list[Configuration | SizeBoundedConfigurations] = []
    for machine in types:
        if rng.random() < 0.3:
            sizes = {block: Fraction(rng.choice([4, 5, 6]), 2) for block in blocks}
            most = rng.choice([None, 1, 2])
            shapes.append(SizeBoundedConfigurations(sizes, rng.randint(2, 6), machine.name, most))
        else:
            counts = {block: rng.randint(0, 1) for block in blocks}
            counts[blocks[0]] += 1
            shapes.append(Configuration(counts, machine.name))
    jobs = [
        Job(f"j{j}", rng.randint(0, 5), {block: rng.randint(0, 4) for block in blocks})
        for j in range(rng.randint(1, 3))
    ]
    used = {
        block for s in shapes for block in (s.blocks if isinstance(s, Configuration) else s.sizes)
    }
    jobs = [
        Job(job.name, job.demand, {b: job.demand_function(b) for b in blocks if b in used})
        for job in jobs
    ]
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)


def test_the_oracle_agrees_with_giving_every_block_to_every_job_in_turn() -> None:
    compared = {"optimal": 0, "above": 0}
    for number in range(200):
        problem = micro(random.Random(number))
        best = by_hand(problem, most_machines=2)
        found = optimum(problem)
        if best is not None:
            compared["optimal"] += 1
            assert found == best, number
        else:  # it needs more machines than brute force can try, or there is no schedule
            compared["above"] += 1
            cheapest = min(
                (m.cost for m in problem.machine_types if m.limit != 0), default=Fraction(0)
            )
            assert found is None or found >= 3 * cheapest, number
    assert min(compared.values()) > 20
