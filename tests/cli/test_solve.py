"""``cms solve``: abstract problems, where a run starts, an algorithm's options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms import Configuration, Job, Problem
from cms.cli.app import run
from cms.files import write_problem
from tests.fleet.plans import words_of


def test_a_problem_file_is_solved(problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", problem]) == 0
    out = capsys.readouterr().out
    assert out.startswith("problem.json\n2 jobs, 3 blocks, 2 configurations\n")
    assert "2 machines, proved >= 2: optimal, proof checked" in out


def test_a_named_problem_of_the_theory_is_solved(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", "--published", "three-thirds", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "optimal"


def test_a_name_of_a_million_letters_does_not_fill_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Job("x" * 10**6, 9, {"7g": 4})
    path = tmp_path / "long.json"
    write_problem(Problem(configurations=Configuration({"7g": 1}), jobs=[job]), path)
    assert run(["solve", str(path)]) == 0
    out = capsys.readouterr().out
    assert 2_000 < len(out) < 20_000


def test_a_schedule_of_abstract_machines_is_drawn(problem: str, tmp_path: Path) -> None:
    picture = tmp_path / "schedule.svg"
    assert run(["solve", problem, "-q", "--picture", str(picture)]) == 0
    words = words_of(picture.read_text("utf-8"))
    assert "2 machines, proved >= 2: optimal, proof checked" in words


def test_a_solution_can_be_improved_on(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "solution.json")
    assert run(["solve", problem, "-o", path, "-q"]) == 0
    assert run(["solve", problem, "--start", path, "--time-limit", "0", "--json"]) == 0
    history = json.loads(capsys.readouterr().out)["history"]
    assert any(line["source"] == "start" and line["cost"] == 2 for line in history)


def test_a_plan_can_be_improved_on(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "plan.json")
    assert run([*tables, "-o", path, "-q"]) == 0
    assert run([*tables, "--start", path, "--time-limit", "0"]) == 0
    assert "1 GPU, proved >= " in capsys.readouterr().out


def test_options_become_values_of_the_kind_of_their_defaults(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["solve", problem, "-m", "cp_sat", "--option", "workers=1"]) == 0
    assert run(["solve", problem, "-m", "cp_sat", "--option", "workers=x"]) == 2
    assert "workers" in capsys.readouterr().err
