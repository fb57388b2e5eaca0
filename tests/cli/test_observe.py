"""``cms observe``: files of many kinds become what runs where now."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet.deployment import Instance, read_deployment
from tests.cli.fleets import AT, CUT, LGI, LOG, flat, fleet, put, written
from tests.cli.shared import error_of
from tests.fleet.cluster import device, node, pod, slices


def test_a_node_is_observed_with_its_free_slices_and_what_fragmentation_costs(
    listings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, svg = tmp_path / "now.json", tmp_path / "now.svg"
    assert run(["observe", *listings, "-o", str(out), "--picture", str(svg)]) == 0
    said = capsys.readouterr().out
    assert f"node-a, 2 x a100-80gb, driver 550.54.15, observed {AT}" in said
    assert "0: 5 of 8 slices used, 2g.20gb fits" in said
    assert "1: 0 of 8 slices used, 7g.80gb fits" in said
    assert "Lost because" not in said
    first, second = read_deployment(out).gpus()
    assert [each.place for each in first.instances] == ["1g.10gb@0", "3g.40gb@4"]
    assert all(each.owner == "unknown" for each in first.instances)
    assert second.is_empty
    ElementTree.parse(svg)
    apart = [Instance("1g.10gb", 1), Instance("1g.10gb", 5)]
    assert run(["observe", written(fleet([apart, apart]), out)]) == 0
    said = flat(capsys.readouterr().out)
    assert "node-a 1 x 7g.80gb (1 - 0), 1 x 4g.40gb (1 - 0), 3 x 3g.40gb (3 - 0)" in said


def test_a_plan_says_what_adopted_instances_do(
    listings: list[str], plan: Path, tmp_path: Path
) -> None:
    out = tmp_path / "now.json"
    mine = ["--plan", str(plan), "--adopt", "node-a/0:4=chat", "--release", "node-a/0:0"]
    assert run(["observe", *listings, *mine, "-q", "-o", str(out)]) == 0
    idle, chat = next(iter(read_deployment(out).gpus())).instances
    assert (idle.owner, idle.work, chat.owner) == (None, None, None)
    assert chat.work is not None
    assert chat.work.service == "chat"


def test_a_deployment_says_what_stands_in_its_places(
    target: Path, listings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["observe", *listings, "--plan", str(target), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["nodes"]
    owners = {each["profile"]: each["owner"] for each in found["gpus"][0]["instances"]}
    assert owners == {"1g.10gb": "unknown", "3g.40gb": None}


def test_mig_parted_tells_counts_where_something_else_tells_the_gpus(
    listings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = f"node-b={tmp_path / 'cut.yaml'}"
    assert run(["observe", cut, "-g", "a100-80gb"]) == 1
    assert "'node-b'" in error_of(capsys)
    more = listings[1].replace("node-a", "node-b")
    assert run(["observe", *listings, cut, more, "--json"]) == 0
    _, found = json.loads(capsys.readouterr().out)["nodes"]
    assert [each["seen"] for each in found["gpus"]] == ["only_one", "only_one"]
    assert len(found["gpus"][0]["instances"]) == 7


def test_a_cluster_says_what_its_pods_do(
    listings: list[str], plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = {"app": "chat", "cms.point": "3g.40gb-2x4"}
    cluster = [
        node("node-a", **{"mig-3g.40gb": "1", "mig-1g.10gb": "1"}),
        pod(resource="mig-3g.40gb", on="node-a", metadata={"labels": labels}),
        pod("b-1", "mig-1g.10gb", "node-a", metadata={"namespace": "team-x"}),
    ]
    for name, each in zip(("nodes", "pods", "more"), cluster, strict=True):
        listed = {"apiVersion": "v1", "kind": "List", "items": [each]}
        (tmp_path / name).write_text(json.dumps(listed), "utf-8")
    files = [str(tmp_path / name) for name in ("nodes", "pods", "more")]
    more = ["--plan", str(plan), "--service-label", "app", "-o", str(tmp_path / "now.json"), "-q"]
    assert run(["observe", *listings, *files, *more]) == 0, capsys.readouterr().err
    small, large = next(iter(read_deployment(tmp_path / "now.json").gpus())).instances
    assert small.owner == "pod team-x/b-1"
    assert large.work is not None
    assert (large.owner, large.work.service) == (None, "chat")
    assert run(["observe", *listings, *files[:1], f"node-a={files[1]}"]) == 1
    assert "'node-a'" in error_of(capsys)


def test_a_file_is_as_old_as_it_is_but_no_younger_than_its_xml(
    listings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = LOG.replace("\n<driver", "<timestamp>Thu Nov 19 10:00:00 2026</timestamp>\n<driver")
    for text, at in ((LOG, AT), (old, "2026-11-19T22:00:00Z")):
        put(tmp_path / "gpus.xml", text)
        assert run(["observe", *listings, "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["nodes"]
        assert found["observed"]["at"] == at
    os.utime(tmp_path / "lgi.txt", (1_700_000_000, 1_700_000_000))
    assert run(["observe", *listings, "--json"]) == 0
    assert '"2023-11-14T22:13:20Z"' in capsys.readouterr().out


def test_what_kubectl_prints_is_read_in_any_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A single object, typed and untyped lists, one after the other, JSON and YAML."""
    labels = {"nvidia.com/gpu.count": "1", "nvidia.com/mig.strategy": "mixed"}
    one = node("node-a", {**labels, "nvidia.com/gpu.product": "NVIDIA-A30"}, **{"mig-2g.12gb": "2"})
    nothing = {"apiVersion": "v1", "kind": "List", "items": []}
    several = {"apiVersion": "v1", "kind": "NodeList", "items": [one]}
    forms = {
        "one.json": json.dumps(one, indent=4),
        "cat.json": json.dumps(nothing) + "\n" + json.dumps(several, indent=2),
        "jq.json": json.dumps(one) + json.dumps(pod(resource=None)) + "\n",
        "list.yaml": f"apiVersion: v1\nitems:\n- {json.dumps(one)}\nkind: List\n---\n"
        "apiVersion: v1\nitems: []\nkind: List\nmetadata: {resourceVersion: ''}\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, "utf-8")
        assert run(["observe", str(tmp_path / name), "--json"]) == 0, name
        (found,) = json.loads(capsys.readouterr().out)["nodes"]
        assert [i["profile"] for i in found["gpus"][0]["instances"]] == ["2g.12gb"] * 2
    plain = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "cpu"},
        "status": {"allocatable": {"cpu": "64"}},
    }  # fmt: skip
    part = slices(device("gpu-0-mig-3g40gb-9-4", profile="3g.40gb", parentUUID="GPU-0"))
    for name, text, says in (
        ("bad.json", json.dumps(nothing) + "\n\n" + json.dumps({**one, "status": 7}), ".json:3:"),
        ("cut.json", json.dumps(one) + "\n\n" + json.dumps(one)[:-1], ".json:3:"),
        ("none.json", json.dumps(nothing), "kubectl get nodes"),
        ("cpu.json", json.dumps({**nothing, "items": [plain]}), "kubectl get nodes"),
        ("slice.json", json.dumps({**nothing, "items": [part]}), "kubectl get nodes"),
    ):
        (tmp_path / name).write_text(text, "utf-8")
        assert run(["observe", str(tmp_path / name)]) == 1
        assert says in error_of(capsys)


NOT_OBSERVED = {
    "nobody's": (["lgi.txt"], "lgi.txt", "NODE=FILE"),
    "no such file": (["lgj.txt"], "lgj.txt", "no such file"),
    "empty": (["empty"], "empty", "a deployment"),
    "not known": (["text"], "text", "a deployment"),
    "no listing": (["--node", "a", "gpus.xml"], "gpus.xml:5", "nvidia-smi mig -lgi"),
    "no type": (["--node", "a", "lgi.txt"], "lgi.txt:3", "--gpu"),
    "a plan": (["plan.json"], "plan.json", '"cms-deployment"'),
    "a deployment beside": (["--node", "a", "gpus.xml", "now.json"], "now.json", "--plan"),
    "several": (["--node", "a", "several.yaml"], "several.yaml", "a, b"),
}


@pytest.mark.parametrize(("arguments", "place", "has"), NOT_OBSERVED.values(), ids=NOT_OBSERVED)
def test_what_cannot_be_observed_is_refused_with_the_place(
    arguments: list[str],
    place: str,
    has: str,
    listings: list[str],
    plan: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    written(fleet([[]]), tmp_path / "now.json")
    (tmp_path / "plan.json").write_bytes(plan.read_bytes())
    (tmp_path / "empty").write_text("", "utf-8")
    (tmp_path / "text").write_text("hello\n", "utf-8")
    two = CUT.replace("current", "a") + CUT.partition("mig-configs:\n")[2].replace("current", "b")
    (tmp_path / "several.yaml").write_text(two, "utf-8")
    (tmp_path / "lgi.txt").write_text(LGI, "utf-8")
    assert run(["observe", *arguments]) == 1
    said = error_of(capsys)
    assert f"{place}:" in said
    assert has in said


@pytest.mark.parametrize(
    ("option", "value", "has"),
    [
        ("--adopt", "node-a/0:4=code", "'code'"),
        ("--adopt", "node-a/0:4=see", "node-a/0 3g.40gb@4"),
        ("--adopt", "node-a/0:4=chat@9x9", "chat@2x4"),
        ("--adopt", "node-a/0:4", "KEY=VALUE"),
        ("--release", "node-a/0:5", "1g.10gb@0, 3g.40gb@4"),
        ("--release", "node-a", "NODE/GPU:START"),
        ("--release", "node-b/0:0", "'node-b/0'"),
    ],
)
def test_an_instance_that_cannot_be_adopted_is_named(
    option: str,
    value: str,
    has: str,
    listings: list[str],
    plan: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["observe", *listings, "--plan", str(plan), option, value]) == 2
    assert has in error_of(capsys)
