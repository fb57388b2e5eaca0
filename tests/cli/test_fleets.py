"""From a plan to a running fleet: place, diff, export, verify, check."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet import Service
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Seen,
    State,
    read_deployment,
)
from cms.fleet.deployment.export import TARGETS
from cms.fleet.serving import RULES
from tests.cli.fleets import A100, LGI, LOG, flat, fleet, work, written
from tests.cli.shared import error_of
from tests.fleet.plans import words_of
from tests.fleet.smi import card, log
from tests.samples import so_many

# --- place ----------------------------------------------------------------------------------------


def test_a_plan_is_placed_on_a_table_of_nodes(
    plan: Path, nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg = tmp_path / "target.svg"
    assert run(["place", str(plan), "--nodes", str(nodes), "--picture", str(svg)]) == 0
    said = capsys.readouterr().out
    assert "0: 8 of 8 slices used, nothing fits" in said
    assert "of a plan with 1 GPU: 1 GPU, proved >= 1: optimal, proof checked" in said
    assert said.endswith("1 x a100-80gb on 1 node, 1 changed\n")
    assert "1 x a100-80gb on 1 node" in words_of(svg.read_text("utf-8"))


def test_what_runs_stays_and_nodes_are_added(
    plan: Path, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more.csv"
    more.write_text("node,gpu,count\nnode-b,a100-80gb,1\nnode-c,a100-80gb,4\n", "utf-8")
    assert run(["place", str(plan), "--now", str(target), "--nodes", str(more)]) == 0
    out, err = capsys.readouterr()
    assert "7 GPUs on 3 nodes" in out
    assert "2 of 2 running instances stay (the most possible, checked)" in out
    assert "node 'node-a' and 1 more was never observed" in err
    more.write_text("node,gpu,count\nnode-b,a100-80gb,2\n", "utf-8")
    assert run(["place", str(plan), "--now", str(target), "--nodes", str(more), "-q"]) == 1
    assert "node 'node-b' has other GPUs here than in" in error_of(capsys)


def test_wishes_are_heeded_and_what_they_cost_is_said(
    plan: Path, nodes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = ["--min-replicas", "chat=2", "--spread", "chat=node", "--max-per-gpu", "chat=1"]
    wishes += ["--anti-affinity", "chat,see"]
    assert run(["place", str(plan), "--nodes", str(nodes), *wishes, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    held = {
        f"{node['name']}/{card['index']}": [each["point"].split()[0] for each in card["instances"]]
        for node in document["nodes"]
        for card in node["gpus"]
        if card["instances"]
    }
    assert sorted(held.values()) == [["chat"], ["chat"], ["see"]]
    assert "node-b/0" in held
    assert run(["place", str(plan), "--nodes", str(nodes), *wishes]) == 0
    assert "anti_affinity of chat and see: costs 1 GPU" in capsys.readouterr().out


def test_too_few_gpus_exit_with_3_the_proof_and_what_would_do(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [Instance("1g.10gb", 2, owner="pod team-x/a")]
    now, out = written(fleet([others]), tmp_path / "now.json"), tmp_path / "target.json"
    command = ["place", str(plan), "--now", now, "-o", str(out)]
    assert run(command) == 3
    said = flat(capsys.readouterr().out)
    assert said.startswith("cannot be placed, proof checked: - ")
    assert "beside 1 foreign instance" in said or "node-a/0" in said
    assert "1 more a100-80gb would do: list it in --nodes" in said
    assert run([*command, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["proof"] == "checked"
    assert not out.exists()


def test_no_place_in_time_exits_with_4(
    plan: Path, nodes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wish = ["--min-replicas", "chat=2", "--time-limit", "0"]
    assert run(["place", str(plan), "--nodes", str(nodes), *wish]) == 4
    assert "no placement was found in time" in error_of(capsys)


def test_an_old_observation_is_refused_with_the_command_to_run_again(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = written(fleet([[]], at="2024-01-01T00:00:00Z"), tmp_path / "now.json")
    for command in (
        ["place", str(plan), "--now", now],
        ["export", now, "--to", "slurm", "--now", now],
        ["diff", now, now],
        ["diff", now, now, "--fail-on-difference"],
    ):
        assert run(command) == 1
        said = error_of(capsys)
        assert re.search(r"node 'node-a' was observed \d+ days", said)
        assert "run again: cms observe node-a=lgi.txt -o now.json" in said
        assert run([*command, "--max-age", "none", "-q"]) == 0
    assert run(["place", str(plan), "--now", now, "--max-age", "soon"]) == 2
    assert "--max-age: 'soon': expected a time such as 15min" in error_of(capsys)


WRONG_WISHES = {
    "neither": ([], "give --nodes nodes.csv, --now now.json, or both"),
    "stranger": (["--min-replicas", "cat=2"], "the service 'cat', which is not there"),
    "no number": (["--min-replicas", "chat=two"], "--min-replicas: chat=two: expected a whole"),
    "no home": (["--spread", "chat=rack"], "expected node or zone"),
    "alone": (["--anti-affinity", "chat"], "expected two services: chat,code"),
    "no share": (["--survive", "node:180%"], "expected a share of the rates: node:80%"),
    "both": (["--min-replicas", "chat=2", "--as-grouped"], "give one of them"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG_WISHES.values(), ids=WRONG_WISHES)
def test_wishes_that_cannot_be_meant_exit_with_2(
    arguments: list[str], message: str, plan: Path, nodes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ["--nodes", str(nodes)] if arguments else []
    assert run(["place", str(plan), *table, *arguments]) == 2
    assert message in error_of(capsys)


# --- diff -----------------------------------------------------------------------------------------


def two(tmp_path: Path) -> list[str]:
    """A deployment and one with an instance of each fate on its first GPU."""
    others = Instance("1g.10gb", 6, owner="pod team-x/a")
    chat = Instance("1g.10gb", 0, work("1g.10gb"))
    before = [chat, Instance("1g.10gb", 1), Instance("2g.20gb", 2, work("2g.20gb")), others]
    idle = Instance("1g.10gb", 0)
    after = [idle, Instance("1g.10gb", 1), Instance("1g.10gb", 4, work("1g.10gb")), others]
    kept = [Instance("3g.40gb", 4, work())]
    return [
        written(fleet([before, kept, kept]), tmp_path / "now.json"),
        written(fleet([after, kept, kept]), tmp_path / "target.json"),
    ]


def test_a_difference_is_drawn_with_what_becomes_of_each_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, svg = two(tmp_path), tmp_path / "d.svg"
    assert run(["diff", *files, "--picture", str(svg)]) == 0
    said = capsys.readouterr().out
    assert "1 GPU changes, 2 stay: 1 instance kept, 1 restarted, 1 created, 1 deleted" not in said
    assert "1 GPU changes, 2 stay: 3 instances kept, 1 restarted, 1 created, 1 deleted" in said
    for cell in ("1g.10gb ~│", "1g.10gb =│", "2g.20gb p=2 b=4", "1g.10gb +│", "- deleted"):
        assert cell in said
    assert "2 GPUs untouched: node-a/1-2" in said
    signs = re.findall(r"1g.10gb ([-+=~])", words_of(svg.read_text("utf-8")))
    assert sorted(signs) == ["+", "=", "=", "~", "~"]


def test_a_difference_as_json_fails_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, target = two(tmp_path)
    assert run(["diff", now, target, "--json", "--fail-on-difference"]) == 1
    document = json.loads(capsys.readouterr().out)
    (card,) = document["gpus"]
    assert card["created"] == ["1g.10gb@4 chat (2p b4, 120 items/s)"]
    assert card["foreign"] == ["1g.10gb@6 of pod team-x/a"]
    assert document["untouched"] == ["node-a/1", "node-a/2"]
    assert run(["diff", now, now, "--fail-on-difference"]) == 0
    assert "0 GPUs change, 3 stay" in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, _ = two(tmp_path)
    assert run(["diff", now, str(plan)]) == 2
    assert "is a plan, which says nothing of numbered GPUs; place it first: cms place" in error_of(
        capsys
    )
    overlap = fleet([[Instance("3g.40gb", 0), Instance("4g.40gb", 0)]])
    bad = written(overlap, tmp_path / "bad.json")
    assert run(["diff", now, bad]) == 1
    assert "it cannot be as it is written: node-a/0 has 3g.40gb@0 and 4g.40gb@0" in error_of(capsys)
    blind = fleet([[Instance("1g.10gb")]], seen=Seen.UNKNOWN)
    assert run(["diff", now, written(blind, tmp_path / "blind.json")]) == 1
    assert "observe it with nvidia-smi mig -lgi" in error_of(capsys)


# --- export ---------------------------------------------------------------------------------------


def test_a_deployment_is_written_for_every_tool_with_what_is_lost(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    names = ",".join(TARGETS)
    assert run(["export", str(target), "--to", names, "-o", str(folder), "--advertise"]) == 0
    said = flat(capsys.readouterr().out)
    for name in TARGETS:
        assert (folder / name / "README.md").is_file()
        assert f"{name}: " in said
    assert "not said in these files - Part of a GPU: one whose counts change is emptied" in said
    assert "node-a nvidia.com/mig-3g.40gb: 1, nvidia.com/mig-4g.40gb: 1" in said
    assert os.access(folder / "nvidia-smi" / "nodes" / "node-a.sh", os.X_OK)
    assert read_deployment(folder / "target.json") == read_deployment(target)
    assert run(["verify", str(target), "--against", str(folder / "dra")]) == 0
    assert "all there: 3 GPUs as in" in capsys.readouterr().out


def test_a_folder_of_somebody_else_is_not_written_over(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", "utf-8")
    command = ["export", str(target), "-t", "slurm", "-o", str(folder), "-q"]
    assert run(command) == 1
    assert "this folder holds" in error_of(capsys)
    assert run([*command, "--force"]) == 0
    assert not (folder / "notes.txt").exists()


def test_exports_as_json_and_without_a_folder(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    assert run(["export", str(target), "-t", "mig-parted", "--advertise", "-o", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "mig-parted.yaml" in document["targets"]["mig-parted"]["files"]
    assert document["advertised"][1] == {
        "node": "node-b", "strategy": "mixed", "resources": {},
    }  # fmt: skip
    assert run(["export", str(target), "-t", "mig-parted"]) == 0
    assert "nothing is written without -o DIR" in capsys.readouterr().out
    assert sorted(tmp_path.iterdir()) == before


WRONG_EXPORTS = {
    "nothing": ([], 2, "--to: expected one or more of mig-parted, gpu-operator"),
    "stranger": (["-t", "mig-partd"], 2, "--to: 'mig-partd' is unknown; nearest: 'mig-parted'"),
    "no base": (["-t", "dra", "--base", "none.yaml"], 1, "there is no such file"),
    "empty base": (["-t", "dra", "--base", "."], 1, "this folder holds no manifest"),
    "bad pairs": (["-t", "slurm", "--slurm-type", "a100"], 2, "expected KEY=VALUE"),
    "no target": (["-t", "slurm", "--now", "none.json"], 1, "there is no such file"),
}


@pytest.mark.parametrize(("more", "code", "message"), WRONG_EXPORTS.values(), ids=WRONG_EXPORTS)
def test_exports_that_cannot_be_meant_are_refused(
    more: list[str],
    code: int,
    message: str,
    target: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["export", str(target), *more]) == code
    assert message in error_of(capsys)


# --- verify and check -----------------------------------------------------------------------------


def test_what_is_not_there_is_named(
    target: Path, listings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["verify", *listings, "--against", str(target)]
    assert run(said) == 1
    assert "and at most 15 min are allowed" in flat(capsys.readouterr().err)
    assert run([*said, "--max-age", "none"]) == 1
    out, err = capsys.readouterr()
    assert "what 2 of the instances do was not observed; their places were compared" in err
    assert "not there: 3 faults" in out
    assert "node-a/0 has 1g.10gb@0 of unknown, needs nothing there" in out
    assert "node-a/0 has nothing at 4g.40gb@0, needs 4g.40gb@0 see (1p b8, 75.5 items/s)" in out
    assert "node-b/0 has not been observed, needs an observation" in out


def test_a_listing_of_what_should_be_there_verifies(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lgi").write_text(
        LGI.replace("1g.10gb         19        7          0:1", "4g.40gb  5  1  0:4"), "utf-8"
    )
    (tmp_path / "q").write_text(LOG, "utf-8")
    (tmp_path / "b").write_text(log(card("GPU-b0")), "utf-8")
    (tmp_path / "none").write_text("No GPU instances found\n", "utf-8")
    sources = [f"node-a={tmp_path / 'lgi'}", f"node-a={tmp_path / 'q'}"]
    sources += [f"node-b={tmp_path / 'b'}", f"node-b={tmp_path / 'none'}"]
    assert run(["verify", *sources, "--against", str(target), "--json", "--max-age", "none"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"verified": True, "gpus": 3, "places_alone": 2, "faults": []}


def test_other_work_and_what_does_not_run_yet_are_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    should = [Instance("3g.40gb", 0, work()), Instance("3g.40gb", 4, work())]
    there = [Instance("3g.40gb", 0, work(), state=State.STARTING), Instance("3g.40gb", 4)]
    target = written(fleet([should]), tmp_path / "target.json")
    assert run(["verify", written(fleet([there]), tmp_path / "now.json"), "--against", target]) == 1
    said = capsys.readouterr().out
    assert "3g.40gb@0 chat (2p b4, 120 items/s), starting, needs it running" in said
    assert "3g.40gb@4 idle, needs 3g.40gb@4 chat (2p b4, 120 items/s)" in said
    assert run(["verify", target, "--against", str(tmp_path)]) == 0
    (tmp_path / "target.json").unlink()
    assert run(["verify", str(tmp_path / "now.json"), "--against", str(tmp_path), "-q"]) == 1
    assert "this folder holds no target.json" in capsys.readouterr().err


def test_work_that_only_the_node_is_known_to_have_is_compared_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat, idle = Instance("3g.40gb", 0, work()), Instance("3g.40gb", 4)
    target = written(fleet([[chat, idle], [chat]]), tmp_path / "target.json")
    guessed = [replace(one, is_guessed=True) for one in (chat, idle)]
    swapped = [replace(guessed[1], start=0), replace(guessed[0], start=4)]
    good = written(fleet([swapped, [guessed[0]]]), tmp_path / "good.json")
    bad = written(fleet([swapped, [swapped[0]]]), tmp_path / "bad.json")
    assert run(["verify", good, "--against", target]) == 0
    assert run(["diff", good, target, "--fail-on-difference"]) == 0
    assert run(["verify", bad, "--against", target]) == 1
    said = capsys.readouterr().out
    assert "not there: 1 fault" in said
    assert "3g.40gb@0 idle, needs 3g.40gb@0 chat" in said


def test_a_deployment_is_checked_with_the_plan_in_it(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(target)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("valid: 3 GPUs on 2 nodes, 2 instances; its plan: 1 GPU, proved >= 1")
    document = json.loads(target.read_text("utf-8"))
    gone = document["nodes"][0]["gpus"][0]["instances"].pop(0)
    target.write_text(json.dumps(document), "utf-8")
    assert run(["check", str(target), "--json"]) == 1
    kinds = [fault["kind"] for fault in json.loads(capsys.readouterr().out)["faults"]]
    assert kinds == ["capacity", "count"], gone
    overlap = fleet([[Instance("3g.40gb", 0), Instance("4g.40gb", 0)]])
    assert run(["check", written(overlap, tmp_path / "bad.json")]) == 1
    assert "3g.40gb@0 and 4g.40gb@0 on memory slice 0" in capsys.readouterr().out


# --- large ----------------------------------------------------------------------------------------


def test_three_thousand_gpus_fit_on_some_screens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the short run a thousand of them, in as many ways."""
    starts, size = (0, 1, 2, 3, 4, 5, 6), so_many(125, 375)
    nodes = []
    for number in range(size):
        cards = tuple(
            FleetGpu(
                f"node-{number:03}", index, A100,
                instances=tuple(
                    Instance("1g.10gb", s, work("1g.10gb"))
                    for s in starts
                    if (number * 8 + index) % 97 >> s & 1
                ),
            )
            for index in range(8)
        )  # fmt: skip
        nodes.append(FleetNode(f"node-{number:03}", cards))
    many = Deployment(tuple(nodes), (Service("chat", "bert", 100, 100),), RULES["parvagpu"])
    now = written(many, tmp_path / "now.json")
    svg = tmp_path / "now.svg"
    assert run(["observe", now, "--picture", str(svg)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) < 90
    assert max(map(len, said)) <= 100
    assert any(f"{8 * size:,} x a100-80gb, used in 97 ways" in line for line in said)
    drawn = ElementTree.parse(svg).getroot()
    counts = re.findall(r"(\d+) ×", words_of(svg.read_text("utf-8")))
    assert sum(map(int, counts)) == 8 * size
    assert float(drawn.get("height") or 0) < 5000
    empty = many.with_gpus({(c.node, c.index): c.with_instances(()) for c in many.gpus()})
    assert run(["diff", now, written(empty, tmp_path / "then.json"), "--picture", str(svg)]) == 0
    assert len(capsys.readouterr().out.splitlines()) < 260


def test_no_node_at_all_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = written(Deployment(()), tmp_path / "none.json")
    svg = tmp_path / "none.svg"
    for command in (
        ["observe", none, "--picture", str(svg)],
        ["diff", none, none],
        ["verify", none, "--against", none],
        ["check", none],
        ["export", none, "-t", ",".join(TARGETS), "--advertise"],
    ):
        assert run(command) == 0, command
        assert "0 GPUs" in capsys.readouterr().out


# --- numbers that only the driver of DRA gave -----------------------------------------------------


def test_the_same_gpus_under_numbers_of_their_own_are_joined_by_uuid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DRA alone calls GPUs by minor numbers: both commands take the other side's indices."""
    cards = [FleetGpu("a", at, A100, uuid=f"GPU-{at}") for at in (0, 1)]
    numbered = written(Deployment((FleetNode("a", tuple(cards)),)), tmp_path / "now.json")
    swapped = tuple(replace(card, index=1 - card.index) for card in cards)
    other = Deployment((FleetNode("a", swapped, is_numbered=False),))
    by_minor = written(other, tmp_path / "minor.json")
    for pair in ((numbered, by_minor), (by_minor, numbered)):
        assert run(["diff", *map(str, pair), "--fail-on-difference"]) == 0, capsys.readouterr()
        assert run(["transition", *map(str, pair)]) == 0, capsys.readouterr()
    assert run(["verify", str(by_minor), "--against", numbered, "-q", "--max-age", "none"]) == 0
    bare = Deployment((FleetNode("a", tuple(replace(c, uuid=None) for c in cards)),))
    capsys.readouterr()
    against = written(bare, tmp_path / "bare.json")
    assert run(["verify", by_minor, "--against", against, "--max-age", "none"]) == 0
    assert "is the GPU that was meant was not observed" in capsys.readouterr().err
