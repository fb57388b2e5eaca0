"""The suite of problems in folders: chunks are one problem, and its runs are told side by side."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench import chunks
from bench.row import Outcome, RunRow
from bench.runs import perform
from bench.suites import SUITES, shards
from bench.tables import Table
from bench.task import Kind, Source, Task
from cms.errors import InvalidOption
from cms.files import open_problem

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


def row(kind: Kind, **found: Any) -> RunRow:
    facts: dict[str, Any] = {
        "outcome": Outcome.ANSWERED, "status": "optimal", "proof": "checked", "seconds": 2.0,
        "cost": Fraction(5), "lower_bound": Fraction(5), "gap": Fraction(0),
        "instance_sha256": "a", "peak_memory": 2**30, "passes": 4,
        "measurements": {"cpu_seconds": 3.0},
    }  # fmt: skip
    return RunRow.of(task(kind), **{**facts, **found})


MEASURED = {
    "cpu_seconds": 6.0, "pack_cpu_seconds": 7e-6, "write_cpu_seconds": 7e-7,
    "check_cpu_seconds": 7e-5, "pass_cpu_seconds": 1.5, "shards": 2,
}  # fmt: skip


def line_of(*rows: RunRow) -> tuple[dict[str, Any], Table]:
    (table,) = shards.tables(rows, SUITES["shards"].defaults)
    (line,) = table.to_json()["rows"]
    return line, table


def test_a_folder_stands_beside_the_run_in_memory_and_a_bare_pass() -> None:
    folder = row(Kind.SHARDS, peak_memory=2**28, measurements=MEASURED)
    line, table = line_of(folder, row(Kind.SOLVE))
    assert (line["CPU / memory"], line["CPU / pass"], line["peak / memory"]) == (2.0, 4.0, 0.25)
    assert (line["check ns"], line["write ns"], line["pack ns"]) == pytest.approx((1e4, 100, 1e3))
    assert (line["shards"], line["passes"], line["proved"]) == (2, 4, "checked")
    assert not table.red
    alone, table = line_of(folder)
    assert (alone["CPU / memory"], alone["peak / memory"]) == (None, None)
    assert table.texts()[0].count("-") == 2


@pytest.mark.parametrize(
    ("changes", "red"),
    [
        ({}, False),
        ({"cost": Fraction(6), "lower_bound": Fraction(4)}, False),
        ({"instance_sha256": "b"}, True),
        ({"cost": Fraction(6), "lower_bound": Fraction(6)}, True),
        ({"cost": Fraction(4), "lower_bound": Fraction(4)}, True),
    ],
)
def test_what_contradicts_the_run_in_memory_is_red(changes: dict[str, Any], red: bool) -> None:
    folder = row(Kind.SHARDS, measurements=MEASURED)
    assert bool(line_of(folder, row(Kind.SOLVE, **changes))[1].red) == red
