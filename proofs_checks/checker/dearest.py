"""Whether some mix on a block is worth more than the block: price functions, decided exactly.

A mix takes one point (a, L) of each of some jobs: its cycle is D = ΣL, the rate of a job a/D, and
its worth Σ (φ(a/D) + e), where φ is the price function of the job and e the charge of the point. It
is admitted if D is at most the longest cycle F of each of its points, in which they keep their
latency limits.

**What is left out, and why no mix is missed.** Of two points of a job, one with no larger amount
and no shorter length, and no larger charge, is left out: with the other one the mix has a shorter
cycle, greater rates and no smaller charges, a point of smaller length has an F no smaller, and no φ
ever falls. For the rest, let π be the price of the block, and look at the mixes with D in [lo, hi].

Each of their points has L <= hi and F >= lo. For such a point let u be at least D·(φ(a/D) + e) for
all D in [lo, hi]. With x = min(a/D, d), φ is the sum of

  α·x/d, of which D times it is at most α·min(a/d, hi);
  β·ceil(t·x), of which D times it is at most β·(t·a + hi), and at most β·hi·ceil(t·min(a/lo, d));

and D·e is at most max(e·lo, e·hi). Now take any κ with 0 <= κ <= π. If the mix is worth more than
π, then Σu > π·D, and as D = ΣL,

  Σ (u - κ·L) > (π - κ)·D >= (π - κ)·max(lo, lengths of some of its points).           (1)

So there is no such mix if the sum over jobs of max(0, the largest u - κ·L of a point), or the sum
of the m largest where a mix has at most m jobs, is at most (π - κ)·lo. Otherwise the interval is
split, or the mixes in it are built job by job: a part of one is given up if what it has and the
largest terms of the jobs that may still come do not fulfil (1), or its lengths exceed hi or some F
of its points. Each complete mix is evaluated in rationals, unless (1), with κ = 0, does not hold
for the cycles that its lengths, rounded, leave possible.

Jobs that differ in nothing but their names are taken in the order of the list, and the point of
each stands no earlier in their common list of points than that of the one before: the other mixes
come from these by an exchange of names, and are worth the same.

Where no job has a slope, every worth is a whole multiple of some number: the largest of which all β
and e are. What is worth more than π is then worth the next multiple at least, so that the number π
of the search may be any one below that.

All u are rounded up to integers and L down, in units so small that it hardly matters; (1) holds for
them as well, if hi is rounded up, and lo and π down: the left side only grows, and the right falls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import NamedTuple

from .reading import ZERO, Fault, common_step

# In so many steps of the search it must be decided; ten million take some ten seconds.
_MOST_STEPS = 20_000_000
# Jobs of a mix, each of which is a call within the one before it; Python allows a thousand.
_DEEPEST = 400
# Intervals within a twentieth are searched; those that take more steps than this are split again,
# until they are within a 500th.
_NARROW, _NARROWEST, _FEW_STEPS = 20, 500, 100
# Units of length and of worth: the longest cycle and the largest worth are so many.
_FRAME, _WORTH = 1 << 64, 1 << 48
# Halvings of the interval that holds the best κ; any κ would do.
_HALVINGS = 10


class Function(NamedTuple):
    """A price function: α·x/d + Σ β·ceil(t·x), for x = min(rate, demand)."""

    slope: Fraction  # α
    steps: tuple[tuple[Fraction, Fraction], ...]  # (t, β)

    def at(self, rate: Fraction, demand: Fraction) -> Fraction:
        """What a rate is worth to a job with this demand."""
        x = min(rate, demand)
        if not x:
            return ZERO
        return self.slope * x / demand + sum((b * ceil(t * x) for t, b in self.steps), ZERO)


class Place(NamedTuple):
    """A point, and the longest cycle in which it meets its limit."""

    amount: Fraction
    length: Fraction
    longest: Fraction
    charge: Fraction = ZERO


class Offered(NamedTuple):
    """A job as it stands for one type of block."""

    job: str
    demand: Fraction
    function: Function
    places: tuple[Place, ...]


class Dearer(NamedTuple):
    """A mix that is worth more than its block."""

    amounts: dict[str, Fraction]
    worth: Fraction


def undominated(places: Iterable[Place]) -> tuple[Place, ...]:
    """The points that no other one beats in amount, length and charge, by falling amount."""
    kept: list[Place] = []
    for place in sorted(places, key=lambda each: (-each.amount, each.length, -each.charge)):
        if all(other.length > place.length or other.charge < place.charge for other in kept):
            kept.append(place)
    return tuple(kept)


def dearer_mix(jobs: Sequence[Offered], price: Fraction, most_jobs: int | None) -> Dearer | None:
    """Find a mix worth more than a price; None if there is none, a Fault if it takes too long."""
    able = []
    for job in jobs:
        places = undominated(p for p in job.places if p.length <= p.longest)
        # What pays nothing only makes a cycle longer.
        charged = any(place.charge > 0 for place in places)
        if charged or (places and job.demand and any(job.function)):
            able.append(job._replace(places=places))
    return _Search(able, price, min(most_jobs or len(able), len(able))).run() if able else None


class _Unit(NamedTuple):
    """A point in whole units: what its terms are made of."""

    length: int
    longest: int
    charge: int  # e
    rising: int  # α·a/d: the most that the slope's term is
    steps: list[tuple[int, int, int, int, int]]  # β, β·t·a, t·a, ceil(t·d), β·ceil(t·d)


class _Open(NamedTuple):
    """A point that some cycle of an interval admits."""

    paid: int  # u
    length: int
    longest: int
    place: int


class _Split(Exception):
    """An interval took more steps than it should."""


class _Search:
    """A search, for one block."""

    def __init__(self, jobs: list[Offered], price: Fraction, most_jobs: int) -> None:
        # Jobs that differ by their names alone stand together.
        keys = [job[1:] for job in jobs]
        self._jobs = sorted(jobs, key=lambda job: keys.index(job[1:]))
        self._kinds = [keys.index(job[1:]) for job in self._jobs]
        self._price, self._most_jobs = price, most_jobs
        places = [place for job in jobs for place in job.places]
        longest = sorted(max(place.length for place in job.places) for job in jobs)
        end = min(max(p.longest for p in places), sum(longest[-most_jobs:], ZERO))
        worths = [j.function.at(p.amount / p.length, j.demand) for j in jobs for p in j.places]
        self._per_cycle = _FRAME / end
        most = max([price, *worths, *(abs(place.charge) for place in places)])
        self._per_worth = Fraction(_WORTH) / (most or 1)
        self._pi = max(floor(p * self._per_worth) - b for p, b in self._equal_prices())
        self._least = floor(min(place.length for place in places) * self._per_cycle)
        self._units = [[self._unit(job, place) for place in job.places] for job in self._jobs]
        self._slopes = [
            ceil(job.function.slope * self._per_worth) if job.demand else 0 for job in self._jobs
        ]
        self._steps = 0

    def _equal_prices(self) -> list[tuple[Fraction, int]]:
        """Prices above which the same mixes are; with 1, every number below is one."""
        given = [(self._price, 0)]
        if not any(job.function.slope for job in self._jobs if job.demand):
            heights = [height for job in self._jobs for _, height in job.function.steps]
            charges = [place.charge for job in self._jobs for place in job.places]
            step = common_step([*heights, *charges])
            if step:
                given.append((step * (self._price // step + 1), 1))
        return given

    def _unit(self, job: Offered, place: Place) -> _Unit:
        cycles, worth = self._per_cycle, self._per_worth
        if not job.demand:
            return _Unit(
                floor(place.length * cycles),
                ceil(place.longest * cycles),
                ceil(place.charge * worth),
                0,
                [],
            )
        amount = place.amount * cycles
        steps = []
        for t, height in job.function.steps:
            most = ceil(t * job.demand)
            high, product = ceil(height * worth), ceil(height * t * amount * worth)
            steps.append((high, product, ceil(t * amount), most, ceil(height * most * worth)))
        return _Unit(
            floor(place.length * cycles),
            ceil(place.longest * cycles),
            ceil(place.charge * worth),
            ceil(job.function.slope * amount * worth / job.demand),
            steps,
        )

    def run(self) -> Dearer | None:
        """Go through all cycles."""
        waiting = [(self._least, _FRAME)]
        while waiting:
            lo, hi = waiting.pop()
            found = self._between(lo, hi)
            if isinstance(found, Dearer):
                return found
            if found:
                middle = min(max(isqrt(max(lo, 1) * hi), lo + 1), hi - 1)
                waiting += [(middle, hi), (lo, middle)]
        return None

    def _between(self, lo: int, hi: int) -> Dearer | bool | None:
        """A dearer mix of these cycles, if any; True if they are to be split, as it is open."""
        self._count()
        table = [self._open_points(at, lo, hi) for at in range(len(self._jobs))]
        kappa = self._best_kappa(table, lo)
        if kappa is None:
            return False
        if _NARROW * hi > (_NARROW + 1) * lo and hi > lo + 1:
            return True
        narrow = _NARROWEST * hi <= (_NARROWEST + 1) * lo or hi <= lo + 1
        try:
            return _Building(self, table, lo, hi, kappa, None if narrow else _FEW_STEPS).run()
        except _Split:
            return True

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Fault(
                f"whether a mix is worth more than its block is not decided in {_MOST_STEPS} steps"
            )

    def _open_points(self, at: int, lo: int, hi: int) -> list[_Open]:
        return [
            _Open(self._most_paid(at, unit, lo, hi), unit.length, unit.longest, place)
            for place, unit in enumerate(self._units[at])
            if unit.length <= hi and unit.longest >= lo
        ]

    def _most_paid(self, at: int, unit: _Unit, lo: int, hi: int) -> int:
        """The number u for the cycles in [lo, hi]."""
        slope, charge = self._slopes[at], unit.charge
        u = min(unit.rising, slope * hi) + charge * (hi if charge > 0 else lo)
        for high, product, amount, most, full in unit.steps:
            term = min(full * hi, product + high * hi)
            if lo:
                term = min(term, high * hi * min(-(-amount // lo), most))
            u += term
        return u

    def _best_kappa(self, table: list[list[_Open]], lo: int) -> int | None:
        """The κ that (1) leaves the least room; None if it leaves none."""
        low, high = 0, self._pi
        best = (0, -1)
        for _ in range(_HALVINGS):
            kappa = (low + high) // 2
            tops = [
                max((point.paid - kappa * point.length, point.length) for point in points)
                for points in table
                if points
            ]
            top = sorted((each for each in tops if each[0] > 0), reverse=True)[: self._most_jobs]
            room = sum(term for term, _ in top) - (self._pi - kappa) * lo
            if room <= 0:
                return None
            if best[1] < 0 or room < best[1]:
                best = kappa, room
            # The room is convex in κ, and this is its slope.
            if lo > sum(length for _, length in top):
                high = kappa
            else:
                low = kappa
        return best[0]

    def worth(self, picks: Sequence[tuple[int, int]]) -> Dearer | None:
        """The mix of these jobs and points, if it is admitted and worth more than the price."""
        units = [(at, self._units[at][place]) for at, place in picks]
        # Rounded down, its lengths fall short of its cycle by less than one each. If (1) does not
        # hold between, with κ = 0, it is worth no more.
        least = sum(unit.length for _, unit in units)
        most = least + len(units)
        if sum(self._most_paid(at, unit, least, most) for at, unit in units) <= self._pi * least:
            return None
        chosen = [(self._jobs[at], self._jobs[at].places[place]) for at, place in picks]
        cycle = sum((place.length for _, place in chosen), ZERO)
        if any(cycle > place.longest for _, place in chosen):
            return None
        worth = sum(
            (p.charge + (j.function.at(p.amount / cycle, j.demand)) for j, p in chosen), ZERO
        )
        if worth <= self._price:
            return None
        return Dearer({job.job: place.amount for job, place in chosen}, worth)


class _Building:
    """The mixes with their cycles in a narrow interval, job by job."""

    def __init__(
        self,
        search: _Search,
        table: list[list[_Open]],
        lo: int,
        hi: int,
        kappa: int,
        most_steps: int | None,
    ) -> None:
        self._search, self._lo, self._hi, self._steps = search, lo, hi, most_steps
        self._margin = search._pi - kappa
        rows = []
        for at, points in enumerate(table):
            terms = [(p.paid - kappa * p.length, p.length, p.longest, p.place) for p in points]
            if terms:
                terms.sort(key=lambda term: (-term[0], term[3]))
                rows.append((max(0, terms[0][0]), search._kinds[at], at, terms))
        # The largest terms come first, and jobs of one kind together: their terms are the same.
        rows.sort(key=lambda row: (-row[0], row[1]))
        self._rows = rows
        self._top = [0]
        for best, *_ in rows:
            self._top.append(self._top[-1] + best)

    def run(self) -> Dearer | None:
        return self._more([], 0, 0, 0, self._hi, 0)

    def _more(
        self,
        picks: list[tuple[int, int]],
        start: int,
        value: int,
        length: int,
        longest: int,
        rank: int,
    ) -> Dearer | None:
        """Add nothing, or a job from ``start`` on; of the last one's kind not below ``rank``."""
        search, rows, top = self._search, self._rows, self._top
        search._count()
        if self._steps is not None:
            self._steps -= 1
            if self._steps < 0:
                raise _Split
        needed = self._margin * max(self._lo, length)
        if picks and value > needed:
            found = search.worth(picks)
            if found is not None:
                return found
        left = search._most_jobs - len(picks)
        if left and len(picks) == _DEEPEST:
            raise Fault(
                f"whether a mix of more than {_DEEPEST} jobs is worth more than its block is not "
                "decided"
            )
        for at in range(start, len(rows) if left else start):
            if value + top[min(len(rows), at + left)] - top[at] <= needed:
                break
            _, kind, job, terms = rows[at]
            if at > start and rows[at - 1][1] == kind:
                continue  # the one before has its name alone for difference, and is left out
            same = at > 0 and bool(picks) and at == start and rows[at - 1][1] == kind
            rest = top[min(len(rows), at + left)] - top[at + 1]
            for place in range(rank if same else 0, len(terms)):
                term, own, allowed, point = terms[place]
                total, bound = length + own, min(longest, allowed)
                if value + term + rest <= needed:
                    break
                if total > bound or value + term + rest <= self._margin * max(self._lo, total):
                    continue
                found = self._more(
                    [*picks, (job, point)], at + 1, value + term, total, bound, place
                )
                if found is not None:
                    return found
        return None
