"""What the API server does with one request: the verbs that kubectl needs, on the store.

To label, to cordon, to drain, to apply from the client's side, and to read. Whatever else is asked
for is refused.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, NamedTuple

from tests.fleet.stand_ins.kubernetes import workloads
from tests.fleet.stand_ins.kubernetes.kinds import Json, Kind, kind_at
from tests.fleet.stand_ins.kubernetes.schemas import schema_faults
from tests.fleet.stand_ins.kubernetes.selecting import Test, selector
from tests.fleet.stand_ins.kubernetes.store import Refused, World

_PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


class Request(NamedTuple):
    """One request, taken apart."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
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
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    kind = kind_at(root, rest[0]) if rest else None
    if kind is None or len(rest) > 3:
        return None
    name, part = [*rest, None, None][1:3]
    if part is not None and part not in kind.subresources:
        return None
    return Target(kind, namespace, name, part)


def chosen(request: Request, at: Target) -> Test:
    """The selectors of a list, with the namespace where one is given."""
    try:
        test = selector(
            request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        )
    except ValueError as error:
        raise Refused(400, str(error)) from error
    return lambda item: test(item) and at.namespace in (None, item["metadata"].get("namespace"))


def answer(world: World, request: Request, at: Target) -> tuple[int, Json]:
    """The status and the body; errors are raised. The caller holds the store's lock."""
    verbs = {"GET": _get, "POST": _post, "PATCH": _patch, "DELETE": _delete}
    verb = verbs.get(request.method)
    if verb is None or "dryRun" in request.query or "watch" in request.query:
        raise Refused(405, f"{request.method} {request.path} is not served")
    return verb(world, request, at)


def _get(world: World, request: Request, at: Target) -> tuple[int, Json]:
    if at.name is not None:
        return 200, world.store.get(at.kind.name, at.name, at.namespace or "")
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
    return 201, world.store.create(item)


def _patch(world: World, request: Request, at: Target) -> tuple[int, Json]:
    if request.content_type not in _PATCHES or at.part is not None:
        raise Refused(415, f"the body's type {request.content_type!r} is not served")
    before, patch = world.store.get(at.kind.name, at.name or "", at.namespace or ""), request.json()
    after = merged(before, patch)
    if "status" in at.kind.subresources and "status" in before:
        after["status"] = before["status"]
    _strict(world, after, at)
    return 200, world.store.update(after)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    found = deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _delete(world: World, request: Request, at: Target) -> tuple[int, Json]:
    if at.name is None:
        raise Refused(405, "deleting collections is not served")
    item = world.store.get(at.kind.name, at.name, at.namespace or "")
    details = {"name": at.name, "kind": at.kind.plural, "uid": item["metadata"]["uid"]}
    if at.kind.name == "Pod":
        item = workloads.stop(world, item)
        if "deletionTimestamp" in item["metadata"]:
            return 200, item
    else:
        world.store.delete(item)
    return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}


def _evict(world: World, eviction: Json, at: Target) -> tuple[int, Json]:
    if faults := schema_faults(eviction, world.store.version):
        raise Refused(400, "; ".join(faults))
    workloads.stop(world, world.store.get("Pod", at.name or "", at.namespace or ""))
    return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}


def _strict(world: World, item: Json, at: Target) -> None:
    """Refuse what the schema does not know, whatever validation the client asked for."""
    if item.get("kind") != at.kind.name or item.get("apiVersion") != at.kind.api_version:
        raise Refused(
            400, f"{item.get('kind')} of {item.get('apiVersion')} was sent to {at.kind.plural}"
        )
    if not isinstance(item.get("metadata"), dict):
        raise Refused(400, "metadata is missing")
    if faults := schema_faults(item, world.store.version):
        raise Refused(400, f"strict decoding error: {'; '.join(faults)}")
