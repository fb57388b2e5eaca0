"""Each test types commands in a folder of its own."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from cms import Configuration, Job, Problem, write_problem
from cms.cli.app import run
from cms.fleet.deployment import Instance
from tests.cli.fleets import fleet, work, written
from tests.cli.shared import (
    MATCH,
    OFFLINE,
    ONLINE,
    PAIRS,
    POINTS,
    SERVICES,
    TABLES,
    Cms,
    Said,
    words_of_command,
)


@pytest.fixture(autouse=True)
def _plain_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports have the same look wherever the tests run."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "CMS_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cms(capsys: pytest.CaptureFixture[str]) -> Cms:
    def typed(*words: str | Path | list[str], code: int | tuple[int, ...] = 0) -> Said:
        capsys.readouterr()
        command = words_of_command(*words)
        found = run(command)
        said = Said(*capsys.readouterr())
        assert found in (code if isinstance(code, tuple) else (code,)), (command, said)
        return said

    return typed


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of every kind, made once."""
    folder = tmp_path_factory.mktemp("stock")
    for name, text in {
        "s.csv": f"{SERVICES}chat,bert,100,100\nsee,vgg,50,100\n",
        "p.csv": f"{POINTS}bert,a100-80gb,3g.40gb,2,4,120,20\nvgg,a100-80gb,4g.40gb,1,8,75.5,30\n",
        "nodes.csv": "node,gpu,count,zone\nnode-a,a100-80gb,2,east\nnode-b,a100-80gb,1,west\n",
        "rates.csv": "time,service,rate_rps\n0,chat,5\n60,chat,5\n",
        "online.csv": ONLINE,
        "offline.csv": OFFLINE,
        "pairs.csv": PAIRS,
    }.items():
        (folder / name).write_text(text, "utf-8")
    write_problem(
        Problem(
            configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"7g": 1})],
            jobs=[
                Job("bert", 1200, {"3g": "310.5", "7g": 1300}),
                Job("vgg", 100, {"4g": 150, "7g": 150}),
            ],
        ),
        folder / "problem.json",
    )
    chat = [[Instance("3g.40gb", start, work())] for start in (0, 4)]
    written(fleet([chat[0], []]), folder / "now.json")
    written(fleet([[], chat[1]]), folder / "then.json")
    written(fleet([[], []]), folder / "empty.json")
    written(fleet([chat[0], []], at="2024-01-01T00:00:00Z"), folder / "old.json")
    with contextlib.chdir(folder):
        for typed in (
            f"plan {TABLES} -o plan.json",
            "plan plan.json --nodes nodes.csv -o target.json",
            "problem solve problem.json -o solution.json",
            f"{MATCH} --pairs pairs.csv --problem sharing.json -o share.json",
        ):
            assert run([*typed.split(), "-q"]) == 0
    return folder


@pytest.fixture
def here(stock: Path, tmp_path: Path) -> Path:
    """The folder that a test is in, with a copy of these files."""
    shutil.copytree(stock, tmp_path, dirs_exist_ok=True)
    return tmp_path
