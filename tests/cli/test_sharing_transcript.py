"""What docs/guides/sharing.md types on the command line does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cms.cli.app import run
from tests.source_tree import ROOT


def transcript() -> list[tuple[list[str], str]]:
    """Commands of the first console block, with what they print."""
    text = (ROOT / "docs" / "guides" / "sharing.md").read_text("utf-8")
    block = text.split("```console\n")[1].split("```")[0].replace("\\\n", " ")
    parts = [part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(shlex.split(command), said) for command, _, said in parts]


def test_the_page_types_tables_a_plan_and_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for command, said in transcript():
        if command[0] == "cat":
            path = Path(command[1])
            if path.exists():
                assert path.read_text("utf-8") == said
            path.write_text(said, "utf-8")
            continue
        assert run(command[1:]) == 0
        seconds = r"[0-9]+\.[0-9]{2} s"
        told = capsys.readouterr().out
        assert re.sub(seconds, "", told) == re.sub(seconds, "", said)
        ran += 1
    assert ran == 2
    assert Path("share.svg").read_text("utf-8") == (
        ROOT / "docs" / "images" / "share.svg"
    ).read_text("utf-8")
