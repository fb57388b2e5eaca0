"""The log of a long run."""

from __future__ import annotations

import io
import re
import time
from fractions import Fraction
from typing import Any

import pytest

from cms.cli.progress import CountProgress, Doing, Progress
from cms.cli.session import Session
from cms.running.interrupt import CommandCtrlC
from cms.solving.solution import Incumbent
from cms.solving.words import log_line


def incumbent(cost: int | None, bound: int, source: str = "auto") -> Incumbent:
    return Incumbent(0.1, None if cost is None else Fraction(cost), Fraction(bound), None, source)


def test_a_long_run_logs_improvements_and_goes_on_without_any() -> None:
    stream = io.StringIO()
    with Progress(stream, "GPUs", first=0, every=0.3) as log:
        wait_until(lambda: log.lines >= 1)
        log(incumbent(13, 11))
        wait_until(lambda: "13" in stream.getvalue())
        seen = log.lines
        wait_until(lambda: log.lines > seen)
    head, *lines = stream.getvalue().splitlines()
    assert head.split() == ["time", "GPUs", "bound", "gap", "last", "by"]
    assert re.fullmatch(r" +\d+\.\ds +13 +11 +15.4 % +auto", lines[-1])


def test_a_reader_that_has_gone_does_not_stop_the_run() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with Progress(Closed(), "GPUs", first=0, every=0.01) as log:
        wait_until(lambda: log.lines >= 1)


def test_a_solvers_claim_is_marked_in_the_log() -> None:
    state = Incumbent(1, None, Fraction(2), Fraction(3), "CP-SAT")
    assert log_line(state, 61.04).split("  ")[-1] == "CP-SAT (a solver claims a bound of 3)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_line_says_what_is_being_done_and_is_wiped_away() -> None:
    stream = Terminal()
    with Doing(stream, "reading the files", first=0):
        wait_until(lambda: "reading" in stream.getvalue())
    begin, *lines, end = stream.getvalue().split("\r")
    assert (begin, end) == ("", "\x1b[K")
    assert all(re.fullmatch(r" +\d+\.\ds  reading the files \.\.\.", line) for line in lines)


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(stream: io.StringIO) -> None:
    with CountProgress(stream, first=0, every=0.3) as progress:
        for done in (25, 80):
            progress(done, 100)
            wait_until(lambda done=done: f"{done} %" in stream.getvalue())
    shown = stream.getvalue().split("\r" if stream.isatty() else "\n")
    first = next(each for each in shown if each)
    assert re.fullmatch(r"(\[#{5}\.{15}\])? +\d\.\ds  25 % of 100 requests(\x1b\[K)?", first)
    assert shown[-1] == ("\x1b[K" if stream.isatty() else "")


def test_what_is_over_soon_or_goes_to_a_file_says_nothing() -> None:
    short = io.StringIO()
    with Progress(short, "GPUs") as progress:
        progress(incumbent(3, 1))
    assert short.getvalue() == ""
    for stream, first in ((Terminal(), 1e6), (io.StringIO(), 0)):
        with Doing(stream, "reading the files", first=first):
            pass
        assert stream.getvalue() == ""


def test_an_answer_makes_way_for_itself(monkeypatch: Any) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("cms.cli.progress.Doing.__init__.__kwdefaults__", {"first": 0, "every": 5})
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
