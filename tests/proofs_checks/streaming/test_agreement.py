"""Both checkers say the same of the same problems and solutions, right ones and wrong ones."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from cms import Configuration, Problem, pack, solve
from cms.files import problem_to_json, write_solution
from proofs_checks import checker
from proofs_checks.checker.problem import read_problem
from proofs_checks.checker.solution import examine
from proofs_checks.checker.usable import round_up
from proofs_checks.streaming import check_folders
from proofs_checks.streaming.check import examine as examine_folders
from proofs_checks.streaming.check import read_document
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import Document
from tests.proofs_checks.documents import solution as solution_of
from tests.proofs_checks.formal.random_plans import random_groups, random_problem, random_tree
from tests.proofs_checks.streaming.folders import write_plan, write_problem


def a_solution(problem: Problem, draw: random.Random) -> Document:
    """One that often holds."""
    of = problem_to_json(problem)
    # A folder says of all machines what they hold, not of each: so groups are valid here.
    groups, tree = random_groups(draw, problem, tampered=0), random_tree(draw, problem)
    costs: dict[str, Fraction] = {m["name"]: Fraction(m["cost"]) for m in of["machine_types"]}
    cost = None if groups is None else sum(costs[g["machine"]] * g["count"] for g in groups)
    impossible = False
    bound = lower = Fraction(0)
    try:
        found = checker.certificate_bound(read(of), read(tree))
        impossible = found is None
        bound = bound if found is None else found
        lower = round_up(read_problem(read(of)), bound)
    except ValueError:
        pass
    lower = draw.choice([lower, lower, bound, bound - 1, bound + Fraction(1, 3)])
    status = "no_schedule" if groups is None else "feasible"
    if groups is None and impossible:
        status = "infeasible"
    elif lower == cost:
        status = "optimal"
    checked = status in ("optimal", "infeasible")
    return solution_of(
        of,
        groups or [],
        tree,
        status=status,
        proof="checked" if checked else "none",
        stop_reason="proved" if checked else "finished",
        machine_count=None if groups is None else sum(g["count"] for g in groups),
        cost=cost,
        lower_bound=lower,
        gap=None if cost is None else cost - lower,
    )


def spoil(solution: Document, draw: random.Random) -> None:
    """Change something, often to what is false."""
    key = draw.choice(["status", "proof", "cost", "gap", "lower_bound", "claimed_bound", "groups"])
    groups = solution["schedule"]["groups"]
    if key == "groups" and groups:
        group = draw.choice(groups)
        group["count"] = max(0, group["count"] + draw.choice([-1, 1]))
        if draw.random() < 0.7:
            solution["machine_count"] = sum(g["count"] for g in groups)
    elif key == "status":
        solution["status"] = draw.choice(["optimal", "feasible", "infeasible", "no_schedule"])
    elif key == "proof":
        solution["proof"] = draw.choice(["checked", "solver", "none"])
    else:
        solution[key] = draw.choice([None, 0, 1, 2, "7/2"])


@pytest.mark.parametrize("seed", range(8))
def test_both_checkers_say_the_same(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    seen: Counter[tuple[str, bool]] = Counter()
    for case in range(50):
        problem = random_problem(draw)
        of = problem_to_json(problem)
        fleet = tmp_path / f"{case}-fleet"
        assert write_problem(fleet, of) == checker.problem_sha256(read(of))
        assert check_folders(fleet) == checker.check_problem(read(of)) == []
        for way in range(3):
            solution = a_solution(problem, draw)
            if draw.random() < 0.3:
                spoil(solution, draw)
            plan = tmp_path / f"{case}-plan-{way}"
            write_plan(plan, solution, of)
            try:
                faults = checker.check_solution(read(of), read(solution))
            except checker.Fault as fault:  # NaN stands for a number
                faults = [str(fault)]
            again = check_folders(fleet, plan)
            assert bool(faults) == bool(again), (of, solution, faults, again)
            seen[solution["status"], not faults] += 1
            if not faults:
                head, claims = fleet / "problem.json", plan / "solution.json"
                words = examine_folders(fleet, read_document(head), plan, read_document(claims))
                assert words == examine(read_problem(read(of)), read(solution))
                assert check_folders(fleet, plan, (0, 1)) == [] or not of["jobs"]
    kinds = [("optimal", True), ("infeasible", True), ("feasible", True), ("no_schedule", False)]
    assert {*kinds, ("optimal", False), ("feasible", False)} <= seen.keys()
    assert sum(n for (_, holds), n in seen.items() if holds) > 30


def test_a_plan_of_no_machines_is_one(tmp_path: Path) -> None:
    """Nobody asks for anything: the package writes no counts, and nobody needs any."""
    head = Problem(configurations=[Configuration({"a": 2})])
    problem = pack(head, [([0, 0], [[1], [0]])], tmp_path / "fleet")
    write_solution(solve(problem), tmp_path / "plan")
    assert check_folders(tmp_path / "fleet", tmp_path / "plan") == []
    asked = pack(head, [([0, 3], [[1], [1]])], tmp_path / "asked")
    document = json.loads((tmp_path / "plan" / "solution.json").read_text("utf-8"))
    document["problem_sha256"] = document["certificate"]["problem_sha256"] = asked.sha256
    (tmp_path / "plan" / "solution.json").write_text(json.dumps(document), "utf-8")
    faults = check_folders(tmp_path / "asked", tmp_path / "plan")
    assert faults == ["job 'j1' has 0 of its demand 3 covered"]
