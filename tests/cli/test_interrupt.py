"""Ctrl-C: the best schedule is printed, and the exit code is 130."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cms.running.interrupt import CommandCtrlC, Interrupted
from tests.cli.shared import COMMAND, ROOT
from tests.samples import few

#: Seconds after which what has not come never will; the plug-ins that sleep do so for longer.
NEVER = 600


def test_a_press_while_input_is_read_raises_and_later_ones_only_set_the_event() -> None:
    interrupts = CommandCtrlC()
    interrupts.quiet = True
    with pytest.raises(Interrupted), interrupts.abortable():
        interrupts._press(signal.SIGINT, None)
    assert interrupts.pressed
    interrupts._press(signal.SIGINT, None)  # the same press, passed on by a launcher
    with pytest.raises(Interrupted), interrupts.abortable():
        pytest.fail("the block must not begin")


PLUGIN = """
import sys, time
from dataclasses import dataclass
from cms import Schedule, Support

@dataclass(frozen=True)
class Options:
    kind: str = "polite"

class Slow:
    name = "slow"
    options_type = Options
    def support(self, problem, options):
        if options.kind == "ponderous":
            print("at work", file=sys.stderr, flush=True)
            while True: pass
        return Support(True)
    def guarantee(self, problem, options): return None
    def run(self, problem, options, budget):
        if options.kind != "empty":
            whole = problem.configurations[-1]
            (block,) = whole.blocks
            given = {(block, name): 1 for name in problem.job_names}
            yield Schedule.from_counts(problem, {whole: len(given)}, given)
        print("at work", file=sys.stderr, flush=True)
        if options.kind == "deaf":
            time.sleep(3600)
        while not budget.stopped:
            time.sleep(0.01)
"""


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    """An environment in which a third party's slow algorithm is installed."""
    info = tmp_path / "slow-1.0.dist-info"
    info.mkdir()
    (tmp_path / "slow_plugin.py").write_text(PLUGIN, "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[cms.algorithms]\nslow = slow_plugin:Slow\n", "utf-8")
    paths = os.pathsep.join([str(ROOT), str(tmp_path)])
    return {**os.environ, "PYTHONPATH": paths}


@pytest.fixture
def started(here: Path, slow: dict[str, str]) -> Iterator[Any]:
    problem = str(here / "problem.json")
    running: list[subprocess.Popen[str]] = []

    def start(kind: str, *options: str) -> subprocess.Popen[str]:
        command = [*COMMAND, "problem", "solve", problem, "-m", "slow"]
        command += ["--option", f"kind={kind}", *options]
        process = subprocess.Popen(
            command, env=slow, cwd=ROOT, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if line == "at work\n":
                break
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", few(2, ["empty", "polite"]))
def test_ctrl_c_prints_the_best_schedule_and_exits_with_130(started: Any, kind: str) -> None:
    process = started(kind)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=NEVER)
    assert process.returncode == 130, err
    words = "no schedule was found" if kind == "empty" else "2 machines, lower bound 0"
    assert words in out
    assert "interrupted)" in out
    assert "Traceback" not in err


def test_ctrl_c_is_heard_while_a_method_hears_nothing(started: Any) -> None:
    process = started("ponderous")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=NEVER)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "error: interrupted: no schedule was found"


def test_ctrl_c_while_the_answer_is_printed_still_prints_all_of_it(started: Any) -> None:
    process = started("polite", "--json", "--time-limit", "0.2")
    time.sleep(0.6)  # it may be anywhere between the time limit and its end
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=NEVER)
    assert process.returncode in {130, 0}
    assert json.loads(out)["status"] in {"feasible", "optimal"}


def test_a_second_press_leaves_at_once(started: Any) -> None:
    process = started("deaf")
    process.send_signal(signal.SIGINT)
    threading.Timer(0.3, process.send_signal, [signal.SIGINT]).start()
    process.communicate(timeout=NEVER)
    assert process.returncode == 130
