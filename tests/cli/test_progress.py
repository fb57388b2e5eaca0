"""The log of a long run; and Ctrl-C: the best schedule is printed, and the exit code is 130."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from cms.cli.progress import CountProgress, Doing, Progress
from cms.cli.session import Session
from cms.running.interrupt import CommandCtrlC, Interrupted
from cms.solving.solution import Incumbent
from cms.solving.words import log_line
from tests.cli.shared import COMMAND, ROOT
from tests.samples import few


def incumbent(cost: int | None, bound: int, source: str = "auto") -> Incumbent:
    return Incumbent(0.1, None if cost is None else Fraction(cost), Fraction(bound), None, source)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cms.cli.progress.FIRST_LINE_SECONDS", 0)
    monkeypatch.setattr("cms.cli.progress.EVERY_SECONDS", 0.3)


def test_a_long_run_logs_improvements_and_goes_on_without_any() -> None:
    stream = io.StringIO()
    with Progress(stream, "GPUs") as log:
        wait_until(lambda: log.lines >= 1)
        log(incumbent(13, 11))
        wait_until(lambda: "13" in stream.getvalue())
        seen = log.lines
        wait_until(lambda: log.lines > seen)
    head, *lines = stream.getvalue().splitlines()
    assert head.split() == ["time", "GPUs", "bound", "gap", "last", "by"]
    assert re.fullmatch(r" +\d+\.\ds +13 +11 +15.4 % +auto", lines[-1])


def test_a_reader_that_has_gone_does_not_stop_the_run() -> None:
    gone = Mock(isatty=lambda: False, write=Mock(side_effect=BrokenPipeError))
    with Progress(gone, "GPUs") as log:
        wait_until(lambda: log.lines >= 1)


def test_a_solvers_claim_is_marked_in_the_log() -> None:
    state = Incumbent(1, None, Fraction(2), Fraction(3), "CP-SAT")
    assert log_line(state, 61.04).split("  ")[-1] == "CP-SAT (a solver claims a bound of 3)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_line_says_what_is_being_done_and_is_wiped_away() -> None:
    stream = Terminal()
    with Doing(stream, "reading the files"):
        wait_until(lambda: "reading" in stream.getvalue())
    begin, *lines, end = stream.getvalue().split("\r")
    assert (begin, end) == ("", "\x1b[K")
    assert all(re.fullmatch(r" +\d+\.\ds  reading the files \.\.\.", line) for line in lines)


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(stream: io.StringIO) -> None:
    with CountProgress(stream) as progress:
        for done in (25, 80):
            progress(done, 100)
            wait_until(lambda done=done: f"{done} %" in stream.getvalue())
    shown = stream.getvalue().split("\r" if stream.isatty() else "\n")
    first = next(each for each in shown if each)
    assert re.fullmatch(r"(\[#{5}\.{15}\])? +\d\.\ds  25 % of 100 requests(\x1b\[K)?", first)
    assert shown[-1] == ("\x1b[K" if stream.isatty() else "")


def test_what_is_over_soon_or_goes_to_a_file_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Doing(file := io.StringIO(), "reading the files"):
        pass
    monkeypatch.setattr("cms.cli.progress.FIRST_LINE_SECONDS", 1e6)
    short, terminal = io.StringIO(), Terminal()
    with Progress(short, "GPUs") as progress, Doing(terminal, "reading the files"):
        progress(incumbent(3, 1))
    assert (file.getvalue(), short.getvalue(), terminal.getvalue()) == ("", "", "")


def test_an_answer_makes_way_for_itself(monkeypatch: Any) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    session = Session(CommandCtrlC())
    with session.reading():
        wait_until(lambda: "reading" in stream.getvalue())
        session.note("a note")
    assert stream.getvalue().endswith("\r\x1b[Ka note\n")


def wait_until(condition: Any, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


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
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}


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
