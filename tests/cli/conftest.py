"""Each test types commands in a folder of its own."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from bench.importers import write_measured_pairs
from cms import Configuration, Job, Problem, write_problem
from cms.cli.app import run
from cms.fleet.colocation import write_profiles
from cms.fleet.deployment import Instance
from tests.cli import shared
from tests.cli.shared import LGI, LOG, MATCH, TABLES, Cms, Said, fleet, put, work, written
from tests.fleet.colocation.pairs import by_rule


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
        command = shared.words_of_command(*words)
        found = run(command)
        said = Said(*capsys.readouterr())
        assert found in (code if isinstance(code, tuple) else (code,)), (command, said)
        return said

    return typed


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of every kind, made once."""
    folder = tmp_path_factory.mktemp("stock")
    shutil.copytree(shared.FILES / "stock", folder, dirs_exist_ok=True)
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
    put(folder / "lgi.txt", LGI)
    put(folder / "gpus.xml", LOG)
    measured, profiles = by_rule()
    write_measured_pairs(measured, folder / "P.csv")
    write_profiles(profiles, folder / "W.csv")
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
