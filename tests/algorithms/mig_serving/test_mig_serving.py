"""MIG-serving whole: checked schedules, never worse than its fast part, the same for a seed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from algorithms.mig_serving import MigServingFastOptions, MigServingOptions
from algorithms.mig_serving.genetic import Deployment, Genetic
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
    reduce,
)
from cms.errors import InvalidOption
from cms.plugin.registry import load_instance
from instances.families import generate
from tests.algorithms.mig_serving.parts import assert_serves, parts, usable
from tests.oracle import optimum
from tests.property.problems import TINY, share
from tests.samples import few, refusal, so_many

#: A minute is less than some runs need on a busy machine.
solve = partial(cms.solve, time_limit=None)
#: Short runs.
QUICK: dict[str, Any] = {
    "rounds_without_gain": 2,
    "population": 3,
    "playouts": 6,
    "erased": "1/2",
}
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


def test_plain_scores_open_more() -> None:
    problem = generate("real-rows", n=12, m=2, seed=0)
    costs = [
        solve(problem, "mig_serving_fast", options={"score": score}).cost
        for score in ("capped", "plain")
    ]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[0] < costs[1]


@pytest.mark.long
def test_each_improvement_is_a_claim() -> None:
    options = {**QUICK, "rounds_without_gain": 10}
    solution = solve(generate("real-rows", n=24, seed=3), "mig_serving", options=options)
    costs = [entry.cost for entry in solution.history if entry.cost is not None]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)
    assert solution.history[0].source == "mig_serving: fast algorithm"
    *_, last, bound = (entry.source for entry in solution.history)
    assert "genetic algorithm, round" in last
    assert bound == "rough prices"
    assert solution.stop_reason is StopReason.FINISHED


@pytest.mark.parametrize("mixed", few(2, [2, 1, 3]))
@pytest.mark.parametrize("method", BOTH)
def test_no_machine_has_more_jobs_than_may_be_mixed(method: str, mixed: int) -> None:
    problem = generate("mig-serving", n=16, seed=1)
    most = []
    for last_mile in (0, "1/10"):
        options: dict[str, Any] = {"mixed": mixed, "last_mile": last_mile}
        if method == "mig_serving":
            options |= {**QUICK, "exchanges": 20, "merging": 1}
        schedule = solve(problem, method, options=options).schedule
        jobs = [len({job for _, job in group.assignment}) for group in schedule.groups]
        most.append(max(jobs))
    assert most[0] <= mixed
    assert most[1] <= mixed + 1


def test_a_schedule_to_start_from_joins_the_population(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate("real-rows", n=16, seed=1)
    start = solve(problem, "greedy").schedule
    seen: list[Sequence[Deployment]] = []
    improvements = Genetic.improvements

    def watched(self: Genetic, first: Sequence[Deployment], budget: Any) -> Any:
        seen.append(first)
        return improvements(self, first, budget)

    monkeypatch.setattr(Genetic, "improvements", watched)
    solve(problem, "mig_serving", options=QUICK)
    solve(problem, "mig_serving", options=QUICK, start=start)
    assert [len(first) for first in seen] == [1, 2]
    fast, given = seen[1]
    assert given.cost == start.cost(problem) < fast.cost


@share(4)
@given(st.one_of([TINY[kind] for kind in TINY if kind not in ("limits", "free machines")]))
def test_schedules_can_be_read_as_machines(problem: Problem) -> None:
    if not usable(problem):
        return
    made = parts(problem)
    schedule = solve(problem, "greedy", threads=1).schedule
    machines = made.services.machines_of(schedule, 1000)
    assert machines is not None
    assert_serves(made.services, machines)
    assert len(machines) == schedule.machine_count
    assert made.services.machines_of(schedule, schedule.machine_count - 1) is None
    again = reduce(problem).restore(made.services.schedule(machines))
    assert not check(problem, again)
    assert again.cost(problem) <= schedule.cost(problem)


@pytest.mark.parametrize("seed", [1])
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
        for s in range(2)
    }
    assert len(found) > 1


def test_hundreds_of_services() -> None:
    problem = generate("real-rows", n=so_many(300, 1_000), seed=0)
    solution = solve(problem, "mig_serving_fast")
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
            "the ways to hand out the blocks of a machine (up to 30, of 3 types) to 4 jobs make",
        ),
    ],
    ids=["limits", "free", "huge demands", "many blocks", "many ways"],
)
def test_what_it_cannot_take_it_refuses(method: str, problem: Problem, reason: str) -> None:
    assert reason in refusal(UnsupportedProblem, solve, problem, method)


def test_far_too_many_cheap_machines_are_refused_on_the_way() -> None:
    problem = Problem(
        configurations=[Configuration({"a": 1}, "cheap"), Configuration({"b": 1}, "dear")],
        machine_types=[MachineType("cheap", "0.00005"), MachineType("dear", 1)],
        jobs=[Job("x", 100_000, {"a": 1, "b": 10_000})],
    )
    message = refusal(UnsupportedProblem, solve, problem, "mig_serving_fast")
    assert "20000" in message


def test_many_jobs_are_refused_before_anything_is_worked_out() -> None:
    problem = generate("real-rows", n=30_000, m=1, seed=0)
    message = refusal(UnsupportedProblem, solve, problem, "mig_serving")
    assert "it would open up to 30000 machines" in message


def test_many_block_types_make_too_large_a_table() -> None:
    names = [f"b{i}" for i in range(300)]
    shapes = [Configuration({names[i]: 1, names[i - 1]: 1, names[i - 7]: 1}) for i in range(300)]
    jobs = [Job(f"j{j}", 10, dict.fromkeys(names, 1 + j)) for j in range(10)]
    problem = Problem(configurations=shapes, jobs=jobs)
    assert "of 300 types" in refusal(UnsupportedProblem, solve, problem, "mig_serving")


def test_fewer_jobs_on_a_machine_are_fewer_ways() -> None:
    problem = Problem(
        configurations=SizeBoundedConfigurations({"a": 1, "b": 2, "c": 3}, 30),
        jobs=[Job(name, 90, {"a": 1, "b": 3, "c": 5}) for name in "wxyz"],
    )
    solution = solve(problem, "mig_serving_fast", options={"mixed": 1})
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mixed": 0}, "mixed is 0; expected a whole number from 1 to 5"),
        ({"mixed": True}, "mixed is True; expected a whole number from 1 to 5"),
        ({"last_mile": 2}, "last_mile is 2; expected a number >= 0 and <= 1"),
        ({"score": "best"}, "score is 'best'; expected one of capped, plain"),
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
        ({"erased": "1.5"}, "erased is 1.5; expected a number >= 0 and <= 1"),
        ({"exploration": -1}, "exploration is -1"),
        ({"exploration": 10**400}, "expected a number >= 0 and <= 1000000"),
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
