"""The API by plain HTTP and by the real kubectl: discovery, refusals, patches, drains."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes import verbs
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster, needs_kubectl
from tests.fleet.stand_ins.kubernetes.test_controllers import (
    A100,
    OFFERED,
    config_map,
    deployment,
    state,
)

NODE = "/api/v1/nodes/a"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, {"a": [A100, A100], "b": [A100]}, pace=0) as made:
        made.apply(config_map())
        yield made


def a_map(**changes: Any) -> dict[str, Any]:
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
    ("method", "path", "body", "kind", "code"),
    [
        ("GET", "/api/v1/nodes/none", None, MERGE, 404),
        ("GET", "/api/v1/none", None, MERGE, 404),
        ("GET", "/api/v1/nodes?fieldSelector=a", None, MERGE, 400),
        ("GET", "/api/v1/nodes?watch=1", None, MERGE, 405),
        ("POST", MAPS, a_map(apiVersion="v2"), MERGE, 400),
        ("POST", MAPS, a_map(extra=1), MERGE, 400),
        ("POST", MAPS, a_map(metadata={"name": "Bad_Name"}), MERGE, 422),
        ("POST", MAPS, a_map(metadata={"name": "m", "labels": {"a": "x" * 64}}), MERGE, 422),
        ("POST", MAPS.replace("default", "none"), a_map(), MERGE, 404),
        ("POST", MAPS, [], MERGE, 400),
        ("PUT", NODE, a_map(), MERGE, 405),
        ("PATCH", NODE, {}, "application/json", 415),
        ("PATCH", NODE, {"spec": {"taints": []}}, STRATEGIC, 400),
        ("DELETE", MAPS, None, MERGE, 405),
        ("DELETE", f"{MAPS}/none", None, MERGE, 404),
    ],
)
def test_refusals(one: Cluster, method: str, path: str, body: Any, kind: str, code: int) -> None:
    before = one.world.store.revision
    answered, status = one.http(method, path, body, kind)
    assert (answered, status["kind"], status["status"]) == (code, "Status", "Failure")
    assert one.world.store.revision == before


def test_versions_of_objects(one: Cluster) -> None:
    code, made = one.http("POST", MAPS, a_map())
    assert code == 201
    assert one.http("POST", MAPS, a_map())[1]["reason"] == "AlreadyExists"
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    code, newer = one.http("PATCH", f"{MAPS}/m", old | {"data": {"k": "1"}}, MERGE)
    assert (code, newer["data"]) == (200, {"k": "1"})
    again = one.http("PATCH", f"{MAPS}/m", old | {"data": {"k": "2"}}, MERGE)
    assert again[1]["reason"] == "Conflict"
    assert one.http("PATCH", f"{MAPS}/m", {"data": {"k": "1"}}, MERGE) == (200, newer)
    assert one.http("DELETE", f"{MAPS}/m")[0] == 200
    assert one.http("GET", MAPS)[1]["items"] == []
    assert verbs.merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}}) == {
        "b": {"c": 2, "d": 3}
    }


def test_selectors(one: Cluster) -> None:
    one.set_labels("a", {"x": "1"})
    for query, found in (
        ("labelSelector=x%3D1", ["a"]), ("labelSelector=x!%3D1", ["b"]),
        ("fieldSelector=metadata.name%3Db", ["b"]), ("", ["a", "b"]),
    ):  # fmt: skip
        items = one.http("GET", f"/api/v1/nodes?{query}")[1]["items"]
        assert [each["metadata"]["name"] for each in items] == found


@needs_kubectl
def test_cordon_drain_label_uncordon(one: Cluster) -> None:
    """The recipe of the GPU Operator's maintainers, as a script would have it."""
    one.api.pace = 1
    one.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}))
    one.settle()
    one.kubectl("cordon", "a")
    assert "DaemonSet" in one.kubectl("drain", "a", "--timeout=10s", fails=True)
    one.kubectl("drain", "a", "--ignore-daemonsets", "--timeout=10s")
    assert one.occupants("a") == {}
    # The old answer is removed with the new question: it would be taken for the new one.
    answer, asked = "nvidia.com/mig.config.state", "nvidia.com/mig.config=mixed"
    one.kubectl("label", "node", "a", "--overwrite", asked, f"{answer}-")
    one.settle()
    one.kubectl("uncordon", "a")
    one.settle()
    node = json.loads(one.kubectl("get", "node", "a", "-o", "json"))
    amounts = node["status"]["allocatable"]
    assert {k: int(n) for k, n in amounts.items() if "nvidia" in k} == OFFERED
    assert (state(one), "unschedulable" in node["spec"]) == ("success", False)
    assert len(one.running(app="chat")) == 2


@needs_kubectl
def test_apply_on_the_client_side(one: Cluster) -> None:
    def apply(fails: bool = False, **data: Any) -> str:
        given = json.dumps(a_map(data=data))
        return one.kubectl("apply", "-f", "-", given=given, fails=fails)

    assert "created" in apply(a="1")
    assert "unchanged" in apply(a="1")
    assert "configured" in apply(b="2")
    assert one.get("ConfigMap", "m")["data"] == {"b": "2"}  # what is no longer applied is removed
    assert "strict decoding error" in apply(fails=True, c=3)
