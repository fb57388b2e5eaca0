"""A third opinion: the same requests in SimPy, whose authors know nothing of our loops."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from bench.peers.simpy_queues import ends_in_simpy
from cms.fleet.simulation import ModelledInstance, Poisson
from cms.fleet.simulation.kernel import DRAWN, SHORTEST, advance_lists
from cms.fleet.simulation.model import stations_of
from cms.fleet.simulation.state import LOGGED, new_state, with_room
from tests.fleet.simulation.cases import NOBODY, NONE


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
        state = with_room(new_state(stations, np.array(weights), n + 10), n)
        first, policy = (NOBODY, SHORTEST) if by_queue else (drawn, DRAWN)
        assert advance_lists(state, policy, times, NONE, first, first, 2**62) == n
        assert state.counts[LOGGED] == n
        ours = dict(zip(state.log_tags[:n].tolist(), state.log_ends[:n].tolist(), strict=True))
        places = None if by_queue else drawn.tolist()
        theirs = ends_in_simpy(stations, weights, times.tolist(), places)[0]
        assert [ours[2 * at] for at in times.tolist()] == theirs
