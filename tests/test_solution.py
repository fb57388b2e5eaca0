"""A solution prints as a table, in a terminal and in a notebook, and travels between processes."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import pytest

from cms.algorithm import SolverBound
from cms.guarantee import Guarantee, GuaranteeVerdict, Verdict
from cms.model import Configuration
from cms.schedule import MachineGroup, Schedule
from cms.solution import GROUPS_SHOWN, Solution
from tests.scripted import HALF, QUARTER, blocks, serving, told


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


def test_what_is_not_proved_says_so() -> None:
    text = str(told(blocks(8), [serving(8, 5), QUARTER, SolverBound("7/2", "oracle")], True))
    assert "status         feasible\n" in text
    assert "claimed bound  4 (a solver's word)" in text
    assert "gap            3 (60.00%)" in text
    text = str(told(blocks(8), [serving(8, 4), SolverBound("7/2", "oracle")], True))
    assert "optimal (on a solver's word)" in text


def test_without_a_schedule_there_is_no_table_of_machines() -> None:
    text = str(told(blocks(8), []))
    assert text.startswith("status       no schedule\nlower bound  0\n")
    assert "configuration" not in text


def test_a_guarantee_is_printed_with_its_verdict() -> None:
    verdict = GuaranteeVerdict(Guarantee(2, 1, "OPT", "Theorem 7"), Verdict.OPEN)
    text = str(replace(optimal(), guarantee=verdict))
    assert "guarantee    cost <= 2 OPT + 1 (Theorem 7): open" in text


def test_machines_of_a_type_and_idle_ones_are_named() -> None:
    group = MachineGroup(Configuration({"b": 1}, "a100"), {}, 7)
    text = str(replace(optimal(), schedule=Schedule([group])))
    assert "       7  b on a100      (idle)" in text


def test_only_the_first_groups_are_printed() -> None:
    groups = [MachineGroup(Configuration({"b": n + 1}), {}, 1) for n in range(GROUPS_SHOWN + 5)]
    crowded = replace(optimal(), schedule=Schedule(groups))
    assert str(crowded).endswith("... and 5 more groups of machines")
    assert "<p>... and 5 more groups of machines</p>" in crowded._repr_html_()


def test_the_notebook_table_escapes_names() -> None:
    group = MachineGroup(Configuration({"<b>": 1}), {("<b>", "<script>"): 1}, 1)
    html = replace(optimal(), schedule=Schedule([group]))._repr_html_()
    assert "<script>" not in html
    assert "&lt;b&gt; -&gt; &lt;script&gt;" in html
    assert html.count("<table>") == html.count("</table>") == 2
    assert told(blocks(8), [])._repr_html_().count("<table>") == 1


def test_a_solution_pickles_and_does_not_change() -> None:
    solution = optimal()
    assert pickle.loads(pickle.dumps(solution)) == solution
    with pytest.raises(FrozenInstanceError):
        solution.cost = Fraction(0)  # type: ignore[misc]
