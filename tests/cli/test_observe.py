"""``cms observe``: files of many kinds become what runs where now."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from cms.fleet.deployment import Instance, read_deployment
from tests.cli.shared import AT, CUT, LOG, Cms, fleet, put, written
from tests.fleet.cluster import device, node, pod, slices

NOTHING: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": []}


@pytest.fixture
def listings(here: Path) -> str:
    """What nvidia-smi printed on node-a."""
    put(here / "cut.yaml", CUT)
    return "observe node-a=lgi.txt node-a=gpus.xml"


def test_node_is_observed_with_what_is_free(listings: str, here: Path, cms: Cms) -> None:
    said = cms(listings, "-o seen.json --picture seen.svg").out
    assert f"node-a, 2 x a100-80gb, driver 550.54.15, observed {AT}" in said
    assert "0: 5 of 8 slices used, 2g.20gb fits" in said
    assert "1: 0 of 8 slices used, 7g.80gb fits" in said
    assert "Lost because" not in said
    first, second = read_deployment("seen.json").gpus()
    assert [each.place for each in first.instances] == ["1g.10gb@0", "3g.40gb@4"]
    assert all(each.owner == "unknown" for each in first.instances)
    assert second.is_empty
    ElementTree.parse("seen.svg")
    apart = [Instance("1g.10gb", 1), Instance("1g.10gb", 5)]
    written(fleet([apart, apart]), here / "apart.json")
    said = cms("observe apart.json").flat
    assert "node-a 1 x 7g.80gb (1 - 0), 1 x 4g.40gb (1 - 0), 3 x 3g.40gb (3 - 0)" in said


def test_plan_and_deployment_say_what_instances_do(listings: str, cms: Cms) -> None:
    cms(listings, "--plan plan.json --adopt node-a/0:4=chat --reclaim node-a/0:0 -q -o seen.json")
    idle, chat = next(iter(read_deployment("seen.json").gpus())).instances
    assert (idle.owner, idle.work, chat.owner) == (None, None, None)
    assert chat.work is not None
    assert chat.work.service == "chat"
    (found,) = cms(listings, "--plan target.json --json").json["nodes"]
    owners = {each["profile"]: each["owner"] for each in found["gpus"][0]["instances"]}
    assert owners == {"1g.10gb": "unknown", "3g.40gb": None}


def test_mig_parted_tells_counts_beside_another_source(listings: str, cms: Cms) -> None:
    assert "'node-b'" in cms("observe node-b=cut.yaml -g a100-80gb", code=1).error
    _, found = cms(listings, "node-b=cut.yaml node-b=gpus.xml --json").json["nodes"]
    assert [each["start_source"] for each in found["gpus"]] == ["inferred", "inferred"]
    assert len(found["gpus"][0]["instances"]) == 7


def test_cluster_says_what_its_pods_do(listings: str, here: Path, cms: Cms) -> None:
    labels = {"app": "chat", "cms.point": "3g.40gb-2x4"}
    cluster = [
        node("node-a", **{"mig-3g.40gb": "1", "mig-1g.10gb": "1"}),
        pod(resource="mig-3g.40gb", on="node-a", metadata={"labels": labels}),
        pod("b-1", "mig-1g.10gb", "node-a", metadata={"namespace": "team-x"}),
    ]
    for name, each in zip(("nodes", "pods", "more"), cluster, strict=True):
        (here / name).write_text(json.dumps({**NOTHING, "items": [each]}), "utf-8")
    (here / "fleet.toml").write_text("[observation]\nservice_label = 'app'\n", "utf-8")
    cms(listings, "nodes pods more --plan plan.json -o seen.json -q")
    small, large = next(iter(read_deployment("seen.json").gpus())).instances
    assert small.owner == "pod team-x/b-1"
    assert large.work is not None
    assert (large.owner, large.work.service) == (None, "chat")
    assert "'node-a'" in cms(listings, "nodes node-a=pods", code=1).error


def test_file_is_no_younger_than_its_xml(listings: str, here: Path, cms: Cms) -> None:
    old = LOG.replace("\n<driver", "<timestamp>Thu Nov 19 10:00:00 2026</timestamp>\n<driver")
    for text, at in ((LOG, AT), (old, "2026-11-19T22:00:00Z")):
        put(here / "gpus.xml", text)
        (found,) = cms(listings, "--json").json["nodes"]
        assert found["observed"]["at"] == at
    os.utime(here / "lgi.txt", (1_700_000_000, 1_700_000_000))
    assert '"2023-11-14T22:13:20Z"' in cms(listings, "--json").out


def test_what_kubectl_prints_is_read_in_any_form(tmp_path: Path, cms: Cms) -> None:
    """A single object, typed and untyped lists, one after the other, JSON and YAML."""
    labels = {"nvidia.com/gpu.count": "1", "nvidia.com/mig.strategy": "mixed"}
    one = node("node-a", {**labels, "nvidia.com/gpu.product": "NVIDIA-A30"}, **{"mig-2g.12gb": "2"})
    several = {"apiVersion": "v1", "kind": "NodeList", "items": [one]}
    for text in (
        json.dumps(one, indent=4),
        json.dumps(NOTHING) + "\n" + json.dumps(several, indent=2),
        json.dumps(one) + json.dumps(pod(resource=None)) + "\n",
        f"apiVersion: v1\nitems:\n- {json.dumps(one)}\nkind: List\n---\n"
        "apiVersion: v1\nitems: []\nkind: List\nmetadata: {resourceVersion: ''}\n",
    ):
        (tmp_path / "listed").write_text(text, "utf-8")
        (found,) = cms("observe listed --json").json["nodes"]
        assert [i["profile"] for i in found["gpus"][0]["instances"]] == ["2g.12gb"] * 2
    plain = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"},
        "status": {"allocatable": {"cpu": "64"}},
    }  # fmt: skip
    part = slices(device("gpu-0-mig-3g40gb-9-4", profile="3g.40gb", parentUUID="GPU-0"))
    for text, says in (
        (json.dumps(NOTHING) + "\n\n" + json.dumps({**one, "status": 7}), "listed:3:"),
        (json.dumps(one) + "\n\n" + json.dumps(one)[:-1], "listed:3:"),
        (json.dumps(NOTHING), "kubectl get nodes"),
        (json.dumps({**NOTHING, "items": [plain]}), "kubectl get nodes"),
        (json.dumps({**NOTHING, "items": [part]}), "kubectl get nodes"),
    ):
        (tmp_path / "listed").write_text(text, "utf-8")
        assert says in cms("observe listed", code=1).error
