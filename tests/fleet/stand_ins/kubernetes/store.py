"""Objects with versions, checked before they are kept; and what all controllers share."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.fleet.stand_ins.kubernetes.kinds import BY_NAME, Json
from tests.fleet.stand_ins.kubernetes.nodes import Machine
from tests.fleet.stand_ins.kubernetes.validators import rule_faults, schema_faults

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_REASONS = {
    400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict", 422: "Invalid",
    415: "UnsupportedMediaType",
}  # fmt: skip


def copied(item: Json) -> Json:
    """A copy that shares nothing; several times as fast as deepcopy."""
    made: Json = pickle.loads(pickle.dumps(item))
    return made


class Refused(Exception):
    """An answer other than success, with the Status object that goes with it."""

    def __init__(self, code: int, message: str, reason: str = "", **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status: Json = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason or _REASONS[code], "code": code,
            "details": details,
        }  # fmt: skip


class Store:
    """All objects of the cluster. Whoever reads or writes holds `lock`."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.lock = threading.RLock()
        self.now = 0  # ticks of the stepped clock
        self.revision = 1
        self._items: dict[str, dict[tuple[str, str], Json]] = {kind: {} for kind in BY_NAME}
        self._made = 0

    def time(self, ticks: int = 0) -> str:
        """Say when it is, or will be some ticks from now."""
        return (_EPOCH + timedelta(seconds=self.now + ticks)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def list(self, kind: str, namespace: str | None = None) -> list[Json]:
        """Copies of all objects of a kind, by namespace and name."""
        return [copied(item) for item in self.peek(kind, namespace)]

    def peek(self, kind: str, namespace: str | None = None) -> Iterator[Json]:
        """The objects themselves, for reading: copies are dear in controllers."""
        held = self._items[kind]
        for key in sorted(held):
            if namespace is None or key[0] == namespace:
                yield held[key]

    def find(self, kind: str, name: str, namespace: str = "") -> Json | None:
        item = self._items[kind].get((namespace, name))
        return copied(item) if item else None

    def get(self, kind: str, name: str, namespace: str = "") -> Json:
        item = self.find(kind, name, namespace)
        if item is None:
            plural = BY_NAME[kind].plural
            raise Refused(404, f'{plural} "{name}" not found', name=name, kind=plural)
        return item

    def create(self, item: Json) -> Json:
        """Keep a new object, with the fields that the server fills in."""
        kind, metadata = item.get("kind", ""), item.setdefault("metadata", {})
        if kind not in BY_NAME:
            raise Refused(400, f"unknown kind {kind!r}")
        self._made += 1
        if "name" not in metadata and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self._made:05d}"
        namespace = metadata.get("namespace", "")
        if BY_NAME[kind].namespaced and self.find("Namespace", namespace) is None:
            raise Refused(404, f'namespaces "{namespace}" not found', name=namespace)
        if (namespace, metadata.get("name", "")) in self._items[kind]:
            name, plural = metadata["name"], BY_NAME[kind].plural
            raise Refused(409, f'{plural} "{name}" already exists', "AlreadyExists", name=name)
        metadata["uid"] = f"00000000-0000-4000-8000-{self._made:012d}"
        metadata["creationTimestamp"] = self.time()
        metadata["generation"] = 1
        if kind == "Deployment":
            item["spec"].setdefault("replicas", 1)
        if kind == "Pod":
            item.setdefault("status", {}).setdefault("phase", "Pending")
        return self._keep(item)

    def update(self, item: Json) -> Json:
        """Keep a changed object; an old resourceVersion in it is a conflict."""
        kind, metadata = item["kind"], item["metadata"]
        before = self.get(kind, metadata["name"], metadata.get("namespace", ""))
        given = metadata.get("resourceVersion")
        if given and given != before["metadata"]["resourceVersion"]:
            raise Refused(
                409, f'Operation cannot be fulfilled on "{metadata["name"]}": the object has been '
                "modified; please apply your changes to the latest version and try again"
            )  # fmt: skip
        for name in ("uid", "creationTimestamp", "generation", "resourceVersion"):
            metadata[name] = before["metadata"][name]
        if item == before:
            return before
        if item.get("spec") != before.get("spec"):
            metadata["generation"] += 1
        return self._keep(item)

    def change(self, item: Json, how: Callable[[Json], None]) -> Json:
        """Let a controller change the newest state of an object."""
        metadata = item["metadata"]
        newest = self.get(item["kind"], metadata["name"], metadata.get("namespace", ""))
        how(newest)
        return self.update(newest)

    def delete(self, item: Json) -> Json:
        metadata = item["metadata"]
        gone = self._items[item["kind"]].pop((metadata.get("namespace", ""), metadata["name"]))
        self.revision += 1
        return gone

    def _keep(self, item: Json) -> Json:
        kind, metadata = item["kind"], item["metadata"]
        metadata["resourceVersion"] = str(self.revision + 1)
        if faults := [*schema_faults(item, self.version), *rule_faults(item), *_relations(item)]:
            name = metadata.get("name", "")
            raise Refused(
                422, f'{kind} "{name}" is invalid: {"; ".join(faults)}', name=name, kind=kind,
                causes=[{"message": fault} for fault in faults],
            )  # fmt: skip
        self.revision += 1
        self._items[kind][metadata.get("namespace", ""), metadata["name"]] = copied(item)
        return copied(item)


def _relations(item: Json) -> list[str]:
    """What must agree inside an object: a workload selects the pods it makes."""
    spec = item.get("spec") or {}
    if item["kind"] == "Deployment":
        wanted = spec["selector"].get("matchLabels") or {}
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        if not wanted or any(labels.get(key) != value for key, value in wanted.items()):
            return ["spec.template.metadata.labels: `selector` does not match template `labels`"]
    if item["kind"] in ("Pod", "Deployment"):
        pod = spec if item["kind"] == "Pod" else spec["template"]["spec"]
        named = {claim["name"] for claim in pod.get("resourceClaims") or []}
        return [
            f"containers: claim {claim['name']!r} is not in resourceClaims"
            for container in pod["containers"]
            for claim in (container.get("resources") or {}).get("claims") or []
            if claim["name"] not in named
        ]
    return []


OPERATOR = "gpu-operator"


@dataclass
class World:
    """The cluster as it is, of which the API server shows a part."""

    store: Store
    machines: dict[str, Machine]
    dra: bool = False
    mig_config_map: str = "default-mig-parted-config"
    nodes_reversed: bool = False  # the order in which the scheduler looks at nodes
    devices_reversed: bool = False  # the order in which a kubelet hands out equal devices
    mig_fails: set[str] = field(default_factory=set)  # nodes that mig-manager fails on
