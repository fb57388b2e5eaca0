"""What makes, starts and stops pods: Deployments, the plug-in's DaemonSet, claims from templates,
the kubelets, and the collector of what has lost its owner.

A Deployment owns its pods itself, and a new template replaces all of them at once.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.fleet.stand_ins.kubernetes import scheduler
from tests.fleet.stand_ins.kubernetes.nodes import Json
from tests.fleet.stand_ins.kubernetes.store import World, copied


def tick(world: World) -> None:
    """One pass of every controller."""
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


def _owner(item: Json) -> list[Json]:
    return [
        {
            "apiVersion": item["apiVersion"], "kind": item["kind"],
            "name": item["metadata"]["name"], "uid": item["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip


def _owned(world: World, kind: str, owner: Json) -> list[Json]:
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    return [
        copied(item)
        for item in world.store.peek(kind, namespace)
        if any(each["uid"] == uid for each in item["metadata"].get("ownerReferences") or [])
    ]


def _from_template(template: Json, owner: Json, **metadata: Any) -> Json:
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    annotations = (template.get("metadata") or {}).get("annotations")
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": owner["metadata"]["namespace"], "labels": labels,
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": _owner(owner), **metadata,
        },
        "spec": json.loads(json.dumps(template["spec"])),
    }  # fmt: skip


def _leaving(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def ready(pod: Json) -> bool:
    return pod["status"].get("phase") == "Running" and not _leaving(pod)


def _replicate(world: World, deployment: Json) -> None:
    """As many pods of the template as it is; what another one made goes."""
    spec, name = deployment["spec"], deployment["metadata"]["name"]
    written = json.dumps(spec["template"], sort_keys=True).encode()
    digest = hashlib.sha256(written).hexdigest()[:10]
    pods = [pod for pod in _owned(world, "Pod", deployment) if not _leaving(pod)]
    pods = [pod for pod in pods if pod["status"]["phase"] not in scheduler.ENDED]
    fresh = [pod for pod in pods if pod["metadata"]["labels"]["pod-template-hash"] == digest]
    for _ in range(spec["replicas"] - len(fresh)):
        pod = _from_template(spec["template"], deployment, generateName=f"{name}-")
        pod["metadata"]["labels"]["pod-template-hash"] = digest
        world.store.create(pod)
    # Pods without a node go first, then the youngest, as in a real cluster.
    fresh.sort(key=lambda pod: (bool(pod["spec"].get("nodeName")), ready(pod)), reverse=True)
    for pod in [*(pod for pod in pods if pod not in fresh), *fresh[spec["replicas"] :]]:
        stop(world, pod)


def _daemons(world: World, daemon_set: Json) -> None:
    """One pod on every node with the wanted labels, cordoned or not."""
    pods = {pod["spec"]["nodeName"]: pod for pod in _owned(world, "Pod", daemon_set)}
    template, name = daemon_set["spec"]["template"], daemon_set["metadata"]["name"]
    wanted = template["spec"].get("nodeSelector") or {}
    for node in world.store.list("Node"):
        where, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        fits = all(labels.get(key) == value for key, value in wanted.items())
        if fits and where not in pods:
            pod = _from_template(template, daemon_set, generateName=f"{name}-")
            pod["spec"]["nodeName"] = where
            world.store.create(pod)
        elif where in pods and not fits and not _leaving(pods[where]):
            stop(world, pods[where])


def stop(world: World, pod: Json) -> Json:
    """Ask a pod to stop; it is gone a little later, at once where it has no node yet."""
    if not pod["spec"].get("nodeName"):
        return remove(world, pod)
    if not _leaving(pod):
        due = world.store.time(world.store.now + world.timing.stop)
        pod["metadata"] |= {"deletionTimestamp": due, "deletionGracePeriodSeconds": 1}
        return world.store.update(pod)
    return pod


def remove(world: World, pod: Json) -> Json:
    _free(world, pod)
    return world.store.delete(pod)


def _free(world: World, pod: Json) -> None:
    for machine in world.machines.values():
        uid = pod["metadata"]["uid"]
        machine.users = {device: user for device, user in machine.users.items() if user != uid}


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
    now, status = world.store.now, pod["status"]
    if _leaving(pod):
        if pod["metadata"]["deletionTimestamp"] <= world.store.time():
            remove(world, pod)
        return
    node = pod["spec"].get("nodeName")
    if node is None or status["phase"] != "Pending":
        return
    if "startTime" not in status:
        if node in world.machines and not scheduler.admit(world, world.machines[node], pod):
            status |= {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
        else:
            status["startTime"] = world.store.time(now + world.timing.start)
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
