"""Co-location problems: classes, shares, weights, what they refuse, and their SHA-256."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cms
from bench.colocation_figures.matching import best_value
from cms import Proof, Status, StopReason
from cms.errors import (
    AlgorithmError,
    InvalidCertificate,
    InvalidOption,
    InvalidProblem,
    InvalidSchedule,
    UnsupportedProblem,
)
from cms.fleet.colocation import (
    AssignmentPrices,
    ColocationIncumbent,
    ColocationPlan,
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    colocate,
    sm_share,
)
from cms.fleet.colocation.edge_problems import SHARING_EDGE_PROBLEMS, posed
from tests.samples import few, refusal

GPU = OnlineClass("a100-80gb", count=3, sm_activity=20, memory_mib=9_000, memory_total_mib=81_920)
TRAIN = OfflineClass("train", count=5, memory_mib=12_000)


@pytest.mark.parametrize("lowests", few(1, [(0, 5, 20), range(21)]))
def test_the_share_is_what_activity_and_margin_leave_and_never_rises_with_them(
    lowests: Sequence[int],
) -> None:
    """Exhaustive in the long run: 101 activities, 51 margins, 21 lowest shares."""
    for lowest in lowests:
        table = [[sm_share(a, m, lowest) for m in range(51)] for a in range(101)]
        for a in range(101):
            for m in range(51):
                left = 100 - a - m
                assert table[a][m] == (left if left >= lowest else 0)
                assert a == 0 or table[a][m] <= table[a - 1][m]
                assert m == 0 or table[a][m] <= table[a][m - 1]
    assert [sm_share(a, 10, 5) for a in (20, "20.0001", "84.9", 85, "85.1")] == [70, 69, 5, 5, 0]
    for numbers, words in (((101, 10, 5), "101"), ((20, 101, 5), "margin"), ((20, 10, -1), "-1")):
        assert words in refusal(InvalidProblem, sm_share, *numbers)


def problem(weights: Any = ((700_000,),), **more: Any) -> ColocationProblem:
    return ColocationProblem(**{"online": [GPU], "offline": [TRAIN], "weights": weights, **more})


def online(**change: Any) -> OnlineClass:
    return OnlineClass("a100-80gb", **{"count": 3, "sm_activity": 20, **change})


def test_pairs_without_memory_or_without_a_share_are_forbidden() -> None:
    large = OfflineClass("large", count=1, memory_mib=72_921)
    just = OfflineClass("just", count=1, memory_mib=72_920)
    busy = OnlineClass("a100-80gb", count=1, sm_activity=86, memory_total_mib=81_920, name="busy")
    full = online(memory_mib=70_000, memory_total_mib=81_920, name="full")
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    given = problem(rows, online=[GPU, busy, full], offline=[TRAIN, large, just])
    assert given.shares == (70, 0, 70)
    assert given.weights.tolist() == [[1, -1, 3], [-1, -1, -1], [-1, -1, -1]]
    assert given.value(ColocationPlan({(GPU.name, "large"): 1, (GPU.name, "just"): 1})) == 3
    assert (given.weight(GPU.name, "large"), given.weight(GPU.name, "just")) == (None, 3)


def test_weights_may_be_a_function_that_is_asked_once_a_pair_that_may_be() -> None:
    asked = []

    def weight(online: OnlineClass, offline: OfflineClass) -> int | None:
        asked.append((online.name, offline.name))
        return None if offline.name == "no" else 500_000

    large = OfflineClass("large", count=1, memory_mib=10**6)
    given = problem(weight, offline=[TRAIN, OfflineClass("no", count=1), large])
    assert given.weights.tolist() == [[500_000, -1, -1]]
    assert asked == [(GPU.name, "train"), (GPU.name, "no")]
    for kind in (np.int16, np.uint32, np.int64, object):
        assert problem(np.array([[123]], dtype=kind)).weights.tolist() == [[123]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: online(sm_activity="0.2"), "is 0.2, which looks like a fraction"),
        (lambda: online(count=-1), "count of online class 'a100-80gb 20%' is -1"),
        (lambda: online(name="a\nb"), "control character"),
        (lambda: OfflineClass("train", count="3"), "count of offline class 'train' is '3'"),  # type: ignore[arg-type]
        (lambda: OfflineClass("train", count=3, priority=0), "priority of offline class"),
        (lambda: problem([[1, 2]]), "shape (1, 2); expected (1, 1)"),
        (lambda: problem([[1_000_001]]), "expected at most 1000000"),
        (lambda: problem(lambda *_: -1), "is -1"),
        (lambda: problem([[1], [1]], online=[GPU, GPU]), "two online classes"),
        (lambda: problem(offline=["train"]), "'train'"),
        (lambda: problem(online=[online(name="g")]), "online class 'g' has no memory_total_mib"),
        (lambda: problem(online=[online(running="trian")]), "nearest: 'train'"),
    ],
)
def test_what_is_odd_is_refused_by_name(make: Any, words: str) -> None:
    assert words in refusal(InvalidProblem, make)


def test_the_digest_is_of_what_the_documentation_says_and_every_part_counts() -> None:
    text = (
        '{"lowest_share":5,"margin":10,"offline":[{"count":5,"memory_mib":"12000","model":"train",'
        '"name":"train","priority":"1"}],"online":[{"count":3,"device":"a100-80gb","memory_mib":'
        '"9000","memory_total_mib":"81920","model":"","name":"a100-80gb 20%, 9000 MiB","running":'
        'null,"slowdown_limit":null,"sm_activity":"20"}]}'
    )
    data = f"cms-sharing-problem-1\n{text}\n".encode() + (700_000).to_bytes(8, "little")
    assert problem().sha256 == hashlib.sha256(data).hexdigest()
    own = {"memory_mib": 9_000, "memory_total_mib": 81_920, "name": GPU.name}
    others = [
        problem(), problem([[700_001]]), problem(margin=9), problem(lowest_share=6),
        problem(offline=[OfflineClass("train", count=6, memory_mib=12_000)]),
        problem(offline=[OfflineClass("train", count=5, memory_mib=12_000, priority=2)]),
        *(
            problem(online=[online(**{**own, key: value})])
            for key, value in (
                ("count", 4), ("sm_activity", "20.5"), ("memory_mib", 9_001), ("model", "bert"),
                ("memory_total_mib", 81_921), ("slowdown_limit", "1.2"), ("running", "train"),
                ("name", "other"),
            )
        ),
    ]  # fmt: skip
    assert len({each.sha256 for each in others}) == len(others)


def test_an_empty_problem_has_an_empty_answer_and_vast_counts_are_exact() -> None:
    empty = ColocationProblem(online=[], offline=[], weights=[])
    assert (empty.most, empty.weights.shape, empty.value(ColocationPlan())) == (0, (0, 0), 0)
    assert cms.check(empty, ColocationPlan()) == ()
    vast = posed([10**30], [10**30], [[999_999]])
    assert vast.most == 999_999 * 10**30
    assert vast.value(ColocationPlan({("g0", "w0"): 10**29})) == 999_999 * 10**29


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
