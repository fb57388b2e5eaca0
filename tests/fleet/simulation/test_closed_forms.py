"""What queueing theory says of a service in closed form, and SimPy of its requests, we say too."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bench.loads import late_share
from bench.peers.simpy_queues import ends_in_simpy
from cms.fleet.simulation import (
    ModelledInstance,
    ModelledService,
    Poisson,
    RateChange,
    Verdict,
    kernel,
    simulate,
)
from cms.fleet.simulation.model import stations_of
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
