"""The API by plain HTTP: discovery, refusals, patches, watches. No kubectl needed."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes import patching
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster

Json = dict[str, Any]

NODE = "/api/v1/nodes/a"
MERGE = "application/merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, {"a": ["a30-24gb"]}, pace=0) as made:
        yield made


def config_map(**changes: Any) -> Json:
    metadata = {"name": "m"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}} | changes


def test_discovery(one: Cluster) -> None:
    for path in ("/version", "/api", "/apis", "/openapi/v3", "/openapi/v3/api/v1"):
        assert one.http("GET", path)[0] == 200
    _, listed = one.http("GET", "/api/v1")
    named = {each["name"]: each for each in listed["resources"]}
    assert named["pods/eviction"]["group"] == "policy"
    assert one.http("GET", "/apis/resource.k8s.io/v1")[0] == 200
    assert one.http("GET", "/apis/resource.k8s.io/v1beta1")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/api/v1/nodes/none", None, 404),
        ("GET", "/api/v1/none", None, 404),
        ("GET", "/api/v1/nodes?fieldSelector=a", None, 400),
        ("POST", MAPS, config_map(apiVersion="v2"), 400),
        ("POST", MAPS, config_map(extra=1), 400),
        ("POST", MAPS, config_map(metadata={"name": "Bad_Name"}), 422),
        ("POST", MAPS, config_map(metadata={"name": "m", "labels": {"a": "x" * 64}}), 422),
        ("POST", MAPS.replace("default", "none"), config_map(), 404),
        ("POST", MAPS, [], 400),
        ("PUT", f"{MAPS}/none", config_map(), 404),
        ("PATCH", NODE, {}, 415),
        ("DELETE", MAPS, None, 405),
        ("DELETE", f"{MAPS}/none", None, 404),
        ("PUT", "/api/v1/nodes/a/scale", {}, 404),
    ],
)  # fmt: skip
def test_refusals(one: Cluster, method: str, path: str, body: Any, code: int) -> None:
    before = one.world.store.revision
    answered, status = one.http(method, path, body)
    assert (answered, status["kind"], status["status"]) == (code, "Status", "Failure")
    assert one.world.store.revision == before


def test_versions_of_objects(one: Cluster) -> None:
    code, made = one.http("POST", MAPS, config_map())
    assert code == 201
    assert one.http("POST", MAPS, config_map())[1]["reason"] == "AlreadyExists"
    code, newer = one.http("PUT", f"{MAPS}/m", made | {"data": {"k": "1"}})
    assert code == 200
    assert one.http("PUT", f"{MAPS}/m", made | {"data": {"k": "2"}})[1]["reason"] == "Conflict"
    assert one.http("PUT", f"{MAPS}/m", newer) == (200, newer)  # nothing changed
    assert one.http("PATCH", f"{MAPS}/m?dryRun=All", {"data": {"k": "3"}}, MERGE)[0] == 200
    assert one.http("GET", f"{MAPS}/m")[1] == newer
    assert one.http("DELETE", f"{MAPS}/m")[0] == 200
    assert one.http("GET", MAPS)[1]["items"] == []


def test_refusals_on_demand(one: Cluster) -> None:
    one.world.faults.refuse["PATCH", "/nodes/a"] = (409, 1)
    patch = {"metadata": {"labels": {"x": "1"}}}
    assert one.http("PATCH", NODE, patch, MERGE)[0] == 409
    assert one.http("PATCH", NODE, patch, MERGE)[0] == 200


def test_only_kinds_of_the_version(tmp_path: Path) -> None:
    with cluster(tmp_path, {"a": ["a30-24gb"]}, version="1.37", dra_driver=True) as c:
        assert c.http("GET", "/version")[1]["minor"] == "37"
        assert len(c.http("GET", "/apis/resource.k8s.io/v1/resourceslices")[1]["items"]) == 1


def test_a_watch_tells_what_its_selector_sees(one: Cluster) -> None:
    since = one.http("GET", "/api/v1/nodes")[1]["metadata"]["resourceVersion"]
    for labels in ({"x": "1"}, {"y": "1"}, {"x": "2"}, {"x": "3"}):
        one.set_labels("a", labels)

    def told(query: str) -> list[str]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        path = f"{one.api.url}/api/v1/nodes?watch=true&timeoutSeconds=0&{query}"
        with opener.open(path, timeout=20) as lines:
            return [json.loads(line)["type"] for line in lines]

    # What no longer meets the selector is gone for this watch.
    assert told(f"labelSelector=x%3D1&resourceVersion={since}") == ["ADDED", "MODIFIED", "DELETED"]
    assert told(f"resourceVersion={since}") == ["MODIFIED"] * 4
    assert told("labelSelector=x%3D1") == []
    assert told("labelSelector=x+in+(2,3),!z") == ["ADDED"]


def test_merge_patches() -> None:
    assert patching.merge_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}}) == {
        "b": {"c": 2, "d": 3}
    }
    operations: list[Json] = [
        {"op": "test", "path": "/a~1b", "value": 1},
        {"op": "replace", "path": "/a~1b", "value": 2},
        {"op": "add", "path": "/c/-", "value": 3},
        {"op": "remove", "path": "/d"},
    ]
    assert patching.json_patch({"a/b": 1, "c": [], "d": 0}, operations) == {"a/b": 2, "c": [3]}
    with pytest.raises(patching.PatchError, match="test failed"):
        patching.json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 2}])
    containers = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    patch = {"containers": [{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}]}
    assert patching.strategic_merge(containers, patch) == {
        "containers": [{"name": "a", "image": "2"}]
    }


def test_server_side_apply() -> None:
    """What a manager no longer applies goes; what another has written stands until forced."""
    owners: dict[patching.Path, set[str]] = {}
    first = {"spec": {"replicas": 1, "x": 1}}
    live, conflicts = patching.server_side_apply({}, first, "us", owners, force=False)
    assert (live, conflicts) == (first, [])
    live, _ = patching.server_side_apply(live, {"spec": {"replicas": 1}}, "us", owners, force=False)
    assert live == {"spec": {"replicas": 1}}
    theirs = {"spec": {"replicas": 2}}
    same, conflicts = patching.server_side_apply(live, theirs, "they", owners, force=False)
    assert (same, len(conflicts)) == (live, 1)
    live, conflicts = patching.server_side_apply(live, theirs, "they", owners, force=True)
    assert (live, conflicts) == (theirs, [])
    # No longer applied by us, but theirs by now: it stays.
    live, _ = patching.server_side_apply(live, {"spec": {"y": 1}}, "us", owners, force=False)
    assert live == {"spec": {"replicas": 2, "y": 1}}
