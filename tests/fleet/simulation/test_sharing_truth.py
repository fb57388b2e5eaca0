"""What the closed loop of sharing is made of: the truth, activities, requests, documents."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from cms.errors import FileError, InvalidOption, InvalidProblem
from cms.fleet.reconciling import Rates
from cms.fleet.sharing import MeasuredPair, OfflineClass, OnlineClass, SharingProblem
from cms.fleet.simulation.kernel import alone
from cms.fleet.simulation.sharing_loop import Diurnal, Noise, SharedDay, Terms, Traced, share_day
from cms.fleet.simulation.sharing_loop.files import shared_day_from_json, shared_day_to_json
from cms.fleet.simulation.sharing_loop.fleet import Fleet
from cms.fleet.simulation.sharing_loop.latency import BATCH_NS, latencies, replayed
from cms.fleet.simulation.sharing_loop.truth import LineWeights, Truth
from tests.fleet.simulation.shared import LONG, STILL, pair, posed, trace


def test_lines_go_through_what_was_measured() -> None:
    measured = [pair("0.3", "1.05", 20), pair("0.6", "1.3", 80)]
    truth = Truth(Fleet.of(posed()), measured)
    parts = {0: 0, 10: 150_000, 20: 300_000, 50: 450_000, 80: 600_000, 100: 600_000}
    slower = {0: 10**6, 20: 1_050_000, 50: 1_175_000, 100: 1_300_000}
    assert {s: truth.throughput[0, 0, s] for s in parts} == parts
    assert {s: truth.slowdown[0, 0, s] for s in slower} == slower
    whole = Truth(Fleet.of(posed()), [pair("0.5", "1.9", 100)])
    assert set(whole.throughput[0, 0].tolist()) == {500_000}
    first = np.array([0])
    told = truth.felt(first, first, np.array([80]), first + 6000)  # 140 per cent are wanted
    assert [int(each[0]) for each in told] == [600_000 * 100 // 140, 1_820_000]
    train = OfflineClass("train", count=1)
    online = [posed(activity=40, limit=limit).online[0] for limit in ("1.3", "1.05")]
    assert [LineWeights(measured, 10, 5)(each, train) for each in online] == [450_000, None]


@pytest.mark.parametrize(
    ("truth", "model", "words"),
    [
        ([pair(), pair()], "bert", "share of 60"),
        ([pair()._replace(offline_model="x")], "bert", "offline model 'train'"),
        ([pair()._replace(device="a31")], "bert", "device 'a30'"), ([pair()], "", "has no model"),
    ],
)  # fmt: skip
def test_an_odd_truth_is_refused(truth: list[MeasuredPair], model: str, words: str) -> None:
    problem = SharingProblem(
        online=[OnlineClass("a30", count=1, sm_activity=20, model=model)],
        offline=[OfflineClass("train", count=1)],
        weights=[[0]],
    )
    with pytest.raises(InvalidProblem, match=words):
        share_day(problem, truth)


def test_pairs_that_nobody_measured_never_run() -> None:
    problem = SharingProblem(
        online=[OnlineClass("a30", count=2, sm_activity=30, model=m) for m in ("bert", "gpt")],
        offline=[OfflineClass("train", count=9)],
        weights=[[0], [0]],
    )
    truth = [pair(), MeasuredPair("gpt", "other", "a30", 60, Fraction(1), Fraction(1))]
    day = share_day(problem, truth, activity=STILL, terms=Terms(hours=1, job_hours=LONG))
    assert day.unmeasured == 1
    for name in ("muxflow", "time_sharing", "random"):
        assert day[name].shared_gpu_hours == 2


# --- activities -----------------------------------------------------------------------------------


def test_a_trace_is_by_class_by_model_or_for_all_and_begins_again() -> None:
    names = (("one", ""), ("two", "bert"), ("three", "gpt"))
    problem = SharingProblem(
        online=[OnlineClass("a30", count=1, sm_activity=5, name=n, model=m) for n, m in names],
        offline=[],
        weights=[[], [], []],
    )
    rates = {
        "one": (Fraction(10), Fraction(20), None),
        "bert": (Fraction(30), Fraction(31), Fraction(32)),
        "activity": (None, Fraction("1.5"), Fraction(50)),
    }
    found = Traced(Rates(Fraction(0), Fraction(120), rates)).minutes(
        problem, Fleet.of(problem), -2, 7, 0
    )
    assert found[:, 0].tolist() == [2000, 2000, 1000, 1000, 2000, 2000, 2000, 2000, 1000]
    assert found[:, 1].tolist() == [3200, 3200, 3000, 3000, 3100, 3100, 3200, 3200, 3000]
    assert found[:, 2].tolist() == [5000, 5000, 150, 150, 150, 150, 5000, 5000, 150]


@pytest.mark.parametrize(
    ("activity", "words"),
    [
        (trace(10, name="brt"), "nearest: 'brt'"),
        (trace(101), "activity of 101"),
        (Traced(Rates(Fraction(0), Fraction(60), {"bert": (Fraction("0.3"),)})), "fraction"),
    ],
)
def test_an_odd_trace_is_refused(activity: Traced, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        share_day(posed(), [pair()], activity=activity)


def test_noise_and_surges_are_what_they_say() -> None:
    problem = posed(gpus=200, activity=50)
    noisy, surged, day = (
        Diurnal(swing=swing, noise=noise).minutes(problem, Fleet.of(problem), 0, 1440, 0)
        for swing, noise in ((0, Noise(3, 0)), (0, Noise(0, 4, 30, 10)), ("0.5", Noise(0, 0)))
    )
    assert abs(noisy.std() - 300) < 20
    assert abs(noisy.mean() - 5000) < 20
    assert set(np.unique(surged)) == {5000, 8000}
    share = (surged == 8000).mean()
    assert 0.8 * 4 * 10 / 1440 < share < 1.2 * 4 * 10 / 1440
    assert (day[14 * 60, 0], day[2 * 60, 0]) == (5000, 2500)


# --- requests -------------------------------------------------------------------------------------


def test_requests_take_what_the_loop_of_one_instance_says() -> None:
    chance = np.random.default_rng(5)
    arrivals = np.sort(chance.integers(0, 40 * 2 * 10**9, 5_000))
    for factor in (1_300_000, 1_000_000):
        expected = np.zeros(len(arrivals), dtype=np.int64)
        batch = np.array([each * factor // 10**6 for each in BATCH_NS])
        alone(batch, np.zeros(1, dtype=np.int64), arrivals.astype(float), 1.0, expected)
        assert latencies(arrivals.tolist(), [factor] * 40) == expected.tolist()
    # what begins in a minute takes as long as that minute says
    assert latencies([0, 2 * 10**9], [1_500_000, 2_000_000]) == [45_000_000, 60_000_000]
    busy = np.full(200, 6_000)
    told = replayed(7, busy, np.full(200, 1_300_000), 5)
    assert told.requests == replayed(7, busy, np.full(200, 1_000_000), 5).requests
    assert told.p99_ms > told.alone_p99_ms > 25


# --- documents ------------------------------------------------------------------------------------


@cache
def played() -> SharedDay:
    how = Terms(hours=1, sample=1, job_hours=LONG)
    return share_day(posed(), [pair()], activity=trace(*[30] * 700), terms=how)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("", {"verdict": "broken"}), ("", {"policies": []}), ("", {"more": 1}),
        ("terms", {"interval": 0}), ("policies", {"moves": -1}),
        ("policies", {"over_gpu_hours": 1}),
    ],
)  # fmt: skip
def test_an_odd_document_is_refused(part: str, change: dict[str, Any]) -> None:
    document = shared_day_to_json(played())
    assert shared_day_from_json(document) == played()
    assert document["activity"] == (
        "trace of activity: 700 moments, every 60 s; noise of 0 %, 0 surges a day of 50 % for 12 "
        "minutes"
    )
    place = document if not part else document[part] if part == "terms" else document[part][0]
    place |= change
    with pytest.raises(FileError):
        shared_day_from_json(document)
