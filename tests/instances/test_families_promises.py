"""What families promise, recomputed another way: measured rows, limits, optima and bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.rules import RULES
from cms import BlockPrices, MachineType, Proof, Status, check, solve
from cms.fleet.serving import Service, as_problem
from cms.problem.problem import Problem
from instances import published
from instances.families import generate
from instances.families.machines import mig
from instances.families.measured import measured_rows
from tests.samples import few, so_many

POINTS = [point for point in published.S1.operating_points if point.processes <= 3]


def test_the_measured_rows_are_what_the_serving_layer_makes_of_their_limits() -> None:
    rows = measured_rows()
    services = [
        Service(f"{at}-{end}", model, rate_rps=1, latency_limit_ms=limit)
        for at, (model, (low, high)) in enumerate(zip(rows.models, rows.limits, strict=True))
        for end, limit in (("first", low + Fraction(1, 10**6)), ("last", high))
    ]
    problem = as_problem(services, POINTS, rule="parvagpu").problem
    columns = [problem.block_index[block] for block in mig().blocks]
    for j, service in enumerate(services):
        row = problem.rows.row(j)
        made = [Fraction(1000 * row.supply[i], row.denominator) for i in columns]
        assert made == rows.supply[int(service.name.split("-")[0])].tolist()


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("mixed-fleet", {"types": 5}),
        ("cluster-fleet", {"serving": "pods", "types": 3, "blocks": 12, "kinds": 5}),
        ("cluster-fleet", {"serving": "rates", "types": 3, "blocks": 12, "kinds": 5}),
    ],
)
def test_tight_limits_can_serve_and_ample_ones_are_twice_as_many(
    name: str, more: dict[str, Any]
) -> None:
    for seed in range(so_many(2, 6)):
        none, ample, tight = (
            generate(name, n=20, seed=seed, limits=limits, **more)
            for limits in ("none", "ample", "tight")
        )
        limits = [machine.limit or 0 for machine in tight.machine_types]
        assert [machine.limit for machine in ample.machine_types] == [2 * n for n in limits]
        assert (none.rows.supplies == tight.rows.supplies).all()
        assert (none.rows.demands == tight.rows.demands).all()
        assert {machine.limit for machine in none.machine_types} == {None}
        solution = solve(tight, time_limit=None, gap=1000)
        assert solution.status in (Status.OPTIMAL, Status.FEASIBLE)
        assert not check(tight, solution.schedule)


def held(problem: Problem) -> NDArray[np.int64]:
    """Blocks of each listed configuration, shape (c, k)."""
    return np.array(
        [[c.blocks.get(b, 0) for b in problem.blocks] for c in problem.listed_configurations]
    )


@pytest.mark.parametrize("types", [1, 2, 5])
@pytest.mark.parametrize("n", few(2, [2, 40, 1, 10, 3]))
def test_an_infeasible_fleet_is_proved_so_and_falls_short_by_little(types: int, n: int) -> None:
    for seed in range(so_many(2, 4)):
        problem = generate("mixed-fleet-infeasible", n=n, seed=seed, types=types)
        solution = solve(problem, time_limit=None)
        assert (solution.status, solution.proof) == (Status.INFEASIBLE, Proof.CHECKED)
        twice = [MachineType(m.name, m.cost, 2 * (m.limit or 0) + 1) for m in problem.machine_types]
        assert solve(problem.replace(machine_types=twice), time_limit=None, gap=1000).cost


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_a_full_schedule_meets_a_bound_that_is_whole(n: int) -> None:
    # Sevenths for slices: what a machine without waste is worth is its cost.
    prices = zip(mig().blocks, mig().slices.tolist(), strict=True)
    proof = BlockPrices({block: Fraction(int(size), 7) for block, size in prices})
    problem = generate("rounding", n=n, seed=n, kind="full")
    assert solve(problem, time_limit=None).cost == proof.bound(problem)
    assert proof.bound(generate("rounding", n=100 * n, seed=1, kind="full")).denominator == 1


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_triplets_need_a_bin_for_three_items(n: int) -> None:
    for name, more in (("rounding", {"kind": "triplets"}), ("stock-triplets", {})):
        problem = generate(name, n=n, seed=n, **more)
        (shape,) = problem.size_bounded_configurations
        assert all(250 <= size < 500 for size in shape.sizes.values())
        assert solve(problem, time_limit=None).cost == math.ceil(n / 3)


@pytest.mark.parametrize("kind", ["non-irup", "non-irup-listed"])
@pytest.mark.parametrize("n", [3, 4, 30])
def test_the_gadgets_optimum_is_one_above_its_bound_rounded_up(kind: str, n: int) -> None:
    problem = generate("rounding", n=n, seed=2, kind=kind)
    rows, sizes = problem.rows, (44, 33, 12)
    needed = -(-rows.demands // rows.supplies.max(axis=1))
    of = rows.supplies.argmax(axis=1)
    counts = [int(needed[of == i].sum()) for i in range(3)]
    assert [c % q for c, q in zip(counts, (3, 4, 11), strict=True)] == [2, 3, 6]
    parts = dict(zip(problem.blocks, (Fraction(size, 132) for size in sizes), strict=True))
    bound = BlockPrices(parts).bound(problem)
    assert bound == Fraction(int(np.dot(sizes, counts)), 132)
    if n < 10:
        assert solve(problem, time_limit=None).cost == math.ceil(bound) + 1
    if kind == "non-irup":
        (shape,) = problem.size_bounded_configurations
        assert {b: size / shape.capacity for b, size in shape.sizes.items()} == parts
        return
    every = itertools.product(range(4), range(5), range(12))
    fits = [c for c in every if np.dot(c, sizes) <= 132]
    maximal = [c for c in fits if 132 - np.dot(c, sizes) < 12]
    assert sorted(map(tuple, held(problem).tolist())) == maximal


def pieces(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Each job's size and how many pieces it wants, and the capacity."""
    (shape,) = problem.size_bounded_configurations
    supply = problem.rows.supplies
    assert ((supply > 0).sum(axis=1) == 1).all()
    assert set(supply.ravel().tolist()) <= {0, 1}
    sizes = np.array([int(shape.sizes[block]) for block in problem.blocks])
    return sizes[supply.argmax(axis=1)], problem.rows.demands, int(shape.capacity)


@pytest.mark.parametrize("n", [2, 20, 100])
@pytest.mark.parametrize(("low", "high"), [("0.01", "0.25"), ("0.1", "0.5"), ("0.2", "0.7")])
def test_residual_pieces_fill_their_machines_but_for_a_few_units(
    n: int, low: str, high: str
) -> None:
    for seed in range(10):
        problem = generate("stock-residual", n=n, seed=seed, low=low, high=high)
        sizes, wanted, capacity = pieces(problem)
        assert wanted[:-1].max() <= 3
        assert -sizes @ wanted % capacity < wanted[-1]
        # the last job's length is as good as any: in the range, or between halves of it
        assert capacity * min(float(low), float(high) / 2) <= sizes[-1] + 1
        assert sizes[-1] <= capacity * float(high)


def test_divisible_sizes_divide_each_other_or_miss_that_by_so_many_units() -> None:
    for seed in range(5):
        problem = generate("stock-divisible", n=40, seed=seed, miss=0)
        sizes, wanted, capacity = pieces(problem)
        chain = [capacity, *np.unique(sizes)[::-1].tolist()]
        assert all(large % small == 0 for large, small in itertools.pairwise(chain))
        assert RULES["best_fit"].schedule(problem).machine_count == -(-(sizes @ wanted) // capacity)
    sizes, _, capacity = pieces(generate("stock-divisible", n=400, seed=1, miss=3))
    misses = {
        min((size - capacity // d for d in range(1, 101) if capacity % d == 0), key=abs)
        for size in np.unique(sizes).tolist()
    }
    assert misses == set(range(-3, 4))
