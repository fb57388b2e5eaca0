"""Theorem B on hundreds of problems, and that a rounding weakened by one is found out."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

import pytest

import algorithms.prices.theorem_b
from algorithms.prices.theorem_b import additive_cost, rounded, with_missing
from algorithms.prices.vertex import BasicSolution
from cms import Configuration, InvalidSchedule, Job, MachineType, Problem, Schedule, check
from cms.certificate.certificate import round_up
from cms.reduction.reduction import reduce
from instances.families import generate
from proofs_checks.theorem_b import additive_loss
from tests.algorithms.prices.parts import (
    Case,
    built,
    cases,
    every_case,
    solved,
    value,
)
from tests.families import FAMILIES
from tests.samples import few, so_many, spread

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


@pytest.mark.parametrize("n", few(2, [20, 200, 1000]))
def test_larger_problems_keep_to_it_as_well(n: int) -> None:
    for seed in range(so_many(1, 3)):
        for family in ("real-rows", "arbitrary"):
            problem = generate(family, n=n, seed=seed)
            schedule, bound = rounding(problem)
            assert not check(problem, schedule)
            loss = additive_loss(len(reduce(problem).problem.blocks))
            assert schedule.cost(problem) < bound + loss


@pytest.mark.parametrize("demand", [10**12, 10**12 + 1, 10**30 + 7])
def test_two_types_and_huge_demands_lose_one_machine_at_most(demand: int) -> None:
    problem = Problem(
        configurations=[Configuration({"a": 3, "b": 1}), Configuration({"b": 2})],
        jobs=[
            Job("x", demand, {"a": 3, "b": 7}),
            Job("y", demand, {"a": 5, "b": 9}),
            Job("z", 11, {"b": 1}),
        ],
    )
    schedule, bound = rounding(problem)
    assert not check(problem, schedule)
    assert schedule.machine_count <= round_up(bound, Fraction(1)) + 1
    assert len(schedule.groups) < 50


def test_splits_happen_so_the_theorem_is_put_to_the_test() -> None:
    lost = []
    for case in every_case(FEW):
        schedule, bound = rounding(case.problem)
        step = case.problem.cost_step
        lost.append(schedule.cost(case.problem) - round_up(bound, step))
    assert sum(loss > 0 for loss in lost) >= FEW * 5 // 8
    assert min(lost) >= 0


def test_costs_count_in_the_loss() -> None:
    types = [MachineType("small", 2), MachineType("large", 3)]
    shapes = [Configuration({"a": 1}, "small"), Configuration({"b": 1}, "large")]
    problem = Problem(configurations=shapes, machine_types=types)
    assert additive_cost(problem) == 6  # two machines rounded up; none is missing
    assert additive_cost(Problem(configurations=[])) == 0


def refuse_waste(case: Case) -> None:
    """For blocks that are missing the fewest machines are bought that hold them."""
    problem = reduce(case.problem).problem
    for i, block in enumerate(problem.blocks):
        load = [7 * (i == at) for at in range(len(problem.blocks))]
        bought = with_missing(problem, {}, load)
        held = sum(n * shape.blocks[block] for shape, n in bought.items())
        assert held >= 7, case.name
        for shape, n in bought.items():
            assert (n - 1) * shape.blocks[block] < 7, case.name


def test_no_machine_is_bought_for_blocks_that_others_have() -> None:
    for case in every_case(4):
        refuse_waste(case)


# --- planted faults -------------------------------------------------------------------------------


def down(options: Any) -> Any:
    """The mean of a job's options, rounded down instead of up."""
    if len(options) == 1:
        return options[0][0]
    columns = zip(*(option for option, _ in options), strict=True)
    weights = [weight for _, weight in options]
    return tuple(
        floor(sum((w * n for w, n in zip(weights, column, strict=True)), Fraction(0)))
        for column in columns
    )


FAULTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "means rounded down": ("taken", down),
    "one machine too few for what is missing": (
        "machines_for",
        lambda missing, blocks: -(-missing // blocks) - 1,
    ),
    "one machine too many of each": ("ceil", lambda x: floor(x) + 1),
    "no machine for what is missing": ("machines_for", lambda *_: 0),
    "missing blocks are not bought": ("with_missing", lambda problem, machines, load: machines),
    "a machine for each missing block": ("machines_for", lambda missing, blocks: missing),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_rounding_weakened_by_one_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = FAULTS[fault]
    monkeypatch.setattr(algorithms.prices.theorem_b, name, wrong)

    def judge() -> None:
        for case in every_case(FEW):
            refuse_breaches(case)
            refuse_waste(case)

    with pytest.raises((AssertionError, InvalidSchedule)):
        judge()


def test_the_cost_of_the_fractional_machines_is_what_is_rounded() -> None:
    for case in every_case(6):
        solution = fractional(case.problem)
        machines, _ = rounded(solution)
        cost = sum(
            (case.problem.machine_type(s.machine).cost * n for s, n in machines.items()),
            Fraction(0),
        )
        assert cost >= value(solution), case.name
