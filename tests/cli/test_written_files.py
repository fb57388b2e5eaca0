"""What a command writes is there as a whole, or what was there before; and never over its input."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from cms.files.source import write_bytes
from cms.fleet.deployment.written_folder import write_folder
from tests.cli.shared import COMMAND, ROOT, Cms

BEFORE = b"what stood there before\n"

#: Each kind of file that a command writes: the words before the file's name.
WRITERS = {
    "plan.json": "plan -s s.csv -p p.csv --rule parvagpu -q -o",
    "plan.svg": "plan -s s.csv -p p.csv --rule parvagpu -q --picture",
    "program.mps": "problem program --published three-thirds -q -o",
    "curves.csv": "calibrate p.csv --requests 1000 -q -o",
    "simulation.json": "simulate plan.json --requests 50 -q -o",
}
SOLVE = "problem solve --published three-thirds -q -o"


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def hidden(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


@pytest.mark.parametrize("name", WRITERS)
def test_full_disk_leaves_what_was_there(
    name: str, here: Path, cms: Cms, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / name).write_bytes(BEFORE) if not (here / name).exists() else None
    before = (here / name).read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", full)
        assert name in cms(WRITERS[name], name, code=1).err
    assert (here / name).read_bytes() == before
    assert hidden(here) == []
    cms(WRITERS[name], name, code=(0, 1))  # 1: a limit is violated
    assert (here / name).read_bytes() != BEFORE


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("s.csv", "plan -s s.csv -p p.csv -o"),
        ("plan.json", "explain plan.json chat -o"),
        ("nodes.csv", "plan plan.json --nodes nodes.csv -o"),
        ("events.csv", "simulate plan.json --events events.csv -o"),
        ("plan.json", "plan -s s.csv -p p.csv --start plan.json -o"),
    ],
)
@pytest.mark.parametrize("spelling", ["same", "dotted", "absolute", "symbolic", "hard"])
def test_no_file_is_written_over_one_that_is_read(
    name: str, command: str, spelling: str, here: Path, cms: Cms
) -> None:
    (here / "events.csv").write_text("seconds,what,target,value\n1,rate,chat,1.3\n")
    path = here / name
    other = {"same": name, "dotted": f"./{name}", "absolute": str(path)}.get(spelling, "other")
    if spelling == "symbolic":
        Path("other").symlink_to(path)
    elif spelling == "hard":
        Path("other").hardlink_to(path)
    before = path.read_bytes()
    assert "would be lost" in cms(command, other, code=2).error
    assert path.read_bytes() == before


def test_standard_input_is_read_from_a_file_too(here: Path) -> None:
    before = (here / "p.csv").read_bytes()
    words = [*COMMAND, "calibrate", "-", "--requests", "1000", "-o", "p.csv"]
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    with (here / "p.csv").open("rb") as given:
        done = subprocess.run(words, stdin=given, capture_output=True, check=False, env=own)
    assert done.returncode == 2, done.stderr
    assert (here / "p.csv").read_bytes() == before


def test_mode_and_links_of_a_file_stay(here: Path, cms: Cms) -> None:
    real, link, dangling = (here / f"{name}.json" for name in ("real", "link", "dangling"))
    real.write_bytes(BEFORE)
    real.chmod(0o640)
    link.symlink_to("real.json")
    cms(SOLVE, "link.json")
    assert link.is_symlink()
    assert real.read_bytes() != BEFORE
    assert real.stat().st_mode & 0o777 == 0o640
    dangling.symlink_to("made.json")
    cms(SOLVE, "dangling.json")
    assert dangling.is_symlink()
    assert (here / "made.json").is_file()
    for name, leads_to, reason in (("a", "absent/x", "absent"), ("l", "l", "Too many levels")):
        (here / name).symlink_to(leads_to)
        assert reason in cms(SOLVE, name, code=1).error
    if os.geteuid():
        real.chmod(0o440)
        cms(SOLVE, "link.json", code=1)


def test_pipes_devices_and_open_files_are_written_to(here: Path) -> None:
    solve = f"{' '.join(COMMAND)} problem solve --published three-thirds"
    shell = f"""
        set -e; export PYTHONPATH={ROOT}
        mkfifo pipe; cat pipe >from_pipe & {solve} -q -o pipe; wait
        {solve} -q -o /dev/stdout >redirected
        {solve} -q -o /dev/stdout | cat >piped
        {solve} -q -o /dev/null
        {solve} -q -o /dev/fd/3 3>third
        {solve} -o /dev/stdout >both
        {solve} -q -o plain
    """
    subprocess.run(["bash", "-c", shell], cwd=here, check=True, timeout=600)
    plain = json.loads((here / "plain").read_text())
    for name in ("from_pipe", "redirected", "piped", "third", "both"):
        report, start, document = (here / name).read_text().partition("{")
        assert json.loads(start + document)["problem_sha256"] == plain["problem_sha256"], name
        assert bool(report) == (name == "both"), name


KILLED = """
import os, signal
from {module} import {name}
os.{at} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
{name}({new!r}, "out")
"""


@pytest.mark.parametrize("at", ["fsync", "replace"])
@pytest.mark.parametrize("module", ["source", "folders"])
def test_a_kill_at_any_moment_loses_nothing(module: str, at: str, here: Path) -> None:
    """Between two renames a folder has another name."""
    writes = {"source": write_bytes, "folders": write_folder}[module]
    old, new = {"source": (b"old", b"new"), "folders": ({"a": "old"}, {"a": "new"})}[module]
    writes(old, "out")  # type: ignore[operator]
    code = KILLED.format(module=writes.__module__, name=writes.__name__, at=at, new=new)
    done = subprocess.run([COMMAND[0], "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == -9
    aside = here / ("out.1" if (module, at) == ("folders", "replace") else "out")
    assert (aside if module == "source" else aside / "a").read_text() == "old"
    writes(new, "out")  # type: ignore[operator]
    assert (here / "out" if module == "source" else here / "out" / "a").read_text() == "new"


def test_folder_of_which_a_file_is_read_is_kept(here: Path, cms: Cms) -> None:
    cms("export target.json -t slurm -q -o out")
    before = (here / "out" / "target.json").read_bytes()
    cms("export out/target.json -t slurm -q -o out")
    assert (here / "out.1" / "target.json").read_bytes() == before
