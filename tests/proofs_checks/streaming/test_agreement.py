"""The checker of folders says what the one of documents does; jobs priced many at a time."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import Configuration, Problem, pack, solve
from cms.files import problem_to_json, write_solution
from proofs_checks import checker
from proofs_checks.checker.knapsacks import cheapest_price
from proofs_checks.checker.problem import Row, read_problem
from proofs_checks.checker.solution import examine
from proofs_checks.checker.usable import round_up
from proofs_checks.streaming import check_folders, pricing
from proofs_checks.streaming.check import examine as examine_folders
from proofs_checks.streaming.check import read_document
from proofs_checks.streaming.pricing import paid_by
from proofs_checks.streaming.problem import Rows
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


def paid(
    rows: list[list[int]], costs: list[int], kind: str = "i8", left_out: tuple[int, ...] = ()
) -> int:
    table = np.array(rows, dtype=kind).reshape(len(rows), -1)
    found = paid_by(Rows(table[:, 0], table[:, 1:], None, {}), costs, left_out)
    assert found == sum(
        cheapest_price(costs, row[1:], row[0]) or 0
        for at, row in enumerate(rows)
        if at not in left_out
    )
    return found


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("dearest", [1, 7, 73, 5000])
def test_many_jobs_at_once(kind: str, dearest: int) -> None:
    draw = np.random.default_rng(dearest)
    top = min(np.iinfo(kind).max, 2**50)
    for k in (1, 3, 5):
        sizes = draw.integers(0, 60, size=(120, k + 1))
        rows = (top >> sizes).astype(kind) - draw.integers(0, 2, size=sizes.shape)
        rows = np.maximum(rows, 0).tolist()
        costs = draw.integers(0 if k == 3 else 1, dearest + 1, size=k).tolist()
        paid(rows + rows[:50], costs, kind, (0, 7, 169))


KINDS = ("small", "near ties", "dear", "far apart", "at the edge")


def drawn_rows(
    draw: np.random.Generator, kind: str, jobs: int = 20
) -> tuple[list[list[int]], list[int]]:
    """Rows and costs."""
    k = int(draw.integers(1, 4 if kind == "at the edge" else 7))
    slices = draw.integers(1, 8, k)
    unit = int(draw.choice([1, 7, 100, 10**6]))
    if kind == "small":
        costs = draw.integers(0, 9, k)
        supply = draw.integers(0, 12, (jobs, k))
    elif kind == "near ties":
        costs = slices * unit + draw.integers(0, 2, k)
        supply = slices * unit + draw.integers(-1, 2, (jobs, k))
    elif kind == "dear":
        costs = slices * 2**32 + draw.integers(0, 2**30, k)
        supply = slices * unit + draw.integers(0, unit, (jobs, k))
    elif kind == "far apart":
        costs, supply = (2 ** draw.integers(0, 40, size) for size in (k, (jobs, k)))
    else:
        # Prices up to 2^51, and times a cover around 2^62: what is priced at once, and what is not.
        dear = 2 ** int(draw.integers(40, 52))
        costs = dear - draw.integers(0, 5, k) - slices * int(draw.integers(0, 2**30))
        supply = 2**62 // dear - draw.integers(-2, 9, (jobs, k))
    supply = np.maximum(supply, 0) * (draw.random((jobs, k)) < 0.9)
    most = {"at the edge": 5, "near ties": 9}.get(kind, draw.choice([3, 9, 42]))
    load = 2.0 ** draw.integers(-3, most, jobs)
    demand = np.minimum(supply.max(axis=1) * load + draw.integers(0, 3, jobs), 2.0**61)
    return np.column_stack([demand.astype(np.int64), supply]).tolist(), costs.tolist()


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_prices_of_any_size(kind: str, seed: int) -> None:
    paid(*drawn_rows(np.random.default_rng(seed), kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("nodes", "at_once"), [(1, 2), (5, 7), (40, 40)])
def test_few_nodes_and_jobs_at_once(
    monkeypatch: pytest.MonkeyPatch, kind: str, nodes: int, at_once: int
) -> None:
    monkeypatch.setattr(pricing, "_MOST_NODES", nodes)
    monkeypatch.setattr(pricing, "_NODES_AT_ONCE", at_once)
    monkeypatch.setattr(pricing, "_JOBS_AT_ONCE", at_once)
    for seed in range(5):
        paid(*drawn_rows(np.random.default_rng(seed), kind))


def test_ordinary_jobs_are_not_priced_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    slices = np.array([1, 2, 3, 4, 7])
    supply = np.sort(slices * draw.integers(800, 1200, (500, 5)), axis=1)
    demand = supply[:, 4] * 30 + draw.integers(0, 1000, 500)
    rows = np.column_stack([demand, supply]).tolist()
    costs = (slices * 2**32 + draw.integers(0, 2**28, 5)).tolist()
    total = sum(cheapest_price(costs, row[1:], row[0]) or 0 for row in rows)
    monkeypatch.setattr(pricing, "cheapest_price", None)
    assert paid_by(Rows(demand, supply, None, {}), costs, ()) == total


def test_no_jobs_and_rows_beyond_64_bits() -> None:
    nothing = np.empty(0, np.int8), np.empty((0, 2), np.int8)
    assert paid_by(Rows(*nothing, None, {}), [1, 2], ()) == 0
    wide = {0: Row(1, 10**30, (10**10, 1)), 1: Row(1, 10**30, (0, 0))}
    rows = Rows(np.zeros(3, np.int8), np.zeros((3, 2), np.int8), None, wide)
    assert paid_by(rows, [3, 1], ()) == 3 * 10**20
    assert paid_by(rows, [3, 1], (0,)) == 0
