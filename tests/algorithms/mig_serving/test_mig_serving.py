"""MIG-serving whole: checked schedules, never worse than its fast part, the same for a seed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.mig_serving import MigServingFastOptions, MigServingOptions
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    Status,
    StopReason,
    UnsupportedProblem,
    check,
    solve,
)
from cms.errors import InvalidOption
from cms.registry import load_instance
from instances.families import generate
from tests.oracle import optimum
from tests.property.problems import TINY, share
from tests.samples import refusal

#: Short runs.
QUICK: dict[str, Any] = {
    "rounds_without_gain": 2,
    "population": 3,
    "playouts": 6,
    "erased": "1/2",
}
BOTH = ("mig_serving_fast", "mig_serving")


@share(2)
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
    ("name", "gpus"), [("S1", 2), ("S2", 4), ("S3", 6), ("S4", 7), ("S5", 13), ("S6", 17)]
)
def test_the_published_scenarios(name: str, gpus: int) -> None:
    scenario: Any = load_instance(name)
    problem = scenario.as_problem().problem
    assert solve(problem, "mig_serving_fast").cost == gpus
    slow = solve(problem, "mig_serving", options=QUICK)
    assert slow.cost is not None
    assert slow.cost <= gpus


def test_plain_scores_open_more() -> None:
    problem = generate("real-rows", n=12, m=2, seed=0)
    costs = [
        solve(problem, "mig_serving_fast", options={"score": score}).cost
        for score in ("capped", "published")
    ]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[0] < costs[1]


def test_each_improvement_is_a_claim() -> None:
    solution = solve(generate("real-rows", n=24, seed=2), "mig_serving", options=QUICK, seed=3)
    costs = [entry.cost for entry in solution.history if entry.cost is not None]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)
    assert solution.history[0].source == "mig_serving: fast algorithm"
    assert "genetic algorithm, round" in solution.history[-1].source
    assert solution.stop_reason is StopReason.FINISHED


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_has_the_same_history(seed: int) -> None:
    problem = generate("real-rows", n=12, seed=2)
    runs = [solve(problem, "mig_serving", options=QUICK, seed=seed) for _ in range(2)]
    one, two = ([(e.cost, e.source) for e in run.history] for run in runs)
    assert one == two
    assert runs[0].schedule == runs[1].schedule


def test_another_seed_takes_another_way() -> None:
    problem = generate("real-rows", n=12, seed=1)
    found = {
        str(sorted(map(str, solve(problem, "mig_serving", options=QUICK, seed=s).schedule.groups)))
        for s in range(4)
    }
    assert len(found) > 1


def test_a_thousand_services() -> None:
    problem = generate("real-rows", n=1_000, seed=0)
    solution = solve(problem, "mig_serving_fast", time_limit=None)
    assert solution.status is Status.FEASIBLE
    assert solution.cost is not None
    assert solution.cost <= 1.15 * float(solve(problem).lower_bound)


def test_costs_count() -> None:
    problem = Problem(
        configurations=[Configuration({"b": 1}, "small"), Configuration({"b": 3}, "large")],
        machine_types=[MachineType("small", 1), MachineType("large", 2)],
        jobs=[Job("x", 4, {"b": 1})],
    )
    for method in BOTH:
        assert solve(problem, method).cost == 3


@pytest.mark.parametrize("method", BOTH)
def test_numbers_that_no_machine_word_holds(method: str) -> None:
    problem = Problem(
        configurations=Configuration({"a": 3, "b": 1}),
        jobs=[
            Job("x", 10**30, {"a": 10**28 + 1, "b": 1}),
            Job("y", "1", {"a": "1/3"}),
            Job("z", 10**12, {"a": 10**11, "b": 3 * 10**11}),
        ],
    )
    solution = solve(problem, method)
    assert not check(problem, solution.schedule)
    best = solve(problem).cost
    assert best is not None
    assert solution.cost is not None
    assert solution.cost <= best + 1


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (
            Problem(
                configurations=Configuration({"a": 1}, "m"),
                machine_types=[MachineType("m", limit=3)],
                jobs=[Job("x", 1, {"a": 1})],
            ),
            "machine type 'm' has a limit of 3 machines",
        ),
        (
            Problem(
                configurations=Configuration({"a": 1}, "m"),
                machine_types=[MachineType("m", 0)],
                jobs=[Job("x", 1, {"a": 1})],
            ),
            "machine type 'm' costs nothing, and scores are divided by costs; use auto",
        ),
        (
            Problem(configurations=Configuration({"a": 1}), jobs=[Job("x", 10**12, {"a": 1})]),
            "it would open up to 1000000000001 machines one by one, at most 20000 are tried",
        ),
        (
            Problem(configurations=Configuration({"a": 10**6}), jobs=[Job("x", 9, {"a": 1})]),
            "a machine has 1000000 blocks, which are handed out one by one; at most 1000",
        ),
        (
            Problem(
                configurations=SizeBoundedConfigurations({"a": 1, "b": 2, "c": 3}, 30),
                jobs=[Job(name, 90, {"a": 1, "b": 3, "c": 5}) for name in "wxyz"],
            ),
            "there are more than 200000 ways to hand out the blocks of a machine (up to 30) to 4",
        ),
    ],
    ids=["limits", "free", "huge demands", "many blocks", "many ways"],
)
def test_what_it_cannot_take_it_refuses(method: str, problem: Problem, reason: str) -> None:
    assert reason in refusal(UnsupportedProblem, solve, problem, method)


def test_fewer_jobs_on_a_machine_are_fewer_ways() -> None:
    problem = Problem(
        configurations=SizeBoundedConfigurations({"a": 1, "b": 2, "c": 3}, 30),
        jobs=[Job(name, 90, {"a": 1, "b": 3, "c": 5}) for name in "wxyz"],
    )
    solution = solve(problem, "mig_serving_fast", options={"mixed": 1})
    assert solution.status is Status.FEASIBLE


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mixed": 0}, "mixed is 0; expected a whole number from 1 to 5"),
        ({"mixed": True}, "mixed is True; expected a whole number from 1 to 5"),
        ({"last_mile": 2}, "last_mile is 2; expected a number from 0 to 1"),
        ({"score": "best"}, "score is 'best'; expected one of capped, published"),
    ],
)
@pytest.mark.parametrize("method", BOTH)
def test_bad_options_say_what_is_expected(
    method: str, options: dict[str, object], reason: str
) -> None:
    problem = generate("real-rows", n=2, seed=0)
    assert reason in refusal(InvalidOption, solve, problem, method, options=options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"playouts": 0}, "playouts is 0; expected a whole number from 1 to 1000000"),
        ({"erased": "1.5"}, "erased is 3/2; expected a number from 0 to 1"),
        ({"exploration": -1}, "exploration is -1"),
        ({"backup": "best"}, "backup is 'best'; expected one of minimum, mean"),
        ({"rounds_without_gain": "3"}, "rounds_without_gain is '3'; expected a whole number"),
    ],
)
def test_bad_options_of_the_pipeline(options: dict[str, object], reason: str) -> None:
    problem = generate("real-rows", n=2, seed=0)
    assert reason in refusal(InvalidOption, solve, problem, "mig_serving", options=options)


def test_the_pipelines_options_begin_with_those_of_the_fast_part() -> None:
    fast, slow = MigServingFastOptions(), MigServingOptions()
    assert (slow.score, slow.mixed, slow.last_mile) == (fast.score, fast.mixed, fast.last_mile)
