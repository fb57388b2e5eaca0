"""Certificates with proper counts on small size-bounded problems: no bound is above the optimum."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from cms import (
    BlockPrices,
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    solve,
)
from cms.files import problem_to_json, solution_to_json
from proofs_checks.checker import check_solution, parse_document
from tests.property.certificates import random_certificate
from tests.property.verdicts import judge_certificate
from tests.samples import few, so_many


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


def stock(rng: random.Random) -> Problem:
    """Cutting stock with small demands: there is room for more of some type than anybody has."""
    capacity = rng.choice([50, 132, 1_000])
    sizes = sorted(rng.sample(range(capacity // 12, capacity * 2 // 3), rng.randint(4, 12)))
    return Problem(
        configurations=SizeBoundedConfigurations({f"s{size}": size for size in sizes}, capacity),
        jobs=[Job(f"j{size}", rng.randint(1, 5), {f"s{size}": 1}) for size in sizes],
    )


@pytest.mark.parametrize("seed", few(12, range(200)))
def test_both_checkers_take_what_is_solved(seed: int) -> None:
    problem = stock(random.Random(seed))
    solution = solve(problem, threads=1)
    (machines,) = problem.size_bounded_configurations
    useful = dict(zip(problem.blocks, problem.useful_blocks(), strict=True))
    fewer = {block for block in machines.sizes if useful[block] < machines.largest_count(block)}
    assert {block for leaf in solution.certificate.leaves() for block in leaf.proper} == fewer
    assert solution.certificate.bound(problem) <= solution.lower_bound
    documents = problem_to_json(problem), solution_to_json(solution)
    read = [parse_document(json.dumps(document)) for document in documents]
    assert check_solution(*read) == []
    # One block less of a type that its machines are full of is one that a job may need.
    tree = read[1]["certificate"]["tree"]
    for leaf in [tree] if fewer and "prices" in tree else []:
        block = min(leaf["proper"])
        leaf["proper"][block] -= 1
        (fault,) = check_solution(*read)
        assert f"the proper count of '{block}'" in fault
