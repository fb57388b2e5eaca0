"""The help pages, what a shell completes, and the lists of GPUs, algorithms and the version."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import _application
from cms.cli.options import load_declarations
from cms.fleet import list_gpus
from instances.published import S1, S2, S3, S4, S5, S6
from tests.cli.shared import Cms

ROOT: Any = _application()


def commands(group: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by what is typed."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())


def options_of(command: Any) -> set[str]:
    return {each for one in command.params if one.param_type_name == "option" for each in one.opts}


def test_command_line_has_at_most_14_commands_and_90_options() -> None:
    assert len(ROOT.commands) <= 14
    every = {each for one in COMMANDS.values() for each in options_of(one)}
    assert len({each for each in every if each.startswith("--")}) <= 90


@pytest.mark.parametrize("group", ["", "colocate", "problem"])
def test_help_lists_whole_summaries(group: str, cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = cms(group, "--help").out
    assert max(map(len, out.splitlines())) <= 80
    lines = re.findall(r"^  (\w+)  +(\S.*)$", out, re.MULTILINE)
    summaries = {name: text for name, text in lines if not name.startswith("-")}
    assert summaries.keys() == (ROOT.commands[group] if group else ROOT).commands.keys()
    assert all(text.endswith(".") and "..." not in text for text in summaries.values())


@pytest.mark.parametrize("typed", COMMANDS)
def test_help_has_examples_that_parse(
    typed: str, cms: Cms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = COMMANDS[typed]
    out = cms(typed, "--help").out
    summary = command.help.strip().splitlines()[0]
    assert summary.endswith(".")
    assert len(summary) <= 80 - len(max(ROOT.commands, key=len)) - 4
    assert f"\n  {summary}\n" in out
    lines = out.splitlines()
    assert len(lines) <= (50 if typed == "plan" else 45)
    assert max(map(len, lines)) <= 80
    assert not any(odd in out for odd in ("[[", "......", "...}...", "<", "\n" + " " * 9))
    assert "--json" in options_of(command)
    examples = re.findall(r"^  (cms .+)$", out.partition("Examples:\n")[2], re.MULTILINE)
    assert examples == load_declarations()[command.name]["examples"]
    assert f"cms {typed}" in examples[0]
    for example in examples:
        parse(shlex.split(example)[1:])


def test_each_command_has_two_examples() -> None:
    said = load_declarations()
    assert said.keys() == {"common", *(command.name for command in COMMANDS.values())}
    assert all(len(said[each.name]["examples"]) >= 2 for each in COMMANDS.values())


def parse(words: list[str]) -> None:
    """Refuse what the command line refuses before it does anything."""
    command = ROOT
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(command.name, words)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pl", ["plan"]),
        ("re", ["replan"]),
        ("colocate m", ["match"]),
        ("plan --me", ["--method"]),
        ("plan --method branch", ["branch_and_price"]),
        ("plan -g h100-9", ["h100-94gb", "h100-96gb"]),
        ("gpus a30", ["a30-24gb"]),
        ("plan --rule ha", ["half"]),
        ("plan --published S", [one.name for one in (S1, S2, S3, S4, S5, S6)]),
        ("plan --free n", ["nodes"]),
        ("apply --tool mig", ["mig-parted"]),
        ("export --to k", ["kubernetes"]),
        ("simulate --routing two", ["two_choices"]),
        ("problem solve --published greedy", ["greedy-trap-3", "greedy-trap-4"]),
        ("problem solve --published S", []),
        ("replan --forecast d", ["daily"]),
    ],
)
def test_shell_completes_commands_options_and_names(
    words: str, offered: list[str], cms: Cms, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"cms {words}"
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    monkeypatch.setenv("_CMS_COMPLETE", "complete_bash")
    assert cms().out.split() == offered


def test_catalogue_is_listed_and_each_gpu_shown(cms: Cms) -> None:
    assert cms("gpus -q").out.split() == [gpu.key for gpu in list_gpus()]
    assert re.search(r"a100-80gb +ampere +7 \+ 8 +1g.10gb 2g.20gb", cms("gpus").out)
    assert "12 maximal configurations" in cms("gpus A100-SXM4-80GB").out
    (gpu,) = cms("gpus a30-24gb --json").json["gpus"]
    assert (gpu["key"], len(gpu["configurations"]), len(gpu["maximal_layouts"])) == (
        "a30-24gb", 4, 5,
    )  # fmt: skip


def test_algorithms_are_listed_with_their_options(cms: Cms) -> None:
    out = cms("problem algorithms").out
    assert re.search(r"^auto\n", out)
    assert "--option workers=" in out
    listed = cms("problem algorithms --json").json["algorithms"]
    options = next(one["options"] for one in listed if one["name"] == "cp_sat")
    assert type(options["workers"]) in (int, type(None))
    assert {"auto", "cp_sat"} <= {one["name"] for one in listed if one["trusted"]}


def test_version_is_the_distributions_and_no_command_is_the_help(cms: Cms) -> None:
    assert re.fullmatch(r"configurable-machines \d+\.\d+\.\d+\n", cms("--version").out)
    assert cms("--version --json").json["name"] == "configurable-machines"
    assert "Research:" in cms(code=2).out


def test_errors_are_json_where_json_is_wanted(here: Path, cms: Cms) -> None:
    text = (here / "s.csv").read_text("utf-8").replace(",50,", ",many,")
    (here / "s.csv").write_text(text, "utf-8")
    out, err = cms("plan -s s.csv -p p.csv --json", code=1)
    document = json.loads(err)
    assert (out, document["exit_code"], document["error"]["kind"]) == ("", 1, "FileError")
    assert (document["error"]["line"], document["error"]["path"]) == (3, "s.csv")
    for typed in ("plan --json --frob", "show plan.json -o - --json"):
        assert json.loads(cms(typed, code=2).err)["error"]["kind"] == "UsageError"


def test_a_bug_is_one_line_and_not_a_traceback(cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("the floor is lava")

    monkeypatch.setattr("cms.plugin.registry.algorithm_details", broken)
    said = cms("problem algorithms", code=1).error
    assert "RuntimeError: the floor is lava (this is a bug" in said
    monkeypatch.setenv("CMS_TRACEBACK", "1")
    assert "Traceback" in cms("problem algorithms", code=1).err
