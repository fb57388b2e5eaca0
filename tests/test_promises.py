"""The promises of docs/methods/promises.md, kept on every named instance by each of our methods."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import cms
from cms.plugin.registry import load_instance
from proofs_checks.checker import check_problem, check_solution, parse_document

METHODS = ("auto", "cp_sat")
#: A second or two each.
LONG = {"set-cover-f2-4"}
NAMES = [
    pytest.param(name, marks=[pytest.mark.long] if name in LONG or at % 4 else [])
    for at, name in enumerate(cms.list_instances())
]
EVERY = pytest.mark.parametrize("name", NAMES)
BY_EVERY = pytest.mark.parametrize("method", METHODS)


@cache
def problem_of(name: str) -> cms.Problem:
    instance = load_instance(name)
    if isinstance(instance, cms.NamedProblem):
        return instance.make()  # type: ignore[no-any-return]
    return instance.build_problem().problem  # type: ignore[no-any-return]


@cache
def solved(name: str, method: str) -> cms.Solution:
    return cms.solve(problem_of(name), method, time_limit=None, threads=1)


@EVERY
@BY_EVERY
def test_what_a_solution_says_holds(name: str, method: str) -> None:
    """P1 to P3 and P5: the schedule, the bound, the status, and the way to them."""
    problem, solution = problem_of(name), solved(name, method)
    bound = solution.certificate.bound(problem)
    step = problem.cost_step
    if solution.status in {cms.Status.OPTIMAL, cms.Status.FEASIBLE}:
        assert cms.check(problem, solution.schedule) == ()
        assert solution.cost == solution.schedule.cost(problem)
    if solution.status is cms.Status.INFEASIBLE and solution.proof is cms.Proof.CHECKED:
        assert solution.certificate.proves_infeasible(problem)
    else:
        assert solution.lower_bound == (-(-bound // step) * step if step else bound)
    if solution.status is cms.Status.OPTIMAL:
        word = (solution.lower_bound, solution.claimed_bound)[solution.proof is cms.Proof.SOLVER]
        assert solution.proof is not cms.Proof.NONE
        assert word == solution.cost
    known = load_instance(name).optimum
    if method == "auto":
        assert solution.cost == known
        assert solution.status is (cms.Status.OPTIMAL, cms.Status.INFEASIBLE)[known is None]
    elif known is not None and solution.cost is not None:
        assert solution.lower_bound <= known <= solution.cost
    costs = [line.cost for line in solution.history if line.cost is not None]
    assert costs == sorted(costs, reverse=True)
    for key in ("lower_bound", "seconds"):
        values = [getattr(line, key) for line in solution.history]
        assert values == sorted(values)


@EVERY
def test_a_problem_stays_the_same_and_so_does_its_history(name: str) -> None:
    first, problem = solved(name, "auto"), pickle.loads(pickle.dumps(problem_of(name)))
    before = (pickle.dumps(problem), problem.sha256, hash(problem))
    again = cms.solve(problem, time_limit=None, threads=1)
    assert (pickle.dumps(problem), problem.sha256, hash(problem)) == before
    assert again.schedule == first.schedule
    assert without_seconds(again) == without_seconds(first)


def without_seconds(solution: cms.Solution) -> list[cms.Incumbent]:
    return [line._replace(seconds=0) for line in solution.history]


@EVERY
def test_the_second_checker_agrees_from_the_files(name: str, tmp_path: Path) -> None:
    files = tmp_path / "problem.json", tmp_path / "solution.json"
    cms.write_problem(problem_of(name), files[0])
    cms.write_solution(solved(name, "auto"), files[1])
    problem, solution = (parse_document(file.read_text("utf-8")) for file in files)
    assert check_problem(problem) == []
    assert check_solution(problem, solution) == []


def test_a_run_is_the_same_for_every_hash_seed() -> None:
    code = """
import cms
for name in ("S1", "non-irup", "limited-type", "greedy-trap-3"):
    instance = cms.load_instance(name)
    problem = instance.make() if hasattr(instance, "make") else instance.build_problem().problem
    solution = cms.solve(problem, time_limit=None, threads=1, seed=3)
    print(problem.sha256, list(solution.schedule.groups), solution.certificate.to_json())
    print([(line.cost, line.lower_bound, line.claimed_bound) for line in solution.history])
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(runs) == 1
