"""What each service can serve while a transition runs, against its floor."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from .durations import Schedule
from .model import Transition, What
from .replay import list_changes

#: From when on, in seconds, how many items per second; ascending.
Steps: TypeAlias = tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """The capacity of a service while a transition runs.

    `before`: Until the transition begins, in items per second. `steps`: The first at 0, where
    something may already have stopped; the last one lasts. `floor`: What it keeps at every moment,
    in items per second; 0 for a service that comes or goes.

    Examples
    --------
    >>> curve = Curve("chat", Fraction(30), ((Fraction(0), Fraction(20)),), Fraction(20))
    >>> curve.lowest, curve.lowest_s, curve.after
    (Fraction(20, 1), Fraction(0, 1), Fraction(20, 1))
    """

    service: str
    before: Fraction
    steps: Steps
    floor: Fraction

    @property
    def after(self) -> Fraction:
        """Capacity at the end, in items per second."""
        return self.steps[-1][1]

    @property
    def lowest(self) -> Fraction:
        """The least capacity there is at any moment, in items per second."""
        return min(self.before, *(rps for _, rps in self.steps))

    @property
    def lowest_s(self) -> Fraction:
        """When the capacity is least for the first time, in seconds."""
        least = self.lowest
        return next((when for when, rps in self.steps if rps == least), Fraction(0))

    def at(self, when: Fraction) -> Fraction:
        """Return the capacity at a moment: what begins or ends then counts already."""
        if when < 0:
            return self.before
        return self.steps[bisect_right(self.steps, when, key=lambda step: step[0]) - 1][1]


def capacity_curves(transition: Transition, schedule: Schedule) -> tuple[Curve, ...]:
    """Return what each service can serve at each moment, if all goes by a schedule.

    It is never below the floor, whatever the durations are, and ends at the target's capacity. The
    services are in the order of :func:`service_names`.
    """
    changes: dict[str, Counter[Fraction]] = {name: Counter() for name in service_names(transition)}
    for name, (removed, added) in list_changes(transition.actions).items():
        for at, rps in removed.items():  # what a switch replaces serves until it has ended
            is_switch = transition.actions[at].what is What.SWITCH
            when = schedule.end_s[at] if is_switch else schedule.begin_s[at]
            changes[name][when] -= rps  # type: ignore[assignment]
        for at, rps in added.items():
            changes[name][schedule.end_s[at]] += rps  # type: ignore[assignment]
    found = []
    for name, own in changes.items():
        before = transition.start.capacity(name)
        steps = [(Fraction(0), before + own.pop(Fraction(0), 0))]
        for when in sorted(when for when, change in own.items() if change):
            steps.append((when, steps[-1][1] + own[when]))
        floor = transition.floors.get(name)
        found.append(Curve(name, before, tuple(steps), floor.rps if floor else Fraction(0)))
    return tuple(found)


def service_names(transition: Transition) -> tuple[str, ...]:
    """Return the services of both sides: the target's in its order, then those that go."""
    both = (*transition.target.services, *transition.start.services)
    return tuple(dict.fromkeys(each.name for each in both))


def seconds_below(
    curve: Curve, rates: Sequence[tuple[Fraction, Fraction]], end: Fraction
) -> Fraction:
    """Return for how many seconds a service's capacity is below the rate asked of it.

    `rates` says from when on, in seconds, how many items per second come, ascending; of the time
    before the first one nothing is said.

    Examples
    --------
    >>> curve = Curve("chat", Fraction(30), ((Fraction(0), Fraction(20)),), Fraction(20))
    >>> rates = [(Fraction(0), Fraction(15)), (Fraction(40), Fraction(25))]
    >>> seconds_below(curve, rates, Fraction(60))
    Fraction(20, 1)
    """
    moments = sorted({when for when, _ in (*curve.steps, *rates) if 0 <= when < end} | {end})
    total, at = Fraction(0), -1
    for begin, until in pairwise(moments):
        while at + 1 < len(rates) and rates[at + 1][0] <= begin:
            at += 1
        if at >= 0 and curve.at(begin) < rates[at][1]:
            total += until - begin
    return total
