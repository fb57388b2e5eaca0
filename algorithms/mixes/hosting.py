"""Which rates one block can carry in turn: the least frame, exact, in integers.

The lengths of a block are whole multiples of one unit of time, so that a frame is an int and no
question takes a fraction apart.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from cms.values.numbers import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.mixes.problem import TimeSharedProblem

#: What a block carries: the rate that each job is given on it.
Rates = dict[str, Fraction]


class Hosted(NamedTuple):
    """Rates that were asked for, and the amounts that each job takes at a time to keep them."""

    rates: Rates
    amounts: dict[str, Fraction]


class _Row(NamedTuple):
    """The points of a job on a block that a mix can need; amounts and lengths both rise."""

    amounts: tuple[Fraction, ...]
    scaled: tuple[int, ...]  # amounts, in 1/unit
    lengths: tuple[int, ...]  # in 1/unit
    limit: int  # in 1/unit


class Hosting:
    """Answers, block by block, whether rates can be hosted, and the most of one beside others.

    For rates q on a block let B_s(D) be the shortest point of job s with an amount of at least
    q_s D, and F(D) the sum of their lengths. F does not fall, so going from D to F(D), from 0 on,
    ends at the least D with F(D) <= D, or runs out of points. A mix that carries q with a frame of
    D has F(D) <= D, hence no shorter one than this; and both rules admit what is shorter. So the
    rates can be hosted iff the rule admits the least frame. The question is gpulet's (USENIX
    ATC '22, section 4).
    """

    def __init__(self, problem: TimeSharedProblem) -> None:
        self.problem = problem
        self._admits, self._most_jobs = problem.rule.admits, problem.max_jobs
        self._rows = {block: _rows(problem, block) for block in problem.blocks}
        rates = {block: problem.greatest_rates(block) for block in problem.blocks}
        #: For each job the blocks that can serve it, with the largest rate it has there alone.
        self.saturated: dict[str, dict[str, Fraction]] = {
            name: {block: own[name] for block, own in rates.items() if name in own}
            for name in problem.job_names
        }

    def host(self, block: str, rates: Mapping[str, Fraction]) -> Hosted | None:
        """Return the amounts of the least frame that gives every job its rate; None if none does.

        Rates are in items per unit of time, >= 0.
        """
        known = self._rows[block]
        if self._most_jobs is not None and len(rates) > self._most_jobs:
            return None
        if not known.keys() >= rates.keys():
            return None
        rows = [known[job] for job in rates]
        places = [0] * len(rows)
        frame = _least_frame(rows, _asked(rates.values()), places, _shortest(rows))
        if frame is None or not self._admitted(rows, places, frame):
            return None
        pairs = zip(rates, rows, places, strict=True)
        return Hosted(dict(rates), {job: row.amounts[at] for job, row, at in pairs})

    def most(self, block: str, rates: Mapping[str, Fraction], job: str) -> Hosted | None:
        """Return the largest rate that a job can have beside others, with the amounts.

        A rate of the job itself is left out. None if it can have none. The rate is exact: the
        largest of any mix on this block that gives the others what they have.
        """
        known, own = self._rows[block], self._rows[block].get(job)
        others = {name: rate for name, rate in rates.items() if name != job}
        if own is None or not known.keys() >= others.keys():
            return None
        if self._most_jobs is not None and len(others) >= self._most_jobs:
            return None
        rows, asked = [known[name] for name in others], _asked(others.values())
        rate, chosen = Fraction(0), list[int]()
        places, frame, before = [0] * len(rows), _shortest(rows), 0
        for at, (amount, length) in enumerate(zip(own.scaled, own.lengths, strict=True)):
            # A longer turn of its own only moves the others further: they go on from here.
            longer = _least_frame(rows, asked, places, frame + length - before)
            if longer is None or not self._admitted([*rows, own], [*places, at], longer):
                break
            frame, before = longer, length
            if Fraction(amount, frame) > rate:
                rate, chosen = Fraction(amount, frame), [*places, at]
        if not chosen:
            return None
        pairs = zip([*others, job], [*rows, own], chosen, strict=True)
        return Hosted({**others, job: rate}, {name: row.amounts[at] for name, row, at in pairs})

    def _admitted(self, rows: Sequence[_Row], places: Sequence[int], frame: int) -> bool:
        return all(
            self._admits(frame, row.lengths[at], row.limit)
            for row, at in zip(rows, places, strict=True)
        )


def _asked(rates: Iterable[Fraction]) -> list[tuple[int, int]]:
    return [(rate.numerator, rate.denominator) for rate in rates]


def _shortest(rows: Sequence[_Row]) -> int:
    return sum(row.lengths[0] for row in rows)


def _least_frame(
    rows: Sequence[_Row], asked: Sequence[tuple[int, int]], places: list[int], frame: int
) -> int | None:
    """Move every job on to the shortest point that gives its rate; None if one runs out of points.

    ``places`` are changed to the points of the least frame, ``frame`` is the sum of the lengths at
    those given (and of whatever else takes its turn).
    """
    jobs = range(len(rows))
    settled = False
    while not settled:
        settled = True
        for j in jobs:
            row, (rate, parts), at = rows[j], asked[j], places[j]
            needed = rate * frame
            if row.scaled[at] * parts >= needed:
                continue
            length, last = row.lengths[at], len(row.scaled) - 1
            while row.scaled[at] * parts < needed:
                if at == last:
                    return None
                at += 1
            places[j], settled = at, False
            frame += row.lengths[at] - length
    return frame


def _rows(problem: TimeSharedProblem, block: str) -> dict[str, _Row]:
    points = problem.usable_points(block)
    limits = {job: problem.job(job).limit for job in points}
    unit = lcm(
        *(number.denominator for own in points.values() for point in own for number in point),
        *(limit.denominator for limit in limits.values()),
    )
    return {
        job: _Row(
            tuple(point.amount for point in own),
            tuple(in_parts(point.amount, unit) for point in own),
            tuple(in_parts(point.length, unit) for point in own),
            in_parts(limits[job], unit),
        )
        for job, own in points.items()
    }
