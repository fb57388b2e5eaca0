"""``cms check``: true solutions pass, those that were tampered with do not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from cms.files import read_solution, write_problem
from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem


@pytest.fixture
def solved(problem: str, tmp_path: Path) -> tuple[str, Path]:
    path = tmp_path / "solution.json"
    assert run(["solve", problem, "-o", str(path), "-q"]) == 0
    return problem, path


def test_a_true_solution_passes_the_check(
    solved: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *map(str, solved)]) == 0
    expected = "valid: 2 machines, proved >= 2: optimal, proof checked\n"
    assert capsys.readouterr().out == expected


def test_a_plan_goes_through_a_pipe_to_the_check(
    tables: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for extra in ([], ["--json"], ["-q"]):
        assert run([*tables, "-o", "-", *extra]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["format"] == "cms-plan"
        assert err == ""
        stdin = io.TextIOWrapper(io.BytesIO(out.encode("utf-8")), "utf-8")
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["check", "-"]) == 0
        assert capsys.readouterr().out.startswith("valid: 1 GPU, ")


@pytest.mark.parametrize("command", ["solve", "check", "gpus", "algorithms"])
def test_a_document_for_a_pipe_is_printed_once(
    command: str, solved: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"solve": [solved[0]], "check": list(map(str, solved))}.get(command, [])
    assert run([command, *files, "-o", "-"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


def tampered(path: Path, change: Any) -> None:
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document), "utf-8")


FEASIBLE = {"status": "feasible", "proof": "none", "stop_reason": "finished", "history": []}
NOTHING: dict[str, Any] = {
    "cost": None,
    "machine_count": None,
    "gap": None,
    "schedule": {"groups": []},
}
EARLIER = {"seconds": 0, "cost": None, "claimed_bound": None, "source": "auto", "lower_bound": 2}


def drop_a_block(document: dict[str, Any]) -> None:
    for group in document["schedule"]["groups"]:
        group["assignment"] = [entry for entry in group["assignment"] if entry[1] != "vgg"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (drop_a_block, "demand"),
        (lambda it: it["certificate"]["tree"].update(prices={"7g": "5/4"}), "certificate"),
        (lambda it: it["certificate"]["tree"].update(prices={}), "bound"),
        ({**FEASIBLE, "lower_bound": 3, "gap": -1}, "bound"),
        ({**NOTHING, "status": "infeasible", "history": []}, "proof"),
        ({**FEASIBLE, "cost": "2.5", "gap": "0.5"}, "cost"),
        ({**FEASIBLE, "status": "optimal", "proof": "solver", "claimed_bound": 1}, "proof"),
        (
            {**FEASIBLE, **NOTHING, "status": "no_schedule", "lower_bound": 1,
             "history": [EARLIER]},
            "history",
        ),
    ],
)  # fmt: skip
def test_a_solution_that_was_tampered_with_fails_the_check(
    solved: tuple[str, Path], change: Any, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tampered(solved[1], (lambda it: it.update(change)) if isinstance(change, dict) else change)
    assert run(["check", *map(str, solved), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert not document["valid"]
    assert kind in [fault["kind"] for fault in document["faults"]]
    assert run(["check", *map(str, solved)]) == 1
    assert capsys.readouterr().out.startswith("not valid: ")


def test_a_solution_of_another_problem_fails_the_check(
    solved: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    write_problem(Problem(configurations=Configuration({"b": 1})), other)
    assert run(["check", str(other), str(solved[1])]) == 1
    assert "SHA-256 of this problem" in capsys.readouterr().out


def test_a_problem_alone_cannot_be_checked(
    problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", problem]) == 2
    assert "holds a problem alone; give both" in capsys.readouterr().err


def test_a_plan_with_a_lost_service_fails_the_check(
    tables: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run([*tables, "-o", str(path), "-q"]) == 0
    tampered(path, lambda document: document["services"].pop())
    assert run(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "services" in out + err
    assert "Traceback" not in err


def test_a_wrong_infeasibility_is_told_apart_from_a_true_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few, solution = tmp_path / "few.json", tmp_path / "solution.json"
    made = Problem(
        configurations=Configuration({"b": 1}), jobs=[Job("j", 2, {"b": 1})],
        machine_types=[MachineType("machine", limit=1)],
    )  # fmt: skip
    write_problem(made, few)
    assert run(["solve", str(few), "-o", str(solution), "-q"]) == 3
    assert run(["check", str(few), str(solution)]) == 0
    assert capsys.readouterr().out == "valid: infeasible, proof checked\n"
    assert read_solution(solution).certificate.proves_infeasible(made)
