"""A cluster that the real kubectl changes: an API server with mig-manager and Deployments."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

from cms.fleet.deployment import Deployment, FleetNode
from cms.fleet.deployment.export import advertise
from cms.fleet.deployment.export.workloads import Workload, find_workloads
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition
from tests.fleet.apply.site import Watched
from tests.fleet.bridging import stand_ins
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster

TOOL = "gpu-operator"


class ClusterSite(Watched):
    """Nodes that are cut by mig-manager, and Deployments as they are exported, tied to nodes.

    What is not tied to its node the scheduler may put on one that is drained.
    """

    def __init__(self, folder: Path, found: Transition, c: Cluster, *, tied: bool = True) -> None:
        super().__init__(folder, found, TOOL)
        self.c, self.tied = c, tied
        c.world.mig_config_map = "cms-mig-parted-config"  # as the patch of the export has it
        (folder / "fleet.toml").write_text("[apply]\npause = '0s'\ntimeout = '30s'\n", "utf-8")
        running, counts = self.workloads(found.start), dict[str, Workload]()
        cards = {(c.node, c.index): c for c in (*found.target.gpus(), *found.start.gpus())}
        for action in found.actions:  # of what is there for a while, too
            card = replace(cards[action.gpu], instances=action.adds)
            node = FleetNode(card.node, (card,))
            counts |= self.workloads(replace(found.target, nodes=(node,)))
        counts |= self.workloads(found.target) | running
        for name, each in counts.items():
            work, place = each.works[0], each.key.place
            labels = {
                "cms.service": work.service, "cms.point": point_label(work), "cms.workload": name,
            }  # fmt: skip
            limits = {f"nvidia.com/mig-{each.key.profile}": "1"}
            container = {"name": "c", "image": "stand-in", "resources": {"limits": limits}}
            pod: dict[str, object] = {"containers": [container]}
            if tied:
                pod["nodeSelector"] = {"kubernetes.io/hostname": place}
            c.apply({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "replicas": each.replicas if name in running else 0,
                    "selector": {"matchLabels": {"cms.workload": name}},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            })  # fmt: skip
        c.settle()
        self.rates = {name: each.works[0].supply_rps for name, each in counts.items()}
        self.services = {name: each.key.service for name, each in counts.items()}
        self.lowest = self.capacities()
        c.api.watch = self.watch

    def workloads(self, state: Deployment) -> dict[str, Workload]:
        found = find_workloads(state, lambda card: card.node if self.tied else "")
        return {each.name: each for each in found}

    def watch(self, method: str, when: str) -> None:
        for name, rps in self.capacities().items():
            self.lowest[name] = min(self.lowest.get(name, Fraction(0)), rps)
        if method != "GET":
            self.changes(when)

    def capacities(self) -> dict[str, Fraction]:
        found: dict[str, Fraction] = {}
        for name, service in self.services.items():
            count = len(self.c.running(**{"cms.workload": name}))
            found[service] = found.get(service, Fraction(0)) + count * self.rates[name]
        return found

    @contextmanager
    def tools(self) -> Iterator[None]:
        with patch.dict(os.environ, self.c.env):
            yield

    def trace(self) -> object:
        return [each for each in self.c.api.log if each[0] != "GET"]

    def is_as(self, found: Transition, state: Deployment) -> bool:
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
def cluster_site(folder: Path, found: Transition, *, tied: bool = True) -> Iterator[ClusterSite]:
    with cluster(folder, stand_ins(folder, found.start)) as c:
        yield ClusterSite(folder, found, c, tied=tied)
