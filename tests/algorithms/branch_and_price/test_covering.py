"""Whole machines of any number that hold given blocks."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest

from algorithms.branch_and_price.open_machines import filled
from algorithms.branch_and_price.shapes import Shapes
from cms import Configuration, Job, MachineType, Problem
from tests.algorithms.branch_and_price.parts import single


def random_shapes(rng: random.Random) -> Shapes:
    types = [
        MachineType(f"t{at}", rng.choice(["0", "1", "2", "1/3"]), rng.randint(0, 9))
        for at in range(2)
    ] + [MachineType("last", 3)]
    shapes = [
        Configuration({rng.choice("abc"): rng.randint(1, 3), rng.choice("abc"): 1}, machine.name)
        for machine in types
        for _ in range(2)
    ]
    shapes.append(Configuration({"a": 1, "b": 1, "c": 1}, "last"))
    job = Job("x", 9, {"a": 1, "b": 1, "c": 1})
    return Shapes(Problem(configurations=shapes, jobs=[job], machine_types=types), ())


def test_limits_that_no_machines_keep_are_none() -> None:
    shapes = Shapes(single({"a": 2}, 9, {"a": 1}, limit=3), ())
    assert filled(shapes, [7]) is None
    assert filled(shapes, [6]) == {shapes.shapes[0]: 3}
    # of fractional machines that are some too many no more are opened
    assert filled(shapes, [6], [Fraction(9)]) == {shapes.shapes[0]: 3}


@pytest.mark.parametrize("size", [50, 10**30, 10**400])
def test_machines_of_any_number_keep_the_limits(size: int) -> None:
    """Where the cheapest machines run out, others take over; those there are to be come first."""
    for number in range(40):
        rng = random.Random(number)
        shapes = random_shapes(rng)
        problem = shapes.problem
        load = [rng.randint(0, size) for _ in problem.blocks]
        around = [Fraction(rng.randint(0, 12), 4) for _ in shapes.shapes] if number % 2 else []
        machines = filled(shapes, load, around)
        assert machines is not None
        for block, need in zip(problem.blocks, load, strict=True):
            assert sum(n * shape.blocks.get(block, 0) for shape, n in machines.items()) >= need
        used = Counter[str | None]()
        for shape, n in machines.items():
            used[shape.machine] += n
        for machine in problem.machine_types:
            assert machine.limit is None or used[machine.name] <= machine.limit
        if around:
            assert machines.get(shapes.shapes[-1], 0) >= int(around[-1])
