"""The suite of problems in folders: chunks are one problem, and its runs are told side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import chunks
from bench.row import Outcome, RunRow
from bench.runs import perform
from bench.task import Kind, Source, Task
from cms import InvalidOption, open_problem

SMALL: dict[str, Any] = {"n": 7, "m": 5, "seed": 3, "families": "instances.families"}
REAL_ROWS = Source(family="real-rows", arguments=SMALL, module="bench.chunks")


def task(kind: Kind = Kind.SHARDS, source: Source = REAL_ROWS, **changes: Any) -> Task:
    return Task(
        suite="shards", kind=kind, source=source, method="auto", time_limit=60,
        warm_up=False, **changes,
    )  # fmt: skip


def run(what: Task) -> RunRow:
    return perform(what, 1, lambda stage, facts: None)


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
    folder, memory = run(task()), run(task(Kind.SOLVE))
    assert folder.error is None
    assert (folder.outcome, folder.checker) == (Outcome.ANSWERED, "independent")
    assert folder.instance_sha256 == memory.instance_sha256
    assert (folder.n, folder.blocks) == (7, 5)
    assert folder.proved
    assert folder.cost == memory.cost
    assert folder.measurements["shards"] == 1
    assert all(value > 0 for value in folder.measurements.values())
    assert RunRow.from_line(folder.to_line()) == folder
