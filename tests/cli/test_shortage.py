"""What ``cms solve`` and ``cms plan`` say of an infeasible problem, besides that it is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.files import read_solution, write_problem
from cms.fleet.serving import read_plan
from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem
from proofs_checks import checker

REMEDY = "2 more few machines would do (proved fewest), or 33.3 % of every demand (proved most)"


@pytest.fixture
def few(tmp_path: Path) -> str:
    """A problem file of three jobs that need a machine each, of which there is one."""
    path = tmp_path / "few.json"
    write_problem(short(), path)
    return str(path)


def short(*lost: Job) -> Problem:
    return Problem(
        configurations=Configuration({"b": 1}, "few"),
        jobs=[Job("x", 3, {"b": 1}), *lost],
        machine_types=[MachineType("few", limit=1)],
    )


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert err == ""
    return " ".join(out.split())


def test_an_infeasible_problem_says_why_and_what_would_do(
    few: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["solve", few]) == 3
    reason = "the machines do not suffice: there are only 1 x few"
    assert f"- {reason} - {REMEDY} infeasible, proof checked" in said(capsys)


def test_the_document_has_the_shortage_and_both_checkers_take_it(
    few: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "solution.json"
    assert run(["solve", few, "--json", "-o", str(path)]) == 3
    out = capsys.readouterr().out
    assert out == path.read_text("utf-8")
    found = json.loads(out)["shortage"]
    assert 0 <= found.pop("seconds") < 10
    assert found == {
        "unservable": {}, "more_machines": {"few": 2}, "machines_at_least": 2,
        "machines_proof": "checked", "less_demand": "0.333", "too_much_demand": "0.334",
        "demand_proof": "checked",
    }  # fmt: skip
    assert read_solution(path).status == "infeasible"
    assert run(["check", few, str(path)]) == 0
    documents = (checker.parse_document(Path(file).read_text("utf-8")) for file in (few, path))
    assert checker.check_solution(*documents) == []


def test_the_document_of_a_plan_has_it_in_its_solution(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    arguments = [*tables, "--max-gpus", "a100-80gb=0", "-o", str(path)]
    assert run(arguments) == 3
    assert "1 more a100-80gb GPU would do (proved fewest); not even 0.1 % of" in said(capsys)
    found = json.loads(path.read_text("utf-8"))["solution"]["shortage"]
    assert (found["more_machines"], found["less_demand"]) == ({"a100-80gb": 1}, 0)
    assert read_plan(path).solution.status == "infeasible"
    assert run(["check", str(path)]) == 0
