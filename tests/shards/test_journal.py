"""A search that is cut off, here or on a cluster, comes to the same bytes in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from algorithms.prices import jobs
from cms import ClusterError, FileError, cluster, open_problem, solve, write_solution
from cms.shards.cluster import Cluster, refuse_other_code
from cms.shards.engine import Here, Work
from tests.samples import so_many
from tests.shards.folders import bytes_of, fleet

#: Of two shards, in the long run of three.
JOBS = so_many(66_000, 140_000)


def told(folder: Path) -> dict[str, Any]:
    """A solution folder without what a clock says."""
    files: dict[str, Any] = dict(bytes_of(folder))
    document = json.loads(files.pop("solution.json"))
    del document["seconds"]
    for line in document["history"]:
        del line["seconds"]
    return {**files, "solution": document}


class Counting(Here):
    """Counts the passes that it prices."""

    passes = 0

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        self.passes += work.what == "pricing"
        return super().map(work)


def test_a_torn_line_is_forgotten_and_another_problem_s_journal_refused(tmp_path: Path) -> None:
    fleet(tmp_path / "fleet", 70_000)
    path, passes, whole, code = tmp_path / "run" / "journal.jsonl", [], b"", b""
    for change in ("", "a torn line", "a changed line", "no entry", "other code"):
        engine = Counting()
        changed = {
            "a torn line": whole[:-7],
            "a changed line": whole[:-7] + b"?" + whole[-6:],
            "no entry": whole + b"17\n" + b"[" * 10**5 + b"\n",
            "other code": whole.replace(code, b"0"),
        }
        if change:
            path.write_bytes(changed[change])
        problem = open_problem(tmp_path / "fleet", engine=engine, journal=tmp_path / "run")
        solve(problem, time_limit=None)
        passes.append(engine.passes)
        whole = path.read_bytes()
        code = json.loads(whole.split(b"\n")[0])["code"].encode()
    assert passes == [passes[0], 1, 1, 0, passes[0]]
    assert passes[0] == whole.count(b"\n") - 2 > 1
    fleet(tmp_path / "other", 65_000)
    with pytest.raises(FileError, match="is not the journal of this problem"):
        open_problem(tmp_path / "other", journal=tmp_path / "run")
    path.write_bytes(b"[no JSON\n")
    with pytest.raises(FileError, match="is not the journal of this problem"):
        open_problem(tmp_path / "fleet", journal=tmp_path / "run")
    assert path.read_bytes() == b"[no JSON\n"


CLIENT = """
import sys
from algorithms.prices import jobs
jobs.MOST_LISTED = 0
from cms import open_problem, solve, write_solution
problem = open_problem(sys.argv[1], journal=sys.argv[2])
write_solution(solve(problem, time_limit=None, threads=1), sys.argv[3])
"""


def test_a_client_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    fleet(tmp_path / "fleet", JOBS)
    journal = tmp_path / "run" / "journal.jsonl"
    command = [sys.executable, "-c", CLIENT, str(tmp_path / "fleet"), str(tmp_path / "run")]
    lines = 0
    for number in range(so_many(1, 4)):
        process = subprocess.Popen([*command, str(tmp_path / f"killed{number}")])
        while process.poll() is None and (
            not journal.exists() or journal.read_bytes().count(b"\n") < lines + 3
        ):
            time.sleep(0.002)
        process.kill()
        process.wait()
        lines = max(1, journal.read_bytes().count(b"\n"))
    subprocess.run([*command, str(tmp_path / "plan")], check=True)
    plain = open_problem(tmp_path / "fleet")
    write_solution(solve(plain, time_limit=None), tmp_path / "plain")
    assert told(tmp_path / "plan") == told(tmp_path / "plain")


class Deadly(Cluster):
    """Kills a worker once, in the middle of what is told."""

    deadly_at = ""
    pids: tuple[int, ...] = ()
    killed = 0

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        for number, found in super().map(work):
            if work.what == self.deadly_at and not self.killed:
                self.killed = self.pids[0]
                os.kill(self.killed, signal.SIGKILL)
            yield number, found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "MOST_LISTED", 0)
        problem = fleet(place / "fleet", so_many(66_000, 150_000))
        write_solution(solve(problem, time_limit=None), place / "plan")
    return place


@pytest.mark.parametrize(
    ("workers", "deadly_at"),
    [
        (2, "pricing"),
        pytest.param(1, "", marks=pytest.mark.long),
        pytest.param(2, "rounding", marks=pytest.mark.long),
    ],
)
def test_a_cluster_finds_the_same_bytes(
    plain: Path, tmp_path: Path, workers: int, deadly_at: str
) -> None:
    distributed = pytest.importorskip("distributed")
    there = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True,
        dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
    )  # fmt: skip
    with (
        there,
        distributed.Client(there, set_as_default=False) as client,
    ):
        engine = Deadly(client)
        engine.deadly_at = deadly_at
        engine.pids = tuple(client.run(os.getpid).values())
        problem = open_problem(plain / "fleet", engine=engine)
        write_solution(solve(problem, time_limit=None), tmp_path / "plan")
        assert bool(engine.killed) == bool(deadly_at)
    assert told(tmp_path / "plan") == told(plain / "plan")


def test_nobody_who_answers_and_other_code_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("cms.shards.cluster.PATIENCE", "0.1s")
    with (
        pytest.raises(ClusterError, match="tcp://127.0.0.1:1: no scheduler answers there"),
        cluster("tcp://127.0.0.1:1"),
    ):
        pytest.fail("nobody is there")
    with pytest.raises(ClusterError, match="worker tcp://b:1 has other code than is here"):
        refuse_other_code({"tcp://b:1": "0123456789ab"})
