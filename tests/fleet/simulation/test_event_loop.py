"""Replays with events against an event loop that shares no code with the simulator."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from cms.fleet.simulation import (
    ROUTINGS,
    Event,
    Failure,
    ModelledInstance,
    ModelledService,
    RateChange,
    Weights,
    kernel,
)
from cms.fleet.simulation.replay import Alias, Loop, ServiceReplay, Until, whole_weights
from tests.fleet.simulation.cases import MS, Given
from tests.fleet.simulation.event_loop import Request, replayed


def draws(seed: int, name: str) -> Callable[[list[Fraction]], int]:
    """Draw stations as the simulator is documented to: a stream from the seed and the name."""
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest())
    bits = np.random.PCG64(np.random.SeedSequence([seed, digest]).spawn(2)[1])

    def draw(weights: list[Fraction]) -> int:
        return int(Alias(whole_weights(weights)).pick(bits.random_raw(1))[0])

    return draw


class Case(NamedTuple):
    service: ModelledService
    events: tuple[Event, ...]
    times: tuple[int, ...]
    routing: str
    retry: bool
    size: int
    seed: int


def case(seed: int) -> Case:
    """Up to five instances with coarse times, so that much happens at one nanosecond."""
    chance = random.Random(seed)
    step = chance.choice([1, MS // 10, MS, 3 * MS])
    requests = chance.randint(20, 120)
    instances = tuple(_instance(chance, step) for _ in range(chance.randint(1, 5)))
    capacity = sum(each.capacity for each in instances)
    rate = capacity * chance.choice([Fraction(2, 5), Fraction(9, 10), Fraction(6, 5)])
    gap = float(10**9 / rate)
    at, times = 0.0, []
    for _ in range(requests):
        at += chance.expovariate(1) * gap
        times.append(round(at) // step * step)
    ends = max(times[-1] // MS, 40)
    moments = chance.sample(range(ends), 5)  # never two events at one nanosecond
    events = tuple(
        event for at in moments[: chance.randint(0, 5)] for event in _event(chance, at, instances)
    )
    asked = ModelledService("chat", Fraction(round(rate)), 30 * MS, Fraction(1, 100), instances)
    routing, retry = chance.choice(list(ROUTINGS)), chance.random() < 0.7
    return Case(asked, events, tuple(times), routing, retry, chance.choice([3, 20, 2**16]), seed)


def _instance(chance: random.Random, step: int) -> ModelledInstance:
    batch = chance.choice([1, 2, 3, 8])
    longest = max(30 * MS // step, 1)
    times = sorted(step * chance.randint(1, longest) for _ in range(batch))
    weight = chance.choice([Fraction(1), Fraction(2), Fraction(10, 7), Fraction(0)])
    queue = chance.choice(["instance", "process"])
    return ModelledInstance(weight, chance.randint(1, 3), tuple(times), queue, chance.randint(0, 2))


def _event(chance: random.Random, at: int, instances: Sequence[ModelledInstance]) -> list[Event]:
    seconds, which = Fraction(at, 1000), chance.randrange(len(instances))
    kind = chance.randrange(6)
    if kind == 0:
        # a request that would come just when its rate ends is neither here nor there
        between = seconds + Fraction(1, 10**6)
        return [RateChange(between, chance.choice(["0", "0.5", "1", "2"]))]
    if kind == 1:
        return [Weights(seconds, "chat", which, chance.choice(["0", "0.5", "1"]))]
    repair = chance.choice([None, Fraction(chance.randint(1, 60), 1000) + Fraction(1, 10**4)])
    if kind < 4:
        return [Failure(seconds, service="chat", instance=which, repair_seconds=repair)]
    return [Failure(seconds, gpu=instances[which].gpu, repair_seconds=repair)]


def require_equal(given: Case, loop: Loop = kernel.advance_lists) -> None:
    """Compare every request's end, and what every station did."""
    answers: list[tuple[Request, int]] = []

    def hear(tags: np.typing.NDArray[np.int64], ends: np.typing.NDArray[np.int64]) -> None:
        pairs = zip(tags.tolist(), ends.tolist(), strict=True)
        answers.extend((Request(tag >> 1, bool(tag & 1)), end) for tag, end in pairs)

    found = ServiceReplay(
        given.service, given.events, Given(given.times),
        ROUTINGS[given.routing], Until(None, len(given.times)), loop, seed=given.seed,
        retry=given.retry, size=given.size, on_answers=hear,
    ).run()  # fmt: skip
    expected = replayed(
        given.service, given.events, given.routing, given.times,
        draws(given.seed, "chat"), retry=given.retry,
    )  # fmt: skip
    assert sorted(answers) == sorted(expected.answered), given
    took = [end - request.came for request, end in expected.answered]
    lost = len(expected.lost)
    late = sum(each > 30 * MS for each in took) + lost
    tally, state = found.tally, found.state
    counts = [tally.requests, tally.lost, tally.late, tally.total_ns, found.retried]
    assert counts == [len(took) + lost, lost, late, sum(took), expected.sent_again], given
    assert found.lasted_ns >= max((end for _, end in answers), default=0)
    for name in ("busy", "batches", "taken", "deepest"):
        own = [getattr(station, name) for station in expected.stations]
        assert getattr(state, name).tolist() == own, (name, given)


@pytest.mark.parametrize("block", range(5))
def test_replays_with_events_are_those_of_a_plain_event_loop(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        require_equal(case(seed))
    assert {case(seed).routing for seed in range(80)} == set(ROUTINGS)


@pytest.mark.long
def test_thousands_of_replays_with_events_are_those_of_a_plain_event_loop() -> None:
    from cms.fleet.simulation.compiled import advance

    for seed in range(1000, 7000):
        require_equal(case(seed), (advance, kernel.advance, kernel.advance_lists)[seed % 3])
