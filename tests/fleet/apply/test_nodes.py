"""`cms apply` on several nodes: the first one alone, failures, Ctrl-C, and the lock."""

from __future__ import annotations

import fcntl
import json
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from threading import Lock

import pytest

from cms.fleet.apply import Apply, Head, Job, Journal, Shell, list_units
from cms.fleet.apply.runner import Runner, find_makespan
from cms.fleet.apply.tool import ActionFailed, Look, Ran, Tool
from cms.fleet.apply.units import Unit
from cms.fleet.deployment import FleetGpu
from cms.fleet.deployment.instance import StartSource
from cms.fleet.deployment.transition import Durations, PartitioningTool, Transition
from tests.fleet.apply.site import Site, arrives
from tests.fleet.transition.cases import A30, does, on_node, on_nodes, reached


def on_four_nodes() -> Transition:
    """An instance is created on each of four nodes."""
    now, then = (on_nodes(on_node(*[held] * 4), 1) for held in ((), (does("a", "1g.6gb"),)))
    return reached(now, then, floor=0)


def ended(site: Site, result: str = "done") -> list[str]:
    lines = (site.folder / ".cms/apply/state.jsonl").read_text("utf-8").splitlines()
    return [told["node"] for told in map(json.loads, lines[1:]) if told["result"] == result]


def test_the_first_node_is_changed_alone_then_others_side_by_side(tmp_path: Path) -> None:
    found = on_four_nodes()
    site = Site(tmp_path, found)
    arrives(site, found, "--parallel", "3")
    assert len(ended(site)) == 4
    assert ended(site)[0] == "n0"
    assert ended(site, "begun")[0] == "n0"
    lines = (tmp_path / ".cms/apply/state.jsonl").read_text("utf-8").splitlines()[1:]
    told = [json.loads(line)["result"] for line in lines[:4]]
    assert told == ["begun", "stopped", "changed", "done"]


@pytest.mark.parametrize(
    ("most", "bad", "done"), [(0, "n0", 0), (1, "n0", 0), (1, "n2", 3), (0, "n1", 1)]
)
def test_a_lost_node_stops_it_as_far_as_is_allowed(
    tmp_path: Path, most: int, bad: str, done: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first node that fails stops all; so do more than so many of the others."""
    found = on_four_nodes()
    site = Site(tmp_path, found)
    reach = (tmp_path / "reach.sh").read_text("utf-8")
    lost = f'#!/bin/sh\n[ "$1" != {bad} ] || {{ echo no route to host >&2; exit 255; }}\n'
    (tmp_path / "reach.sh").write_text(lost + reach, "utf-8")
    assert site.apply("--max-failures", str(most)) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"node {bad} cannot be observed" in said
    assert "no route to host" in said
    assert f"{done} done, 1 failed, {3 - done} not begun" in said
    assert "go on: cms apply" in said
    (tmp_path / "reach.sh").write_text(reach, "utf-8")
    arrives(site, found, "--resume")


def test_ctrl_c_ends_what_is_under_way_and_says_how_to_go_on(tmp_path: Path) -> None:
    found = on_four_nodes()
    site = Site(tmp_path, found)
    assert site.killed(1, "before", sign=signal.SIGINT) == 130
    assert ended(site) == ["n0"]
    assert ended(site, "begun") == ["n0"]
    arrives(site, found, "--resume")


def test_one_apply_at_a_time_and_a_dead_one_keeps_no_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = on_four_nodes()
    site = Site(tmp_path, found)
    (tmp_path / ".cms").mkdir()
    with (tmp_path / ".cms/lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = site.trace()
        assert site.apply() == 1
        assert site.trace() == before
    assert "another 'cms apply' is changing this fleet" in capsys.readouterr().err
    assert site.killed(1, "before") == -signal.SIGKILL
    arrives(site, found, "--resume")


def test_equal_instances_on_a_gpu_count_each_as_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two whose starts are not known a Deployment has two pods: one more makes three."""
    asked: list[tuple[str, ...]] = []

    def here(_: Shell, *words: str, **__: object) -> Ran:
        asked.append(words)
        one = {"apiVersion": "apps/v1", "kind": "Deployment",
               "metadata": {"name": "a-a30-24gb-1g6gb-1x4", "namespace": "default"},
               "spec": {"template": {"spec": {"containers": []}}}}  # fmt: skip
        return Ran(0, json.dumps({"items": [one] * ("deployments" in words)}), "")

    monkeypatch.setattr(Shell, "here", here)
    twins = FleetGpu("n0", 0, A30, instances=(does("a", "1g.6gb", None),) * 2)
    first = {("n0", 0): replace(twins, start_source=StartSource.UNKNOWN)}
    sides = (on_nodes(on_node((), own), 1) for own in ((), (does("a", "1g.6gb"),)))
    now, then = (side.with_gpus(first) for side in sides)
    found = reached(now, then, floor=0, tool="gpu-operator")
    apply = Apply(Head(found, PartitioningTool.GPU_OPERATOR, True), Job(found, Shell()), {})
    ((seat,),) = (unit.starts for unit in apply.head.units if unit.starts)
    apply.find_worker().do("start", seat, None)  # type: ignore[union-attr]
    assert asked[-1][-1] == '{"spec": {"replicas": 3}}'


class Slow(Tool):
    """A tool whose actions take a moment and fail on some nodes; it counts the nodes under way."""

    def __init__(self, bad: set[str]) -> None:
        self.bad, self.done, self.most = bad, set[int](), 0
        self.busy, self.lock = Counter[str](), Lock()

    def look(self, unit: Unit, *, begun: bool) -> Look:
        return Look.AFTER if unit.number in self.done else Look.BEFORE

    def close(self, unit: Unit) -> None:
        with self.lock:
            self.busy[unit.node] += 1
            self.most = max(self.most, len(+self.busy))

    def change(self, unit: Unit) -> str:
        time.sleep(0.01)
        with self.lock:
            self.busy[unit.node] -= 1
        if unit.node in self.bad:
            raise ActionFailed("lost")
        self.done.add(unit.number)
        return ""

    def commands(self, unit: Unit) -> list[str]:
        return []


@pytest.mark.long
@pytest.mark.parametrize(
    ("bad", "most", "stops"),
    [(set(), 0, False), ({"n7"}, 1, False), ({"n7", "n9"}, 1, True), ({"n0"}, 9, True)],
)
def test_3200_actions_on_400_nodes_as_far_as_failures_allow(
    tmp_path: Path, bad: set[str], most: int, stops: bool
) -> None:
    now, then = (on_nodes(on_node(*[held] * 3200), 8) for held in ((), (does("a", "1g.6gb"),)))
    found, tool = reached(now, then, floor=0), PartitioningTool.NVIDIA_SMI
    units = list_units(found, tool)
    times = [find_makespan(units, Durations(), parallel) for parallel in (1, 16)]
    assert times[0] == 16 * times[1]
    slow, journal = Slow(bad), Journal.create(tmp_path / "state.jsonl", Head(found, tool, False))
    how = {"parallel": 16, "max_failures": most, "tell": lambda _: None}
    outcome = Runner(units, slow, None, journal, Shell(pause_s=0), **how).run()  # type: ignore[arg-type]
    failed = {units[at].node for at in outcome.failed}
    assert outcome.done + len(outcome.failed) + outcome.left == len(units) == 3200
    assert (1 < slow.most <= 16) is ("n0" not in bad)
    assert failed <= bad
    lost = 8 * len(failed) - len(outcome.failed)  # of a node that failed nothing further is begun
    assert (outcome.left > lost) is stops
