"""Branches on weighted sums of machines: chosen where they close what single types would not."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from cms import (
    Branch,
    Certificate,
    Configuration,
    Job,
    MachinesOfType,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
)
from instances.families import generate
from tests.algorithms.branch_and_price.branched import proof
from tests.oracle import optimum
from tests.samples import few


def sums(certificate: Certificate | None) -> list[MachinesOfType]:
    """The weighted sums of several types that a tree branches on."""
    if not isinstance(certificate, Branch):
        return []
    quantity = certificate.quantity
    own = [quantity] if isinstance(quantity, MachinesOfType) and len(quantity.weights) > 1 else []
    return own + sums(certificate.below) + sums(certificate.above)


@pytest.mark.parametrize(
    ("n", "seed", "known", "best"),
    [
        (30, 1302238433, "21.3", "21"),
        pytest.param(42, 2552819479, "33.8", "33.5", marks=pytest.mark.long),
    ],
)
def test_shares_beside_mig_with_costs_in_tenths(n: int, seed: int, known: str, best: str) -> None:
    # All totals are whole at some node, but contents are not: the rest of the blocks is dived for.
    problem = generate("size-bounded-mixed", n=n, seed=seed, m=5, mig_cost="0.9")
    found = proof(problem, Fraction(known))
    assert found.schedule is not None
    assert found.schedule.cost(problem) == found.bound == Fraction(best)


def in_tenths(rng: random.Random) -> Problem:
    """A few jobs on two to four types of nearly equal cost for what they hold."""
    names = "mnop"[: rng.randint(2, 4)]
    types: list[MachineType] = []
    shapes: list[Configuration | SizeBoundedConfigurations] = []
    for name in names:
        size = rng.randint(1, 4)
        cost = Fraction(10 * size + rng.randint(-2, 3), 10)
        types.append(MachineType(name, cost, rng.choice([None, None, None, 1, 3])))
        if rng.random() < 0.5:
            shapes.append(Configuration({"a": size, "b": rng.randint(1, 2)}, name))
            shapes.append(Configuration({"b": size}, name))
        else:
            shapes.append(SizeBoundedConfigurations({"a": 1, "b": 2}, size + 1, name))
    jobs = [
        Job(f"j{number}", rng.randint(1, 6), {"a": rng.choice([1, 2]), "b": rng.choice([1, 3])})
        for number in range(rng.randint(1, 3))
    ]
    return Problem(configurations=shapes, machine_types=types, jobs=jobs)


@pytest.mark.parametrize("part", few(1, range(4)))
def test_costs_in_tenths_are_proved_from_nothing_and_from_the_optimum(part: int) -> None:
    branched = 0
    for seed in range(part * 15, part * 15 + 15):
        problem = in_tenths(random.Random(f"tenths {seed}"))
        best = optimum(problem)
        if best is None:
            continue
        for known in (None, best):
            found = proof(problem, known)
            assert found.bound == best, seed
            branched += bool(sums(found.certificate))
        assert found.schedule is None
    assert branched
