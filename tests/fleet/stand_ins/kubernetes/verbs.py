"""What the API server does with one request: the verbs of Kubernetes on the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from tests.fleet.stand_ins.kubernetes import patching, workloads
from tests.fleet.stand_ins.kubernetes.kinds import BY_NAME, Json, Kind, kind_at
from tests.fleet.stand_ins.kubernetes.schemas import schema_faults
from tests.fleet.stand_ins.kubernetes.selecting import Test, matches, selector
from tests.fleet.stand_ins.kubernetes.store import Refused
from tests.fleet.stand_ins.kubernetes.world import World

_APPLY = "application/apply-patch+yaml"
_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": patching.merge_patch,
    "application/json-patch+json": patching.json_patch,
    "application/strategic-merge-patch+json": patching.strategic_merge,
}


class Request(NamedTuple):
    """One request, taken apart."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    agent: str
    body: bytes

    def json(self) -> Json:
        try:
            read = json.loads(self.body) if self.body else {}
        except ValueError as error:
            raise Refused(400, f"not JSON: {error}") from error
        if not isinstance(read, dict):
            raise Refused(400, "not a JSON object")
        return read


class Target(NamedTuple):
    """What a path names: a kind, perhaps a namespace, an object, a part of it."""

    kind: Kind
    namespace: str | None
    name: str | None
    part: str | None


def target(path: str) -> Target | None:
    """/api/v1/namespaces/a/pods/b/eviction and its like."""
    parts = path.strip("/").split("/")
    ahead = 2 if parts[0] == "api" else 3
    root, rest = "/" + "/".join(parts[:ahead]), parts[ahead:]
    namespace = None
    if len(rest) >= 3 and rest[0] == "namespaces" and kind_at(root, rest[2]):
        namespace, rest = rest[1], rest[2:]
    elif len(rest) >= 3 and rest[0] == "namespaces" and root != "/api/v1":
        return None
    kind = kind_at(root, rest[0]) if rest else None
    if kind is None or len(rest) > 3:
        return None
    name, part = [*rest, None, None][1:3]
    if part is not None and part not in kind.subresources:
        return None
    return Target(kind, namespace, name, part)


def chosen(request: Request, at: Target) -> Test:
    """The selectors of a list or a watch, with the name where one is given."""
    fields = request.query.get("fieldSelector", "")
    try:
        test = selector(request.query.get("labelSelector", ""), fields)
    except ValueError as error:
        raise Refused(400, str(error)) from error
    named = at.name
    return lambda item: (
        test(item)
        and (at.namespace in (None, item["metadata"].get("namespace")))
        and named in (None, item["metadata"]["name"])
    )


def answer(world: World, request: Request, at: Target) -> tuple[int, Json]:
    """The status and the body; errors are raised. The caller holds the store's lock."""
    verbs = {"GET": _get, "POST": _post, "PUT": _put, "PATCH": _patch, "DELETE": _delete}
    verb = verbs.get(request.method)
    if verb is None:
        raise Refused(405, f"{request.method} is not served")
    return verb(world, request, at)


def _get(world: World, request: Request, at: Target) -> tuple[int, Json]:
    if at.name is not None:
        item = world.store.get(at.kind.name, at.name, at.namespace or "")
        return 200, _scale(item) if at.part == "scale" else item
    test = chosen(request, at)
    items = [item for item in world.store.list(at.kind.name) if test(item)]
    return 200, {
        "kind": f"{at.kind.name}List", "apiVersion": at.kind.api_version,
        "metadata": {"resourceVersion": str(world.store.revision)}, "items": items,
    }  # fmt: skip


def _post(world: World, request: Request, at: Target) -> tuple[int, Json]:
    item = request.json()
    if at.part == "eviction":
        return _evict(world, item, at)
    if at.name is not None:
        raise Refused(405, "POST to an object")
    _strict(world, item, at)
    if at.kind.namespaced:
        item.setdefault("metadata", {}).setdefault("namespace", at.namespace)
    made = world.store.create(item, _manager(request, at), _dry(request))
    return 201, made


def _put(world: World, request: Request, at: Target) -> tuple[int, Json]:
    item = request.json()
    before = world.store.get(at.kind.name, at.name or "", at.namespace or "")
    if at.part == "scale":
        before["spec"]["replicas"] = item["spec"]["replicas"]
        return 200, _scale(world.store.update(before, _manager(request, at), _dry(request)))
    _strict(world, item, at)
    item["metadata"].setdefault("namespace", at.namespace) if at.namespace else None
    if at.part == "status":
        item = before | {"status": item.get("status", {})}
    elif "status" in BY_NAME[at.kind.name].subresources and "status" in before:
        item["status"] = before["status"]
    return 200, world.store.update(item, _manager(request, at), _dry(request))


def _patch(world: World, request: Request, at: Target) -> tuple[int, Json]:
    if request.content_type == _APPLY:
        return _apply(world, request, at)
    if request.content_type not in _PATCHES:
        raise Refused(415, f"the body's type {request.content_type!r} is not served")
    before = world.store.get(at.kind.name, at.name or "", at.namespace or "")
    shown = _scale(before) if at.part == "scale" else deepcopy(before)
    try:
        after = _PATCHES[request.content_type](shown, json.loads(request.body))
    except ValueError as error:
        raise Refused(400, f"the patch cannot be applied: {error}") from error
    if at.part == "scale":
        if after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            raise Refused(409, "the object has been modified")
        before["spec"]["replicas"] = after["spec"]["replicas"]
        return 200, _scale(world.store.update(before, _manager(request, at), _dry(request)))
    if at.part is None and "status" in at.kind.subresources and "status" in before:
        after["status"] = before["status"]
    _strict(world, after, at)
    return 200, world.store.update(after, _manager(request, at), _dry(request))


def _apply(world: World, request: Request, at: Target) -> tuple[int, Json]:
    """Server-side apply: every field has owners, and who takes another's must say so."""
    config = YAML(typ="safe", pure=True).load(request.body.decode())
    if not isinstance(config, dict):
        raise Refused(400, "not a map")
    manager, force = _manager(request, at), request.query.get("force") == "true"
    if at.kind.namespaced:
        config.setdefault("metadata", {}).setdefault("namespace", at.namespace)
    _strict(world, config, at)
    live = world.store.find(at.kind.name, at.name or "", at.namespace or "")
    if live is None:
        return 201, world.store.create(config, manager, _dry(request))
    owners = deepcopy(world.store.owners[live["metadata"]["uid"]])
    after, conflicts = patching.server_side_apply(live, config, manager, owners, force)
    if conflicts:
        said = "Apply failed with " + ("1 conflict" if len(conflicts) == 1 else "conflicts")
        causes = [{"reason": "FieldManagerConflict", "message": one} for one in conflicts]
        raise Refused(409, f"{said}: {'; '.join(conflicts)}", causes=causes)
    if "status" in live:
        after["status"] = live["status"]
    kept = world.store.update(after, manager, _dry(request))
    if not _dry(request):
        world.store.owners[live["metadata"]["uid"]] = owners
    return 200, kept


def _delete(world: World, request: Request, at: Target) -> tuple[int, Json]:
    if at.name is None:
        raise Refused(405, "deleting collections is not served")
    item = world.store.get(at.kind.name, at.name, at.namespace or "")
    grace = request.json().get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    uid = item["metadata"]["uid"]
    if not _dry(request) and at.kind.name == "Pod":
        ticks = None if grace is None else min(int(grace), world.timing.stop)
        item = workloads.stop(world, item, ticks)
        if "deletionTimestamp" in item["metadata"]:
            return 200, item
    elif not _dry(request):
        world.store.delete(item)
    details = {"name": at.name, "kind": at.kind.plural, "uid": uid}
    return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}


def _evict(world: World, eviction: Json, at: Target) -> tuple[int, Json]:
    """Stop a pod unless a PodDisruptionBudget stands against it."""
    if faults := schema_faults(eviction, world.store.version):
        raise Refused(400, "; ".join(faults))
    pod = world.store.get("Pod", at.name or "", at.namespace or "")
    for budget in world.store.peek("PodDisruptionBudget", at.namespace):
        spec = budget["spec"]
        if not matches(pod["metadata"].get("labels") or {}, spec.get("selector")):
            continue
        alike = [
            each
            for each in world.store.peek("Pod", at.namespace)
            if matches(each["metadata"].get("labels") or {}, spec.get("selector"))
        ]
        healthy = sum(workloads.ready(each) for each in alike)
        if "minAvailable" in spec:
            least = workloads.share(spec["minAvailable"], len(alike), up=True)
        else:
            least = len(alike) - workloads.share(spec["maxUnavailable"], len(alike), up=True)
        if workloads.ready(pod) and healthy - 1 < least:
            raise Refused(
                429, "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[{"reason": "DisruptionBudget", "message": budget["metadata"]["name"]}],
            )  # fmt: skip
    options = eviction.get("deleteOptions") or {}
    if "dryRun" not in options:
        grace = options.get("gracePeriodSeconds")
        workloads.stop(world, pod, None if grace is None else min(grace, world.timing.stop))
    return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}


def _scale(item: Json) -> Json:
    """The Scale object that a workload shows of itself."""
    labels = item["spec"]["selector"].get("matchLabels") or {}
    metadata = item["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names},
        "spec": {"replicas": item["spec"]["replicas"]},
        "status": {
            "replicas": (item.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }  # fmt: skip


def _strict(world: World, item: Json, at: Target) -> None:
    """Refuse what the schema does not know, whatever validation the client asked for."""
    metadata = item.get("metadata")
    if item.get("kind") != at.kind.name or item.get("apiVersion") != at.kind.api_version:
        raise Refused(
            400, f"{item.get('kind')} of {item.get('apiVersion')} was sent to {at.kind.plural}"
        )
    if not isinstance(metadata, dict):
        raise Refused(400, "metadata is missing")
    if at.name is not None and metadata.get("name") != at.name:
        raise Refused(400, f"the name {metadata.get('name')!r} is not that of the path")
    if at.namespace and metadata.get("namespace", at.namespace) != at.namespace:
        raise Refused(400, f"the namespace {metadata['namespace']!r} is not that of the path")
    if faults := schema_faults(item, world.store.version):
        raise Refused(400, f"strict decoding error: {'; '.join(faults)}")


def _manager(request: Request, at: Target) -> str:
    """Who writes, as conflicts name it; an apply and an update of one name are two."""
    name = request.query.get("fieldManager") or request.agent.partition("/")[0] or "unknown"
    # kubectl takes over what it applied itself before it applied on the server's side.
    if request.content_type == _APPLY or name == "kubectl-client-side-apply":
        return f'"{name.removesuffix("-client-side-apply")}"'
    part = f' with subresource "{at.part}"' if at.part else ""
    return f'"{name}"{part} using {at.kind.api_version}'


def _dry(request: Request) -> bool:
    return request.query.get("dryRun") == "All"
