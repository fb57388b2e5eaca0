"""What queueing theory says of a service in closed form, and SimPy of its requests, we say too."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.loads import late_share
from bench.peers.simpy_queues import ends_in_simpy
from cms.fleet.serving.capacity import sustainable_load
from cms.fleet.serving.load_curve import LoadCurve, fills_of, key_of
from cms.fleet.serving.operating_point import OperatingPoint
from cms.fleet.simulation import (
    ModelledInstance,
    ModelledService,
    Poisson,
    RateChange,
    Verdict,
    compiled,
    kernel,
    simulate,
)
from cms.fleet.simulation.kernel import LOGGED, new_state, with_room
from cms.fleet.simulation.load_curves import (
    latencies,
    load_curves,
    quantile_above,
    run_lengths,
    widened,
)
from cms.fleet.simulation.model import Station, stations_of
from instances import published
from tests.fleet.simulation.cases import MS, NOBODY, NONE, instance, service


def mean_and_error(
    one: Any, rate: Fraction, requests: int, loop: Any, seed: int = 0, times: Any = None
) -> tuple[float, float]:
    """The mean latency of Poisson requests at an instance, and its standard error."""
    state = kernel.new_state(stations_of([one]), np.ones(1, dtype=np.int64), requests + 1)
    state = kernel.with_room(state if times is None else state._replace(times=times), requests)
    arrivals = next(Poisson().pieces("", rate, np.random.default_rng(seed), requests))
    assert loop(state, kernel.ALONE, arrivals, NONE, NOBODY, NOBODY, 2**62) == requests
    assert state.counts[kernel.LOGGED] == requests
    found = np.asarray(state.log_ends[:requests]) - np.asarray(state.log_tags[:requests]) // 2
    means = found[: requests // 20 * 20].reshape(20, -1).mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1)) / math.sqrt(20)


@pytest.mark.parametrize("load", ["0.5", "0.8", "0.9"])
@pytest.mark.parametrize("requests", [40_000, pytest.param(10**7, marks=pytest.mark.long)])
def test_one_at_a_time_in_equal_times_waits_as_pollaczek_and_khinchine_say(
    load: str, requests: int
) -> None:
    loop: Any = kernel.advance_lists
    if requests > 10**6:
        from cms.fleet.simulation.compiled import advance as loop
    rho = Fraction(load)
    mean, error = mean_and_error(instance(ns=10 * MS), 100 * rho, requests, loop)
    assert abs(mean / (10 * MS) - float(1 + rho / (2 * (1 - rho)))) < 3 * error / (10 * MS)


class Exponential:
    """Batch times that are drawn anew whenever one is looked up."""

    def __init__(self, mean_ns: int, seed: int) -> None:
        self.mean_ns, self.chance = mean_ns, random.Random(seed)

    def __getitem__(self, at: int) -> int:
        return max(round(self.chance.expovariate(1 / self.mean_ns)), 1)


@pytest.mark.parametrize(("servers", "load"), [(1, "0.7"), (4, "0.8")])
def test_exponential_times_wait_as_erlang_says(servers: int, load: str) -> None:
    rho, mean_ns = Fraction(load), 10 * MS
    one, times = instance(processes=servers, ns=mean_ns), Exponential(mean_ns, seed=5)
    mean, error = mean_and_error(one, 100 * servers * rho, 30_000, kernel.advance, 5, times)
    offered = float(rho) * servers
    last = offered**servers / math.factorial(servers) / (1 - float(rho))
    waits = last / (sum(offered**k / math.factorial(k) for k in range(servers)) + last)
    expected = 1 + waits / (servers * (1 - float(rho)))
    assert abs(mean / mean_ns - expected) < 3 * error / mean_ns


@pytest.mark.parametrize(
    ("batch", "ratio", "load"),
    [
        (8, 2.0, 0.507),
        pytest.param(8, 2.22, 0.63, marks=pytest.mark.long),
        pytest.param(4, 3.0, 0.69, marks=pytest.mark.long),
    ],
)
def test_padded_batches_are_late_as_often_as_the_exact_chain_says(
    batch: int, ratio: float, load: float
) -> None:
    expected = late_share(load * batch, batch, Fraction(str(ratio)))
    assert expected == pytest.approx(0.01, rel=0.1)
    padded = instance(batch=batch, ns=10 * MS)
    rate = Fraction(str(load)) * padded.capacity
    asked = service(padded, rate=rate, limit=round(ratio * 10 * MS))
    (found,) = simulate([asked], requests=20_000, seed=1, plain=True).services
    low, high = found.interval
    assert float(low) < expected < float(high)


def test_a_surge_drains_as_a_fluid_does() -> None:
    """Load 0.85, 1.3 times as much for 30 s: 3.15 s of work wait at its end, for 21 s."""
    batch, ns = 8, 50 * MS
    padded = instance(processes=8, batch=batch, ns=ns)
    load, factor, length = Fraction("0.85"), Fraction("1.3"), 30
    backlog = (load * factor - 1) * length
    asked = service(padded, rate=padded.capacity * load, limit=3 * ns)
    events = [RateChange(30, factor), RateChange(60, 1)]
    (found,) = simulate([asked], seconds=120, events=events, plain=True).services
    # a batch that is being worked on, and one's own, come on top of what waits
    assert found.max_ns / 1e9 == pytest.approx(float(backlog) + 2 * ns / 1e9, rel=0.1)
    back = found.recoveries[1].back_after_seconds
    assert back is not None
    assert float(back) == pytest.approx(float(backlog / (1 - load)), rel=0.2)
    assert found.recoveries[0].back_after_seconds is None


def test_a_load_above_one_is_overloaded_and_nobody_is_served_by_nobody() -> None:
    padded = instance(batch=4, ns=10 * MS)
    asked = service(padded, rate=padded.capacity * Fraction(11, 10))
    (found,) = simulate([asked], requests=5_000, plain=True).services
    assert (found.verdict, found.overloaded) == (Verdict.VIOLATED, True)
    assert found.cause == "its instances work off 400 requests/s at most"
    idle = ModelledService("idle", Fraction(0), 10 * MS, Fraction(1, 100), (instance(),))
    alone = ModelledService("alone", Fraction(10), 10 * MS, Fraction(1, 100), ())
    quiet, lost = simulate([idle, alone], requests=100).services
    assert (quiet.requests, quiet.verdict) == (0, Verdict.MET)
    assert (lost.requests, lost.lost, lost.verdict) == (100, 100, Verdict.VIOLATED)
    assert lost.cause == "no instance serves it"


@pytest.mark.parametrize("block", range(5))
def test_simpy_gives_the_same_latencies(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        chance = random.Random(seed)
        stations = stations_of([
            ModelledInstance(
                Fraction(1), chance.randint(1, 3),
                tuple(sorted(chance.randint(10**6, 10**7) for _ in range(chance.randint(1, 6)))),
            )
            for _ in range(chance.randint(1, 4))
        ])  # fmt: skip
        weights = [chance.randint(1, 4) for _ in stations]
        capacity = sum(each.processes * len(each.fill_ns) / each.fill_ns[-1] for each in stations)
        rate = Fraction(round(capacity * 10**9 * chance.uniform(0.4, 1.0)))
        n = 2_000 if seed % 10 == 0 else 400
        times = next(Poisson().pieces("", rate, np.random.default_rng(seed), n))
        drawn = np.array(chance.choices(range(len(stations)), weights, k=n), dtype=np.int32)
        by_queue = seed % 2 == 1
        state = kernel.with_room(kernel.new_state(stations, np.array(weights), n + 10), n)
        first, policy = (NOBODY, kernel.SHORTEST) if by_queue else (drawn, kernel.DRAWN)
        assert kernel.advance_lists(state, policy, times, NONE, first, first, 2**62) == n
        assert state.counts[kernel.LOGGED] == n
        ours = dict(zip(state.log_tags[:n].tolist(), state.log_ends[:n].tolist(), strict=True))
        places = None if by_queue else drawn.tolist()
        theirs = ends_in_simpy(stations, weights, times.tolist(), places)[0]
        assert [ours[2 * at] for at in times.tolist()] == theirs


CENT = Fraction(1, 100)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=5),
    st.integers(1, 4),
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.booleans(),
)
def test_an_instance_alone_answers_as_the_loop_of_all_does(
    steps: list[int], processes: int, gaps: list[int], in_machine_code: bool
) -> None:
    """Also where arrivals and ends of batches meet at one nanosecond."""
    times, arrivals = list(accumulate(steps, initial=1)), np.cumsum(gaps)
    state = new_state([Station(0, Fraction(1), processes, tuple(times), 0)], np.ones(1, int), 99)
    state, none = with_room(state, len(gaps)), np.zeros(0, dtype=np.int64)
    kernel.advance_lists(state, kernel.ALONE, arrivals, none, none, none, 2**62)
    logged = int(state.counts[LOGGED])
    order = np.argsort(state.log_tags[:logged] >> 1, kind="stable")
    known = (state.log_ends[:logged] - (state.log_tags[:logged] >> 1))[order]
    loop: Any = [compiled.alone] if in_machine_code else []
    found = latencies(times, processes, arrivals / 4, 4, *loop)
    assert found.tolist() == known[len(known) // 50 :].tolist()


@pytest.mark.parametrize(("longer", "seeds"), [(1, 30), (4, 15)])
def test_the_upper_end_is_above_the_chain_near_full_load_too(longer: int, seeds: int) -> None:
    """Runs of the fewest requests and more, at a load of 0.9: 99 % of the ends are above it."""
    batch, load, requests = 8, Fraction(9, 10), longer * run_lengths(2000)[-1]
    below = 0
    for seed in range(seeds):
        gaps = np.random.Generator(np.random.PCG64(seed)).exponential(size=requests)
        gap = 10**6 / float(load * batch)
        found = latencies([10**6] * batch, 1, np.cumsum(gaps), gap, compiled.alone)
        end = Fraction(quantile_above(found, CENT, widened(load, requests)), 10**6)
        below += late_share(float(load * batch), batch, end) > CENT
    assert below == 0


POINTS = published.S1.operating_points


def measured(*wanted: str | int) -> tuple[OperatingPoint, Sequence[int]]:
    """A point by model, profile, processes and batch, and how long its batches take."""
    (point,) = (each for each in POINTS if (each.model, *key_of(each)[2:]) == wanted)
    return point, fills_of([point], POINTS)[key_of(point)].rounded_up(10**6)


@pytest.mark.parametrize(
    ("model", "profile", "processes", "batch", "ratio"),
    [
        ("densenet121", "3g.40gb", 3, 4, "2.5"), ("densenet169", "7g.80gb", 4, 8, "2.25"),
        ("bert", "1g.10gb", 2, 1, "2"),
    ],
)  # fmt: skip
def test_all_that_the_table_allows_is_in_time_with_the_measured_batch_times(
    model: str, profile: str, processes: int, batch: int, ratio: str
) -> None:
    """The first two had 1.7 % late and more by a table of batches of one length."""
    point, times = measured(model, profile, processes, batch)
    load = sustainable_load(processes, batch, Fraction(ratio), CENT, queue="instance")
    unit = np.cumsum(np.random.default_rng(5).exponential(size=1_000_000))
    gap = float(point.batch_ms * 10**6 / (load * processes * batch))
    found = latencies(times, processes, unit, gap, compiled.alone)
    assert (found > float(Fraction(ratio) * point.batch_ms * 10**6)).mean() < CENT


@pytest.mark.parametrize(
    ("model", "profile", "processes", "batch"),
    [("inceptionv3", "2g.20gb", 5, 8), ("densenet201", "7g.80gb", 4, 8)],
)
def test_all_that_a_simulated_curve_sustains_is_in_time_near_one_batch_time_too(
    model: str, profile: str, processes: int, batch: int
) -> None:
    """By straight lines between 16 rates, at limits of 1.1 and 1.2 batch times, 1.9 % were late."""
    point, times = measured(model, profile, processes, batch)
    (curve,) = load_curves([point], POINTS, requests=100_000).values()
    unit = np.cumsum(np.random.default_rng(5).exponential(size=300_000))
    for twentieths in range(21, 61, 3):
        limit = point.batch_ms * twentieths / 20
        if rate := curve.sustained(limit):
            found = latencies(times, processes, unit, 10**9 / float(rate), compiled.alone)
            assert (found > float(limit * 10**6)).mean() < CENT


def test_only_the_rates_of_a_curve_count_since_nothing_is_known_between_them() -> None:
    curve = LoadCurve([10, 20, 30, 40], [20, 30, 34, 90], CENT, "simulated", "a" * 64)
    for limit, most in ((19, 0), (20, 10), (29, 10), (33, 20), (89, 30), (90, 40), (99, 40)):
        assert curve.sustained(Fraction(limit)) == most
        beyond = next((each for each in curve.highest_ms if each > limit), None)
        assert beyond is None if most == 40 else curve.sustained(beyond or CENT) == most + 10
