"""What an infeasible problem lacks: against enumeration, and its promises."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cms import (
    AlgorithmError,
    BlockPrices,
    GroupLimit,
    InvalidOption,
    MachineType,
    Problem,
    Proof,
    Shortage,
    Solution,
    SolverBound,
    Status,
    check,
    explain_infeasibility,
    load_instance,
    solve,
)
from cms.fleet import Scenario
from cms.infeasibility.variants import without_unservable_jobs
from tests import families, oracle
from tests.property.problems import share
from tests.samples import refusal
from tests.scripted import blocks, told
from tests.test_shortage_search import exactly_at

STEP = Fraction(1, 1000)


def raised(problem: Problem, found: Shortage) -> Problem:
    """The problem with the machines that are said to do."""
    assert found.more_machines is not None
    return with_more(problem, found.more_machines)


def with_more(problem: Problem, more: Mapping[str, int]) -> Problem:
    """The problem with so many machines of each type beyond all limits that count it."""
    types = [
        m if m.limit is None else MachineType(m.name, m.cost, m.limit + more.get(m.name, 0))
        for m in problem.machine_types
    ]
    groups = [
        GroupLimit(g.name, g.weights, g.at_most + sum(g.weights.get(m, 0) * more[m] for m in more))
        for g in problem.group_limits
    ]
    return problem.replace(machine_types=types, group_limits=groups)


def fewest_by_enumeration(problem: Problem, most: int = 12) -> int:
    """Every way to have ever more machines beside the limits, until the oracle finds a schedule."""
    counted = {name for group in problem.group_limits for name in group.weights}
    limited = [m.name for m in problem.machine_types if m.limit is not None or m.name in counted]
    for total in range(most):
        for extra in product(range(total + 1), repeat=len(limited)):
            if sum(extra) != total:
                continue
            beside = {name: f"{name} beside" for name in limited}
            types = [MachineType(beside[m], 1, n) for m, n in zip(limited, extra, strict=True)]
            shapes = [
                replace(shape, machine=beside[shape.machine or ""])
                for shape in problem.configurations
                if shape.machine in beside
            ]
            more = problem.replace(
                configurations=[*problem.configurations, *shapes],
                machine_types=[*problem.machine_types, *types],
            )
            if oracle.optimum(more) is not None:
                return total
    raise AssertionError(f"more than {most} machines are missing")


def require_true(problem: Problem, found: Shortage) -> None:
    """Whatever is said holds, by the exact check and by enumeration."""
    assert found.problem_sha256 == problem.sha256
    rest, lost = without_unservable_jobs(problem)
    assert found.unservable == lost
    parts = int(found.less_demand * 1000)
    assert found.less_demand == parts * STEP
    if found.more_machines is not None:
        assert not rest.limits or check(raised(rest, found), found.machines_schedule) == ()
    if 0 < parts < 1000:
        assert check(exactly_at(rest, parts), found.demand_schedule) == ()
    if found.demand_proof is not Proof.NONE and parts < 1000:
        assert oracle.optimum(exactly_at(rest, parts + 1)) is None
    if found.too_much_demand is not None:
        assert oracle.optimum(exactly_at(rest, int(found.too_much_demand * 1000))) is None
    least = fewest_by_enumeration(rest)
    assert found.machines_at_least <= least
    if found.machines_proof is not Proof.NONE:
        assert found.more_machines is not None
        assert sum(found.more_machines.values()) == least


@share(4)
@given(
    seed=st.integers(0, 10**6), kind=st.sampled_from(["limits", "groups", "infeasible_by_limit"])
)
def test_the_remedies_are_those_that_enumeration_finds(seed: int, kind: str) -> None:
    problem = getattr(families, kind)(random.Random(seed))
    solution = solve(problem)
    given_it = solution if solution.status is Status.INFEASIBLE and seed % 2 else None
    found = explain_infeasibility(problem, solution=given_it, time_limit=None)
    event(f"{found.machines_proof}, {found.demand_proof}, {len(found.unservable) > 0}")
    require_true(problem, found)
    assert found.machines_proof is not Proof.NONE
    assert found.demand_proof is not Proof.NONE
    if solution.status is not Status.INFEASIBLE:
        assert (found.more_machines, found.less_demand) == ({}, 1)
        assert str(found) == "nothing is short"
    elif not found.unservable:
        assert found.machines_at_least >= 1 or found.machines_proof is Proof.SOLVER
        assert found.less_demand < 1


def test_a_published_fleet_lacks_what_the_plan_without_limits_has_more() -> None:
    scenario = load_instance("S5")
    assert isinstance(scenario, Scenario)
    few = scenario.build_problem().problem.replace(
        machine_types=[MachineType("a100-80gb", limit=9)]
    )
    found = explain_infeasibility(few, time_limit=None)
    assert found.more_machines == {"a100-80gb": 3}
    assert (found.machines_proof, found.demand_proof) == (Proof.CHECKED, Proof.CHECKED)
    assert found.too_much_demand == found.less_demand + STEP
    assert check(exactly_at(few, int(found.less_demand * 1000)), found.demand_schedule) == ()
    assert solve(exactly_at(few, int(found.too_much_demand * 1000))).status is Status.INFEASIBLE


@pytest.mark.parametrize("demand", [10**12, 10**30])
def test_huge_demands_lack_huge_fleets(demand: int) -> None:
    found = explain_infeasibility(blocks(2 * demand + 1, limit=demand * 7 // 10))
    assert found.more_machines == {"machine": demand * 3 // 10 + 1}
    assert found.machines_proof is Proof.CHECKED
    assert found.less_demand == Fraction(699, 1000)
    assert found.demand_proof is Proof.CHECKED
    assert check(exactly_at(blocks(2 * demand + 1), 699), found.demand_schedule) == ()


def word_of_infeasibility(problem: Problem) -> Solution:
    solution = told(problem, [SolverBound(None, "oracle")], trusted=True)
    assert isinstance(solution, Solution)
    assert (solution.status, solution.proof) == (Status.INFEASIBLE, Proof.SOLVER)
    return solution


def test_a_solvers_word_is_no_proof() -> None:
    problem = blocks(8, limit=3)
    found = explain_infeasibility(problem, solution=word_of_infeasibility(problem), time_limit=0)
    assert (found.machines_at_least, found.too_much_demand) == (0, None)


def test_a_solvers_word_that_a_schedule_disproves_is_an_error() -> None:
    problem = blocks(8, limit=4)
    message = refusal(
        AlgorithmError,
        explain_infeasibility,
        problem,
        solution=word_of_infeasibility(problem),
        time_limit=None,
    )
    assert "claims by a solver's word that there is no schedule; there is a valid one" in message


SHORT = solve(blocks(8, limit=3))


@pytest.mark.parametrize(
    ("demand", "limit", "arguments", "words"),
    [
        (8, 3, {"solution": 3}, "solution is 3"),
        (9, 3, {"solution": SHORT}, "another problem"),
        (8, None, {"solution": solve(blocks(8))}, "expected 'infeasible'"),
        (8, 3, {"solution": replace(SHORT, certificate=BlockPrices())}, "prove"),
        (8, 3, {"time_limit": -1}, "time_limit is -1"),
        (8, 3, {"cancel": 3}, "cancel is 3"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    demand: int, limit: int | None, arguments: dict[str, Any], words: str
) -> None:
    assert words in refusal(
        InvalidOption, explain_infeasibility, blocks(demand, limit=limit), **arguments
    )
