"""``cms verify``: what a cluster runs against what was exported, and GPUs that were swapped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from cms.fleet import Service
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from cms.fleet.deployment.labels import point_label
from cms.fleet.serving import RULES
from tests.cli.fleets import A100, LGI, flat, fleet, work, written
from tests.fleet.cluster import ELSEWHERE, MIXED, claim, claiming, device, node, pod, slices
from tests.fleet.smi import card as card_of
from tests.fleet.smi import log

HALF = "3g.40gb"
HALVES = "|   0  MIG 3g.40gb   9   1   0:4 |\n|   0  MIG 3g.40gb   9   2   4:4 |\n"


def two_nodes(a: tuple[str, ...], b: tuple[str, ...], profile: str = HALF) -> Deployment:
    """Of services, by instance: those of one node, and of the other."""
    services = tuple(Service(name, "bert", 100, 100) for name in ("chat", "code"))
    nodes = []
    for name, names in (("a", a), ("b", b)):
        held = [
            Instance(profile, None if profile == "whole" else 4 * at, work(profile, each))
            for at, each in enumerate(names)
        ]
        mode = Mode.WHOLE if profile == "whole" else Mode.MIG
        nodes.append(FleetNode(name, (FleetGpu(name, 0, A100, mode, tuple(held)),)))
    return Deployment(tuple(nodes), services, RULES["parvagpu"])


def running(*pods: str, profile: str = HALF, tied: bool = False, by_claim: bool = False) -> Any:
    """What a cluster says that runs ``a:chat`` and its like; ``a:chat?`` is not ready yet."""
    resource = "gpu" if profile == "whole" else f"mig-{profile}"
    count = {"gpu": 1} if profile == "whole" else {resource: 2}
    objects: list[Any] = [ELSEWHERE]
    for name in "ab":
        labels = {**MIXED, "nvidia.com/gpu.count": "1"}
        objects.append(node(name, {} if by_claim else labels, **({} if by_claim else count)))
        if by_claim:
            parts = (
                device(f"gpu-0-mig-3g40gb-9-{start}", profile=HALF, parentUUID=f"GPU-{name}")
                for start in (0, 4)
            )
            objects.append(slices(*parts, on=name))
    starts = {"a": [4, 0], "b": [4, 0]}
    for at, each in enumerate(pods):
        on, _, service = each.partition(":")
        name = service.rstrip("?")
        point = point_label(work(profile, name))
        own = {"labels": {"cms.service": name, "cms.point": point}}
        if by_claim:
            part = f"gpu-0-mig-3g40gb-9-{starts[on].pop()}"
            objects.append(claim(f"c-{at}", part, on=on))
            made = claiming(f"p-{at}", f"c-{at}", metadata=own)
            made["spec"]["nodeName"] = on
        else:
            made = pod(f"p-{at}", resource, on, metadata=own)
        if tied:
            made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": on}
        if service.endswith("?"):
            made["status"]["conditions"] = []
        objects.append(made)
    return {"apiVersion": "v1", "kind": "List", "items": objects}


FREE = "a:code", "a:code", "b:chat", "b:code"
PODS: dict[str, tuple[Any, int]] = {
    "as placed": (running("a:chat", "a:code", "b:code", "b:code"), 0),
    "elsewhere": (running(*FREE), 0),
    "elsewhere, by claims": (running(*FREE, by_claim=True), 0),
    "on other GPUs of its node, by claims": (
        running("a:code", "a:chat", "b:code", "b:code", by_claim=True, tied=True), 0,
    ),
    "one is missing": (running(*FREE[:3]), 1),
    "one is missing, by claims": (running(*FREE[:3], by_claim=True), 1),
    "one too many, one too few": (running(*FREE[:3], "b:chat"), 2),
    "one does not run yet": (running(*FREE[:3], "b:code?"), 1),
    "tied, and on other nodes": (running(*FREE, tied=True), 4),
}  # fmt: skip


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize(("cluster", "faults"), PODS.values(), ids=PODS)
def test_pods_that_are_tied_to_no_node_are_compared_in_total(
    cluster: Any, faults: int, is_listed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = written(two_nodes(("chat", "code"), ("code", "code")), tmp_path / "target.json")
    (tmp_path / "cluster.json").write_text(json.dumps(cluster), "utf-8")
    (tmp_path / "lgi").write_text(HALVES, "utf-8")
    sources = [str(tmp_path / "cluster.json")]
    if is_listed:
        sources += [f"{name}={tmp_path / 'lgi'}" for name in "ab"]
    assert run(["verify", *sources, "--against", target, "--json"]) == (faults > 0)
    document = json.loads(capsys.readouterr().out)
    assert len(document["faults"]) == faults, document


def test_whole_gpus_of_pods_that_are_tied_to_no_node_are_compared_in_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = written(two_nodes(("chat",), (), "whole"), tmp_path / "target.json")
    for pods, code in ((("a:chat",), 0), (("b:chat",), 0), (("a:chat", "b:chat"), 1), ((), 1)):
        cluster = running(*pods, profile="whole")
        (tmp_path / "cluster.json").write_text(json.dumps(cluster), "utf-8")
        said = ["verify", str(tmp_path / "cluster.json"), "--against", target, "-q"]
        assert run(said) == code, pods
        run(said[:-1])
        is_said = "not do what was placed on them" in flat(capsys.readouterr().err)
        assert is_said == (pods == ("b:chat",)), pods


def test_counts_alone_verify_a_node_whose_gpus_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One GPU is not cut, the other is; which is which, the device plug-in does not tell."""
    uncut = FleetGpu("a", 0, A100, Mode.WHOLE, (Instance("whole", None, work("whole")),))
    cut = FleetGpu("a", 1, A100, instances=(Instance(HALF, 0, work()), Instance(HALF, 4)))
    alike = {**MIXED, "nvidia.com/gpu.count": "2"}
    every = [
        pod(profile, resource, "a", metadata={"labels": {
            "cms.service": "chat", "cms.point": point_label(work(profile))}})
        for profile, resource in (("whole", "gpu"), (HALF, f"mig-{HALF}"))
    ]  # fmt: skip
    not_yet = {**every[0], "status": {"phase": "Running"}}
    for pods, code in ((every, 0), (every[:1], 1), (every[1:], 1), ([not_yet, every[1]], 1)):
        items = [node("a", alike, **{"gpu": 1, f"mig-{HALF}": 2}), *pods, ELSEWHERE]
        cluster = {"apiVersion": "v1", "kind": "List", "items": items}
        (tmp_path / "cluster.json").write_text(json.dumps(cluster), "utf-8")
        for cards in ((uncut, cut), (replace(cut, index=0), replace(uncut, index=1))):
            meant = replace(two_nodes((), ()), nodes=(FleetNode("a", cards),))
            target = written(meant, tmp_path / "target.json")
            said = ["verify", str(tmp_path / "cluster.json"), "--against", target]
            assert run(said) == code, capsys.readouterr()


def test_a_swapped_gpu_is_named_by_whichever_source_tells_uuids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = [Instance("1g.10gb", 0), Instance("3g.40gb", 4, work())]
    (meant,) = fleet([held]).nodes
    card = replace(meant.gpus[0], uuid="GPU-0")
    target = written(replace(fleet([]), nodes=(replace(meant, gpus=(card,)),)), tmp_path / "t.json")
    (tmp_path / "lgi").write_text(LGI, "utf-8")
    for uuid, code in (("GPU-0", 0), ("GPU-9", 1)):
        (tmp_path / "q").write_text(log(card_of(uuid)), "utf-8")
        parts = (
            device(f"gpu-0-mig-{name}", profile=profile, parentUUID=uuid)
            for name, profile in (("1g10gb-19-0", "1g.10gb"), ("3g40gb-9-4", "3g.40gb"))
        )
        own = {"labels": {"cms.service": "chat", "cms.point": point_label(work())}}
        user = claiming("chat-1", "c-1", metadata=own)
        user["spec"]["nodeName"] = "node-a"
        given = claim("c-1", "gpu-0-mig-3g40gb-9-4", on="node-a")
        items = [node("node-a", {}), slices(*parts, on="node-a"), given, user, ELSEWHERE]
        cluster = {"apiVersion": "v1", "kind": "List", "items": items}
        (tmp_path / "cluster.json").write_text(json.dumps(cluster), "utf-8")
        texts = [f"node-a={tmp_path / name}" for name in ("lgi", "q")]
        for sources in (texts, [str(tmp_path / "cluster.json")]):
            assert run(["verify", *sources, "--against", target, "--max-age", "none"]) == code
            out, err = capsys.readouterr()
            assert ("node-a/0 has the UUID GPU-9, needs GPU-0" in out) == (code == 1)
            assert "number alone" not in flat(err)
    assert run(["verify", texts[0], "-g", "a100-80gb", "--against", target]) == 0
    assert "whether node-a/0 is the GPU that was meant was not observed" in flat(
        capsys.readouterr().err
    )
