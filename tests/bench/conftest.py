"""How the tests run ``python -m bench``: in a process of its own, with plug-ins if wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.peers import GROUPS
from bench.row import Outcome, RunRow
from bench.task import Kind, Source, Task

KINDS = {"best_fit": Kind.RULE, "parvagpu": Kind.RULE, "partition_free": Kind.BOUND}
KINDS |= dict.fromkeys(("whole_gpus", "smallest", "static_mix"), Kind.RULE)
KINDS |= {name: Kind.PEER for names in GROUPS.values() for name in names}


def run_row(
    method: str, source: Source, *, limit: float = 20, suite: str = "s", **found: Any
) -> RunRow:
    """The row of a run of a method on a problem that was answered with what is found."""
    kind = KINDS.get(method, Kind.SOLVE)
    task = Task(suite=suite, kind=kind, source=source, method=method, time_limit=limit)
    return RunRow.of(task, **{"outcome": Outcome.ANSWERED, **found})


ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ("--families", "tests.bench.stand_in", "--no-warm-up", "--no-figures")

PLUGIN = '''
import os, subprocess, time
from multiprocessing import active_children, get_context
from cms import Schedule, SolverBound
from tests.plugins import OneByOne

class Liar(OneByOne):
    """Says that no machine is enough."""
    name = "liar"
    def run(self, problem, options, budget):
        yield Schedule()

class Dies(OneByOne):
    """Takes its process with it."""
    name = "dies"
    def run(self, problem, options, budget):
        print("so long", flush=True)
        os.write(2, b"my last words\\n")
        os._exit(3)
        yield

def leave_number(number):
    """Return whose number it is: 1 is the first."""
    with open(os.environ["BAD_PLUGIN_NUMBERS"], "a") as file:
        file.write(f"{number:11}\\n")
        return file.tell() // 12

class Stops(OneByOne):
    """Does its work; where nobody is to see the end, the fifth run has none."""
    name = "stops"
    def run(self, problem, options, budget):
        if "BAD_PLUGIN_STOPS" in os.environ and leave_number(os.getpid()) == 5:
            time.sleep(3600)
        yield from super().run(problem, options, budget)

class Overruns(OneByOne):
    """Waits for children far beyond its limit."""
    name = "overruns"
    def run(self, problem, options, budget):
        leave_number(subprocess.Popen(["sleep", "3600"]).pid)
        with get_context("fork").Pool(1) as pool:
            for child in active_children():
                leave_number(child.pid)
            pool.apply(time.sleep, (3600,))
        yield
'''
_NAMES = ("liar", "dies", "stops", "overruns")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which a third party's algorithms are installed."""
    info = tmp_path / "plugins" / "bad-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    entries = "".join(f"{name} = bad_plugin:{name.capitalize()}\n" for name in _NAMES)
    (info / "entry_points.txt").write_text(f"[cms.algorithms]\n{entries}")
    (tmp_path / "plugins" / "bad_plugin.py").write_text(PLUGIN)
    path = os.pathsep.join([str(tmp_path / "plugins"), str(ROOT)])
    numbers = str(tmp_path / "numbers")
    return {**os.environ, "PYTHONPATH": path, "BAD_PLUGIN_NUMBERS": numbers}


@pytest.fixture
def bench(
    environment: dict[str, str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command on tiny instances; its rows go to ``tmp_path / "rows"``."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command: list[Any] = [sys.executable, "-m", "bench", *TINY, "--out", tmp_path / "rows"]
        return subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True, text=True, check=False, cwd=ROOT, env=environment,
        )  # fmt: skip

    return run


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[str], list[RunRow]]:
    """Read the rows of a suite."""

    def read(suite: str) -> list[RunRow]:
        text = (tmp_path / "rows" / f"{suite}.jsonl").read_text("utf-8")
        return [RunRow.from_line(line) for line in text.splitlines()]

    return read
