"""Commands on problems whose blocks jobs share in time: the file says which kind it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cms import (
    Configuration,
    MachineGroup,
    Mix,
    MixPrices,
    PriceFunction,
    Proof,
    Schedule,
    Solution,
    Status,
    StopReason,
    TimeSharedJob,
    TimeSharedProblem,
    read_solution,
    referee_of,
    write_problem,
    write_solution,
)
from cms.cli.app import run
from cms.fleet.report.bars import machine_bars
from cms.fleet.report.problems import solved_page
from cms.fleet.report.proofs import solution_reasons
from proofs_checks.checker import check_problem, check_schedule, parse_document
from tests.fleet.plans import printed

PAIR = Configuration({"60": 1, "40": 1}, "machine")
PROBLEM = TimeSharedProblem(
    configurations=PAIR,
    jobs=[
        TimeSharedJob("resnet50", 250, "0.044", {"60": [(8, "0.012"), (16, "0.02")]}),
        TimeSharedJob("vgg16", 125, "0.052", {"60": [(4, "0.02")]}),
    ],
)
MIX = Mix({"resnet50": 8, "vgg16": 4})


def written(folder: Path, mix: Any = MIX) -> list[str]:
    """A problem and a solution that is proved optimal: one machine is needed and will do."""
    solution = Solution(
        status=Status.OPTIMAL,
        proof=Proof.CHECKED,
        stop_reason=StopReason.PROVED,
        method="by hand",
        seconds=0.0,
        schedule=Schedule([MachineGroup(PAIR, {("60", mix): 1}, 1)]),
        cost=PROBLEM.cost_step,
        certificate=MixPrices({"60": 1}, functions={"resnet50": PriceFunction("3/10")}),
        lower_bound=PROBLEM.cost_step,
        claimed_bound=None,
        guarantee=None,
        history=(),
        problem_sha256=PROBLEM.sha256,
    )
    write_problem(PROBLEM, folder / "problem.json")
    write_solution(solution, folder / "solution.json")
    return [str(folder / "problem.json"), str(folder / "solution.json")]


def test_a_true_solution_passes_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *written(tmp_path)]) == 0
    expected = "valid: 1 machine, proved >= 1: optimal, proof checked\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (Mix({"resnet50": 16, "vgg16": 4}), "takes 0.06"),
        (Mix({"resnet50": 9, "vgg16": 4}), "an amount that was measured there: 8, 16"),
        ("vgg16", "a mix: Mix({'vgg16': amount}) for a job alone"),
    ],
)
def test_a_false_one_does_not_and_both_checkers_say_so(
    mix: Any, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = written(tmp_path, mix)
    assert run(["check", *files]) == 1
    assert words in " ".join(capsys.readouterr().out.split())
    problem, solution = (parse_document(Path(name).read_text("utf-8")) for name in files)
    assert check_problem(problem) == []
    assert check_schedule(problem, solution["schedule"])


def test_a_method_that_does_not_take_them_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["solve", written(tmp_path)[0], "--method", "greedy"]) == 2
    assert "this problem is of type TimeSharedProblem" in capsys.readouterr().err


def test_a_report_shows_what_shares_a_block(tmp_path: Path) -> None:
    solution = read_solution(written(tmp_path)[1])
    said = " ".join(printed(solved_page(PROBLEM, solution, "two jobs")).split())
    assert "60 -> resnet50 x 8 + vgg16 x 4, 1 idle" in said
    assert "resnet50 250 250 0 % 1 x 60" in said
    (bar,) = machine_bars(solution.schedule, 5, PROBLEM)
    shown = {(box.profile, box.service, box.width) for box in bar.boxes}
    assert shown == {("40", None, 1), ("60", "resnet50 x 8 + vgg16 x 4", 1)}


def test_a_job_that_is_too_slow_is_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = TimeSharedJob("x", 1, "0.1", {"60": [(1, "0.06"), (2, "0.055")]})
    lost = PROBLEM.replace(jobs=[job, TimeSharedJob("y", 1, 1, {})])
    first = referee_of(lost).first()
    solution = replace(
        read_solution(written(tmp_path)[1]),
        status=Status.INFEASIBLE,
        schedule=Schedule(),
        cost=None,
        certificate=first.certificate,
        problem_sha256=lost.sha256,
    )
    assert solution_reasons(lost, solution) == (
        "job 'x': no batch keeps its latency limit 0.1, even alone; the quickest, on 60, needs "
        "0.11",
        "job 'y': no batch of it was measured on any block",
    )
