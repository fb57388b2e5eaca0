"""What a run does in its process, and what becomes of one that does not end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import bench.processes
import bench.runs.solving
import bench.runs.warming
from bench.processes import end_all, run_task
from bench.row import Outcome
from bench.runs import perform
from bench.runs.solving import passes, recheck
from bench.runs.stage import Stage
from bench.suites import SUITES
from bench.task import NAMED, Kind, Source, Task
from cms import BlockPrices, Configuration, Job, MachineType, Problem, Schedule, Status, solve

STAND_IN = Source(family="sparse", arguments={"n": 3, "seed": 0}, module="tests.bench.stand_in")
THREE = Problem(configurations=Configuration({"b": 2}), jobs=[Job("x", 3, {"b": 1})])


def task(**changes: Any) -> Task:
    values = {"suite": "s", "kind": Kind.SOLVE, "source": STAND_IN, "method": "auto"}
    return Task(**{**values, "time_limit": 10, "warm_up": False, **changes})


def perform_quietly(what: Task) -> Any:
    return perform(what, 1, lambda stage, facts: None)


# --- in the process -------------------------------------------------------------------------------


def test_stages_come_in_order_with_what_is_known() -> None:
    seen: list[tuple[Stage, set[str]]] = []
    row = perform(task(), 1, lambda stage, facts: seen.append((stage, set(facts))))
    assert [stage for stage, _ in seen] == [Stage.PREPARING, Stage.RUNNING, Stage.CHECKING]
    assert {"n", "instance_sha256"} <= seen[0][1]
    assert "seconds" in seen[2][1]
    assert (row.outcome, row.status, row.checker) == (Outcome.ANSWERED, "optimal", "independent")
    assert row.history_length == len(row.history) >= 1
    assert row.versions["code"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"source": Source(family="S5", module="no.such")}, "ModuleNotFoundError"),
        ({"source": Source(family="S55", module=NAMED)}, "instance 'S55' is unknown"),
        ({"method": "autoo"}, "method 'autoo' is unknown"),
        ({"options": {"colour": 1}}, "colour"),
    ],
)
def test_whatever_is_raised_becomes_a_failed_row(changes: dict[str, Any], error: str) -> None:
    row = perform_quietly(task(**changes))
    assert row.outcome is Outcome.FAILED
    assert error in row.error


def test_a_solution_that_the_checker_refuses_is_a_failed_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def false(problem: Problem, *arguments: Any, **options: Any) -> Any:
        return replace(solve(problem, *arguments, **options), lower_bound=Fraction(10**6))

    monkeypatch.setattr(bench.runs.solving, "solve", false)
    row = perform_quietly(task())
    assert row.outcome is Outcome.FAILED
    assert row.error.startswith("the independent checker refuses the solution: ")
    assert row.checker is None


@pytest.mark.parametrize("jobs", [0, 2_000])
@pytest.mark.parametrize(
    "changes",
    [
        {"lower_bound": Fraction(3)},
        {"cost": Fraction(1), "lower_bound": Fraction(1)},
        {"schedule": Schedule()},
        {"certificate": BlockPrices()},
        {"certificate": BlockPrices(), "lower_bound": Fraction(0)},
    ],
)
def test_both_ways_to_recheck_find_what_is_false(
    changes: dict[str, Any], jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.runs.solving, "INDEPENDENTLY", jobs)
    solution = solve(THREE)
    checker = "independent" if jobs else "cms"
    assert recheck(THREE, solution) == (checker, [])
    assert recheck(THREE, replace(solution, **changes))[1]


@pytest.mark.parametrize("jobs", [0, 2_000])
def test_a_false_proof_of_infeasibility_is_found(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.runs.solving, "INDEPENDENTLY", jobs)
    few = THREE.replace(machine_types=[MachineType("machine", limit=1)])
    solution = solve(few)
    assert solution.status is Status.INFEASIBLE
    assert recheck(few, solution)[1] == []
    assert recheck(few, replace(solution, certificate=BlockPrices()))[1]


def test_passes_are_read_from_the_history() -> None:
    assert passes(["trivial", "x: block prices, 1 pass", "x: 12 passes", "y"]) == 12
    assert passes(["trivial", "compasses 3"]) is None


def test_a_process_is_warmed_up_once_for_each_method(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[tuple[int, str]] = []

    def noted(problem: Problem, method: str, **options: Any) -> None:
        solved.append((problem.n_jobs, method))

    monkeypatch.setattr(bench.runs.warming, "solve", noted)
    monkeypatch.setattr(bench.runs.warming, "_done", set())
    for method in ("auto", "auto", "cp_sat"):
        perform_quietly(task(method=method, warm_up=True))
    assert solved == [(5, "auto"), (5_000, "auto"), (5, "cp_sat"), (5_000, "cp_sat")]


# --- in a process that can be ended ---------------------------------------------------------------


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The processes started, all of them ended afterwards."""
    started: list[object] = []

    class Counted(bench.processes.Worker):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)

    monkeypatch.setattr(bench.processes, "Worker", Counted)
    yield started
    end_all()
    assert not bench.processes._alive


def test_an_idle_process_is_used_again_unless_a_fresh_one_is_wanted(
    processes: list[object],
) -> None:
    for changes in ({}, {"seed": 1}, {"fresh": True}, {"seed": 2}):
        assert run_task(task(**changes), 1).outcome is Outcome.ANSWERED
    assert len(processes) == 2


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    ("changes", "outcome", "error"),
    [
        ({"kind": Kind.PEER, "method": "highs"}, Outcome.OUT_OF_TIME, None),
        ({}, Outcome.FAILED, "it was ended after 0 s of running"),
    ],
)
def test_a_run_that_does_not_end_is_ended(
    changes: dict[str, Any],
    outcome: Outcome,
    error: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench.processes, "_seconds", lambda task, stage: 0.0)
    # So long a run that no answer can be there at once, on a busy machine either.
    long = Source(family="real-rows", arguments={"n": 1_000, "seed": 0, "m": 30})
    row = run_task(task(source=long, **changes), 1)
    assert (row.outcome, row.error, row.seconds_to_proof) == (outcome, error, 10.0)
    assert row.n == 1_000, "what was known is kept"


# --- the suites' own instances --------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES)
def test_the_families_know_every_instance_a_suite_asks_for(suite: str) -> None:
    settings = replace(SUITES[suite].defaults, seeds=1, instances=40, largest=1_000)
    sources = {task.source for task in SUITES[suite].tasks(settings)}
    assert sources
    for source in sources:
        n = source.arguments.get("n")
        assert n is None or source.problem().n_jobs == n
