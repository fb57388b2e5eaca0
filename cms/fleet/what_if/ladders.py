"""The states that relaxing one number of a service leads through, from one breakpoint to the next.

Between two breakpoints nothing changes: not what a demand needs, not what an instance counts for.
So a ladder never tries numbers for their own sake, and its answers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd

from ...problem.row import Row
from ..serving.latency_rule import Breakpoint
from ..serving.operating_point import OperatingPoint
from ..serving.service import Service
from .posing import Posing

#: What a queueing rule may have: the next looser limit at which a point counts for more, if any is.
NextLimit = Callable[[Service, OperatingPoint], Breakpoint | None]


@dataclass(frozen=True, slots=True)
class Ladder:
    """One number of a service, from what it is to its loosest: beyond it nothing changes.

    What serves in one state serves in all later ones. `at`: the service with this number.
    `following`: the first state after one that is not its like; beyond the end, anything.
    `between`: a state beyond the first, not its like, and before the second; None if none is.
    `first_after`: the number from which on all is as in the first state after one.
    """

    posing: Posing
    service: Service
    now: Fraction
    end: Fraction
    at: Callable[[Fraction], Service]
    following: Callable[[Fraction], Fraction]
    between: Callable[[Fraction, Fraction], Fraction | None]
    first_after: Callable[[Fraction], Breakpoint]
    _rows: dict[Fraction, Row] = field(default_factory=dict)

    def row(self, state: Fraction) -> Row:
        """Return the service's demand and supply in a state."""
        if state not in self._rows:
            self._rows[state] = self.posing.row(self.at(state))
        return self._rows[state]

    def serves(self, state: Fraction, blocks: Sequence[int]) -> bool:
        """Whether these numbers of blocks serve the service in a state."""
        row = self.row(state)
        return sum(n * gives for n, gives in zip(blocks, row.supply, strict=True)) >= row.demand


def rate_ladder(posing: Posing, service: Service) -> Ladder:
    """Lower a rate, down to 0: the sums that blocks can add up to are multiples of one number."""
    row, now, end = posing.row(service), service.rate_rps, Fraction(0)
    step = gcd(*row.supply) * now / row.demand if row.demand else end  # of the rate asked for

    def following(state: Fraction) -> Fraction:
        return step * (-(-state // step) - 1) if step else end

    def between(low: Fraction, high: Fraction) -> Fraction | None:
        if not step:
            return None
        first, last = -(-low // step) - 1, high // step
        return step * ((first + last + 1) // 2) if first > last else None

    return Ladder(
        posing, service, now, end, lambda rate: replace(service, rate_rps=rate), following, between,
        lambda state: Breakpoint(following(state)),
    )  # fmt: skip


def limit_ladder(posing: Posing, service: Service, next_limit: NextLimit) -> Ladder:
    """Loosen a latency limit, up to where no point counts for more any more."""
    now = end = service.latency_limit_ms or Fraction(0)
    points = [point for own in posing.candidates(service).values() for point in own]

    def at(limit: Fraction) -> Service:
        return replace(service, latency_limit_ms=limit)

    def breakpoints(state: Fraction) -> list[Breakpoint]:  # the next one of each point, ascending
        found = (next_limit(at(state), point) for point in points)
        return sorted({each for each in found if each is not None})

    while breakpoints(end):
        end *= 2

    def following(state: Fraction) -> Fraction:
        there = breakpoints(state)
        return _reached(there) if there else 2 * end

    def between(low: Fraction, high: Fraction) -> Fraction | None:
        first = following(low)
        if first >= high or ladder.row(first) == ladder.row(high):
            return None
        return max(first, (low + high) / 2)

    ladder = Ladder(
        posing, service, now, end, at, following, between, lambda state: breakpoints(state)[0]
    )
    return ladder


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
