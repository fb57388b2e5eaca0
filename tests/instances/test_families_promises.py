"""What families promise, recomputed another way: measured rows, limits, optima and bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench.rules import RULES
from cms import BlockPrices, Job, Status, check, solve
from cms.fleet.serving import Service, as_problem
from cms.problem.problem import Problem
from instances import published
from instances.families import generate
from instances.families.a100 import EXPONENTS
from instances.families.fleets import machines_for
from instances.families.machines import mig
from instances.families.measured import LONGEST, SHORTEST, measured_rows
from tests.references.programs import integer_program, minimum
from tests.samples import few, so_many

POINTS = [point for point in published.S1.operating_points if point.processes <= 3]

# -- measured rows -----------------------------------------------------------------------------


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


def test_rows_come_as_often_as_when_limits_are_drawn_one_by_one() -> None:
    rows, rng = measured_rows(), np.random.default_rng(8)
    models, number = sorted(set(rows.models)), 200_000
    which = rng.integers(0, len(models), number)
    limits = SHORTEST * (LONGEST / SHORTEST) ** rng.random(number)
    found = np.zeros(len(rows.models))
    for at, (model, (low, high)) in enumerate(zip(rows.models, rows.limits, strict=True)):
        mine = limits[which == models.index(model)]
        found[at] = ((mine > float(low)) & (mine <= float(high))).sum()
    expected = np.diff(rows.reach, prepend=0) * found.sum()
    # chi squared: as many degrees of freedom as rows, and a standard deviation of sqrt(2 rows)
    deviation = ((found - expected) ** 2 / expected).sum()
    assert deviation < len(found) + 5 * math.sqrt(2 * len(found))
    assert rows.reach[-1] == 1


def test_a_measured_share_gives_what_its_size_gave_and_lines_between() -> None:
    sevenths = generate("measured-shares", n=500, seed=1, step="100/7").rows.supplies
    known = np.maximum.accumulate(measured_rows().supply, axis=1)
    for row in sevenths[:, mig().slices - 1]:  # a size is 1/7 but for what a float has of it
        assert (abs(known - row) <= 1).all(axis=1).any()
    between = sevenths[:, 4] - (sevenths[:, 3] + (sevenths[:, 6] - sevenths[:, 3]) / 3)
    assert (abs(between) <= 1).all()


@pytest.mark.parametrize(("compute", "memory", "number"), [(5, 5, 31), (2, 5, 61), (1, 10, 92)])
def test_a_block_of_two_shares_takes_the_larger_one(compute: int, memory: int, number: int) -> None:
    problem = generate("memory-shares", n=500, seed=1, compute=compute, memory=memory)
    (shape,) = problem.size_bounded_configurations
    assert (shape.capacity, len(problem.blocks)) == (400, number)
    have = []
    for block in problem.blocks:
        percent, gb = (int(part.rstrip("%gb")) for part in block.split("-"))
        assert shape.sizes[block] == max(4 * percent, 5 * gb)
        assert percent % compute == gb % memory == 0 < min(percent, gb)
        have.append(gb)
    served = problem.rows.supplies > 0
    least = np.array(have)[served.argmax(axis=1)]
    assert least.max() <= 40
    assert (~served | (np.array(have) >= least[:, None])).all()


# -- demands, exponents ------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 5, 30])
def test_the_median_demand_is_so_many_sevenths_of_a_whole_gpu(m: int) -> None:
    problem = generate("real-rows", n=20_000, seed=3, m=m)
    sevenths = np.log(7 * problem.rows.demands / problem.rows.supplies[:, -1])
    assert np.median(sevenths) == pytest.approx(math.log(m), abs=0.02)
    assert np.std(sevenths) == pytest.approx(0.5, abs=0.02)


def test_figures_from_measurements_are_what_was_measured() -> None:
    for scenario in (published.S3, published.S4):
        problem = scenario.as_problem().problem
        whole = problem.block_index["7g.80gb"]
        logs = [
            math.log(problem.rows.demand(j) / problem.rows.supply(j, whole))
            for j in range(problem.n_jobs)
        ]
        assert stdev(logs) == pytest.approx(0.56, abs=0.005)
    gains = {}
    for model in {point.model for point in POINTS}:
        small, large = (
            max(p.throughput_rps for p in POINTS if (p.model, p.profile) == (model, profile))
            for profile in ("1g.10gb", "7g.80gb")
        )
        gains[model] = math.log(large / small) / math.log(7)
    assert min(gains, key=lambda model: gains[model]) == "bert"
    assert max(gains, key=lambda model: gains[model]) == "densenet169"
    measured = gains["bert"], gains["densenet169"]
    assert measured == pytest.approx((0.68, 1.34), abs=0.005)
    assert measured == pytest.approx(EXPONENTS, abs=0.05)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rates", ["normal", "lognormal"])
def test_24_services_need_some_15_to_40_gpus(rates: str, seed: int) -> None:
    solution = solve(generate("mig-serving", n=24, seed=seed, rates=rates), time_limit=None)
    assert solution.status is Status.OPTIMAL
    assert 15 <= (solution.cost or 0) <= 40


# -- fleets ------------------------------------------------------------------------------------


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


@given(st.lists(st.integers(0, 9), min_size=5, max_size=5))
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
    prices: NDArray[np.float64]


def held(problem: Problem) -> NDArray[np.int64]:
    """Blocks of each listed configuration, shape (c, k)."""
    return np.array(
        [[c.blocks.get(b, 0) for b in problem.blocks] for c in problem.listed_configurations]
    )


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


@pytest.mark.parametrize("types", [1, 2, 5])
@pytest.mark.parametrize("n", few(2, [2, 40, 1, 10, 3]))
def test_an_infeasible_fleet_is_proved_so_by_prices_and_falls_short_by_little(
    types: int, n: int
) -> None:
    for seed in range(so_many(2, 4)):
        problem = generate("mixed-fleet-infeasible", n=n, seed=seed, types=types)
        shapes = held(problem)
        fluid = least_fleet(problem)
        assert 1.02 <= fluid.share <= (1.32 if n >= 40 else 1.45)
        prices = [Fraction(round(price * 10**9), 10**9) for price in fluid.prices]
        worth = {machine.name: Fraction(0) for machine in problem.machine_types}
        for shape, counts in zip(problem.listed_configurations, shapes.tolist(), strict=True):
            value = sum((p * q for p, q in zip(prices, counts, strict=True)), Fraction(0))
            worth[str(shape.machine)] = max(worth[str(shape.machine)], value)
        proof = BlockPrices(dict(zip(problem.blocks, prices, strict=True)), worth)
        assert proof.proves_infeasible(problem)
        # each job by itself could be served
        amounts = problem.rows.supplies @ shapes.T
        most = np.zeros(n, dtype=np.int64)
        for machine in problem.machine_types:
            assert machine.limit
            mine = [s.machine == machine.name for s in problem.listed_configurations]
            most += machine.limit * amounts[:, mine].max(axis=1)
        assert n == 1 or (most >= problem.rows.demands).all()


# -- rounding ----------------------------------------------------------------------------------


def test_a_hair_is_met_exactly_or_missed_by_one_unit() -> None:
    rows = generate("rounding", n=60, seed=1, kind="hair").rows
    missed = 0
    for row in (rows.row(j) for j in range(60)):
        reached, latest = {0}, {0}
        while latest:
            sums = {a + f for a in latest for f in row.supply if f and a + f <= row.demand}
            latest = sums - reached
            reached |= latest
        assert row.demand - 1 in reached or row.demand in reached
        missed += row.demand not in reached
    assert 25 <= missed <= 55


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
    assert bound == sum(size * count for size, count in zip(sizes, counts, strict=True)) / Fraction(
        132
    )
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


# -- cutting stock -----------------------------------------------------------------------------


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
        sizes, wanted, capacity = pieces(
            generate("stock-residual", n=n, seed=seed, low=low, high=high)
        )
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
