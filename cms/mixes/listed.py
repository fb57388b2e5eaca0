"""All mixes of a block, where they are not too many: none is searched for, each is looked at.

What a mix is worth is bounded from above in 64 bits: frames are rounded down, what jobs pay up.
Those whose bound is above what is asked for are told, the likeliest first; whoever asks evaluates
them in exact arithmetic. So no mix that is worth more is ever missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..values.numbers import common_step
from .offers import Choice, Offer, Pick

Whole = NDArray[np.int64]
Places = NDArray[np.intp]

#: Bits of frames, and of the greatest share of a job; together they stay within 62.
_FRAME, _SHARE = 33, 29
#: A product of the two, and the most that bounds of worths may reach.
_PRODUCT, _WORTH = 2**62, 2**60
#: Frames of fewer parts are too rough.
_ROUGH = 2**9
#: Steps that may count higher are not counted here, and heights are at most so many.
_LARGEST_COUNT = 2**28
#: A mix of other choices than those that are offered.
_NEVER = -(2**62)
#: Steps of which the counts are kept.
_KEPT = 200


class Likely(NamedTuple):
    """A mix that may be worth more than what was asked for.

    Attributes
    ----------
    picks : tuple of Pick
        Of the offers that were given.
    most : Fraction
        It is worth no more.
    """

    picks: tuple[Pick, ...]
    most: Fraction


class _Turns(NamedTuple):
    """The mixes that have some job, each with its choice, frame and share of the demand."""

    mixes: Places
    choices: Places
    frames: Whole
    shares: Whole  # rounded up, of 2**_SHARE for the greatest
    greatest: Fraction  # share


class ListedMixes:
    """The admitted mixes of some offers, whatever these pay.

    Parameters
    ----------
    offers : sequence of Offer
        Each with a choice; neither functions nor charges count.
    most_jobs : int or None
        Of one mix.
    most : int
        Mixes.

    Raises
    ------
    TooMany
        If there are more than ``most``, or they are too far apart in length.

    Examples
    --------
    >>> from .functions import PriceFunction
    >>> def offer(job: str, *points: tuple[int, int]) -> Offer:
    ...     choices = [Choice(Fraction(a), Fraction(l), Fraction(20 - l)) for a, l in points]
    ...     return Offer(job, Fraction(1), PriceFunction(1), tuple(choices))
    >>> offers = [offer("x", (1, 4), (8, 9)), offer("y", (6, 6))]
    >>> listed = ListedMixes(offers, None, 10)
    >>> [str(likely.most) for likely in listed.likely(offers, Fraction(3, 4))]
    ['1', '1', '1']
    """

    def __init__(self, offers: Sequence[Offer], most_jobs: int | None, most: int) -> None:
        self._offers = offers
        self._places = {offer.job: j for j, offer in enumerate(offers)}
        self._amounts = [
            {choice.amount: c for c, choice in enumerate(offer.choices)} for offer in offers
        ]
        self._most_jobs = min(most_jobs or len(offers), len(offers))
        every = [choice for offer in offers for choice in offer.choices]
        finest = Fraction(2**_FRAME) / max(choice.longest for choice in every)
        parts = lcm(*(choice.length.denominator for choice in every))
        #: Whether lengths are whole on the grid of frames.
        self._whole = parts <= finest
        self._grid = finest // parts * parts if self._whole else finest
        self._lengths = [floor(choice.length * self._grid) for choice in every]
        self._longest = [floor(choice.longest * self._grid) for choice in every]
        if min(self._lengths) < _ROUGH:
            raise TooMany
        self._job_of = np.repeat(np.arange(len(offers)), [len(offer.choices) for offer in offers])
        self._first = np.searchsorted(self._job_of, np.arange(len(offers) + 1))
        #: Of mixes of 1, 2, ... jobs: their choices, of all jobs' one after the other.
        self._picks: list[Places] = []
        frames: list[Whole] = []
        for picks, own in self._levels(most):
            self._picks.append(picks)
            frames.append(own)
        self._sizes = np.cumsum([0, *map(len, frames)])
        self._turns = self._by_job(np.concatenate(frames))
        self._counts: dict[tuple[int, Fraction], Whole] = {}

    def __len__(self) -> int:
        return int(self._sizes[-1])

    # -- all mixes ---------------------------------------------------------------------------------

    def _levels(self, most: int) -> Iterator[tuple[Places, Whole]]:
        """Iterate over the mixes of one job, of two, ...: choices and frames, by their last job."""
        lengths, longest = _integers(self._lengths), _integers(self._longest)
        picks = np.zeros((1, 0), dtype=np.intp)
        frames, room, last = np.zeros(1, np.int64), np.full(1, 2**_FRAME), np.full(1, -1)
        for _ in range(self._most_jobs):
            grown: list[tuple[Places, Whole, Whole]] = []
            for j in range(len(self._offers)):
                end, own = np.searchsorted(last, j), slice(*self._first[j : j + 2])
                longer = frames[:end, None] + lengths[own]
                allowed = np.minimum(room[:end, None], longest[own])
                before, choice = np.nonzero(longer <= allowed)
                more = np.column_stack((picks[before], choice + own.start))
                part = more, longer[before, choice], allowed[before, choice]
                part = part if self._whole else self._admitted(*part)
                grown.append(part)
                most -= len(part[0])
                if most < 0:
                    raise TooMany
            picks, frames, room = (np.concatenate(each) for each in zip(*grown, strict=True))
            last = self._job_of[picks[:, -1]]
            yield picks, frames

    def _admitted(self, picks: Places, frames: Whole, room: Whole) -> tuple[Places, Whole, Whole]:
        """Leave out those of which only the rounded frame is admitted: by less than one a job."""
        kept = np.ones(len(picks), dtype=np.bool_)
        for at in np.flatnonzero(frames + picks.shape[1] > room).tolist():
            chosen = [self._choice(pick) for pick in picks[at].tolist()]
            kept[at] = sum(c.length for c in chosen) <= min(c.longest for c in chosen)
        return picks[kept], frames[kept], room[kept]

    def _choice(self, pick: int) -> Choice:
        j = self._job_of[pick]
        return self._offers[j].choices[pick - self._first[j]]

    def _by_job(self, frames: Whole) -> list[_Turns]:
        picks = np.concatenate([level.ravel() for level in self._picks])
        mixes = np.concatenate(
            [
                np.repeat(np.arange(start, start + len(level)), level.shape[1])
                for start, level in zip(self._sizes.tolist(), self._picks, strict=False)
            ]
        )
        order = np.argsort(self._job_of[picks], kind="stable")
        ends = np.searchsorted(self._job_of[picks[order]], np.arange(len(self._offers) + 1))
        found = []
        for j, offer in enumerate(self._offers):
            own = order[ends[j] : ends[j + 1]]
            turns = mixes[own], picks[own] - self._first[j], frames[mixes[own]]
            found.append(_Turns(*turns, *self._shares(offer, *turns[1:])))
        return found

    def _shares(self, offer: Offer, choices: Places, frames: Whole) -> tuple[Whole, Fraction]:
        """Return which part of a job's demand each mix serves, and the greatest that one can."""
        if not offer.demand:
            return np.zeros(len(choices), dtype=np.int64), Fraction(0)
        alone = max(choice.amount / choice.length for choice in offer.choices)
        greatest = min(Fraction(1), alone / offer.demand)
        parts = self._grid * 2**_SHARE / (offer.demand * greatest)
        # What is cut off is more than all of the demand, in the longest frame.
        whole = _integers([min(ceil(c.amount * parts), _PRODUCT) for c in offer.choices])
        return np.minimum(-(-whole[choices] // frames), 2**_SHARE), greatest

    # -- what they are worth -----------------------------------------------------------------------

    def likely(self, offers: Sequence[Offer], above: Fraction) -> Iterator[Likely] | None:
        """Iterate over all mixes that may be worth more than ``above``, the likeliest first.

        Parameters
        ----------
        offers : sequence of Offer
            Of jobs among those listed, with choices among theirs; mixes have no others.
        above : Fraction
            >= 0.

        Returns
        -------
        iterator of Likely, or None
            None where what is offered is not bounded in 64 bits.
        """
        most = [self._most(offer) for offer in offers]
        total = self._most_jobs * max(most, default=Fraction(0))
        if above >= total:
            return iter(())
        value = Fraction(_WORTH) / total
        numbers = [charge for offer in offers for charge in _charges(offer)]
        numbers += [height for offer in offers for _, height in offer.function.steps]
        parts = lcm(above.denominator, *(number.denominator for number in numbers))
        if parts <= value:  # worths that come in steps are told apart by a step
            value = value // parts * parts
        worth = np.zeros(len(self), dtype=np.int64)
        for offer in offers:
            paid = self._paid(offer, value)
            if paid is None:
                return None
            worth[self._turns[self._places[offer.job]].mixes] += paid
        for mixes in self._others(offers):
            worth[mixes] = _NEVER
        found = np.flatnonzero(worth > floor(above * value))
        found = found[np.argsort(-worth[found], kind="stable")]
        at = {self._places[offer.job]: number for number, offer in enumerate(offers)}
        return (
            Likely(self._named(mix, offers, at), int(worth[mix]) / value) for mix in found.tolist()
        )

    def _most(self, offer: Offer) -> Fraction:
        """Return what a job pays at most, or what it takes off."""
        greatest = self._turns[self._places[offer.job]].greatest * offer.demand
        charges = max((abs(charge) for charge in _charges(offer)), default=Fraction(0))
        return offer.function.worth(greatest, offer.demand) + charges

    def _paid(self, offer: Offer, value: Fraction) -> Whole | None:
        """Return what a job pays in each mix that has it, rounded up; None if it counts too high."""
        j = self._places[offer.job]
        turns, function = self._turns[j], offer.function
        paid = np.zeros(len(turns.mixes), dtype=np.int64)
        if offer.demand:
            if function.slope:
                paid += ceil(function.slope * turns.greatest * value / 2**_SHARE) * turns.shares
            for times, height in function.steps:
                counts = self._counted(j, times)
                if counts is None:
                    return None
                paid += ceil(height * value) * counts
        if any(charge for charge in _charges(offer)):
            charged = np.zeros(len(self._amounts[j]), dtype=np.int64)
            for choice in offer.choices:
                charged[self._amounts[j][choice.amount]] = ceil(choice.charge * value)
            paid += charged[turns.choices]
        return paid

    def _counted(self, j: int, times: Fraction) -> Whole | None:
        """Return what a step counts in each mix that has the job; None if that may be too high."""
        known = self._counts.get((j, times))
        if known is not None:
            return known
        turns, offer = self._turns[j], self._offers[j]
        most = ceil(times * offer.demand)
        if most > _LARGEST_COUNT:
            return None
        exact = [times * choice.amount * self._grid for choice in offer.choices]
        high = _integers([min(ceil(each), _PRODUCT) for each in exact])[turns.choices]
        low = _integers([min(floor(each), _PRODUCT) for each in exact])[turns.choices]
        frames = turns.frames if self._whole else turns.frames + self._most_jobs
        counts = np.minimum(-(-high // turns.frames), most)
        least = np.minimum(-(-low // frames), most)
        for at in np.flatnonzero(counts != least).tolist():
            frame = sum(self._choice(pick).length for pick in self._mix(int(turns.mixes[at])))
            amount = offer.choices[turns.choices[at]].amount
            counts[at] = min(ceil(times * amount / frame), most)
        if len(self._counts) >= _KEPT:
            self._counts = {}
        self._counts[j, times] = counts
        return counts

    def _others(self, offers: Sequence[Offer]) -> Iterator[Places]:
        """Iterate over mixes with what is not offered."""
        offered = {self._places[offer.job]: offer.choices for offer in offers}
        for j, (turns, amounts) in enumerate(zip(self._turns, self._amounts, strict=True)):
            choices = offered.get(j, ())
            if not choices:
                yield turns.mixes
            elif len(choices) < len(amounts):
                absent = np.ones(len(amounts), dtype=np.bool_)
                absent[[amounts[choice.amount] for choice in choices]] = False
                yield turns.mixes[absent[turns.choices]]

    def _mix(self, mix: int) -> list[int]:
        level = int(np.searchsorted(self._sizes, mix, side="right")) - 1
        picks: list[int] = self._picks[level][mix - self._sizes[level]].tolist()
        return picks

    def _named(
        self, mix: int, offers: Sequence[Offer], at: Mapping[int, int]
    ) -> tuple[Pick, ...]:
        """Return the picks of a mix among what is offered."""
        found = []
        for pick in self._mix(mix):
            j = int(self._job_of[pick])
            offer, choice = offers[at[j]], self._choice(pick)
            places = (c for c, own in enumerate(offer.choices) if own.amount == choice.amount)
            found.append(Pick(at[j], next(places)))
        return tuple(sorted(found))


class TooMany(Exception):
    """There are more mixes than are listed."""


def _charges(offer: Offer) -> Iterator[Fraction]:
    return (choice.charge for choice in offer.choices)


def _integers(numbers: Sequence[int]) -> Whole:
    return np.array(numbers, dtype=np.int64)
