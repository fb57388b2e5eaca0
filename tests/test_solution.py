"""A solution prints, travels between processes, and is told in the log as it is found."""

from __future__ import annotations

import logging
import pickle
import sys
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from subprocess import run

import pytest

from cms import Configuration, Incumbent, Job, Problem, solve
from cms.certificate.certificate import BlockPrices
from cms.errors import FileError
from cms.files import solution_to_json
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import GROUPS_SHOWN, Solution
from cms.solving.words import circumstances, log_line, verdict
from tests.scripted import HALF, blocks, serving, told
from tests.texts import html_of


def optimal() -> Solution:
    solution = told(blocks(5), [serving(5, 3), HALF])
    assert isinstance(solution, Solution)
    return replace(solution, seconds=0.125)


def test_a_solution_prints_as_a_table() -> None:
    assert str(optimal()).splitlines() == [
        "status       optimal (checked proof)",
        "machines     3",
        "cost         3",
        "lower bound  3",
        "gap          0",
        "method       scripted, 0.12 s, ended: proved",
        "",
        "machines  configuration  blocks given to jobs",
        "       2  2 x b          2 x b -> x",
        "       1  2 x b          b -> x",
    ]


def test_only_the_first_groups_are_printed_and_names_are_escaped() -> None:
    odd = MachineGroup(Configuration({"<b>": 1}, "a100"), {("<b>", "<script>"): 1}, 1)
    groups = [MachineGroup(Configuration({"b": n + 1}), {}, 1) for n in range(GROUPS_SHOWN + 4)]
    crowded = replace(optimal(), schedule=Schedule([odd, *groups]))
    assert "       1  <b> on a100    <b> -> <script>\n" in str(crowded)
    assert "       1  b              (idle)\n" in str(crowded)
    assert str(crowded).endswith("... and 5 more groups of machines")
    html = html_of(crowded)
    assert "<script>" not in html
    assert "&lt;b&gt; -&gt; &lt;script&gt;" in html
    assert "<p>... and 5 more groups of machines</p>" in html
    assert html.count("<table") == html.count("</table>") == 1


def test_a_solution_pickles_and_does_not_change() -> None:
    solution = optimal()
    assert pickle.loads(pickle.dumps(solution)) == solution
    with pytest.raises(FrozenInstanceError):
        solution.cost = Fraction(0)  # type: ignore[misc]


def test_numbers_that_python_would_not_print_are_printed() -> None:
    """Costs are sums: they may be longer than any number that is read."""
    limit = 9 * 10**4299
    problem = blocks(50, cost=limit)
    solution = told(problem, [serving(50, 25), BlockPrices({"b": limit // 4})])
    text = str(solution)
    assert "cost         about 2.250e4301\n" in text
    assert "gap          about 1.080e4301 (48.00%)" in text
    assert "about 2.250e4301" in html_of(solution)
    with pytest.raises(FileError, match=r"the number about 2\.250e4301, .*; choose a larger unit"):
        solution_to_json(solution)


@pytest.mark.parametrize("method", ["auto", "cp_sat", "greedy"])
def test_costs_of_any_length_are_solved(method: str) -> None:
    assert solve(blocks(50, cost=9 * 10**4299), method).cost == 225 * 10**4299


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
