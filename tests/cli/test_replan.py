"""``cms replan``: what it decides, writes and prints; and policies on a trace."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.fleet.deployment import Instance
from cms.fleet.deployment.transition import transition_from_json
from tests.cli.shared import CURVES, POINTS, SERVICES, Cms, flat, fleet, work, written

TABLES = "replan -s s.csv -p p.csv --rule parvagpu --forecast latest"
TICK = f"{TABLES} --max-age none --rates rates.csv --current now.json"


@pytest.fixture(autouse=True)
def tables(tmp_path: Path) -> None:
    """One service, whose instances sustain 60 and 120 items a second, on three empty GPUs."""
    (tmp_path / "s.csv").write_text(f"{SERVICES}chat,bert,1,100\n", "utf-8")
    (tmp_path / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,2g.20gb,1,4,60,20\nbert,a100-80gb,3g.40gb,2,4,120,20\n", "utf-8"
    )
    written(fleet([[]] * 3), tmp_path / "now.json")


def rates(*values: float) -> None:
    rows = "".join(f"{1800 * at},chat,{rate}\n" for at, rate in enumerate(values))
    Path("rates.csv").write_text("time,service,rate_rps\n" + rows, "utf-8")


def test_it_changes_then_keeps_and_says_why(tmp_path: Path, cms: Cms) -> None:
    rates(100, 300)
    said = cms(TICK, "-o way.json").flat
    assert "chat 300 0 360 change: 0 GPUs -> 2 GPUs" in said
    assert "chat is short: 300 requests/s are asked for, 0 are there" in said
    assert "of assumed durations" in said
    cms("check way.json -q")
    assert "# create on node-a/0" in cms("apply way.json --dry-run").out
    way = json.loads((tmp_path / "way.json").read_text("utf-8"))
    both = [Instance("3g.40gb", start, work()) for start in (0, 4)]
    written(fleet([both, both[:1], []]), tmp_path / "now.json")
    found = cms(TICK, "-o way.json --json").json
    assert (found["decision"], found["transition"]["actions"]) == ("keep", [])
    assert found["services"][0]["will_have_rps"] == found["services"][0]["has_rps"] == 360
    assert Fraction(found["keep"]["gpu_hours"]) < Fraction(found["change"]["gpu_hours"])
    assert way["actions"]
    left = json.loads((tmp_path / "way.json").read_text("utf-8"))["actions"]
    assert left == [], "what was done must not stay to be done again"


def test_it_goes_down_when_that_saves_more_than_a_change_costs(tmp_path: Path, cms: Cms) -> None:
    both = [Instance("3g.40gb", 0, work()), Instance("3g.40gb", 4, work())]
    written(fleet([both, both, []]), tmp_path / "now.json")
    rates(200, 200)
    for cost, hysteresis, decision, actions in (
        ("4", "0", "keep", 0), ("3.9", "0", "change", 2), ("4.1", "0", "keep", 0),
        ("3.9", "2%", "keep", 0),
    ):  # fmt: skip
        (tmp_path / "fleet.toml").write_text(
            f"[replan]\nreplan_cost = '{cost}'\nhysteresis = '{hysteresis}'\n", "utf-8"
        )
        found = cms(TICK, "--json").json
        assert (found["decision"], len(found["transition"]["actions"])) == (decision, actions)


def test_old_rates_are_taken_where_any_age_is_allowed(tmp_path: Path, cms: Cms) -> None:
    for year in ("2024", "2999"):
        rows = f"{year}-01-01T00:00Z,chat,5\n{year}-01-01T00:30Z,chat,5\n"
        (tmp_path / "rates.csv").write_text(f"time,service,rate_rps\n{rows}", "utf-8")
        cms(TICK, "-q")


def test_no_plan_on_the_gpus_there_are_exits_with_3_and_writes_nothing(
    tmp_path: Path, cms: Cms
) -> None:
    """A foreign instance takes the room that a plan on so many empty GPUs needs."""
    theirs = Instance("3g.40gb", 0, owner="pod team-x/y")
    written(fleet([[theirs]]), tmp_path / "now.json")
    rates(200, 200)
    said = cms(TICK, "-o way.json", code=3).err
    assert "no plan on the GPUs there are serves the rates from 1800 s" in flat(said)
    assert not (tmp_path / "way.json").exists()
    rates(100, 100)  # which has a place beside it
    assert "change: 0 GPUs -> 1 GPU" in cms(TICK, "-o way.json").flat


def test_policies_on_a_trace_stand_beside_the_optimum(tmp_path: Path, cms: Cms) -> None:
    rates(700, 500, 50, 100, 50)
    said = cms(TABLES, "--trace rates.csv --play 2h -o table.json")
    assert "by assumed durations" in said.flat
    assert "played: always, regrouped" in said.err
    found: dict[str, dict[str, Any]] = {
        each["policy"]: each
        for each in json.loads((tmp_path / "table.json").read_text())["policies"]
    }
    assert len(found) == 10
    for each in found.values():
        assert (Fraction(each["distance"]) >= 0) or Fraction(each["shortage_s"]) > 0
    at_zero, peak = found["clairvoyant (re-plan 0)"], found["one plan for the peak"]
    assert Fraction(at_zero["gpu_hours"]) < Fraction(peak["gpu_hours"])
    assert at_zero["distance"] == peak["distance"] == peak["shortage_s"] == 0
    assert found["always"]["starts"] <= found["always, regrouped"]["starts"]


def test_services_that_share_gpus_are_played_beside_gpulets_plans(tmp_path: Path, cms: Cms) -> None:
    (tmp_path / "s.csv").write_text(f"{SERVICES}chat,bert,1,60\nsee,bert,1,70\n", "utf-8")
    (tmp_path / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,mps:50,1,4,400,10\nbert,a100-80gb,mps:50,1,8,500,16\n", "utf-8"
    )
    (tmp_path / "trace.csv").write_text(
        "time,chat,see\n0,150,100\n3600,300,350\n7200,100,40\n", "utf-8"
    )
    command = "replan -s s.csv -p p.csv --trace trace.csv --time-sharing --forecast latest"
    policies = cms(command, "--play 2h --json").json["policies"]
    found = {each["policy"]: each for each in policies}
    assert "always, regrouped" not in found
    assert Fraction(found["threshold, gpulet's plans"]["longest_transition_s"]) <= 30
    assert found["clairvoyant (re-plan 0)"]["shortage_s"] == 0
    assert "knows no duty cycles" in flat(cms(command, "--rule half", code=(1, 2)).err)
    for text, words in (
        ("[replan]\nregrouped = true", "not with regrouped"),
        ("[time_sharing]\nheadroom = 'gpullet'", "nearest: 'gpulet'"),
    ):
        (tmp_path / "fleet.toml").write_text(text, "utf-8")
        assert words in flat(cms(command, code=(1, 2)).err)


def test_load_curves_of_the_tables_or_of_what_runs_say_what_an_instance_counts_for(
    tmp_path: Path, cms: Cms
) -> None:
    """By the table of loads no instance counts: a batch takes more than half the limit."""
    own = "bert,a100-80gb,3g.40gb,2,4,0.01,measured,40 80 160,50 90 110\n"
    (tmp_path / "curves.csv").write_text(CURVES + own, "utf-8")
    (tmp_path / "fleet.toml").write_text("[tables]\nload_curves = 'curves.csv'\n", "utf-8")
    rates(90, 90)
    asked = TICK.replace("--rule parvagpu", "--rule capacity")
    found = cms(asked, "-o way.json --json").json
    assert (found["decision"], found["services"][0]["will_have_rps"]) == ("change", 160)
    cms("check way.json -q")
    way = transition_from_json(json.loads((tmp_path / "way.json").read_text("utf-8")))
    written(way.target, tmp_path / "now.json")
    (tmp_path / "fleet.toml").unlink()
    again = cms(asked, "--json").json
    assert (again["decision"], again["services"][0]["has_rps"]) == ("keep", 160)
    written(fleet([[]]), tmp_path / "now.json")
    assert "no plan" in flat(cms(asked, code=3).err)
