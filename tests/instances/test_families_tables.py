"""What the families on one machine type promise: measured rows, tables, shares."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cms.fleet.serving import Service, as_problem
from cms.problem.parts import Configuration
from cms.problem.problem import Problem
from instances import published
from instances.families import generate
from instances.families.machines import A100, mig
from instances.families.measured import LONGEST, SHORTEST, measured_rows

POINTS = [point for point in published.S1.operating_points if point.processes <= 3]


def ratios(problem: Problem) -> NDArray[np.float64]:
    """What one slice of each block gives, relative to a slice of the smallest."""
    supply = problem.rows.supplies / mig().slices
    each: NDArray[np.float64] = supply / supply[:, :1]
    return each


# -- real rows ---------------------------------------------------------------------------------


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


def test_the_rows_of_a_model_cover_all_limits_under_which_a_whole_gpu_serves() -> None:
    rows = measured_rows()
    covered: dict[str, list[tuple[Fraction, Fraction]]] = defaultdict(list)
    for model, limits in zip(rows.models, rows.limits, strict=True):
        covered[model].append(limits)
    fastest = {
        p.model: min(o.latency_ms for o in POINTS if (o.model, o.profile) == (p.model, "7g.80gb"))
        for p in POINTS
    }
    assert covered.keys() == fastest.keys()
    assert len(covered) == 11
    for model, mine in covered.items():
        assert mine[0][0] == max(fastest[model] / Fraction(9, 20), Fraction(SHORTEST))
        assert mine[-1][1] == LONGEST
        assert all(a[1] == b[0] for a, b in itertools.pairwise(mine))


def test_rows_come_as_often_as_when_limits_are_drawn_one_by_one() -> None:
    rows, rng = measured_rows(), np.random.default_rng(8)
    models, number = sorted(set(rows.models)), 200_000
    which = rng.integers(0, len(models), number)
    limits = SHORTEST * (LONGEST / SHORTEST) ** rng.random(number)
    found = np.zeros(len(rows.models))
    for at, (model, (low, high)) in enumerate(zip(rows.models, rows.limits, strict=True)):
        mine = limits[which == models.index(model)]
        found[at] = ((mine > float(low)) & (mine <= float(high))).sum()
    chances = np.diff(rows.reach, prepend=0)
    expected = chances * found.sum()
    # chi squared: as many degrees of freedom as rows, and a standard deviation of sqrt(2 rows)
    deviation = ((found - expected) ** 2 / expected).sum()
    assert deviation < len(found) + 5 * math.sqrt(2 * len(found))
    assert rows.reach[-1] == 1


@pytest.mark.parametrize("m", [1, 5, 30])
def test_the_median_demand_is_so_many_sevenths_of_a_whole_gpu(m: int) -> None:
    problem = generate("real-rows", n=20_000, seed=3, m=m)
    sevenths = np.log(7 * problem.rows.demands / problem.rows.supplies[:, -1])
    assert np.median(sevenths) == pytest.approx(math.log(m), abs=0.02)
    assert np.std(sevenths) == pytest.approx(0.5, abs=0.02)


def test_the_spread_of_demands_is_about_that_of_the_published_scenarios() -> None:
    for scenario in (published.S3, published.S4):
        problem = scenario.as_problem().problem
        whole = problem.block_index["7g.80gb"]
        logs = [
            math.log(problem.rows.demand(j) / problem.rows.supply(j, whole))
            for j in range(problem.n_jobs)
        ]
        assert stdev(logs) == pytest.approx(0.56, abs=0.005)


def test_without_spread_the_demand_is_exactly_so_many_sevenths() -> None:
    rows = generate("real-rows", n=500, seed=1, m=14, sigma=0).rows
    assert (rows.demands == 2 * rows.supplies[:, -1]).all()


def test_an_a100_has_the_catalogues_configurations() -> None:
    problem = generate("real-rows", n=1, seed=1)
    assert [machine.name for machine in problem.machine_types] == [A100]
    assert len(problem.configurations) == 12


# -- tables ------------------------------------------------------------------------------------


def test_arbitrary_tables_reach_their_largest_entry_and_have_no_empty_row() -> None:
    for largest in (1, 100):
        supply = generate("arbitrary", n=5000, seed=1, largest=largest).rows.supplies
        assert (supply.min(), supply.max()) == (0, largest)
        assert supply.any(axis=1).all()
        assert np.corrcoef(supply[:, 0], supply[:, 4])[0, 1] < 0.1


def test_a_sparse_job_is_served_by_one_or_two_block_types() -> None:
    supply = generate("sparse", n=2000, seed=1).rows.supplies
    served = Counter((supply > 0).sum(axis=1).tolist())
    assert served.keys() == {1, 2}
    assert served[1] == pytest.approx(1000, abs=100)
    assert ((supply > 0).sum(axis=0) > 400).all()


def test_near_ties_are_off_by_at_most_one_part_in_a_thousand() -> None:
    off = np.abs(ratios(generate("near-ties", n=2000, seed=1)) - 1).max(axis=1)
    assert off.max() <= 2 / 999
    decades = Counter(np.floor(np.log10(np.maximum(off, 1e-9))).astype(int).tolist())
    assert {-3, -4, -5, -6} <= decades.keys()
    assert generate("near-ties", n=2000, seed=1).rows.supplies.max() <= 1_052_000


def test_supply_grows_faster_or_slower_than_size() -> None:
    faster = np.log(ratios(generate("superlinear", n=2000, seed=1))[:, -1]) / math.log(7)
    slower = np.log(ratios(generate("sublinear", n=2000, seed=1))[:, -1]) / math.log(7)
    # e - 1 is uniform from 0 to 0.35, from -0.4 to 0
    assert faster.mean() == pytest.approx(0.175, abs=0.02)
    assert slower.mean() == pytest.approx(-0.2, abs=0.02)
    smooth = ratios(generate("superlinear", n=500, seed=1, exponent=2, noise=0))
    assert (np.diff(smooth, axis=1) > -0.02).all()


def test_the_range_of_exponents_is_about_what_was_measured() -> None:
    best = {
        (p.model, p.profile): max(
            o.throughput_rps for o in POINTS if (o.model, o.profile) == (p.model, p.profile)
        )
        for p in POINTS
    }
    gains = {
        model: math.log(best[model, "7g.80gb"] / best[model, "1g.10gb"]) / math.log(7)
        for model, _ in best
    }
    assert min(gains, key=lambda model: gains[model]) == "bert"
    assert max(gains, key=lambda model: gains[model]) == "densenet169"
    assert gains["bert"] == pytest.approx(0.68, abs=0.005)
    assert gains["densenet169"] == pytest.approx(1.34, abs=0.005)


@pytest.mark.parametrize(("low", "high"), [(6, 12), (3, 6), (17, 18)])
def test_huge_demands_spread_evenly_over_their_decades(low: int, high: int) -> None:
    problem = generate("huge-demands", n=3000, seed=1, low=low, high=high)
    demands = problem.rows.demands
    assert demands.min() >= 10**low
    assert demands.max() <= 10**high
    decades = Counter(len(str(d)) - 1 for d in demands.tolist())
    for decade in range(low, high):
        assert decades[decade] == pytest.approx(3000 / (high - low), rel=0.2)


@pytest.mark.parametrize("kinds", [1, 5, 20])
def test_equal_jobs_come_in_so_many_kinds(kinds: int) -> None:
    rows = generate("equal-jobs", n=1000, seed=1, kinds=kinds).rows
    counts = Counter(rows.row(j) for j in range(1000))
    assert len(counts) == kinds
    assert min(counts.values()) > 500 / kinds


@pytest.mark.parametrize(("k", "number"), [(1, 1), (5, 10), (30, 4)])
def test_every_block_is_in_some_random_configuration(k: int, number: int) -> None:
    for seed in range(20):
        problem = generate(
            "random-configurations", n=50, seed=seed, k=k, configurations=number, largest=3
        )
        shapes = problem.listed_configurations
        assert len(shapes) == number
        assert len(problem.blocks) == k
        assert {block for shape in shapes for block in shape.blocks} == set(problem.blocks)
        if k == 5:
            assert all(1 <= sum(shape.blocks.values()) <= 8 + k for shape in shapes)
        assert problem.rows.supplies.max() <= 3


# -- shares ------------------------------------------------------------------------------------


def test_shares_are_size_bounded_and_give_a_concave_increasing_supply() -> None:
    problem = generate("size-bounded", n=500, seed=1, floor=5)
    (shape,) = problem.size_bounded_configurations
    assert len(problem.configurations) == 1
    assert len(problem.blocks) == 20
    assert [shape.sizes[block] for block in problem.blocks] == list(range(5, 101, 5))
    assert shape.capacity == 100
    supply = problem.rows.supplies
    steps = np.diff(supply, axis=1, prepend=0)
    assert (steps >= 0).all()
    assert (np.diff(steps, axis=1) <= 2).all()  # rounding moves a step by at most 1 at each end
    assert np.std(supply[:, 0] / supply[:, -1]) > 0.05  # the curves differ


@pytest.mark.parametrize("step", [1, 15, 50])
def test_shares_come_in_steps(step: int) -> None:
    problem = generate("size-bounded", n=300, seed=1, step=step)
    (shape,) = problem.size_bounded_configurations
    assert [shape.sizes[block] for block in problem.blocks] == list(range(step, 101, step))
    assert (problem.rows.supplies[:, -1] > 0).all()


def test_the_demand_of_shares_is_measured_by_the_best_way_to_fill_a_gpu() -> None:
    rows = generate("size-bounded", n=200, seed=1, m=14, sigma=0).rows
    copies = np.array([100 // share for share in range(5, 101, 5)])
    assert (rows.demands == 2 * (rows.supplies * copies).max(axis=1)).all()


@pytest.mark.parametrize("floor", [5, 10, 50, 100])
def test_half_of_the_jobs_get_nothing_from_too_small_a_share(floor: int) -> None:
    problem = generate("size-bounded", n=2000, seed=1, floor=floor)
    served = problem.rows.supplies > 0
    least = 5 * (1 + served.argmax(axis=1))
    assert (np.diff(served.astype(int), axis=1) >= 0).all()  # once served, always served
    assert (least.min(), least.max()) == (5, floor)
    expected = 1 if floor == 5 else 0.5 + 0.5 / (floor // 5)
    assert (least == 5).mean() == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(("cost", "exactly"), [(1, 1), ("3/2", Fraction(3, 2)), (0.9, "0.9")])
def test_mixed_shares_stand_beside_an_a100_of_its_own_cost(cost: Any, exactly: Any) -> None:
    problem = generate("size-bounded-mixed", n=300, seed=1, mig_cost=cost)
    shared, whole = problem.machine_types
    assert (shared.cost, whole.cost) == (1, Fraction(exactly))
    assert len(problem.blocks) == 25
    listed = [shape for shape in problem.configurations if isinstance(shape, Configuration)]
    assert [shape.machine for shape in listed] == [whole.name] * 12
    assert [shape.machine for shape in problem.size_bounded_configurations] == [shared.name]
    supply = problem.rows.supplies
    assert (0.89 <= supply[:, -1] / supply[:, 19]).all()
    assert (supply[:, -1] / supply[:, 19] <= 1.31).all()
