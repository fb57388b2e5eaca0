"""`cms apply` by the real kubectl: an API server with mig-manager and Deployments behind it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from cms.fleet.deployment import Deployment, Instance
from cms.fleet.deployment.export import advertise
from cms.fleet.deployment.export.workloads import Workload, find_workloads
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition, write_transition
from tests.fleet.bridging import stand_ins
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster, needs_kubectl
from tests.fleet.stand_ins.machines import Ran
from tests.fleet.transition.cases import does, on_node, planned, reached, small

pytestmark = needs_kubectl
TOOL = "gpu-operator"


class ClusterSite:
    """A cluster whose nodes are cut by mig-manager, and Deployments as they are exported."""

    def __init__(self, folder: Path, found: Transition, c: Cluster, pinned: bool) -> None:
        self.folder, self.c, self.found, self.pinned = folder, c, found, pinned
        c.world.mig_config_map = "cms-mig-parted-config"  # as the patch of the export has it
        write_transition(found, folder / "transition.json")
        (folder / "fleet.toml").write_text("[apply]\npause = '0s'\ntimeout = '30s'\n", "utf-8")
        running, counts = self.workloads(found.start), self.workloads(found.target)
        counts |= running
        for name, each in counts.items():
            work = each.works[0]
            labels = {
                "cms.service": work.service, "cms.point": point_label(work), "cms.workload": name,
            }  # fmt: skip
            limits = {f"nvidia.com/mig-{each.key.profile}": "1"}
            container = {"name": "c", "image": "stand-in", "resources": {"limits": limits}}
            tied = {"nodeSelector": {"kubernetes.io/hostname": each.key.place}} if pinned else {}
            c.apply({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "replicas": each.replicas if name in running else 0,
                    "selector": {"matchLabels": {"cms.workload": name}},
                    "template": {
                        "metadata": {"labels": labels}, "spec": {"containers": [container], **tied},
                    },
                },
            })  # fmt: skip
        c.settle()
        self.rates = {name: each.works[0].supply_rps for name, each in counts.items()}
        self.services = {name: each.key.service for name, each in counts.items()}
        self.lowest = self.capacities()
        c.api.watch = self.watch

    def workloads(self, state: Deployment) -> dict[str, Workload]:
        found = find_workloads(state, lambda card: card.node if self.pinned else "")
        return {each.name: each for each in found}

    def watch(self) -> None:
        for name, rps in self.capacities().items():
            self.lowest[name] = min(self.lowest.get(name, Fraction(0)), rps)

    def capacities(self) -> dict[str, Fraction]:
        found: dict[str, Fraction] = {}
        for name, service in self.services.items():
            count = len(self.c.running(**{"cms.workload": name}))
            found[service] = found.get(service, Fraction(0)) + count * self.rates[name]
        return found

    def floors_held(self) -> bool:
        floors = {name: floor.rps for name, floor in self.found.floors.items() if floor.rps}
        return all(self.lowest.get(name, Fraction(0)) >= rps for name, rps in floors.items())

    def apply(self, *words: str, kill_at: int | None = None) -> Ran:
        going = self.folder / ".cms/apply"
        if not {"--resume", "--undo"} & {*words}:
            going, words = self.folder / "transition.json", ("--tool", TOOL, *words)
        command = [sys.executable, "-m", "cms", "apply", str(going), "--yes", *words]
        command += ["--max-age", "none", "--fleet", str(self.folder / "fleet.toml")]
        process = subprocess.Popen(
            command, env={**os.environ, **self.c.env}, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        if kill_at is not None:
            first = len(self.writes())
            while process.poll() is None:
                if len(self.writes()) - first >= kill_at:
                    process.send_signal(signal.SIGKILL)
                    break
        out, error = process.communicate(timeout=600)
        return Ran(process.returncode, out, error)

    def writes(self) -> list[tuple[str, str]]:
        return [each for each in self.c.api.log if each[0] != "GET"]

    def is_as(self, state: Deployment) -> bool:
        self.c.settle()
        for node, offer in zip(state.nodes, advertise(state), strict=True):
            told = self.c.get("Node", node.name)
            is_open = "unschedulable" not in told["spec"]
            is_open = is_open and "cms.cordoned" not in told["metadata"]["labels"]
            if self.c.allocatable(node.name) != dict(offer.resources) or not is_open:
                return False
        pods = Counter(pod["metadata"]["labels"]["cms.workload"] for pod in self.c.running()
                       if "cms.workload" in pod["metadata"]["labels"])  # fmt: skip
        return pods == {name: each.replicas for name, each in self.workloads(state).items()}


@contextmanager
def site(folder: Path, found: Transition, *, pinned: bool = False) -> Iterator[ClusterSite]:
    with cluster(folder, stand_ins(folder, found.start)) as c:
        c.kubectl("get", "nodes")  # an old kubectl is left out here, with the reason
        yield ClusterSite(folder, found, c, pinned)


def arrives(here: ClusterSite, state: Deployment, *words: str) -> None:
    ran = here.apply(*words)
    assert ran.code == 0, ran
    assert here.is_as(state)


def test_a_node_is_cordoned_drained_cut_and_opened_and_deployments_are_scaled(
    tmp_path: Path,
) -> None:
    found = small(TOOL)
    with site(tmp_path, found) as here:
        arrives(here, found.target)
        assert here.floors_held()  # of pods on other nodes than planned a drain keeps none
        done = here.writes()
        assert here.apply("--resume").code == 0
        assert here.writes() == done
        arrives(here, found.start, "--undo")


def test_a_foreign_pod_on_the_node_is_not_sent_away(tmp_path: Path) -> None:
    beside = (does("b", "2g.12gb"), Instance("1g.6gb", 3))
    now = on_node((does("a", "4g.24gb"),), beside)
    found = reached(now, on_node((does("b", "2g.12gb"),), beside), tool=TOOL, floor=0)
    with site(tmp_path, found) as here:
        limits = {"nvidia.com/mig-1g.6gb": "1"}
        container = {"name": "c", "image": "x", "resources": {"limits": limits}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs"},
               "spec": {"containers": [container], "nodeName": "n"}}  # fmt: skip
        here.c.apply(pod)
        here.c.settle()
        ran = here.apply()
        assert (ran.code, "pod default/theirs holds nvidia.com/mig-1g.6gb" in ran.text) == (1, True)
        assert not here.c.get("Node", "n")["spec"].get("unschedulable")


@pytest.mark.long
def test_a_failure_of_mig_manager_is_mended(tmp_path: Path) -> None:
    found = planned(5, TOOL)
    with site(tmp_path, found) as here:
        here.c.world.mig_fails.add("n0")
        ran = here.apply()
        assert ran.code == 1, ran
        assert here.floors_held()
        here.c.world.mig_fails.clear()
        here.c.kubectl("label", "--overwrite", "node", "n0", "nvidia.com/mig.config=all-disabled")
        here.c.settle()
        arrives(here, found.target, "--resume")


@pytest.mark.long
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("draw", range(20))
def test_a_kill_at_any_moment_is_survived(tmp_path: Path, draw: int, pinned: bool) -> None:
    found = planned((4, 5, 7, 9)[draw % 4], TOOL)
    with site(tmp_path, found, pinned=pinned) as here:
        here.apply(kill_at=draw + 1)
        if draw % 2:
            arrives(here, found.target, "--resume")
        else:
            arrives(here, found.start, "--undo")
        assert here.floors_held() or not pinned  # a drain evicts what the scheduler put elsewhere


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 9])
def test_random_transitions_arrive_and_go_back(tmp_path: Path, seed: int) -> None:
    found = planned(seed, TOOL)
    with site(tmp_path, found) as here:
        arrives(here, found.target, "--parallel", "2")
        arrives(here, found.start, "--undo")
