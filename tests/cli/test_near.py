"""``cms plan --near``: what it says and writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet.deployment import read_deployment
from tests.cli.shared import error_of


@pytest.fixture
def now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """S1 on six GPUs."""
    plan, nodes, path = (tmp_path / name for name in ("s1.json", "six.csv", "today.json"))
    nodes.write_text("node,gpu,count\nnode-a,a100-80gb,6\n", "utf-8")
    assert run(["plan", "--published", "S1", "-o", str(plan), "-q"]) == 0
    assert run(["place", str(plan), "--nodes", str(nodes), "-o", str(path), "-q"]) == 0
    capsys.readouterr()
    return path


def test_a_near_plan_is_written_as_a_deployment_that_checks(
    now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, svg = tmp_path / "near.json", tmp_path / "near.svg"
    command = ["plan", "--published", "S2", "--near", str(now), "--extra-gpus", "0"]
    assert run([*command, "-o", str(target), "--picture", str(svg)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of a plan with 3 GPUs: 3 GPUs, proved >= 3: optimal, proof checked" in said
    assert (
        "10 of 10 running instances stay (the most of all plans on so many GPUs, checked)" in said
    )
    assert "the plan as it was made keeps 10" in said
    assert "to start, 0 to stop" in said
    assert svg.read_text("utf-8").startswith("<svg")
    assert run(["check", str(target)]) == 0
    assert read_deployment(target).plan is not None
    capsys.readouterr()
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "cms-deployment"


def test_other_instances_than_planned_check_if_they_supply_as_much(
    now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, then = tmp_path / "s5.json", tmp_path / "s1.json"
    nodes = tmp_path / "more.csv"
    nodes.write_text("node,gpu,count\nnode-b,a100-80gb,12\n", "utf-8")
    plan = tmp_path / "plan5.json"
    assert run(["plan", "--published", "S5", "-o", str(plan), "-q"]) == 0
    assert run(["place", str(plan), "--nodes", str(nodes), "-o", str(first), "-q"]) == 0
    assert run(["plan", "--published", "S1", "--near", str(first), "-o", str(then), "-q"]) == 0
    assert run(["check", str(then)]) == 0
    capsys.readouterr()
    document = json.loads(then.read_text("utf-8"))
    used = [gpu for gpu in document["nodes"][0]["gpus"] if gpu["instances"]]
    used[0]["instances"] = []
    then.write_text(json.dumps(document), "utf-8")
    assert run(["check", str(then)]) == 1
    assert "needs" in capsys.readouterr().out


def test_what_is_refused(now: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["plan", "--published", "S2"]
    assert run([*plan, "--extra-gpus", "1"]) == 2
    assert "give --near now.json" in error_of(capsys)
    assert run([*plan, "--near", str(tmp_path / "six.csv")]) == 1
    assert "is a table, expected a JSON document" in error_of(capsys)
    assert run([*plan, "--near", str(tmp_path / "s1.json")]) == 2
    assert "is a plan, which says nothing of numbered GPUs" in error_of(capsys)
    assert run(["plan", "--published", "S6", "--near", str(now), "-q"]) == 3
    assert run(["plan", "--published", "S6", "--near", str(now), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["proof"] == "checked"
    assert "and the fleet has 6" in told["reasons"][0]
    assert run([*plan, "--near", str(now), "--spread"]) == 2
    assert "--spread: --near chooses the instances" in error_of(capsys)
    assert run([*plan, "--near", str(now), "--no-spread", "-q"]) == 0
    few = ["plan", "--published", "S2", "--max-gpus", "a100-80gb=1"]
    assert run([*few, "--near", str(now), "-o", str(tmp_path / "no.json")]) == 3
    assert not (tmp_path / "no.json").exists()
