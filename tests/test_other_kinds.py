"""Problems of several kinds: who takes what; what the driver does with one is in test_share."""

from __future__ import annotations

from typing import Any

import pytest

import cms
from cms import Schedule, solve
from cms.errors import AlgorithmError, InvalidOption, InvalidSchedule, UnsupportedProblem
from cms.fleet.colocation import ColocationPlan, ColocationProblem
from cms.fleet.colocation.edge_problems import posed
from cms.plugin.algorithm import kinds_taken
from cms.plugin.registry import algorithm_of
from cms.testing import check_algorithm
from tests.plugins import OneByOne
from tests.scripted import Scripted, blocks

CROSSED = posed([1, 2], [2, 1], [[10, 9], [9, -1]])  # 9 + 2 * 9 = 27 of 29
BEST, WORSE = ColocationPlan({("g0", "w1"): 1, ("g1", "w0"): 2}), ColocationPlan({("g0", "w1"): 1})


class Sharing(Scripted):
    """Claims what it is told to about co-location problems."""

    takes = (ColocationProblem,)


def test_a_run_starts_from_a_schedule_of_its_kind() -> None:
    solution = solve(CROSSED, Sharing([BEST]), start=WORSE)
    assert [line.cost for line in solution.history] == [20, 2, 2]
    assert solution.schedule == BEST
    with pytest.raises(InvalidSchedule, match="start is not valid"):
        solve(CROSSED, Sharing([]), start=ColocationPlan({("g0", "w1"): 2}))
    with pytest.raises(InvalidOption, match="expected ColocationPlan"):
        solve(CROSSED, Sharing([]), start=Schedule())
    for claim in (Schedule(), cms.BlockPrices(), cms.SolverBound(3, "oracle")):
        with pytest.raises(AlgorithmError, match="expected ColocationPlan, |a solver's word is"):
            solve(CROSSED, Sharing([claim]))


@pytest.mark.parametrize(
    "method", [*cms.list_algorithms(), pytest.param(OneByOne(), id="one_by_one")]
)
def test_an_algorithm_that_does_not_take_it_says_so(method: Any) -> None:
    name, taken = getattr(method, "name", method), kinds_taken(algorithm_of(method)[0])
    for problem in (CROSSED, blocks(3)):
        if not isinstance(problem, taken):
            kind = type(problem).__name__
            words = rf"method '{name}' takes [\w ]*Problem; this problem is of type {kind}"
            with pytest.raises(UnsupportedProblem, match=words):
                solve(problem, method)


def test_an_algorithm_of_several_kinds_is_asked_about_each() -> None:
    class Both(OneByOne):
        takes = (cms.Problem, ColocationProblem)

    assert solve(blocks(3), Both()).cost == 2
    with pytest.raises(AlgorithmError, match=r"support\(\) raised AttributeError"):
        solve(CROSSED, Both())


def test_a_class_without_a_referee_is_no_problem() -> None:
    with pytest.raises(InvalidOption, match="expected a cms.Problem"):
        solve("a problem", OneByOne())  # type: ignore[arg-type]
    algorithm: Any = type("Odd", (OneByOne,), {"takes": (int,)})()
    report = check_algorithm(algorithm, [])
    assert "support" in report.failed
    assert "it takes int, for which no checker is registered" in str(report)
