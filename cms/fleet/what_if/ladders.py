"""The states that relaxing one number of a service leads through, from one breakpoint to the next.

Between two breakpoints nothing changes: not what a demand needs, not what an instance counts for.
So a ladder never tries numbers for their own sake, and its answers are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd
from typing import Protocol, runtime_checkable

from ...problem.row import Row
from ..serving.latency_rule import Breakpoint
from ..serving.operating_point import OperatingPoint
from ..serving.service import Service
from .posing import Posing


@runtime_checkable
class SteppedRule(Protocol):
    """A queueing rule that says at which limits its supplies change."""

    def next_limit(self, service: Service, point: OperatingPoint) -> Breakpoint | None:
        """Return the next looser limit at which a point counts for more; None if none is."""
        ...


class Ladder(ABC):
    """One number of a service, from what it is to its loosest: beyond it nothing changes.

    What serves in one state serves in all later ones.
    """

    def __init__(self, posing: Posing, service: Service) -> None:
        self.posing, self.service = posing, service
        self.now = self.end = Fraction(0)
        self._rows: dict[Fraction, Row] = {}

    @abstractmethod
    def at(self, state: Fraction) -> Service:
        """Return the service with this number."""

    @abstractmethod
    def following(self, state: Fraction) -> Fraction:
        """Return the first state after one that is not its like; beyond the end, anything."""

    @abstractmethod
    def between(self, low: Fraction, high: Fraction) -> Fraction | None:
        """Return a state beyond ``low``, not its like, and before ``high``; None if none is."""

    def first_after(self, state: Fraction) -> Breakpoint:
        """Return the number from which on all is as in the first state after one."""
        return Breakpoint(self.following(state))

    def row(self, state: Fraction) -> Row:
        """Return the service's demand and supply in a state."""
        if state not in self._rows:
            self._rows[state] = self.posing.row(self.at(state))
        return self._rows[state]

    def serves(self, state: Fraction, blocks: Sequence[int]) -> bool:
        """Whether these numbers of blocks serve the service in a state."""
        row = self.row(state)
        return sum(n * gives for n, gives in zip(blocks, row.supply, strict=True)) >= row.demand


class RateLadder(Ladder):
    """Lower rates, down to 0: the sums that blocks can add up to are multiples of one number."""

    def __init__(self, posing: Posing, service: Service) -> None:
        super().__init__(posing, service)
        row = posing.row(service)
        self.now = service.rate_rps
        share = self.now / row.demand if row.demand else Fraction(0)
        #: Whole multiples of this are all that blocks can add up to, as a rate that is asked for.
        self._step = gcd(*row.supply) * share

    def at(self, state: Fraction) -> Service:
        """Return the service at this rate."""
        return replace(self.service, rate_rps=state)

    def following(self, state: Fraction) -> Fraction:
        """Return the next lower sum of blocks, as a rate."""
        return self._step * (-(-state // self._step) - 1) if self._step else self.end

    def between(self, low: Fraction, high: Fraction) -> Fraction | None:
        """Return a sum of blocks in the middle."""
        if not self._step:
            return None
        first, last = -(-low // self._step) - 1, high // self._step
        return self._step * ((first + last + 1) // 2) if first > last else None


class LimitLadder(Ladder):
    """Looser latency limits, up to where no point counts for more any more."""

    def __init__(self, posing: Posing, service: Service, rule: SteppedRule) -> None:
        super().__init__(posing, service)
        assert service.latency_limit_ms is not None
        self._rule = rule
        self._points = [point for own in posing.candidates(service).values() for point in own]
        self.now = self.end = service.latency_limit_ms
        while self._breakpoints(self.end):
            self.end *= 2

    def at(self, state: Fraction) -> Service:
        """Return the service with this limit."""
        return replace(self.service, latency_limit_ms=state)

    def following(self, state: Fraction) -> Fraction:
        """Return a limit that the next breakpoint admits, and no later one does."""
        there = self._breakpoints(state)
        return _reached(there) if there else 2 * self.end

    def between(self, low: Fraction, high: Fraction) -> Fraction | None:
        """Return a limit in the middle, if there is a breakpoint before ``high``."""
        first = self.following(low)
        if first >= high or self.row(first) == self.row(high):
            return None
        middle = (low + high) / 2
        return middle if middle > first else first

    def first_after(self, state: Fraction) -> Breakpoint:
        """Return the next breakpoint itself."""
        return self._breakpoints(state)[0]

    def _breakpoints(self, state: Fraction) -> list[Breakpoint]:
        """The next one of each point, ascending."""
        service = self.at(state)
        found = (self._rule.next_limit(service, point) for point in self._points)
        return sorted({each for each in found if each is not None})


def _reached(there: Sequence[Breakpoint]) -> Fraction:
    """Return a limit that the first breakpoint admits and that no later one does, a short one."""
    first, above = there[0]
    if not above:
        return first
    later = min((each.limit_ms for each in there if each.limit_ms > first), default=first + 1)
    parts = 1
    while not first < (limit := Fraction(first * parts // 1 + 1, parts)) <= later:
        parts *= 10
    return limit


def find_last(
    ladder: Ladder, low: Fraction, high: Fraction, holds: Callable[[Fraction], bool]
) -> tuple[Fraction, Fraction]:
    """Return the last state in which something holds, and the first in which it does not.

    It holds at ``low`` and not at ``high``, nor beyond any state in which it does not.
    """
    while (middle := ladder.between(low, high)) is not None:
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high
