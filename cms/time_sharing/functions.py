"""Price functions: what a job pays for the rate that a mix gives it, and what a mix is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from ..errors import InvalidCertificate
from ..values.numbers import Number, exact, json_number, shown_object
from .model import Choice

#: Steps of one function: each is a number for every point of a job when a certificate is checked.
LARGEST_STEPS = 1_000


class Step(NamedTuple):
    """The term ``height * ceil(times * rate)`` of a price function."""

    times: Fraction
    height: Fraction


@dataclass(frozen=True, slots=True, init=False)
class PriceFunction:
    """What a job with the demand d pays for a rate r: slope x/d + sum of height ceil(times x).

    Here x is the smaller of r and d: no job pays for more than its demand.

    Parameters
    ----------
    slope : number, default 0
        What the whole demand is worth but for the steps, >= 0.
    steps : iterable of (times, height), optional
        Chvatal-Gomory cuts of the job's row: ``times`` > 0, ``height`` >= 0. At most 1,000.
        The attribute has them by rising ``times``, each once, none of height 0.

    Raises
    ------
    InvalidCertificate
        If a number is none, or negative, or a ``times`` is 0, or there are too many steps.

    Notes
    -----
    Every term is 0 for the rate 0, non-decreasing and subadditive. So what the mixes of a schedule
    give a job is worth at least what its demand is worth.

    Examples
    --------
    >>> function = PriceFunction(1, [("1/4", "1/2")])
    >>> [str(function.worth(Fraction(rate), demand=Fraction(8))) for rate in (0, 2, 6, 8, 9)]
    ['0', '3/4', '7/4', '2', '2']
    """

    slope: Fraction
    steps: tuple[Step, ...]

    def __init__(self, slope: Number = 0, steps: Iterable[tuple[Number, Number]] = ()) -> None:
        number = exact(slope, "slope of a price function", error=InvalidCertificate)
        object.__setattr__(self, "slope", number)
        heights: dict[Fraction, Fraction] = {}
        for times, height in _pairs(steps):
            heights[times] = heights.get(times, Fraction(0)) + height
        what = "the sum of the heights of a price function's steps of one width"
        for height in heights.values():
            exact(height, what, error=InvalidCertificate)
        rising = sorted((times, height) for times, height in heights.items() if height)
        object.__setattr__(self, "steps", tuple(Step(*step) for step in rising))

    def __bool__(self) -> bool:
        return bool(self.slope or self.steps)

    def worth(self, rate: Fraction, demand: Fraction) -> Fraction:
        """Compute what a rate is worth to a job with this demand, both >= 0; 0 for no demand."""
        if not demand:
            return Fraction(0)
        counted = min(rate, demand)
        value = self.slope * counted / demand
        return value + sum(height * ceil(times * counted) for times, height in self.steps)

    def scaled(self, factor: Fraction) -> PriceFunction:
        """Build the function that is worth ``factor`` >= 0 times as much."""
        steps = [(times, factor * height) for times, height in self.steps]
        return PriceFunction(factor * self.slope, steps)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"slope": number, "steps": [[times, height], ...]}``."""
        steps = [[json_number(times), json_number(height)] for times, height in self.steps]
        return {"slope": json_number(self.slope), "steps": steps}


def functions_table(given: Mapping[str, Any] | None) -> dict[str, PriceFunction]:
    """Check a table of price functions by job; those that are 0 are left out."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidCertificate(
            f"the price functions are {shown_object(given)}; expected a mapping of jobs to "
            "PriceFunction"
        )
    for job, function in (given or {}).items():
        if type(function) is not PriceFunction:
            raise InvalidCertificate(
                f"the price function of job {shown_object(job)} is {shown_object(function)}; "
                "expected a PriceFunction"
            )
    return {job: function for job, function in (given or {}).items() if function}


def _pairs(steps: object) -> Iterator[tuple[Fraction, Fraction]]:
    listed = _listed(steps, "steps of a price function", "a list of pairs (times, height)")
    if len(listed) > LARGEST_STEPS:
        raise InvalidCertificate(
            f"a price function has {len(listed)} steps; expected {LARGEST_STEPS} at most"
        )
    for pair in listed:
        step = _listed(pair, "a step of a price function", "a pair (times, height)")
        if len(step) != 2:
            raise InvalidCertificate(
                f"a step of a price function is {shown_object(pair)}; expected a pair (times, "
                "height)"
            )
        times = exact(step[0], "times of a price function's step", error=InvalidCertificate)
        if not times:
            raise InvalidCertificate("times of a price function's step is 0; expected a number > 0")
        height = exact(step[1], "height of a price function's step", error=InvalidCertificate)
        yield times, height


def _listed(given: object, what: str, expected: str) -> tuple[Any, ...]:
    if isinstance(given, str | Mapping | Set) or not isinstance(given, Iterable):
        raise InvalidCertificate(f"{what} is {shown_object(given)}; expected {expected}")
    return tuple(given)


class Offer(NamedTuple):
    """A job that may be part of a mix on the block, and what it pays.

    The function is of the rate that the mix gives the job; ``charge`` is what the mix is worth
    more, or less, for having the job at all. Each choice is admitted alone.
    """

    job: str
    demand: Fraction
    function: PriceFunction
    choices: tuple[Choice, ...]
    charge: Fraction = Fraction(0)

    @property
    def kind(self) -> tuple[object, ...]:
        """All but the name: jobs of one kind may be exchanged in any mix."""
        return self[1:]

    @property
    def pays(self) -> bool:
        """Whether a mix may be worth more for having the job."""
        return bool(self.function) or self.charge > 0

    @property
    def largest(self) -> Fraction:
        """The most that the job pays for a rate, or that it is charged, either sign."""
        rate = max(choice.amount / choice.length for choice in self.choices)
        return max(self.function.worth(rate, self.demand), abs(self.charge))


class Pick(NamedTuple):
    """The choice of one offer, both by their places."""

    offer: int
    choice: int


def is_admitted(choices: Sequence[Choice]) -> bool:
    """Whether choices of different jobs keep all their limits in one mix."""
    cycle = sum((choice.length for choice in choices), Fraction(0))
    return all(cycle <= choice.longest for choice in choices)


def worth_of(turns: Sequence[tuple[Offer, Choice]]) -> Fraction:
    """Compute what an admitted mix is worth, by the definition."""
    cycle = sum((choice.length for _, choice in turns), Fraction(0))
    worths = (
        offer.function.worth(choice.amount / cycle, offer.demand) + offer.charge
        for offer, choice in turns
    )
    return sum(worths, Fraction(0))
