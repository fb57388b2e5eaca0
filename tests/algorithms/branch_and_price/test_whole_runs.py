"""The same history every time, and a checked answer at any time limit."""

from __future__ import annotations

from typing import Any

import pytest

from cms import Problem, Solution, check, solve
from instances.families import generate
from tests.samples import few, spread


def history(solution: Solution) -> list[object]:
    """All of a history but the seconds, and the schedule it ends with."""
    lines: list[object] = [
        (line.cost, line.lower_bound, line.claimed_bound, line.source) for line in solution.history
    ]
    groups = [
        (group.configuration, dict(group.assignment), group.count)
        for group in solution.schedule.groups
    ]
    return [*lines, groups, solution.certificate.to_json(), solution.status, solution.proof]


def answer(problem: Problem, **more: Any) -> Solution:
    return solve(problem, "price_and_branch", **{"time_limit": None, **more})


#: What reaches rounding, programs, branching and CP-SAT's word.
VARIED = [
    ("real-rows", {"n": 60, "m": 30}),
    ("mixed-fleet", {"n": 12, "types": 3, "limits": "tight"}),
    ("rounding", {"n": 30, "kind": "non-irup-listed"}),
    ("rounding", {"n": 12, "kind": "triplets"}),
    ("size-bounded-mixed", {"n": 8}),
    ("huge-demands", {"n": 3}),
]


@pytest.mark.parametrize("varied", spread(3, VARIED))
def test_the_history_is_the_same_every_time_and_for_any_threads(
    varied: tuple[str, dict[str, Any]],
) -> None:
    name, arguments = varied
    problem = generate(name, seed=2, **arguments)
    solution = answer(problem, threads=1, seed=5)
    assert history(answer(problem, threads=2, seed=5)) == history(solution)
    bounds = [line.lower_bound for line in solution.history]
    costs = [line.cost for line in solution.history if line.cost is not None]
    assert bounds == sorted(bounds)
    assert costs == sorted(costs, reverse=True)


def hard() -> Problem:
    """Seconds of work, most of it on the later stages."""
    return generate("mixed-fleet", n=60, seed=3, types=5, limits="tight", cost_step="0.01")


@pytest.mark.parametrize("limit", few(2, [0, 0.1, 0.01, 0.4, 0.001, 0.05, 0.2]))
def test_any_time_limit_leaves_a_checked_answer(limit: float) -> None:
    for problem in (hard(), generate("real-rows", n=5000, seed=1, m=30)):
        solution = answer(problem, time_limit=limit)
        assert solution.cost is None or check(problem, solution.schedule) == ()
        assert solution.certificate.bound(problem) <= solution.lower_bound
        assert solution.cost is None or solution.lower_bound <= solution.cost
