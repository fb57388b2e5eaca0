"""What is claimed about sharing is checked: plans, prices, liars; and how answers are told."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import cms
from cms import Proof, Status, StopReason
from cms.errors import (
    AlgorithmError,
    InvalidCertificate,
    InvalidOption,
    InvalidSchedule,
    UnsupportedProblem,
)
from cms.fleet.colocation import (
    AssignmentPrices,
    ColocationIncumbent,
    ColocationPlan,
    ColocationProblem,
    colocate,
)
from cms.fleet.colocation.edge_problems import SHARING_EDGE_PROBLEMS, posed
from tests.references.colocation import best_value
from tests.samples import refusal

CROSSED = posed([1, 2], [2, 1], [[10, 9], [9, -1]])  # 9 + 2 * 9 = 27 of 29
BEST = ColocationPlan({("g0", "w1"): 1, ("g1", "w0"): 2})
PRICES = AssignmentPrices({"g0": 1}, {"w0": 9, "w1": 8})


@dataclass(frozen=True)
class NoOptions:
    """It has none."""


class Claims:
    """A third party that claims what it is told to."""

    name = "stranger"
    options_type: type = NoOptions
    takes = (ColocationProblem,)

    def __init__(self, *claims: object) -> None:
        self._claims = claims

    def support(self, problem: ColocationProblem, options: Any) -> cms.Support:
        return cms.Support(True)

    def guarantee(self, problem: ColocationProblem, options: Any) -> None:
        return None

    def run(self, problem: ColocationProblem, options: Any, budget: Any) -> Iterator[Any]:
        yield from self._claims


@pytest.mark.parametrize("named", SHARING_EDGE_PROBLEMS, ids=lambda named: named.name)
def test_the_optimum_of_an_edge_problem_is_what_it_says(named: cms.NamedProblem) -> None:
    problem = named.make()
    solution = colocate(problem)
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert problem.most - solution.value == named.optimum
    if named.name != "colocation_vast":
        assert solution.value == best_value(problem)


def test_a_plan_is_found_proved_and_told() -> None:
    lines: list[ColocationIncumbent] = []
    solution = colocate(CROSSED, on_improvement=lines.append)
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert solution.stop_reason is StopReason.PROVED
    assert (solution.plan, solution.value, solution.upper_bound, solution.gap) == (BEST, 27, 27, 0)
    assert solution.certificate.upper_bound(CROSSED) == 27
    assert solution.problem_sha256 == CROSSED.sha256
    assert solution.history == tuple(lines)
    values, bounds = [line.value for line in lines], [line.upper_bound for line in lines]
    assert (values, bounds) == (sorted(values), sorted(bounds, reverse=True))
    assert pickle.loads(pickle.dumps(solution)) == solution
    text = str(colocate(posed([600], [900], [[718_666]]))).splitlines()
    assert [line.split()[-1] for line in text[1:4]] == ["600", "431.1996", "431.1996"]
    loss: Any = cms.solve(CROSSED, "muxflow")
    assert (loss.status, loss.cost, loss.schedule) == ("optimal", 2, BEST)


def test_a_run_may_find_nothing_start_from_a_plan_and_end_by_its_gap() -> None:
    cancel = threading.Event()
    cancel.set()
    for solution in (colocate(CROSSED, Claims()), colocate(CROSSED, cancel=cancel)):
        assert (solution.status, solution.value, solution.plan) == ("feasible", 0, ColocationPlan())
        assert solution.certificate.upper_bound(CROSSED) == solution.upper_bound == 29
    solution = colocate(CROSSED, Claims(), start=ColocationPlan({("g0", "w0"): 1}))
    assert (solution.value, solution.history[0].source) == (10, "start")
    with pytest.raises(InvalidSchedule, match="forbidden"):
        colocate(CROSSED, start=ColocationPlan({("g1", "w1"): 1}))
    with pytest.raises(InvalidOption, match="expected ColocationPlan"):
        colocate(CROSSED, start=cms.Schedule())  # type: ignore[arg-type]
    solution = colocate(CROSSED, Claims(BEST, PRICES), gap=2)
    assert (solution.stop_reason, solution.value) == (StopReason.GAP, 27)
    raised = colocate(CROSSED, Claims(BEST, AssignmentPrices({"g0": 2}, dict(PRICES.offline))))
    assert (raised.status, raised.gap) == (Status.FEASIBLE, 1)
    machines = cms.Problem(configurations=cms.Configuration({"b": 1}))
    assert "takes ColocationProblem" in refusal(UnsupportedProblem, cms.solve, machines, "muxflow")


class Boastful(ColocationPlan):
    """A plan that could answer for itself."""


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (ColocationPlan({("g0", "w0"): 1, ("g1", "w1"): 1}), "the pair 'g1' and 'w1'"),
        (ColocationPlan({("g0", "w0"): 1, ("g0", "w1"): 1}), "'g0' has 2 workloads, needs at most"),
        (ColocationPlan({("g0", "w0"): 1, ("g9", "w0"): 1}), "online class 'g9'"),
        (AssignmentPrices({"g7": 9}, {}), "online class 'g7'"),
        (AssignmentPrices({}, {}), "is worth 10, more than their prices 0 + 0"),
        (Boastful({("g0", "w0"): 1}), "'Boastful'"), (cms.Schedule(), "'Schedule'"),
    ],
)  # fmt: skip
def test_a_false_claim_is_named(claim: object, words: str) -> None:
    assert words in refusal(AlgorithmError, colocate, CROSSED, Claims(claim))


def test_prices_of_any_size_are_compared_exactly() -> None:
    vast = 10**40
    prices = AssignmentPrices({"g0": vast}, {"w0": vast})
    assert prices.upper_bound(posed([3], [5], [[7]])) == 8 * vast
    beyond = posed([10**30], [10**31], [[7]])
    assert AssignmentPrices({"g0": 7}, {}).upper_bound(beyond) == 7 * 10**30
    low, two = AssignmentPrices({"g1": vast, "g0": 10}, {}), posed([1, 1], [1], [[11], [11]])
    assert "'g0'" in refusal(InvalidCertificate, low.upper_bound, two)
