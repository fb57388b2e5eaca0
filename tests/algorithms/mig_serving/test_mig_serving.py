"""MIG-serving whole: checked schedules, never worse than its fast part, the same for a seed."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from cms import Problem, Status, StopReason, check
from cms.plugin.registry import load_instance
from instances.families import generate
from tests.oracle import optimum
from tests.property.problems import TINY, share
from tests.samples import few

#: A minute is less than some runs need on a busy machine.
solve = partial(cms.solve, time_limit=None)
#: Short runs.
QUICK: dict[str, Any] = {"rounds_without_gain": 2, "population": 3, "playouts": 6, "erased": "1/2"}
BOTH = ("mig_serving_fast", "mig_serving")


@share(4)
@given(st.one_of([TINY[kind] for kind in TINY if kind not in ("limits", "free machines")]))
def test_schedules_are_between_the_optimum_and_the_fast_ones(problem: Problem) -> None:
    fast = solve(problem, "mig_serving_fast", threads=1)
    slow = solve(problem, "mig_serving", options=QUICK, threads=1)
    least = optimum(problem)
    if least is None:
        assert fast.status is slow.status is Status.INFEASIBLE
        return
    assert fast.cost is not None
    assert slow.cost is not None
    assert least <= slow.cost <= fast.cost
    assert not check(problem, slow.schedule)


@pytest.mark.parametrize(
    "known", few(3, [("S1", 2), ("S3", 6), ("S6", 17), ("S2", 4), ("S4", 7), ("S5", 13)])
)
def test_the_published_scenarios(known: tuple[str, int]) -> None:
    name, gpus = known
    scenario: Any = load_instance(name)
    problem = scenario.as_problem().problem
    assert solve(problem, "mig_serving_fast").cost == gpus
    slow = solve(problem, "mig_serving", options=QUICK)
    assert slow.cost is not None
    assert slow.cost <= gpus


def test_each_improvement_is_a_claim_and_a_seed_has_one_history() -> None:
    problem = generate("real-rows", n=12, seed=2)
    runs = [
        solve(problem, "mig_serving", options={**QUICK, "score": "plain"}, seed=seed)
        for seed in (1, 1, 2)
    ]
    one, two, other = ([(e.cost, e.source) for e in run.history] for run in runs)
    assert one == two != other
    assert runs[0].schedule == runs[1].schedule
    costs = [cost for cost, _ in one if cost is not None]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)
    assert one[0][1] == "mig_serving: fast algorithm"
    assert any("genetic algorithm, round" in source for _, source in one)
    assert runs[0].stop_reason is StopReason.FINISHED
    # what the machine gives beyond what is missing is not worth anything
    assert solve(problem, "mig_serving_fast").cost < costs[0]  # type: ignore[operator]


@pytest.mark.parametrize("mixed", few(2, [2, 1, 3]))
@pytest.mark.parametrize("method", BOTH)
def test_no_machine_has_more_jobs_than_may_be_mixed(method: str, mixed: int) -> None:
    problem = generate("mig-serving", n=16, seed=1)
    for last_mile, more in ((0, 0), ("1/10", 1)):
        options: dict[str, Any] = {"mixed": mixed, "last_mile": last_mile}
        options |= QUICK if method == "mig_serving" else {}
        schedule = solve(problem, method, options=options).schedule
        jobs = [len({job for _, job in group.assignment}) for group in schedule.groups]
        assert max(jobs) <= mixed + more
