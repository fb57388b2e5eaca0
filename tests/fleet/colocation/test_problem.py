"""Co-location problems: classes, shares, weights, what they refuse, and their SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import cms
from cms.errors import InvalidProblem
from cms.fleet.colocation import (
    ColocationPlan,
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    sm_share,
)
from cms.fleet.colocation.edge_problems import posed
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
    assert [sm_share(a, 10, 5, clamp=True) for a in (85, 86, 100)] == [5, 5, 5]
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
