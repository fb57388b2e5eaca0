"""Branches on weighted sums of machines: chosen where they close what single types would not."""

from __future__ import annotations

import random
from fractions import Fraction
from math import gcd

import pytest

from algorithms.branch_and_price.candidates import rough_costs
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


def test_one_branch_on_a_sum_instead_of_one_for_every_number_of_small_machines() -> None:
    # Two blocks on a small machine of cost 2, four on a large one of cost 4, and one more on the
    # dear one that k needs: 101 blocks on small and large ones, small + 2 large >= 51.
    dear = Configuration({"x": 1, "y": 1}, "dear")
    problem = Problem(
        configurations=[Configuration({"x": 2}, "s"), Configuration({"x": 4}, "l"), dear],
        jobs=[Job("j", 102, {"x": 1}), Job("k", 1, {"y": 1})],
        machine_types=[MachineType("s", 2), MachineType("l", 4), MachineType("dear", 5)],
    )
    found = proof(problem, 107, most_nodes=10)
    assert found.bound == 107
    assert isinstance(found.certificate, Branch)
    (weighted,) = sums(found.certificate)
    assert found.certificate.leaf_count == 2
    assert weighted.weights["l"] == 2 * weighted.weights["s"]


def test_costs_in_rough_units_have_no_common_divisor_and_are_no_finer_than_wanted() -> None:
    costs = {0: Fraction(1), 1: Fraction(2), 4: Fraction(61, 10)}
    found = rough_costs(costs, Fraction(1, 2))
    assert found[0] == {0: 2, 1: 4, 4: 12} or gcd(*found[0].values()) == 1
    assert all(max(weights.values()) <= 12 for weights in found)  # 12 halves are 6
    assert all(gcd(*weights.values()) == 1 for weights in found)
    assert {1: 1, 4: 2} in found  # what costs little beside the dearest does not count
    assert len({tuple(weights.items()) for weights in found}) == len(found)
    assert max(rough_costs(costs, Fraction(0))[0].values()) == 100
    assert rough_costs({0: Fraction(1)}, Fraction(0)) == rough_costs({}, Fraction(1)) == []
    assert rough_costs(costs, Fraction(7)) == []


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
