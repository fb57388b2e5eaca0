"""Pipes, closed streams and encodings."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cms.cli.app import run
from cms.errors import FileError
from cms.files import read_problem, write_problem
from tests.cli.shared import COMMAND, ROOT, TABLES, Cms, error_of


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
    shell = f"exec {' '.join(COMMAND)} problem solve problem.json -o - >&-"
    done = in_a_shell(shell)
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
