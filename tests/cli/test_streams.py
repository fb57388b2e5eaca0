"""Pipes, closed streams and encodings; and that no text of a file steers a terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.errors import FileError
from cms.files import read_problem, write_problem
from proofs_checks.command import main as check
from tests.cli.shared import COMMAND, POINTS, ROOT, SERVICES, TABLES, Cms, error_of


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = [*COMMAND, "plan", "--published", "S1"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_a_process_without_stdout_still_has_an_exit_code() -> None:
    for arguments in ("--version", "gpus a100-80gb"):
        done = in_a_shell(f"exec {' '.join(COMMAND)} {arguments} >&-")
        assert (done.returncode, done.stderr) == (0, b"")


def test_an_ascii_terminal_gets_ascii_of_the_same_shape(here: Path) -> None:
    def output(encoding: str) -> list[str]:
        own = {"PYTHONIOENCODING": encoding, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*COMMAND, "plan", *TABLES.split()], cwd=here, env=os.environ | own,
            capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout.decode(encoding).splitlines()

    rich, plain = output("utf-8"), output("ascii")
    assert [len(line) for line in rich[:-1]] == [len(line) for line in plain[:-1]]
    assert any("+---" in line for line in plain)


@pytest.mark.parametrize(
    "typed",
    ["problem solve -", "check -", "plan -s - -p x.csv", "problem solve problem.json --start -"],
)
@pytest.mark.usefixtures("here")
def test_closed_stdin_is_said(typed: str, cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    holds = "a CSV table" if "plan" in typed else "a JSON document"
    said = f"error: <stdin>: standard input is closed, expected {holds}\n"
    assert cms(typed, code=1).error == said


@pytest.mark.usefixtures("here")
def test_closed_stdout_is_said_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    done = in_a_shell(f"exec {' '.join(COMMAND)} problem solve problem.json -o - >&-")
    said = b"error: <stdout>: standard output is closed; name a file to write\n"
    assert (done.returncode, done.stderr) == (1, said)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(FileError, match="<stdout>: standard output is closed; name a file"):
        write_problem(read_problem("problem.json"), "-")


class Full(io.StringIO):
    def write(self, text: str) -> int:
        if not text:
            return 0
        raise OSError(28, "No space left on device")


@pytest.mark.usefixtures("here")
def test_full_standard_output_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert run(["problem", "solve", "problem.json"]) == 1
    assert "<stdout>: cannot be written: No space left on device" in error_of(capsys)


@pytest.mark.parametrize("typed", ["frob", "check nothing.json", "check problem.json"])
@pytest.mark.usefixtures("here")
def test_exit_code_is_the_same_untold(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code = run(typed.split())
    for stream in (Full(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        assert run(typed.split()) == code != 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_stream(closed: str, tmp_path: Path) -> None:
    path = tmp_path / "number"
    opens = (
        "import cms.cli, sys; cms.cli._keep_numbers_of_streams(); "
        f"f = open({str(path)!r}, 'w'); f.write(str(f.fileno()))"
    )
    shell = f'exec "$0" -c "$1" {closed}'
    subprocess.run(["/bin/sh", "-c", shell, sys.executable, opens], cwd=ROOT, check=True)
    assert int(path.read_text()) > 2


@pytest.mark.usefixtures("here")
def test_with_every_stream_closed_the_document_is_written() -> None:
    shell = f"exec {' '.join(COMMAND)} problem solve problem.json -o made.json <&- >&- 2>&-"
    assert in_a_shell(shell).returncode == 0
    assert run(["check", "problem.json", "made.json", "--quiet"]) == 0


def in_a_shell(text: str) -> subprocess.CompletedProcess[bytes]:
    own = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["/bin/sh", "-c", text], env=os.environ | own, capture_output=True, check=False
    )


def test_width_that_is_none_counts_as_not_given(cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(columns: str) -> str:
        monkeypatch.setenv("COLUMNS", columns)
        return cms("gpus a30-24gb").out

    usual = said("100")
    assert "4g.24gb" in usual
    for nothing in ("0", "000", "", "abc", "-5", "1.5", "9" * 5000):
        assert said(nothing) == usual
    assert said("0120") == said("120")
    assert said("1") == said("39") == said("40") != usual
    assert "4g.24gb" in said("1")


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
