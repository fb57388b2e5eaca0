"""Runs on a cluster: a real one of several processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.cluster import refuse_other_code
from bench.environment import code_digest
from bench.results import ResultsError
from bench.row import Outcome, Row

distributed = pytest.importorskip("distributed")

Bench = Callable[..., Any]
Rows = Callable[[str], list[Row]]


@pytest.fixture
def cluster(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three workers, a process each, in which the plug-ins are installed as well."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None,
        worker_dashboard_address=None,
    ) as found:  # fmt: skip
        yield found


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    cluster: Any, bench: Bench, rows: Rows, tmp_path: Path
) -> None:
    arguments = ("--suite", "proof", "--instances", 40, "--largest", 3, "-a", "slow", "-a", "auto")
    path = tmp_path / "rows" / "proof.jsonl"
    killed = []

    def kill() -> None:
        """Once some rows are there and most are not, end a worker as a crash would."""
        with distributed.Client(cluster, set_as_default=False) as client:
            while not path.exists() or path.read_bytes().count(b"\n") < 10:
                time.sleep(0.05)
            pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            killed.append(path.read_bytes().count(b"\n"))

    killer = threading.Thread(target=kill)
    killer.start()
    run = bench(*arguments, "--peers", "none", "--dask", cluster.scheduler_address, "--no-figures")
    killer.join()
    assert run.returncode == 0, run.stderr
    assert 10 <= killed[0] < 80
    found = rows("proof")
    assert len(found) == len({row.key for row in found}) == 80
    assert {row.outcome for row in found} == {Outcome.ANSWERED}


def test_a_worker_without_bench_is_refused_before_any_run(
    cluster: Any, bench: Bench, tmp_path: Path
) -> None:
    def forget_bench() -> None:
        import sys

        sys.modules["bench.environment"] = None  # type: ignore[assignment]

    with distributed.Client(cluster, set_as_default=False) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
        client.run(forget_bench, workers=[worker])
    run = bench("--suite", "proof", "--instances", 1, "--dask", cluster.scheduler_address)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert f"--dask: worker {worker} cannot run bench (ModuleNotFoundError: " in run.stderr
    assert not (tmp_path / "rows" / "proof.jsonl").read_bytes()


def test_other_code_on_a_worker_is_refused() -> None:
    with pytest.raises(ResultsError, match="worker tcp://b:1 has other code than is here"):
        refuse_other_code({"tcp://a:1": code_digest(), "tcp://b:1": "0123456789ab"})


def test_an_address_where_nobody_answers_is_told(bench: Bench) -> None:
    run = bench("--suite", "proof", "--instances", 1, "--dask", "tcp://127.0.0.1:1")
    assert run.returncode == 2
    assert "--dask tcp://127.0.0.1:1: no scheduler answers there" in run.stderr
