"""The closed loop of co-location, against a plain loop and by hand."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cms.errors import FileError, InvalidOption, InvalidProblem, InvalidSchedule
from cms.files.documents import document_text
from cms.fleet.colocation import (
    ColocationPlan,
    ColocationProblem,
    MeasuredPair,
    OfflineClass,
    OnlineClass,
    sm_share,
)
from cms.fleet.published import MonitorState, MonitorTimes, monitor_step
from cms.fleet.replanner import Rates
from cms.fleet.simulation import Verdict
from cms.fleet.simulation.colocation_loop import (
    POLICIES,
    Diurnal,
    Noise,
    Terms,
    Traced,
    colocation_day,
)
from cms.fleet.simulation.colocation_loop.day import (
    BATCH_NS,
    latencies,
    replayed,
    shared_day_from_json,
    shared_day_to_json,
)
from cms.fleet.simulation.colocation_loop.scene import Fleet, LineWeights, Truth
from cms.fleet.simulation.kernel import alone
from instances.families.colocation import daily_fleet, made_up_pairs
from tests.files.test_schemas import require_valid
from tests.fleet.simulation.cases import LONG, STILL, pair, posed, trace
from tests.samples import few, so_many


def test_a_quiet_hour_is_what_the_table_says() -> None:
    day = colocation_day(posed(), [pair()], activity=STILL, terms=Terms(hours=1, job_hours=LONG))
    ours = day["muxflow"]
    # activity 30, margin 10: a share of 60, as measured; one minute goes into the start
    assert ours.throughput == Fraction(59 * 6, 600)
    assert (ours.shared_gpu_hours, ours.over_gpu_hours) == (1, 0)
    assert (ours.mean_slowdown, ours.p99_slowdown) == (Fraction("1.12"), Fraction("1.12"))
    assert (ours.starts, ours.restarts, ours.moves, ours.evictions) == (1, 0, 0, 0)
    halves = day["time_sharing"]
    assert (halves.throughput, halves.mean_slowdown) == (Fraction(59, 120), 2)
    assert (day["dedicated"].throughput, day["dedicated"].mean_slowdown) == (0, 1)
    assert (day.of_clairvoyant, day.verdict) == (1, Verdict.MET)


@dataclass
class Plain:
    """One GPU of a day in which jobs never end: the rules again, a number at a time."""

    activity: list[int]
    limit: Fraction
    times: MonitorTimes
    protection: bool
    terms: Terms

    def play(self) -> tuple[Fraction, int, int, int, int, int]:
        state, share, ready, there = MonitorState(), 0, 0, False
        done, shared, over, evictions, starts, restarts = Fraction(0), 0, 0, 0, 0, 0
        barred = 101
        warm = self.terms.interval
        for tick in range(-warm, self.terms.ticks):
            active = self.activity[tick + warm]
            if tick >= 0 and tick % warm == 0 and (state.admits or not self.protection):
                window = sorted(self.activity[tick : tick + warm])
                part = -(-Fraction(str(self.terms.quantile)) * warm // 1)
                left = sm_share(Fraction(window[int(part) - 1], 100), 10, 5)
                allowed = left and 1 + Fraction(left, 500) <= self.limit and left < barred
                if there and not allowed:
                    there = False
                elif allowed and not there:
                    there, share, ready, starts = True, left, tick + 1, starts + 1
                elif allowed and abs(left - share) >= self.terms.dead_band:
                    share, ready, restarts = left, tick + 1, restarts + 1
            wanted = active + (100 * share if there else 0)
            slower = Fraction(1)
            if there:
                crowd = Fraction(max(wanted, 10_000), 10_000)
                slower = (1 + Fraction(share, 500)) * crowd
                shared += 1
                over += slower > self.limit
                if ready <= tick:
                    done += Fraction(share, 100) / crowd
            beyond = there and slower > self.limit
            hard, soft = wanted > 10_000 or beyond, wanted >= 9_500
            if beyond and wanted <= 10_000:
                barred = min(barred, share)
            state, action = monitor_step(
                state, "hard" if hard else "soft" if soft else "quiet", self.times
            )
            if self.protection and action == "evict" and there:
                there, evictions = False, evictions + 1
        return done, shared, over, evictions, starts, restarts


@pytest.mark.parametrize("seed", few(2, range(40)))
@pytest.mark.parametrize("protection", [True, False])
def test_many_gpus_at_once_are_what_a_plain_loop_says_of_each(seed: int, protection: bool) -> None:
    gpus, limit = 12, "1.18" if seed % 2 else "1.14"
    problem = posed(gpus=gpus, jobs=3 * gpus, activity=70, limit=limit)
    # a line: at a share of s per cent, s per cent of the throughput, and 1 + s / 500 as slow
    truth = [pair("1", "1.2", 100), pair("0.01", "1.002", 1)]
    activity = Diurnal(swing="0.2", noise=Noise(4, 20, 45, 6))
    terms = Terms(hours=6, job_hours=LONG, protection=protection, sample=0)
    times = MonitorTimes(dwell=2, base=3, cap=40, calm=30)
    day = colocation_day(
        problem, truth, activity=activity, terms=terms, policies=["muxflow"], times=times, seed=seed
    )
    minutes = activity.minutes(Fleet(problem), -terms.interval, terms.ticks, seed)
    plain = [
        Plain(minutes[:, g].tolist(), Fraction(limit), times, protection, terms).play()
        for g in range(gpus)
    ]
    done, *counts = (sum(column) for column in zip(*plain, strict=True))
    ours = day["muxflow"]
    found = (
        60 * ours.shared_gpu_hours, 60 * ours.over_gpu_hours, ours.evictions, ours.starts,
        ours.restarts,
    )  # fmt: skip
    assert found == tuple(counts)
    # throughputs are rounded down to millionths, minute by minute
    assert 0 <= done - 60 * ours.throughput < Fraction(gpus * terms.ticks, 10**6)


TERMS, HOUR = Terms(hours=2, job_hours=LONG, sample=0), Terms(hours=1, job_hours=LONG)


def played(policy: str = "muxflow", **how: Any) -> Any:
    """What one GPU and one job are like with a policy."""
    how = {"problem": posed(), "truth": [pair()], "policies": [policy], **how}
    return colocation_day(**how)[policy]


def test_a_surge_is_over_in_a_minute_with_the_monitor_and_lasts_without() -> None:
    activity = trace(*[30] * 100, *[80] * 10, *[30] * 1000)
    for protection, over, evictions in ((True, 1, 1), (False, 5, 0)):
        # minutes 100 to 109: the share of 60 and 80 per cent are 140; the job goes in the first
        # one, or is stopped by the matching in minute 105, which knows of the surge
        day = played(terms=replace(TERMS, protection=protection), activity=activity)
        assert (60 * day.over_gpu_hours, day.evictions) == (over, evictions)


def test_a_pair_that_is_too_slow_is_tried_once_and_no_more() -> None:
    how: dict[str, Any] = {"activity": STILL, "sees": LineWeights([pair()], 10, 5)}
    how["truth"] = [pair(slowdown="1.5")]
    on = played(terms=TERMS, **how)
    assert (on.evictions, on.over_gpu_hours, on.starts) == (1, Fraction(1, 60), 1)
    off = played(terms=replace(TERMS, protection=False), **how)
    assert off.over_gpu_hours == off.shared_gpu_hours == 2


def test_jobs_on_gpus_that_the_monitor_closed_stay_while_other_gpus_find_none_waiting() -> None:
    """From minute 20 to 44 both sides want 97 % of the SMs of the only GPU that has a job."""
    activity = trace(*[30] * 20, *[37] * 25, *[30] * 75)
    day = played(problem=posed(gpus=2), activity=activity, terms=replace(TERMS, waiting_scale=60))
    assert (day.starts, day.moves, day.evictions, day.shared_gpu_hours) == (1, 0, 0, 2)


def test_who_foresees_gives_what_will_be_free_and_no_more() -> None:
    how: dict[str, Any] = {"activity": trace(*[30] * 30, *[70] * 30), "terms": HOUR}
    best = played("clairvoyant", **how)
    # a share of 60 for half an hour, then one of 20, each a process of its own
    assert best.throughput == Fraction(29 * 600 + 29 * 200, 60_000)
    assert best.over_gpu_hours == 0 < played(**how).over_gpu_hours


TWO = ColocationProblem(
    online=[OnlineClass("a30", count=2, sm_activity=30, model="bert", name="g")],
    offline=[OfflineClass("train", count=5), OfflineClass("index", count=5)],
    weights=[[0, 0]],
)


def test_a_day_begins_with_the_plan_that_is_given() -> None:
    truth = [pair(), pair("0.9")._replace(offline_model="index")]
    how: dict[str, Any] = {"problem": TWO, "truth": truth, "activity": STILL, "terms": HOUR}
    own, given = played(**how), played(plan=ColocationPlan({("g", "train"): 2}), **how)
    assert (own.starts, own.moves, given.starts, given.moves) == (2, 0, 4, 2)
    assert given.throughput < own.throughput
    with pytest.raises(InvalidSchedule, match="online class 'g'"):
        played(plan=ColocationPlan({("g", "train"): 3}), **how)


def test_the_same_seed_is_the_same_day_to_the_byte_and_what_it_says_adds_up() -> None:
    problem, truth = daily_fleet(30, seed=1), made_up_pairs(1)
    seen = LineWeights(made_up_pairs(1, error=0.05), 10, 5)
    terms = Terms(hours=2, arrivals_per_hour=20, job_hours="0.3", sample=1)

    def told(seed: int) -> str:
        day = colocation_day(problem, truth, sees=seen, terms=terms, seed=seed)
        document = shared_day_to_json(day)
        require_valid("colocation-day", document)
        assert shared_day_from_json(document) == day
        assert {each.name for each in day.policies} == set(POLICIES)
        for each in day.policies:
            assert each.gpu_hours == 30 * 2
            assert each.throughput <= each.shared_gpu_hours <= each.gpu_hours
            assert each.over_gpu_hours <= each.shared_gpu_hours
            assert each.jobs.ended <= each.jobs.begun <= each.jobs.arrived
            assert each.jobs.arrived == day.policies[0].jobs.arrived > 90
        assert day["clairvoyant"].over_gpu_hours == day["clairvoyant"].evictions == 0
        assert day["time_sharing"].over_share == 1
        return document_text(lambda: document, "day.json")

    assert told(3) == told(3) != told(4)


def test_the_longest_wait_is_shorter_where_waiting_counts_and_a_little_less_is_done() -> None:
    """There is always a better job than the one that waits; who foresees does not heed waiting."""
    problem = ColocationProblem(
        online=[OnlineClass("a30", count=20, sm_activity=30, model="bert", name="g")],
        offline=[OfflineClass("train", count=30), OfflineClass("index", count=3)],
        weights=[[0, 0]],
    )
    truth = [pair("0.9"), pair("0.5")._replace(offline_model="index")]

    def day(scale: int, policy: str = "muxflow", hours: int = so_many(12, 24)) -> Any:
        terms = Terms(hours=hours, job_hours=1, sample=0, arrivals_per_hour=18, waiting_scale=scale)
        return played(policy, problem=problem, truth=truth, activity=STILL, terms=terms)

    without, fair = day(0), day(60)
    assert 2 * fair.jobs.largest_wait_minutes < without.jobs.largest_wait_minutes
    assert Fraction(9, 10) * without.throughput < fair.throughput < without.throughput
    assert day(0, "clairvoyant", 2) == day(60, "clairvoyant", 2)


def test_a_day_can_be_stopped_and_no_gpu_and_no_job_are_a_day_too() -> None:
    stop = threading.Event()

    def heard(done: int, _: int) -> None:
        if done == 70:
            stop.set()

    day = colocation_day(
        posed(), [pair()], activity=STILL, terms=Terms(hours=3), cancel=stop, on_progress=heard
    )
    assert (day.stopped, day.minutes, len(day.policies)) == (True, 71, 1)
    assert day["muxflow"].gpu_hours == Fraction(71, 60)
    for problem in (posed(gpus=0), posed(jobs=0)):
        day = colocation_day(problem, [pair()], terms=Terms(hours=1))
        assert {each.throughput for each in day.policies} == {0}
        assert day.of_clairvoyant is None


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"policies": ["muxflw"]}, "nearest: 'muxflow'"),
        ({"problem": posed(gpus=10**12)}, "1000000000000 GPUs"),
        ({"problem": posed(gpus=10_000), "terms": Terms(hours=744)}, "744 hours"),
        ({"activity": trace(10, name="brt")}, "nearest: 'brt'"),
        ({"activity": trace(101)}, "activity of 101"),
        ({"activity": trace("0.3", name="bert")}, "fraction"),
        ({"truth": [pair(), pair()]}, "share of 60"),
        ({"truth": [pair()._replace(offline_model="x")]}, "offline model 'train'"),
        ({"truth": [pair()._replace(device="a31")]}, "device 'a30'"),
        ({"problem": posed(model="")}, "has no model"),
    ],
)
def test_what_is_odd_or_too_much_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidOption, InvalidProblem), match=words):
        played(**how)


@pytest.mark.parametrize(
    ("terms", "words"), [({"hours": 0}, "hours is 0"), ({"protection": "on"}, "protection is 'on'")]
)
def test_odd_terms_are_refused(terms: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        Terms(**terms)


def test_lines_go_through_what_was_measured() -> None:
    measured = [pair("0.3", "1.05", 20), pair("0.6", "1.3", 80)]
    truth = Truth(Fleet(posed()), measured)
    parts = {0: 0, 10: 150_000, 20: 300_000, 50: 450_000, 80: 600_000, 100: 600_000}
    slower = {0: 10**6, 20: 1_050_000, 50: 1_175_000, 100: 1_300_000}
    assert {s: truth.throughput[0, 0, s] for s in parts} == parts
    assert {s: truth.slowdown[0, 0, s] for s in slower} == slower
    whole = Truth(Fleet(posed()), [pair("0.5", "1.9", 100)])
    assert set(whole.throughput[0, 0].tolist()) == {500_000}
    first = np.array([0])
    told = truth.felt(first, first, np.array([80]), first + 6000)  # 140 per cent are wanted
    assert [int(each[0]) for each in told] == [600_000 * 100 // 140, 1_820_000]
    train = OfflineClass("train", count=1)
    online = [posed(activity=40, limit=limit).online[0] for limit in ("1.3", "1.05")]
    assert [LineWeights(measured, 10, 5)(each, train) for each in online] == [450_000, None]


def test_pairs_that_nobody_measured_never_run() -> None:
    problem = ColocationProblem(
        online=[OnlineClass("a30", count=2, sm_activity=30, model=m) for m in ("bert", "gpt")],
        offline=[OfflineClass("train", count=9)],
        weights=[[0], [0]],
    )
    truth = [pair(), MeasuredPair("gpt", "other", "a30", 60, Fraction(1), Fraction(1))]
    day = colocation_day(problem, truth, activity=STILL, terms=Terms(hours=1, job_hours=LONG))
    assert day.unmeasured == 1
    for name in ("muxflow", "time_sharing", "random"):
        assert day[name].shared_gpu_hours == 2


def test_a_trace_is_by_class_by_model_or_for_all_and_begins_again() -> None:
    names = (("one", ""), ("two", "bert"), ("three", "gpt"))
    problem = ColocationProblem(
        online=[OnlineClass("a30", count=1, sm_activity=5, name=n, model=m) for n, m in names],
        offline=[],
        weights=[[], [], []],
    )
    rates = {
        "one": (Fraction(10), Fraction(20), None),
        "bert": (Fraction(30), Fraction(31), Fraction(32)),
        "activity": (None, Fraction("1.5"), Fraction(50)),
    }
    found = Traced(Rates(Fraction(0), Fraction(120), rates)).minutes(Fleet(problem), -2, 7, 0)
    assert found[:, 0].tolist() == [2000, 2000, 1000, 1000, 2000, 2000, 2000, 2000, 1000]
    assert found[:, 1].tolist() == [3200, 3200, 3000, 3000, 3100, 3100, 3200, 3200, 3000]
    assert found[:, 2].tolist() == [5000, 5000, 150, 150, 150, 150, 5000, 5000, 150]


def test_noise_and_surges_are_what_they_say() -> None:
    problem = posed(gpus=200, activity=50)
    noisy, surged, day = (
        Diurnal(swing=swing, noise=noise).minutes(Fleet(problem), 0, 1440, 0)
        for swing, noise in ((0, Noise(3, 0)), (0, Noise(0, 4, 30, 10)), ("0.5", Noise(0, 0)))
    )
    assert abs(noisy.std() - 300) < 20
    assert abs(noisy.mean() - 5000) < 20
    assert set(np.unique(surged)) == {5000, 8000}
    share = (surged == 8000).mean()
    assert 0.8 * 4 * 10 / 1440 < share < 1.2 * 4 * 10 / 1440
    assert (day[14 * 60, 0], day[2 * 60, 0]) == (5000, 2500)


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


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("", {"verdict": "violated"}), ("", {"policies": []}), ("", {"more": 1}),
        ("terms", {"interval": 0}),
        ("policies", {"shared_gpu_hours": 0, "over_gpu_hours": 1}),
    ],
)  # fmt: skip
def test_an_odd_document_is_refused(part: str, change: dict[str, Any]) -> None:
    day = colocation_day(posed(), [pair()], activity=STILL, terms=Terms(hours=1, job_hours=LONG))
    document = shared_day_to_json(day)
    assert shared_day_from_json(document) == day
    place = document if not part else document[part] if part == "terms" else document[part][0]
    place |= change
    with pytest.raises(FileError):
        shared_day_from_json(document)
