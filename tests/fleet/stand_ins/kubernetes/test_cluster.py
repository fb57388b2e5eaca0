"""The stand-in cluster: what happens behind its API by itself, and what the API refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster, needs_kubectl
from tests.fleet.stand_ins.machines import StandInNode

Json = dict[str, Any]

A100 = "a100-80gb"
CONFIG = """\
version: v1
mig-configs:
  mixed:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2}}
  - {devices: [1], mig-enabled: false}
  zeros:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2, 1g.10gb: 0}}
  - {devices: [1], mig-enabled: false}
  partly: [{devices: [0], mig-enabled: true, mig-devices: {7g.80gb: 1}}]
  too-much: [{devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 3}}]
"""
MIXED = (("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4))
OFFERED = {"nvidia.com/gpu": 1, "nvidia.com/mig-2g.20gb": 2, "nvidia.com/mig-3g.40gb": 1}
STATE = "nvidia.com/mig.config.state"


def deployment(name: str, replicas: int, limits: Json | None = None, **spec: Any) -> Json:
    container: Json = {"name": "server", "image": "example/server"}
    container["resources"] = {"limits": limits} if limits else {"claims": [{"name": "slice"}]}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip


def mixed(folder: Path) -> StandInNode:
    node = StandInNode(folder, [A100, A100], mig=[True, False])
    node.put(0, MIXED)
    return node


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Cluster]:
    uncut = {
        name: StandInNode(tmp_path / name, [A100] * count, mig=False)
        for name, count in (("a", 2), ("b", 1))
    }
    with cluster(tmp_path, uncut, pace=0) as made:
        made.apply({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": CONFIG},
            "metadata": {"name": "default-mig-parted-config", "namespace": "gpu-operator"},
        })  # fmt: skip
        yield made


def state(c: Cluster) -> str:
    answer: str = c.get("Node", "a")["metadata"]["labels"][STATE]
    return answer


def ask(c: Cluster, config: str) -> None:
    c.set_labels("a", {"nvidia.com/mig.config": config})


def test_a_mig_change_is_pending_first_and_nothing_is_offered_meanwhile(fleet: Cluster) -> None:
    ask(fleet, "mixed")
    fleet.api.step()
    assert state(fleet) == "success"  # the old answer: nobody has looked yet
    fleet.api.step(2)
    assert state(fleet) == "pending"
    fleet.api.step(2)
    assert fleet.allocatable("a") == {}  # while nobody advertises
    fleet.settle()
    assert (state(fleet), fleet.allocatable("a")) == ("success", OFFERED)
    for name, end in (("zeros", "success"), ("partly", "success"), ("too-much", "failed")):
        ask(fleet, name)
        states = {state(fleet)}
        while fleet.api.step() or fleet.api.under_way():
            states.add(state(fleet))
        assert (state(fleet), "pending" in states) == (end, True), name
    ask(fleet, "no-such")
    fleet.settle()
    assert state(fleet) == "failed"
    assert fleet.machines["a"].node.cards[1].mode == "Disabled"  # never listed: as it was


def test_a_gpu_in_use_is_not_repartitioned(fleet: Cluster) -> None:
    fleet.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}))
    fleet.settle()
    ask(fleet, "mixed")
    fleet.settle()
    assert (state(fleet), fleet.machines["a"].node.cards[0].mode) == ("failed", "Disabled")
    assert len(fleet.occupants("a")) == 2
    fleet.apply(deployment("chat", 0, {"nvidia.com/gpu": 1}))
    ask(fleet, "mixed")  # the same label again is no news
    fleet.settle()
    assert (state(fleet), fleet.occupants("a")) == ("failed", {})


def test_the_scheduler_takes_the_first_node_that_has_room(tmp_path: Path) -> None:
    with cluster(tmp_path, {name: mixed(tmp_path / name) for name in "ab"}, pace=0) as c:
        c.apply(deployment("chat", 1, {"nvidia.com/mig-2g.20gb": 1}))
        c.settle()
        assert len(c.occupants("a")) == 1
        c.apply(deployment("chat", 5, {"nvidia.com/mig-2g.20gb": 1}))
        c.settle()
        assert [len(c.occupants(name)) for name in "ab"] == [2, 2]
        (waiting,) = [p for p in c.objects("Pod", "default") if "nodeName" not in p["spec"]]
        condition = waiting["status"]["conditions"][0]
        assert "2 Insufficient nvidia.com/mig-2g.20gb" in condition["message"]


def test_claims_are_met_from_slices_and_go_with_their_pods(tmp_path: Path) -> None:
    expression = "device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"
    exactly = {
        "deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": expression}}],
    }  # fmt: skip
    template: Json = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"requests": [{"name": "slice", "exactly": exactly}]}}},
    }  # fmt: skip
    pods: Json = {"resourceClaims": [{"name": "slice", "resourceClaimTemplateName": "t"}]}
    with cluster(tmp_path, {"a": mixed(tmp_path / "a")}, pace=0, dra_driver=True) as c:
        c.apply(template, deployment("chat", 3, **pods))
        c.settle()
        assert len(c.running(app="chat")) == 2
        assert sorted(c.occupants("a")) == [(0, "2g.20gb", 0), (0, "2g.20gb", 2)]
        c.apply(deployment("chat", 0, **pods))
        c.settle()
        assert (c.objects("ResourceClaim"), c.occupants("a")) == ([], {})


def a_map(**changes: Any) -> Json:
    metadata = {"name": "m"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}} | changes


@needs_kubectl
@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        ("get node none", None, "NotFound"), ("get none", None, "resource type"),
        ("create -f -", a_map(extra=1), "strict decoding error"),
        ("create -f -", a_map(metadata={"name": "Bad_Name"}), "not a name"),
        ("create -f -", a_map(metadata={"name": "m", "labels": {"a": "x" * 64}}), "at most 63"),
        ("create -n none -f -", a_map(), "NotFound"),
    ],
)  # fmt: skip
def test_the_api_refuses_and_keeps_nothing(
    fleet: Cluster, words: str, given: Json | None, says: str
) -> None:
    before = fleet.world.store.revision
    text = None if given is None else json.dumps(given)
    assert says in fleet.kubectl(*words.split(), given=text, fails=True)
    assert fleet.world.store.revision == before


@needs_kubectl
def test_kubectl_applies_cordons_drains_and_labels(fleet: Cluster) -> None:
    def apply(fails: bool = False, **data: Any) -> str:
        given = json.dumps(a_map(data=data))
        return fleet.kubectl("apply", "-f", "-", given=given, fails=fails)

    assert "created" in apply(a="1")
    assert "configured" in apply(b="2")
    assert fleet.get("ConfigMap", "m")["data"] == {"b": "2"}  # `a` is no longer applied
    assert "strict decoding error" in apply(fails=True, c=3)
    fleet.api.pace = 1
    fleet.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}))
    fleet.settle()
    fleet.kubectl("cordon", "a")
    assert "DaemonSet" in fleet.kubectl("drain", "a", "--timeout=10s", fails=True)
    fleet.kubectl("drain", "a", "--ignore-daemonsets", "--timeout=10s")
    assert fleet.occupants("a") == {}
    asked = "nvidia.com/mig.config=mixed"
    fleet.kubectl("label", "node", "a", "--overwrite", asked, f"{STATE}-")
    fleet.settle()
    fleet.kubectl("uncordon", "a")
    fleet.settle()
    node = json.loads(fleet.kubectl("get", "node", "a", "-o", "json"))
    amounts = node["status"]["allocatable"]
    assert {k: int(n) for k, n in amounts.items() if "nvidia" in k} == OFFERED
    assert (state(fleet), "unschedulable" in node["spec"]) == ("success", False)
