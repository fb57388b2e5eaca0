"""What happens behind the API by itself: MIG changes, scheduling, claims. No kubectl needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster
from tests.fleet.stand_ins.kubernetes.nodes import Gpu

Json = dict[str, Any]

A100 = "a100-80gb"
CONFIG = """\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  mixed:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2}}
  - {devices: [1], mig-enabled: false}
  mixed-too:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2}}
  - {devices: [1], mig-enabled: false}
  partly: [{devices: [0], mig-enabled: true, mig-devices: {7g.80gb: 1}}]
  zeros:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2, 1g.10gb: 0}}
  - {devices: [1], mig-enabled: false}
  too-much: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 3}}]
"""
MIXED = Gpu(A100, True, (("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4)))
OFFERED = {"nvidia.com/gpu": 1, "nvidia.com/mig-2g.20gb": 2, "nvidia.com/mig-3g.40gb": 1}


def config_map(text: str = CONFIG) -> Json:
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": text},
        "metadata": {"name": "default-mig-parted-config", "namespace": "gpu-operator"},
    }  # fmt: skip


def deployment(name: str, replicas: int, limits: Json | None = None, **spec: Any) -> Json:
    container: Json = {"name": "server", "image": "example/server"}
    if limits:
        container["resources"] = {"limits": limits}
    if "resourceClaims" in spec:
        container["resources"] = {"claims": [{"name": "slice"}]}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, {"a": [A100, A100], "b": [A100]}, pace=0) as made:
        made.apply(config_map())
        yield made


def state(c: Cluster) -> str:
    answer: str = c.get("Node", "a")["metadata"]["labels"]["nvidia.com/mig.config.state"]
    return answer


def ask(c: Cluster, config: str) -> None:
    c.set_labels("a", {"nvidia.com/mig.config": config})


def test_a_mig_change_goes_through_pending_and_the_plug_in_comes_back(fleet: Cluster) -> None:
    ask(fleet, "mixed")
    fleet.step()
    assert state(fleet) == "success"  # the old answer: nobody has looked yet
    fleet.step(2)
    labels = fleet.get("Node", "a")["metadata"]["labels"]
    assert state(fleet) == "pending"
    assert labels["nvidia.com/gpu.deploy.device-plugin"] == "paused-for-mig-change"
    fleet.step(2)
    assert fleet.allocatable("a") == {}  # while nobody advertises
    fleet.settle()
    assert (state(fleet), fleet.allocatable("a")) == ("success", OFFERED)
    ask(fleet, "all-disabled")
    fleet.settle()
    assert fleet.allocatable("a") == {"nvidia.com/gpu": 2}
    capacity = fleet.get("Node", "a")["status"]["capacity"]
    assert capacity["nvidia.com/mig-3g.40gb"] == "0"  # a stale key
    assert fleet.get("Node", "a")["metadata"]["labels"]["nvidia.com/gpu.count"] == "2"


def test_what_mig_parted_leaves_alone_and_what_it_does_again(fleet: Cluster) -> None:
    ask(fleet, "mixed")
    fleet.settle()
    for name, done_again in [("mixed-too", False), ("zeros", True), ("partly", True)]:
        ask(fleet, name)
        states = {state(fleet)}
        while fleet.step() or fleet.api.under_way():
            states.add(state(fleet))
        assert (state(fleet), "pending" in states) == ("success", done_again), name
    assert fleet.machines["a"].gpus[0].layout == (("7g.80gb", 0),)
    assert not fleet.machines["a"].gpus[1].mig  # not listed: as it was


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no-such", CONFIG),
        ("mixed", CONFIG.replace("devices: [0]", "devices: 0")),
        ("too-much", CONFIG),
        ("mixed", CONFIG.replace("v1", "v2")),
    ],
)
def test_a_change_that_mig_parted_refuses_fails(fleet: Cluster, name: str, text: str) -> None:
    fleet.apply(config_map(text))
    ask(fleet, name)
    fleet.settle()
    assert state(fleet) == "failed"


def test_a_gpu_in_use_is_not_rewritten(fleet: Cluster) -> None:
    fleet.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}))
    fleet.settle()
    assert len(fleet.running(app="chat")) == 3
    ask(fleet, "mixed")
    fleet.settle()
    assert (state(fleet), fleet.machines["a"].gpus[0].mig) == ("failed", False)
    assert len(fleet.occupants("a")) == 2
    fleet.apply(deployment("chat", 0, {"nvidia.com/gpu": 1}))
    fleet.settle()
    assert fleet.occupants("a") == {}
    ask(fleet, "mixed")  # the same label again is no news
    fleet.settle()
    assert state(fleet) == "failed"


def test_the_scheduler_takes_the_first_node_that_has_room(tmp_path: Path) -> None:
    nodes = {"a": [MIXED], "b": [MIXED], "c": [MIXED]}
    for turned in (False, True):
        with cluster(tmp_path, nodes, pace=0) as c:
            c.world.nodes_reversed = turned
            c.apply(deployment("chat", 1, {"nvidia.com/mig-2g.20gb": 1}))
            c.settle()
            assert len(c.occupants("c" if turned else "a")) == 1
            c.apply(deployment("chat", 7, {"nvidia.com/mig-2g.20gb": 1}))
            c.settle()
            assert {name: len(c.occupants(name)) for name in nodes} == dict.fromkeys(nodes, 2)
            (waiting,) = [p for p in c.objects("Pod", "default") if "nodeName" not in p["spec"]]
            condition = waiting["status"]["conditions"][0]
            assert "3 Insufficient nvidia.com/mig-2g.20gb" in condition["message"]
            limits = {"nvidia.com/mig-3g.40gb": 1}
            c.apply(deployment("code", 1, limits, nodeSelector={"kubernetes.io/hostname": "b"}))
            c.settle()
            assert "3g.40gb" in {profile for _, profile, _ in c.occupants("b")}


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
    with cluster(tmp_path, {"a": [MIXED, A100]}, pace=0, dra_driver=True) as c:
        assert c.allocatable("a") == {}
        c.apply(template, deployment("chat", 3, **pods))
        c.settle()
        assert len(c.running(app="chat")) == 2
        results = [
            claim["status"]["allocation"]["devices"]["results"][0]["device"]
            for claim in c.objects("ResourceClaim")
            if "status" in claim
        ]
        assert sorted(results) == ["gpu-0-mig-2g20gb-14-0", "gpu-0-mig-2g20gb-14-2"]
        assert sorted(c.occupants("a")) == [(0, "2g.20gb", 0), (0, "2g.20gb", 2)]
        c.apply(deployment("chat", 0, **pods))
        c.settle()
        assert c.objects("ResourceClaim") == []
        assert c.occupants("a") == {}
