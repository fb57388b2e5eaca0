"""``cms reconcile``: what it decides, writes, prints and refuses; and policies on a trace."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from cms.fleet import Deployment
from cms.fleet.deployment import FleetGpu, FleetNode, Instance
from tests.cli.fleets import A100, flat, fleet, work, written
from tests.cli.shared import POINTS, SERVICES

LONG = "time,service,rate_rps\n"


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """One service, whose instances sustain 60 and 120 items a second, by a rule of batches."""
    services, points = tmp_path / "s.csv", tmp_path / "p.csv"
    services.write_text(f"{SERVICES}chat,bert,1,100\n", "utf-8")
    points.write_text(
        f"{POINTS}bert,a100-80gb,2g.20gb,1,4,60,20\nbert,a100-80gb,3g.40gb,2,4,120,20\n", "utf-8"
    )
    tables = ["-s", str(services), "-p", str(points), "--rule", "parvagpu", "--max-age", "none"]
    return [*tables, "--forecast", "latest"]


def rates(folder: Path, *values: float, name: str = "rates.csv") -> str:
    path = folder / name
    rows = "".join(f"{1800 * at},chat,{rate}\n" for at, rate in enumerate(values))
    path.write_text(LONG + rows, "utf-8")
    return str(path)


def empty(folder: Path, gpus: int = 3) -> str:
    return written(fleet([[]] * gpus), folder / "now.json")


def test_it_changes_then_keeps_and_says_why(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    now, known = empty(tmp_path), rates(tmp_path, 100, 300)
    out = tmp_path / "steps"
    first = ["reconcile", now, "--rates", known, *asked, "-o", str(out)]
    assert run(first) == 0
    said = flat(capsys.readouterr().out)
    assert "chat 300 0 360 change: 0 GPUs -> 2 GPUs" in said
    assert "chat is short: 300 items/s are asked for and 0 are there" in said
    assert "of assumed durations" in said
    assert run(["check", str(out / "transition.json"), "-q"]) == 0
    decided = (out / "decision.json").read_bytes()
    assert json.loads(decided)["decision"] == "change"
    assert run([*first, "-q"]) == 0, "it is ours to replace"
    assert (out / "decision.json").read_bytes() == decided
    target = str(out / "target.json")
    again = ["reconcile", target, "--rates", known, *asked]
    capsys.readouterr()
    assert run([*again, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["decision"], found["transition"]["actions"]) == ("keep", [])
    assert found["services"][0]["will_have_rps"] == found["services"][0]["has_rps"] == 360
    assert Fraction(found["keep"]["gpu_hours"]) < Fraction(found["change"]["gpu_hours"])
    assert run([*again, "-o", str(out), "-q"]) == 0
    assert not (out / "steps").exists(), "what was done must not stay to be done again"


def test_it_goes_down_when_that_saves_more_than_a_change_costs(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    both = [Instance("3g.40gb", 0, work()), Instance("3g.40gb", 4, work())]
    now = written(fleet([both, both, []]), tmp_path / "now.json")
    command = ["reconcile", now, "--rates", rates(tmp_path, 200, 200), *asked, "--json"]
    for cost, decision, actions in (("4", "keep", 0), ("3.9", "change", 2), ("4.1", "keep", 0)):
        assert run([*command, "--replan-cost", cost, "--hysteresis", "0"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["decision"], len(found["transition"]["actions"])) == (decision, actions)
    assert run([*command, "--replan-cost", "3.9", "--hysteresis", "2%"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "keep"


BAD: dict[str, tuple[str, list[str], int, str]] = {
    "stranger": ("0,chat,5\n0,chatt,5\n60,chat,5\n", [], 1, "'chatt', which is no service; near"),
    "lacking": ("0,see,5\n60,see,5\n", [], 1, "expected a row of it among the services"),
    "gap": ("0,chat,5\n60,chat,\n", [], 1, "the rate of chat is not known at 60 s (no value)"),
    "empty": ("", [], 1, "rates.csv"),
    "daily": ("0,chat,5\n3600,chat,5\n", ["--forecast", "daily"], 1, "no earlier day says what"),
    "forecast": ("0,chat,5\n3600,chat,5\n", ["--forecast", "lates"], 2, "nearest: 'latest'"),
    "margin": ("0,chat,5\n60,chat,5\n", ["--margin", "x"], 2, "--margin"),
    "cost": ("0,chat,5\n60,chat,5\n", ["--restart-cost", "-1"], 2, "--restart-cost: the GPU hours"),
    "horizon": ("0,chat,5\n60,chat,5\n", ["--horizon", "30min"], 2, "shorter than the 3600 s"),
    "far": ("0,chat,5\n60,chat,5\n", ["--horizon", "30d"], 2, "expected at most 200: change"),
    "never": ("0,chat,5\n60,chat,5\n", ["--lead", "none"], 2, "--lead"),
    "steps": ("0,chat,5\n2400,chat,5\n", [], 2, "expected a multiple of that"),
    "gpu": ("0,chat,5\n60,chat,5\n", ["--gpu", "a30"], 1, "nothing was measured on a30-24gb"),
    "many": ("0,chat,9000\n60,chat,9000\n", [], 3, "no plan on the GPUs there are serves"),
    "time": ("0,chat,5\n60,chat,5\n", ["--time-limit", "0"], 4, "no plan was found in time"),
    "actuator": ("0,chat,5\n60,chat,5\n", ["--actuator", "x", "-o", "steps"], 2, "no actuator"),
    "whole GPUs": ("0,chat,5\n60,chat,5\n", ["--actuator", "slurm"], 2, "instance by instance"),
}


@pytest.mark.parametrize(("rows", "more", "code", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_meant_is_refused(
    rows: str, more: list[str], code: int, message: str, tmp_path: Path, asked: list[str],
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rates.csv").write_text(LONG + rows if rows else "", "utf-8")
    assert run(["reconcile", empty(tmp_path), "--rates", "rates.csv", *asked, *more]) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "steps").exists()


def test_files_that_do_not_go_together_are_refused(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    now, known = empty(tmp_path), rates(tmp_path, 5, 5)
    for arguments, code, message in (
        ([now], 2, "give what runs and its rates"),
        ([now, "--trace", known], 2, "or --trace TRACE.csv alone"),
        (["--rates", known], 2, "give what runs and its rates"),
        ([known, "--rates", known], 1, "is a table, expected a JSON document"),
        ([now, "--rates", str(tmp_path / "no.csv")], 1, "there is no such file"),
        (["--trace", known], 1, "shorter than the 24h that are played"),
    ):
        assert run(["reconcile", *arguments, *asked]) == code, arguments
        assert message in capsys.readouterr().err
    assert run(["reconcile", now, "--rates", known]) == 2
    assert "--services S.csv and --operating-points" in capsys.readouterr().err
    runs = written(fleet([[Instance("3g.40gb", 0, work())]]), tmp_path / "runs.json")
    renamed = [tmp_path / "s.csv", Path(known)]
    texts = [path.read_text("utf-8") for path in renamed]
    for path, text in zip(renamed, texts, strict=True):
        path.write_text(text.replace("chat,", "chatt,"), "utf-8")
    assert run(["reconcile", runs, "--rates", known, *asked]) == 1
    assert "'chat' runs on node-a/0 and is no service; nearest" in capsys.readouterr().err
    for path, text in zip(renamed, texts, strict=True):
        path.write_text(text, "utf-8")
    dated = tmp_path / "old.csv"
    dated.write_text(LONG + "2024-01-01T00:00Z,chat,5\n2024-01-01T00:30Z,chat,5\n", "utf-8")
    stale = ["--max-age", "15min"]
    assert run(["reconcile", now, "--rates", str(dated), *asked, *stale]) == 1
    assert "expected at most 30 min" in capsys.readouterr().err
    ahead = tmp_path / "ahead.csv"
    ahead.write_text(LONG + "2999-01-01T00:00Z,chat,5\n2999-01-01T00:30Z,chat,5\n", "utf-8")
    assert run(["reconcile", now, "--rates", str(ahead), *asked, *stale]) == 1
    assert "ahead of this machine's clock, expected rates up to now" in capsys.readouterr().err
    assert run(["reconcile", now, "--rates", str(ahead), *asked, "-q"]) == 0
    assert run(["reconcile", now, "--rates", str(dated), *asked, "-q"]) == 0


def test_a_way_that_is_not_there_exits_with_3_and_nothing_is_written(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is another's takes the room that a plan on so many GPUs needs."""
    theirs = Instance("3g.40gb", 0, owner="pod team-x/y")
    cards = (FleetGpu("node-a", 0, A100, instances=(theirs,)),)
    now = written(Deployment((FleetNode("node-a", cards),)), tmp_path / "now.json")
    out = tmp_path / "steps"
    command = ["reconcile", now, "--rates", rates(tmp_path, 200, 200), *asked]
    assert run([*command, "-o", str(out)]) == 3
    assert "a change is due, and there is no transition:" in capsys.readouterr().out
    assert run([*command, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["decision"] is None
    assert not out.exists()


def test_policies_on_a_trace_stand_beside_the_optimum(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    trace = rates(tmp_path, 700, 500, 50, 100, 50, name="trace.csv")
    table = tmp_path / "table.json"
    command = ["reconcile", "--trace", trace, *asked, "--play", "2h", "-o", str(table)]
    assert run(command) == 0
    said = capsys.readouterr()
    assert "by assumed durations" in flat(said.out)
    assert "played: always, regrouped" in said.err
    found: dict[str, dict[str, Any]] = {
        each["policy"]: each for each in json.loads(table.read_text())["policies"]
    }
    assert len(found) == 10
    for each in found.values():
        assert (Fraction(each["distance"]) >= 0) or Fraction(each["shortage_s"]) > 0
    at_zero, peak = found["clairvoyant (re-plan 0)"], found["one plan for the peak"]
    assert Fraction(at_zero["gpu_hours"]) < Fraction(peak["gpu_hours"])
    assert at_zero["distance"] == peak["distance"] == peak["shortage_s"] == 0
    assert found["always"]["starts"] <= found["always, regrouped"]["starts"]


def test_services_that_share_gpus_in_time_are_played_with_gpulets_plans_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services, points = tmp_path / "s.csv", tmp_path / "p.csv"
    services.write_text(f"{SERVICES}chat,bert,1,60\nsee,bert,1,70\n", "utf-8")
    points.write_text(
        f"{POINTS}bert,a100-80gb,mps:50,1,4,400,10\nbert,a100-80gb,mps:50,1,8,500,16\n", "utf-8"
    )
    (tmp_path / "trace.csv").write_text(
        "time,chat,see\n0,150,100\n3600,300,350\n7200,100,40\n", "utf-8"
    )
    tables = ["-s", str(services), "-p", str(points)]
    command = ["reconcile", "--trace", str(tmp_path / "trace.csv"), *tables, "--sharing", "time"]
    assert run([*command, "--forecast", "latest", "--play", "2h", "--json"]) == 0
    found = {each["policy"]: each for each in json.loads(capsys.readouterr().out)["policies"]}
    assert "always, regrouped" not in found
    assert Fraction(found["threshold, gpulet's plans"]["longest_transition_s"]) <= 30
    assert found["clairvoyant (re-plan 0)"]["shortage_s"] == 0
    for more, words in (
        (["--regrouped"], "not with --regrouped"),
        (["--rule", "half"], "knows no frames"),
        (["--headroom", "gpullet"], "gpulet"),
    ):
        assert run([*command, *more]) in (1, 2)
        assert words in flat(capsys.readouterr().err)
    known = rates(tmp_path, 5, 5)
    now = empty(tmp_path)
    assert run(["reconcile", now, "--rates", known, *tables, "--sharing", "time"]) == 2
    assert "with --trace TRACE.csv alone" in flat(capsys.readouterr().err)
