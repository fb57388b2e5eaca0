"""Work on a cluster: the same answer as here, whoever dies meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from algorithms.prices import jobs
from cms import ClusterError, cluster, open_problem, solve, write_solution
from cms.shards.cluster import Cluster, refuse_other_code
from cms.shards.engine import Work
from tests.samples import so_many
from tests.shards.folders import fleet
from tests.shards.test_journal import told

distributed = pytest.importorskip("distributed")
local_cluster = partial(
    distributed.LocalCluster,
    threads_per_worker=1,
    dashboard_address="127.0.0.1:0",
    worker_dashboard_address="127.0.0.1:0",
)


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
    with (
        local_cluster(n_workers=workers, processes=True) as there,
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
    monkeypatch.setattr("cms.shards.cluster.PATIENCE", "0.1s")
    with (
        pytest.raises(ClusterError, match="tcp://127.0.0.1:1: no scheduler answers there"),
        cluster("tcp://127.0.0.1:1"),
    ):
        pytest.fail("nobody is there")
    with pytest.raises(ClusterError, match="worker tcp://b:1 has other code than is here"):
        refuse_other_code({"tcp://b:1": "0123456789ab"})
