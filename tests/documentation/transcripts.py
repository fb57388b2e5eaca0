"""What pages show as typed, typed again: commands after ``$``, and what they print.

``python -m tests.documentation.transcripts docs/tutorials/plan.md`` writes into a page what its
commands print today.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from difflib import unified_diff
from doctest import ELLIPSIS, OutputChecker
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from cms.cli.app import run
from tests.fleet.stand_ins.machines import StandInNode, behind_ssh

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
# A command takes the lines that end with a backslash, and a text up to END.
_COMMAND = re.compile(
    r"^\$ (?P<typed>(?:.*\\\n)*(?:.*<<'?END'?.*\n(?:.*\n)*?END|.*))\n(?P<said>(?:(?!\$ ).*\n)*)",
    re.M,
)
_PROGRESS = re.compile(r"^ +(time  .*|[0-9.]+s  .*)\n", re.M)
#: As wide as a file is, whatever terminal the tests run in.
_WIDE = {"COLUMNS": "100"}
# What a page says to be proved is proved on a busy machine as well, however long that takes.
_UNHURRIED = patch.multiple("cms.cli.searching", GROWTH_SECONDS=600.0, SHORTAGE_SECONDS=600.0)
_SECONDS = re.compile(r"\b[0-9]+\.[0-9]+ s\b|\b\d{4}-\d\d-\d\dT[\d:]+Z")


@contextmanager
def nodes_behind_ssh() -> Iterator[None]:
    """Let `ssh` reach two nodes that do not exist; on the second is an instance of others."""
    with tempfile.TemporaryDirectory() as folder:
        nodes = {
            name: StandInNode(Path(folder) / name, ["a100-80gb"] * 2, seed=seed)
            for seed, name in enumerate(("node-a", "node-b"))
        }
        nodes["node-b"].put(0, [("3g.40gb", 4)])
        with behind_ssh(nodes):
            yield


class Typed(NamedTuple):
    """A command of a page, with what the page says that it prints."""

    command: str
    said: str
    start: int  # where `said` stands in the page
    end: int


def typed(page: str) -> Iterator[Typed]:
    """Yield the commands of all transcripts in a page."""
    for block in _BLOCK.finditer(page):
        for each in _COMMAND.finditer(page, block.start(1), block.end(1)):
            yield Typed(each["typed"], each["said"], *each.span("said"))


class Shell:
    """A shell in the folder at hand, in which ``cms`` is a function of this process.

    A command may fail only if ``echo $?`` comes next. Progress, which is told by the clock, is no
    part of what it says.
    """

    def __init__(self) -> None:
        self._code = 0

    def run(self, command: str) -> str:
        """Run a command and return what it says."""
        if command == "echo $?":
            code, self._code = self._code, 0
            return f"{code}\n"
        assert self._code == 0, f"exit code {self._code} before: {command}"
        told, errors = StringIO(), StringIO()
        if command.startswith("cms ") and "|" not in command:
            line = command.replace("\\\n", " ")
            wide = patch.dict(os.environ, _WIDE)
            with wide, _UNHURRIED, redirect_stdout(told), redirect_stderr(errors):
                self._code = run(shlex.split(line, comments=True)[1:])
        else:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["sh", "-c", command], env={**os.environ, **_WIDE, "PATH": path},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            self._code = done.returncode
            told.write(done.stdout)
            errors.write(done.stderr)
        return told.getvalue() + _PROGRESS.sub("", errors.getvalue())


def difference(said: str, told: str) -> str:
    """Say how what a page says differs from what a command told; seconds may, and ``...`` is any.

    Examples
    --------
    >>> difference("4 GPUs\\n...\\n(auto, 0.31 s)\\n", "4 GPUs\\nand\\nmore\\n(auto, 1.52 s)\\n")
    ''
    >>> print(difference("proved\\n4 GPUs", "proved\\n5 GPUs"))
    --- the page
    +++ today
    @@ -1,2 +1,2 @@
     proved
    -4 GPUs
    +5 GPUs
    """
    said, told = (_SECONDS.sub("0 s", text) for text in (said, told))
    if OutputChecker().check_output(said, told, ELLIPSIS):
        return ""
    lines = unified_diff(said.splitlines(), told.splitlines(), "the page", "today", lineterm="")
    return "\n".join(lines)


def renewed(page: str) -> str:
    """Return a page with what its commands print today, run in the folder at hand."""
    shell, parts, done = Shell(), [], 0
    for each in typed(page):
        told = shell.run(each.command)
        kept = "..." in each.said and not difference(each.said, told)
        parts += [page[done : each.start], each.said if kept else told]
        done = each.end
    return "".join(parts) + page[done:]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        document = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, chdir(folder), nodes_behind_ssh():
            text = renewed(document.read_text("utf-8"))
        document.write_text(text, "utf-8")
