"""The loop that a document has typed by hand, typed, with nodes that do not exist behind `ssh`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cms.cli.app import run
from tests.fleet.stand_ins.driver import STATE
from tests.fleet.stand_ins.machines import StandInNode
from tests.fleet.stand_ins.serving import served

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guides" / "whole-loop.md"
NODES = {"node-a": [True, True], "node-b": [True], "node-c": [False]}
SSH = """\
#!/bin/sh
node=$1
shift
case $node in
{cases}esac
export PATH {state}
exec sh -c "$*"
"""


def typed(page: str) -> Iterator[str]:
    """The commands of a page, each with the text that it is given."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S):
        given: list[str] = []
        for line in block.splitlines():
            given.append(line)
            if "<<" not in given[0] or line == "END":
                yield "\n".join(given)
                given = []
        assert not given


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")
def test_the_loop_ends_where_it_was_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {
        name: StandInNode(tmp_path / name, ["a100-80gb"] * len(mig), seed=seed, mig=mig)
        for seed, (name, mig) in enumerate(NODES.items())
    }
    nodes["node-b"].put(0, [("1g.10gb", 6)])
    theirs = nodes["node-b"].at(0, 6)
    (here := tmp_path / "here").mkdir()
    (programs := tmp_path / "programs").mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    transcript = []
    with ExitStack() as stack:
        cases = ""
        for name, node in nodes.items():
            tools = stack.enter_context(served(node.folder, "nvidia-smi", node.smi))
            cases += f"{name}) PATH={shlex.quote(str(tools))}:$PATH "
            cases += f"{STATE}={shlex.quote(str(node.state_file))} ;;\n"
        (programs / "ssh").write_text(SSH.format(cases=cases, state=STATE), "utf-8")
        (programs / "ssh").chmod(0o755)
        for command in typed(PAGE.read_text("utf-8")):
            if command.startswith("cms "):
                assert run(shlex.split(command)[1:]) == 0, command
                said = capsys.readouterr().out
            else:
                sh = ["sh", "-ec", command]
                done = subprocess.run(sh, capture_output=True, text=True, check=False, timeout=600)
                assert (done.returncode, done.stderr) == (0, ""), command
                said = done.stdout
            transcript.append(f"$ {command}\n{said}")
    *_, verified, _, compared = transcript
    assert "all there" in verified
    assert "0 GPUs change" in compared
    assert nodes["node-b"].at(0, 6) == theirs
    assert all(len(layout) > 1 for node in nodes.values() for layout in node.layouts())
    names = {"kubernetes", "dra", "mig-parted", "gpu-operator", "slurm"}
    assert names <= {path.name for out in ("out", "out-whole") for path in (here / out).iterdir()}
