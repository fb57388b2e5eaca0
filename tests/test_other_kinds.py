"""The driver runs problems of another kind as it runs ours, and is told nothing about them."""

from __future__ import annotations

import pickle
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from cms import Incumbent, NamedProblem, Proof, Schedule, Status, StopReason, solve
from cms.errors import (
    AlgorithmError,
    InvalidOption,
    InvalidSchedule,
    UnsupportedProblem,
)
from cms.testing import check_algorithm
from tests.assignments import (
    Assignment,
    AssignmentPrices,
    AssignmentProblem,
    Hungarian,
    NoOptions,
)
from tests.plugins import OneByOne
from tests.scripted import blocks
from tests.texts import html_of

THREE = AssignmentProblem(((7, 5, 1), (6, 2, None), (8, 3, 2)))  # 13 of at most 21
TORN = AssignmentProblem(((1, None, None), (1, None, None), (1, 1, 1)))  # two tasks, one worker
WORTH = st.none() | st.integers(0, 6)
BEST, PRICES = Assignment((1, 0, 2)), AssignmentPrices((5, 4, 6), (2, 0, -4))


class Claims(Hungarian):
    """Claims what it is told to."""

    def __init__(self, *claims: object) -> None:
        self._claims = claims

    def run(self, problem: AssignmentProblem, options: NoOptions, budget: Any) -> Any:
        return self._claims


def least(problem: AssignmentProblem) -> int | None:
    """The least cost, by trying everything."""
    n = len(problem.values)
    found = [[problem.values[t][w] for t, w in enumerate(p)] for p in permutations(range(n))]
    valid = [problem.most - sum(v or 0 for v in values) for values in found if None not in values]
    return min(valid, default=None)


def refused(*claims: object) -> str:
    with pytest.raises(AlgorithmError) as caught:
        solve(THREE, Claims(*claims))
    return str(caught.value)


# --- driven, checked, reported --------------------------------------------------------------------


def test_it_is_solved_and_proved() -> None:
    lines: list[Incumbent] = []
    solution = solve(THREE, Hungarian(), on_improvement=lines.append)
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert solution.stop_reason is StopReason.PROVED
    assert solution.cost == solution.lower_bound == least(THREE) == 8
    assert solution.schedule == BEST
    assert cms.check(THREE, BEST) == ()
    assert solution.problem_sha256 == THREE.sha256
    assert [(line.cost, line.lower_bound) for line in lines] == [(None, 8), (8, 8)]
    assert solution.history == tuple(lines)
    unproved = solve(THREE, Claims(BEST))
    assert (unproved.status, unproved.stop_reason) == (Status.FEASIBLE, StopReason.FINISHED)


@given(st.integers(0, 4).flatmap(lambda n: st.tuples(*[st.tuples(*[WORTH] * n)] * n)))
def test_it_is_solved_like_by_trying_everything(values: Any) -> None:
    problem = AssignmentProblem(values)
    solution = solve(problem, Hungarian())
    assert solution.cost == least(problem)
    assert solution.status is (Status.INFEASIBLE if solution.cost is None else Status.OPTIMAL)
    assert solution.proof is Proof.CHECKED


def test_it_is_printed_and_pickled_without_machines() -> None:
    solution = solve(THREE, Hungarian())
    assert solution.machine_count is None
    text = str(solution).splitlines()
    assert text[0] == "status       optimal (checked proof)"
    assert "cost         8" in text
    assert not any(line.startswith("machines") for line in text)
    assert text[-4:] == ["task  worker", "   0  1", "   1  0", "   2  2"]
    assert "<th>task</th><th>worker</th>" in html_of(solution)
    assert pickle.loads(pickle.dumps(solution)) == solution


def test_a_run_starts_from_a_schedule_of_its_kind() -> None:
    solution = solve(THREE, Claims(), start=Assignment((0, 1, 2)))
    assert (solution.status, solution.cost) == (Status.FEASIBLE, 10)
    with pytest.raises(InvalidSchedule, match="task 1 has worker 2, needs one that may do it"):
        solve(THREE, Claims(), start=Assignment((0, 2, 1)))
    with pytest.raises(InvalidOption, match="expected Assignment"):
        solve(THREE, Claims(), start=Schedule())


def test_it_passes_the_conformance_suite() -> None:
    problems: Any = [
        NamedProblem(
            name=name,
            title=name,
            source="by hand",
            make=cast("Any", partial(AssignmentProblem, problem.values)),
            optimum=None if best is None else Fraction(best),
            infeasible=best is None,
        )
        for name, problem, best in (("three", THREE, 8), ("torn", TORN, None))
    ]
    report = check_algorithm(Hungarian(), problems)
    assert report.ok, report


# --- refused, by name -----------------------------------------------------------------------------


def test_a_lowered_price_is_refused() -> None:
    assert solve(THREE, Claims(BEST, PRICES)).status is Status.OPTIMAL
    lowered = AssignmentPrices((4, 4, 6), PRICES.workers)
    assert refused(lowered) == (
        "algorithm 'hungarian': claims a certificate that does not hold: task 0 at worker 0 is "
        "worth 7, more than their 6"
    )
    raised = solve(THREE, Claims(BEST, AssignmentPrices((6, 4, 6), PRICES.workers)))
    assert (raised.status, raised.gap) == (Status.FEASIBLE, 1)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (Assignment((0, 0, 1)), "worker 0 has 2 tasks, needs at most 1"),
        (Assignment((0, 2, 1)), "task 1 has worker 2, needs one that may do it"),
        (Assignment((0, 9, 1)), "task 1 has worker 9, needs one that may do it"),
        (Assignment((0, 1)), "the assignment has 2 tasks, needs 3"),
        (AssignmentPrices((9,), (9,)), "does not hold: expected 3 prices of tasks and workers"),
        (Schedule(), "an object of type 'Schedule'; expected Assignment, AssignmentPrices or"),
        (cms.BlockPrices(), "an object of type 'BlockPrices'; expected Assignment"),
        (cms.SolverBound(3, "oracle"), "a solver's word is accepted from the algorithms of"),
        ("a word", "an object of type 'str'"),
    ],
)
def test_a_false_claim_is_named(claim: object, words: str) -> None:
    assert words in refused(claim)


# --- who takes what -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*cms.algorithms(), pytest.param(OneByOne(), id="one_by_one")])
def test_an_algorithm_that_does_not_take_it_says_so(method: Any) -> None:
    name = getattr(method, "name", method)
    words = rf"method '{name}' takes [\w, ]*Problem; this problem is of type AssignmentProblem"
    with pytest.raises(UnsupportedProblem, match=words):
        solve(THREE, method)


def test_it_does_not_take_ours_and_one_of_several_kinds_is_asked_about_each() -> None:
    words = "method 'hungarian' takes AssignmentProblem; this problem is of type Problem"
    with pytest.raises(UnsupportedProblem, match=words):
        solve(blocks(3), Hungarian())

    class Both(OneByOne):
        takes = (cms.Problem, AssignmentProblem)

    assert solve(blocks(3), Both()).cost == 2
    with pytest.raises(AlgorithmError, match=r"support\(\) raised AttributeError"):
        solve(THREE, Both())


def test_a_class_without_a_referee_is_no_problem() -> None:
    with pytest.raises(InvalidOption, match="expected a cms.Problem"):
        solve("a problem", Hungarian())  # type: ignore[arg-type]
    algorithm: Any = type("Odd", (Hungarian,), {"takes": (int,)})()
    report = check_algorithm(algorithm, [])
    assert "takes" in report.failed
    assert "it takes int, for which no referee is registered" in str(report)
