"""Rows and their file: nothing is lost, here or on a cluster; a cut line is run again."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.execution import execute, missing
from bench.results import Results, ResultsError
from bench.row import Outcome, RunRow
from bench.task import Kind, Source, Task


def task(number: int, **changes: object) -> Task:
    source = Source(family="sparse", arguments={"n": number, "seed": 0, "m": 5})
    values = {"suite": "proof", "kind": Kind.SOLVE, "source": source, "method": "auto"}
    return Task(**{**values, "time_limit": 10, **changes})  # type: ignore[arg-type]


def row(number: int, **found: object) -> RunRow:
    return RunRow.of(task(number), **{"outcome": Outcome.ANSWERED, **found})


def test_a_row_comes_back_as_it_was_written() -> None:
    history = ((0.1, None, 1, "trivial"), (0.2, "7/3", "4/3", "auto: 3 passes"))
    exact = {"cost": Fraction(7, 3), "lower_bound": Fraction(10**30), "gap": Fraction(1, 10)}
    before = row(3, history=history, seconds=0.1, measurements={"ours": [0.1]}, **exact)
    assert RunRow.from_line(before.to_line()) == before
    assert "\n" not in row(3, error="two\nlines").to_line()


def test_tasks_have_the_same_key_if_and_only_if_they_are_the_same() -> None:
    assert task(3).key == Task.from_json(task(3).to_json()).key
    others = [task(4), task(3, seed=1), task(3, method="cp_sat"), task(3, time_limit=11)]
    others += [task(3, options={"epsilon": "1/4"}), task(3, warm_up=False), task(3, suite="peers")]
    assert len({t.key for t in [task(3), *others]}) == 1 + len(others)
    assert task(3, time_limit=10).key == task(3, time_limit=10.0).key


def test_rows_are_kept_and_a_cut_last_line_is_run_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    with Results(folder, "proof", resume=False) as results:
        results.add(row(1))
        results.add(row(2))
    path = folder / "proof.jsonl"
    lines = path.read_text("utf-8")
    assert lines.splitlines() == [row(1).to_line(), row(2).to_line()]
    with pytest.raises(ResultsError, match=r"has 2 rows of an earlier run; give --resume"):
        Results(folder, "proof", resume=False)
    assert path.read_text("utf-8") == lines
    path.write_text(lines[:-5], "utf-8")
    with Results(folder, "proof", resume=True) as results:
        assert [r.arguments["n"] for r in results.rows] == [1]
        assert missing([task(1), task(3), task(2), task(3)], results) == [task(3), task(2)]
        results.add(row(2))
    assert path.read_text("utf-8") == lines


@pytest.mark.parametrize("line", ["{}", "[1]", "no json", '{"key": "a"}'])
def test_a_line_that_is_no_row_is_refused_with_its_number(line: str, tmp_path: Path) -> None:
    (tmp_path / "proof.jsonl").write_text(f"{row(1).to_line()}\n{line}\n", "utf-8")
    with pytest.raises(ResultsError, match=r"proof\.jsonl:2: "):
        Results(tmp_path, "proof", resume=True)


class Scripted(Executor):
    """Answers, breaks, is gone or is silent (None), as its list of answers says."""

    def __init__(self, *answers: RunRow | BaseException | None) -> None:
        self._answers = iter(answers)

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        future: Future[Any] = Future()
        answer = next(self._answers)
        if isinstance(answer, CancelledError):
            future.cancel()
            future.set_running_or_notify_cancel()
        elif isinstance(answer, BaseException):
            future.set_exception(answer)
        elif answer is not None:
            future.set_result(answer)
        return future


def test_what_the_executor_cannot_run_is_no_row(tmp_path: Path) -> None:
    broken = ModuleNotFoundError("No module named 'bench'")
    told: list[RunRow] = []
    with Results(tmp_path, "proof", resume=False) as results:
        executor = Scripted(row(1), broken, row(3))
        tasks = [task(n) for n in (1, 2, 3)]
        assert execute(tasks, results, executor, threads=1, on_row=told.append) == [broken]
        assert missing(tasks, results) == [task(2)]
        assert told == results.rows


def test_a_cluster_that_falls_silent_is_asked_whether_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.execution._LOOK", 0.01)
    life = iter([True, False])
    with (
        Results(tmp_path, "proof", resume=False) as results,
        pytest.raises(ResultsError, match="the cluster is gone; --resume goes on"),
    ):
        execute(
            [task(1), task(2)], results, Scripted(row(1), None),
            threads=1, on_row=print, lives=lambda: next(life),
        )  # fmt: skip
    assert results.rows == [row(1)]


def test_time_to_proof_is_the_limit_where_there_is_no_proof_in_time() -> None:
    proved = {"status": "optimal", "proof": "checked"}
    assert row(1, seconds=3.0, **proved).seconds_to_proof == 3.0
    assert row(1, seconds=10.4, **proved).seconds_to_proof == 10.0
    assert row(1, seconds=3.0, status="feasible").seconds_to_proof == 10.0
    failed = row(1, seconds=3.0, **proved, outcome=Outcome.FAILED)
    assert (failed.proved, failed.seconds_to_proof) == (False, 10.0)


distributed = pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")

Bench = Callable[..., Any]
Rows = Callable[[str], list[RunRow]]
#: Workers of one thread each, which nobody looks at.
local_cluster = partial(
    distributed.LocalCluster,
    threads_per_worker=1,
    # any free port: that of None is one, which another cluster on the machine may have
    dashboard_address="127.0.0.1:0",
    worker_dashboard_address="127.0.0.1:0",
)


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    environment: dict[str, str],
    bench: Bench,
    rows: Rows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fifth run of two workers has no end, but for the one of its worker."""
    for name, value in {**environment, "BAD_PLUGIN_STOPS": "1"}.items():
        monkeypatch.setenv(name, value)
    numbers = Path(environment["BAD_PLUGIN_NUMBERS"])
    path = tmp_path / "rows" / "proof.jsonl"
    killed = []

    def kill() -> None:
        while not numbers.exists() or numbers.read_bytes().count(b"\n") < 5:
            time.sleep(0.05)
        asleep = psutil.Process(int(numbers.read_text().split()[4]))
        killed.append(path.read_bytes().count(b"\n"))
        os.kill(asleep.ppid(), signal.SIGKILL)

    arguments = ("--suite", "proof", "--instances", 8, "--largest", 3, "-a", "stops")
    with local_cluster(n_workers=2, processes=True) as workers:
        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        run = bench(*arguments, "--peers", "none", "--dask", workers.scheduler_address)
    assert run.returncode == 0, run.stderr
    killer.join()
    assert killed[0] < 8
    found = rows("proof")
    assert len(found) == len({row.key for row in found}) == 8
    assert {row.outcome for row in found} == {Outcome.ANSWERED}


def test_a_worker_without_bench_is_refused_before_any_run(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bench.environment", None)
    with local_cluster(n_workers=1, processes=False, protocol="tcp://") as workers:
        (worker,) = workers.scheduler_info["workers"]
        run = bench("--suite", "proof", "--instances", 1, "--dask", workers.scheduler_address)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert f"--dask: worker {worker} cannot run bench (ModuleNotFoundError: " in run.stderr
    assert not (tmp_path / "rows" / "proof.jsonl").read_bytes()
