"""What the families of fleets and those against rounding promise, checked in exact arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cms import BlockPrices, Job, Status, check, solve
from cms.problem.problem import Problem
from instances.families import generate
from instances.families.fleets import machines_for
from instances.families.machines import mig
from instances.hard import NON_IRUP
from tests.references.programs import integer_program, minimum
from tests.samples import few, so_many

Floats = NDArray[np.float64]


def held(problem: Problem) -> NDArray[np.int64]:
    """Blocks of each listed configuration, shape (c, k)."""
    return np.array(
        [[c.blocks.get(b, 0) for b in problem.blocks] for c in problem.listed_configurations]
    )


# -- fleets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("step", ["1/2", "1", "0.01"])
def test_a_fleet_has_five_blocks_a_type_and_costs_in_steps(types: int, step: str) -> None:
    costs = set()
    for seed in range(10):
        problem = generate("mixed-fleet", n=3, seed=seed, types=types, cost_step=step)
        assert len(problem.blocks) == 5 * types
        assert len(problem.machine_types) == types
        for machine in problem.machine_types:
            assert machine.cost > 0
            assert (machine.cost / Fraction(step)).denominator == 1
            assert machine.limit is None
            costs.add(machine.cost)
        for shape in problem.listed_configurations:
            assert all(block.startswith(f"{shape.machine}:") for block in shape.blocks)
    assert len(costs) > 1


def test_ample_limits_are_twice_the_tight_ones_of_the_same_problem() -> None:
    for seed in range(10):
        made = {
            limits: generate("mixed-fleet", n=20, seed=seed, types=5, limits=limits)
            for limits in ("none", "ample", "tight")
        }
        tight = [machine.limit for machine in made["tight"].machine_types]
        ample = [machine.limit for machine in made["ample"].machine_types]
        assert ample == [2 * limit for limit in tight if limit is not None]
        assert sum(limit for limit in tight if limit is not None) > 0
        assert (made["none"].rows.supplies == made["tight"].rows.supplies).all()
        assert (made["none"].rows.demands == made["tight"].rows.demands).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_fleet_with_tight_limits_has_a_schedule(seed: int) -> None:
    problem = generate("mixed-fleet", n=1 + seed // 2, seed=seed, types=2, limits="tight")
    solution = solve(problem, time_limit=None, gap=1000)
    assert solution.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert not check(problem, solution.schedule)


def test_tight_limits_leave_little_room() -> None:
    for seed in range(3):
        used = least_fleet(generate("mixed-fleet", n=100, seed=seed, limits="tight")).share
        assert 0.8 < used < 1


blocks_wanted = st.lists(st.integers(0, 9), min_size=5, max_size=5)


@given(blocks_wanted)
def test_the_plain_packing_takes_at_least_the_fewest_machines_and_few_more(
    blocks: list[int],
) -> None:
    names, shapes, types, *_ = mig()
    jobs = [Job(name, n, {name: 1}) for name, n in zip(names, blocks, strict=True)]
    least = integer_program(Problem(configurations=shapes, jobs=jobs, machine_types=types))
    assert least is not None
    assert least <= machines_for(np.array(blocks), mig()) <= 1.2 * least + 2


class Fluid(NamedTuple):
    """The least share of a fleet's limits that serves everything in fractions, and its prices."""

    share: float
    prices: Floats


def least_fleet(problem: Problem) -> Fluid:
    """Minimise the share of all limits, supply cut at the demand (LP_AGG)."""
    shapes, (n, k) = held(problem), problem.rows.supplies.shape
    c = len(shapes)
    demand = problem.rows.demands.astype(float)
    cut = np.minimum(problem.rows.supplies, problem.rows.demands[:, None]) / demand[:, None]
    blocks = np.hstack([-shapes.T, np.kron(np.ones(n), np.eye(k)), np.zeros((k, 1))])
    served = np.zeros((n, n * k))
    for j in range(n):
        served[j, j * k : (j + 1) * k] = -cut[j]
    jobs = np.hstack([np.zeros((n, c)), served, np.zeros((n, 1))])
    of_type = np.array(
        [
            [float(shape.machine == machine.name) for shape in problem.listed_configurations]
            for machine in problem.machine_types
        ]
    )
    limit = np.array([[float(machine.limit or 0)] for machine in problem.machine_types])
    limits = np.hstack([of_type, np.zeros((len(limit), n * k)), -limit])
    cost = np.zeros(c + n * k + 1)
    cost[-1] = 1
    right = [*np.zeros(k), *-np.ones(n), *np.zeros(len(limit))]
    found = minimum(cost, np.vstack([blocks, jobs, limits]), right)
    return Fluid(found.fun, -found.ineqlin.marginals[:k])


@pytest.mark.parametrize("types", [1, 2, 3, 5])
@pytest.mark.parametrize("n", few(2, [1, 10, 3, 2, 40]))
@pytest.mark.parametrize("seeds", few(1, [range(2), range(2, 4)]))
def test_an_infeasible_fleet_is_proved_so_by_prices_and_falls_short_by_little(
    seeds: range, types: int, n: int
) -> None:
    for seed in seeds:
        problem = generate("mixed-fleet-infeasible", n=n, seed=seed, types=types)
        fluid = least_fleet(problem)
        assert 1.02 <= fluid.share <= 1.45
        if n >= 40:
            assert fluid.share <= 1.32
        prices = [Fraction(round(price * 10**9), 10**9) for price in fluid.prices]
        worth = {machine.name: Fraction(0) for machine in problem.machine_types}
        for shape in problem.listed_configurations:
            assert shape.machine
            value = sum(prices[problem.block_index[b]] * q for b, q in shape.blocks.items())
            worth[shape.machine] = max(worth[shape.machine], Fraction(value))
        proof = BlockPrices(dict(zip(problem.blocks, prices, strict=True)), worth)
        assert proof.proves_infeasible(problem)


@pytest.mark.parametrize("types", [1, 3, 5])
def test_each_job_of_an_infeasible_fleet_could_be_served_alone(types: int) -> None:
    for n, seed in itertools.product((2, 3, 10), range(so_many(3, 30))):
        parameters: dict[str, Any] = {"m": (1, 5, 30)[seed % 3], "shortage": ("0.3", 1)[seed % 2]}
        problem = generate("mixed-fleet-infeasible", n=n, seed=seed, types=types, **parameters)
        amounts = problem.rows.supplies @ held(problem).T  # what a machine can give a job
        most = np.zeros(n, dtype=np.int64)
        for machine in problem.machine_types:
            assert machine.limit
            mine = [s.machine == machine.name for s in problem.listed_configurations]
            most += machine.limit * amounts[:, mine].max(axis=1)
        assert (most >= problem.rows.demands).all()


@pytest.mark.parametrize("m", [1, 5, 30])
def test_the_shortage_follows_its_parameter(m: int) -> None:
    shares = [
        least_fleet(generate("mixed-fleet-infeasible", n=60, seed=s, shortage="0.04", m=m)).share
        for s in range(4)
    ]
    assert 1.02 <= min(shares)
    assert max(shares) < 1.06


# -- rounding ----------------------------------------------------------------------------------


def sums(supply: tuple[int, ...], most: int) -> set[int]:
    """Every amount up to a limit that some blocks give."""
    found, latest = {0}, {0}
    while latest:
        latest = {a + f for a in latest for f in supply if f and a + f <= most} - found
        found |= latest
    return found


def test_a_hair_is_met_exactly_or_missed_by_one_unit() -> None:
    rows = generate("rounding", n=60, seed=1, kind="hair").rows
    missed = 0
    for j in range(60):
        row = rows.row(j)
        reached = sums(row.supply, row.demand)
        assert row.demand - 1 in reached or row.demand in reached
        missed += row.demand not in reached
        assert max(row.supply) > 10_000
    assert 25 <= missed <= 55


def test_one_block_type_serves_a_job_and_one_to_three_blocks_are_needed() -> None:
    rows = generate("rounding", n=300, seed=1, kind="one-block").rows
    assert ((rows.supplies > 0).sum(axis=1) == 1).all()
    needed = -(-rows.demands // rows.supplies.max(axis=1))
    assert set(needed.tolist()) == {1, 2, 3}


def sizes_as_prices(problem: Problem) -> BlockPrices:
    """Sevenths for slices: what a machine without waste is worth is its cost."""
    return BlockPrices(
        {b: Fraction(int(s), 7) for b, s in zip(problem.blocks, mig().slices.tolist(), strict=True)}
    )


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_a_full_schedule_meets_a_bound_that_is_whole(n: int) -> None:
    for seed in range(3):
        problem = generate("rounding", n=n, seed=seed, kind="full")
        solution = solve(problem, time_limit=None)
        assert solution.cost == sizes_as_prices(problem).bound(problem)


@pytest.mark.parametrize("n", [50, 1000])
def test_the_bound_of_a_full_schedule_is_whole_at_any_size(n: int) -> None:
    problem = generate("rounding", n=n, seed=1, kind="full")
    bound = sizes_as_prices(problem).bound(problem)
    assert bound.denominator == 1
    assert bound >= math.ceil(5 * n / 7)


@pytest.mark.parametrize("n", [1, 3, 4, 6, 9])
def test_triplets_need_a_bin_for_three_items(n: int) -> None:
    for seed in range(2):
        problem = generate("rounding", n=n, seed=seed, kind="triplets")
        assert solve(problem, time_limit=None).cost == math.ceil(n / 3)


def test_an_item_of_a_triplet_is_between_a_quarter_and_half_of_a_bin() -> None:
    for seed in range(200):
        problem = generate("rounding", n=3, seed=seed, kind="triplets")
        (shape,) = problem.size_bounded_configurations
        assert shape.capacity == 1000
        assert all(250 < size < 500 for size in shape.sizes.values())
        assert list(shape.sizes.values()) == sorted(shape.sizes.values())
        served = problem.rows.supplies > 0  # by blocks of its size and larger ones
        assert (np.diff(served.astype(int), axis=1) >= 0).all()


def gadget(problem: Problem) -> tuple[int, ...]:
    """How many blocks of each size the jobs need."""
    rows = problem.rows
    needed = -(-rows.demands // rows.supplies.max(axis=1))
    assert ((rows.supplies > 0).sum(axis=1) == 1).all()
    kind = rows.supplies.argmax(axis=1)
    return tuple(int(needed[kind == i].sum()) for i in range(3))


def patterns() -> Iterator[tuple[int, int, int]]:
    """All contents of a machine of 132 in 44, 33 and 12, with at most 5 left."""
    for x, y, z in itertools.product(range(4), range(5), range(12)):
        if 0 <= 132 - 44 * x - 33 * y - 12 * z <= 5:
            yield x, y, z


@pytest.mark.parametrize("kind", ["non-irup", "non-irup-listed"])
@pytest.mark.parametrize("n", [3, 4, 30, 200])
def test_the_gadget_is_a_known_one_and_whole_machines(kind: str, n: int) -> None:
    for seed in range(5):
        counts = gadget(generate("rounding", n=n, seed=seed, kind=kind))
        assert [c % q for c, q in zip(counts, (3, 4, 11), strict=True)] == [2, 3, 6]


def test_the_gadget_has_no_schedule_at_its_bound() -> None:
    # With the bound's machines 5 of their sizes stay empty: all but one of them are filled by one
    # size alone, and no pattern of at most 5 left over makes up for that.
    alone = {(3, 0, 0), (0, 4, 0), (0, 0, 11)}
    others = set(patterns()) - alone
    assert others == {(1, 0, 7), (0, 1, 8)}
    left = [132 - 44 * x - 33 * y - 12 * z for x, y, z in others]
    assert 2 * min(left) > 5
    reached = [(0, 0, 0), *((x % 3, y % 4, z % 11) for x, y, z in others)]
    assert (2, 3, 6) not in reached


@pytest.mark.parametrize("kind", ["non-irup", "non-irup-listed"])
def test_the_gadgets_optimum_is_one_above_its_bound_rounded_up(kind: str) -> None:
    problem = generate("rounding", n=4, seed=2, kind=kind)
    sizes = dict(zip(problem.blocks, (44, 33, 12), strict=True))
    if kind == "non-irup":
        (shape,) = problem.size_bounded_configurations
        scale = shape.capacity / 132
        assert {b: size / scale for b, size in shape.sizes.items()} == sizes
    bound = BlockPrices({b: Fraction(s, 132) for b, s in sizes.items()}).bound(problem)
    counts = gadget(problem)
    assert bound == Fraction(44 * counts[0] + 33 * counts[1] + 12 * counts[2], 132)
    assert solve(problem, time_limit=None).cost == math.ceil(bound) + 1


def test_the_gadget_is_the_published_one() -> None:
    (shape,) = NON_IRUP.make().size_bounded_configurations
    assert sorted(shape.sizes.values()) == [12, 33, 44]
    assert shape.capacity == 132


def test_the_listed_gadget_lists_all_maximal_contents() -> None:
    problem = generate("rounding", n=3, seed=1, kind="non-irup-listed")
    found = {tuple(row) for row in held(problem).tolist()}
    every: Any = itertools.product(range(4), range(5), range(12))
    fits = {c for c in every if 44 * c[0] + 33 * c[1] + 12 * c[2] <= 132}
    maximal = {
        c
        for c in fits
        if not any(all(a <= b for a, b in zip(c, d, strict=True)) and c != d for d in fits)
    }
    assert found == maximal
    assert len(problem.configurations) == len(found)
