"""``cms gpus``, ``cms algorithms``, ``cms --version`` and the help pages."""

from __future__ import annotations

import json
import re

import pytest

from cms.cli.app import run


def test_the_catalogue_is_listed_and_each_gpu_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus"]) == 0
    assert re.search(r"a100-80gb +ampere +7 \+ 8 +1g.10gb 2g.20gb", capsys.readouterr().out)
    assert run(["gpus", "A100-SXM4-80GB"]) == 0
    assert "12 maximal configurations" in capsys.readouterr().out
    assert run(["gpus", "a30-24gb", "--json"]) == 0
    (gpu,) = json.loads(capsys.readouterr().out)["gpus"]
    assert (gpu["key"], len(gpu["configurations"]), len(gpu["maximal_layouts"])) == (
        "a30-24gb", 4, 5,
    )  # fmt: skip


def test_the_algorithms_are_listed_with_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["algorithms"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^auto\n", out)
    assert "--option workers=" in out
    assert run(["algorithms", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["algorithms"]
    options = next(one["options"] for one in listed if one["name"] == "cp_sat")
    assert type(options["workers"]) in (int, type(None))
    assert {"auto", "cp_sat"} <= {one["name"] for one in listed if one["trusted"]}


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"configurable-machines \d+\.\d+\.\d+\n", capsys.readouterr().out)
    assert run(["--version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "configurable-machines"


@pytest.mark.parametrize(
    "command", ["plan", "capacity", "simulate", "solve", "check", "gpus", "algorithms"]
)
def test_every_command_has_help_json_and_an_output_file(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--json" in out
    assert "-o, --output" in out or "--output, -o" in out
