"""What each job offers for its points on one type of block, and what a mix is worth, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from .functions import PriceFunction
from .model import Choice


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
    frame = sum((choice.length for choice in choices), Fraction(0))
    return all(frame <= choice.longest for choice in choices)


def worth_of(turns: Sequence[tuple[Offer, Choice]]) -> Fraction:
    """Compute what an admitted mix is worth, by the definition."""
    frame = sum((choice.length for _, choice in turns), Fraction(0))
    worths = (
        offer.function.worth(choice.amount / frame, offer.demand) + offer.charge
        for offer, choice in turns
    )
    return sum(worths, Fraction(0))


def amounts(offers: Sequence[Offer], picks: Iterable[Pick]) -> Mapping[str, Fraction]:
    """Return the amount of each job of a mix."""
    return {offers[at].job: offers[at].choices[choice].amount for at, choice in picks}
