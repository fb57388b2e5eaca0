"""What each job offers for its points on one type of block, and what a mix is worth, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

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

    @property
    def largest(self) -> Fraction:
        """The most that the job pays for a rate, or that it is charged, either sign."""
        return max(
            max(self.function.worth(choice.amount / choice.length, self.demand), abs(choice.charge))
            for choice in self.choices
        )


class Pick(NamedTuple):
    """The choice of one offer, both by their places."""

    offer: int
    choice: int


def is_admitted(choices: Sequence[Choice]) -> bool:
    """Whether choices of different jobs keep all their limits in one mix."""
    frame = sum((choice.length for choice in choices), Fraction(0))
    return all(frame <= choice.longest for choice in choices)


def worth_of(turns: Iterable[tuple[Offer, Choice]]) -> Fraction:
    """Return what an admitted mix is worth, by the definition.

    Examples
    --------
    >>> choice = Choice(amount=Fraction(8), length=Fraction(1, 3), longest=Fraction(1))
    >>> worth_of([(Offer("x", Fraction(48), PriceFunction(1), (choice,)), choice)])
    Fraction(1, 2)
    """
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
