"""``cms apply``: the way to a target, and with ``--check`` what is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.fleet import Service
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, State
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.observation.devices import renumber_gpus
from cms.fleet.serving import RULES
from tests.cli.shared import A100, LGI, Cms, flat, fleet, put, work, written
from tests.fleet.cluster import ELSEWHERE, MIXED, claim, claiming, device, node, pod, slices
from tests.fleet.smi import card as card_of
from tests.fleet.smi import log

CHAT = work()
APPLY = "apply then.json --current now.json --dry-run"
ANY = "--max-age none"
HALF = "3g.40gb"
HALVES = "|   0  MIG 3g.40gb   9   1   0:4 |\n|   0  MIG 3g.40gb   9   2   4:4 |\n"


def one(profile: str, start: int, **more: Any) -> Instance:
    return Instance(profile, start, CHAT, **more)


# --- the way --------------------------------------------------------------------------------------


def test_transition_is_told_written_checked_and_its_drift_reported(here: Path, cms: Cms) -> None:
    said = cms(APPLY, "-o way.json").flat
    assert (
        "1 -> 1 GPU, floor 100 %: 2 actions in 2 steps, 2 min (assumed); 1 spare GPU (found, not "
        "proved least)" in said
    )
    assert "0 of 1 instance kept" in said
    assert "chat 0 1 1 120 100 100 % of the smaller of 100 and 100" in said
    assert "2 actions on 1 node: about 2 min, node after node (assumed)" in said
    assert "# create on node-a/1: 3g.40gb@4 chat (2p b4, 120 requests/s)" in said
    assert "add 1 '3g.40gb' 4 # start 3g.40gb@4 chat (2p b4, 120 requests/s) on node-a/1" in said
    said = cms("check way.json").out
    assert "in every execution that respects the waits all floors hold" in said
    told = json.loads((here / "way.json").read_text("utf-8"))
    assert cms("apply way.json --dry-run --json").json == told
    for source, code in (("now", 1), ("then", 0)):
        cms(f"apply way.json --check {source}.json -q", code=code)
    cms("observe now.json --plan way.json -q")


def test_no_capacity_is_rounded_up_and_no_floor_down(here: Path, cms: Cms) -> None:
    rps = Fraction("120.456")
    odd = replace(CHAT, point=replace(CHAT.point, throughput_rps=rps), supply_rps=rps)
    sides = [[[Instance(HALF, 0, odd)], []], [[], [Instance(HALF, 4, odd)]]]
    for name, held in zip(("now", "then"), sides, strict=True):
        side = fleet(held)
        asked = tuple(replace(each, rate_rps=Fraction("100.0321")) for each in side.services)
        written(replace(side, services=asked), here / f"{name}.json")
    assert "chat 0 1 1 120.4 100.1 100 %" in cms(APPLY).flat


@pytest.mark.parametrize("tool", ["mig-parted", "gpu-operator", "slurm"])
def test_tools_that_partition_whole_gpus_have_their_units(tool: str, here: Path, cms: Cms) -> None:
    written(fleet([[one(HALF, 4), Instance("2g.20gb", 0)], []]), here / "then.json")
    said = cms(APPLY, f"--tool {tool} --floor 0 -o way.json").flat
    assert "1 instance that only --tool nvidia-smi would keep" not in said  # it moves there
    assert "0 of 1 instance kept" in said
    drains = {"gpu-operator": "kubectl drain node-a --ignore-daemonsets", "mig-parted": "",
              "slurm": "scontrol update nodename=node-a state=drain"}  # fmt: skip
    assert drains[tool] in said
    assert ("nvidia-mig-parted apply -f - -c cms-" in said) == (tool != "gpu-operator")
    cms("check way.json -q")
    written(fleet([[one(HALF, 0), Instance("2g.20gb", 4)], []]), here / "chosen.json")
    for source, code in (("chosen", 0), ("now", 1)):
        cms(f"apply way.json --check {source}.json -q", code=code)


def test_impossible_transition_exits_with_3_and_writes_nothing(here: Path, cms: Cms) -> None:
    said = cms(APPLY.replace("then", "empty"), "-o out.json", code=3).flat
    assert "there is no such transition, proof checked: - chat is to keep 100 requests/s" in said
    assert cms(APPLY.replace("then", "empty"), "--json", code=3).json["proof"] == "checked"
    assert "none was found with 0 spare GPUs" in cms(APPLY, "--spare 0", code=4).flat
    cms(APPLY, "--spare 0 --floor chat=0 -q")
    assert not (here / "out.json").exists()


def test_rates_are_drawn_where_capacities_are(here: Path, cms: Cms) -> None:
    (here / "r.csv").write_text("time,service,rate_rps\n0,chat,90\n60,chat,95\n", "utf-8")
    assert "most come/s short for" in cms(APPLY, "--rates r.csv --timeline").flat


def test_plan_is_a_target_too(here: Path, cms: Cms) -> None:
    (here / "fleet.toml").write_text("[transition.durations]\nstart_s = 600\n", "utf-8")
    said = cms("apply plan.json --current empty.json --dry-run").flat
    assert "0 -> 1 GPU, floor 100 %: 2 actions in 1 step, 20 min 10 s (assumed)" in said
    cms("apply plan.json --current empty.json --method exchange_and_compact --dry-run -q")


def test_only_what_holds_and_what_was_asked_for_is_carried_out(here: Path, cms: Cms) -> None:
    cms(APPLY, "-o way.json -q")
    way = json.loads((here / "way.json").read_text("utf-8"))
    for forged, said in (
        ({"actions": [way["actions"][0], {**way["actions"][1], "after": []}]}, "does not hold"),
        ({"actions": []}, "does not hold"),
        ({"actions": [{**way["actions"][0], "after": [0]}]}, "expected numbers of earlier actions"),
    ):
        (here / "forged.json").write_text(json.dumps({**way, **forged}), "utf-8")
        assert said in cms("apply forged.json --yes --no-work -q", code=1).error
    assert "--floor: the transition says it" in cms("apply way.json --floor 0 --yes", code=2).err
    assert "one of --resume and --undo" in cms("apply --resume --undo --yes", code=2).err
    (here / "fleet.toml").write_text("[apply]\nshell = 'false {node}'\n", "utf-8")
    assert "go on: cms apply --resume" in cms("apply way.json --yes --no-work -q", code=1).err


def test_old_observation_is_refused_with_the_command_to_run_again(here: Path, cms: Cms) -> None:
    for command in (
        "apply then.json --current old.json --dry-run",
        "plan plan.json --current old.json",
        "export old.json -t slurm --current old.json",
        "show old.json old.json",
        "show old.json old.json --exit-code",
    ):
        said = cms(command, code=1).error
        assert "node 'node-a' was observed " in said
        assert "run again: cms observe node-a=lgi.txt -o now.json" in said
        cms(command, ANY, "-q")


# --- the drift ------------------------------------------------------------------------------------


def listed(folder: Path, rows: str = LGI) -> list[str]:
    """What nvidia-smi printed on node-a, long ago."""
    put(folder / "lgi.txt", rows)
    return ["--check", "node-a=lgi.txt", "node-a=gpus.xml"]


def test_what_is_not_there_is_named(here: Path, cms: Cms) -> None:
    sources = listed(here)
    assert "and at most 15 min are allowed" in flat(cms("apply target.json", sources, code=1).err)
    out, err = cms("apply target.json", sources, ANY, code=1)
    assert "what 2 of the instances do was not observed; their places were compared" in err
    assert "not there: 3 faults" in out
    assert "node-a/0 has 1g.10gb@0 of unknown, needs nothing there" in out
    assert "node-a/0 has nothing at 4g.40gb@0, needs 4g.40gb@0 see (1p b8, 75.5 requests/s)" in out
    assert "node-b/0 has not been observed, needs an observation" in out


def test_listing_of_what_should_be_there_has_no_drift(here: Path, cms: Cms) -> None:
    sources = listed(
        here, LGI.replace("1g.10gb         19        7          0:1", "4g.40gb  5  1  0:4")
    )
    put(here / "b", log(card_of("GPU-b0")))
    put(here / "none", "No GPU instances found\n")
    said = cms("apply target.json", sources, "node-b=b node-b=none --json", ANY)
    assert said.json == {"verified": True, "gpus": 3, "places_alone": 2, "faults": []}


def test_other_work_and_what_does_not_run_yet_are_faults(here: Path, cms: Cms) -> None:
    written(fleet([[one(HALF, 0), one(HALF, 4)]]), here / "target.json")
    there = [one(HALF, 0, state=State.STARTING), Instance(HALF, 4)]
    written(fleet([there]), here / "now.json")
    said = cms("apply target.json --check now.json", code=1).out
    assert "3g.40gb@0 chat (2p b4, 120 requests/s), starting, needs it running" in said
    assert "3g.40gb@4 idle, needs 3g.40gb@4 chat (2p b4, 120 requests/s)" in said
    cms("apply . --check target.json")
    (here / "target.json").unlink()
    assert "this folder holds no target.json" in cms("apply . --check now.json -q", code=1).err


def test_work_that_only_the_node_is_known_to_have_is_compared_there(here: Path, cms: Cms) -> None:
    chat, idle = one(HALF, 0), Instance(HALF, 4)
    written(fleet([[chat, idle], [chat]]), here / "target.json")
    guessed = [replace(each, is_guessed=True) for each in (chat, idle)]
    swapped = [replace(guessed[1], start=0), replace(guessed[0], start=4)]
    written(fleet([swapped, [guessed[0]]]), here / "good.json")
    written(fleet([swapped, [swapped[0]]]), here / "bad.json")
    cms("apply target.json --check good.json")
    cms("show good.json target.json --exit-code")
    said = cms("apply target.json --check bad.json", code=1).out
    assert "not there: 1 fault" in said
    assert "3g.40gb@0 idle, needs 3g.40gb@0 chat" in said


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


def cluster_of(*objects: Any) -> None:
    listing = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    Path("cluster.json").write_text(json.dumps(listing), "utf-8")


def running(
    *pods: str, profile: str = HALF, tied: bool = False, by_claim: bool = False
) -> list[Any]:
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
        own = {"labels": {"cms.service": name, "cms.point": point_label(work(profile, name))}}
        if by_claim:
            objects.append(claim(f"c-{at}", f"gpu-0-mig-3g40gb-9-{starts[on].pop()}", on=on))
            made = claiming(f"p-{at}", f"c-{at}", metadata=own)
            made["spec"]["nodeName"] = on
        else:
            made = pod(f"p-{at}", resource, on, metadata=own)
        if tied:
            made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": on}
        if service.endswith("?"):
            made["status"]["conditions"] = []
        objects.append(made)
    return objects


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
    cluster: list[Any], faults: int, is_listed: bool, tmp_path: Path, cms: Cms
) -> None:
    written(two_nodes(("chat", "code"), ("code", "code")), tmp_path / "target.json")
    cluster_of(*cluster)
    (tmp_path / "lgi").write_text(HALVES, "utf-8")
    listings = "a=lgi b=lgi" if is_listed else ""
    said = cms("apply target.json --check cluster.json --json", listings, code=int(faults > 0))
    assert len(said.json["faults"]) == faults, said


def test_whole_gpus_of_pods_tied_to_no_node_are_compared_in_total(tmp_path: Path, cms: Cms) -> None:
    written(two_nodes(("chat",), (), "whole"), tmp_path / "target.json")
    for pods, code in ((("a:chat",), 0), (("b:chat",), 0), (("a:chat", "b:chat"), 1), ((), 1)):
        cluster_of(*running(*pods, profile="whole"))
        said = flat(cms("apply target.json --check cluster.json", code=code).err)
        assert ("not do what was placed on them" in said) == (pods == ("b:chat",)), pods


def test_counts_alone_tell_the_drift_of_a_node_whose_gpus_differ(tmp_path: Path, cms: Cms) -> None:
    """One GPU is not cut, the other is; which is which, the device plug-in does not tell."""
    uncut = FleetGpu("a", 0, A100, Mode.WHOLE, (Instance("whole", None, work("whole")),))
    cut = FleetGpu("a", 1, A100, instances=(one(HALF, 0), Instance(HALF, 4)))
    alike = {**MIXED, "nvidia.com/gpu.count": "2"}
    every = [
        pod(profile, resource, "a", metadata={"labels": {
            "cms.service": "chat", "cms.point": point_label(work(profile))}})
        for profile, resource in (("whole", "gpu"), (HALF, f"mig-{HALF}"))
    ]  # fmt: skip
    not_yet = {**every[0], "status": {"phase": "Running"}}
    for pods, code in ((every, 0), (every[:1], 1), (every[1:], 1), ([not_yet, every[1]], 1)):
        cluster_of(node("a", alike, **{"gpu": 1, f"mig-{HALF}": 2}), *pods, ELSEWHERE)
        for cards in ((uncut, cut), (replace(cut, index=0), replace(uncut, index=1))):
            meant = replace(two_nodes((), ()), nodes=(FleetNode("a", cards),))
            written(meant, tmp_path / "target.json")
            cms("apply target.json --check cluster.json", code=code)


def test_swapped_gpu_is_named_by_whichever_source_tells_uuids(tmp_path: Path, cms: Cms) -> None:
    (meant,) = fleet([[Instance("1g.10gb", 0), one(HALF, 4)]]).nodes
    card = replace(meant.gpus[0], uuid="GPU-0")
    written(replace(fleet([]), nodes=(replace(meant, gpus=(card,)),)), tmp_path / "target.json")
    (tmp_path / "lgi").write_text(LGI, "utf-8")
    for uuid, code in (("GPU-0", 0), ("GPU-9", 1)):
        (tmp_path / "q").write_text(log(card_of(uuid)), "utf-8")
        parts = (
            device(f"gpu-0-mig-{name}", profile=profile, parentUUID=uuid)
            for name, profile in (("1g10gb-19-0", "1g.10gb"), ("3g40gb-9-4", HALF))
        )
        own = {"labels": {"cms.service": "chat", "cms.point": point_label(CHAT)}}
        user = claiming("chat-1", "c-1", metadata=own)
        user["spec"]["nodeName"] = "node-a"
        given = claim("c-1", "gpu-0-mig-3g40gb-9-4", on="node-a")
        cluster_of(node("node-a", {}), slices(*parts, on="node-a"), given, user, ELSEWHERE)
        for sources in ("node-a=lgi node-a=q", "cluster.json"):
            out, err = cms("apply target.json --check", sources, ANY, code=code)
            assert ("node-a/0 has the UUID GPU-9, needs GPU-0" in out) == (code == 1)
            assert "number alone" not in flat(err)
    said = flat(cms("apply target.json --check node-a=lgi -g a100-80gb").err)
    assert "whether node-a/0 is the GPU that was meant was not observed" in said


def test_same_gpus_under_numbers_of_their_own_are_joined_by_uuid(tmp_path: Path, cms: Cms) -> None:
    """DRA alone calls GPUs by minor numbers: both commands take the other side's indices."""
    cards = [FleetGpu("a", at, A100, uuid=f"GPU-{at}") for at in (0, 1)]
    swapped = tuple(replace(card, index=1 - card.index) for card in cards)
    bare = tuple(replace(card, uuid=None) for card in cards)
    for name, held, is_numbered in (
        ("numbered", tuple(cards), True), ("minor", swapped, False), ("bare", bare, True),
    ):  # fmt: skip
        side = Deployment((FleetNode("a", held, is_numbered=is_numbered),))
        written(side, tmp_path / f"{name}.json")
    for before, after in (("numbered", "minor"), ("minor", "numbered")):
        cms(f"show {before}.json {after}.json --exit-code")
        cms(f"apply {after}.json --current {before}.json --dry-run")
    cms("apply numbered.json --check minor.json -q", ANY)
    said = cms("apply bare.json --check minor.json", ANY).err
    assert "is the GPU that was meant was not observed" in said
    nameless = Deployment((FleetNode("a", bare, is_numbered=False),))  # nothing tells their numbers
    assert renumber_gpus(nameless, side) == nameless
