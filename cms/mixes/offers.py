"""What each job offers for its points on one type of block, and what a mix is worth, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor, lcm
from typing import NamedTuple

from ..problem.parts import Block
from ..values.numbers import common_step, in_parts
from .functions import PriceFunction
from .problem import TimeSharedProblem


class Choice(NamedTuple):
    """A point of a job: up to ``amount`` items for ``length``, in frames up to ``longest``.

    The rule of frames and the latency limit say no more than that: a slot of this length keeps the
    limit in frames up to some length, which is no shorter than the slot.
    """

    amount: Fraction
    length: Fraction
    longest: Fraction


class Offer(NamedTuple):
    """A job that may be part of a mix on the block, and what it pays.

    Attributes
    ----------
    job : str
    demand : Fraction
        0 makes the function worth nothing.
    function : PriceFunction
        Of the rate that the mix gives the job.
    charge : Fraction
        What a mix is worth more, or less, for having the job at all.
    choices : tuple of Choice
        Each of them is admitted alone: ``length <= longest``.
    """

    job: str
    demand: Fraction
    function: PriceFunction
    charge: Fraction
    choices: tuple[Choice, ...]

    @property
    def kind(self) -> tuple[object, ...]:
        """All but the name: jobs of one kind may be exchanged in any mix."""
        return self[1:]

    def most(self, choice: Choice) -> Fraction:
        """Return what the rate of a choice is worth in the shortest frame, that of it alone."""
        return self.function.worth(choice.amount / choice.length, self.demand)


def offers_of(
    problem: TimeSharedProblem,
    block: Block,
    functions: Mapping[str, PriceFunction],
    charges: Mapping[str, Fraction] | None = None,
    *,
    unpaid: bool = False,
) -> list[Offer]:
    """Return what the jobs of a problem offer on one type of block.

    Parameters
    ----------
    problem : TimeSharedProblem
    block : str
    functions : Mapping[str, PriceFunction]
        0 for jobs left out.
    charges : Mapping[str, Fraction], optional
        What a mix on this type of block is worth more for having a job; 0 for those left out.
    unpaid : bool, default False
        Whether jobs that have a demand but pay nothing are offered as well: no dearest mix needs
        them.

    Examples
    --------
    >>> from cms import Configuration
    >>> from .model import TimeSharedJob
    >>> jobs = [TimeSharedJob(name, 5, 20, {"a": [(2, 8), (3, 11)]}) for name in ("x", "y")]
    >>> problem = TimeSharedProblem(configurations=Configuration({"a": 1}), jobs=jobs)
    >>> for offer in offers_of(problem, "a", {"x": PriceFunction(1)}):
    ...     print(offer.job, *offer.choices[0])
    x 2 8 12
    """
    offers = []
    charges = {} if charges is None else charges
    for name, points in problem.usable_points(block).items():
        job = problem.job(name)
        function = functions.get(name, PriceFunction()) if job.demand else PriceFunction()
        charge = charges.get(name, Fraction(0))
        if not (function or charge > 0 or (unpaid and job.demand)):
            continue
        choices = tuple(
            Choice(*point, problem.rule.longest(point.length, job.limit)) for point in points
        )
        offers.append(Offer(name, job.demand, function, charge, choices))
    return offers


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


class ExactMixes:
    """The worth of mixes in exact arithmetic: integers over common denominators.

    Parameters
    ----------
    offers : sequence of Offer

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> choice = Choice(amount=Fraction(8), length=third, longest=Fraction(1))
    >>> exact = ExactMixes([Offer("x", Fraction(48), PriceFunction(1), Fraction(0), (choice,))])
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
            values += [offer.charge, offer.function.slope]
            values += [height for _, height in offer.function.steps]
            values += [self._linear(offer, choice) for choice in offer.choices]
        self._unit = lcm(*(value.denominator for value in values))
        self._prices = [[self._price(offer, c) for c in offer.choices] for offer in offers]
        sloped = any(offer.function.slope and offer.demand for offer in offers)
        self._step = Fraction(0) if sloped else common_step(values)

    def _linear(self, offer: Offer, choice: Choice) -> Fraction:
        """The worth of the slope, times the frame in units of time, where less than all is met."""
        if not offer.demand:
            return Fraction(0)
        return offer.function.slope * choice.amount * self._time / offer.demand

    def _price(self, offer: Offer, choice: Choice) -> _Price:
        unit, steps = self._unit, []
        for times, height in offer.function.steps if offer.demand else ():
            full = times * choice.amount * self._time
            most = -floor(-times * offer.demand)
            steps.append((in_parts(height, unit), full.numerator, full.denominator, most))
        return _Price(
            in_parts(self._linear(offer, choice), unit),
            in_parts(offer.function.slope, unit) if offer.demand else 0,
            tuple(steps),
            in_parts(offer.charge, unit),
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
            counted = price.charge
            for height, above, below, most in price.steps:
                counted += height * min(-(-above // (below * frame)), most)
            total += min(price.linear, price.most_linear * frame) + counted * frame
        return Fraction(total, self._unit * frame)


def amounts(offers: Sequence[Offer], picks: Iterable[Pick]) -> Mapping[str, Fraction]:
    """Return the amount of each job of a mix."""
    return {offers[at].job: offers[at].choices[choice].amount for at, choice in picks}
