"""What blocks cost a job and a machine: minimal options, covers, whole machines, by definition."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.branch_and_price.covers import cover
from algorithms.branch_and_price.open_machines import filled
from algorithms.branch_and_price.options import minimal_options
from algorithms.branch_and_price.shapes import Shapes
from algorithms.prices.region import Region
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations
from cms.knapsack.packing import Packing
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.oracle import optimum


def _minimal_by_definition(
    prices: list[int], supply: list[int], demand: int, budget: int
) -> set[tuple[int, ...]]:
    ranges = [range((-(-demand // f) if f else 0) + 1) for f in supply]
    found = set()
    for option in itertools.product(*ranges):
        total = sum(f * n for f, n in zip(supply, option, strict=True))
        needed = all(total - f < demand for f, n in zip(supply, option, strict=True) if n)
        cost = sum(p * n for p, n in zip(prices, option, strict=True))
        if total >= demand and needed and cost <= budget:
            found.add(option)
    return found


@given(st.data())
def test_the_minimal_options_are_those_of_the_definition(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    prices = data.draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    supply = data.draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    demand, budget = data.draw(st.integers(1, 20)), data.draw(st.integers(0, 40))
    found = minimal_options(prices, supply, demand, budget, most=10**6)
    assert found is not None
    assert sorted(found) == sorted(_minimal_by_definition(prices, supply, demand, budget))


def test_options_that_are_too_many_are_given_up_at_once() -> None:
    # equal ratios: about 10**8 ways to mix the two types
    assert minimal_options([2, 3], [2, 3], 10**9, 10**9 + 10, most=100) is None


SCALE = 27720
pieces = st.lists(st.tuples(st.integers(2, 9), st.integers(1, 2)), min_size=1, max_size=3)


@given(pieces, st.integers(9, 14), st.integers(1, 3), st.booleans())
@example([(6, 1), (5, 2), (4, 2)], 12, 2, True)
def test_machines_are_found_within_a_cost_exactly_if_there_are_any(
    given: list[tuple[int, int]], capacity: int, most: int, limited: bool
) -> None:
    """Prices that sizes make lose what a machine is filled to less than its capacity."""
    sizes, wanted = zip(*sorted(dict(given).items()), strict=True)
    blocks = [f"b{i}" for i in range(len(sizes))]
    problem = Problem(
        configurations=SizeBoundedConfigurations(dict(zip(blocks, sizes, strict=True)), capacity),
        jobs=[Job(b, n, {b: 1}) for b, n in zip(blocks, wanted, strict=True)],
        machine_types=[MachineType("machine", limit=99)],
    )
    prices = [size * SCALE // capacity for size in sizes]
    slack = most * SCALE - sum(p * n for p, n in zip(prices, wanted, strict=True))
    room = [most if limited else None]
    found, none = cover(Region(problem), wanted, prices, [SCALE], slack, room, Unlimited())
    best = optimum(problem)
    assert best is not None
    assert (bool(found), none) == (best <= most, best > most)
    if found:
        assert len(found) <= most
        assert [*map(sum, zip(*(row.counts for row in found), strict=True))] == [*wanted]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(1, 14),
    st.none() | st.integers(1, 4),
    st.integers(0, 20),
)
def test_contents_worth_enough_are_listed_once_each(
    types: list[tuple[int, int]], capacity: int, max_blocks: int | None, least: int
) -> None:
    worth, sizes = zip(*types, strict=True)
    packing = Packing([Fraction(size) for size in sizes], Fraction(capacity), max_blocks)
    found, complete = packing.list_contents(worth, [3] * len(types), least, 10**6, 10**6)
    fitting = [
        counts
        for counts in product(range(4), repeat=len(types))
        if any(counts)
        and sum(map(int.__mul__, counts, sizes)) <= capacity
        and (max_blocks is None or sum(counts) <= max_blocks)
        and sum(map(int.__mul__, counts, worth)) >= least
    ]
    assert complete
    assert sorted(found) == sorted(fitting)


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
