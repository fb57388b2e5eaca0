"""The gates, and the micro-benchmarks: each kind of break, and what became slow, is found."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import bench.micro.__main__ as micro
from bench.gates.__main__ import NEXT, main
from bench.gates.comparing import Pair, judge
from bench.gates.in_tree import generate as generate_next
from bench.micro import hot_paths
from bench.row import Outcome, RunRow
from bench.task import Kind, Source, Task
from cms import solve
from instances.families import generate


def row(number: int, **found: Any) -> RunRow:
    source = Source(family="sparse", arguments={"n": 9, "seed": number})
    how = {"kind": Kind.SOLVE, "source": source, "method": "auto", "time_limit": 2}
    task = Task(suite="quality", fresh=True, **how)  # type: ignore[arg-type]
    return RunRow.of(task, **{
        "outcome": Outcome.ANSWERED, "status": "optimal", "proof": "checked", "seconds": 1.0,
        "cost": Fraction(100), "lower_bound": Fraction(100), "instance_sha256": "a",
        "guarantee": {"factor": "2", "verdict": "kept"}, "peak_memory": 10**8,
        "history": ((0.1, None, 90, "trivial"), (0.2, 100, 100, "auto: 3 passes")),
        "measurements": {"cpu_seconds": 1.0, "spare": 5, "kept": 7}, **found,
    })  # fmt: skip


def broken(found: dict[str, Any], times: int = 10, section: str = "quality") -> str:
    """What is said of ten equal pairs after so many of them have changed."""
    pairs = [Pair(row(i), row(i, **(found if i < times else {}))) for i in range(10)]
    return "; ".join(line.broken for line in judge(section, pairs))


def test_equal_rows_break_nothing_and_one_lost_proof_is_within_the_band() -> None:
    assert not broken({}).strip("; ")
    assert not broken({"status": "feasible"}, 1).strip("; ")
    assert "proofs" in broken({"cost": None, "status": "no_schedule"}, section="theory")


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"status": "feasible", "proof": "none"}, "proofs"),
        ({"proof": "solver"}, "proofs"),
        ({"cost": Fraction(101)}, "cost"),
        ({"cost": None, "status": "no_schedule"}, "proofs"),
        ({"lower_bound": Fraction(98), "status": "feasible"}, "bound"),
        ({"instance_sha256": "b"}, "not comparable"),
        ({"outcome": Outcome.FAILED, "error": "refused"}, "failed"),
        ({"outcome": Outcome.UNSUPPORTED}, "unsupported"),
        ({"guarantee": {"factor": "3", "verdict": "kept"}}, "another guarantee"),
        ({"seconds": 2.6}, "time limit"),
        ({"peak_memory": 2 * 10**8}, "memory"),
        ({"measurements": {"cpu_seconds": 1.3}}, "CPU"),
        ({"measurements": {"cpu_seconds": 1.0, "spare": 6}}, "spare"),
        ({"measurements": {"cpu_seconds": 1.0, "kept": 6}}, "kept"),
    ],
)
def test_each_kind_of_break_is_found(found: dict[str, Any], word: str) -> None:
    assert word in broken(found, section="time" if word == "time limit" else "quality")


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({"cost": Fraction(101), "lower_bound": Fraction(101)}, "rules out"),
        ({"cost": Fraction(99), "lower_bound": Fraction(99)}, "rules out"),
        ({"cost": None, "status": "infeasible"}, "rules out"),
        ({"guarantee": {}, "stop_reason": "finished"}, "no guarantee"),
    ],
)
def test_one_unsound_answer_of_ten_is_found(found: dict[str, Any], word: str) -> None:
    assert word in broken(found, times=1)


@pytest.mark.parametrize("kind", NEXT)
def test_the_next_kinds_have_schedules(kind: str) -> None:
    problem = generate_next(kind, n=12, seed=3)
    assert problem == generate_next(kind, n=12, seed=3)
    assert solve(problem, time_limit=5).cost


def test_a_tree_equals_itself_and_rows_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.gates.__main__.PROGRAMS", {"reader": [["reader solve"]] * 2})
    rows = tmp_path / "rows.jsonl"
    given = ["HEAD", "--section", "reader", "--old-python", sys.executable, "--output", str(rows)]
    assert main(given) == 0
    assert "0 broken" in capsys.readouterr().out
    key, (old, new) = json.loads(rows.read_text())
    assert old == new
    rows.write_text(json.dumps([key, [old, {**new, "modules, solve": 10**6}]]) + "\n")
    assert main(given) == 1  # the row is not measured again


def test_every_hot_path_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a few jobs; the long run takes as many as are measured."""
    monkeypatch.setattr(
        hot_paths, "problem", lambda n: generate("real-rows", n=min(n, 20), seed=1, m=5)
    )
    paths = [path for name, path in vars(hot_paths).items() if name.startswith("test_")]
    for path in paths:
        cases = [mark.args for mark in getattr(path, "pytestmark", [])] or [("", [None])]
        ((name, values),) = cases
        for value in values:
            path(
                lambda function, *given, **named: function(*given, **named),
                **({name: value} if name else {}),
            )


def test_a_baseline_is_saved_and_what_became_slow_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"test_yardstick": 0.1, "test_check": 0.2, "test_solve[auto]": 0.05}
    monkeypatch.setattr(micro, "measure", lambda: dict(found))
    path = tmp_path / "baseline.json"
    assert micro.main(["--save", "--baseline", str(path)]) == 0
    kept = json.loads(path.read_text())["in_yardsticks"]
    assert kept == {"test_check": 2, "test_solve[auto]": 0.5}
    # a machine twice as slow in everything is no slower path
    found = {name: 2 * seconds for name, seconds in found.items()}
    assert micro.main(["--baseline", str(path)]) == 0
    found["test_check"] *= 2.5
    assert micro.main(["--baseline", str(path)]) == 1
    assert micro.main(["--baseline", str(path), "--slower", "3"]) == 0
    assert "2.5x" in capsys.readouterr().out


def test_the_baseline_kept_here_knows_every_hot_path() -> None:
    kept = json.loads(micro.BASELINE.read_text("utf-8"))["in_yardsticks"]
    source = (Path(micro.__file__).parent / "hot_paths.py").read_text("utf-8")
    names = {name.partition("[")[0] for name in kept}
    assert names == {
        line.removeprefix("def ").partition("(")[0]
        for line in source.splitlines()
        if line.startswith("def test_") and "yardstick" not in line
    }
