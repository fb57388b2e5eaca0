"""The command end to end: every suite at its smallest, failures kept, killed and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bench.suites
from bench.command import main
from bench.row import Outcome, RunRow
from bench.runs import perform
from bench.suites import SUITES
from bench.task import NAMED, Task
from cms import Problem, TimeSharedProblem, solve
from tests.bench.conftest import ROOT, TINY
from tests.samples import few, so_many

Bench = Callable[..., subprocess.CompletedProcess[str]]
Rows = Callable[[str], list[RunRow]]

SMALLEST: dict[str, tuple[Any, ...]] = {
    "overview": ("--instances", 3, "--largest", 4),
    "published": ("-a", "auto", "-a", "greedy"),
    "proof": ("--instances", 6, "--peers", "highs", "--peer-share", 0.5),
    "ratios": ("--instances", 4, "--largest", 4),
    "scale": ("--largest", 1000, "--seeds", 1),
    "shards": ("--largest", 1000),
    "peers": ("--largest", 20, "--seeds", 1, "--peers", "cp_sat,highs"),
    "growth": ("--largest", 3162, "--seeds", 1),
    "fleets": ("--largest", 20, "--seeds", 1, "--instances", 3),
    "size-bounded": ("--largest", 5, "--seeds", 1),
    "small": ("--seeds", 1),
    "mig-serving": ("--largest", 24, "--seeds", 1, "-a", "auto"),
    "gpulet": ("--largest", 5, "--seeds", 1, "--instances", 1, "-a", "auto"),
    "stock": ("--largest", 20, "--seeds", 1),
    "replay": ("--largest", 1, "--seeds", 1),
    "transitions": ("--largest", 1, "--seeds", 1),
    "promises": ("--largest", 2, "--instances", 1, "--requests", 500),
    "day": ("--largest", 1, "--instances", 2),
    "colocation": ("--largest", 1000, "--seeds", 1, "--instances", 1),
}


#: Suites of every shape that take no second; the others are of the long run.
QUICK = ("size-bounded", "peers", "fleets", "proof", "stock", "overview", "gpulet", "replay")


def test_every_suite_is_run_here() -> None:
    assert set(SMALLEST) == set(SUITES) > set(QUICK)


class Said(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


Here = Callable[..., Said]


@pytest.fixture
def here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Here:
    """Run the command, and its tasks, in this process; tasks and rows are sent as text still."""

    def run_task(task: Task, threads: int) -> RunRow:
        sent = Task.from_json(json.loads(json.dumps(task.to_json())))
        return RunRow.from_line(perform(sent, threads, lambda stage, facts: None).to_line())

    def run(*arguments: object) -> Said:
        code = main([*TINY, "--out", str(tmp_path / "rows"), *map(str, arguments)])
        return Said(code, *capsys.readouterr())

    monkeypatch.setattr("bench.execution.run_task", run_task)
    return run


@cache
def optimum(problem: Problem | TimeSharedProblem) -> Fraction | None:
    """What every method is held against, found once."""
    return solve(problem).cost


@pytest.mark.parametrize("suite", few(len(QUICK), [*QUICK, *(s for s in SUITES if s not in QUICK)]))
def test_a_suite_runs_from_end_to_end(
    suite: str, here: Here, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("published", "transitions"):
        scenarios = getattr(bench.suites, name).SCENARIOS[: so_many(3, 6)]
        monkeypatch.setattr(f"bench.suites.{name}.SCENARIOS", scenarios)
    monkeypatch.setattr("bench.suites.small.WARM", so_many(2, 10))
    loops = bench.suites.replay._LOOPS
    fewer = {name: requests // so_many(50, 1) for name, requests in loops.items()}
    monkeypatch.setattr("bench.suites.replay._LOOPS", fewer)
    run = here("--suite", suite, "--time-limit", 20, *SMALLEST[suite], "--json")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    found = rows(suite)
    assert document["runs"] == len(found) > 0
    # Some algorithms of the theory and rules take some problems only, and most do not look for the
    # optimum; nor do the published schedulers.
    theory = suite in ("ratios", "overview", "published", "mig-serving", "gpulet")
    fine = {Outcome.ANSWERED, Outcome.UNSUPPORTED} if theory else {Outcome.ANSWERED}
    assert {row.outcome for row in found} <= fine
    for table in document["tables"]:
        assert table["caption"]
        assert table["rows"]
    for row in found:
        if row.outcome is Outcome.UNSUPPORTED:
            assert row.error
            continue
        assert row.seconds is not None
        if row.kind != "solve" or row.module == NAMED:
            continue
        problem = import_module(row.module).generate(row.family, **row.arguments)
        assert row.instance_sha256 == problem.sha256
        assert row.checker == ("independent" if row.arguments.get("n", 0) <= 2000 else "cms")
        best = optimum(problem)
        if theory and best is not None:
            assert row.cost is not None
            assert row.cost >= best
        else:
            assert row.cost == best
        assert row.peak_memory is not None
        assert row.peak_memory > 10**7


ALL = ("--suite", "all", "--largest", "5", "--instances", "2", "--seeds", "1", "--peers", "none")


@pytest.fixture
def _three_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    three = {name: SUITES[name] for name in ("size-bounded", "peers", "proof")}
    monkeypatch.setattr("bench.command.SUITES", three)


@pytest.mark.usefixtures("_three_suites")
def test_all_suites_with_something_to_run_run_one_after_another(here: Here, tmp_path: Path) -> None:
    said = here(*ALL, "--json")
    assert said.code == 0
    assert [document["suite"] for document in json.loads(said.out)] == ["size-bounded", "proof"]
    assert said.err == (
        "bench: --largest 5 leaves nothing of suite 'peers' to run; it is left out\n"
    )
    found = {path.stem for path in (tmp_path / "rows").glob("*.jsonl")}
    assert found == {"size-bounded", "proof"}


def test_tables_can_be_had_for_a_paper(here: Here, tmp_path: Path) -> None:
    run = here("--suite", "size-bounded", "--largest", 3, "--seeds", 1, "--latex", "--figures")
    assert run.code == 0
    assert run.out.count(r"\begin{tabular}") == run.out.count(r"\bottomrule") == 1
    assert "size-bounded-mixed & auto & 1 & 1 & 100 \\% & 0 & 0 & 0" in run.out
    assert not (tmp_path / "rows" / "figures").exists(), "this suite has none"


WHY = {
    "liar": "claims a schedule of cost 0 that is not valid",
    "dies": "the process ended with code 3: my last words",
}


def test_a_bad_algorithm_leaves_failed_rows_and_the_suite_goes_on(bench: Bench, rows: Rows) -> None:
    few = ("--suite", "proof", "--instances", 1, "--largest", 3, "--peers", "none")
    run = bench(*few, "-a", "liar", "-a", "dies", "-a", "auto")
    assert run.returncode == 1
    for words in ("sparse", "worst gap", "2 failed runs", "3 runs; their rows"):
        assert words in run.stdout
    found = {(row.family, row.algorithm): row for row in rows("proof")}
    assert len(found) == 3
    for (_, algorithm), row in found.items():
        if algorithm == "auto":
            assert row.outcome is Outcome.ANSWERED
            continue
        assert row.outcome is Outcome.FAILED
        assert row.error is not None
        assert WHY[algorithm] in row.error
        assert row.instance_sha256 is not None, "what was known before it failed is kept"


def test_runs_without_a_row_are_told_and_the_exit_code_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [ValueError("no\nspace"), ValueError("none")]
    monkeypatch.setattr("bench.session.execute", lambda *arguments, **options: lost)
    assert main([*TINY, "--out", str(tmp_path), "--suite", "size-bounded"]) == 1
    assert capsys.readouterr().err == (
        "bench: 2 runs of suite 'size-bounded' have no row, for they could not be started or were "
        "lost (ValueError: no space); --resume runs them\n"
    )


def test_kept_rows_in_any_order_give_the_same_tables_and_those_of_other_code_are_told(
    here: Here, rows: Rows, tmp_path: Path
) -> None:
    arguments = ("--suite", "overview", *SMALLEST["overview"], "--time-limit", 5, "--json")
    first = here(*arguments)
    *others, last = rows("overview")
    older = replace(last, versions={**last.versions, "code": "0123456789ab"})
    path = tmp_path / "rows" / "overview.jsonl"
    path.write_text("".join(f"{row.to_line()}\n" for row in (older, *reversed(others))))
    again = here(*arguments, "--resume")
    assert first.code == again.code == 0, again.err
    assert again.out == first.out
    assert (first.err, again.err.count("\n")) == ("", 1)
    assert again.err.startswith("bench: 1 of the rows kept are of other code")


def test_ctrl_c_ends_with_its_code_and_leaves_no_process(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    path = tmp_path / "rows" / "proof.jsonl"
    runs = ("--suite", "proof", "--instances", "6", "--peers", "none", "-a", "stops")
    command = [sys.executable, "-m", "bench", *TINY, "--out", str(path.parent), *runs]
    stops = {**environment, "BAD_PLUGIN_STOPS": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=stops, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    ) as run:  # fmt: skip
        while not (path.exists() and path.read_bytes()):
            assert run.poll() is None, "it ended before it could be interrupted"
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
    assert run.returncode == 130
    assert said == "bench: interrupted; --resume goes on where it was\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--suite", "proof", "--latex", "--json"), "at most one of the two"),
        (("--suite", "speed"), "there is no 'speed'; there are overview, ratios, published"),
        (("--suite", "proof", "-a", "autoo"), "method 'autoo' is unknown; nearest: 'auto'"),
        (("--suite", "day", "-a", "auto"), "'auto' is not compared in suite 'day'; expected of "),
        (("--suite", "proof", "--peers", "cplex"), "there is no 'cplex'; there are highs"),
        (("--suite", "proof", "--time-limit", "0"), "--time-limit: 0.0: expected seconds > 0"),
        (("--suite", "proof", "--seeds", "0"), "--seeds"),
        (("--suite", "proof", "--families", "json"), "json has no generate and no suite"),
        (("--suite", "proof", "--families", "no.such"), "'no.such' cannot be imported"),
        (("--suite", "proof", "--families", "bad_syntax"), "imported: SyntaxError: "),
        (("--suite", "peers", "--largest", "3"), "--largest 3 leaves nothing of suite 'peers'"),
        (("--suite", "small", "--out", __file__), "test_command.py"),
    ],
)
def test_wrong_input_is_refused_with_a_message(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "bad_syntax.py").write_text("def\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main([*TINY, "--out", str(tmp_path), "--peers", "none", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("bench: ")
    assert message in said.err
    assert said.err.count("\n") == 1
