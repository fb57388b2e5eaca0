"""The kinds that the stand-in serves, and discovery: what kubectl asks before anything else.

Groups, versions, plurals and short names as in the Kubernetes API reference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]


class Kind(NamedTuple):
    """One kind, as discovery names it."""

    name: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"


KINDS: tuple[Kind, ...] = (
    Kind("Namespace", "namespaces", namespaced=False, short=("ns",)),
    Kind("Node", "nodes", namespaced=False, short=("no",)),
    Kind("Pod", "pods", short=("po",), subresources=("status", "eviction")),
    Kind("ConfigMap", "configmaps", short=("cm",), subresources=()),
    Kind("Deployment", "deployments", "apps", short=("deploy",)),
    Kind("DaemonSet", "daemonsets", "apps", short=("ds",)),
    Kind("DeviceClass", "deviceclasses", "resource.k8s.io", namespaced=False, subresources=()),
    Kind("ResourceClaim", "resourceclaims", "resource.k8s.io"),
    Kind("ResourceClaimTemplate", "resourceclaimtemplates", "resource.k8s.io", subresources=()),
    Kind("ResourceSlice", "resourceslices", "resource.k8s.io", namespaced=False, subresources=()),
)
BY_NAME = {kind.name: kind for kind in KINDS}
_GROUPS = tuple(dict.fromkeys((kind.group, kind.version) for kind in KINDS if kind.group))
_VERBS = ["create", "delete", "get", "list", "patch"]


def kind_at(root: str, plural: str) -> Kind | None:
    """The kind served under `root` (`/api/v1`, `/apis/apps/v1`) as `plural`."""
    return next((kind for kind in KINDS if (kind.root, kind.plural) == (root, plural)), None)


def discovery(path: str, server_version: str) -> Json | None:
    """What the server answers at a path of discovery; None at every other path."""
    if path == "/version":
        major, minor = server_version.split(".")
        return {
            "major": major, "minor": minor, "gitVersion": f"v{server_version}.0",
            "platform": "linux/amd64",
        }  # fmt: skip
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = []
        for group, version in _GROUPS:
            named = {"groupVersion": f"{group}/{version}", "version": version}
            groups.append({"name": group, "versions": [named], "preferredVersion": named})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path == "/openapi/v3":
        roots = dict.fromkeys(kind.root for kind in KINDS)
        urls = {root[1:]: {"serverRelativeURL": f"/openapi/v3{root}"} for root in roots}
        return {"paths": urls}
    if path.startswith("/openapi/v3/"):
        return _openapi(path.removeprefix("/openapi/v3"))
    return _resources(path)


def _resources(root: str) -> Json | None:
    served = [kind for kind in KINDS if kind.root == root]
    if not served:
        return None
    resources: list[Json] = []
    for kind in served:
        itself = {
            "name": kind.plural, "singularName": kind.name.lower(), "kind": kind.name,
            "namespaced": kind.namespaced, "verbs": _VERBS, "shortNames": list(kind.short),
        }  # fmt: skip
        resources.append(itself)
        for name in kind.subresources:
            resource = itself | {"name": f"{kind.plural}/{name}", "singularName": ""}
            if name == "eviction":
                resource |= {"kind": "Eviction", "group": "policy", "version": "v1"}
            resources.append(resource)
    return {
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": served[0].api_version, "resources": resources,
    }  # fmt: skip


def _openapi(root: str) -> Json | None:
    """The part of the OpenAPI v3 document in which kubectl looks for server-side validation."""
    served = [kind for kind in KINDS if kind.root == root]
    if not served:
        return None
    parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
    paths: Json = {}
    for kind in served:
        place = "/namespaces/{namespace}" if kind.namespaced else ""
        operation = {
            "x-kubernetes-group-version-kind": {
                "group": kind.group, "version": kind.version, "kind": kind.name,
            },
            "parameters": parameters,
            "responses": {},
        }  # fmt: skip
        paths[f"{root}{place}/{kind.plural}"] = {"post": operation}
        paths[f"{root}{place}/{kind.plural}/{{name}}"] = {"patch": operation, "put": operation}
    return {
        "openapi": "3.0.0", "info": {"title": "stand-in", "version": "v1"},
        "paths": paths, "components": {"schemas": {}},
    }  # fmt: skip
