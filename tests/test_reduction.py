"""Leaving out what cannot matter keeps the optimum, and its schedules can be carried back."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from cms import (
    BlockPrices,
    Configuration,
    Job,
    Problem,
    SizeBoundedConfigurations,
    check,
    solve,
)
from cms.certificate.first import first_certificate
from cms.reduction.reduction import reduce
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.property.schedules import random_schedule
from tests.samples import so_many, spread


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reduced_problem_has_the_same_optimum(family: str) -> None:
    for number in range(so_many(2, 25)):
        problem = instance(family, number)
        assert optimum(reduce(problem).problem) == optimum(problem), (family, number)


@pytest.mark.parametrize("family", spread(9, FAMILIES))
def test_any_schedule_of_the_reduced_problem_is_one_of_the_original(family: str) -> None:
    for number in range(so_many(5, 15)):
        problem = instance(family, number)
        reduction = reduce(problem)
        schedule = random_schedule(random.Random(number), reduction.problem)
        if schedule is not None:
            assert check(reduction.problem, schedule) == (), (family, number)
            restored = reduction.restore(schedule)
            assert check(problem, restored) == (), (family, number)
            assert restored.cost(problem) == schedule.cost(reduction.problem)


@pytest.mark.parametrize("family", ["sparse", "costs", "limits", "max_blocks", "edges"])
def test_prices_of_the_reduced_problem_hold_for_the_original(family: str) -> None:
    for number in range(so_many(5, 15)):
        problem = instance(family, number)
        reduction = reduce(problem)
        if first_certificate(problem).proves_infeasible(problem):
            continue  # a job that no machine serves: nothing to search for
        small = reduction.problem
        certificate = solve(small, "cp_sat", threads=1).certificate
        assert isinstance(certificate, BlockPrices)
        rent = sum(
            price * (small.machine_type(name).limit or 0)
            for name, price in certificate.limit_prices.items()
        )
        bound = certificate.bound(small)
        restored = reduction.restore_prices(certificate, bound + rent)
        assert restored.proves_infeasible(problem) == certificate.proves_infeasible(small)
        assert restored.bound(problem) == bound


def test_a_block_that_no_machine_has_is_left_out_and_gets_a_price_nobody_pays() -> None:
    problem = Problem(
        configurations=SizeBoundedConfigurations({"giant": 9, "small": 1}, 2),
        jobs=[Job("x", 5, {"giant": 5, "small": 1})],
    )
    reduction = reduce(problem)
    assert reduction.problem.blocks == ("small",)
    assert reduction.lost == ("giant",)
    leaf = BlockPrices({"small": "1/2"})
    assert leaf.bound(reduction.problem) == Fraction(5, 2)
    assert leaf.bound(problem) == 0
    assert reduction.restore_prices(leaf, Fraction(5, 2)).bound(problem) == Fraction(5, 2)


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_reducing_twice_changes_nothing_more(family: str) -> None:
    for number in range(10):
        once = reduce(instance(family, number)).problem
        assert reduce(once).problem == once, (family, number)


def test_nothing_is_left_that_serves_nobody_or_that_another_configuration_beats() -> None:
    for family in FAMILIES:
        for number in range(10):
            problem = reduce(instance(family, number)).problem
            assert all(job.demand > 0 for job in problem.jobs)
            for block in problem.blocks:
                assert any(block in dict(_table(problem, j)) for j in range(problem.n_jobs))
            shapes = problem.listed_configurations
            for one in shapes:
                rivals = [s for s in shapes if s is not one and s.machine == one.machine]
                assert not any(_beats(other, one) for other in rivals), (family, number)


def _table(problem: Problem, j: int) -> list[tuple[str, int]]:
    pairs = zip(problem.blocks, problem.rows.row(j).supply, strict=True)
    return [(block, supply) for block, supply in pairs if supply]


def _beats(one: Configuration, other: Configuration) -> bool:
    return all(one.blocks.get(block, 0) >= count for block, count in other.blocks.items())
