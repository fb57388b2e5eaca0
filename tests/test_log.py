"""The logger ``cms``: silent until it is asked, then a line an improvement."""

from __future__ import annotations

import logging
import sys
from subprocess import run

import pytest

from cms import Configuration, Incumbent, Job, Problem, solve
from cms.solving.words import circumstances, log_line, verdict

PROBLEM = Problem(
    configurations=[Configuration({"a": 1}), Configuration({"b": 2})],
    jobs=[Job(f"x{n}", 7 + n, {"a": 5, "b": 2}) for n in range(5)],
)


def test_a_program_that_does_not_log_sees_nothing() -> None:
    # in a process of its own: here pytest's own handlers listen
    program = (
        "from cms import Configuration, Job, Problem, solve\n"
        "one = Configuration({'b': 2})\n"
        "solve(Problem(configurations=one, jobs=[Job('x', 3, {'b': 2})]))\n"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_whoever_asks_gets_what_is_asked_each_improvement_and_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Incumbent] = []
    with caplog.at_level(logging.INFO, logger="cms"):
        solution = solve(PROBLEM, time_limit=None, seed=3, on_improvement=heard.append)
    asked, head, *lines, found = caplog.messages
    assert asked == "auto: 5 jobs, 2 blocks, 1 machine type, no time limit, seed 3"
    assert head.split() == ["time", "best", "bound", "gap", "last", "by"]
    assert lines == [log_line(line, line.seconds) for line in solution.history]
    assert tuple(heard) == solution.history
    assert found == f"{verdict(solution)} ({circumstances(solution)})"
    quiet = solve(PROBLEM, time_limit=None, seed=3)
    assert (quiet.schedule, quiet.certificate) == (solution.schedule, solution.certificate)
    assert {(each.name, each.levelno) for each in caplog.records} == {("cms", logging.INFO)}
