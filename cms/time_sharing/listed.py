"""All mixes of a block, where they are not too many: none is searched for, each is looked at.

What a mix is worth is bounded from above in 64 bits: cycles are rounded down, what jobs pay up.
Those whose bound is as much as what is asked for are told, the likeliest first; whoever asks
evaluates them in exact arithmetic. So no mix that is worth more is ever missed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .functions import Offer, Pick, is_admitted
from .relaxation import Whole, integers

Places = NDArray[np.intp]

#: Bits of cycles, and of the greatest share of a job.
_FRAME, _SHARE = 33, 28
#: DutyCycles of fewer parts are too rough, and steps that may count higher are not counted here.
_ROUGH, _LARGEST_COUNT = 2**9, 2**28
#: No product and no sum is larger than this, and what has less is of no mix that is offered.
_MOST, _NEVER = 2**62, -(2**62)


class _TooManyError(Exception):
    """There are more mixes than are listed, or they are too far apart."""


class Turns(NamedTuple):
    """The mixes that have some job: arrays of its turn in each of them.

    Duty cycles are rounded down. Shares of the demand are rounded up, to parts of which
    ``2**_SHARE`` make the greatest, at most 1.
    """

    mixes: Places
    choices: Places
    cycles: Whole
    shares: Whole
    greatest: Fraction


class ListedMixes:
    """The admitted mixes of some offers, whatever these pay; made by :meth:`of`."""

    @classmethod
    def of(cls, offers: Sequence[Offer], most_jobs: int | None, most: int) -> ListedMixes | None:
        """List the mixes of some offers; None if there are more than ``most``, or none.

        None as well if some are too short beside others. What the offers pay does not count.
        """
        try:
            return cls(offers, most_jobs, most) if offers else None
        except _TooManyError:
            return None

    def __init__(self, offers: Sequence[Offer], most_jobs: int | None, most: int) -> None:
        self._offers = offers
        self._jobs = {offer.job: j for j, offer in enumerate(offers)}
        self._first = [*accumulate((len(offer.choices) for offer in offers), initial=0)]
        self._job_of = np.repeat(np.arange(len(offers)), np.diff(self._first))
        self._most_jobs = min(most_jobs or len(offers), len(offers))
        every = [choice for offer in offers for choice in offer.choices]
        # No cycle is longer than all of the longest turns.
        turns = (max(choice.length for choice in offer.choices) for offer in offers)
        end = min(max(choice.longest for choice in every), sum(turns, Fraction(0)))
        self._grid = Fraction(2**_FRAME) / end
        self._lengths = integers(floor(choice.length * self._grid) for choice in every)
        longest = (min(choice.longest, end) for choice in every)
        self._longest = integers(floor(each * self._grid) for each in longest)
        if self._lengths.min() < _ROUGH:
            raise _TooManyError
        levels = [*self._levels(most)]
        #: Of mixes of 1, 2, ... jobs: their choices, of all jobs' one after the other.
        self._picks = [picks for picks, _ in levels]
        self._sizes = [*accumulate(map(len, self._picks), initial=0)]
        self._turns = self._by_job(np.concatenate([cycles for _, cycles in levels]))

    def __len__(self) -> int:
        return self._sizes[-1]

    def _levels(self, most: int) -> Iterator[tuple[Places, Whole]]:
        """Iterate over the mixes of one job, of two, ...: choices and cycles, by their last job."""
        picks, cycles = np.zeros((1, 0), dtype=np.intp), np.zeros(1, np.int64)
        room, last = np.full(1, _MOST), np.full(1, -1)
        for _ in range(self._most_jobs):
            grown: list[tuple[Places, Whole, Whole]] = []
            for j in range(len(self._offers)):
                end, own = np.searchsorted(last, j), slice(*self._first[j : j + 2])
                longer = cycles[:end, None] + self._lengths[own]
                allowed = np.minimum(room[:end, None], self._longest[own])
                before, choice = np.nonzero(longer <= allowed)
                more = np.column_stack((picks[before], choice + own.start))
                part = self._admitted(more, longer[before, choice], allowed[before, choice])
                grown.append(part)
                most -= len(part[0])
                if most < 0:
                    raise _TooManyError
            picks, cycles, room = (np.concatenate(each) for each in zip(*grown, strict=True))
            last = self._job_of[picks[:, -1]]
            yield picks, cycles

    def _admitted(self, picks: Places, cycles: Whole, room: Whole) -> tuple[Places, Whole, Whole]:
        """Leave out those of which only the rounded cycle is admitted: by less than one a job."""
        kept = np.ones(len(picks), dtype=np.bool_)
        for at in np.flatnonzero(cycles + picks.shape[1] > room).tolist():
            chosen = zip(self._job_of[picks[at]].tolist(), picks[at].tolist(), strict=True)
            kept[at] = is_admitted([self._offers[j].choices[p - self._first[j]] for j, p in chosen])
        return picks[kept], cycles[kept], room[kept]

    def _by_job(self, cycles: Whole) -> list[Turns]:
        picks = np.concatenate([level.ravel() for level in self._picks])
        widths = np.repeat([level.shape[1] for level in self._picks], np.diff(self._sizes))
        mixes = np.repeat(np.arange(len(self)), widths)
        order = np.argsort(self._job_of[picks], kind="stable")
        ends = np.searchsorted(self._job_of[picks[order]], np.arange(len(self._offers) + 1))
        found = []
        for j, offer in enumerate(self._offers):
            own = order[ends[j] : ends[j + 1]]
            greatest = Fraction(0)
            if offer.demand:
                alone = max(choice.amount / choice.length for choice in offer.choices)
                greatest = min(Fraction(1), alone / offer.demand)
            parts = self._grid * 2**_SHARE / (offer.demand * greatest or 1)
            # What is cut off is more than all of the demand, in the longest cycle.
            whole = integers(min(ceil(c.amount * parts), _MOST) for c in offer.choices)
            choices, own_cycles = picks[own] - self._first[j], cycles[mixes[own]]
            shares = np.minimum(-(-whole[choices] // own_cycles), 2**_SHARE)
            found.append(Turns(mixes[own], choices, own_cycles, shares, greatest))
        return found

    def likely(
        self, offers: Sequence[Offer], reached: Callable[[], Fraction]
    ) -> Iterator[tuple[Pick, ...]] | None:
        """Iterate over all mixes of some of the jobs that may be worth enough, likeliest first.

        ``reached`` may rise meanwhile. None where a step may count too high.
        """
        bits = 60 - self._most_jobs.bit_length()
        unit = 2**bits / (max([reached(), *(offer.largest for offer in offers)]) or Fraction(1))
        worth = np.zeros(len(self), dtype=np.int64)
        places = {self._jobs[offer.job]: at for at, offer in enumerate(offers)}
        for j, turns in enumerate(self._turns):
            if j not in places:
                worth[turns.mixes] = _NEVER
        for j, at in places.items():
            paid = self._paid(offers[at], self._turns[j], unit)
            if paid is None:
                return None
            worth[self._turns[j].mixes] += paid
        return self._told(worth, places, lambda: floor(reached() * unit))

    def _told(
        self, worth: Whole, places: dict[int, int], least: Callable[[], int]
    ) -> Iterator[tuple[Pick, ...]]:
        found = np.flatnonzero(worth >= least())
        for mix in found[np.argsort(-worth[found], kind="stable")].tolist():
            if worth[mix] < least():
                return
            level = bisect_right(self._sizes, mix) - 1
            picks = self._picks[level][mix - self._sizes[level]]
            jobs = zip(self._job_of[picks].tolist(), picks.tolist(), strict=True)
            yield tuple(sorted(Pick(places[j], pick - self._first[j]) for j, pick in jobs))

    def _paid(self, offer: Offer, turns: Turns, unit: Fraction) -> Whole | None:
        """Bound what a job pays in each mix that has it, rounded up; None if none may say so."""
        function = offer.function
        slope = ceil(function.slope * turns.greatest * unit / 2**_SHARE)
        paid: Whole = slope * turns.shares + ceil(offer.charge * unit)
        for times, height in function.steps if offer.demand else ():
            most = ceil(times * turns.greatest * offer.demand)
            if most > _LARGEST_COUNT:
                return None
            high = integers(min(ceil(times * c.amount * self._grid), _MOST) for c in offer.choices)
            counts = np.minimum(-(-high[turns.choices] // turns.cycles), most)
            paid = paid + ceil(height * unit) * counts
        return paid
