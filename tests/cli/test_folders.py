"""``cms pack``, ``cms solve`` and ``cms check`` of problems whose jobs are in a folder."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import open_problem
from cms.cli.app import run

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

HEAD = (
    '{"format": "cms-problem", "schema": 1, "jobs": [], "configurations": '
    '[{"blocks": {"1g": 7}}, {"blocks": {"3g": 2, "1g": 1}}]}'
)


@pytest.fixture
def head(tmp_path: Path) -> str:
    path = tmp_path / "head.json"
    path.write_text(HEAD)
    return str(path)


def written(path: Path, **columns: Any) -> str:
    parquet.write_table(pyarrow.table(columns), path)
    return str(path)


def jobs(tmp_path: Path) -> list[str]:
    """Two files whose columns are of different kinds."""
    many = {"demand": pyarrow.array(range(1, 401), "int32"), "1g": [0.75] * 400}
    one = written(tmp_path / "a.parquet", **many, **{"3g": pyarrow.array([5] * 400, "int8")})
    exact = {"demand": ["1/3", "7.5"], "1g": [Decimal("0.1"), Decimal("2.25")]}
    two = written(tmp_path / "b.parquet", **exact, **{"3g": pyarrow.array([0.1, 2.5], "float32")})
    return [one, two]


def test_tables_are_packed_solved_and_rechecked(
    tmp_path: Path, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet, plan = str(tmp_path / "fleet"), str(tmp_path / "plan")
    assert run(["pack", *jobs(tmp_path), "--head", head, "-o", fleet]) == 0
    assert capsys.readouterr().out == (
        f"{fleet}: 402 jobs in 1 shard; next: cms solve {fleet} -o plan\n"
    )
    problem = open_problem(fleet)
    last = [problem.row(job) for job in (400, 401)]
    assert [Fraction(row.demand, row.denominator) for row in last] == [
        Fraction(1, 3), Fraction(15, 2),
    ]  # fmt: skip
    # 0.1 of 32 bits is the shortest decimal of its own, not of the float of 64 bits beside it
    assert [Fraction(f, last[0].denominator) for f in last[0].supply] == [Fraction(1, 10)] * 2
    assert run(["solve", fleet, "-o", plan]) == 0
    assert "status       optimal (checked proof)" in capsys.readouterr().out
    assert run(["check", fleet, plan]) == 0
    assert "optimal, proof checked" in capsys.readouterr().out
    document = json.loads((tmp_path / "plan" / "solution.json").read_text())
    document["lower_bound"] = document["cost"] = document["cost"] - 1
    document["machine_count"] -= 1
    document["schedule"]["machines"][0]["count"] -= 1
    document["history"] = []
    (tmp_path / "plan" / "solution.json").write_text(json.dumps(document))
    assert run(["check", fleet, plan]) == 1
    assert "given to jobs" in capsys.readouterr().out


def test_json_and_quiet(tmp_path: Path, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    fleet, plan = str(tmp_path / "fleet"), str(tmp_path / "plan")
    assert run(["pack", *jobs(tmp_path), "--head", head, "-o", fleet, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["jobs"], said["shards"]) == (402, 1)
    assert said["problem_sha256"] == open_problem(fleet).sha256
    assert run(["solve", fleet, "-o", plan, "--journal", str(tmp_path / "run"), "--json"]) == 0
    solution = json.loads(capsys.readouterr().out)
    assert solution["status"] == "optimal"
    assert sum(group["count"] for group in solution["schedule"]["machines"]) == solution["cost"]
    assert run(["check", fleet, plan, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["valid"]
    assert run(["solve", fleet, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a null": (
        {"demand": [1, None], "1g": [1, 2], "3g": [1, 2]},
        "row 1: job 'j1' has no 'demand'",
    ),
    "a slip": ({"demand": [1], "1g": [1], "3G": [2]}, "no column '3g'; nearest: '3G'"),
    "names": (
        {"demand": [1], "1g": [1], "3g": [2], "name": ["x"]},
        "has a column 'name', which is no block",
    ),
    "a stranger": (
        {"demand": [1], "1g": [1], "3g": [2], "4g": [2]},
        "a column '4g', which is no block",
    ),
    "below 0": (
        {"demand": [-1], "1g": [1], "3g": [2]},
        "bad.parquet: row 0: demand of job 'j0' is -1",
    ),
    "not finite": (
        {"demand": [1.0], "1g": [float("inf")], "3g": [2]},
        "row 0: supply of block '1g' to job 'j0' is inf",
    ),
    "truth": ({"demand": [True], "1g": [1], "3g": [2]}, "holds bool"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_refused_and_leaves_nothing(
    tmp_path: Path, head: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    columns, words = BAD[name]
    table = written(tmp_path / "bad.parquet", **columns)
    assert run(["pack", table, "--head", head, "-o", str(tmp_path / "fleet")]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.parquet", "head.json"]


def test_what_is_not_where_it_is_looked_for_is_named(
    tmp_path: Path, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet, files = str(tmp_path / "fleet"), jobs(tmp_path)
    assert run(["pack", *files, "--head", head, "-o", fleet, "-q"]) == 0
    there = {path.name for path in tmp_path.iterdir()}
    for arguments, words in (
        (["pack", files[0], "nowhere", "--head", head, "-o", fleet + "2"], "nowhere: there is no"),
        (["pack", *files, "--head", head, "-o", "-"], "a folder cannot be printed"),
        (["solve", f"{fleet}/problem.json"], 'is "cms-problem-folder", expected "cms-problem"'),
        (["solve", fleet, "--journal", head], "head.json: this is a file"),
        (["solve", str(tmp_path)], "has no problem.json"),
        (["check", fleet, fleet], "has no solution.json"),
    ):
        assert run(arguments) == 1, arguments
        error = capsys.readouterr().err
        assert words in error, error
        assert error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == there


def test_what_does_not_fit_together_is_bad_usage(
    tmp_path: Path, head: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = str(tmp_path / "fleet")
    files = jobs(tmp_path)
    assert run(["pack", *files, "--head", problem, "-o", fleet]) == 2
    assert "expected none: they come from the tables" in capsys.readouterr().err
    assert run(["pack", *files, "--head", head, "-o", fleet]) == 0
    assert run(["pack", *files, "--head", head, "-o", fleet]) == 1
    assert "is there already" in capsys.readouterr().err
    for arguments, words in (
        (["solve", fleet, "--picture", "x.svg"], "there is no picture"),
        (["solve", fleet, "--start", problem], "solved from nothing"),
        (["solve", problem, "--journal", "x"], "is for problem folders"),
        (["solve", problem, "--cluster", "x"], "is for problem folders"),
        (["solve", fleet, "-m", "greedy"], "ShardedProblem"),
        (["check", fleet], "give its solution folder"),
        (["check", fleet, problem], "give its solution folder"),
    ):
        assert run(arguments) == 2, arguments
        assert words in capsys.readouterr().err
