"""The price region, above and below branches, against the definition that lists everything."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from operator import le, mul

import pytest

from algorithms.prices.jobs import Jobs, ranges
from algorithms.prices.passes import Passes
from algorithms.prices.region import Region
from cms import Configuration, Job, Problem, SizeBoundedConfigurations
from cms.certificate.conditions import Condition
from cms.certificate.quantity import MachinesWith
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.families import FAMILIES, instance
from tests.property.certificates import random_quantity
from tests.property.definition import INFEASIBLE, INVALID, Side, evaluate_leaf
from tests.samples import so_many, spread

PRICED = [family for family in FAMILIES if family != "long_numbers"]
FEW = 9


def random_path(rng: random.Random, problem: Problem) -> tuple[Condition, ...]:
    quantities = [random_quantity(rng, problem) for _ in range(rng.randint(0, 3))]
    return tuple(
        Condition(quantity, rng.choice([-1, 1]), rng.choice([0, 0, 1, 1, 2, 3]))
        for quantity in quantities
        if quantity is not None
    )


def priced(family: str, number: int) -> bool:
    """Evaluate random prices below random branches; False if there is nothing to price."""
    rng = random.Random(f"{family} {number}")
    problem = instance(family, number)
    rows = [problem.rows.row(j) for j in range(problem.n_jobs)]
    if not problem.blocks or not all(any(row.supply) or not row.demand for row in rows):
        return False
    path = random_path(rng, problem)
    free = rng.random() < 0.3
    region, jobs = Region(problem, path, free_machines=free), Jobs(problem)
    search = Passes(jobs, Unlimited(), ranges(len(jobs)), region)
    denominator = rng.choice([1, 2, 3, 10, 97])
    numbers = [rng.choice([0, rng.randint(0, 40)]) for _ in range(len(problem.blocks) + len(path))]
    for at in region.free():
        numbers[at] = 0
    found = search.evaluate(numbers, denominator)
    assert found is not None
    point, loads = found
    assert min((*point.vector.prices, *point.vector.multipliers, *point.vector.limit_prices)) >= 0
    leaf = region.leaf(point.vector)
    sides = tuple(Side(c.quantity, c.sign, c.value) for c in path)
    verdict = evaluate_leaf(problem, leaf, sides)
    assert verdict != INVALID, (leaf, path)
    if free:
        # Machines that cost nothing: a positive value is a proof, and 0 is 0 at any cost.
        assert (verdict == INFEASIBLE) == (point.bound > 0)
    else:
        assert verdict in (point.bound, INFEASIBLE)
        # Linear in the prices: what the cuts say at the point is the point's own value.
        vector = point.vector
        worth = Fraction(0)
        for load in loads:
            worth += sum(map(mul, vector.prices, load), Fraction(0))
        for job, option in zip(region.own_priced, search.own_options[-1], strict=True):
            own = region.prices_of_job(job, vector.prices, vector.multipliers)
            assert min(own) >= 0
            worth += sum(map(mul, own, option), Fraction(0))
        assert worth + region.constant(vector) == point.bound
    return True


@pytest.mark.parametrize("family", spread(6, PRICED))
def test_prices_are_scaled_into_the_region_and_their_bound_is_exact(family: str) -> None:
    done = sum(priced(family, number) for number in range(FEW))
    assert done >= (0 if family == "infeasible_by_block" else FEW // 3)


@pytest.mark.parametrize("slots", [None, 3])
def test_every_row_is_a_proper_content_and_a_pass_finds_several(slots: int | None) -> None:
    several = 0
    number = so_many(5, 12)
    for seed in range(number):
        rng = random.Random(seed)
        sizes = {f"b{i:02}": rng.randint(60, 400) for i in range(24)}
        shares = SizeBoundedConfigurations(sizes, 1000, max_blocks=slots)
        jobs = [Job(block, rng.choice([0, 1, 2, 30]), {block: 1}) for block in sizes]
        problem = Problem(configurations=shares, jobs=jobs)
        region = Region(problem)
        useful = problem.useful_blocks()
        for _ in range(5):
            before = len(region.rows)
            prices = [Fraction(sizes[b] * rng.randint(950, 1300), 10**6) for b in region.blocks]
            (value,) = region.worth(prices)
            new = region.rows[before:]
            worths = [sum(map(mul, prices, row.counts)) for row in new]
            assert all(worth <= value for worth in worths)
            assert max(sum(map(mul, prices, row.counts)) for row in region.rows) == value
            # Others have none of its blocks, nor of each other's, and are worth more than 1 too.
            assert all(worth > 1 for worth in worths[1:])
            for row, other in itertools.combinations(new, 2):
                assert not any(map(min, row.counts, other.counts))
            several += len(new) > 2
        assert len(set(region.rows)) == len(region.rows)
        for row in region.rows:
            assert row.shape is None
            assert any(row.counts)
            assert all(map(le, row.counts, useful))
            assert sum(sizes[b] * n for b, n in zip(region.blocks, row.counts, strict=True)) <= 1000
            assert slots is None or sum(row.counts) <= slots
        fits = [min(1000 // sizes[block], slots or 1000) for block in region.blocks]
        assert region.proper == {
            i: n for i, (n, most) in enumerate(zip(useful, fits, strict=True)) if n < most
        }
    assert several > number * 5 // 6


def test_machines_with_some_content_are_worth_what_branches_on_it_add_once() -> None:
    problem = Problem(
        configurations=[SizeBoundedConfigurations({"a": 2, "b": 3}, 7), Configuration({"a": 4})],
        jobs=[Job("x", 9, {"a": 1}), Job("y", 9, {"b": 1})],
    )
    path = (
        Condition(MachinesWith(Configuration({"a": 2})), -1, 1),
        Condition(MachinesWith(Configuration({"a": 1, "b": 1})), 1, 1),
    )
    region = Region(problem, path)
    listed = next(row for row in region.rows if row.shape is not None)
    assert region.row_terms(listed) == [(0, -1)]
    assert region.row_terms(region.row_of(region.bounded[0], (2, 1))) == [(0, -1), (1, 1)]
    prices = [Fraction(2), Fraction(3)]
    # 2 a and a b are worth 7, the listed 4 a 8; 9 less with two a, 2 more with both: a and b.
    assert region.worth(prices, [Fraction(0), Fraction(0)]) == [8]
    assert region.worth(prices, [Fraction(9), Fraction(2)]) == [7]
    assert {row.counts for row in region.rows} >= {(1, 1)}
    assert region.worth(prices, [Fraction(1), Fraction(2)]) == [8]
