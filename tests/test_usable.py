"""Usable machine types: what costs add up from, in both checkers."""

from __future__ import annotations

import json
import random
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cms import Configuration, Job, MachineType, Problem, SizeBoundedConfigurations, Status, solve
from cms.files.problems import problem_to_json
from cms.presolver.presolve import presolve
from proofs_checks.checker import parse_document
from proofs_checks.checker.problem import read_problem
from proofs_checks.checker.usable import round_up as independently_rounded
from proofs_checks.checker.usable import usable as independently_usable
from tests.oracle import optimum
from tests.property.problems import problems
from tests.property.schedules import random_schedule

Shape = Configuration | SizeBoundedConfigurations

ONE = [Job("x", 3, {"a": 1, "b": 2})]
PLAIN = Configuration({"a": 2, "b": 1}, "plain")


def two_types(
    *other: Shape, jobs: list[Job] = ONE, first: Shape = PLAIN, **kind: object
) -> Problem:
    """A type of cost 2, and another one, by default of cost 7/3."""
    second = MachineType("other", **{"cost": "7/3", **kind})  # type: ignore[arg-type]
    types = [MachineType("plain", 2), second]
    return Problem(configurations=[first, *other], jobs=jobs, machine_types=types)


def listed(a: int, b: int = 0, machine: str = "other") -> Configuration:
    return Configuration({"a": a, "b": b}, machine)


def agree(problem: Problem) -> None:
    """Both checkers say the same, and reducing a problem does not change it."""
    again = read_problem(parse_document(json.dumps(problem_to_json(problem))))
    assert independently_usable(again) == [machine.name for machine in problem.usable_types()]
    step = problem.cost_step
    assert independently_rounded(again, Fraction(1, 10**9)) == (step or Fraction(1, 10**9))
    assert presolve(problem).problem.cost_step == step


@settings(max_examples=80)
@given(problems(("costs", "free machines", "limits", "size-bounded beside listed")))
@example(two_types(Configuration({"c": 5}, "other")))
@example(two_types(listed(2), listed(1, 1)))
@example(two_types(listed(2), listed(3)))
@example(two_types(listed(9), limit=1))
@example(two_types(listed(2, 1), cost="5/3", limit=9))
@example(two_types(jobs=[]))
def test_the_least_cost_is_a_multiple_of_the_step(problem: Problem) -> None:
    agree(problem)
    best, step = optimum(problem), problem.cost_step
    if best is not None:
        assert best % step == 0 if step else best == 0


def test_counts_of_more_than_63_bits_are_compared_as_they_are() -> None:
    jobs = [Job("x", 2**63 + 2, {"a": 1}), Job("y", 1, {"b": 1})]
    larger = listed(2**63 + 2, 1)
    problem = two_types(
        larger, jobs=jobs, first=Configuration({"a": 2**63, "b": 1}, "plain"), cost=3
    )
    assert [machine.name for machine in problem.usable_types()] == ["plain", "other"]
    agree(problem)


@settings(max_examples=15)
@given(problems(), st.sampled_from(("auto", "cp_sat", "ptas", "lp_rounding")))
@example(two_types(listed(2, 1)), "auto")
def test_a_start_of_any_cost_hides_no_better_schedule(problem: Problem, method: str) -> None:
    """A schedule whose cost is no multiple of the step is no obstacle on the way to the optimum."""
    best = optimum(problem)
    start = random_schedule(random.Random(1), problem)
    if best is None or start is None or (method in ("ptas", "lp_rounding") and limited(problem)):
        return
    solution = solve(problem, method, start=start, time_limit=60, threads=1)
    assert solution.lower_bound <= best
    assert (solution.claimed_bound or 0) <= best
    if method in ("auto", "cp_sat"):
        assert (solution.cost, solution.status) == (best, Status.OPTIMAL)


def limited(problem: Problem) -> bool:
    return any(machine.limit is not None for machine in problem.machine_types)
