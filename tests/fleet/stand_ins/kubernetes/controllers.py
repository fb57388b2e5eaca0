"""What makes, places, starts and stops pods, and what they hold: all controllers but mig-manager.

A Deployment owns its pods itself, and its template stays as it is. A pod goes to the first node, in
the order of names, that has what it asks for; nothing is scored: extended resources as node totals
(the classic device plug-in), or claims matched by CEL. A real scheduler may choose any node that
fits: `nodes_reversed` and `devices_reversed` show another choice.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.kinds import Json
from tests.fleet.stand_ins.kubernetes.nodes import Device, Machine
from tests.fleet.stand_ins.kubernetes.store import World, copied

_ENDED = ("Succeeded", "Failed")


def tick(world: World) -> None:
    """One pass of every controller but the scheduler."""
    for deployment in world.store.list("Deployment"):
        _replicate(world, deployment)
    for daemon_set in world.store.list("DaemonSet"):
        _daemons(world, daemon_set)
    for pod in [*world.store.peek("Pod")]:
        if _leaving(pod) or pod["status"]["phase"] == "Pending":
            pod = copied(pod)
            _claim(world, pod)
            _live(world, pod)
    _collect(world)


# --- pods that come and go ------------------------------------------------------------------------


def _owner(item: Json) -> list[Json]:
    metadata = item["metadata"]
    return [
        {
            "apiVersion": item["apiVersion"], "kind": item["kind"], "name": metadata["name"],
            "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip


def _owned(world: World, owner: Json) -> list[Json]:
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    return [
        copied(item)
        for item in world.store.peek("Pod", namespace)
        if any(each["uid"] == uid for each in item["metadata"].get("ownerReferences") or [])
    ]


def _from_template(owner: Json) -> Json:
    template, metadata = copied(owner["spec"]["template"]), owner["metadata"]
    template["metadata"] |= {
        "namespace": metadata["namespace"], "ownerReferences": _owner(owner),
        "generateName": f"{metadata['name']}-",
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", **template}


def _leaving(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _replicate(world: World, deployment: Json) -> None:
    """As many pods as it is to have; those without a node go first, then the youngest."""
    count = deployment["spec"]["replicas"]
    pods = [pod for pod in _owned(world, deployment) if not _leaving(pod)]
    pods = [pod for pod in pods if pod["status"]["phase"] not in _ENDED]
    for _ in range(count - len(pods)):
        world.store.create(_from_template(deployment))
    pods.sort(key=lambda pod: ("nodeName" in pod["spec"], _runs(pod)), reverse=True)
    for pod in pods[count:]:
        stop(world, pod)


def _runs(pod: Json) -> bool:
    return pod["status"]["phase"] == "Running" and not _leaving(pod)


def _daemons(world: World, daemon_set: Json) -> None:
    """One pod on every node with the wanted labels, cordoned or not."""
    pods = {pod["spec"]["nodeName"]: pod for pod in _owned(world, daemon_set)}
    wanted = daemon_set["spec"]["template"]["spec"].get("nodeSelector") or {}
    for node in world.store.list("Node"):
        where = node["metadata"]["name"]
        fits = wanted.items() <= (node["metadata"].get("labels") or {}).items()
        if fits and where not in pods:
            pod = _from_template(daemon_set)
            pod["spec"]["nodeName"] = where
            world.store.create(pod)
        elif where in pods and not fits:
            stop(world, pods[where])


def stop(world: World, pod: Json) -> Json:
    """Ask a pod to stop; it is gone a little later, at once where it has no node yet."""
    if not pod["spec"].get("nodeName"):
        return _remove(world, pod)
    if not _leaving(pod):
        due = world.store.time(1)
        pod["metadata"] |= {"deletionTimestamp": due, "deletionGracePeriodSeconds": 1}
        return world.store.update(pod)
    return pod


def _remove(world: World, pod: Json) -> Json:
    for machine in world.machines.values():
        machine.free(pod["metadata"]["uid"])
    return world.store.delete(pod)


def _claim(world: World, pod: Json) -> None:
    """Make the claims that a pod takes from templates."""
    made = {each["name"] for each in pod["status"].get("resourceClaimStatuses") or []}
    for each in pod["spec"].get("resourceClaims") or []:
        name, namespace = each.get("resourceClaimTemplateName"), pod["metadata"]["namespace"]
        template = world.store.find("ResourceClaimTemplate", name, namespace) if name else None
        if template is None or each["name"] in made or _leaving(pod):
            continue
        claim = world.store.create(
            {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": {
                    "generateName": f"{pod['metadata']['name']}-{each['name']}-",
                    "namespace": namespace, "ownerReferences": _owner(pod),
                },
                "spec": template["spec"]["spec"],
            }
        )  # fmt: skip
        status = {"name": each["name"], "resourceClaimName": claim["metadata"]["name"]}
        pod["status"].setdefault("resourceClaimStatuses", []).append(status)
        pod.update(world.store.update(pod))


def _live(world: World, pod: Json) -> None:
    """The kubelet: devices and start after binding, the end after the asked-for time."""
    status, node = pod["status"], pod["spec"].get("nodeName")
    if _leaving(pod):
        if pod["metadata"]["deletionTimestamp"] <= world.store.time():
            _remove(world, pod)
    elif node is None or status["phase"] != "Pending":
        return
    elif "startTime" not in status:
        if node in world.machines and not _admit(world, world.machines[node], pod):
            status |= {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
        else:
            status["startTime"] = world.store.time(1)
        world.store.update(pod)
    elif status["startTime"] <= world.store.time():
        status["phase"] = "Running"
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        status["conditions"] = [{"type": kind, "status": "True"} for kind in kinds]
        world.store.update(pod)


def _collect(world: World) -> None:
    """Remove what has lost its owner; a claim goes with its pod."""
    kinds = ("Deployment", "DaemonSet", "Pod", "ResourceClaim")
    alive = {item["metadata"]["uid"] for kind in kinds for item in world.store.peek(kind)}
    for kind in ("Pod", "ResourceClaim"):
        for item in [*world.store.peek(kind)]:
            owners = item["metadata"].get("ownerReferences") or []
            if owners and all(each["uid"] not in alive for each in owners):
                if kind == "Pod":
                    stop(world, copied(item))
                else:
                    world.store.delete(item)


# --- the scheduler --------------------------------------------------------------------------------


def schedule(world: World) -> None:
    """Try every waiting pod once, in the order of their making."""
    pods = [
        pod for pod in world.store.peek("Pod")
        if not (pod["spec"].get("nodeName") or pod["status"]["phase"] in _ENDED or _leaving(pod))
    ]  # fmt: skip
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["uid"])):
        metadata = pod["metadata"]
        _schedule(world, world.store.get("Pod", metadata["name"], metadata["namespace"]))


def _schedule(world: World, pod: Json) -> None:
    claims = _claims(world, pod)
    nodes = list(world.store.peek("Node"))
    why = Counter[str]()
    for node in reversed(nodes) if world.nodes_reversed else nodes:
        name = node["metadata"]["name"]
        reason = "claims are not there yet" if claims is None else _unfit(world, pod, node)
        chosen = None if reason else _allocated(world, claims or [], name)
        if chosen is not None:
            _bind(world, pod, name, chosen)
            return
        why[reason or "cannot allocate all claims"] += 1
    counted = ", ".join(f"{n} {reason}" for reason, n in sorted(why.items()))
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": f"0/{len(nodes)} nodes are available: {counted}.",
    }  # fmt: skip
    pod["status"]["conditions"] = [condition]
    world.store.update(pod)


def _requests(pod: Json) -> Counter[str]:
    """The extended resources of a pod."""
    total = Counter[str]()
    for container in pod["spec"]["containers"]:
        limits = (container.get("resources") or {}).get("limits") or {}
        total.update({key: int(amount) for key, amount in limits.items() if "/" in key})
    return total


def _unfit(world: World, pod: Json, node: Json) -> str:
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if node["spec"].get("unschedulable"):
        return "node(s) were unschedulable"
    if not (spec.get("nodeSelector") or {}).items() <= labels.items() or not _affine(spec, labels):
        return "node(s) didn't match Pod's node affinity/selector"
    free = {key: int(n) for key, n in node["status"]["allocatable"].items() if "/" in key}
    for other in world.store.peek("Pod"):
        here = other["spec"].get("nodeName") == node["metadata"]["name"]
        for key, amount in _requests(other).items():
            if here and other["status"].get("phase") not in _ENDED:
                free[key] = free.get(key, 0) - amount
    lacks = (key for key, amount in _requests(pod).items() if free.get(key, 0) < amount)
    return next((f"Insufficient {key}" for key in lacks), "")


def _affine(spec: Json, labels: Json) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(
        all(
            each["operator"] == "In" and labels.get(each["key"]) in each["values"]
            for each in term["matchExpressions"]
        )
        for term in required["nodeSelectorTerms"]
    )


def _claims(world: World, pod: Json) -> list[Json] | None:
    """The pod's claims; None where the controller has still to make one."""
    made = pod["status"].get("resourceClaimStatuses") or []
    statuses = {each["name"]: each["resourceClaimName"] for each in made}
    claims = []
    for each in pod["spec"].get("resourceClaims") or []:
        name = each.get("resourceClaimName") or statuses.get(each["name"])
        claim = world.store.find("ResourceClaim", name or "", pod["metadata"]["namespace"])
        if claim is None:
            return None
        claims.append(claim)
    return claims


def _results(claim: Json) -> list[Json]:
    """The devices that a claim was given."""
    held = (claim.get("status") or {}).get("allocation") or {}
    results: list[Json] = held.get("devices", {}).get("results", [])
    return results


Chosen = list[tuple[Json, list[dra.Choice]]]


def _allocated(world: World, claims: list[Json], node: str) -> Chosen | None:
    classes = {each["metadata"]["name"]: each for each in world.store.peek("DeviceClass")}
    every = (one for claim in world.store.peek("ResourceClaim") for one in _results(claim))
    gone, chosen = {(one["pool"], one["device"]) for one in every}, []
    here = [each for each in dra.listed(world.store.peek("ResourceSlice")) if each.node == node]
    for claim in claims:
        if _results(claim):
            if {one["pool"] for one in _results(claim)} != {node}:
                return None
            continue
        free = [each for each in here if (node, each.name) not in gone]
        found = dra.allocate(claim["spec"], free, classes)
        if found is None:
            return None
        gone |= {(node, each.name) for _, each in found}
        chosen.append((claim, found))
    return chosen


def _bind(world: World, pod: Json, node: str, chosen: Chosen) -> None:
    for claim, found in chosen:
        results = [
            {"request": name, "driver": dra.DRIVER, "pool": node, "device": each.name}
            for name, each in found
        ]
        field: Any = {"key": "metadata.name", "operator": "In", "values": [node]}
        where = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        user = {"resource": "pods", **{key: pod["metadata"][key] for key in ("name", "uid")}}
        claim["status"] = {
            "allocation": {"devices": {"results": results}, "nodeSelector": where},
            "reservedFor": [user],
        }
        world.store.update(claim)
    pod["spec"]["nodeName"] = node
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
    world.store.update(pod)


def _admit(world: World, machine: Machine, pod: Json) -> bool:
    """Let the kubelet give a pod its devices; False where it has not enough of them."""
    given = list[Device]()
    free = [device for device in machine.devices() if device not in machine.users]
    for key, amount in _requests(pod).items():
        fitting = [device for device in free if device.resource == key]
        if len(fitting) < amount:
            return False
        given += (fitting[::-1] if world.devices_reversed else fitting)[:amount]
    by_name = {dra.name_of(machine, device): device for device in machine.devices()}
    for claim in _claims(world, pod) or []:
        for result in _results(claim):
            if result["device"] not in by_name:
                return False
            given.append(by_name[result["device"]])
    for device in given:
        machine.give(device, pod["metadata"]["uid"])
    return True
