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
from tests.cli.shared import COMMAND, ROOT, error_of


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
        shell = f"exec {' '.join(COMMAND)} {arguments} >&-"
        done = subprocess.run(["/bin/sh", "-c", shell], cwd=ROOT, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_an_ascii_terminal_gets_ascii_of_the_same_shape(tables: list[str]) -> None:
    def output(encoding: str) -> list[str]:
        environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "80"}
        done = subprocess.run(
            [*COMMAND, *tables], cwd=ROOT, env=environment, capture_output=True, check=True
        )
        return done.stdout.decode(encoding).splitlines()

    rich, plain = output("utf-8"), output("ascii")
    assert [len(line) for line in rich[:-1]] == [len(line) for line in plain[:-1]]
    assert any("+---" in line for line in plain)


@pytest.mark.parametrize(
    "words", ["solve -", "check -", "plan -s - -p x.csv", "solve {} --start -"]
)
def test_a_closed_standard_input_is_said(
    words: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run(words.format(problem).split()) == 1
    holds = "a CSV table" if "plan" in words else "a JSON document"
    assert error_of(capsys) == f"error: <stdin>: standard input is closed, expected {holds}\n"


def test_a_closed_standard_output_is_said(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(FileError, match="<stdout>: standard output is closed; name a file"):
        write_problem(read_problem(problem), "-")


def test_a_document_for_a_closed_standard_output_is_refused_before_the_search(problem: str) -> None:
    shell = f"exec {' '.join(COMMAND)} solve {problem} -o - >&-"
    done = subprocess.run(["/bin/sh", "-c", shell], cwd=ROOT, capture_output=True, check=False)
    said = b"error: <stdout>: standard output is closed; name a file to write\n"
    assert (done.returncode, done.stderr) == (1, said)


class Full(io.StringIO):
    def write(self, text: str) -> int:
        if not text:
            return 0
        raise OSError(28, "No space left on device")


def test_a_full_standard_output_is_named(
    problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert run(["solve", problem]) == 1
    assert "<stdout>: cannot be written: No space left on device" in error_of(capsys)


@pytest.mark.parametrize("arguments", ["frob", "solve nothing.json", "check {}"])
def test_the_exit_code_is_the_same_where_nobody_can_be_told_why(
    arguments: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = arguments.format(problem).split()
    code = run(words)
    for stream in (Full(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        assert run(words) == code != 0


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


def test_with_every_stream_closed_the_document_is_written(problem: str, tmp_path: Path) -> None:
    path = tmp_path / "solution.json"
    shell = f"exec {' '.join(COMMAND)} solve {problem} --output {path} <&- >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", shell], cwd=ROOT, check=False).returncode == 0
    assert run(["check", problem, str(path), "--quiet"]) == 0


def test_a_width_that_is_none_counts_as_not_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(columns: str) -> str:
        monkeypatch.setenv("COLUMNS", columns)
        assert run(["gpus", "a30-24gb"]) == 0
        return capsys.readouterr().out

    usual = said("100")
    assert "4g.24gb" in usual
    for nothing in ("0", "000", "", "abc", "-5", "1.5", "٣", "9" * 5000):
        assert said(nothing) == usual
    assert said("0120") == said("120")
    assert said("1") == said("39") == said("40") != usual
    assert "4g.24gb" in said("1")
