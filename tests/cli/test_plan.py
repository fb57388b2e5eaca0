"""``cms plan``: what it prints, where, and what reaches the problem."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet.serving import read_plan
from tests.cli.shared import ROOT


def test_a_plan_prints_bars_a_table_the_bound_and_the_proof(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tables) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "services"
    assert re.search(r"1 × │ 4g.40gb p=1 b=8 +│ 3g.40gb p=2 b=4 ", out)
    assert re.search(r"│ 2 \[red\]see\[/red\] +│ 1 chat", out)
    assert re.search(r"chat .*100 +120 +20 %  1 x 3g.40gb \(p=2 b=4, 120/s, 20 ms\)", out)
    assert lines[-2] == "1 GPU, proved >= 1: optimal, proof checked"
    assert re.fullmatch(r"\(auto, \d+\.\d\d s, ended with a proof\)", lines[-1])
    assert max(map(len, lines)) <= 100


def test_a_plan_without_limits_never_says_that_any_are_kept(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    services = Path(tables[2])
    rows = services.read_text("utf-8").splitlines()
    free = [rows[0], *(row[: row.rindex(",") + 1] for row in rows[1:])]
    tables[tables.index("parvagpu")] = "capacity"
    services.write_text("\n".join(free), "utf-8")
    assert run(tables) == 0
    out = capsys.readouterr().out
    assert "no service has a latency limit" in out
    assert "99 %" not in out


def test_json_is_one_document_on_stdout_and_the_same_in_the_file(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run([*tables, "--json", "-o", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == path.read_text("utf-8")
    assert json.loads(out)["solution"]["status"] == "optimal"
    assert read_plan(path).services[0].provided_rps == 120


def test_quiet_prints_nothing_and_still_writes_the_files(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
    assert run([*tables, "-q", "-o", str(plan), "--picture", str(picture)]) == 0
    assert capsys.readouterr() == ("", "")
    assert read_plan(plan).solution.machine_count == 1
    ElementTree.fromstring(picture.read_text("utf-8"))


def test_scenario_s5_from_two_tables_is_planned_and_its_odd_figure_warned_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    services, points = "examples/services_s5.csv", "instances/data/a100_operating_points.csv"
    files = ["plan", "-s", str(ROOT / services), "-p", str(ROOT / points)]
    assert run([*files, "--rule", "parvagpu", "--max-processes", "3"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("warning: model mobilenetv2 on a100-80gb")
    assert "12 GPUs, proved >= 12: optimal, proof checked" in out


def test_limits_and_costs_of_gpus_reach_the_problem(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--max-gpus", "a100-80gb=3", "--cost", "a100-80gb=1/3", "--rule", "plain"]
    assert run([*tables, *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    machine = {"name": "a100-80gb", "cost": "1/3", "limit": 3}
    assert document["problem"]["machine_types"] == [machine]
    assert document["rule"]["name"] == "plain"
    assert document["solution"]["cost"] == "1/3"


def test_a_warning_about_the_data_goes_to_stderr(
    tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    points = Path(tables[-1])
    points.write_text(points.read_text("utf-8").replace(",20\n", ",0.02\n"), "utf-8")
    assert run(tables) == 0
    out, err = capsys.readouterr()
    assert err.startswith("warning: ")
    assert "latency_ms looks like seconds" in err
    assert "warning" not in out
    for silent in ("--quiet", "--json"):
        assert run([*tables, silent]) == 0
        assert capsys.readouterr().err == ""
