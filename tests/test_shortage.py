"""What an infeasible problem lacks, against enumeration; its search; how far demands can grow."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator, Mapping
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
    Configuration,
    GroupLimit,
    InvalidOption,
    Job,
    MachineType,
    Problem,
    Proof,
    Shortage,
    SizeBoundedConfigurations,
    Solution,
    SolverBound,
    Status,
    check,
    explain_infeasibility,
    find_growth,
    load_instance,
    solve,
)  # fmt: skip
from cms.files import lay_out, solution_from_json, solution_to_json
from cms.fleet import Scenario
from cms.infeasibility.variants import PARTS, at_share, without_unservable_jobs
from cms.plugin.algorithm import Budget, Claim
from tests import families, oracle
from tests.files.test_schemas import require_valid
from tests.oracle import optimum
from tests.property.problems import problems, share
from tests.samples import refusal
from tests.scripted import Scripted, blocks, serving, told


def test_without_time_only_what_needs_none_is_known() -> None:
    problem = Problem(
        configurations=Configuration({"b": 1}),
        jobs=[Job("x", 3, {"b": 1}), Job("lost", 3, {})],
        machine_types=[MachineType("machine", limit=1)],
    )
    found = explain_infeasibility(problem, time_limit=0)
    assert (found.unservable, found.more_machines) == ({"lost": ()}, None)
    assert (found.machines_at_least, found.less_demand, found.too_much_demand) == (0, 0, None)
    assert (found.machines_proof, found.demand_proof) == (Proof.NONE, Proof.NONE)
    assert str(found).splitlines()[1] == (
        "for everything else, how many more machines would do was not found in time; what share "
        "of every demand would do was not found in time"
    )


def test_ctrl_c_ends_the_search_with_what_is_known() -> None:
    asked = []

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        asked.append(problem)
        if any(machine.limit is None for machine in problem.machine_types):
            yield BlockPrices({"b": "1/2"}, {"machine": 1})
            yield solve(problem).schedule
        signal.raise_signal(signal.SIGINT)
        while not budget.stopped:
            pass

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = explain_infeasibility(blocks(8, limit=3), method=Scripted(run), time_limit=None)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(asked) == 2
    assert (found.more_machines, found.machines_proof) == ({"machine": 1}, Proof.CHECKED)
    assert found.demand_proof is Proof.NONE


def test_a_method_that_proves_nothing_leaves_the_answer_open() -> None:
    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        if any(machine.limit is None for machine in problem.machine_types):
            shape = Configuration({"b": 2}, "more machine")
            groups = serving(8, 4).groups
            yield type(serving(8, 4))([group._replace(configuration=shape) for group in groups])
        elif problem.rows.demand(0) <= 4:
            yield serving(4, 2)

    found = explain_infeasibility(blocks(8, limit=3), method=Scripted(run), time_limit=None)
    # all four machines were twins; three of them are within the limit
    assert found.more_machines == {"machine": 1}
    assert (found.machines_at_least, found.machines_proof) == (0, Proof.NONE)
    assert (found.less_demand, found.too_much_demand) == (Fraction(1, 2), None)
    assert found.demand_proof is Proof.NONE
    assert str(found) == "1 more machine would do, or 50 % of every demand"


def test_a_bound_above_the_limits_is_a_proof_without_a_ray() -> None:
    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        if all(machine.limit is not None for machine in problem.machine_types):
            yield BlockPrices({"b": "1/2"})
            if problem.rows.demand(0) <= 6:
                yield serving(6, 3)

    found = explain_infeasibility(blocks(8, limit=3), method=Scripted(run), time_limit=None)
    assert (found.less_demand, found.too_much_demand) == (Fraction(3, 4), Fraction(751, 1000))
    assert found.demand_proof is Proof.CHECKED
    assert str(found) == (
        "how many more machines would do was not found in time; 75 % of every demand would do "
        "(proved most)"
    )


HUGE = 10**30


def exactly_at(problem: Problem, parts: int) -> Problem:
    """The demands times the share, as fractions: what ``at_share`` must be equivalent to."""
    jobs = [
        Job(job.name, job.demand * Fraction(parts, PARTS), job.demand_function)
        for job in problem.jobs
    ]
    return Problem(
        configurations=problem.configurations,
        jobs=jobs,
        machine_types=problem.machine_types,
        group_limits=problem.group_limits,
    )


@pytest.mark.parametrize("demand", [7, 2**62 + 1, 2**63 - 1, HUGE, Fraction(1, 3), "0.1"])
@pytest.mark.parametrize("parts", [0, 1, 333, 999, 1000, 2**52 + 1, 2**61 + 1, 2**63, 1000 << 60])
def test_a_share_is_the_least_demand_that_a_row_can_ask_for(demand: int, parts: int) -> None:
    problem = Problem(configurations=Configuration({"b": 1}), jobs=[Job("x", demand, {"b": "0.7"})])
    lowered = at_share(problem, parts).rows
    exact = problem.rows.demand(0) * Fraction(parts, PARTS)
    unit = Fraction(1, problem.rows.row(0).denominator)
    assert exact <= lowered.demand(0) < exact + unit
    assert lowered.supply(0, 0) == Fraction(7, 10)
    assert (lowered.demand(0) / unit).denominator == 1


def test_jobs_that_no_machine_serves_are_found_with_the_blocks_they_would_need() -> None:
    problem = Problem(
        configurations=[
            SizeBoundedConfigurations({"giant": 3, "titan": 4, "small": 1}, 2, "m"),
            Configuration({"a": 1}, "none"),
        ],
        jobs=[
            Job("lost", 1, {}),
            Job("big", HUGE, {"giant": HUGE, "titan": 1}),
            Job("wide", HUGE, {"a": Fraction(1, 3)}),
            Job("fine", 1, {"giant": 5, "small": 1}),
            Job("nothing", 0, {}),
            Job("idle", 0, {"giant": HUGE}),
        ],
        machine_types=[MachineType("m"), MachineType("none", limit=0)],
    )
    rest, lost = without_unservable_jobs(problem)
    assert lost == {"lost": (), "big": ("giant", "titan")}
    assert list(rest.job_names) == ["wide", "fine", "nothing", "idle"]
    assert [job.demand for job in rest.jobs] == [HUGE, 1, 0, 0]
    assert without_unservable_jobs(rest)[0] is rest
    everywhere = rest.replace(machine_types=[MachineType("m"), MachineType("none")])
    assert solve(everywhere).cost is not None


@share(5)
@given(problems(), st.booleans())
def test_growth_is_the_largest_thousandth_that_the_machines_meet(
    problem: Problem, certified: bool
) -> None:
    solution = solve(problem, time_limit=None)
    if solution.cost is None:
        return
    certificate = solution.certificate if certified else None
    grown = find_growth(problem, solution.schedule, certificate=certificate, time_limit=None)
    if grown.share is None:
        assert not problem.rows.wants.any()
        return
    assert grown.share >= 1
    types = [MachineType(m.name, m.cost, grown.machines[m.name]) for m in problem.machine_types]
    there = problem.replace(machine_types=types)
    parts = int(grown.share * PARTS)
    assert not check(at_share(there, parts), grown.schedule)
    if grown.proof is Proof.CHECKED:
        assert optimum(at_share(there, parts + 1)) is None


def test_proper_counts_too_few_for_larger_demands_are_no_obstacle() -> None:
    shares = SizeBoundedConfigurations({"a": 1, "b": 3}, capacity=7)
    problem = Problem(configurations=shares, jobs=[Job("x", 2, {"a": 1}), Job("y", 2, {"b": 1})])
    known = BlockPrices({"a": "1/7", "b": "3/7"}, proper={"a": 2, "b": 2})
    assert find_growth(problem, solve(problem).schedule, certificate=known).share == 1.5


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
    if solution.status is Status.INFEASIBLE:
        written = solution_to_json(solution, found)
        require_valid("solution", written)
        assert solution_from_json(json.loads(lay_out(written))) == solution
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
