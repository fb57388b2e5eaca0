"""Random services, events and runs for the tests of the simulator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cms.fleet.simulation import (
    ROUTINGS,
    Arrivals,
    Bursts,
    Change,
    Event,
    Failure,
    Gamma,
    ModelledInstance,
    ModelledService,
    Poisson,
    RateChange,
    Weights,
)
from cms.fleet.simulation.arrivals import PIECE
from cms.fleet.simulation.events import script_of
from cms.fleet.simulation.replay import Loop, Outcome, Until, replay
from cms.fleet.simulation.routing import routing_of

MS = 10**6
Answers = list[tuple[int, int]]


def service(
    *instances: ModelledInstance,
    rate: Fraction | int = 100,
    limit: int = 25 * MS,
    name: str = "chat",
) -> ModelledService:
    return ModelledService(name, Fraction(rate), limit, Fraction(1, 100), instances)


def instance(
    weight: Fraction | int = 1, processes: int = 1, batch: int = 1, ns: int = 10 * MS, **more: Any
) -> ModelledInstance:
    """An instance whose batches all take the same time."""
    return ModelledInstance(Fraction(weight), processes, (ns,) * batch, **more)


class Ticks(NamedTuple):
    """An arrival process of a user's own: Poisson's, but only at ticks of a coarse clock."""

    ns: int = MS
    name: str = "ticks"

    def pieces(
        self, service: str, rate: Fraction, random: np.random.Generator, size: int = PIECE
    ) -> Iterator[np.typing.NDArray[np.int64]]:
        for piece in Poisson().pieces(service, rate, random, size):
            yield piece // self.ns * self.ns


class Case(NamedTuple):
    service: ModelledService
    events: tuple[Event, ...]
    arrivals: Arrivals
    routing: str
    retry: bool
    seed: int


def case(seed: int, requests: int = 200) -> Case:
    """A service of up to six instances near its capacity, with events; times that often tie."""
    chance = random.Random(seed)
    step = chance.choice([1, 10**5, 10**6, 7 * 10**6])  # coarse times make ties
    instances = tuple(_instance(chance, step) for _ in range(chance.randint(1, 6)))
    capacity = sum(each.capacity for each in instances)
    rate = Fraction(max(round(capacity * chance.choice([3, 8, 10, 13])), 1), 10)
    asked = ModelledService("chat", rate, 30 * MS, Fraction(1, 100), instances)
    length = requests / rate
    events = tuple(_event(chance, asked, length) for _ in range(chance.randint(0, 4)))
    arrivals: list[Arrivals] = [
        Poisson(),
        Ticks(),
        Ticks(10**6),
        Gamma(4),
        Gamma("0.2"),
        Bursts(3, "0.2", length / 20),
    ]
    routing = chance.choice([*ROUTINGS])
    return Case(asked, events, chance.choice(arrivals), routing, chance.random() < 0.7, seed)


def _instance(chance: random.Random, step: int) -> ModelledInstance:
    batch = chance.choice([1, 1, 2, 3, 8])
    times = sorted(step * chance.randint(1, max(30 * MS // step, 1)) for _ in range(batch))
    if chance.random() < 0.4:
        times = [times[-1]] * batch
    weight = chance.choice([Fraction(1), Fraction(3), Fraction(10, 7), Fraction(0)])
    queue = chance.choice(["instance", "instance", "process"])
    return ModelledInstance(weight, chance.randint(1, 4), tuple(times), queue, chance.randint(0, 2))


def _event(chance: random.Random, asked: ModelledService, length: Fraction) -> Event:
    at = length * chance.randint(0, 100) / 100
    which = chance.randrange(len(asked.instances))
    kind = chance.randrange(5)
    if kind == 0:
        return RateChange(at, chance.choice(["0", "0.5", "1", "1.7"]))
    if kind == 1:
        return Weights(at, "chat", which, chance.choice(["0", "0.5", "1"]))
    if kind == 2:
        new = (_instance(chance, 10**6),) * chance.randint(0, 2)
        return Change(at, "chat", new, length / 20, tuple({which} if chance.random() < 0.5 else ()))
    repair = None if chance.random() < 0.3 else length / 10
    if kind == 3:
        return Failure(at, service="chat", instance=which, repair_seconds=repair)
    return Failure(at, gpu=asked.instances[which].gpu, repair_seconds=repair)


def run(given: Case, loop: Loop, requests: int = 200, size: int = PIECE) -> tuple[Outcome, Answers]:
    """Replay a case; also every answer: its tag and its end, in the order of the starts."""
    answers: Answers = []

    def hear(tags: np.typing.NDArray[np.int64], ends: np.typing.NDArray[np.int64]) -> None:
        answers.extend(zip(tags.tolist(), ends.tolist(), strict=True))

    found = replay(
        given.service, script_of(given.service, given.events), given.arrivals,
        routing_of(given.routing), Until(None, requests), loop, seed=given.seed,
        retry=given.retry, size=size, on_answers=hear,
    )  # fmt: skip
    return found, answers


def facts(found: Outcome) -> dict[str, object]:
    """Everything a replay says but for the scratch memory of its loop."""
    tally, state = found.tally, found.state
    return {
        "counts": (tally.requests, tally.late, tally.lost, tally.total_ns, tally.largest),
        "cells": tally.cells.tolist(),
        "quantiles": [tally.quantile(Fraction(share, 100)) for share in (1, 50, 99, 100)],
        "stations": [
            each.tolist()
            for each in (state.busy, state.batches, state.taken, state.deepest, state.load)
        ],
        "end": (found.lasted_ns, found.retried),
    }
