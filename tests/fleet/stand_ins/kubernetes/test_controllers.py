"""What happens behind the API by itself: MIG changes, scheduling, roll-outs. No kubectl needed."""

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
  partly: [{devices: [0], mig-enabled: true, mig-devices: {7g.80gb: 1}}]
  zeros:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1, 2g.20gb: 2, 1g.10gb: 0}}
  - {devices: [1], mig-enabled: false}
  too-much: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 3}}]
"""
MIXED = Gpu(A100, True, (("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4)))


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


def state(c: Cluster, node: str = "a") -> str:
    answer: str = c.get("Node", node)["metadata"]["labels"]["nvidia.com/mig.config.state"]
    return answer


def ask(c: Cluster, config: str, node: str = "a") -> None:
    c.set_labels(node, {"nvidia.com/mig.config": config})


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
    assert state(fleet) == "success"
    offered = {"nvidia.com/gpu": 1, "nvidia.com/mig-2g.20gb": 2, "nvidia.com/mig-3g.40gb": 1}
    assert fleet.allocatable("a") == offered
    ask(fleet, "all-disabled")
    fleet.settle()
    assert fleet.allocatable("a") == {"nvidia.com/gpu": 2}
    capacity = fleet.get("Node", "a")["status"]["capacity"]
    assert capacity["nvidia.com/mig-3g.40gb"] == "0"  # a stale key
    assert fleet.get("Node", "a")["metadata"]["labels"]["nvidia.com/gpu.count"] == "2"


def test_what_mig_parted_leaves_alone_and_what_it_does_again(fleet: Cluster) -> None:
    ask(fleet, "mixed")
    fleet.settle()
    other = fleet.machines["a"].gpus[0]
    other.layout = tuple(sorted(other.layout))
    for name, done_again in [("mixed-too", False), ("zeros", True), ("partly", True)]:
        text = CONFIG.replace("  mixed:", "  mixed-too:") if name == "mixed-too" else CONFIG
        fleet.apply(config_map(text))
        since = fleet.world.store.revision
        ask(fleet, name)
        fleet.settle()
        events = [each for each in fleet.world.store.events if each.version > since]
        states = [
            each.item["metadata"]["labels"]["nvidia.com/mig.config.state"]
            for each in events
            if each.kind == "Node"
        ]
        assert ("pending" in states) is done_again, name
        assert state(fleet) == "success"
    assert fleet.machines["a"].gpus[0].layout == (("7g.80gb", 0),)
    assert not fleet.machines["a"].gpus[1].mig  # not listed: as it was


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no-such", CONFIG),
        ("mixed", CONFIG.replace("devices: [0]", "devices: 0")),
        ("mixed", CONFIG.replace("v1", "v2")),
        ("too-much", CONFIG),
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
    assert state(fleet) == "failed"
    assert not fleet.machines["a"].gpus[0].mig
    assert len(fleet.occupants("a")) == 2
    fleet.apply(deployment("chat", 0, {"nvidia.com/gpu": 1}))
    fleet.settle()
    assert fleet.occupants("a") == {}
    ask(fleet, "mixed")  # the same label again is no news
    fleet.settle()
    assert state(fleet) == "failed"


def test_faults_on_demand(fleet: Cluster) -> None:
    fleet.world.faults.mig_fails = {"a"}
    fleet.world.faults.mig_stuck = {"b"}
    ask(fleet, "mixed")
    ask(fleet, "partly", "b")
    fleet.settle()
    assert (state(fleet), state(fleet, "b")) == ("failed", "pending")


def test_the_scheduler_takes_the_first_node_that_has_room(tmp_path: Path) -> None:
    nodes = {"a": [MIXED], "b": [MIXED], "c": [MIXED]}
    for turned in (False, True):
        with cluster(tmp_path, nodes, pace=0) as c:
            c.world.nodes_reversed = turned
            c.apply(deployment("chat", 7, {"nvidia.com/mig-2g.20gb": 1}))
            c.settle()
            used = {name: len(c.occupants(name)) for name in nodes}
            assert used == {"a": 2, "b": 2, "c": 2}
            waiting = [p for p in c.objects("Pod", "default") if "nodeName" not in p["spec"]]
            condition = waiting[0]["status"]["conditions"][0]
            assert "3 Insufficient nvidia.com/mig-2g.20gb" in condition["message"]
            c.apply(deployment("chat", 1, {"nvidia.com/mig-2g.20gb": 1}))
            c.settle()
            assert len(c.running(app="chat")) == 1


def test_selectors_and_spread_of_pods(tmp_path: Path) -> None:
    zones = {"a": {"zone": "1"}, "b": {"zone": "2"}, "c": {"zone": "2"}}
    with cluster(tmp_path, {name: [MIXED] for name in zones}, pace=0, labels=zones) as c:
        spread = {
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "chat"}},
        }  # fmt: skip
        limits = {"nvidia.com/mig-2g.20gb": 1}
        c.apply(deployment("chat", 4, limits, topologySpreadConstraints=[spread]))
        c.settle()
        assert [len(c.occupants(name)) for name in zones] == [2, 2, 0]
        c.apply(deployment("code", 1, {"nvidia.com/mig-3g.40gb": 1}, nodeSelector={"zone": "2"}))
        c.settle()
        assert ("3g.40gb" in {p for _, p, _ in c.occupants("b")}) is True


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
        assert results == ["gpu-0-mig-2g20gb-14-0", "gpu-0-mig-2g20gb-14-2"]
        assert sorted(c.occupants("a")) == [(0, "2g.20gb", 0), (0, "2g.20gb", 2)]
        c.apply(deployment("chat", 0, **pods))
        c.settle()
        assert c.objects("ResourceClaim") == []
        assert c.occupants("a") == {}


def test_a_roll_out_never_has_more_pods_than_its_surge(fleet: Cluster) -> None:
    fleet.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}))
    fleet.settle()
    fleet.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}, priorityClassName="high"))
    fewest = 3
    while fleet.step() or fleet.api.under_way():
        fewest = min(fewest, len(fleet.running(app="chat")))
    # No GPU is left for the one pod more, and 25 % of 3 is none that may be missing.
    status = fleet.get("Deployment", "chat")["status"]
    assert (fewest, status["updatedReplicas"], status["readyReplicas"]) == (3, 1, 3)
    new = deployment("chat", 3, {"nvidia.com/gpu": 1}, priorityClassName="high")
    new["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    fleet.apply(new)
    while fleet.step() or fleet.api.under_way():
        fewest = min(fewest, len(fleet.running(app="chat")))
    status = fleet.get("Deployment", "chat")["status"]
    assert (fewest, status["updatedReplicas"], status["readyReplicas"]) == (2, 3, 3)


def test_a_disruption_budget_stands_against_an_eviction(fleet: Cluster) -> None:
    budget: Json = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "chat"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "chat"}}},
    }  # fmt: skip
    fleet.apply(deployment("chat", 2, {"nvidia.com/gpu": 1}), budget)
    fleet.settle()
    codes = []
    for pod in fleet.running(app="chat"):
        name = pod["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = f"/api/v1/namespaces/default/pods/{name}/eviction"
        codes.append(fleet.http("POST", path, eviction)[0])
    assert codes == [201, 429]
    fleet.settle()
    assert len(fleet.running(app="chat")) == 2  # the Deployment has made another


def test_old_resource_names_served_by_a_device_class(tmp_path: Path) -> None:
    expression = (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"
        " && device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"
    )
    bridge: Json = {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": "mig-2g-20gb.gpu.nvidia.com"},
        "spec": {
            "extendedResourceName": "nvidia.com/mig-2g.20gb",
            "selectors": [{"cel": {"expression": expression}}],
        },
    }  # fmt: skip
    running = []
    for version in ("1.34", "1.35"):
        with cluster(tmp_path, {"a": [A100, MIXED]}, pace=0, dra_driver=True, version=version) as c:
            c.apply(bridge, deployment("chat", 3, {"nvidia.com/mig-2g.20gb": 1}))
            c.settle()
            running.append(len(c.running(app="chat")))
            assert len(c.occupants("a")) == running[-1]
    assert running == [0, 2]


def test_claims_on_one_gpu(tmp_path: Path) -> None:
    """`parentUUID` ties two instances to one GPU, whichever has both."""
    one = {
        "deviceClassName": "mig.nvidia.com",
        "selectors": [
            {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"}}
        ],
        "count": 2,
    }
    constraint = {"requests": [], "matchAttribute": "gpu.nvidia.com/parentUUID"}
    devices = {"requests": [{"name": "pair", "exactly": one}], "constraints": [constraint]}
    template: Json = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"}, "spec": {"spec": {"devices": devices}},
    }  # fmt: skip
    claims: Json = {"resourceClaims": [{"name": "slice", "resourceClaimTemplateName": "t"}]}
    single = Gpu(A100, True, (("2g.20gb", 0),))
    with cluster(tmp_path, {"a": [single, MIXED]}, pace=0, dra_driver=True) as c:
        c.apply(template, deployment("chat", 1, **claims))
        c.settle()
        assert sorted(c.occupants("a")) == [(1, "2g.20gb", 0), (1, "2g.20gb", 2)]
