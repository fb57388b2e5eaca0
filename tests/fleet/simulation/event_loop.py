"""The model of docs/guides/simulation.md as one event loop that shares no code with cms.

It is slow and keeps everything: batches as lists of requests, weights as fractions, one list of
what is to happen. What it is given are the service, the events, the times of the requests and the
stations that were drawn for them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from cms.fleet.simulation import Event, Failure, ModelledService, RateChange, Weights

SECOND = 10**9


class Request(NamedTuple):
    """When it came first, and whether a failure has hit it since."""

    came: int
    again: bool = False


@dataclass
class Station:
    """A queue, and the processes that take from it."""

    weight: Fraction
    times: Sequence[int]
    idle: int
    instance: int
    factor: Fraction = Fraction(1)
    waiting: list[Request] = field(default_factory=list)
    working: int = 0  # requests in batches under way
    routed: int = 0  # since the weights last changed
    failures: int = 0  # that are not repaired
    busy: int = 0
    batches: int = 0
    taken: int = 0
    deepest: int = 0


class Replayed(NamedTuple):
    """What became of the requests, each answered one with its end; and what stations did."""

    answered: list[tuple[Request, int]]
    lost: list[Request]
    sent_again: int
    stations: list[Station]


def replayed(
    service: ModelledService,
    events: Sequence[Event],
    routing: str,
    arrivals: Sequence[int],
    draw: Callable[[list[Fraction]], int],
    *,
    retry: bool,
) -> Replayed:
    """Replay a service; arrivals are at the service's own rate, and events change that."""
    happens: list[tuple[int, str, list[int], Fraction]] = []
    rates: list[tuple[int, Fraction]] = []
    for event in events:
        at = _ns(event.seconds)
        if isinstance(event, RateChange):
            rates.append((at, _number(event.factor)))
        elif isinstance(event, Weights):
            happens.append((at, "weigh", [event.instance], _number(event.factor)))
        elif isinstance(event, Failure):
            gpus = [each.gpu for each in service.instances]
            hit = [i for i, gpu in enumerate(gpus) if event.gpu is not None and gpu == event.gpu]
            hit = hit if event.instance is None else [event.instance]
            happens.append((at, "fail", hit, Fraction(0)))
            if event.repair_seconds is not None:
                happens.append((at + _ns(event.repair_seconds), "repair", hit, Fraction(0)))
    happens = sorted((each for each in happens if each[2]), key=lambda each: each[0])
    rates.sort()
    stations = []
    for number, each in enumerate(service.instances):
        alone = each.queue == "process"
        for _ in range(each.processes if alone else 1):
            weight = each.weight / (each.processes if alone else 1)
            idle = 1 if alone else each.processes
            stations.append(Station(weight, each.fill_ns, idle, number))

    under_way: list[tuple[int, int, Station, list[Request]]] = []
    found, begun = Replayed([], [], 0, stations), 0

    def weigh() -> list[Fraction]:
        weights = [each.weight * each.factor * (not each.failures) for each in stations]
        return [Fraction(each > 0) for each in weights] if "equal_" in routing else weights

    def begin(station: Station, now: int, batch: list[Request]) -> None:
        nonlocal begun
        station.idle -= 1
        station.working += len(batch)
        time = station.times[len(batch) - 1]
        heapq.heappush(under_way, (now + time, begun, station, batch))
        station.busy, station.batches = station.busy + time, station.batches + 1
        station.taken += len(batch)
        begun += 1

    def complete(until: int) -> None:
        while under_way and under_way[0][0] <= until:
            end, _, station, batch = heapq.heappop(under_way)
            found.answered.extend((each, end) for each in batch)
            station.idle += 1
            station.working -= len(batch)
            if station.waiting:
                most = len(station.times)
                taken, station.waiting = station.waiting[:most], station.waiting[most:]
                begin(station, end, taken)

    def arrive(request: Request, now: int) -> None:
        complete(now)
        weights = weigh()
        if not any(weights):
            found.lost.append(request)
            return
        if len(stations) == 1:
            at = 0
        elif routing.endswith("random"):
            at = draw(weights)
        else:
            choice = list(range(len(stations)))
            if routing.endswith("two_choices"):
                choice = sorted([draw(weights), draw(weights)])
            turns = routing.endswith("round_robin")

            def rank(i: int) -> tuple[Fraction, Fraction, int]:
                one = stations[i]
                load = 2 * one.routed + 1 if turns else len(one.waiting) + one.working
                return load / weights[i], -weights[i], i

            at = min((i for i in choice if weights[i]), key=rank)
        station = stations[at]
        station.routed += 1
        if station.idle:
            begin(station, now, [request])
        else:
            station.waiting.append(request)
            station.deepest = max(station.deepest, len(station.waiting))

    def happen(now: int, what: str, which: list[int], factor: Fraction) -> int:
        hit: list[Request] = []
        for station in stations:
            if station.instance in which:
                if what == "weigh":
                    station.factor = factor
                elif what == "repair":
                    station.failures -= 1
                else:
                    station.failures += 1
                    mine = [each for each in under_way if each[2] is station]
                    under_way[:] = [each for each in under_way if each[2] is not station]
                    hit += [each for batch in mine for each in batch[3]] + station.waiting
                    station.idle += len(mine)
                    station.busy -= sum(each[0] - now for each in mine)
                    station.working, station.waiting = 0, []
            station.routed = 0
        heapq.heapify(under_way)
        found.lost.extend(each for each in hit if each.again or not retry)
        again = sorted(each for each in hit if retry and not each.again)
        for each in again:
            arrive(Request(each.came, again=True), now)
        return len(again)

    sent_again, ever = 0, SECOND**3
    for came in [*(_clock(at, rates) for at in arrivals), ever]:
        if came is None:  # nor does any later one
            came = ever
        while happens and happens[0][0] <= came:
            complete(happens[0][0] - 1)
            sent_again += happen(*happens.pop(0))
        if came == ever:
            complete(ever)
            break
        arrive(Request(came), came)
    return found._replace(sent_again=sent_again)


def _number(given: Any) -> Fraction:
    return Fraction(given)


def _ns(seconds: Any) -> int:
    return round(_number(seconds) * SECOND)


def _clock(at: int, rates: list[tuple[int, Fraction]]) -> int | None:
    """When a request comes that would come `at` without the changes; None for never."""
    real, own, factor = 0, Fraction(0), Fraction(1)
    for when, following in rates:
        then = own + (when - real) * factor
        if at < then:
            break
        real, own, factor = when, then, following
    return None if not factor else real + int((at - own) / factor)
