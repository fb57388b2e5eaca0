"""The documents tell the truth: their code runs, what they name exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cms.cli.app import run
from cms.cli.init import settings_template
from cms.fleet import RULES, build_problem, read_operating_points, read_services, simulate
from cms.fleet.serving import read_plan
from cms.fleet.serving.csv_input import POINT_COLUMNS, SERVICE_COLUMNS
from cms.fleet.serving.rate_curve import whole_gpus
from cms.fleet.simulation import Verdict
from tests.documentation.pages import DOCUMENTS, README, blocks, shown
from tests.source_tree import ROOT

#: A theorem's solvers, which tests of their own run.
LONG = "docs/methods/proofs.md"
COMMANDS = ROOT / "docs" / "reference" / "commands.md"
PYTHON = [document for document in DOCUMENTS if blocks(document, "python")]


@pytest.mark.parametrize(
    "document",
    [pytest.param(each, marks=[pytest.mark.long] * (shown(each) == LONG)) for each in PYTHON],
    ids=shown,
)
def test_the_python_in_a_document_runs(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where a warning is an error too; one block after the other."""
    monkeypatch.chdir(ROOT)
    module = ModuleType("typed_by_a_reader")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in blocks(document, "python"):
        exec(compile(code, shown(document), "exec"), module.__dict__)


def test_every_test_behind_a_promise_exists() -> None:
    promises = (ROOT / "docs" / "methods" / "promises.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promises)
    assert named, "the page names the test behind each promise"
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / path).exists() or f"def {test}(" not in (ROOT / path).read_text("utf-8")
    ]
    assert not missing


def test_every_command_that_is_named_exists_and_is_named() -> None:
    command_line = Path(sys.executable).with_name("cms")
    run = subprocess.run([command_line, "--help"], capture_output=True, text=True, check=True)
    there = set(re.findall(r"^  ([a-z]+)  ", run.stdout, re.MULTILINE))
    for page in (README, COMMANDS):
        assert set(re.findall(r"`cms ([a-z]+)", page.read_text("utf-8"))) == there


def test_the_settings_of_a_fleet_are_shown_as_cms_init_writes_them() -> None:
    assert blocks(COMMANDS, "toml") == [settings_template("", asked=False)]


TYPED = {
    "deployment": [
        "2 x a100-80gb on 1 node, 2 changed",
        "not there: 1 fault\n- node-a/3 has 3g.40gb@4 of unknown, needs nothing there",
        "running instances kept (maximum, proof checked)",
    ],
    "time-sharing": [
        "2 GPUs, lower bound 2: optimal, proof checked",
        "1 GPU, lower bound 1: optimal, proof checked",
        "valid: 1 GPU",
        "b=8 of a 32.5 ms duty cycle",
    ],
    "transitions": ["2 -> 16 GPUs, floor 100 %: ", " s (assumed); 0 spare"],
    "replanning": ["change: 2 GPUs -> 4 GPUs"],
}


@pytest.mark.parametrize("name", TYPED)
def test_what_a_guide_types_in_an_empty_folder_does_what_it_says(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "guides" / f"{name}.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    said = typed(page, capsys)
    plain = " ".join(said.split())  # tables fold what is long
    assert not [w for w in TYPED[name] if not (" ".join(w.split()) in plain and w in page)]


def typed(page: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Do what the shell blocks of a page say in this folder, and return what was printed."""
    said = ""
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S):
        for name, text, command in re.findall(
            r"^cat > (\S+) <<END\n(.*?)^END\n|^cms ([^\n]*)\n", block, re.M | re.S
        ):
            if name:
                Path(name).write_text(text, "utf-8")
                continue
            if "replan --trace" in command:  # the same as above, on a larger fleet
                continue
            line, _, may_fail = command.partition("||")
            assert run(shlex.split(line, comments=True)) == (1 if may_fail else 0), line
            said += capsys.readouterr().out
    return said


@pytest.mark.parametrize("requests", [0, pytest.param(400_000, marks=pytest.mark.long)])
def test_the_headline_and_its_picture_are_what_the_command_plans(
    tmp_path: Path, requests: int
) -> None:
    text = README.read_text("utf-8")
    gpus, whole, published, kept = (
        int(re.findall(pattern, text)[0])
        for pattern in (
            r"(\d+) GPUs inst",
            r"instead of (\d+)",
            r"plans (\d+) GPUs",
            r"s (\d+) of 11",
        )
    )
    (command,) = re.findall(r"^cms (plan --published S5 .*?) *#", text, re.M)
    assert f"cms {command} --picture" in (ROOT / "Makefile").read_text("utf-8")
    for words, found in (command, gpus), ("plan --published S5", published):
        path, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
        assert run([*words.split(), "-q", "-o", str(path), "--picture", str(picture)]) == 0
        plan = read_plan(path)
        assert (plan.solution.status, plan.solution.machine_count) == ("optimal", found)
        if found == gpus:
            assert whole_gpus(plan).gpus == whole
            title = re.findall("<title>.*</title>", picture.read_text("utf-8"))[0]
            assert title in (ROOT / "docs" / "images" / "plan-s5.svg").read_text("utf-8")
        if requests:
            replayed = simulate(plan, requests=requests)
            assert replayed.count(Verdict.MET) == (11 if found == gpus else kept)


def test_what_the_readme_types_in_an_empty_folder_plans_without_a_warning(tmp_path: Path) -> None:
    (commands,) = (
        block
        for block in re.findall(r"^```sh\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
        if "services.csv" in block
    )
    folder = Path(sys.executable).parent
    run = subprocess.run(
        ["sh", "-e", "-c", commands],
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (run.returncode, "warning" in run.stderr) == (0, False), run.stderr
    assert "optimal, proof checked" in run.stdout
    assert "every schedule costs at least 4; it holds up to " in run.stdout
    assert (tmp_path / "plan.svg").exists()


@pytest.mark.long
def test_a_users_type_checker_follows_the_package_from_an_empty_folder(tmp_path: Path) -> None:
    """It reads paths alone: an editable install by an import hook is invisible to it."""
    for number, code in enumerate(blocks(README, "python")):
        (tmp_path / f"mine_{number}.py").write_text(code, "utf-8")
    cache = ROOT / ".mypy_cache" / "outside"
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "."],
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, f"{run.stdout}{run.stderr}(is it installed by `make install`?)"


_FURTHER = ("latency_limit_ms", "allowed_profiles", "late_share", "queue")


def test_the_tables_page_has_every_column_and_rule_and_its_example_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "tables.md").read_text("utf-8")
    for name in (*SERVICE_COLUMNS, *_FURTHER, *POINT_COLUMNS, *RULES):
        assert f"\n| `{name}` " in page, f"docs/reference/tables.md has no line for {name}"
    example = re.search(r"^```\n(.*?)^```$", page, re.M | re.S)
    assert example is not None
    for name, table in zip(("services", "points"), example.group(1).split("\n\n"), strict=True):
        (tmp_path / name).write_text(table, "utf-8")
    services = read_services(tmp_path / "services")
    serving = build_problem(services, read_operating_points(tmp_path / "points"))
    used = [block for _, block in serving.points]
    assert used == ["3g.40gb", "1g.10gb", "3g.40gb"]
