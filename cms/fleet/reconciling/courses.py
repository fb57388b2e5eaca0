"""Rates from now on, foreseen or known, and their highest values over parts of the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from ...errors import InvalidProblem
from ...values.frozen import FrozenMap


@dataclass(frozen=True)
class Courses:
    """Rates at even steps; between two of them a rate goes straight from one to the other.

    Parameters
    ----------
    step_s : Fraction
    rates_rps : Mapping[str, tuple of Fraction]
        Items per second of each service now, a step from now, two steps from now, ...

    Examples
    --------
    >>> courses = Courses(Fraction(60), {"chat": (Fraction(4), Fraction(8), Fraction(2))})
    >>> courses.highest("chat", Fraction(0), Fraction(1, 2)), courses.at("chat", Fraction(3, 2))
    (Fraction(6, 1), Fraction(5, 1))
    """

    step_s: Fraction
    rates_rps: Mapping[str, tuple[Fraction, ...]]

    def __post_init__(self) -> None:
        if len({len(own) for own in self.rates_rps.values()}) != 1:
            raise InvalidProblem("courses are of one or more services and of one length")
        object.__setattr__(self, "rates_rps", FrozenMap(self.rates_rps))

    @property
    def steps(self) -> int:
        """How many steps they last."""
        return len(next(iter(self.rates_rps.values()))) - 1

    def at(self, service: str, step: Fraction) -> Fraction:
        """Return the rate so many steps from now; beyond the last one, the last."""
        own = self.rates_rps[service]
        before = min(floor(step), self.steps)
        after = min(before + 1, self.steps)
        return own[before] + (step - before) * (own[after] - own[before])

    def highest(self, service: str, first: Fraction, last: Fraction) -> Fraction:
        """Return the highest rate from one step to another; beyond the end there is nothing."""
        first, last = (min(each, Fraction(self.steps)) for each in (first, last))
        inner = self.rates_rps[service][ceil(first) : floor(last) + 1]
        return max(self.at(service, first), self.at(service, last), *inner)
