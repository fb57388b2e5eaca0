"""What searches for prices begin with: first prices, rationals behind floats, groups of jobs."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from algorithms.prices.jobs import Jobs, group_totals, ranges
from algorithms.prices.region import Region
from algorithms.prices.search import full_machines, whole
from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations
from cms.knapsack.pricing import COMPILED_FROM


def jobs_of(number: int) -> Jobs:
    """So many kinds of jobs."""
    rows = [[d, d + 1] for d in range(1, number + 1)]
    return Jobs(
        Problem.from_arrays(
            demands=[10**6 + 7 * d for d in range(number)], supply=rows, configurations=[[1, 1]]
        )
    )


@pytest.mark.parametrize("largest", [9, 2**15 - 1, 2**31 - 1, 2**63 - 1, 2**70])
def test_totals_of_groups_are_sums_of_whole_numbers(largest: int) -> None:
    rng = random.Random(largest)
    rows = [[rng.randint(0, largest), largest] for _ in range(20)]
    options = np.array(rows, dtype=np.min_scalar_type(-largest))
    counts = np.array([rng.randint(0, 2**30) for _ in rows])
    expected = [[0] * 2 for _ in range(4)]
    for at, row in enumerate(rows):
        for i, blocks in enumerate(row):
            expected[at // 5][i] += int(counts[at]) * blocks
    assert group_totals(options, counts, ranges(20, 5, 4)) == expected
    assert group_totals(options[:0], counts[:0], [0]) == [[0, 0]]


def test_prices_are_recognised_meant_or_rounded() -> None:
    few, many = jobs_of(3), jobs_of(COMPILED_FROM)
    third, odd = Fraction(1 / 3), Fraction(123_456_789, 10**9 + 7)
    assert whole([third, 2 * third], few, exactly=False) == ([1, 2], 3)
    assert whole([odd], few, exactly=True) == ([123_456_789], 10**9 + 7)
    (number,), denominator = whole([odd / 10**15], few, exactly=False)
    assert number > 0  # a tiny price keeps its digits
    assert abs(Fraction(number, denominator) * 10**15 / odd - 1) < Fraction(1, 2**19)
    long = Fraction(10**40 + 1, 10**40 + 7)
    (number,), denominator = whole([long], many, exactly=True)
    assert denominator == 2**many.grid_bits
    assert 0 <= long - Fraction(number, denominator) < Fraction(1, denominator)


def test_a_machine_full_of_a_type_is_worth_its_cost() -> None:
    problem = Problem(
        configurations=[
            Configuration({"a": 2, "b": 1}, "paid"),
            Configuration({"a": 3}, "paid"),
            Configuration({"b": 4}, "limited"),
            Configuration({"c": 1}, "free"),
        ],
        jobs=[Job("x", 1, {"a": 1, "b": 1, "c": 1})],
        machine_types=[
            MachineType("paid", 6),
            MachineType("limited", 0, limit=2),
            MachineType("free", 0),
        ],
    )
    assert full_machines(Region(problem)) == [2, Fraction(1, 4), 0]


def test_blocks_that_few_need_start_at_their_share_of_a_machine() -> None:
    # One block each is needed, and seven fit beside one another: not a machine each.
    sizes = {"a": 10, "b": 11, "c": 12}
    problem = Problem(
        configurations=SizeBoundedConfigurations(sizes, 84),
        jobs=[Job(name, 1, {name: 1}) for name in sizes],
    )
    assert full_machines(Region(problem)) == [Fraction(1, 8), Fraction(1, 7), Fraction(1, 7)]
