"""What the closed loop of sharing is made of: the truth, activities, requests."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from cms.errors import FileError, InvalidOption, InvalidProblem
from cms.fleet.reconciling import Rates
from cms.fleet.sharing import MeasuredPair, OfflineClass, OnlineClass, SharingProblem
from cms.fleet.simulation.alone import alone
from cms.fleet.simulation.sharing_loop import Diurnal, Noise, SharedDay, Terms, Traced, share_day
from cms.fleet.simulation.sharing_loop import latency as latencies
from cms.fleet.simulation.sharing_loop.files import shared_day_from_json, shared_day_to_json
from cms.fleet.simulation.sharing_loop.fleet import Fleet
from cms.fleet.simulation.sharing_loop.truth import Truth
from tests.fleet.simulation.shared import LONG, STILL, pair, posed, trace


def test_lines_go_through_what_was_measured() -> None:
    measured = [pair("0.3", "1.05", 20), pair("0.6", "1.3", 80)]
    truth = Truth(Fleet.of(posed()), measured)
    assert [int(truth.throughput[0, 0, s]) for s in (0, 10, 20, 50, 80, 100)] == [
        0, 150_000, 300_000, 450_000, 600_000, 600_000,
    ]  # fmt: skip
    assert [int(truth.slowdown[0, 0, s]) for s in (0, 20, 50, 100)] == [
        10**6, 1_050_000, 1_175_000, 1_300_000,
    ]  # fmt: skip
    whole = Truth(Fleet.of(posed()), [pair("0.5", "1.9", 100)])
    assert set(whole.throughput[0, 0].tolist()) == {500_000}


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ([pair(), pair()], "is there twice at a share of 60"),
        ([pair()._replace(online_model="brt")], "online model 'bert' is nowhere"),
        ([pair()._replace(offline_model="x")], "offline model 'train' is nowhere"),
        ([pair()._replace(device="a31")], "the device 'a30' is nowhere in the measured pairs"),
    ],
)
def test_an_odd_truth_is_refused(truth: list[MeasuredPair], words: str) -> None:
    with pytest.raises(InvalidProblem, match=words):
        share_day(posed(), truth)


def test_an_online_side_without_a_model_is_said_to_have_none() -> None:
    problem = SharingProblem(
        online=[OnlineClass("a30", count=1, sm_activity=20)],
        offline=[OfflineClass("train", count=1)],
        weights=[[0]],
    )
    with pytest.raises(InvalidProblem, match="an online class has no model"):
        Truth(Fleet.of(problem), [pair()])


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
    problem = SharingProblem(
        online=[
            OnlineClass("a30", count=1, sm_activity=5, name=name, model=model)
            for name, model in (("one", ""), ("two", "bert"), ("three", "gpt"))
        ],
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
        (trace(10, name="brt"), "no column for online class 'a30 30%, bert.*nearest: 'brt'"),
        (trace(101), "an activity of 101 for 'activity'; expected per cent"),
        (Traced(Rates(Fraction(0), Fraction(60), {"bert": (Fraction("0.3"),)})), "a fraction"),
    ],
)
def test_an_odd_trace_is_refused(activity: Traced, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        share_day(posed(), [pair()], activity=activity)


def test_noise_and_surges_are_what_they_say() -> None:
    problem = posed(gpus=200, activity=50)
    minutes = Diurnal(swing=0, noise=Noise(3, 0)).minutes(problem, Fleet.of(problem), 0, 1440, 0)
    assert abs(minutes.std() - 300) < 20
    assert abs(minutes.mean() - 5000) < 20
    surged = Diurnal(swing=0, noise=Noise(0, 4, 30, 10)).minutes(
        problem, Fleet.of(problem), 0, 1440, 0
    )
    assert set(np.unique(surged)) == {5000, 8000}
    share = (surged == 8000).mean()
    assert 0.8 * 4 * 10 / 1440 < share < 1.2 * 4 * 10 / 1440


# --- requests -------------------------------------------------------------------------------------


def test_requests_take_what_the_loop_of_one_instance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    plain: Callable[..., Any] = latencies._latencies

    def noted(arrivals: Any, factors: Any) -> Any:
        found = plain(arrivals, factors)
        kept.append((arrivals, factors, found))
        return found

    monkeypatch.setattr(latencies, "_latencies", noted)
    busy = np.full(200, 6_000)
    told = latencies.replayed(7, busy, np.full(200, 1_300_000), 5)
    for factor, (arrivals, _, found) in zip((1.3, 1), kept, strict=True):
        times = np.concatenate(arrivals)
        expected = np.zeros(len(times), dtype=np.int64)
        batch = np.array([round(each * factor) for each in latencies.BATCH_NS])
        alone(batch, np.zeros(1, dtype=np.int64), times.astype(float), 1.0, expected)
        assert np.sort(found).tolist() == np.sort(expected).tolist()
    assert told.p99_ms > told.alone_p99_ms > Fraction(25)


# --- documents ------------------------------------------------------------------------------------


@cache
def played() -> SharedDay:
    how = Terms(hours=1, sample=1, job_hours=LONG)
    return share_day(posed(), [pair()], activity=STILL, terms=how)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdict": "broken"}, "verdict"),
        ({"of_clairvoyant": "0.9"}, "of_clairvoyant"),
        ({"policies": []}, "one policy or more"),
        ({"stopped": "no"}, "stopped"),
        ({"format": "cms-plan"}, "a simulated day of shared GPUs"),
        ({"more": 1}, "more"),
    ],
)
def test_an_odd_document_is_refused(change: dict[str, Any], words: str) -> None:
    document = shared_day_to_json(played())
    assert shared_day_from_json(document) == played()
    with pytest.raises(FileError, match=words):
        shared_day_from_json({**document, **change})


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("terms", {"interval": 0}), ("terms", {"protection": 1}), ("policy", {"name": "x"}),
        ("policy", {"moves": -1}), ("policy", {"over_gpu_hours": 1}),
    ],
)  # fmt: skip
def test_an_odd_part_of_a_document_is_refused(part: str, change: dict[str, Any]) -> None:
    document = shared_day_to_json(played())
    if part == "terms":
        document["terms"] = {**document["terms"], **change}
    else:
        document["policies"] = [{**document["policies"][0], **change}, *document["policies"][1:]]
    with pytest.raises(FileError, match=next(iter(change)) if part == "terms" else "."):
        shared_day_from_json(document)


def test_a_document_says_in_words_how_activities_are_made() -> None:
    day = share_day(
        posed(), [pair()], activity=trace(*[30] * 700), terms=Terms(hours=1), policies=["muxflow"]
    )
    assert day.activity == (
        "trace of activity: 700 moments, every 60 s; noise of 0 %, 0 surges a day of 50 % for 12 "
        "minutes"
    )
