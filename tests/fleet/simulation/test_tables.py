"""Traces, tables of events, the words of the command line, and what counts and draws."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError, InvalidOption
from cms.fleet.simulation import Failure, RateChange, Weights, read_events, read_trace, simulate
from cms.fleet.simulation.arrivals import RateClock
from cms.fleet.simulation.events import arrivals_of, surge_of
from cms.fleet.simulation.replay import Alias, whole_weights
from cms.fleet.simulation.statistics import Tally, Verdict
from tests.fleet.simulation.cases import instance, service
from tests.source_tree import ROOT

Write = Callable[[str], Path]
TRACE = ROOT / "instances" / "data" / "azure_llm_conversation.csv"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        (tmp_path / "table.csv").write_text(text)
        return tmp_path / "table.csv"

    return written


def test_a_table_of_events_says_what_happens_when(write: Write) -> None:
    rows = (
        "60,rate,chat,1.3\n90,rate,,1\n120,fail,gpu:3,300\n130,fail,a:b:1,\n200,weight,chat:2,0\n"
    )
    found = read_events(write("seconds,what,target,value\n" + rows))
    assert found == (
        RateChange(60, "1.3", "chat"), RateChange(90, 1), Failure(120, gpu=3, repair_seconds=300),
        Failure(130, service="a:b", instance=1), Weights(200, "chat", 2, 0),
    )  # fmt: skip
    assert [str(event) for event in found] == [
        "60 s: the rate of chat x 1.3", "90 s: all rates x 1",
        "120 s: GPU 3 fails, repaired after 300 s", "130 s: a:b:1 fails",
        "200 s: the weight of chat:2 x 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("60,rat,chat,1.3", "table.csv:2:4: what is 'rat'"),
        ("60,fail,chat,1", "table.csv:2:9: target is 'chat'"),
    ],
)  # fmt: skip
def test_a_wrong_event_is_named_with_its_place(row: str, says: str, write: Write) -> None:
    with pytest.raises(FileError) as refused:
        read_events(write(f"seconds,what,target,value\n{row}\n"))
    assert says in str(refused.value)


def test_words_that_cannot_be_meant_are_refused() -> None:
    surges = ("", "1.3", "1.3@60", "1.3@60+", "x@1+1", "1@-1+1", "1@1+1+1")
    arrivals = ("gamma", "gamma:0", "gamma:1,2", "bursts:3,0.2", "poisson:1")
    for read, texts in ((surge_of, surges), (arrivals_of, arrivals)):
        for text in texts:
            with pytest.raises(InvalidOption):
                read(text)
    assert arrivals_of("trace.csv") is None


def test_a_trace_is_replayed_as_recorded_or_at_the_services_rate(write: Write) -> None:
    path = write("t,who\n10,chat\n10.5,chat\n12,mail\n12.25,chat\n")
    trace = read_trace(path, "t", "who", scaled=False)
    assert trace.times_ns["chat"].tolist() == [0, 500_000_000, 2_250_000_000]
    assert trace.times_ns["mail"].tolist() == [2_000_000_000]
    asked = [service(instance(), rate=3, name="chat")]
    as_recorded = simulate(asked, trace, requests=100).services[0]
    assert (as_recorded.requests, as_recorded.seconds) == (3, Fraction("2.26"))
    assert "at most 100 requests each" in simulate(asked, trace, requests=100).sentence
    found = simulate(asked, read_trace(path, "t", "who"), requests=100).services[0]
    assert found.seconds == Fraction("0.666666667") + Fraction("0.01")
    with pytest.raises(InvalidOption, match="nearest: 'chat'"):
        simulate([service(instance(), name="chatt")], trace, requests=100)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("app,func,end_timestamp,duration\na,f,10.5,0.5\na,f,11.25,1\n", [0, 250_000_000]),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n"
            "2024-05-10 00:00:00.017335+00:00,2399,6\n2024-05-10 00:00:01+00:00,7,7\n",
            [0, 7_405_000, 990_070_000],
        ),
        # whole seconds are spread over the second
        ("Timestamp,Model\n5,x\n5,x\n6,x\n", [250_000_000, 750_000_000, 1_500_000_000]),
    ],
)
def test_published_traces_are_known_by_their_columns(
    text: str, times: list[int], write: Write
) -> None:
    assert read_trace(write(text)).times_ns[""].tolist() == times


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("when\n1\n", None, "when"),
        ("TIMESTAMP\n2024-05-10 00:00:00Z\n2024-05-10 00:00:01\n", None, "table.csv:3:1"),
        ("arrival (ms)\n5\n", "arrival (ms)", "table.csv:1: the column 'arrival (ms)'"),
    ],
)  # fmt: skip
def test_a_wrong_trace_is_named_with_its_place(
    text: str, column: str | None, says: str, write: Write
) -> None:
    with pytest.raises(FileError) as refused:
        read_trace(write(text), column)
    assert says in str(refused.value)


def test_the_shipped_trace_is_replayed_and_comes_in_waves() -> None:
    times = np.array([float(line) for line in TRACE.read_text("utf-8").splitlines()[1:]])
    assert (len(times), round(len(times) / times[-1], 1)) == (19_366, 5.5)
    counts = np.bincount((times[times < 3300] // 300).astype(int))
    assert round(float(counts.var() / counts.mean())) == 56
    busy = service(instance(), rate=Fraction(60))
    (found,) = simulate([busy], read_trace(TRACE), requests=19_366, plain=True).services
    assert found.requests == 19_366
    assert found.late > 0


@given(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["0", "1/2", "1", "3"])), max_size=5),
    st.lists(st.integers(0, 100), max_size=30),
)
def test_a_clock_keeps_the_order_and_the_work(
    changes: list[tuple[int, str]], times: list[int]
) -> None:
    """What has arrived by a time is the integral of the rate up to it."""
    steps = sorted((at, Fraction(by)) for at, by in changes)
    real = RateClock(steps)(np.array(sorted(times), dtype=np.int64))
    assert (np.diff(real) >= 0).all()
    for base, now in zip(sorted(times), real.tolist(), strict=True):
        if now >= 2**62:
            continue
        worked, before, factor = Fraction(0), 0, Fraction(1)
        for at, by in [*steps, (10**9, Fraction(0))]:
            worked += max(min(at, now) - before, 0) * factor
            before, factor = min(max(at, before), now), by
        assert abs(worked - base) <= 3


@given(st.lists(st.fractions(0, 1000, max_denominator=50), min_size=1, max_size=9))
def test_an_alias_table_draws_each_station_as_often_as_its_weight_says(
    weights: list[Fraction],
) -> None:
    whole = whole_weights(weights)
    if not whole.any():
        return
    k, fine = len(whole), 2**12
    columns = (np.arange(k, dtype=np.uint64) * np.uint64(2**32) + np.uint64(2**31)) // np.uint64(k)
    grid = np.arange(fine, dtype=np.uint64) * np.uint64(2**20)
    raw = (columns[:, None] << np.uint64(32)) | grid[None, :]
    counts = np.bincount(Alias(whole).pick(raw.ravel()), minlength=k)
    shares = np.array([float(each / sum(weights)) for each in weights])
    assert np.abs(counts / (k * fine) - shares).max() < 2 / fine * k
    assert not counts[[not each for each in weights]].any()


def test_a_tally_counts_exactly_however_long_the_run_and_the_latencies() -> None:
    chance = np.random.default_rng(1)
    found = np.sort(np.rint(10 ** chance.uniform(2, 11, 5_000)).astype(np.int64))
    tally = Tally(limit_ns=10**9, horizon_ns=5_000)
    tally.add(np.arange(5_000), found)
    for percent in (1, 50, 90, 99, 100):
        exact = int(found[percent * 50 - 1])
        assert exact <= tally.quantile(Fraction(percent, 100)) <= exact * 1.001 + 1
    assert (tally.late, tally.total_ns) == (int((found > 10**9).sum()), sum(found.tolist()))
    short, right = Tally(10, horizon_ns=600), Tally(10, horizon_ns=4_800)
    for each in (short, right):
        for first in range(0, 4_800, 100):
            each.add(np.arange(first, first + 100), np.arange(100) % 20 + 1)
    assert (short.cells == right.cells).all()


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    outside = 0
    for seed in range(200):
        chance = np.random.default_rng(seed)
        tally = Tally(10, horizon_ns=2_000)
        tally.add(np.arange(2_000), np.where(chance.random(2_000) < 0.01, 20, 5))
        low, high = tally.interval()
        outside += not low <= Fraction(1, 100) <= high
    assert outside <= 6
    for requests, verdict in ((100, Verdict.UNDECIDED), (5_000, Verdict.MET)):
        tally = Tally(10, horizon_ns=requests)
        tally.add(np.arange(requests), np.full(requests, 5))
        assert tally.verdict(Fraction(1, 100)) == verdict
