"""One service is replayed: arrivals and events go to its loop, and what ended is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple, TypeAlias

import numpy as np

from ...errors import InvalidOption
from ...values.names import nearest
from . import kernel
from .arrivals import NEVER, PIECE, Arrivals, EachItsOwn, RateClock, Replay
from .events import Event, script_of
from .kernel import State
from .model import Bits, Int32s, Ints, ModelledService
from .statistics import Tally, Verdict, requests_needed

_HALF = 32


@dataclass(frozen=True, slots=True)
class Routing:
    """A policy: what reports call it, what the loop does, and whether all weigh the same."""

    says: str
    policy: int
    equal: bool

    def policy_for(self, stations: int) -> int:
        """Return the policy of the loop, which is simpler for one station."""
        return kernel.ALONE if stations == 1 else self.policy

    @property
    def draws(self) -> int:
        """Stations that are drawn for a request."""
        return {kernel.DRAWN: 1, kernel.TWO_DRAWN: 2}.get(self.policy, 0)


#: The policies by name. By default an instance is chosen in proportion to its supply, and queues
#: are compared as requests for their supply; with ``equal_`` before it, supplies do not matter, as
#: where a load balancer does not know them.
ROUTINGS: dict[str, Routing] = {
    "weighted_random": Routing("weighted random", kernel.DRAWN, equal=False),
    "round_robin": Routing("weighted round robin", kernel.TURNS, equal=False),
    "shortest_queue": Routing("shortest queue", kernel.SHORTEST, equal=False),
    "two_choices": Routing("two choices", kernel.TWO_DRAWN, equal=False),
    "equal_random": Routing("equal-weight random", kernel.DRAWN, equal=True),
    "equal_round_robin": Routing("equal-weight round robin", kernel.TURNS, equal=True),
    "equal_shortest_queue": Routing("equal-weight shortest queue", kernel.SHORTEST, equal=True),
    "equal_two_choices": Routing("equal-weight two choices", kernel.TWO_DRAWN, equal=True),
}


def routing_of(name: str) -> Routing:
    """Find a policy by its name."""
    if name not in ROUTINGS:
        known = f"{', '.join(ROUTINGS)}{nearest(name, ROUTINGS)}"
        raise InvalidOption(f"there is no routing {name!r}; expected one of {known}")
    return ROUTINGS[name]


def whole_weights(weights: Sequence[Fraction], *, equal: bool = False) -> Ints:
    """Scale weights to integers: exactly where they are short, else to nine digits."""
    if equal:
        return np.array([int(each > 0) for each in weights], dtype=np.int64)
    scale = Fraction(lcm(*(each.denominator for each in weights)))
    largest = max(weights, default=Fraction(0))
    if largest * scale > kernel.LARGEST_WEIGHT:
        scale = kernel.LARGEST_WEIGHT / largest
    # a weight > 0 stays > 0
    whole = [max(round(each * scale), int(each > 0)) for each in weights]
    common = np.gcd.reduce(whole) if whole else 1
    return np.array(whole, dtype=np.int64) // max(int(common), 1)


class Alias:
    """Draw stations in proportion to integer weights, not all 0, each in constant time.

    A. J. Walker, *An efficient method for generating discrete random variables with general
    distributions*, ACM TOMS 1977, DOI 10.1145/355744.355749; here in integers.
    """

    def __init__(self, weights: Ints) -> None:
        k, total = len(weights), int(weights.sum())
        left = [int(each) * k for each in weights]
        limits, aliases = [total] * k, list(range(k))
        small = [i for i in range(k) if left[i] < total]
        large = [i for i in range(k) if left[i] >= total]
        while small and large:
            low, high = small.pop(), large[-1]
            limits[low], aliases[low] = left[low], high
            left[high] -= total - left[low]
            if left[high] < total:
                small.append(large.pop())
        self._columns = np.uint64(k)
        self._limits = np.array([-(-(each << _HALF) // total) for each in limits], dtype=np.uint64)
        self._aliases = np.array(aliases, dtype=np.int32)

    def pick(self, raw: Bits) -> Int32s:
        """Turn 64 random bits a draw into stations."""
        column = (raw >> np.uint64(_HALF)) * self._columns >> np.uint64(_HALF)
        at = column.astype(np.int32)
        below = (raw & np.uint64(2**_HALF - 1)) < self._limits[at]
        return np.where(below, at, self._aliases[at])


_NONE = np.zeros(0, dtype=np.int64)
_NO_STATION = np.zeros(0, dtype=np.int32)


#: :func:`.kernel.advance`, as it stands, on lists or compiled
Loop: TypeAlias = Callable[[State, int, Ints, Ints, Int32s, Int32s, int], int]


class Until(NamedTuple):
    """How long a service is replayed."""

    ns: int | None  #: Where the verdict is open then and `requests` allows it, longer
    requests: int | None  #: Maximum number of requests

    def expected(self, rate: Fraction) -> int:
        """Requests that a service of this rate will have, about."""
        by_time = None if self.ns is None else round(self.ns * rate / 10**9)
        return min(each for each in (by_time, self.requests) if each is not None)


def seed_of(seed: int, service: str) -> np.random.SeedSequence:
    """Return where a service's random numbers begin."""
    digest = int.from_bytes(hashlib.sha256(service.encode()).digest())
    return np.random.SeedSequence([seed, digest])


class ServiceReplay:
    """A run of one service with its events; seed and name begin the random numbers.

    A request that a failure hits is sent to another instance, once, if `retry` says so. The size of
    pieces says nothing about the result. `on_answers` gets tags and ends as requests are begun.
    """

    def __init__(
        self,
        service: ModelledService,
        events: Iterable[Event],
        arrivals: Arrivals,
        routing: Routing,
        until: Until,
        loop: Loop,
        *,
        seed: int,
        retry: bool = True,
        size: int = PIECE,
        on_answers: Callable[[Ints, Ints], None] | None = None,
    ) -> None:
        self.lasted_ns = 0  #: To the end of the last batch or to the last arrival
        self.retried = 0  #: Requests that a failure hit and another instance answered, or lost
        self.service, self.routing = service, routing
        self.script = script = script_of(service, events)
        self._until, self._clock = until, RateClock(script.rates)
        self._loop, self._retry, self._on_answers = loop, retry, on_answers
        expected = max(until.expected(service.rate), 1)
        horizon = until.ns or round(expected * 10**9 / service.rate) if service.rate else 1
        own = arrivals.of(service.name) if isinstance(arrivals, EachItsOwn) else arrivals
        load, needed = service.load, 0  # of a trace, and of events, the run itself is all there is
        if load is not None and not script.marks and not isinstance(own, Replay):
            needed = requests_needed(load, sum(one.weight > 0 for one in script.stations))
        self.tally = Tally(service.limit_ns, horizon, needed)
        coming, self._raw = map(np.random.PCG64, seed_of(seed, service.name).spawn(2))
        size = min(size, expected)
        self._arrivals: Iterator[Ints] = iter(())
        if service.rate:
            random = np.random.Generator(coming)
            self._arrivals = own.pieces(service.name, service.rate, random, size)
        self._policy = routing.policy_for(len(script.stations))
        self._own = [station.weight for station in script.stations]
        self._factors, self._down = [Fraction(1)] * len(self._own), [0] * len(self._own)
        self._actions = list(reversed(script.actions))
        # What a failure may still undo stays in the log: all requests that can be under way.
        slots = sum(one.processes * len(one.fill_ns) for one in script.stations)
        self.state = kernel.new_state(script.stations, np.zeros_like(self._down), size + 2 * slots)
        self._weigh()

    def run(self, on_piece: Callable[[int], bool] | None = None) -> ServiceReplay:
        """Let all happen; `on_piece` gets the arrivals since its last call, and True ends them."""
        for times in self._pieces():
            arrived = len(times)
            while self._actions and len(times) and times[-1] >= self._actions[-1].at:
                cut = int(np.searchsorted(times, self._actions[-1].at))
                self._act(times[:cut])
                times = times[cut:]
            self._work(times, 0)
            if on_piece is not None and on_piece(arrived):
                break
        while self._actions:
            self._act(_NONE)
        self._work(_NONE, NEVER)
        return self

    def _pieces(self) -> Iterator[Ints]:
        """Cut the arrivals off where the run ends."""
        most = self._until.requests
        end = NEVER if self._until.ns is None else self._until.ns
        left = NEVER if most is None else most
        for piece in self._arrivals:
            times = self._clock(piece)[:left]
            left -= len(times)
            while len(times) and times[-1] >= end:
                cut = int(np.searchsorted(times, end))
                yield times[:cut]
                times = times[cut:]
                verdict = self.tally.verdict(self.service.late_share)
                if most is None or end >= NEVER or verdict != Verdict.UNDECIDED:
                    return
                end = min(2 * end, NEVER)
            yield times
            if left <= 0:
                return

    def _work(self, times: Ints, until: int, tags: Ints = _NONE) -> None:
        if len(times):
            self.lasted_ns = max(self.lasted_ns, int(times[-1]))
        if not self._open:
            self.tally.lose(tags >> 1 if len(tags) else times)
            times = tags = _NONE
        self.state = state = kernel.with_room(self.state, len(times))
        first = second = _NO_STATION
        if self._open and self._policy and (draws := self.routing.draws):
            found = self._alias.pick(self._raw.random_raw(draws * len(times)))
            first, second = (found[at::draws].copy() for at in (0, draws - 1))
        done = 0
        while len(self._own):
            done += self._loop(
                state, self._policy, times[done:], tags[done:], first[done:], second[done:], until
            )
            self._count()
            if done == len(times) and not (
                state.counts[kernel.UNDER_WAY] and state.ends[0] < until
            ):
                return

    def _count(self) -> None:
        # what a failure may still undo stays in the log
        sure = next((one.at for one in reversed(self._actions) if one.kind == "fail"), NEVER)
        tags, ends = kernel.finished(self.state, sure)
        clocks = tags >> 1
        self.tally.add(clocks, ends - clocks)
        if len(ends):
            self.lasted_ns = max(self.lasted_ns, int(ends.max()))
        if self._on_answers is not None:
            self._on_answers(tags, ends)

    def _act(self, times: Ints) -> None:
        """Let the last requests before the next action arrive, and it happen."""
        action = self._actions[-1]
        # it stays in the list until then: the log must keep the requests that it undoes
        self._work(times, action.at)
        self._actions.pop()
        hit = []
        for station in action.stations:
            if action.kind == "weigh":
                self._factors[station] = action.factor
            elif action.kind == "repair":
                self._down[station] -= 1
            else:
                self._down[station] += 1
                hit.append(kernel.lose(self.state, station, action.at))
        self._weigh()
        tags = np.concatenate([_NONE, *hit])
        if len(tags):
            self.lasted_ns = max(self.lasted_ns, action.at)  # until then they were worked on
            again = (tags & 1 == 1) | (not self._retry)
            self.tally.lose(tags[again] >> 1)
            tags = np.sort(tags[~again]) | 1
            self.retried += len(tags)
            self._work(np.full(len(tags), action.at, dtype=np.int64), 0, tags)

    def _weigh(self) -> None:
        """Work out the weights anew, and begin the turns from the beginning."""
        weights = [
            own * factor * (not down)
            for own, factor, down in zip(self._own, self._factors, self._down, strict=True)
        ]
        self.state.weight[:] = whole_weights(weights, equal=self.routing.equal)
        self.state.turns[:] = 1
        self._open = bool(self.state.weight.any())
        if self._open:
            self._alias = Alias(self.state.weight)
