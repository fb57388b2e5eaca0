"""Pipes, closed streams and encodings."""

from __future__ import annotations

import os
import subprocess

from tests.cli.shared import COMMAND, ROOT


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = [*COMMAND, "plan", "--published", "S1"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
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
