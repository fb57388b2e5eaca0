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
from cms.fleet import share as share_by_page
from cms.fleet.sharing import AssignmentPrices, SharingIncumbent, SharingPlan, SharingProblem, share
from cms.fleet.sharing.edge_problems import SHARING_CROWDS, SHARING_EDGE_PROBLEMS, posed
from cms.testing import CHECKS
from cms.testing.checks import Laboratory
from tests.references.sharing import best_value
from tests.samples import refusal

CROSSED = posed([1, 2], [2, 1], [[10, 9], [9, -1]])  # 9 + 2 * 9 = 27 of 29
BEST = SharingPlan({("g0", "w1"): 1, ("g1", "w0"): 2})
PRICES = AssignmentPrices({"g0": 1}, {"w0": 9, "w1": 8})


@dataclass(frozen=True)
class NoOptions:
    """It has none."""


class Claims:
    """A third party that claims what it is told to."""

    name = "stranger"
    options_type: type = NoOptions
    takes = (SharingProblem,)

    def __init__(self, *claims: object) -> None:
        self._claims = claims

    def support(self, problem: SharingProblem, options: Any) -> cms.Support:
        return cms.Support(True)

    def guarantee(self, problem: SharingProblem, options: Any) -> None:
        return None

    def run(self, problem: SharingProblem, options: Any, budget: Any) -> Iterator[Any]:
        yield from self._claims


def refused(*claims: object) -> str:
    return refusal(AlgorithmError, share, CROSSED, Claims(*claims))


# --- checked, proved, told ------------------------------------------------------------------------


@pytest.mark.parametrize("named", SHARING_EDGE_PROBLEMS, ids=lambda named: named.name)
def test_the_optimum_of_an_edge_problem_is_what_it_says(named: cms.NamedProblem) -> None:
    problem = named.make()
    solution = share(problem)
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert problem.most - solution.value == named.optimum
    if named.name != "sharing_vast":
        assert solution.value == best_value(problem)


def test_a_plan_is_found_proved_and_told() -> None:
    lines: list[SharingIncumbent] = []
    solution = share_by_page(CROSSED, on_improvement=lines.append)
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)
    assert solution.stop_reason is StopReason.PROVED
    assert (solution.plan, solution.value, solution.upper_bound, solution.gap) == (BEST, 27, 27, 0)
    assert solution.relative_gap == 0
    assert solution.certificate.upper_bound(CROSSED) == 27
    assert solution.problem_sha256 == CROSSED.sha256
    assert solution.history == tuple(lines)
    values, bounds = [line.value for line in lines], [line.upper_bound for line in lines]
    assert values == sorted(values)
    assert bounds == sorted(bounds, reverse=True)
    assert pickle.loads(pickle.dumps(solution)) == solution
    text = str(share(posed([600], [900], [[718_666]]))).splitlines()
    assert text[:4] == [
        "status       optimal (checked proof)",
        "workloads    600",
        "value        431.1996",
        "upper bound  431.1996",
    ]
    assert text[-2:] == ["GPUs  online  offline", " 600  g0      w0"]
    open_ended = str(share(CROSSED, Claims(BEST)))
    assert "gap          0.000001 (3.571%)" in open_ended


def test_solve_takes_it_as_well_and_tells_the_loss() -> None:
    solution: Any = cms.solve(CROSSED, "muxflow")
    assert (solution.status, solution.cost, solution.schedule) == ("optimal", 2, BEST)
    words = refusal(UnsupportedProblem, cms.solve, CROSSED)
    assert words.startswith("method 'auto' takes Problem")
    words = refusal(UnsupportedProblem, cms.solve, posed_of_machines(), "muxflow")
    assert words == "method 'muxflow' takes SharingProblem; this problem is of type Problem"
    assert "expected a SharingProblem" in refusal(InvalidOption, share, posed_of_machines())


def posed_of_machines() -> cms.Problem:
    return cms.Problem(configurations=cms.Configuration({"b": 1}))


def test_a_run_that_finds_nothing_shares_nothing() -> None:
    cancel = threading.Event()
    cancel.set()
    for solution in (share(CROSSED, Claims()), share(CROSSED, cancel=cancel)):
        assert (solution.status, solution.value, solution.plan) == ("feasible", 0, SharingPlan())
        assert solution.certificate.upper_bound(CROSSED) == solution.upper_bound == 29


def test_a_run_starts_from_a_plan() -> None:
    solution = share(CROSSED, Claims(), start=SharingPlan({("g0", "w0"): 1}))
    assert (solution.value, solution.history[0].source) == (10, "start")
    with pytest.raises(InvalidSchedule, match="1 workloads, needs 0: forbidden"):
        share(CROSSED, start=SharingPlan({("g1", "w1"): 1}))
    with pytest.raises(InvalidOption, match="expected SharingPlan"):
        share(CROSSED, start=cms.Schedule())  # type: ignore[arg-type]


def test_a_gap_that_is_small_enough_ends_a_run() -> None:
    solution = share(CROSSED, Claims(BEST, PRICES), gap=2)
    assert (solution.stop_reason, solution.value) == (StopReason.GAP, 27)


# --- refused, by name -----------------------------------------------------------------------------


def test_prices_that_hold_prove_and_one_lowered_by_one_is_refused() -> None:
    assert share(CROSSED, Claims(BEST, PRICES)).status is Status.OPTIMAL
    lowered = AssignmentPrices({"g0": 1}, {"w0": 9, "w1": 7})
    assert refused(lowered) == (
        "algorithm 'stranger': claims a certificate that does not hold: 'w1' beside 'g0' is worth "
        "9, more than their prices 1 + 7"
    )
    raised = share(CROSSED, Claims(BEST, AssignmentPrices({"g0": 2}, dict(PRICES.offline))))
    assert (raised.status, raised.gap) == (Status.FEASIBLE, 1)


class Boastful(SharingPlan):
    """A plan that could answer for itself."""


class Generous(AssignmentPrices):
    """Prices that could answer for themselves."""


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            SharingPlan({("g0", "w0"): 1, ("g1", "w1"): 1, ("g1", "w0"): 1}),
            "the pair 'g1' and 'w1' has 1 workloads, needs 0: forbidden",
        ),
        (
            SharingPlan({("g0", "w0"): 1, ("g0", "w1"): 1}),
            "online class 'g0' has 2 workloads, needs at most 1: one a GPU",
        ),
        (
            SharingPlan({("g0", "w0"): 1, ("g1", "w0"): 2}),
            "offline class 'w0' has 3 workloads placed, needs at most 2",
        ),
        (
            SharingPlan({("g0", "w0"): 1, ("g9", "w0"): 1}),
            "has the online class 'g9', which the problem does not have, needs a known one",
        ),
        (
            SharingPlan({("g0", "w0"): 1, ("g0", "x0"): 1}),
            "has the offline class 'x0', which the problem does not have, needs a known one",
        ),
        (AssignmentPrices({"g7": 9}, {}), "a price of online class 'g7', which the problem does"),
        (AssignmentPrices({}, {"w7": 9}), "a price of offline class 'w7', which the problem does"),
        (AssignmentPrices({}, {}), "is worth 10, more than their prices 0 + 0"),
        (Boastful({("g0", "w0"): 1}), "an object of type 'Boastful'; expected SharingPlan"),
        (Generous({}, {"w0": 10, "w1": 9}), "an object of type 'Generous'"),
        (cms.Schedule(), "an object of type 'Schedule'; expected SharingPlan, AssignmentPrices"),
        (cms.SolverBound(3, "oracle"), "a solver's word is accepted from the algorithms of"),
    ],
)
def test_a_false_claim_is_named(claim: object, words: str) -> None:
    assert words in refused(claim)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SharingPlan([("g0", "w0", 1)]), "expected a mapping of pairs of names"),  # type: ignore[arg-type]
        (lambda: SharingPlan({"g0": 1}), "counts has the key 'g0'; expected a pair of names"),  # type: ignore[dict-item]
        (lambda: SharingPlan({("g0", ""): 1}), "offline class name is ''"),
        (lambda: SharingPlan({("g0", "w0"): 0}), "is 0; expected a whole number >= 1"),
        (lambda: SharingPlan({("g0", "w0"): 1.0}), "is 1.0; expected a whole number"),  # type: ignore[dict-item]
    ],
)
def test_an_odd_plan_is_refused(make: Any, words: str) -> None:
    assert words in refusal(InvalidSchedule, make)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        (({"g0": -1}, {}), "the price of online class 'g0' is -1; expected a whole number >= 0"),
        (({}, {"w0": 0.5}), "the price of offline class 'w0' is 0.5; expected a whole number"),
        (({}, [5]), "prices of offline classes are [5]; expected a mapping"),
        (({"": 1}, {}), "online class name is ''"),
    ],
)
def test_odd_prices_are_refused(prices: Any, words: str) -> None:
    assert words in refusal(InvalidCertificate, AssignmentPrices, *prices)


def test_prices_of_any_size_are_compared_exactly() -> None:
    vast = 10**40
    prices = AssignmentPrices({"g0": vast}, {"w0": vast})
    assert prices.upper_bound(posed([3], [5], [[7]])) == 8 * vast
    beyond = posed([10**30], [10**31], [[7]])
    assert AssignmentPrices({"g0": 7}, {}).upper_bound(beyond) == 7 * 10**30
    assert "more than their prices 1" in refusal(
        InvalidCertificate, AssignmentPrices({"g1": vast, "g0": 10}, {}).upper_bound,
        posed([1, 1], [1], [[11], [11]]),
    )  # fmt: skip


def test_plans_and_prices_are_immutable_and_equal_by_content() -> None:
    plan, prices = SharingPlan({("g0", "w0"): 1}), AssignmentPrices({"g0": 1, "g1": 0}, {})
    for thing in (plan, prices):
        with pytest.raises(AttributeError, match="immutable"):
            thing.counts = {}
        with pytest.raises(AttributeError, match="immutable"):
            del thing.counts  # type: ignore[union-attr]
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert thing != "thing"
    assert dict(prices.online) == {"g0": 1}


def test_an_algorithm_of_a_third_party_is_tried_on_problems_of_sharing() -> None:
    class Greedy(Claims):
        def run(self, problem: SharingProblem, options: Any, budget: Any) -> Iterator[Any]:
            left = {work.name: work.count for work in problem.offline}
            counts = {}
            for gpus in problem.online:
                free = gpus.count
                for work in problem.offline:
                    n = min(free, left[work.name])
                    if n and problem.weight(gpus.name, work.name) is not None:
                        counts[gpus.name, work.name] = n
                        free, left[work.name] = free - n, left[work.name] - n
            yield SharingPlan(counts)

    assert Laboratory(Greedy()).problems == SHARING_EDGE_PROBLEMS
    assert Laboratory(Greedy()).crowds[-1] in SHARING_CROWDS
    laboratory = Laboratory(Greedy(), SHARING_EDGE_PROBLEMS[6:9], seeds=[0])
    results = [check.result(laboratory) for check in CHECKS if check.name != "clock"]
    assert all(result.passed for result in results), results
    liar = Claims(SharingPlan({("g0", "w0"): 2}))
    laboratory = Laboratory(liar, SHARING_EDGE_PROBLEMS[6:9], seeds=[0])
    failed = [check.name for check in CHECKS[:4] if not check.result(laboratory).passed]
    assert failed == ["claims"]
