"""Problems of sharing: classes, shares, weights, what they refuse, and their SHA-256."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cms
from cms.errors import InvalidProblem
from cms.fleet.sharing import OfflineClass, OnlineClass, SharingPlan, SharingProblem, sm_share
from cms.fleet.sharing.edge_problems import posed
from tests.samples import few, refusal

GPU = OnlineClass("a100-80gb", count=3, sm_activity=20, memory_mib=9_000, memory_total_mib=81_920)
TRAIN = OfflineClass("train", count=5, memory_mib=12_000)


@pytest.mark.parametrize("lowests", few(1, [(0, 5, 20), range(21)]))
def test_the_share_never_rises_with_activity_or_margin_and_is_none_or_within_its_bounds(
    lowests: Sequence[int],
) -> None:
    """Exhaustive in the long run: 101 activities, 51 margins, 21 lowest shares."""
    for lowest in lowests:
        table = [[sm_share(a, m, lowest) for m in range(51)] for a in range(101)]
        for a in range(101):
            for m in range(51):
                share = table[a][m]
                assert share == 0 or lowest <= share <= 100 - a - m
                assert share == (100 - a - m if 100 - a - m >= lowest else 0) or 100 - a - m < 0
                assert a == 0 or share <= table[a - 1][m]
                assert m == 0 or share <= table[a][m - 1]


def test_activity_is_rounded_up_before_the_share_is_taken() -> None:
    assert [sm_share(a, 10, 5) for a in (20, "20.0001", "84.9", 85, "85.1")] == [70, 69, 5, 5, 0]
    assert [sm_share(a, 10, 5, clamp=True) for a in (85, 86, 100)] == [5, 5, 5]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((101, 10, 5), "activity is 101; expected per cent, 0 to 100"),
        ((20, 101, 5), "margin is 101; expected whole per cent, 0 to 100"),
        ((20, 10, -1), "lowest share is -1; expected a whole number >= 0"),
    ],
)
def test_a_share_of_odd_numbers_is_refused(numbers: Any, words: str) -> None:
    assert words in refusal(InvalidProblem, sm_share, *numbers)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sm_activity": "0.2"}, "is 0.2, which looks like a fraction; expected per cent: 20"),
        ({"sm_activity": 120}, "is 120; expected per cent, 0 to 100"),
        ({"count": -1}, "count of online class 'a100-80gb 20%' is -1"),
        ({"count": 2.5}, "count of online class 'a100-80gb 20%' is 2.5; expected a whole number"),
        ({"slowdown_limit": "0.9"}, "is 0.9; expected a factor >= 1, such as 1.2"),
        ({"memory_mib": 9, "memory_total_mib": 8}, "expected at most its memory_total_mib, 8"),
        ({"name": "a\nb"}, "contains a control character"),
    ],
)
def test_an_odd_online_class_is_refused(change: dict[str, Any], words: str) -> None:
    given: Any = {"count": 3, "sm_activity": 20, **change}
    assert words in refusal(InvalidProblem, lambda: OnlineClass("a100-80gb", **given))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": "3"}, "count of offline class 'train' is '3'"),
        ({"priority": 0}, "priority of offline class 'train' is 0; expected a number > 0"),
        ({"priority": 10**7}, "is 10000000; expected a number > 0 and <= 1000000"),
        ({"memory_mib": -1}, "memory_mib of offline class 'train' is -1"),
    ],
)
def test_an_odd_offline_class_is_refused(change: dict[str, Any], words: str) -> None:
    given: Any = {"count": 3, **change}
    assert words in refusal(InvalidProblem, lambda: OfflineClass("train", **given))


def problem(weights: Any = ((700_000,),), **more: Any) -> SharingProblem:
    return SharingProblem(**{"online": [GPU], "offline": [TRAIN], "weights": weights, **more})


def test_pairs_without_memory_or_without_a_share_are_forbidden() -> None:
    large = OfflineClass("large", count=1, memory_mib=72_921)
    just = OfflineClass("just", count=1, memory_mib=72_920)
    busy = OnlineClass("a100-80gb", count=1, sm_activity=86, memory_total_mib=81_920, name="busy")
    given = problem([[1, 2, 3], [4, 5, 6]], online=[GPU, busy], offline=[TRAIN, large, just])
    assert given.shares == (70, 0)
    assert given.weights.tolist() == [[1, -1, 3], [-1, -1, -1]]
    assert given.weight(GPU.name, "large") is None
    assert given.weight(GPU.name, "just") == 3


def test_weights_may_be_a_function_that_is_asked_once_a_pair_that_may_be() -> None:
    asked = []

    def weight(online: OnlineClass, offline: OfflineClass) -> int | None:
        asked.append((online.name, offline.name))
        return None if offline.name == "no" else 500_000

    large = OfflineClass("large", count=1, memory_mib=10**6)
    given = problem(weight, offline=[TRAIN, OfflineClass("no", count=1), large])
    assert given.weights.tolist() == [[500_000, -1, -1]]
    assert asked == [(GPU.name, "train"), (GPU.name, "no")]
    assert pickle.loads(pickle.dumps(given)) == given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weights": [[1, 2]]}, "weights has shape (1, 2); expected (1, 1)"),
        ({"weights": [[1_000_001]]}, "expected at most 1000000, which is a million times its"),
        ({"weights": [[-2]]}, "weight of 'train' beside 'a100-80gb 20%, 9000 MiB' is -2"),
        ({"weights": [[0.5]]}, "is 0.5; expected a whole number >= -1"),
        ({"weights": [[True]]}, "is True; expected a whole number"),
        ({"weights": [["x"]]}, "expected a whole number"),
        ({"weights": lambda *_: 10**6 + 1}, "is 1000001; expected at most 1000000"),
        ({"weights": lambda *_: -1}, "is -1; expected a whole number >= 0"),
        ({"online": [GPU, GPU], "weights": [[1], [1]]}, "two online classes are called"),
        ({"offline": ["train"]}, "offline contains 'train'; expected OfflineClass objects"),
        ({"margin": 101}, "margin is 101; expected whole per cent, 0 to 100"),
        ({"lowest_share": "5"}, "lowest_share is '5'; expected a whole number"),
        (
            {"online": [OnlineClass("a30", count=1, sm_activity=2)]},
            "offline class 'train' needs 12000 MiB, and online class 'a30 2%' has no "
            "memory_total_mib; give what its device has",
        ),
        (
            {"online": [OnlineClass("a30", count=1, sm_activity=2, running="trian")]},
            "runs 'trian', which is no offline class; nearest: 'train'; leave it out",
        ),
    ],
)
def test_an_odd_problem_is_refused(given: dict[str, Any], words: str) -> None:
    assert words in refusal(InvalidProblem, lambda: problem(**given))


def test_a_priority_allows_higher_weights() -> None:
    dear = OfflineClass("dear", count=1, priority="2.5")
    assert problem([[2_500_000]], offline=[dear]).most == 2_500_000
    assert "expected at most 2500000" in refusal(
        InvalidProblem, lambda: problem([[2_500_001]], offline=[dear])
    )


def test_the_digest_is_of_what_the_documentation_says() -> None:
    text = (
        '{"lowest_share":5,"margin":10,"offline":[{"count":5,"memory_mib":"12000","model":"train",'
        '"name":"train","priority":"1"}],"online":[{"count":3,"device":"a100-80gb","memory_mib":'
        '"9000","memory_total_mib":"81920","model":"","name":"a100-80gb 20%, 9000 MiB","running":'
        'null,"slowdown_limit":null,"sm_activity":"20"}]}'
    )
    data = f"cms-sharing-problem-1\n{text}\n".encode() + (700_000).to_bytes(8, "little")
    assert problem().sha256 == hashlib.sha256(data).hexdigest()


def test_every_part_counts_in_the_digest() -> None:
    others = [
        problem([[700_001]]),
        problem(margin=9),
        problem(lowest_share=6),
        problem(offline=[OfflineClass("train", count=6, memory_mib=12_000)]),
        problem(offline=[OfflineClass("train", count=5, memory_mib=12_000, priority=2)]),
        *(problem(online=[OnlineClass("a100-80gb", **{**ONLINE, **change})]) for change in CHANGES),
    ]
    digests = {each.sha256 for each in others} | {problem().sha256}
    assert len(digests) == len(others) + 1


ONLINE: dict[str, Any] = {
    "count": 3, "sm_activity": 20, "memory_mib": 9_000, "memory_total_mib": 81_920,
    "name": GPU.name,
}  # fmt: skip
CHANGES: list[dict[str, Any]] = [
    {"count": 4},
    {"sm_activity": "20.5"},
    {"memory_mib": 9_001},
    {"memory_total_mib": 81_921},
    {"model": "bert"},
    {"slowdown_limit": "1.2"},
    {"running": "train"},
    {"name": "other"},
]


def test_a_problem_is_immutable() -> None:
    given = problem()
    for name in ("weights", "online", "anything"):
        with pytest.raises(AttributeError, match="is immutable"):
            setattr(given, name, None)
    with pytest.raises(AttributeError, match="is immutable"):
        del given.margin
    with pytest.raises(ValueError, match="read-only|WRITEABLE"):
        given.weights[0, 0] = 1
    assert given != "a problem"


def test_arrays_of_any_whole_numbers_are_taken() -> None:
    for kind in (np.int16, np.uint32, np.int64, object):
        assert problem(np.array([[123]], dtype=kind)).weights.tolist() == [[123]]


def test_an_empty_problem_has_an_empty_answer() -> None:
    empty = SharingProblem(online=[], offline=[], weights=[])
    assert (empty.most, empty.weights.shape) == (0, (0, 0))
    assert empty.value(SharingPlan()) == 0
    assert cms.check(empty, SharingPlan()) == ()


def test_values_of_vast_counts_are_exact() -> None:
    vast = posed([10**30], [10**30], [[999_999]])
    assert vast.most == 999_999 * 10**30
    assert vast.value(SharingPlan({("g0", "w0"): 10**29})) == 999_999 * 10**29
    assert Fraction(vast.most, 10**30) == 999_999
