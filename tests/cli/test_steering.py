"""No text of a file steers a terminal: ESC and C1, links (OSC 8), overrides of the direction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from cms.cli.app import run
from proofs_checks.command import main as check
from tests.cli.shared import POINTS, SERVICES, TABLES, Cms

LINK = "\x1b]8;;http://a.example\x1b\\chat\x1b]8;;\x1b\\"
ODD = ("\x1b[2J", "\x9b2J", "\u202egnp\u202c", "\u2066x\u2069", "\x07", LINK, "[red]x[/red]\u200b")


def steers(text: str) -> list[str]:
    blanks = "\n\t\xa0\u2007\u2009\u202f"
    return [each for each in text if not each.isprintable() and each not in blanks]


def said(command: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    if command[0] == "cms-check":
        check(command[1:])
    else:
        assert run(command) in (0, 1, 2, 3)
    out, err = capsys.readouterr()
    assert out + err
    return out + err


@pytest.mark.parametrize("odd", ODD)
def test_names_steer_nothing(
    odd: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    Path("s.csv").write_text(f"{SERVICES}{odd},bert,100,100\n", "utf-8")
    Path("m.csv").write_text(f"{SERVICES}chat,{odd},100,100\n", "utf-8")
    Path("p.csv").write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,2,4,120,20\n{odd},a100-80gb,3g.40gb,2,4,120,20\n", "utf-8"
    )
    asked = ["-p", "p.csv", "--rule", "parvagpu"]
    assert run(["plan", "-s", "m.csv", *asked, "-q", "-o", "plan.json"]) in (0, 1)
    Path("bad.json").write_text(json.dumps({"format": odd, "schema": 2, odd: odd}))
    path = f"{odd.replace('/', '')}.json"
    try:
        Path(path).write_text(json.dumps({"format": "cms-plan", "schema": odd}), "utf-8")
    except OSError:
        path = "bad.json"
    for command in (
        ["plan", "-s", "s.csv", *asked],
        ["plan", "-s", "s.csv", *asked, "--json"],
        ["plan", "-s", "m.csv", *asked],
        ["plan", "-s", "m.csv", *asked, "--json"],
        ["plan", "-s", "absent.csv", *asked, "--gpu", odd],
        ["plan", "-s", odd, *asked, "--json"],
        ["check", "bad.json"],
        ["check", "bad.json", "--json"],
        ["check", path],
        ["problem", "solve", "bad.json", "-m", odd],
        ["cms-check", "bad.json"],
        ["cms-check", path],
        ["cms-check", odd],
    ):
        assert steers(said(command, capsys)) == [], command


def test_error_is_one_line_whatever_a_file_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    forged = "a\nvalid: 2 GPUs, lower bound 2: optimal, proof checked\n.json"
    for command in (["check", forged], ["cms-check", forged]):
        assert said(command, capsys).count("\n") == 1


def test_only_what_steers_is_escaped_in_a_document(here: Path, cms: Cms) -> None:
    """It is the same document."""
    (here / "s.csv").write_text(f"{SERVICES}ch\u00e4t \u202e\U0001f600,bert,100,100\n", "utf-8")
    text = cms("plan", TABLES, "--json").out
    assert "ch\u00e4t \\u202e\U0001f600" in text
    assert json.loads(text)["services"][0]["name"] == "ch\u00e4t \u202e\U0001f600"
