"""Why there is no plan or schedule, and what would do, in reports and pictures."""

from __future__ import annotations

import re

from cms import (
    BlockPrices,
    Configuration,
    Job,
    MachineType,
    Problem,
    Proof,
    Solution,
    shortage,
    solve,
)
from cms.fleet.report.plans import plan_page
from cms.fleet.report.problems import solved_page
from cms.fleet.report.proofs import MOST_REASONS, plan_reasons, solution_reasons
from cms.fleet.serving import Plan, Service, as_problem
from cms.plugin.algorithm import SolverBound
from tests.fleet.plans import A100, point, printed
from tests.scripted import told

REMEDY = "1 more few machine would do (proved fewest), or 66.6 % of every demand (proved most)"


def short() -> Problem:
    """Three blocks are wanted of two machines; another type has a limit that harms nobody."""
    return Problem(
        configurations=[Configuration({"a": 1}, "few"), Configuration({"b": 1}, "other")],
        jobs=[Job("x", 3, {"a": 1}), Job("y", 1, {"b": 1})],
        machine_types=[MachineType("few", limit=2), MachineType("other", limit=1)],
    )


def test_the_proof_says_which_limits_are_to_blame() -> None:
    problem = short()
    solution: Solution = told(problem, [BlockPrices({"a": 1}, {"few": 1})])
    assert solution.proof is Proof.CHECKED
    (reason,) = solution_reasons(problem, solution)
    assert reason == (
        "the machines do not suffice: there are only 2 x few (more other alone would not help)"
    )


def test_a_solvers_word_blames_all_limits() -> None:
    solution: Solution = told(short(), [SolverBound(None, "oracle")], trusted=True)
    (reason,) = solution_reasons(short(), solution)
    assert reason == "the machines do not suffice: there are only 2 x few and 1 x other"


def test_what_would_do_follows_the_reason() -> None:
    problem = short()
    solution = solve(problem)
    found = shortage(problem, solution=solution)
    reasons = solution_reasons(problem, solution, found)
    assert reasons[1:] == (REMEDY,)
    text = re.sub(r"\s+", " ", printed(solved_page(problem, solution, "short", found)))
    assert f"- {reasons[0]} - {REMEDY} infeasible, proof checked" in text
    free = problem.replace(machine_types=[MachineType("few"), MachineType("other")])
    assert solution_reasons(free, solve(free)) == ()


def test_a_plan_speaks_of_gpus_and_rates() -> None:
    serving = as_problem(
        [Service("a", "m", 100, 100)],
        [point("m", "7g.80gb", 10)],
        limits={A100: 3},
        rule="parvagpu",
    )
    plan = Plan(serving, solve(serving.problem))
    found = shortage(serving.problem, solution=plan.solution)
    remedy = "7 more a100-80gb GPUs would do (proved fewest), or 30 % of every rate (proved most)"
    assert plan_reasons(plan, found)[1:] == (remedy,)
    said = re.sub(r"\s+", " ", printed(plan_page(plan, "a", shortage=found)))
    assert f"- {remedy}" in said


def test_a_service_that_nothing_can_run_comes_with_what_the_others_lack() -> None:
    services = [Service("slow", "m", 100, 300), *(Service(f"s{i}", "m", 1, 1) for i in range(21))]
    serving = as_problem(services, [point("m", "7g.80gb", 10)], limits={A100: 3}, rule="parvagpu")
    plan = Plan(serving, solve(serving.problem))
    reasons = plan_reasons(plan, shortage(serving.problem, solution=plan.solution))
    assert len(reasons) == MOST_REASONS + 2
    assert reasons[0].startswith("s0: no profile meets 1 ms")
    assert reasons[-2:] == (
        "... and 1 more service",
        "for everything else, 7 more a100-80gb GPUs would do (proved fewest), or 30 % of every "
        "rate (proved most)",
    )


def test_jobs_that_no_machine_serves_are_the_reason() -> None:
    problem = Problem(
        configurations=Configuration({"b": 1}),
        jobs=[Job("x", 1, {"b": 1}), *(Job(f"lost {i}", 1, {}) for i in range(22))],
    )
    solution = solve(problem)
    reasons = solution_reasons(problem, solution, shortage(problem, solution=solution))
    assert len(reasons) == MOST_REASONS + 2
    assert reasons[0] == "job 'lost 0': no block supplies any of its demand"
    assert reasons[-2:] == ("... and 2 more jobs", "everything else can be served")
