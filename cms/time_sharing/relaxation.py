"""Upper bounds on the worth of mixes with their cycle in an interval: integers rounded outwards.

For cycles D in [lo, hi] let u be at least D * (what a choice pays in a cycle D), for every choice
of every job. If for some k in [0, p] the sum over jobs of max(0, best u - k * length of a choice)
is at most (p - k) * lo, then no mix with its cycle D in [lo, hi] is worth more than p. For the
choices of such a mix would have sum u > p * D, where D is the sum of their lengths, so that
sum (u - k * length) > (p - k) * D >= (p - k) * lo. Where a mix has at most m jobs, the m largest
terms do. The difference of the two sides is convex in k, so that a good k is soon found; all hold.

Lengths and the right side are rounded down, what choices pay and the cycles they allow up, so that
this holds for the true numbers. What is lost is one part in some millions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, floor, isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .functions import Offer

Whole = NDArray[np.int64]

#: Lengths and cycles are whole parts of the longest cycle.
_GRID = 60
#: Larger integers say no more than this one, beside any that they are compared with.
_LARGE = 2**60
#: A choice that no cycle of an interval allows.
_NEVER = -(2**61)
#: Steps that may count higher are taken by their linear bound alone.
_LARGEST_COUNT = 2**20
#: Trials of k at once, around the best of those before.
_AT_ONCE, _ROUNDS = 7, 3
#: Numbers of one kind in memory at once, and those of all steps.
_TOGETHER, _TOGETHER_OF_STEPS = 100_000, 2_000_000


class Interval(NamedTuple):
    """DutyCycles from ``lo`` to ``hi``, on the grid."""

    lo: int
    hi: int

    def is_narrow(self, part: int) -> bool:
        """Whether it ends within one ``part``-th of its begin, or cannot be split."""
        return part * self.hi <= (part + 1) * self.lo or self.hi <= self.lo + 1

    def halves(self) -> tuple[Interval, Interval]:
        """Split it at the geometric mean."""
        middle = min(max(isqrt(max(self.lo, 1) * self.hi), self.lo + 1), self.hi - 1)
        return Interval(self.lo, middle), Interval(middle, self.hi)


@dataclass(frozen=True)
class Cell:
    """An interval of cycles with its numbers; all arrays are (offers, choices).

    ``paid`` is u, far below 0 for choices that no cycle allows. ``gap`` is the left side less the
    right one at ``k``, where mixes are to be worth more than ``above``: no mix is if it is <= 0.
    """

    interval: Interval
    lo: int
    hi: int
    paid: Whole
    lengths: Whole
    longest: Whole
    k: int
    gap: int
    above: int

    def admitted(self) -> NDArray[np.bool_]:
        """Which choices some cycle of the interval allows."""
        return self.paid > _NEVER


class _Table(NamedTuple):
    """What depends on the scale of cycles: (offers, choices), steps before them.

    As Python's integers on the grid; or shifted, all but the lengths rounded up, in 64 bits.
    """

    lengths: NDArray[Any]
    longest: NDArray[Any]
    linear: NDArray[Any]
    times: NDArray[Any]
    heighted: NDArray[Any]

    def shifted(self, shift: int) -> _Table:
        """Divide all by a power of two; what is larger than any other number may be cut off."""
        ups = (-(-array >> shift) for array in self[1:])
        parts = (np.minimum(array, _LARGE).astype(np.int64) for array in (self[0] >> shift, *ups))
        return _Table(*parts)


class Relaxation:
    """The integers of some offers, at every scale of cycles; ``largest`` only scales worths."""

    def __init__(self, offers: Sequence[Offer], most_jobs: int, largest: Fraction) -> None:
        self._offers, self._most_jobs = offers, most_jobs
        self._bits = (58 - len(offers).bit_length()) // 2
        self._value = Fraction(2**self._bits) / largest if largest else Fraction(1)
        choices = [choice for offer in offers for choice in offer.choices]
        longest = sorted((max(c.length for c in offer.choices) for offer in offers), reverse=True)
        end = min(max(c.longest for c in choices), sum(longest[:most_jobs], Fraction(0)))
        self._grid = 2**_GRID / end
        self.cycles = Interval(floor(min(c.length for c in choices) * self._grid), 2**_GRID)
        self._prepare((len(offers), max(len(offer.choices) for offer in offers)))
        self._table = cache(self._raw.shifted)

    def whole_worth(self, worth: Fraction) -> int:
        """Return a worth in units of value, rounded down."""
        return floor(worth * self._value)

    def cells(self, intervals: Sequence[Interval], above: int) -> list[Cell]:
        """Return the cells of those intervals that may hold a mix worth more than ``above`` >= 0.

        It is in units of value, rounded down.
        """
        found: list[Cell] = []
        steps = max(1, len(self._height))
        together = max(1, min(_TOGETHER, _TOGETHER_OF_STEPS // steps) // self._raw.lengths.size)
        for start in range(0, len(intervals), together):
            part = intervals[start : start + together]
            shifts = [max(0, each.hi.bit_length() - self._bits) for each in part]
            lo = integers(each.lo >> shift for each, shift in zip(part, shifts, strict=True))
            hi = integers(-(-each.hi >> shift) for each, shift in zip(part, shifts, strict=True))
            table = _Table(*map(np.stack, zip(*map(self._table, shifts), strict=True)))
            paid = self._paid(table, lo, hi)
            # Products with what is far longer than the interval would leave 62 bits.
            lengths = np.where(paid > _NEVER, table.lengths, 0)
            k, gap = self._trials(paid, lengths, lo, above)
            for at in np.flatnonzero(gap > 0).tolist():
                ends, numbers = (int(lo[at]), int(hi[at])), (int(k[at]), int(gap[at]))
                arrays = paid[at], lengths[at], table.longest[at]
                found.append(Cell(part[at], *ends, *arrays, *numbers, above))
        return found

    def _prepare(self, shape: tuple[int, int]) -> None:
        """Compute once what does not depend on an interval."""
        value, grid = self._value, self._grid
        steps = max(len(offer.function.steps) for offer in self._offers)
        # A choice that is not there is too long for every cycle.
        lengths, longest, linear = (np.full(shape, n, dtype=object) for n in (_LARGE**2, -1, 0))
        times, heighted = np.zeros((2, steps, *shape), dtype=object)
        self._raw = _Table(lengths, longest, linear, times, heighted)
        self._slope, self._charge = np.zeros((2, shape[0], 1), dtype=np.int64)
        self._height = np.zeros((steps, shape[0], 1), dtype=np.int64)
        self._count, self._full = np.zeros((2, steps, *shape), dtype=np.int64)
        for j, offer in enumerate(self._offers):
            slope = offer.function.slope if offer.demand else Fraction(0)
            # Beyond twice the largest worth no choice comes near the demand: then what it pays for
            # its amount is the smaller term, whatever the slope. All products stay within 62 bits.
            self._slope[j] = min(ceil(slope * value), 2 ** (self._bits + 1))
            self._charge[j] = ceil(offer.charge * value)
            for c, choice in enumerate(offer.choices):
                amount = choice.amount * grid
                lengths[j, c] = floor(choice.length * grid)
                longest[j, c] = ceil(choice.longest * grid)
                if slope:
                    linear[j, c] = _product_up(slope * value / offer.demand, amount)
            for s, (step, height) in enumerate(offer.function.steps if offer.demand else ()):
                height *= value
                self._height[s, j] = ceil(height)
                # Products are of integers, rounded up once: there are thousands of them.
                rising = step * height
                for c, choice in enumerate(offer.choices):
                    amount = choice.amount * grid
                    count = _product_up(step, min(choice.amount / choice.length, offer.demand))
                    self._full[s, j, c] = _product_up(height, count)
                    self._count[s, j, c] = count if count <= _LARGEST_COUNT else 0
                    times[s, j, c] = _product_up(step, amount)
                    heighted[s, j, c] = _product_up(rising, amount)

    def _paid(self, table: _Table, lo: Whole, hi: Whole) -> Whole:
        """Return u for all intervals: (intervals, offers, choices)."""
        from_, to = lo[:, None, None], hi[:, None, None]
        admitted = (table.longest >= from_) & (table.lengths <= to)
        # A cycle is no shorter than the choice's own length, and no longer than it allows.
        first, last = np.maximum(from_, table.lengths), np.minimum(to, table.longest)
        paid: Whole = np.minimum(table.linear, self._slope * last)
        paid += np.where(self._charge >= 0, self._charge * last, self._charge * first)
        for s, height in enumerate(self._height):
            term = np.minimum(self._full[s] * last, table.heighted[:, s] + height * last)
            counts = -(-table.times[:, s] // np.maximum(first, 1))
            known = (self._count[s] > 0) & (first > 0)
            counted = height * np.minimum(counts, self._count[s]) * last
            paid += np.where(known, np.minimum(term, counted), term)
        return np.where(admitted, paid, _NEVER)

    def _trials(self, paid: Whole, lengths: Whole, lo: Whole, above: int) -> tuple[Whole, Whole]:
        """Return the best k of each interval, and the gap there."""
        least, most = np.zeros_like(lo), np.full_like(lo, above)
        # Those at the ends of what is left are known not to be better.
        steps, rows = np.arange(1, _AT_ONCE + 1), np.arange(len(lo))
        for _ in range(_ROUNDS):
            k = least[:, None] + (most - least)[:, None] * steps // (_AT_ONCE + 1)
            terms = (paid[:, None] - k[:, :, None, None] * lengths[:, None]).max(axis=3)
            np.maximum(terms, 0, out=terms)
            if self._most_jobs < terms.shape[2]:
                terms.partition(terms.shape[2] - self._most_jobs, axis=2)
                terms = terms[:, :, -self._most_jobs :]
            gaps = terms.sum(axis=2) - (above - k) * lo[:, None]
            best = gaps.argmin(axis=1)
            found = k[rows, best], gaps[rows, best]
            before = np.where(best > 0, k[rows, best - 1], least)
            after = np.where(best + 1 < _AT_ONCE, k[rows, (best + 1) % _AT_ONCE], most)
            least, most = before, after
        return found


def integers(numbers: Iterable[int]) -> Whole:
    """Return an array of 64 bits."""
    return np.array([*numbers], dtype=np.int64)


def _product_up(one: Fraction, other: Fraction | int) -> int:
    """Multiply, rounding up."""
    return -(-one.numerator * other.numerator // (one.denominator * other.denominator))
