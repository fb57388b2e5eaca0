"""Runs on a cluster: a real one of several processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.row import Outcome, RunRow

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
