"""One service is replayed: arrivals and events go to its loop, and what ended is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from .arrivals import NEVER, PIECE, Arrivals, EachItsOwn, RateClock
from .events import Script
from .model import ModelledService
from .routing import Alias, Routing, whole_weights
from .state import UNDER_WAY, State, finished, lose, new_state, with_room
from .statistics import Tally, Verdict, requests_needed
from .traces import Replay

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NONE = np.zeros(0, dtype=np.int64)
_NO_STATION = np.zeros(0, dtype=np.int32)


class Loop(Protocol):
    """:func:`.kernel.advance`, as it stands, on lists or compiled."""

    def __call__(  # noqa: D102
        self, state: State, policy: int, at: NDArray[np.int64], tags: NDArray[np.int64],
        first: NDArray[np.int32], second: NDArray[np.int32], until: int, /,
    ) -> int: ...  # fmt: skip


class Until(NamedTuple):
    """How long a service is replayed."""

    ns: int | None  #: So long; where the verdict is open then and `requests` allows it, longer.
    requests: int | None  #: At most so many requests

    def expected(self, rate: Fraction) -> int:
        """Requests that a service of this rate will have, about."""
        by_time = None if self.ns is None else round(self.ns * rate / 10**9)
        return min(each for each in (by_time, self.requests) if each is not None)


class Outcome(NamedTuple):
    """What was found of one service."""

    tally: Tally
    state: State
    lasted_ns: int  #: From the beginning to the end of the last batch or to the last arrival
    retried: int  #: Requests that a failure hit and another instance answered, or lost again


def draws_of(seed: int, service: str, streams: int = 2) -> list[np.random.PCG64]:
    """Begin a service's random numbers: of its arrivals, and of the stations that are drawn."""
    digest = int.from_bytes(hashlib.sha256(service.encode()).digest())
    own = np.random.SeedSequence([seed, digest])
    return [np.random.PCG64(each) for each in (own.spawn(streams) if streams > 1 else [own])]


def replay(
    service: ModelledService,
    script: Script,
    arrivals: Arrivals,
    routing: Routing,
    until: Until,
    loop: Loop,
    *,
    seed: int,
    retry: bool = True,
    size: int = PIECE,
    on_piece: Callable[[int], bool] | None = None,
    on_answers: Callable[[NDArray[np.int64], NDArray[np.int64]], None] | None = None,
) -> Outcome:
    """Replay one service with its events; seed and name begin the random numbers.

    A request that a failure hits is sent to another instance, once, if `retry` says so. The size of
    pieces says nothing about the result. `on_piece` gets the number of requests that arrived since
    its last call, and True ends the run; `on_answers` gets tags and ends as requests are begun.
    """
    expected = max(until.expected(service.rate), 1)
    horizon = until.ns or round(expected * 10**9 / service.rate) if service.rate else 1
    tally = Tally(service.limit_ns, horizon, _needed(service, script, arrivals))
    coming, drawn = draws_of(seed, service.name)
    run = _Run(script, routing, loop, retry, tally, min(size, expected), drawn, on_answers)
    if service.rate:
        random = np.random.Generator(coming)
        pieces = arrivals.pieces(service.name, service.rate, random, min(size, expected))
        for piece in _within(pieces, RateClock(script.rates), until, run, service):
            run.feed(piece)
            if on_piece is not None and on_piece(len(piece)):
                break
    run.finish()
    return Outcome(run.tally, run.state, run.now, run.retried)


def _needed(service: ModelledService, script: Script, arrivals: Arrivals) -> int:
    """How many requests tell; of a trace, or of what events do, the run itself is all there is."""
    if isinstance(arrivals, EachItsOwn):
        arrivals = arrivals.own.get(service.name, arrivals.others)
    load = service.load
    if load is None or script.marks or isinstance(arrivals, Replay):
        return 0
    return requests_needed(load, sum(one.weight > 0 for one in script.stations))


def _within(
    pieces: Iterator[NDArray[np.int64]],
    clock: RateClock,
    until: Until,
    run: _Run,
    service: ModelledService,
) -> Iterator[NDArray[np.int64]]:
    """Cut the arrivals off where the run ends."""
    end = NEVER if until.ns is None else until.ns
    left = NEVER if until.requests is None else until.requests
    for piece in pieces:
        times = clock(piece)[:left]
        left -= len(times)
        while len(times) and times[-1] >= end:
            cut = int(np.searchsorted(times, end))
            yield times[:cut]
            times = times[cut:]
            verdict = run.tally.verdict(service.late_share)
            if until.requests is None or end >= NEVER or verdict != Verdict.UNDECIDED:
                return
            end = min(2 * end, NEVER)
        yield times
        if left <= 0:
            return


class _Run:
    """A service under way."""

    def __init__(
        self,
        script: Script,
        routing: Routing,
        loop: Loop,
        retry: bool,
        tally: Tally,
        piece: int,
        raw: np.random.PCG64,
        on_answers: Callable[[NDArray[np.int64], NDArray[np.int64]], None] | None,
    ) -> None:
        self.tally, self.now, self.retried = tally, 0, 0
        self._loop, self._routing, self._retry = loop, routing, retry
        self._raw, self._on_answers = raw, on_answers
        self._policy = routing.policy_for(len(script.stations))
        self._own = [station.weight for station in script.stations]
        self._factors = [Fraction(int(there)) for there in script.present]
        self._down = [0] * len(script.stations)
        self._actions = list(reversed(script.actions))
        # What a failure may still undo stays in the log: as many requests as can be under way.
        slots = sum(one.processes * len(one.fill_ns) for one in script.stations)
        self.state = new_state(script.stations, np.zeros_like(self._down), piece + 2 * slots)
        self._weigh()

    def feed(self, times: NDArray[np.int64]) -> None:
        """Let requests arrive, and what is due before them happen."""
        while self._actions and len(times) and times[-1] >= self._actions[-1].at:
            cut = int(np.searchsorted(times, self._actions[-1].at))
            self._act(times[:cut])
            times = times[cut:]
        self._work(times, 0)

    def finish(self) -> None:
        """Let everything happen that is still to come."""
        while self._actions:
            self._act(_NONE)
        self._work(_NONE, NEVER)

    def _work(self, times: NDArray[np.int64], until: int, tags: NDArray[np.int64] = _NONE) -> None:
        if len(times):
            self.now = max(self.now, int(times[-1]))
        if not self._open:
            self._lose(tags if len(tags) else 2 * times)
            times = tags = _NONE
        self.state = state = with_room(self.state, len(times))
        first, second = self._drawn(len(times))
        done = 0
        while len(self._own):
            done += self._loop(
                state, self._policy, times[done:], tags[done:], first[done:], second[done:], until
            )
            self._count()
            if done == len(times) and not (state.counts[UNDER_WAY] and state.ends[0] < until):
                return

    def _drawn(self, requests: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        draws = self._routing.draws if self._policy and self._open else 0
        if not draws:
            return _NO_STATION, _NO_STATION
        found = self._alias.pick(self._raw.random_raw(draws * requests))
        if draws == 1:
            return found, _NO_STATION
        return found[::2].copy(), found[1::2].copy()

    def _count(self) -> None:
        """Take what ended from the log; what a failure may still undo stays there."""
        sure = next((one.at for one in reversed(self._actions) if one.kind == "fail"), NEVER)
        tags, ends = finished(self.state, sure)
        clocks = tags >> 1
        self.tally.add(clocks, ends - clocks)
        if len(ends):
            self.now = max(self.now, int(ends.max()))
        if self._on_answers is not None:
            self._on_answers(tags, ends)

    def _act(self, times: NDArray[np.int64]) -> None:
        """Let the last requests before the next action arrive, and it happen."""
        action = self._actions[-1]
        # it still stands among the actions: what it undoes must stay in the log until it has
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
                hit.append(lose(self.state, station, action.at))
        self._weigh()
        if hit:
            self._resend(np.concatenate(hit), action.at)

    def _resend(self, tags: NDArray[np.int64], now: int) -> None:
        if len(tags):
            self.now = max(self.now, now)  # until then they were worked on
        again = tags & 1 == 1 if self._retry else np.ones(len(tags), dtype=np.bool_)
        self._lose(tags[again])
        tags = np.sort(tags[~again]) | 1
        self.retried += len(tags)
        self._work(np.full(len(tags), now, dtype=np.int64), 0, tags)

    def _lose(self, tags: NDArray[np.int64]) -> None:
        self.tally.lose(tags >> 1)

    def _weigh(self) -> None:
        """Work out the weights anew, and begin the turns from the beginning."""
        weights = [
            own * factor * (not down)
            for own, factor, down in zip(self._own, self._factors, self._down, strict=True)
        ]
        self.state.weight[:] = whole_weights(weights, equal=self._routing.equal)
        self.state.turns[:] = 1
        self._open = bool(self.state.weight.any())
        if self._open:
            self._alias = Alias(self.state.weight)
