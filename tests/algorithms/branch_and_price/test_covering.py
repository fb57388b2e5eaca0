"""Machines that hold given blocks: fractional ones, and whole ones of any number."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from algorithms.branch_and_price.shapes import Shapes, covering, filled
from cms import Configuration, Job, MachineType, Problem
from tests.algorithms.branch_and_price.parts import single
from tests.references.programs import minimum
from tests.samples import so_many


def shapes_of(problem: Problem) -> Shapes:
    return Shapes(problem, ())


def random_shapes(rng: random.Random, *, limits: bool) -> Shapes:
    types = [
        MachineType(
            f"t{at}", rng.choice(["0", "1", "2", "1/3"]), rng.randint(0, 9) if limits else None
        )
        for at in range(2)
    ] + [MachineType("last", 3)]
    shapes = [
        Configuration({rng.choice("abc"): rng.randint(1, 3), rng.choice("abc"): 1}, machine.name)
        for machine in types
        for _ in range(2)
    ]
    shapes.append(Configuration({"a": 1, "b": 1, "c": 1}, "last"))
    job = Job("x", 9, {"a": 1, "b": 1, "c": 1})
    return shapes_of(Problem(configurations=shapes, jobs=[job], machine_types=types))


def by_scipy(shapes: Shapes, load: list[int]) -> float:
    table = -np.array(shapes.counts, dtype=np.float64).T
    limits = [[float(c in mine) for c in range(len(shapes))] for _, mine in shapes.limited]
    load_and_limits = [*(-need for need in load), *(limit for limit, _ in shapes.limited)]
    rows = np.vstack([table, np.array(limits).reshape(-1, len(shapes))])
    return float(minimum(shapes.costs, rows, load_and_limits).fun)


@pytest.mark.parametrize("size", [5, 1000, 10**9])
def test_the_cheapest_fractional_machines_hold_the_load(size: int) -> None:
    for number in range(so_many(15, 40)):
        rng = random.Random(number)
        shapes = random_shapes(rng, limits=number % 2 == 1)
        load = [rng.randint(0, size) for _ in shapes.problem.blocks]
        machines = covering(shapes, load)
        assert machines is not None
        assert min(machines) >= 0
        near = Fraction(size, 10**6)
        for i, need in enumerate(load):
            has = sum(x * counts[i] for x, counts in zip(machines, shapes.counts, strict=True))
            assert has >= need - near
        for limit, mine in shapes.limited:
            assert sum(machines[c] for c in mine) <= limit + near
        paid = sum(x * cost for x, cost in zip(machines, shapes.costs, strict=True))
        assert float(paid) == pytest.approx(by_scipy(shapes, load), rel=1e-6, abs=1e-6)


def test_limits_that_no_machines_keep_are_none() -> None:
    shapes = shapes_of(single({"a": 2}, 9, {"a": 1}, limit=3))
    assert covering(shapes, [7]) is None
    assert covering(shapes, [6]) == [3]
    assert filled(shapes, [7], None) is None
    assert filled(shapes, [6], None) == (3,)


def holds(shapes: Shapes, load: list[int], machines: tuple[int, ...] | None) -> bool:
    if machines is None:
        return False
    enough = all(
        sum(n * counts[i] for n, counts in zip(machines, shapes.counts, strict=True)) >= need
        for i, need in enumerate(load)
    )
    within = all(sum(machines[c] for c in mine) <= limit for limit, mine in shapes.limited)
    return enough and within and min(machines) >= 0


@pytest.mark.parametrize("size", [50, 10**30])
def test_machines_of_any_number_keep_the_limits(size: int) -> None:
    """Where the cheapest machines run out, others take over."""
    for number in range(40):
        rng = random.Random(number)
        shapes = random_shapes(rng, limits=True)
        load = [rng.randint(0, size) for _ in shapes.problem.blocks]
        assert holds(shapes, load, filled(shapes, load, covering(shapes, load))), number


@pytest.mark.parametrize("exponent", [30, 308, 309, 400])
def test_fractional_machines_for_numbers_no_float_holds(exponent: int) -> None:
    shapes = shapes_of(single({"a": 2}, 10**exponent, {"a": 1}))
    machines = covering(shapes, [10**exponent])
    assert machines is not None
    (number,) = machines
    assert abs(number / 10**exponent - Fraction(1, 2)) <= Fraction(1, 10**9)
