"""Stations that work off batches, in SimPy: the same requests through somebody else's loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from fractions import Fraction
from typing import Any

import simpy

from cms.fleet.simulation.model import Station


class _Server:
    """A station: workers that take what waits, or wait for it."""

    def __init__(self, env: simpy.Environment, station: Station, ends: list[int]) -> None:
        self.env, self.station, self.ends = env, station, ends
        self.waiting: deque[int] = deque()
        self.inside = self.batches = 0
        self.resting: list[simpy.Event] = []
        for _ in range(station.processes):
            env.process(self.work())

    def work(self) -> Generator[simpy.Event, Any, None]:
        while True:
            if not self.waiting:
                call = self.env.event()
                self.resting.append(call)
                yield call
            fill = min(len(self.waiting), len(self.station.fill_ns))
            batch = [self.waiting.popleft() for _ in range(fill)]
            yield self.env.timeout(self.station.fill_ns[fill - 1])
            self.inside -= fill
            self.batches += 1
            for request in batch:
                self.ends[request] = int(self.env.now)

    def take(self, request: int) -> None:
        self.inside += 1
        self.waiting.append(request)
        if self.resting:
            self.resting.pop().succeed()


def ends_in_simpy(
    stations: Sequence[Station],
    weights: Sequence[int],
    times: Sequence[int],
    drawn: Sequence[int] | None,
) -> tuple[list[int], int]:
    """Work off requests that arrive at these nanoseconds, no two events at the same time.

    Without ``drawn`` stations a request goes to the one with the fewest requests for its weight.
    Return when requests end, and the number of batches.
    """
    env: Any = simpy.Environment()
    ends = [0] * len(times)
    servers = [_Server(env, station, ends) for station in stations]

    def arrive() -> Generator[simpy.Event, Any, None]:
        for request, at in enumerate(times):
            yield env.timeout(at - env.now)
            if drawn is not None:
                servers[drawn[request]].take(request)
                continue
            loads = [
                (Fraction(server.inside, weight), -weight, place)
                for place, (server, weight) in enumerate(zip(servers, weights, strict=True))
            ]
            servers[min(loads)[-1]].take(request)

    env.process(arrive())
    env.run()
    return ends, sum(server.batches for server in servers)
