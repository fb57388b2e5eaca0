"""Branches on weighted sums of machines: chosen where they close what single types would not."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from algorithms.price_and_branch.quantities import sums_of
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
from tests.algorithms.price_and_branch.branched import proof
from tests.oracle import optimum


def sums(certificate: Certificate | None) -> list[MachinesOfType]:
    """The weighted sums of several types that a tree branches on."""
    if not isinstance(certificate, Branch):
        return []
    quantity = certificate.quantity
    own = [quantity] if isinstance(quantity, MachinesOfType) and len(quantity.weights) > 1 else []
    return own + sums(certificate.below) + sums(certificate.above)


def test_one_branch_on_a_sum_instead_of_one_for_every_number_of_small_machines() -> None:
    # two blocks on a small machine of cost 2, four on a large one of cost 4: small + 2 large >= 51
    problem = Problem(
        configurations=[Configuration({"x": n}, m) for m, n in [("s", 2), ("l", 4), ("dear", 1)]],
        jobs=[Job("j", 101, {"x": 1})],
        machine_types=[MachineType("s", 2), MachineType("l", 4), MachineType("dear", 5)],
    )
    found = proof(problem, None, most_nodes=10)
    assert found.schedule is not None
    assert found.schedule.cost(problem) == found.bound == 102
    assert sums(found.certificate) == [MachinesOfType({"s": 1, "l": 2})]


def test_sums_of_types_and_of_their_costs_in_rough_units() -> None:
    costs = [Fraction(1), Fraction(2), Fraction(0), Fraction(61, 10)]
    found = sums_of(costs, [0, 1, 3])
    assert found[:4] == [{0: 1, 1: 1}, {0: 1, 3: 1}, {1: 1, 3: 1}, {0: 1, 1: 1, 3: 1}]
    assert {0: 1, 1: 2, 3: 6} in found
    assert {1: 1, 3: 3} in found
    assert all(len(weights) > 1 and min(weights.values()) > 0 for weights in found)
    assert len({tuple(weights.items()) for weights in found}) == len(found)
    # of many types not all sets: pairs, and all of them
    assert len(sums_of([Fraction(1)] * 9, range(9))) == 36 + 1
    assert sums_of(costs, [0]) == sums_of(costs, []) == []


def in_tenths(rng: random.Random) -> Problem:
    """A few jobs on two to four types of nearly equal cost for what they hold."""
    names = "mnop"[: rng.randint(2, 4)]
    types, shapes = [], []
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


@pytest.mark.parametrize("part", range(4))
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
