"""Replays with events against an event loop that shares no code with the simulator."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from cms.fleet.simulation import (
    ROUTINGS,
    Change,
    Event,
    Failure,
    ModelledInstance,
    ModelledService,
    RateChange,
    Weights,
    reference,
    simulate,
)
from cms.fleet.simulation.arrivals import PIECE
from cms.fleet.simulation.events import script_of
from cms.fleet.simulation.replay import Loop, Until, replay
from cms.fleet.simulation.routing import Alias, routing_of, whole_weights
from tests.fleet.simulation.event_loop import Replayed, Request, replayed

MS = 10**6


class Given(NamedTuple):
    """An arrival process of a test's own: these times."""

    times: tuple[int, ...]
    name: str = "given"

    def pieces(
        self, service: str, rate: Fraction, random: np.random.Generator, size: int = PIECE
    ) -> Iterator[np.typing.NDArray[np.int64]]:
        for at in range(0, len(self.times), size):
            yield np.array(self.times[at : at + size], dtype=np.int64)


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
        event for at in moments[: chance.randint(1, 5)] for event in _event(chance, at, instances)
    )
    asked = ModelledService("chat", Fraction(round(rate)), 30 * MS, Fraction(1, 100), instances)
    return Case(
        asked, events, tuple(times), chance.choice(list(ROUTINGS)), chance.random() < 0.7, seed
    )


def _instance(chance: random.Random, step: int) -> ModelledInstance:
    batch = chance.choice([1, 2, 3, 8])
    longest = max(30 * MS // step, 1)
    times = sorted(step * chance.randint(1, longest) for _ in range(batch))
    weight = chance.choice([Fraction(1), Fraction(2), Fraction(10, 7), Fraction(0)])
    queue = chance.choice(["instance", "process"])
    return ModelledInstance(weight, chance.randint(1, 3), tuple(times), queue, chance.randint(0, 2))


def _event(chance: random.Random, at: int, instances: Sequence[ModelledInstance]) -> list[Event]:
    seconds, which = Fraction(at, 1000), chance.randrange(len(instances))
    kind = chance.randrange(7)
    if kind == 0:
        # a request that would come just when its rate ends is neither here nor there
        between = seconds + Fraction(1, 10**6)
        return [RateChange(between, chance.choice(["0", "0.5", "1", "2"]))]
    if kind == 1:
        return [Weights(seconds, "chat", which, chance.choice(["0", "0.5", "1"]))]
    if kind == 2:
        new = (_instance(chance, MS),) * chance.randint(0, 2)
        warm_up = Fraction(chance.choice([1, 7]), 1000) + Fraction(1, 10**5)
        return [Change(seconds, "chat", new, warm_up, (which,) * chance.randint(0, 1))]
    repair = chance.choice([None, Fraction(chance.randint(1, 60), 1000) + Fraction(1, 10**4)])
    if kind < 5:
        return [Failure(seconds, service="chat", instance=which, repair_seconds=repair)]
    return [Failure(seconds, gpu=instances[which].gpu, repair_seconds=repair)]


def both(given: Case, loop: Loop = reference.advance) -> tuple[Replayed, Replayed, list[int]]:
    """Replay a case in the simulator and in the event loop; also the simulator's counts."""
    answers: list[tuple[int, int]] = []

    def hear(tags: np.typing.NDArray[np.int64], ends: np.typing.NDArray[np.int64]) -> None:
        answers.extend(zip(tags.tolist(), ends.tolist(), strict=True))

    found = replay(
        given.service, script_of(given.service, given.events), Given(given.times),
        routing_of(given.routing), Until(None, len(given.times)), loop, seed=given.seed,
        retry=given.retry,
        on_answers=hear,
    )  # fmt: skip
    expected = replayed(
        given.service, given.events, given.routing, given.times,
        draws(given.seed, "chat"), retry=given.retry,
    )  # fmt: skip
    answered = sorted((Request(tag >> 1, bool(tag & 1)), end) for tag, end in answers)
    tally = found.tally
    counts = [tally.requests, tally.lost, tally.late, tally.total_ns]
    return Replayed(answered, [], found.retried), expected, counts


def require_equal(given: Case, loop: Loop = reference.advance) -> None:
    ours, expected, counts = both(given, loop)
    assert ours.answered == sorted(expected.answered), given
    assert ours.sent_again == expected.sent_again, given
    took = [end - request.came for request, end in expected.answered]
    limit = given.service.limit_ns
    assert limit is not None
    late = sum(each > limit for each in took) + len(expected.lost)
    assert counts == [len(took) + len(expected.lost), len(expected.lost), late, sum(took)], given


@pytest.mark.parametrize("block", range(4))
def test_replays_with_events_are_those_of_a_plain_event_loop(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        require_equal(case(seed))


@pytest.mark.long
def test_thousands_of_replays_with_events_are_those_of_a_plain_event_loop() -> None:
    from cms.fleet.simulation.compiled import advance

    for seed in range(1000, 7000):
        require_equal(case(seed), advance if seed % 2 else reference.advance)


@pytest.mark.parametrize("plain", [True, False])
def test_a_failure_hits_the_batch_under_way(plain: bool) -> None:
    """Of 0 to 10 ms on an instance that dies at 5 ms: it begins anew on the other one."""
    one = ModelledInstance(Fraction(1), 1, (10 * MS,))
    asked = ModelledService("chat", Fraction(1), 12 * MS, Fraction(1, 100), (one, one))
    dies = Failure("0.005", service="chat", instance=0)

    for how, counts in (("retry", (1, 0, 1, 15 * MS)), ("lose", (0, 1, 1, 0))):
        (found,) = simulate(
            [asked], Given((0,)), "round_robin", requests=1, events=[dies], plain=plain,
            on_failure=how,
        ).services  # fmt: skip
        assert (found.retried, found.lost, found.late, found.max_ns) == counts
