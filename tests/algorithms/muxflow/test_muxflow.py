"""MuxFlow's plans are worth what scipy's assignment is, and are proved to the last unit."""

from __future__ import annotations

import subprocess
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.muxflow.plans import counts_of, exchanges, longest_paths, parted
from algorithms.solvers import transport
from bench.colocation_figures.matching import best_value
from cms import Proof, Status, StopReason, UnsupportedProblem, check
from cms.fleet import colocation
from cms.fleet.colocation.edge_problems import posed
from cms.running.stopping import never
from instances.families.colocation import random_classes as drawn
from instances.families.colocation import shared_gpus
from tests.samples import few, refusal

METHODS = ("colocation_greedy", "colocation_random", "colocation_first_fit", "colocation_dedicated")


def proved(problem: colocation.ColocationProblem, solution: colocation.ColocationSolution) -> int:
    """The value of an optimal plan, whose proof is checked once more."""
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert check(problem, solution.plan) == ()
    assert problem.value(solution.plan) == solution.value == solution.upper_bound
    assert solution.certificate.upper_bound(problem) == solution.upper_bound
    return solution.value


@pytest.mark.parametrize("seed", few(40, range(600)))
def test_the_value_is_that_of_scipys_assignment_of_single_gpus(seed: int) -> None:
    problem = drawn(seed, 200 if seed % 4 == 0 else 60)
    best = best_value(problem)
    assert proved(problem, colocation.colocate(problem)) == best
    if seed % 8 == 1:
        assert proved(problem, colocation.colocate(problem, "colocation_dense")) == best
    for method in METHODS if seed % 8 == 0 else ():
        solution = colocation.colocate(problem, method, seed=seed)
        assert check(problem, solution.plan) == ()
        assert solution.value <= best <= solution.upper_bound
        assert method != "colocation_greedy" or 2 * solution.value >= best
        assert method != "colocation_dedicated" or solution.value == 0


def every_plan(problem: colocation.ColocationProblem) -> list[colocation.ColocationPlan]:
    """All plans of a tiny problem."""
    pairs = [(o, f) for o in problem.online for f in problem.offline]
    ranges = [range(min(o.count, f.count) + 1) for o, f in pairs]
    named = [(o.name, f.name) for o, f in pairs]
    every = [dict(zip(named, counts, strict=True)) for counts in product(*ranges)]
    plans = [colocation.ColocationPlan({p: n for p, n in one.items() if n}) for one in every]
    return [plan for plan in plans if not check(problem, plan)]


SMALL = st.integers(0, 2)


@st.composite
def tiny(draw: st.DrawFn) -> colocation.ColocationProblem:
    rows, columns = draw(st.lists(SMALL, max_size=3)), draw(st.lists(SMALL, max_size=3))
    weights = [[draw(st.integers(-1, 5)) for _ in columns] for _ in rows]
    return posed(rows, columns, weights)


@given(tiny())
@example(posed([1, 1], [1], [[1], [5]]))  # an idle GPU is worth more
@example(posed([1], [1, 1], [[1, 5]]))  # a waiting workload is
@example(posed([2, 1], [1, 2], [[4, 5], [2, 4]]))  # an exchange gains one unit
def test_prices_prove_every_optimal_plan_and_no_other(
    problem: colocation.ColocationProblem,
) -> None:
    plans = every_plan(problem)
    best, counts = max(map(problem.value, plans)), counts_of(problem)
    assert proved(problem, colocation.colocate(problem)) == best == best_value(problem)
    for plan in plans:
        places = problem.online_index, problem.offline_index
        pairs = {(places[0][o], places[1][f]): n for o, f, n in plan}
        gains = exchanges(problem.weights, pairs, counts, never)
        found, is_proved = longest_paths(gains, never)
        assert is_proved == (problem.value(plan) == best)
        prices = colocation.AssignmentPrices.of_offline(problem, found.tolist())
        assert prices.upper_bound(problem) >= best
        if is_proved:
            assert prices.upper_bound(problem) == best


def test_sub_clusters_lose_no_more_than_is_certified() -> None:
    problem = shared_gpus(2_000, online=40, offline=15, seed=0)
    best, split = (
        colocation.colocate(problem).value,
        colocation.colocate(problem, options={"parts": 4}),
    )
    assert split.history[-1].source == "muxflow: prices of the flow in 4 parts"
    assert 0 <= best - split.value <= split.gap
    assert split.relative_gap <= 1 / 100
    assert colocation.colocate(problem, options={"parts": 4}).plan == split.plan
    for rows, columns in parted(([3, 1], [2]), 2, seed=0):
        assert (sum(rows), sum(columns)) == (2, 1)
    words = refusal(
        UnsupportedProblem, colocation.colocate, posed([10**9], [3], [[5]]), options={"parts": 2}
    )
    assert "1000000000 GPUs or workloads are drawn one by one into 2 parts" in words


def test_what_runs_stays_where_that_is_worth_it() -> None:
    def online(name: str, running: str) -> colocation.OnlineClass:
        return colocation.OnlineClass("gpu", count=3, sm_activity=0, running=running, name=name)

    problem = colocation.ColocationProblem(
        online=[online("a", "x"), online("b", "y")],
        offline=[colocation.OfflineClass("x", count=3), colocation.OfflineClass("y", count=3)],
        weights=[[50, 60], [60, 50]],
    )
    moved = colocation.ColocationPlan({("a", "y"): 3, ("b", "x"): 3})
    stayed = colocation.ColocationPlan({("a", "x"): 3, ("b", "y"): 3})
    assert (
        colocation.colocate(problem).plan
        == colocation.colocate(problem, options={"stay": 9}).plan
        == moved
    )
    solution = colocation.colocate(problem, options={"stay": 11})
    assert (solution.plan, solution.value, solution.gap) == (stayed, 300, 60)
    assert solution.status is Status.FEASIBLE


def test_random_plans_differ_by_the_seed_alone() -> None:
    problem = shared_gpus(100, online=9, offline=9, seed=0)
    plans = [
        colocation.colocate(problem, "colocation_random", seed=seed).plan for seed in (1, 1, 2)
    ]
    assert plans[0] == plans[1] != plans[2]


def test_counts_may_be_vast() -> None:
    problem = posed([10**12, 3], [10**12, 5 * 10**11], [[7, 9], [1, 8]])
    assert proved(problem, colocation.colocate(problem)) == 8 * 10**12 + 18
    beyond = posed([10**30], [10**30], [[1]])
    assert "more than the flow's 61 bits hold" in refusal(
        UnsupportedProblem, colocation.colocate, beyond
    )
    assert colocation.colocate(beyond, "colocation_greedy").value == 10**30
    assert "at most 1500 do" in refusal(
        UnsupportedProblem, colocation.colocate, problem, "colocation_dense"
    )


def test_a_flow_of_many_arcs_is_solved_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = drawn(4, 60)
    monkeypatch.setattr(transport, "MOST_ARCS_HERE", 0)
    monkeypatch.setattr(transport, "solved", None)  # not in this process
    assert proved(problem, colocation.colocate(problem, time_limit=None)) == best_value(problem)
    monkeypatch.setattr(transport, "PROCESS", "no.such.module")
    assert "the process with the flow ended with" in refusal(
        Exception, colocation.colocate, problem
    )


def test_a_flow_in_a_process_of_its_own_is_killed_when_the_run_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = drawn(4, 60)
    monkeypatch.setattr(transport, "MOST_ARCS_HERE", 0)
    seen = []
    plain = subprocess.Popen

    def patient(command: list[str], **settings: Any) -> Any:
        seen.append(plain([command[0], "-c", "import time; time.sleep(3600)"], **settings))
        return seen[-1]

    monkeypatch.setattr(subprocess, "Popen", patient)
    solution = colocation.colocate(problem, time_limit=0.5)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.history[-1].source == "muxflow: prices of the greedy plan"
    assert [process.wait() for process in seen] == [-9]
