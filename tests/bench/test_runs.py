"""What a run does in its process, and what becomes of one that does not end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import bench.environment
import bench.processes
import bench.runs.solving
import bench.runs.warming
from bench import chunks
from bench.processes import end_all, run_task
from bench.row import Outcome, RunRow
from bench.runs import perform
from bench.runs.solving import recheck
from bench.runs.stage import Stage
from bench.suites import SUITES
from bench.task import NAMED, Kind, Source, Task
from cms import (
    BlockPrices,
    Configuration,
    InvalidOption,
    Job,
    Problem,
    Schedule,
    open_problem,
    solve,
)
from cms.plugin.registry import load_algorithm
from tests.samples import so_many

#: Seconds that the plug-ins' children sleep if nobody ends them.
ASLEEP = 3600
STAND_IN = Source(family="sparse", arguments={"n": 3, "seed": 0}, module="tests.bench.stand_in")
THREE = Problem(configurations=Configuration({"b": 2}), jobs=[Job("x", 3, {"b": 1})])


def task(**changes: Any) -> Task:
    values = {"suite": "s", "kind": Kind.SOLVE, "source": STAND_IN, "method": "auto"}
    return Task(**{**values, "time_limit": 10, "warm_up": False, **changes})


def perform_quietly(what: Task) -> Any:
    return perform(what, 1, lambda stage, facts: None)


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
    [{"lower_bound": Fraction(3)}, {"schedule": Schedule()}, {"certificate": BlockPrices()}],
)
def test_both_ways_to_recheck_find_what_is_false(
    changes: dict[str, Any], jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.runs.solving, "INDEPENDENTLY", jobs)
    solution = solve(THREE)
    checker = "independent" if jobs else "cms"
    assert recheck(THREE, solution) == (checker, [])
    assert recheck(THREE, replace(solution, **changes))[1]


@pytest.fixture
def _processes() -> Iterator[None]:
    """All that are started are ended afterwards."""
    yield
    end_all()
    assert not bench.processes._alive


@pytest.mark.usefixtures("_processes")
@pytest.mark.parametrize(
    ("changes", "outcome", "error"),
    [
        ({"kind": Kind.PEER, "method": "highs"}, Outcome.OUT_OF_TIME, None),
        ({}, Outcome.FAILED, "it was ended after 0 s of running"),
    ],
)
def test_a_run_that_does_not_end_is_ended(
    changes: dict[str, Any], outcome: Outcome, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.processes, "find_timeout", lambda task, stage: 0.0)
    # So long a run that no answer can be there at once, on a busy machine either.
    long = Source(family="real-rows", arguments={"n": 1_000, "seed": 0, "m": 30})
    row = run_task(task(source=long, **changes), 1)
    assert (row.outcome, row.error, row.seconds_to_proof) == (outcome, error, 10.0)
    assert row.n == 1_000, "what was known is kept"


def has_ended(number: int) -> bool:
    """Whether a process has ended: it is gone, or nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def installed(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.usefixtures("_processes")
def test_what_an_algorithm_has_started_ends_with_its_process(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(installed["BAD_PLUGIN_NUMBERS"])

    def until_all_have_begun(_: Task, stage: Stage) -> float:
        while stage is Stage.RUNNING and not (path.exists() and path.read_text().count("\n") > 1):
            time.sleep(0.05)
        return ASLEEP if stage is Stage.PREPARING else 0.0

    monkeypatch.setattr(bench.processes, "find_timeout", until_all_have_begun)
    began = time.monotonic()
    row = run_task(task(method="overruns", time_limit=1), 1)
    assert time.monotonic() - began < ASLEEP, "nobody waited for the children"
    assert row.outcome is Outcome.FAILED
    assert row.error == "it was ended after 0 s of running"
    numbers = path.read_text().split()
    assert len(numbers) == 2
    end = time.monotonic() + ASLEEP
    while not all(has_ended(int(number)) for number in numbers):
        assert time.monotonic() < end, "a child lives"
        time.sleep(0.05)


@pytest.mark.parametrize("suite", SUITES)
def test_every_method_and_instance_a_suite_asks_for_is_known(suite: str) -> None:
    # Of scenarios, each planned in eight ways, two drawn ones say what forty would.
    promises = suite == "promises"
    instances = 2 if promises else 40
    settings = replace(SUITES[suite].defaults, seeds=1, instances=instances, largest=1_000)
    contestants = SUITES[suite].contestants
    for method in settings.methods:
        assert method in contestants if contestants else load_algorithm(method)
    sources = dict.fromkeys(task.source for task in SUITES[suite].tasks(settings))
    assert sources
    if promises:  # all ways to plan the first of them, and one way to plan each
        first = next(iter(sources))
        each = {(s.family, s.arguments["seed"], s.arguments["processes"]): s for s in sources}
        sources = dict.fromkeys([s for s in sources if s.family == first.family] + [*each.values()])
    for source in list(sources)[:: so_many(5, 1)]:
        n = source.arguments.get("n")
        assert n is None or source.problem().n_jobs == n


SMALL: dict[str, Any] = {"n": 7, "m": 5, "seed": 3, "families": "instances.families"}
REAL_ROWS = Source(family="real-rows", arguments=SMALL, module="bench.chunks")


@pytest.fixture
def three_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 3)


@pytest.mark.usefixtures("three_a_chunk")
def test_a_folder_holds_the_problem_that_is_made_in_memory(tmp_path: Path) -> None:
    problem = REAL_ROWS.problem()
    sizes = [part.n_jobs for part in chunks.chunks("real-rows", **SMALL)]
    assert (problem.n_jobs, sizes) == (7, [3, 3, 1])
    assert len({problem.rows.row(job) for job in range(7)}) > 3, "no chunk is another one again"
    assert chunks.pack(REAL_ROWS, tmp_path / "fleet") > 0
    assert open_problem(tmp_path / "fleet").stated_sha256() == problem.sha256


@pytest.mark.usefixtures("three_a_chunk")
def test_a_family_that_draws_its_machines_is_refused() -> None:
    with pytest.raises(InvalidOption, match="'mixed-fleet' draws its machines anew"):
        chunks.generate("mixed-fleet", **SMALL)


def test_a_folder_is_solved_as_the_problem_in_memory_is() -> None:
    folder, memory = (
        perform_quietly(task(kind=kind, source=REAL_ROWS)) for kind in (Kind.SHARDS, Kind.SOLVE)
    )
    assert folder.error is None
    assert (folder.outcome, folder.checker) == (Outcome.ANSWERED, "independent")
    assert folder.instance_sha256 == memory.instance_sha256
    assert (folder.n, folder.blocks) == (7, 5)
    assert folder.proved
    assert folder.cost == memory.cost
    assert folder.measurements["shards"] == 1
    assert all(value > 0 for value in folder.measurements.values())
    assert RunRow.from_line(folder.to_line()) == folder
