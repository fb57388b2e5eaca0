"""Folders for the GPU Operator: the real kubectl, and an API server with mig-manager behind it."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from cms.fleet.deployment import (
    Deployment,
    Instance,
    Work,
)
from cms.fleet.deployment.export import advertise
from cms.fleet.deployment.transition import Transition
from cms.fleet.deployment.transition.folder import FolderOptions, folder_of, open_starts
from cms.fleet.deployment.verifying import verify
from cms.fleet.deployment.written_folder import write_folder
from tests.fleet.export.cases import machines
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster, needs_kubectl
from tests.fleet.stand_ins.kubernetes.nodes import Gpu
from tests.fleet.stand_ins.machines import Ran
from tests.fleet.stand_ins.serving import served

from .acting import Watch, adopted, arrives, called, there_again_and_back
from .cases import planned, reached, small

pytestmark = needs_kubectl
TOOL = "gpu-operator"

_HOOKS = """
asked() { work "$1" "$node" "$gpu" "$profile" "$number" "$service" "$point" >/dev/null; }
start_work() { asked start; }
stop_work() { asked stop; }
is_ready() { asked ready; }
is_drained() { asked gone; }
"""


class ClusterSite(Watch):
    """A cluster whose nodes are cut by mig-manager, and a pod for each instance that works."""

    def __init__(self, folder: Path, found: Transition, c: Cluster) -> None:
        super().__init__()
        self.folder, self.c = folder, c
        self.learn(found)
        (folder / "work.sh").write_text(_HOOKS, encoding="utf-8")
        for card in found.start.gpus():
            numbers = Counter[str]()
            for each in card.instances:
                numbers[each.profile] += 1
                if each.work is not None:
                    self._begin((card.node, str(card.index), each.profile,
                                 str(numbers[each.profile])), each.work)  # fmt: skip
        c.settle()
        self.lowest = self.capacities()

    def _begin(self, seat: tuple[str, str, str, str], work: Work) -> None:
        service, point = called(work)
        labels = {
            "cms.service": service, "cms.point": point,
            "gpu": seat[1], "profile": seat[2], "number": seat[3],
        }  # fmt: skip
        name = "-".join((work.service, *seat)).replace(".", "-").replace("_", "-").lower()
        limits = {f"nvidia.com/mig-{seat[2]}": "1"}
        container = {"name": "c", "image": "stand-in", "resources": {"limits": limits}}
        self.c.apply({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": seat[0]}, "containers": [container],
            },
        })  # fmt: skip

    def _pods(self) -> Iterator[tuple[tuple[str, str, str, str], tuple[str, str], str]]:
        """Seat, work, and the name of each pod of ours that runs."""
        for pod in self.c.running():
            own = pod["metadata"].get("labels") or {}
            if "cms.service" in own:
                seat = pod["spec"]["nodeName"], own["gpu"], own["profile"], own["number"]
                yield seat, (own["cms.service"], own["cms.point"]), pod["metadata"]["name"]

    def capacities(self) -> dict[str, Fraction]:
        found = dict.fromkeys(self.lowest, Fraction(0))
        for _, call, _ in self._pods():
            found[call[0]] = found.get(call[0], Fraction(0)) + self.known[call].supply_rps
        return found

    def work(self, words: Sequence[str]) -> tuple[int, str, str]:
        what, node, gpu, profile, number, service, label = words
        seat, call = (node, gpu, profile, number), (service, label)
        there = {each[:2]: each[2] for each in self._pods()}
        name = there.get((seat, call))
        if what == "stop" and name is not None:
            assert self.c.http("DELETE", f"/api/v1/namespaces/default/pods/{name}")[0] == 200
            self.c.settle()
        elif what == "start" and name is None:
            self._begin(seat, self.known[call])
            self.c.settle()
        for each, rps in self.capacities().items():
            self.lowest[each] = min(self.lowest.get(each, Fraction(0)), rps)
        return int(name is None if what == "ready" else what == "gone" and name is not None), "", ""

    def write(self, found: Transition, name: str = "out") -> Path:
        self.learn(found)
        write_folder(folder_of(found, FolderOptions(TOOL)).files, self.folder / name)
        self.c.kubectl("apply", "-f", str(self.folder / name / "configmap.yaml"))
        self.c.world.mig_config_map = "cms-mig-parted-config"  # as the patch of the README has it
        return self.folder / name

    def run(self, out: Path, *words: str) -> Ran:
        with served(self.folder, "work", self.work) as tools:
            env = {
                **self.c.env, "PATH": f"{tools}{os.pathsep}{self.c.env['PATH']}",
                "CMS_WORK": str(self.folder / "work.sh"),
                "CMS_PAUSE": "0", "CMS_TRIES": "20", "CMS_PATIENCE": "40",
            }  # fmt: skip
            done = subprocess.run(
                [str(out / "run.sh"), *words],
                env=env, capture_output=True, text=True, timeout=900, check=False,
            )  # fmt: skip
        said = [each for each in done.stderr.splitlines() if "ignoring DaemonSet" not in each]
        return Ran(done.returncode, done.stdout, "\n".join(said))

    def seen(self, known: Deployment) -> Deployment:
        """What is there: the nodes as they are cut, and pods by their labels."""
        works = {seat: self.known[call] for seat, call, _ in self._pods()}
        cards = {}
        for card in known.gpus():
            gpu, numbers, held = self.c.machines[card.node].gpus[card.index], Counter[str](), []
            for profile, start in sorted(gpu.layout, key=lambda each: each[1]):
                numbers[profile] += 1
                seat = (card.node, str(card.index), profile, str(numbers[profile]))
                held.append(Instance(profile, start, works.get(seat)))
            cards[card.node, card.index] = card.with_instances(held)
        return known.with_gpus(cards)

    def trace(self) -> object:
        return [method for method, _ in self.c.api.log if method != "GET"]

    def is_as(self, found: Transition, state: Deployment) -> bool:
        for node, offer in zip(state.nodes, advertise(state, "mixed"), strict=True):
            assert self.c.allocatable(node.name) == dict(offer.resources)
            told = self.c.get("Node", node.name)
            assert "unschedulable" not in told["spec"]
            assert "cms.cordoned" not in told["metadata"]["labels"]
        return verify(self.seen(state), open_starts(found, state)) == ()


@contextmanager
def site(folder: Path, found: Transition) -> Iterator[ClusterSite]:
    with cluster(folder, machines(found.start)) as c:
        c.kubectl("get", "nodes")  # an old kubectl is left out here, with the reason
        yield ClusterSite(folder, found, c)


def there_and_back(folder: Path, found: Transition) -> None:
    with site(folder, found) as here:
        out = here.write(found)
        there_again_and_back(here, out, found)
        assert adopted(here.run(out, "--serving").text) == {}  # pods' own labels tell


def test_a_node_is_cordoned_drained_cut_and_opened(tmp_path: Path) -> None:
    with site(tmp_path, small(TOOL)) as here:
        arrives(here, here.write(small(TOOL)), small(TOOL))


@pytest.mark.long
@pytest.mark.parametrize("anew", [False, True])
def test_a_failure_is_mended(tmp_path: Path, anew: bool) -> None:
    """mig-manager fails on the node that is to be cut; then it does not, and the way goes on."""
    found = planned(5, TOOL)
    with site(tmp_path, found) as here:
        out = here.write(found)
        here.c.world.mig_fails.add("n0")
        ran = here.run(out)
        assert ran.code == 1, ran
        assert "mig-manager has failed" in ran.error
        assert "is not as it should be" in ran.error
        assert here.floors_held(found)
        here.c.world.mig_fails.clear()
        here.c.kubectl("label", "--overwrite", "node", "n0", "nvidia.com/mig.config=all-disabled")
        here.c.settle()
        if anew:
            on = [Gpu(each.model, True, ()) for each in here.c.machines["n0"].gpus]
            here.c.machines["n0"].gpus[:] = on
            now = here.seen(found.start)
            again = reached(now, open_starts(found, found.target), tool=TOOL)
            out = here.write(again, "again")
        arrives(here, out, found)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 9])
def test_random_transitions_arrive(tmp_path: Path, seed: int) -> None:
    there_and_back(tmp_path, planned(seed, TOOL))
