"""The gates: each kind of break is found, equal rows pass, and a tree equals itself."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench.gates.__main__ import NEXT, main
from bench.gates.comparing import Pair, judge
from bench.gates.in_tree import generate
from bench.row import Outcome, RunRow
from bench.task import Kind, Source, Task
from cms import solve


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
    problem = generate(kind, n=12, seed=3)
    assert problem == generate(kind, n=12, seed=3)
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
