"""``cms simulate`` on plans of sharing: a day, its verdict and exit code; odd options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.fleet.simulation.sharing_loop.result import read_shared_day
from tests.cli.test_share import PAIRS, typed
from tests.files.test_schemas import require_valid

TERMS = ("--term", "sample=0", "--term", "job_hours=50")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """What `cms share` has written: the options for `cms simulate`."""
    problem, plan = str(tmp_path / "problem.json"), str(tmp_path / "share.json")
    assert run(typed(tmp_path, "--problem", problem, "-o", plan, "-q")) == 0
    return [plan, "--problem", problem, "--truth", str(tmp_path / "pairs.csv"), "--hours", "1"]


def test_a_day_is_told_and_written(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "day.json"
    assert run(["simulate", *files, *TERMS, "-o", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("share.json policy offline a GPU slowdown p99 shared over limit")
    assert "600 GPUs for 1 h, with the monitor: the limit was kept: " in told
    require_valid("shared-day", json.loads(out.read_text("utf-8")))
    day = read_shared_day(out)
    assert day.policies[0].name == "muxflow"
    assert day["muxflow"].starts >= 590  # what the plan has, and what was matched anew


def test_a_limit_that_is_broken_is_exit_code_1(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = tmp_path / "slow.csv"
    slow.write_text(PAIRS.replace("1.15", "1.6").replace("1.1", "1.55"), "utf-8")
    pairs = [*files, "--pairs", files[files.index("--truth") + 1]]
    pairs[pairs.index("--truth") + 1] = str(slow)
    assert run(["simulate", *pairs, *TERMS, "--protection", "off", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["terms"]["protection"]) == ("broken", False)


def test_a_trace_and_a_problem_alone_will_do(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time,bert\n0,20\n600,25\n1200,20\n", "utf-8")
    alone = [files[2], *files[3:], "--activity", str(trace), *TERMS]
    assert run(["simulate", *alone]) == 0
    assert capsys.readouterr().out.startswith("problem.json\n")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--rate", "2"], "--rate: it is for plans of instances"),
        (["--protection", "maybe"], "--protection: 'maybe': expected on or off"),
        (["--term", "job_hour=4"], "there is no 'job_hour'; nearest: 'job_hours'"),
        (["--limit-by", "expected"], "--limit-by: it goes with --predictor"),
    ],
)  # fmt: skip
def test_odd_options_are_bad_usage(
    more: list[str], words: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *files, *more]) == 2
    assert words in capsys.readouterr().err


def test_a_day_does_not_take_the_place_of_its_plan(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(files[0]).read_text("utf-8")
    assert run(["simulate", *files, "-o", files[0]]) == 2
    assert "would be lost" in capsys.readouterr().err
    assert Path(files[0]).read_text("utf-8") == before


def test_what_is_missing_is_said(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", files[0], *files[3:]]) == 2
    assert "says who shares a GPU, and not what there is; --problem FILE" in capsys.readouterr().err
    assert run(["simulate", *files[:3]]) == 2
    assert "what happens is for --truth P.csv to say" in capsys.readouterr().err
