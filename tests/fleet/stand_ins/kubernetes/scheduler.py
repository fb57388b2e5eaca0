"""The first node, in the order of names, that has what a pod asks for; nothing is scored.

Extended resources as node totals (the classic device plug-in), or claims matched by CEL. A real
scheduler may choose any node that fits: `nodes_reversed` and `devices_reversed` are there so that
a test sees another choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.nodes import Device, Json, Machine
from tests.fleet.stand_ins.kubernetes.selecting import meets
from tests.fleet.stand_ins.kubernetes.store import World

ENDED = ("Succeeded", "Failed")


def tick(world: World) -> None:
    """Try every waiting pod once, in the order of their making."""
    pods = [pod for pod in world.store.peek("Pod") if _waits(pod)]
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["uid"])):
        _schedule(world, world.store.get("Pod", *_key(pod)))


def _key(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["name"], pod["metadata"]["namespace"]


def _waits(pod: Json) -> bool:
    bound = pod["spec"].get("nodeName") or pod["status"]["phase"] in ENDED
    return not bound and "deletionTimestamp" not in pod["metadata"]


def _schedule(world: World, pod: Json) -> None:
    claims = _claims(world, pod)
    nodes = list(world.store.peek("Node"))
    why = []
    for node in reversed(nodes) if world.nodes_reversed else nodes:
        reason = "" if claims is not None else "claims are not there yet"
        reason = reason or _unfit(world, pod, node)
        if not reason:
            chosen = _allocated(world, claims or [], node["metadata"]["name"])
            reason = "" if chosen is not None else "cannot allocate all claims"
        if not reason:
            _bind(world, pod, node["metadata"]["name"], chosen or [])
            return
        why.append(reason)
    counted = ", ".join(f"{why.count(reason)} {reason}" for reason in sorted(set(why)))
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": f"0/{len(nodes)} nodes are available: {counted}.",
    }  # fmt: skip
    pod["status"]["conditions"] = [condition]
    world.store.update(pod)


def requests(pod: Json) -> dict[str, int]:
    """The extended resources of a pod."""
    total: dict[str, int] = {}
    for container in pod["spec"]["containers"]:
        for key, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if "/" in key:
                total[key] = total.get(key, 0) + int(amount)
    return total


def _unfit(world: World, pod: Json, node: Json) -> str:
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if node["spec"].get("unschedulable"):
        return "node(s) were unschedulable"
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    if not _affine(spec, labels):
        return "node(s) didn't match Pod's node affinity/selector"
    free = {key: int(n) for key, n in node["status"]["allocatable"].items() if "/" in key}
    for other in on_node(world, node["metadata"]["name"]):
        for key, amount in requests(other).items():
            free[key] = free.get(key, 0) - amount
    for key, amount in requests(pod).items():
        if free.get(key, 0) < amount:
            return f"Insufficient {key}"
    return ""


def _affine(spec: Json, labels: Json) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(
        all(meets(labels, each) for each in term.get("matchExpressions") or [])
        for term in required["nodeSelectorTerms"]
    )


def on_node(world: World, name: str) -> Iterator[Json]:
    """The pods that hold something on a node."""
    for pod in world.store.peek("Pod"):
        if pod["spec"].get("nodeName") == name and pod["status"].get("phase") not in ENDED:
            yield pod


def _claims(world: World, pod: Json) -> list[Json] | None:
    """The pod's claims; None where the controller has still to make one."""
    statuses = {
        each["name"]: each["resourceClaimName"]
        for each in pod["status"].get("resourceClaimStatuses") or []
    }
    claims = []
    for each in pod["spec"].get("resourceClaims") or []:
        name = each.get("resourceClaimName") or statuses.get(each["name"])
        claim = world.store.find("ResourceClaim", name or "", pod["metadata"]["namespace"])
        if claim is None:
            return None
        claims.append(claim)
    return claims


def taken(world: World) -> set[tuple[str, str, str]]:
    """The devices that are allocated, as (driver, pool, device)."""
    return {
        (result["driver"], result["pool"], result["device"])
        for claim in world.store.peek("ResourceClaim")
        for result in ((claim.get("status") or {}).get("allocation") or {})
        .get("devices", {})
        .get("results", [])
    }


Chosen = list[tuple[Json, list[dra.Choice]]]


def _allocated(world: World, claims: list[Json], node: str) -> Chosen | None:
    classes = {each["metadata"]["name"]: each for each in world.store.peek("DeviceClass")}
    gone, chosen = taken(world), []
    here = [each for each in dra.listed(world.store.peek("ResourceSlice")) if each.node == node]
    for claim in claims:
        held = (claim.get("status") or {}).get("allocation")
        if held is not None:
            if held["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] != [node]:
                return None
            continue
        free = [each for each in here if (each.driver, each.pool, each.name) not in gone]
        found = dra.allocate(claim["spec"], free, classes)
        if found is None:
            return None
        gone |= {(each.driver, each.pool, each.name) for _, each in found}
        chosen.append((claim, found))
    return chosen


def _bind(world: World, pod: Json, node: str, chosen: Chosen) -> None:
    for claim, found in chosen:
        results = [
            {"request": name, "driver": each.driver, "pool": each.pool, "device": each.name}
            for name, each in found
        ]
        field: Any = {"key": "metadata.name", "operator": "In", "values": [node]}
        where = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        claim["status"] = {
            "allocation": {"devices": {"results": results}, "nodeSelector": where},
            "reservedFor": [
                {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            ],
        }
        world.store.update(claim)
    pod["spec"]["nodeName"] = node
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
    world.store.update(pod)


def admit(world: World, machine: Machine, pod: Json) -> bool:
    """Let the kubelet give a pod its devices; False where it has not enough of them."""
    uid, given = pod["metadata"]["uid"], list[Device]()
    free = [device for device in machine.devices() if device not in machine.users]
    for key, amount in requests(pod).items():
        fitting = [device for device in free if device.resource == key]
        if len(fitting) < amount:
            return False
        given += (fitting[::-1] if world.devices_reversed else fitting)[:amount]
    by_name = {dra.name_of(machine, device): device for device in machine.devices()}
    for claim in _claims(world, pod) or []:
        for result in claim["status"]["allocation"]["devices"]["results"]:
            if result["device"] not in by_name:
                return False
            given.append(by_name[result["device"]])
    machine.users |= dict.fromkeys(given, uid)
    return True
