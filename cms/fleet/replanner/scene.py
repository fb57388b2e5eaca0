"""A trace and the terms on which policies are tried on it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from ...errors import InvalidOption, InvalidProblem
from ...values.numbers import shown
from .forecast import Forecast, Known, RateForecast
from .rates import Rates
from .windows import Envelopes, Planner, Windows

#: At most so many moments at which plans may change: the search takes the cube of their number.
_MAX_MOMENTS = 200


@dataclass(frozen=True)
class Terms:
    """How often plans may change, how far is looked ahead, and what changes cost.

    InvalidOption if the horizon is shorter than `every_s` or 200 times as long, or a number is < 0.
    """

    every_s: Fraction = Fraction(3600)  #: from one moment at which plans may change to the next
    lead_s: Fraction = Fraction(1800)  #: what a change may take: plans are made for so much longer
    horizon_s: Fraction = Fraction(4 * 3600)  #: how far is looked ahead
    replan_cost: Fraction = Fraction(4)  #: GPU hours of a change
    restart_cost: Fraction = Fraction(1, 20)  #: GPU hours of each start of an instance
    hysteresis: Fraction = Fraction(1, 50)  #: see `decide`
    regrouped: bool = False  #: see `change_to`

    def __post_init__(self) -> None:
        if self.every_s <= 0:
            raise InvalidOption(
                f"plans may change every {shown(self.every_s)} s; expected a time > 0"
            )
        for name in ("lead_s", "replan_cost", "restart_cost", "hysteresis"):
            if (value := getattr(self, name)) < 0:
                raise InvalidOption(f"{name} is {shown(value)}; expected a number >= 0")
        if self.horizon_s < self.every_s:
            raise InvalidOption(
                f"the horizon is {shown(self.horizon_s)} s, shorter than the "
                f"{shown(self.every_s)} s from one plan to the next; expected at least as long"
            )
        _require_few(int(self.horizon_s / self.every_s), "the horizon", self.every_s)

    def steps(self, step_s: Fraction) -> int:
        """How many steps of rates there are from one moment to the next: a whole number."""
        steps = self.every_s / step_s
        if steps.denominator != 1:
            raise InvalidOption(
                f"plans may change every {shown(self.every_s)} s, and rates are there every "
                f"{shown(step_s)} s; expected a multiple of that"
            )
        return int(steps)

    def windows(self, forecast: Forecast, history: Rates, planner: Planner) -> Windows:
        """Return the windows ahead of the last moment of a history."""
        every, lead = self.steps(history.step_s), self.lead_s / history.step_s
        moments = int(self.horizon_s / self.every_s)
        courses = forecast.courses(history, moments * every + ceil(lead))
        most = Envelopes(courses, every, lead, moments)
        return Windows(most, planner, self.replan_cost, self.restart_cost)


@dataclass(frozen=True)
class Scene:
    """The part of a trace that is played, what is known before it, and the terms.

    It is played from the moment `first` on, and all before is history. InvalidProblem if a rate of
    that part is not known, or it is shorter than one change.
    """

    trace: Rates
    first: int
    planner: Planner
    terms: Terms

    def __post_init__(self) -> None:
        part = self.trace.between(self.first, self.trace.count - 1)
        if part.gaps:
            raise InvalidProblem(
                f"the trace has a gap: {part.gaps[0].said(self.trace.is_clock)}"
                f"{f', and {len(part.gaps) - 1} more' * (len(part.gaps) > 1)}; expected every rate "
                "of the part that is played"
            )
        if self.count < 1:
            raise InvalidProblem(
                f"the trace is {shown((part.count - 1) * part.step_s)} s long, shorter than the "
                f"{shown(self.terms.every_s)} s from one plan to the next"
            )
        _require_few(self.count, "the part that is played", self.terms.every_s)

    @property
    def every(self) -> int:
        """Steps of the trace from one moment at which plans may change to the next."""
        return self.terms.steps(self.trace.step_s)

    @property
    def count(self) -> int:
        """How many times `every` the part that is played lasts."""
        return (self.trace.count - 1 - self.first) // self.every

    @cached_property
    def courses(self) -> RateForecast:
        """The rates of the part that is played."""
        return Known(self.trace).courses(self.history(0), self.count * self.every)

    def history(self, moment: int) -> Rates:
        """Return what is known at a moment of the part that is played."""
        return self.trace.between(0, self.first + moment * self.every)

    def windows(self, replan_cost: Fraction = Fraction(0)) -> Windows:
        """Return the windows of the part that is played, its rates known."""
        lead = self.terms.lead_s / self.trace.step_s
        return Windows(
            Envelopes(self.courses, self.every, lead, self.count), self.planner, replan_cost
        )


def _require_few(count: int, what: str, every_s: Fraction) -> None:
    if count > _MAX_MOMENTS:
        raise InvalidOption(
            f"{what} has {count} moments at which plans may change, one every {shown(every_s)} s; "
            f"expected at most {_MAX_MOMENTS}: change plans less often, or make it shorter"
        )
