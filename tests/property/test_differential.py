"""All methods on the same problems: whatever one of them proves, none of the others contradicts.

The judge is enumeration (``tests.oracle``), which shares nothing with any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import Job, Problem, Proof, Solution, Status, UnsupportedProblem, solve
from tests.oracle import optimum
from tests.property.problems import (
    LISTED,
    PLENTY,
    TINY,
    UNLIMITED,
    huge,
    problems,
    rebuilt,
    share,
    supply,
)
from tests.references.guarantees import METHODS, examine, promise
from tests.samples import spread

#: These decide every tiny problem, whatever its kind.
EXACT = ("branch_and_price", "cp_sat", "auto")
ALL = (*EXACT, *METHODS)
#: And these, which may refuse one; so small an epsilon allows no cost but the least.
WAYS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    *(("ptas", {"exact": way, "epsilon": "1/100000"}) for way in ("dynamic", "program")),
    *(("conic", {"route": route}) for route in ("points", "cells")),
)


def contradictions(problem: Problem, best: Fraction | None, solution: Solution) -> list[str]:
    """What a solution says that the optimum refutes."""
    status, cost = solution.status, solution.cost
    infeasible = solution.certificate.proves_infeasible(problem)
    if best is None:
        said = {
            "an infeasible problem has a schedule": cost is not None,
            "an infeasible problem is called optimal": status is Status.OPTIMAL,
        }
    else:
        lines = solution.history
        said = {
            "a feasible problem is called infeasible": status is Status.INFEASIBLE or infeasible,
            "a schedule is below the optimum": cost is not None and cost < best,
            "it is called optimal and is not": status is Status.OPTIMAL and cost != best,
            "its bound is above the optimum": solution.lower_bound > best,
            "its certificate proves too much": solution.certificate.bound(problem) > best,
            "a bound of its history is above the optimum": any(
                line.lower_bound > best or (line.claimed_bound or 0) > best for line in lines
            ),
        }
    return [words for words, holds in said.items() if holds]


@pytest.mark.parametrize("kind", spread(8, TINY))
@share(17)
@given(st.data())
def test_no_method_contradicts_another(kind: str, data: st.DataObject) -> None:
    problem = data.draw(problems([kind]))
    best = optimum(problem)
    for method in ALL:
        solution = examine(problem, best, method, {})
        if solution is None:
            continue
        assert contradictions(problem, best, solution) == [], method
        if method in EXACT or method == "conic":
            assert solution.proof is not Proof.NONE, method
            assert solution.cost == best, method


@pytest.mark.parametrize("plain", [False, True], ids=["whole", "plain"])
@share(5)
@given(problems(UNLIMITED))
def test_exact_parts_agree_with_enumeration(plain: bool, problem: Problem) -> None:
    best = optimum(problem)
    for method, options in WAYS:
        try:
            solution = solve(
                problem, method, options={**options, "plain": plain}, threads=1, time_limit=PLENTY
            )
        except UnsupportedProblem:
            continue
        assert contradictions(problem, best, solution) == [], (method, options)
        assert solution.cost == best, (method, options)


@share(2)
@given(problems(("size-bounded", *LISTED)), st.sampled_from([Fraction(1, 3), Fraction(10**12)]))
def test_greedy_with_weights_of_one_over_the_demand_does_not_see_a_job_s_unit(
    problem: Problem, factor: Fraction
) -> None:
    jobs = [
        Job(job.name, job.demand * factor, {b: f * factor for b, f in supply(job).items()})
        for job in problem.jobs[:1]
    ]
    scaled = rebuilt(problem, jobs=[*jobs, *problem.jobs[1:]])
    options = {"variant": "inflated", "inner": "greedy", "plain": True}
    one, two = (solve(each, "greedy", options=options, threads=1) for each in (problem, scaled))
    assert one.cost == two.cost


def takes(problem: Problem, method: str) -> bool:
    """Whether a method answers, and does not refuse the problem."""
    try:
        solve(problem, method, threads=1, time_limit=PLENTY)
    except UnsupportedProblem:
        return False
    return True


@pytest.mark.parametrize("kind", ["listed", "size-bounded"])
@share(10)
@given(st.data())
def test_huge_demands_are_met_by_few_groups_within_every_guarantee(
    kind: str, data: st.DataObject
) -> None:
    problem = data.draw(huge(kind))
    methods = list(METHODS)
    if problem.rows.wide:
        # Numbers beyond a machine word: those that may refuse them are asked, but need not answer.
        methods = [method for method in methods if takes(problem, method)]
        assert {"greedy", "lp_rounding"} <= set(methods)
    found = {method: solve(problem, method, threads=1, time_limit=PLENTY) for method in methods}
    best = min(solution.cost for solution in found.values() if solution.cost is not None)
    for method, solution in found.items():
        assert solution.lower_bound <= best
        assert solution.cost is not None, method
        promised = promise(problem, method, {})
        assert promised is not None
        # No reference is above the optimum, which no schedule is below.
        assert solution.cost <= promised.allows(best), method
        # Theory 1.2: one group for each configuration in use, two more for each entry.
        schedule = solution.schedule
        entries = {pair for group in schedule.groups for pair in group.assignment}
        assert len(schedule.groups) <= len(schedule.machines) + 2 * len(entries), method


@pytest.mark.parametrize("method", ALL)
@share(8)
@given(data=st.data())
def test_the_same_seed_tells_the_same_story(method: str, data: st.DataObject) -> None:
    problem = data.draw(problems())
    try:
        one, two = (solve(problem, method, threads=1, seed=5, time_limit=PLENTY) for _ in range(2))
    except UnsupportedProblem:
        return
    assert one.schedule == two.schedule
    assert one.certificate == two.certificate
    lines = [
        [(line.cost, line.lower_bound, line.claimed_bound, line.source) for line in each.history]
        for each in (one, two)
    ]
    assert lines[0] == lines[1]
