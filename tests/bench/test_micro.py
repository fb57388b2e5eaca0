"""The micro-benchmarks run, and what is compared is compared rightly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench.micro.__main__ as micro
from bench.micro import hot_paths
from instances.families import generate


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
