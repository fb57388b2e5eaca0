"""What a cluster says, object by object, and how tests read it."""

from __future__ import annotations

import json
from typing import Any

from cms.files.source import Source
from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.observation.facts import GpuFacts, InstanceFacts, NodeFacts, Statement
from cms.fleet.deployment.observation.kubernetes import read_kubernetes
from cms.fleet.deployment.observation.merge import ObservationResult, merge
from cms.fleet.hardware.yaml_text import read_yaml_or_json
from cms.fleet.serving import RULES

from .deployments import SERVICES, point

Object = dict[str, Any]
A100 = get_gpu("a100-80gb")
CHAT = point("chat", A100.key, "3g.40gb")
PRODUCT = "NVIDIA-A100-SXM4-80GB"
MIXED = {"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.capable": "true"}


def node(name: str = "a", labels: Any = None, **allocatable: Any) -> Object:
    counts = {f"nvidia.com/{key.replace('_', '.')}": each for key, each in allocatable.items()}
    own = {"nvidia.com/gpu.product": PRODUCT, **(MIXED if labels is None else labels)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own},
        "status": {"allocatable": counts, "capacity": {**counts, "nvidia.com/mig-7g.80gb": "0"}},
    }


def pod(
    name: str = "chat-1", resource: str | None = "mig-3g.40gb", on: str | None = "a", **more: Any
) -> Object:
    limits = {} if resource is None else {f"nvidia.com/{resource}": "1"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "prod", **more.pop("metadata", {})},
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": limits}}],
            **({} if on is None else {"nodeName": on}),
            **more.pop("spec", {}),
        },
        "status": {"phase": "Running", "conditions": ready, **more.pop("status", {})},
    }


OURS = {"labels": {"cms.service": "chat", "cms.point": point_label(CHAT)}}
ELSEWHERE = pod("agent", None, None, metadata={"namespace": "kube-system"})


def told(*objects: Object, service_label: str | None = None) -> list[NodeFacts]:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1)
    documents = read_yaml_or_json(Source("cluster.json", text))
    return read_kubernetes(documents, "cluster.json", service_label)


def cut(*places: tuple[str, int], index: int = 0) -> GpuFacts:
    parts = tuple(InstanceFacts(profile, "lgi.txt:1", start) for profile, start in places)
    return GpuFacts(index, "lgi.txt:1", mig=Statement("on", "lgi.txt:1"), instances=parts)


HALVES = NodeFacts("lgi.txt", Statement("a", "--node"), gpus=(cut(("3g.40gb", 0), ("3g.40gb", 4)),))


def known(*works: Any) -> Deployment:
    cards = [
        FleetGpu("a", index, A100, instances=(Instance(work.point.profile, 0, work),))
        for index, work in enumerate(works or (CHAT,))
    ]
    return Deployment((FleetNode("a", tuple(cards)),), SERVICES, RULES["half"])


def seen(*objects: Object, gpus: NodeFacts = HALVES, **more: Any) -> ObservationResult:
    return merge([gpus, *told(*objects, **more)], known())


TWO = node("a", **{"mig-3g.40gb": "2"})


def device(name: str, possible: bool = False, **attributes: str) -> Object:
    own = {"type": "mig" if "mig" in name else "gpu", "productName": "NVIDIA A100-SXM4-80GB"}
    values: Object = {key: {"string": each} for key, each in (own | attributes).items()}
    values["driverVersion"] = {"version": "550.54.15"}
    counters = [{"counterSet": "gpu-0-counter-set", "counters": {}}]
    return {
        "name": name,
        "attributes": values,
        **({"consumesCounters": counters} if possible else {}),
    }


def slices(*devices: Object, on: str = "a", count: int = 1, generation: int = 1) -> Object:
    pool = {"name": on, "generation": generation, "resourceSliceCount": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{on}-{generation}"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": on,
            "pool": pool,
            "devices": list(devices),
        },
    }


def claim(name: str, *devices: str, pods: tuple[str, ...] = (), on: str = "a") -> Object:
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": on, "device": each}
        for each in devices
    ]
    users = [{"resource": "pods", "name": each, "uid": each} for each in pods]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "prod"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
    }


def claiming(name: str, *claims: str, metadata: Object | None = None) -> Object:
    held = [{"name": "gpu", "resourceClaimName": each} for each in claims]
    return pod(
        name, None, metadata=metadata or OURS,
        spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "cms-3g40gb"}]},
        status={"resourceClaimStatuses": held},
    )  # fmt: skip


LOW = device("gpu-0-mig-3g40gb-9-0", profile="3g.40gb", parentUUID="GPU-0", uuid="MIG-0")
HIGH = device("gpu-0-mig-3g40gb-9-4", profile="3g.40gb", parentUUID="GPU-0", uuid="MIG-4")
WHOLE_GPU = device("gpu-1", uuid="GPU-1")
