"""The proved program and the second checker, on the same plans: they never differ."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from cms import Problem, solve
from cms.files import problem_to_json, schedule_to_json
from proofs_checks.checker.problem import read_problem
from proofs_checks.formal.program import KINDS, verdicts
from proofs_checks.formal.words import plan_words
from tests.families import FAMILIES, instance
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import A100, SLICES, Document, problem
from tests.property.mutation import mutant, pool_of
from tests.samples import so_many

from .random_plans import Plan, both_say, random_plans

pytestmark = pytest.mark.usefixtures("built")

#: Problems whose proof by branch_and_price is a tree with branches.
BRANCHED = [
    ("costs", 4), ("costs", 7), ("costs", 14), ("limits", 2), ("limits", 5), ("limits", 7),
    ("limits", 13), ("machine_types", 11), ("machine_types", 12), ("infeasible_by_limit", 1),
    ("infeasible_by_limit", 4), ("infeasible_by_limit", 9),
]  # fmt: skip


def compared(plans: Iterable[Plan], kind: str = "zarith") -> Counter[str]:
    """Hold the program's verdicts against the second checker's; count them."""
    found = [(plan, *both_say(*plan)) for plan in plans]
    lines = [line for _, _, line in found if line is not None]
    program = iter(verdicts(lines, kind))
    counts: Counter[str] = Counter()
    for plan, second, line in found:
        proved = "Rejected" if line is None else next(program)
        # The second checker proves that there is no schedule, whatever schedule it is shown.
        unread = line is None and plan.groups is not None and second == "Infeasible"
        assert proved == second or unread, plan
        counts[proved.split()[0]] += 1
        counts["refused before"] += line is None
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_random_plans(kind: str) -> None:
    counts = compared(random_plans(1, 400), kind)
    assert min(counts[word] for word in ("Infeasible", "Optimal", "Between", "AtLeast")) > 0
    assert counts["Rejected"] < 300


@pytest.mark.parametrize(("families", "replicas"), [(["groups"], 0), ([*FAMILIES], 1)])
def test_random_plans_with_limits_of_groups_and_replicas(
    families: list[str], replicas: float
) -> None:
    counts = compared(random_plans(4, so_many(50, 2_000), families, replicas))
    assert min(counts[word] for word in ("Infeasible", "Optimal", "AtLeast")) > 0


@pytest.mark.long
def test_ten_thousand_random_plans() -> None:
    counts = compared(random_plans(7, 10_000))
    assert sum(counts[word] for word in ("Infeasible", "Optimal", "Between", "AtLeast")) > 3_000


def solved(name: str, number: int) -> tuple[Problem, Any]:
    of = instance(name, number)
    return of, solve(of, "branch_and_price", threads=1, time_limit=None)


def in_files(of: Problem, solution: Any) -> Plan:
    there = solution.status in ("optimal", "feasible")
    groups = schedule_to_json(solution.schedule)["groups"] if there else None
    return Plan(problem_to_json(of), groups, solution.certificate.to_json())


def test_trees_that_solve_made() -> None:
    plans = []
    for name in FAMILIES:
        for number in range(so_many(2, 12)):
            plans.append(in_files(*solved(name, number)))
    plans += [in_files(*solved(name, number)) for name, number in BRANCHED]
    assert sum("branch" in tree for _, _, tree in plans) >= 10
    counts = compared(plans)
    assert counts["Rejected"] == 0
    assert counts["Optimal"] > len(FAMILIES)


def test_whatever_is_tampered_with_is_judged_alike() -> None:
    rng, plans = random.Random(3), []
    of_families = [(name, 0) for name in [*FAMILIES][:: so_many(4, 1)]]
    for name, number in [*BRANCHED[:: so_many(3, 1)], *of_families]:
        of, groups, tree = in_files(*solved(name, number))
        pool = pool_of(of, groups, tree)
        plans += [Plan(of, None, mutant(rng, tree, pool)) for _ in range(30)]
        plans += [Plan(mutant(rng, of, pool), None, tree) for _ in range(5)]
        if groups is not None:
            others = (mutant(rng, groups, pool) for _ in range(20))
            plans += [Plan(of, other, tree) for other in others if isinstance(other, list)]
    counts = compared(plans)
    assert counts["Rejected"] > 100
    assert counts.total() - counts["Rejected"] > 100


TIED = {"a": 997, "b": 1001, "c": 1003, "d": 1009, "e": 1013}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("demand", [60_501, 1_000_003, 10**15 + 7])
def test_blocks_that_tie(kind: str, demand: int) -> None:
    """Every option costs what it covers: the search alone would have no end."""
    # A machine costs 1013 of the costs' step, so that nothing is lost by rounding.
    types: list[Document] = [{"name": "m", "cost": 1}, {"name": "n", "cost": "1/1013"}]
    shapes = [*({"machine": "m", "blocks": {i: 1}} for i in TIED),
              {"machine": "n", "blocks": {"spare": 1}}]  # fmt: skip
    of = problem(shapes, {"j": (demand, TIED), "k": (1, {"spare": 1})}, types)
    tree = {"prices": {i: f"{f}/1013" for i, f in TIED.items()}}
    assert compared([Plan(of, None, tree)], kind)["AtLeast"] == 1


def many_jobs(number: int) -> Plan:
    rng, jobs, groups = random.Random(1), {}, []
    for j in range(number):
        f, demand = rng.randint(10, 200), rng.randint(1, 5000)
        table = {"1g": f, "2g": f * 11 // 5, "3g": f * 31 // 10, "4g": f * 43 // 10, "7g": f * 7}
        jobs[f"j{j}"] = demand, table
        machines = -(-demand // (7 * f))
        groups.append({"machine": "machine", "configuration": {"1g": 7}, "count": machines,
                       "assignment": [["1g", f"j{j}", 7]]})  # fmt: skip
    return Plan(problem(A100, jobs), groups, {"prices": SLICES})


@pytest.mark.parametrize("number", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_jobs(number: int) -> None:
    assert compared([many_jobs(number)])["Between"] == 1


def test_little_effort_proves_less_and_nothing_false() -> None:
    of = problem([{"blocks": {"a": 1, "b": 1}}], {"j": (100, {"a": 7, "b": 9})})
    tree = {"prices": {"a": "2/5", "b": "3/5"}}
    line = plan_words(read_problem(read(of)), None, tree)
    assert verdicts([line]) == verdicts([line], effort=10_000) == ["AtLeast 6"]
    assert verdicts([line], effort=0) in (["AtLeast 5"], ["AtLeast 6"])
