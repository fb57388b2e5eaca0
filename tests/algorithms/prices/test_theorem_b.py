"""Theorem B on hundreds of problems, and that a rounding weakened by one is found out."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from algorithms.prices.vertex import BasicSolution, additive_cost
from cms import Problem, Schedule, check
from cms.certificate.certificate import round_up
from cms.reduction.reduction import reduce
from proofs_checks.theorem_b import additive_loss
from tests.algorithms.prices.parts import Case, built, cases, every_case, solved
from tests.families import FAMILIES
from tests.samples import so_many, spread

FEW = so_many(6, 16)


@cache
def fractional(problem: Problem) -> BasicSolution:
    """LP_DW of the reduced problem; what varies in these tests is what is made of it."""
    return solved(reduce(problem).problem)


def rounding(problem: Problem) -> tuple[Schedule, Fraction]:
    """The rounded schedule, and the bound it is held against."""
    return built(fractional(problem), reduce(problem)), fractional(problem).bound


def refuse_breaches(case: Case) -> None:
    """Theorem B, with costs: valid, below LP_DW + K, and what that means in whole steps."""
    schedule, bound = rounding(case.problem)
    assert not check(case.problem, schedule), case.name
    cost, reduced = schedule.cost(case.problem), reduce(case.problem).problem
    loss, step = additive_cost(reduced), reduced.cost_step
    assert cost < bound + loss or cost == bound, case.name
    assert cost <= round_up(bound, step) + max(Fraction(0), loss - step), case.name
    if {machine.cost for machine in case.problem.machine_types} == {1}:
        k = len(reduced.blocks)
        assert loss == (additive_loss(k) if k else 0)
        if k == 1:
            assert cost == case.best, case.name
        if k == 2:
            assert cost <= case.best + 1, case.name


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_the_rounding_costs_less_than_the_theorem_says(family: str) -> None:
    for case in cases(family, FEW):
        refuse_breaches(case)


def test_splits_happen_so_the_theorem_is_put_to_the_test() -> None:
    lost = []
    for case in every_case(FEW):
        schedule, bound = rounding(case.problem)
        step = case.problem.cost_step
        lost.append(schedule.cost(case.problem) - round_up(bound, step))
    assert sum(loss > 0 for loss in lost) >= FEW * 5 // 8
    assert min(lost) >= 0
