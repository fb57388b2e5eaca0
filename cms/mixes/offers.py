"""What each job offers for its points on one type of block, and what a mix is worth, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

from ..values.numbers import common_step, in_parts
from .functions import PriceFunction
from .model import Choice


class Offer(NamedTuple):
    """A job that may be part of a mix on the block, and what it pays.

    Attributes
    ----------
    job : str
    demand : Fraction
        0 makes the function worth nothing.
    function : PriceFunction
        Of the rate that the mix gives the job.
    choices : tuple of Choice
        Each of them is admitted alone: ``length <= longest``.
    """

    job: str
    demand: Fraction
    function: PriceFunction
    choices: tuple[Choice, ...]

    @property
    def kind(self) -> tuple[object, ...]:
        """All but the name: jobs of one kind may be exchanged in any mix."""
        return self[1:]

    @property
    def pays(self) -> bool:
        """Whether a mix may be worth more for having the job."""
        return bool(self.function) or any(choice.charge > 0 for choice in self.choices)


class Pick(NamedTuple):
    """The choice of one offer, both by their places."""

    offer: int
    choice: int


class _Price(NamedTuple):
    """What a choice is worth, in integers over the common denominator of :class:`ExactMixes`."""

    linear: int  # divided by the frame
    most_linear: int
    steps: tuple[tuple[int, int, int, int], ...]  # height * min(ceil(n / (m * frame)), most)
    charge: int

    def paid(self, frame: int) -> int:
        """Return what is paid for the rate in a frame, times the frame."""
        counted = 0
        for height, above, below, most in self.steps:
            counted += height * min(-(-above // (below * frame)), most)
        return min(self.linear, self.most_linear * frame) + counted * frame


class ExactMixes:
    """The worth of mixes in exact arithmetic: integers over common denominators.

    Parameters
    ----------
    offers : sequence of Offer

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> choice = Choice(amount=Fraction(8), length=third, longest=Fraction(1))
    >>> exact = ExactMixes([Offer("x", Fraction(48), PriceFunction(1), (choice,))])
    >>> exact.worth([Pick(0, 0)])
    Fraction(1, 2)
    """

    def __init__(self, offers: Sequence[Offer]) -> None:
        choices = [choice for offer in offers for choice in offer.choices]
        self._time = time = lcm(*(choice.length.denominator for choice in choices))
        self._lengths = [[in_parts(c.length, time) for c in offer.choices] for offer in offers]
        self._longest = [[floor(c.longest * time) for c in offer.choices] for offer in offers]
        values: list[Fraction] = []
        for offer in offers:
            values += [offer.function.slope, *(choice.charge for choice in offer.choices)]
            values += [height for _, height in offer.function.steps]
            values += [self._linear(offer, choice) for choice in offer.choices]
        self._unit = lcm(*(value.denominator for value in values))
        self._prices = [
            [self._price(offer, choice, steps) for choice in offer.choices]
            for offer in offers
            for steps in [self._steps(offer)]
        ]
        sloped = any(offer.function.slope and offer.demand for offer in offers)
        self._step = Fraction(0) if sloped else common_step(values)

    def _linear(self, offer: Offer, choice: Choice) -> Fraction:
        """The worth of the slope, times the frame in units of time, where less than all is met."""
        if not offer.demand:
            return Fraction(0)
        return offer.function.slope * choice.amount * self._time / offer.demand

    def _steps(self, offer: Offer) -> list[tuple[int, int, int, int]]:
        """Return each step of a job: its height, its times as two integers, the most it counts."""
        return [
            (in_parts(height, self._unit), times.numerator, times.denominator, most)
            for times, height in (offer.function.steps if offer.demand else ())
            for most in [ceil(times * offer.demand)]
        ]

    def _price(
        self, offer: Offer, choice: Choice, own: Sequence[tuple[int, int, int, int]]
    ) -> _Price:
        unit, steps = self._unit, []
        amount, parts = choice.amount.numerator * self._time, choice.amount.denominator
        for height, above, below, most in own:
            steps.append((height, above * amount, below * parts, most))
        return _Price(
            in_parts(self._linear(offer, choice), unit),
            in_parts(offer.function.slope, unit) if offer.demand else 0,
            tuple(steps),
            in_parts(choice.charge, unit),
        )

    @property
    def step(self) -> Fraction:
        """The largest number of which every worth is a whole multiple; 0 if there is none such.

        There is one where what jobs pay comes in steps alone.
        """
        return self._step

    def worth(self, picks: Iterable[Pick]) -> Fraction | None:
        """Return what a non-empty mix is worth; None if it is not admitted."""
        chosen = list(picks)
        frame = sum(self._lengths[offer][choice] for offer, choice in chosen)
        total = 0
        for offer, choice in chosen:
            if frame > self._longest[offer][choice]:
                return None
            price = self._prices[offer][choice]
            total += price.paid(frame) + price.charge * frame
        return Fraction(total, self._unit * frame)

    def most(self, pick: Pick) -> Fraction:
        """Return what a job pays for the rate of a choice alone, which is the most it does."""
        frame = self._lengths[pick.offer][pick.choice]
        return Fraction(self._prices[pick.offer][pick.choice].paid(frame), self._unit * frame)


def worth_of(turns: Iterable[tuple[Offer, Choice]]) -> Fraction:
    """Return what an admitted mix is worth: by the definition, which is slow for many of them."""
    turns = list(turns)
    frame = sum((choice.length for _, choice in turns), Fraction(0))
    worths = (
        offer.function.worth(choice.amount / frame, offer.demand) + choice.charge
        for offer, choice in turns
    )
    return sum(worths, Fraction(0))


def amounts(offers: Sequence[Offer], picks: Iterable[Pick]) -> Mapping[str, Fraction]:
    """Return the amount of each job of a mix."""
    return {offers[at].job: offers[at].choices[choice].amount for at, choice in picks}
