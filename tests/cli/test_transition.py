"""``cms transition``: what it prints, writes and refuses; and what other commands make of it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.errors import FileError
from cms.fleet.deployment import Instance, Seen
from cms.fleet.deployment.transition import transition_from_json, transition_to_json
from proofs_checks.checker.reading import Fault
from proofs_checks.checker.replay import examine_transition
from tests.cli.fleets import flat, fleet, work, written
from tests.cli.shared import error_of
from tests.proofs_checks.test_schemas import is_valid

CHAT = work()


def two(folder: Path, at: str | None = None) -> list[str]:
    """Chat moves from one GPU to another."""
    before, after = [Instance("3g.40gb", 0, CHAT)], [Instance("3g.40gb", 4, CHAT)]
    return [
        written(fleet([before, []], at=at), folder / "now.json"),
        written(fleet([[], after]), folder / "then.json"),
    ]


def test_a_transition_is_told_written_checked_and_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, then = two(tmp_path)
    out = tmp_path / "steps"
    assert run(["transition", now, then, "-o", str(out)]) == 0
    said = flat(capsys.readouterr().out)
    assert (
        "1 -> 1 GPU, floor 100 %: 2 actions in 2 steps, 2 min (assumed); 1 spare GPU (the least)"
        in said
    )
    assert "0 of 1 instance stays" in said
    assert "chat 0 1 1 120 100 100 % of the smaller of 100 and 100 items/s" in said
    assert "Times are assumed, not measured" in said
    for name in ("run.sh", "steps/01-node-a-gpu1.sh", "steps/02-node-a-gpu0.sh"):
        assert os.access(out / name, os.X_OK)
    assert run(["check", str(out / "transition.json")]) == 0
    said = capsys.readouterr().out
    assert "in every execution that respects the waits all floors hold" in said
    for source, against, code in (
        (now, out, 1), (then, out, 0), (then, out / "steps/02", 0), (now, out / "steps/01", 1),
        (then, out / "steps/01-node-a-gpu1.sh", 0), (now, out / "steps/01-node-a-gpu1", 1),
    ):  # fmt: skip
        assert run(["verify", source, "--against", str(against), "-q"]) == code, against
    assert run(["verify", now, "--against", str(out / "steps/7")]) == 1
    assert "there is no such step" in capsys.readouterr().err
    assert run(["observe", now, "--plan", str(out / "transition.json"), "-q"]) == 0
    assert run(["transition", now, then, "-o", str(out), "-q"]) == 0, "it is ours to replace"


def test_no_capacity_is_rounded_up_and_no_floor_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rps = Fraction("120.456")
    one = replace(CHAT, point=replace(CHAT.point, throughput_rps=rps), supply_rps=rps)
    sides: list[str] = []
    for held in ([[Instance("3g.40gb", 0, one)], []], [[], [Instance("3g.40gb", 4, one)]]):
        side = fleet(held)
        asked = tuple(replace(each, rate_rps=Fraction("100.0321")) for each in side.services)
        sides.append(written(replace(side, services=asked), tmp_path / f"{len(sides)}.json"))
    assert run(["transition", *sides]) == 0
    assert "chat 0 1 1 120.4 100.1 100 %" in flat(capsys.readouterr().out)


@pytest.mark.parametrize("tool", ["mig-parted", "gpu-operator", "slurm"])
def test_tools_that_cut_whole_gpus_have_their_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str
) -> None:
    after = [Instance("3g.40gb", 4, CHAT), Instance("2g.20gb", 0)]
    now = written(fleet([[Instance("3g.40gb", 0, CHAT)], []], at=None), tmp_path / "now.json")
    then = written(fleet([after, []]), tmp_path / "then.json")
    out = tmp_path / "steps"
    command = ["transition", now, then, "--actuator", tool, "--floor", "0", "-o", str(out)]
    assert run(command) == 0
    said = flat(capsys.readouterr().out)
    assert "1 instance that only --actuator nvidia-smi would keep" not in said  # it moves there
    assert "0 of 1 instance stays" in said
    step = "01-node-a-gpu0" if tool == "mig-parted" else "01-node-a-all"
    assert os.access(out / f"steps/{step}.sh", os.X_OK)
    assert (out / "configmap.yaml").exists() == (tool == "gpu-operator")
    assert run(["check", str(out / "transition.json"), "-q"]) == 0
    elsewhere = [Instance("3g.40gb", 0, CHAT), Instance("2g.20gb", 4)]
    chosen = written(fleet([elsewhere, []]), tmp_path / "chosen.json")
    for source, against, code in (
        (chosen, out, 0), (chosen, out / "steps/1", 0), (chosen, out / f"steps/{step}", 0),
        (now, out, 1), (now, out / "steps/1", 1),
    ):  # fmt: skip
        assert run(["verify", source, "--against", str(against), "-q"]) == code, against
    again = ["transition", chosen, str(out / "target.json"), "--actuator", tool, "--json"]
    capsys.readouterr()
    assert run(again) == 0
    assert json.loads(capsys.readouterr().out)["actions"] == []


def test_a_transition_that_was_tampered_with_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["transition", *two(tmp_path), "-o", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    document["actions"][1]["after"] = []
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(document), "utf-8")
    assert run(["check", str(bad), "--json"]) == 1
    kinds = [fault["kind"] for fault in json.loads(capsys.readouterr().out)["faults"]]
    assert "floor" in kinds


def test_what_is_impossible_exits_with_3_and_what_is_not_found_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, then = two(tmp_path)
    full = written(fleet([[Instance("3g.40gb", 0, CHAT)], []]), tmp_path / "full.json")
    none = written(fleet([[], []]), tmp_path / "none.json")
    out = tmp_path / "out"
    assert run(["transition", full, none, "-o", str(out)]) == 3
    said = flat(capsys.readouterr().out)
    assert "there is no such transition, proof checked: - chat is to keep 100 items/s" in said
    assert run(["transition", full, none, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["proof"] == "checked"
    assert run(["transition", now, then, "--spare", "0"]) == 3
    assert "none of the 3 states that can be reached" in flat(capsys.readouterr().out)
    assert run(["transition", now, then, "--time-limit", "0"]) == 4
    assert "no transition was found in time" in capsys.readouterr().err
    assert run(["transition", now, then, "--spare", "0", "--floor", "chat=0", "-q"]) == 0
    assert not out.exists()


WRONG = {
    "method": (["--method", "theirs"], 2, "'theirs': expected ours or exchange_and_compact"),
    "spare": (["--spare", "some"], 2, "--spare: 'some': expected auto or a whole number"),
    "floor": (["--floor", "much"], 2, "--floor"),
    "floors": (["--floor", "1", "--floor", "2"], 2, "'2' is a second one for all services"),
    "stranger": (["--floor", "cat=1"], 2, "a floor is given for the service 'cat'"),
    "actuator": (["--actuator", "nvidia-sm"], 2, "nearest: 'nvidia-smi'"),
    "whole": (
        ["--actuator", "slurm", "--method", "exchange_and_compact"],
        2,
        "leave out --actuator",
    ),
    "slurm": (["--actuator", "slurm", "--slurm-node", "x"], 2, "expected KEY=VALUE"),
    "map": (["--actuator", "gpu-operator", "--config-map", "A b"], 1, "no name of Kubernetes"),
    "grouped": (["--as-grouped"], 2, "a deployment says itself what lies where"),
    "compared": (["--method", "exchange_and_compact", "--spare", "1"], 2, "leave out --spare"),
    "durations": (["--durations", "none.yaml"], 1, "there is no such file"),
}


@pytest.mark.parametrize(("more", "code", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_refused(
    more: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["transition", *two(tmp_path), *more]) == code
    assert message in capsys.readouterr().err


def test_what_is_too_old_or_not_known_is_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, then = two(tmp_path, at="2024-01-01T00:00:00Z")
    assert run(["transition", now, then]) == 1
    assert "run again: cms observe node-a=lgi.txt -o now.json" in error_of(capsys)
    assert run(["transition", now, then, "--max-age", "none", "-q"]) == 0
    blind = fleet([[Instance("1g.10gb")], []], at=None, seen=Seen.UNKNOWN)
    assert run(["transition", written(blind, tmp_path / "blind.json"), then]) == 1
    assert "observe node 'node-a' with: nvidia-smi mig -lgi" in capsys.readouterr().err


def test_rates_are_drawn_where_capacities_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "rates.csv"
    trace.write_text("time,service,rate_rps\n0,chat,90\n60,chat,95\n", "utf-8")
    command = ["transition", *two(tmp_path), "--trace", str(trace)]
    assert run(command) == 2
    assert "add --simulate, --picture or -o" in capsys.readouterr().err
    assert run([*command, "--simulate"]) == 0
    assert "most come/s short for" in flat(capsys.readouterr().out)


def test_a_plan_is_a_target_too(
    plan: Path, nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = written(fleet([[], []]), tmp_path / "now.json")
    slow = tmp_path / "slow.yaml"
    slow.write_text("start_s: 600\n", "utf-8")
    command = ["transition", empty, str(plan), "--durations", str(slow), "--max-parallel", "1"]
    assert run(command) == 0
    said = flat(capsys.readouterr().out)
    assert "0 -> 1 GPU, floor 100 %: 2 actions in 1 step, 20 min (assumed)" in said
    assert "nothing is written without -o DIR" in said
    assert run(["transition", empty, str(plan), "--method", "exchange_and_compact", "-q"]) == 0


def test_what_runs_is_put_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    halves = [[Instance("3g.40gb", 0, CHAT)] for _ in range(3)]
    now = written(fleet([*halves, []]), tmp_path / "now.json")
    assert run(["transition", now, "--compact", "--max-restarts", "1"]) == 0
    said = flat(capsys.readouterr().out)
    assert "2 GPUs (the fewest, checked) after 1 restart; 1 GPU and 0 nodes come free" in said
    assert "3 -> 2 GPUs" in said
    assert run(["transition", now, "--compact", "--max-restarts", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["actions"] == []
    assert run(["transition", now, "--compact", "--max-restarts", "0,1,2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["actions"]) == 2
    table = document["compacted"]
    assert [(row["max_restarts"], row["gpus"], row["restarts"]) for row in table] == [
        (0, 3, 0), (1, 2, 1), (2, 2, 1),
    ]  # fmt: skip
    assert {(row["least_gpus"] == row["gpus"], row["proof"]) for row in table} == {
        (True, "checked")
    }
    assert examine_transition(document)[0] == []
    assert is_valid(document)
    assert transition_to_json(transition_from_json(document)) == {
        key: value for key, value in document.items() if key != "compacted"
    }
    del table[0]["proof"]
    assert not is_valid(document)
    with pytest.raises(FileError, match="proof"):
        transition_from_json(document)
    with pytest.raises(Fault, match="proof"):
        examine_transition(document)
    assert run(["transition", now, "--compact", "--max-restarts", "0, 1"]) == 0
    said = flat(capsys.readouterr().out)
    assert "at most 0: 3 GPUs (the fewest, checked) after 0 restarts; 0 GPUs" in said
    assert "at most 1: 2 GPUs (the fewest, checked) after 1 restart; 1 GPU" in said
    assert run(["transition", now, "--compact", "--free", "nodes"]) == 0
    assert "1 node (the fewest, checked), 2 GPUs after 1 restart" in flat(capsys.readouterr().out)
    for wrong, words in (
        (["transition", now, now, "--free", "nodes"], "--free: it goes with --compact alone"),
        (["transition", now, "--compact", "--free", "node"], "expected gpus or nodes"),
        (["transition", now, "--compact", "--max-restarts", "1,"], "expected a whole number, or"),
        (["transition", now], "Missing argument 'TARGET' (or --compact)"),
        (["transition", now, now, "--compact"], "what runs stays what it is"),
        (["transition", now, now, "--max-restarts", "1"], "it goes with --compact alone"),
        (["transition", now, "--compact", "--method", "exchange_and_compact"], "leads to a plan"),
    ):
        assert run(wrong) == 2
        assert words in flat(capsys.readouterr().err)
