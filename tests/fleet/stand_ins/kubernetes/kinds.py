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
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else "/api/v1"


_DRA = "resource.k8s.io"
KINDS: tuple[Kind, ...] = (
    Kind("Namespace", "namespaces", namespaced=False, short=("ns",)),
    Kind("Node", "nodes", namespaced=False, short=("no",)),
    Kind("Pod", "pods", short=("po",), subresources=("status", "eviction")),
    Kind("ConfigMap", "configmaps", short=("cm",), subresources=()),
    Kind("Deployment", "deployments", "apps", short=("deploy",)),
    Kind("DaemonSet", "daemonsets", "apps", short=("ds",)),
    Kind("DeviceClass", "deviceclasses", _DRA, namespaced=False, subresources=()),
    Kind("ResourceClaim", "resourceclaims", _DRA),
    Kind("ResourceClaimTemplate", "resourceclaimtemplates", _DRA, subresources=()),
    Kind("ResourceSlice", "resourceslices", _DRA, namespaced=False, subresources=()),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def discovery(path: str, version: str) -> Json | None:
    """What the server answers at a path of discovery; None at every other path."""
    if path == "/version":
        major, minor = version.split(".")
        named = {"major": major, "minor": minor, "gitVersion": f"v{version}.0"}
        return named | {"platform": "linux/amd64"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = []
        for group in dict.fromkeys(kind.group for kind in KINDS if kind.group):
            named = {"groupVersion": f"{group}/v1", "version": "v1"}
            groups.append({"name": group, "versions": [named], "preferredVersion": named})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path == "/openapi/v3":
        roots = dict.fromkeys(kind.root for kind in KINDS)
        return {"paths": {root[1:]: {"serverRelativeURL": f"/openapi/v3{root}"} for root in roots}}
    served = [kind for kind in KINDS if kind.root == path.removeprefix("/openapi/v3")]
    if not served:
        return None
    return _openapi(served) if path.startswith("/openapi") else _resources(served)


def _resources(served: list[Kind]) -> Json:
    resources: list[Json] = []
    for kind in served:
        itself = {
            "name": kind.plural, "singularName": kind.name.lower(), "kind": kind.name,
            "namespaced": kind.namespaced, "shortNames": list(kind.short),
            "verbs": ["create", "delete", "get", "list", "patch"],
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


def _openapi(served: list[Kind]) -> Json:
    """The part of the OpenAPI v3 document in which kubectl looks for server-side validation."""
    parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
    paths: Json = {}
    for kind in served:
        path = f"{kind.root}{'/namespaces/{namespace}' * kind.namespaced}/{kind.plural}"
        named = {"group": kind.group, "version": "v1", "kind": kind.name}
        operation = {
            "x-kubernetes-group-version-kind": named, "parameters": parameters, "responses": {},
        }  # fmt: skip
        paths[path] = {"post": operation}
        paths[f"{path}/{{name}}"] = {"patch": operation, "put": operation}
    return {
        "openapi": "3.0.0", "info": {"title": "stand-in", "version": "v1"},
        "paths": paths, "components": {"schemas": {}},
    }  # fmt: skip
