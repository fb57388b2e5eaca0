"""What the families of machines cut at will promise: sizes, pieces, curves, costs and limits."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.rules import RULES
from cms import Problem, Status, solve
from instances.families import generate
from instances.families.machines import mig
from instances.families.measured import measured_rows
from tests.samples import few


def pieces(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Each job's size and how many pieces it wants, and the capacity."""
    (shape,) = problem.size_bounded_configurations
    supply = problem.rows.supplies
    assert ((supply > 0).sum(axis=1) == 1).all()
    assert set(supply.ravel().tolist()) <= {0, 1}
    sizes = np.array([int(shape.sizes[block]) for block in problem.blocks])
    return sizes[supply.argmax(axis=1)], problem.rows.demands, int(shape.capacity)


# --- bin packing and cutting stock ----------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 61, 62, 249])
def test_triplets_fill_their_bins_exactly(n: int) -> None:
    sizes, wanted, capacity = pieces(generate("stock-triplets", n=n, seed=1))
    assert capacity == 1000
    assert (wanted == 1).all()
    assert (sizes.min() >= 250) & (sizes.max() < 500)
    assert -(-sizes.sum() // capacity) == -(-n // 3)
    if n % 3 == 0:
        assert sizes.sum() == capacity * n // 3


def test_a_triplets_optimum_is_a_third_of_the_items() -> None:
    assert [solve(generate("stock-triplets", n=n, seed=2)).cost for n in (9, 10, 30)] == [3, 4, 10]


def test_uniform_sizes_are_falkenauers() -> None:
    sizes, wanted, capacity = pieces(generate("stock-uniform", n=20_000, seed=1))
    assert capacity == 150
    assert (wanted == 1).all()
    assert np.unique(sizes).tolist() == list(range(20, 101))
    assert sizes.mean() == pytest.approx(60, abs=0.6)


@pytest.mark.parametrize(("low", "high"), [("0.01", "0.25"), ("0.2", "0.7")])
@pytest.mark.parametrize("demand", [10, 100])
def test_cutgen_has_lengths_in_their_range_and_so_many_pieces(
    low: str, high: str, demand: int
) -> None:
    problem = generate("stock-cutgen", n=200, seed=1, low=low, high=high, demand=demand)
    sizes, wanted, capacity = pieces(problem)
    assert capacity == 10_000
    assert capacity * float(low) <= sizes.min() < capacity * (float(low) + 0.02)
    assert capacity * (float(high) - 0.02) < sizes.max() <= capacity * float(high)
    assert wanted.sum() == pytest.approx(200 * demand, rel=0.05)
    assert wanted.max() <= 3 * demand  # the shares of uniform numbers


def test_lengths_beyond_their_number_repeat() -> None:
    sizes, wanted, _ = pieces(generate("stock-cutgen", n=50, seed=1, lengths=20))
    assert len(np.unique(sizes)) <= 20
    assert (sizes[:20] == sizes[20:40]).all()
    assert (wanted[:20] != wanted[20:40]).any()


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


def test_divisible_sizes_divide_each_other_and_best_fit_is_optimal() -> None:
    for seed in range(5):
        problem = generate("stock-divisible", n=40, seed=seed, miss=0)
        sizes, wanted, capacity = pieces(problem)
        chain = [capacity, *np.unique(sizes)[::-1].tolist()]
        assert all(large % small == 0 for large, small in itertools.pairwise(chain))
        assert wanted.min() >= 1
        assert wanted.max() <= 10
        assert RULES["best_fit"].schedule(problem).machine_count == -(-(sizes @ wanted) // capacity)


def test_near_divisible_sizes_miss_a_chain_by_so_many_units() -> None:
    sizes, _, capacity = pieces(generate("stock-divisible", n=400, seed=1, miss=3))
    misses = {
        min((size - capacity // d for d in range(1, 101) if capacity % d == 0), key=abs)
        for size in np.unique(sizes).tolist()
    }
    assert misses == set(range(-3, 4))


# --- shares under measured curves -----------------------------------------------------------------


@pytest.mark.parametrize(("step", "number"), [("2.5", 40), (1, 100), (30, 3)])
def test_measured_shares_are_the_multiples_of_a_step(step: Any, number: int) -> None:
    problem = generate("measured-shares", n=300, seed=1, step=step)
    (shape,) = problem.size_bounded_configurations
    assert [shape.sizes[block] for block in problem.blocks] == [
        Fraction(step) * number for number in range(1, number + 1)
    ]
    assert (shape.capacity, shape.max_blocks) == (100, 48)
    supply = problem.rows.supplies
    assert (np.diff(supply, axis=1) >= 0).all()


def test_a_measured_share_gives_what_its_size_gave_and_lines_between() -> None:
    sevenths = generate("measured-shares", n=2000, seed=1, step="100/7").rows.supplies
    known = {tuple(row) for row in np.maximum.accumulate(measured_rows().supply, axis=1).tolist()}
    sizes = mig().slices - 1
    found = {tuple(row) for row in sevenths[:, sizes].tolist()}
    # a size is 1/7 but for what a float has of it
    assert all(
        any(all(abs(a - b) <= 1 for a, b in zip(row, other, strict=True)) for other in known)
        for row in found
    )
    assert len(found) > 30
    between = sevenths[:, 4] - (sevenths[:, 3] + (sevenths[:, 6] - sevenths[:, 3]) / 3)
    assert (abs(between) <= 1).all()


def test_measured_throughput_grows_more_slowly_than_the_share() -> None:
    supply = generate("measured-shares", n=2000, seed=1).rows.supplies
    # for most jobs half of a GPU gives more than half of what it gives in all, for some nearly all
    half = supply[:, 19] / supply[:, -1]
    assert (half > 0.5).mean() > 0.8
    assert (half > 0.7).mean() > 0.1


@pytest.mark.parametrize(("compute", "memory", "number"), [(5, 5, 31), (2, 5, 61), (1, 10, 92)])
def test_a_block_of_two_shares_takes_the_larger_one(compute: int, memory: int, number: int) -> None:
    problem = generate("memory-shares", n=500, seed=1, compute=compute, memory=memory)
    (shape,) = problem.size_bounded_configurations
    assert shape.capacity == 400
    assert len(problem.blocks) == number
    have = []
    for block in problem.blocks:
        percent, gb = (int(part.rstrip("%gb")) for part in block.split("-"))
        assert shape.sizes[block] == max(4 * percent, 5 * gb)
        assert percent % compute == gb % memory == 0
        assert min(percent, gb) > 0
        have.append(gb)
    served = problem.rows.supplies > 0
    least = np.array(have)[served.argmax(axis=1)]
    assert least.max() <= 40
    assert all((gb >= need) or not held for row, need in zip(served, least, strict=True)
               for gb, held in zip(have, row, strict=True))  # fmt: skip
    assert (problem.rows.supplies[:, -1] > 0).all()


# --- a cluster's fleet ----------------------------------------------------------------------------


@pytest.mark.parametrize("serving", ["pods", "rates"])
@pytest.mark.parametrize("known", few(1, [(7, 147), (6, 144), (5, 145)]))
def test_a_cluster_has_some_150_block_types_and_costs_in_tenths(
    serving: str, known: tuple[int, int]
) -> None:
    types, number = known
    problem = generate("cluster-fleet", n=14_000, seed=1, types=types, serving=serving)
    assert len(problem.blocks) == number
    costs = [machine.cost for machine in problem.machine_types]
    assert len(costs) == types
    assert all(cost > 0 and (10 * cost).denominator == 1 for cost in costs)
    assert any(cost.denominator > 1 for cost in costs)
    kinds, many = np.unique(
        np.column_stack([problem.rows.demands, problem.rows.supplies]), axis=0, return_counts=True
    )
    assert 50 <= len(kinds) <= 70  # two kinds of pods may be alike
    assert np.median(many) > 50
    assert many.sum() == 14_000


def test_few_jobs_are_of_as_many_kinds() -> None:
    rows = generate("cluster-fleet", n=30, seed=1, serving="rates").rows
    assert len(np.unique(rows.demands)) == 30


def test_a_pod_needs_one_share_and_may_be_barred_from_a_type() -> None:
    rows = generate("cluster-fleet", n=2000, seed=1).rows
    assert (rows.demands == 1).all()
    by_type = rows.supplies.reshape(2000, 7, 21)
    assert (np.diff(by_type, axis=2) >= 0).all()
    assert set(by_type.ravel().tolist()) == {0, 1}
    barred = (by_type == 0).all(axis=2)
    assert barred.any(axis=0).all()
    assert not barred.all(axis=1).any()


@pytest.mark.parametrize("serving", ["pods", "rates"])
@pytest.mark.parametrize("seed", few(1, range(3)))
def test_tight_limits_can_serve_and_ample_ones_are_twice_as_many(serving: str, seed: int) -> None:
    arguments: Any = {"n": 30, "seed": seed, "serving": serving, "types": 3, "blocks": 12}
    tight, ample = (
        generate("cluster-fleet", **arguments, kinds=5, limits=limits)
        for limits in ("tight", "ample")
    )
    limits = [machine.limit for machine in tight.machine_types]
    assert None not in limits
    assert [machine.limit for machine in ample.machine_types] == [2 * (n or 0) for n in limits]
    assert solve(tight, time_limit=None).status is Status.OPTIMAL
