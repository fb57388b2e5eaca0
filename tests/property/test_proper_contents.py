"""Certificates with proper counts on small size-bounded problems: no bound is above the optimum."""

from __future__ import annotations

import random
from collections import Counter

from cms import (
    BlockPrices,
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    solve,
)
from cms.files import problem_to_json
from tests.property.certificates import random_certificate
from tests.property.verdicts import judge_certificate
from tests.samples import so_many


def spacious(rng: random.Random) -> Problem:
    """A few jobs, and machines that often have room for more than all of them can use."""
    types = [
        MachineType(
            name, rng.choice(["0", "1", "1", "3/2", "2"]), rng.choice([None, None, 0, 1, 2, 3])
        )
        for name in rng.choice(["m", "m", "mn"])
    ]
    sizes = {
        block: rng.choice(["1", "2", "3", "5/2"]) for block in rng.choice(["a", "ab", "ab", "abc"])
    }
    shapes: list[Configuration | SizeBoundedConfigurations] = [
        SizeBoundedConfigurations(
            sizes, rng.randint(2, 9), machine.name, rng.choice([None, None, 3])
        )
        for machine in types
    ]
    if rng.random() < 0.3:
        shapes.append(Configuration({"a": rng.randint(1, 12)}, types[0].name))
    jobs = [
        Job(
            f"j{number}",
            rng.choice(["0", "1", "2", "3", "7/2"]),
            {block: rng.choice(["0", "1", "2", "3/2"]) for block in sizes},
        )
        for number in range(rng.randint(1, 3))
    ]
    return Problem(configurations=shapes, machine_types=types, jobs=jobs)


def judged(seed: int) -> Counter[str]:
    """Judge random trees, and trees with prices near the best; count the verdicts."""
    rng, found = random.Random(f"proper {seed}"), Counter[str]()
    problem = spacious(rng)
    best = solve(problem, threads=1).certificate
    near = best.prices if isinstance(best, BlockPrices) and any(best.prices.values()) else None
    for certificate in (best, *(random_certificate(rng, problem, near=near) for _ in range(8))):
        document = certificate.to_json()
        verdict = judge_certificate(problem_to_json(problem), document, wrong=False)
        counts = any(leaf.proper for leaf in certificate.leaves())
        found[f"{verdict}, {'proper' if counts else 'any'}"] += 1
    return found


def test_no_bound_is_above_the_optimum() -> None:
    found: Counter[str] = Counter()
    number = so_many(6, 40)
    for seed in range(number):
        found += judged(seed)
    assert found["tight, proper"] > number // 2
    assert found["bound, proper"] > number // 2
    assert found["infeasible, proper"] > number // 8
