"""All mixes of a block, where they are not too many: none is searched for, each is looked at.

What a mix is worth is bounded from above in 64 bits: frames are rounded down, what jobs pay up.
Those whose bound is above what is asked for are told, the likeliest first; whoever asks evaluates
them in exact arithmetic. So no mix that is worth more is ever missed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor, lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..values.numbers import in_parts
from .model import Choice
from .offers import Offer, Pick

Whole = NDArray[np.int64]
Counts = NDArray[np.int32]
Places = NDArray[np.intp]

_ONE = Fraction(1)
#: Bits of frames, and of the greatest share of a job; together they stay within 62.
_FRAME, _SHARE = 33, 29
#: A product of the two, and the most that bounds of worths may reach.
_PRODUCT, _WORTH = 2**62, 2**60
#: Frames of fewer parts are too rough.
_ROUGH = 2**9
#: Steps that may count higher are not counted here.
_LARGEST_COUNT = 2**28
#: A mix of other choices than those that are offered.
_NEVER = -(2**62)
#: Steps of which the counts are kept.
_KEPT = 100


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


class _TooManyError(Exception):
    """There are more mixes than are listed, or they are too far apart."""


class Turns(NamedTuple):
    """The mixes that have some job: arrays of its turn in each of them.

    Attributes
    ----------
    mixes, choices : arrays of int
        By their places.
    frames : array of int
        Rounded down.
    shares : array of int
        Of the demand, rounded up: parts, ``2**_SHARE`` of which make the greatest.
    greatest, greatest_rate : Fraction
    """

    mixes: Places
    choices: Places
    frames: Whole
    shares: Whole
    greatest: Fraction
    greatest_rate: Fraction


class ListedMixes:
    """The admitted mixes of some offers, whatever these pay; made by :meth:`of`.

    Attributes
    ----------
    offers : sequence of Offer
        As given.
    turns : list of Turns
        Of each offer.

    Examples
    --------
    >>> from .functions import PriceFunction
    >>> def offer(job: str, *points: tuple[int, int]) -> Offer:
    ...     choices = [Choice(Fraction(a), Fraction(l), Fraction(20 - l)) for a, l in points]
    ...     return Offer(job, Fraction(1), PriceFunction(1), tuple(choices))
    >>> offers = [offer("x", (1, 4), (8, 9)), offer("y", (6, 6))]
    >>> listed = ListedMixes.of(offers, most_jobs=None, most=10)
    >>> len(listed), [f"{float(most):.6f}" for _, most in listed.likely(offers, Fraction(3, 4))]
    (4, ['1.000000', '0.888889'])
    """

    @classmethod
    def of(cls, offers: Sequence[Offer], most_jobs: int | None, most: int) -> ListedMixes | None:
        """List the mixes of some offers.

        Parameters
        ----------
        offers : sequence of Offer
            Each with a choice; neither functions nor charges count.
        most_jobs : int or None
            Of one mix.
        most : int

        Returns
        -------
        ListedMixes or None
            None if there are no mixes, more than ``most``, or some that are too short beside
            others.
        """
        try:
            return cls(offers, most_jobs, most) if offers else None
        except _TooManyError:
            return None

    def __init__(self, offers: Sequence[Offer], most_jobs: int | None, most: int) -> None:
        self.offers = offers
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
            raise _TooManyError
        self._job_of = np.repeat(np.arange(len(offers)), [len(offer.choices) for offer in offers])
        #: Where the choices of each job begin among those of all, and where the last ones end.
        self._first = [*accumulate((len(offer.choices) for offer in offers), initial=0)]
        #: Of mixes of 1, 2, ... jobs: their choices, of all jobs' one after the other.
        self._picks: list[Places] = []
        frames: list[Whole] = []
        for picks, own in self._levels(most):
            self._picks.append(picks)
            frames.append(own)
        self._sizes = [*accumulate(map(len, frames), initial=0)]
        self.turns = self._by_job(np.concatenate(frames))
        self._counts: dict[tuple[int, int, int], Counts] = {}

    def __len__(self) -> int:
        return self._sizes[-1]

    def mix(self, number: int) -> list[Pick]:
        """Return a mix by its place among all."""
        picks = self._mix(number)
        return [Pick(j, pick - self._first[j]) for pick in picks for j in [int(self._job_of[pick])]]

    # -- all mixes ---------------------------------------------------------------------------------

    def _levels(self, most: int) -> Iterator[tuple[Places, Whole]]:
        """Iterate over the mixes of one job, of two, ...: choices and frames, by their last job."""
        lengths, longest = _integers(self._lengths), _integers(self._longest)
        picks = np.zeros((1, 0), dtype=np.intp)
        frames, room, last = np.zeros(1, np.int64), np.full(1, 2**_FRAME), np.full(1, -1)
        for _ in range(self._most_jobs):
            grown: list[tuple[Places, Whole, Whole]] = []
            for j in range(len(self.offers)):
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
                    raise _TooManyError
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
        j = int(self._job_of[pick])
        return self.offers[j].choices[pick - self._first[j]]

    def _by_job(self, frames: Whole) -> list[Turns]:
        picks = np.concatenate([level.ravel() for level in self._picks])
        mixes = np.concatenate(
            [
                np.repeat(np.arange(start, start + len(level)), level.shape[1])
                for start, level in zip(self._sizes, self._picks, strict=False)
            ]
        )
        order = np.argsort(self._job_of[picks], kind="stable")
        ends = np.searchsorted(self._job_of[picks[order]], np.arange(len(self.offers) + 1))
        found = []
        for j, offer in enumerate(self.offers):
            own = order[ends[j] : ends[j + 1]]
            turns = mixes[own], picks[own] - self._first[j], frames[mixes[own]]
            found.append(Turns(*turns, *self._shares(offer, *turns[1:])))
        return found

    def _shares(
        self, offer: Offer, choices: Places, frames: Whole
    ) -> tuple[Whole, Fraction, Fraction]:
        """Return which part of a job's demand each mix serves, and the greatest that one can."""
        if not offer.demand:
            return np.zeros(len(choices), dtype=np.int64), Fraction(0), Fraction(0)
        alone = max(choice.amount / choice.length for choice in offer.choices)
        greatest = min(Fraction(1), alone / offer.demand)
        parts = self._grid * 2**_SHARE / (offer.demand * greatest)
        # What is cut off is more than all of the demand, in the longest frame.
        whole = _integers([min(ceil(c.amount * parts), _PRODUCT) for c in offer.choices])
        shares = np.minimum(-(-whole[choices] // frames), 2**_SHARE)
        return shares, greatest, greatest * offer.demand

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
        unit = _Unit(offers, above)
        most = [self._most(offer, unit) for offer in offers]
        total = self._most_jobs * max(most, default=0)
        if unit.parts(above) >= total:
            return iter(())
        unit = unit.scaled(total)
        worth = np.zeros(len(self), dtype=np.int64)
        for offer in offers:
            paid = self._paid(offer, unit)
            if paid is None:
                return None
            worth[self.turns[self._places[offer.job]].mixes] += paid
        offered = self._offered(offers)
        for mixes in self._others(offered):
            worth[mixes] = _NEVER
        found = np.flatnonzero(worth > unit.down(above))
        found = found[np.argsort(-worth[found], kind="stable")]
        return (
            Likely(tuple(sorted(offered[pick] for pick in self._mix(mix))), unit.value(most))
            for mix, most in zip(found.tolist(), worth[found].tolist(), strict=True)
        )

    def _most(self, offer: Offer, unit: _Unit) -> int:
        """Return what a job pays at most, or what it takes off."""
        most = max(abs(unit.parts(choice.charge)) for choice in offer.choices)
        if offer.demand:
            turns, function = self.turns[self._places[offer.job]], offer.function
            share, rate = turns.greatest, turns.greatest_rate
            most += -(-unit.parts(function.slope) * share.numerator // share.denominator)
            above, below = rate.numerator, rate.denominator
            for times, height in function.steps:
                count = -(-times.numerator * above // (times.denominator * below))
                most += unit.parts(height) * count
        return most

    def _paid(self, offer: Offer, unit: _Unit) -> Whole | None:
        """Return what a job pays in each mix that has it, rounded up; None if none may say so."""
        j = self._places[offer.job]
        turns, function = self.turns[j], offer.function
        paid = np.zeros(len(turns.mixes), dtype=np.int64)
        if offer.demand:
            if function.slope:
                paid += unit.up(function.slope, turns.greatest / 2**_SHARE) * turns.shares
            for times, height in function.steps:
                counts = self._counted(j, times)
                if counts is None:
                    return None
                paid += np.int64(unit.up(height)) * counts
        if any(choice.charge for choice in offer.choices):
            charged = np.zeros(len(self._amounts[j]), dtype=np.int64)
            for choice in offer.choices:
                charged[self._amounts[j][choice.amount]] = unit.up(choice.charge)
            paid += charged[turns.choices]
        return paid

    def _counted(self, j: int, times: Fraction) -> Counts | None:
        """Return what a step counts in each mix that has the job; None if that may be too high."""
        key = j, times.numerator, times.denominator
        known = self._counts.get(key)
        if known is not None:
            return known
        turns, offer = self.turns[j], self.offers[j]
        most = ceil(times * offer.demand)
        if most > _LARGEST_COUNT:
            return None
        exact = [times * choice.amount * self._grid for choice in offer.choices]
        high = _integers([min(ceil(each), _PRODUCT) for each in exact])[turns.choices]
        low = _integers([min(floor(each), _PRODUCT) for each in exact])[turns.choices]
        frames = turns.frames if self._whole else turns.frames + self._most_jobs
        counts: Counts = np.minimum(-(-high // turns.frames), most).astype(np.int32)
        least = np.minimum(-(-low // frames), most)
        for at in np.flatnonzero(counts != least).tolist():
            picks = self.mix(int(turns.mixes[at]))
            frame = sum(self.offers[i].choices[c].length for i, c in picks)
            amount = offer.choices[turns.choices[at]].amount
            counts[at] = min(ceil(times * amount / frame), most)
        if len(self._counts) >= _KEPT:
            self._counts = {}
        self._counts[key] = counts
        return counts

    def _offered(self, offers: Sequence[Offer]) -> dict[int, Pick]:
        """Return which of all choices are offered, and where."""
        found = {}
        for number, offer in enumerate(offers):
            j = self._places[offer.job]
            first, amounts = self._first[j], self._amounts[j]
            every = len(offer.choices) == len(amounts)
            for c, choice in enumerate(offer.choices):
                found[first + (c if every else amounts[choice.amount])] = Pick(number, c)
        return found

    def _others(self, offered: Collection[int]) -> Iterator[Places]:
        """Iterate over mixes with what is not offered."""
        absent = np.ones(len(self._job_of), dtype=np.bool_)
        absent[list(offered)] = False
        for turns, first, end in zip(self.turns, self._first, self._first[1:], strict=False):
            own = absent[first:end]
            if own.any():
                yield turns.mixes[own[turns.choices]]

    def _mix(self, mix: int) -> list[int]:
        level = bisect_right(self._sizes, mix) - 1
        picks: list[int] = self._picks[level][mix - self._sizes[level]].tolist()
        return picks


class _Unit:
    """Numbers as integers: whole parts of one, and 64 bits rounded."""

    def __init__(self, offers: Sequence[Offer], above: Fraction) -> None:
        denominators = {above.denominator}
        for offer in offers:
            denominators.add(offer.function.slope.denominator)
            denominators.update(height.denominator for _, height in offer.function.steps)
            denominators.update(choice.charge.denominator for choice in offer.choices)
        self._parts = lcm(*denominators)
        self._times, self._through = 1, 1

    def scaled(self, total: int) -> _Unit:
        """Return the unit in which so many parts come near what 64 bits hold."""
        found = copy(self)
        # Where parts are that large, each is told apart.
        found._times, found._through = (_WORTH // total, 1) if total <= _WORTH else (_WORTH, total)
        return found

    def parts(self, number: Fraction) -> int:
        """Return how many parts a number is."""
        return in_parts(number, self._parts)

    def up(self, number: Fraction, times: Fraction = _ONE) -> int:
        """Return a number, or its product with another one, rounded up."""
        whole = self.parts(number) * self._times * times.numerator
        return -(-whole // (self._through * times.denominator))

    def down(self, number: Fraction) -> int:
        """Return a number rounded down."""
        return self.parts(number) * self._times // self._through

    def value(self, number: int) -> Fraction:
        """Return what an integer stands for."""
        return Fraction(number * self._through, self._times * self._parts)


def _integers(numbers: Sequence[int]) -> Whole:
    return np.array(numbers, dtype=np.int64)
