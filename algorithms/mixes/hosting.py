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
    """Rates with points that keep them.

    Attributes
    ----------
    rates : dict of str to Fraction
        What was asked for, in items per unit of time; the points give at least as much.
    amounts : dict of str to Fraction
        The amount each job takes at a time.
    """

    rates: Rates
    amounts: dict[str, Fraction]


class _Row(NamedTuple):
    """The points of a job on a block that a mix can need; amounts and lengths both rise."""

    amounts: tuple[Fraction, ...]
    scaled: tuple[int, ...]  # amounts, in 1/unit
    lengths: tuple[int, ...]  # in 1/unit
    limit: int  # in 1/unit
    fastest: Fraction  # the largest rate of a point alone


class _Table(NamedTuple):
    """A block: its unit of time, as so many in 1, and a row a job that has a point on it."""

    unit: int
    rows: dict[str, _Row]


class Hosting:
    """Answers, block by block, whether rates can be hosted, and the most of one beside others.

    Parameters
    ----------
    problem : TimeSharedProblem

    Notes
    -----
    For rates q on a block let B_s(D) be the shortest point of job s with an amount of at least
    q_s D, and F(D) the sum of their lengths. F does not fall, so going from D to F(D), from 0 on,
    ends at the least D with F(D) <= D, or runs out of points. A mix that carries q with a frame of
    D has F(D) <= D, hence no shorter one than this; and both rules admit what is shorter. So the
    rates can be hosted iff the rule admits the least frame.

    Three jobs of seven points each take some 10 microseconds.

    References
    ----------
    The question is that of Choi, Lee, Kim, Park, Kwon, Huh: Serving Heterogeneous Machine Learning
    Models on Multi-GPU Servers with Spatio-Temporal Sharing, USENIX ATC '22, section 4.

    Examples
    --------
    >>> from cms import Configuration, TimeSharedJob, TimeSharedProblem
    >>> points = {"60": [(1, "0.004"), (4, "0.010"), (8, "0.016")]}
    >>> problem = TimeSharedProblem(
    ...     configurations=[Configuration({"60": 1})],
    ...     jobs=[TimeSharedJob(name, 100, "0.05", points) for name in ("bert", "vgg")],
    ... )
    >>> hosting = Hosting(problem)
    >>> hosting.host("60", {"bert": Fraction(100), "vgg": Fraction(150)}).amounts
    {'bert': Fraction(4, 1), 'vgg': Fraction(4, 1)}
    >>> hosting.host("60", {"bert": Fraction(300), "vgg": Fraction(300)}) is None
    True
    >>> hosting.most("60", {"bert": Fraction(100)}, "vgg").rates["vgg"]
    Fraction(4000, 13)
    """

    def __init__(self, problem: TimeSharedProblem) -> None:
        self.problem = problem
        self._rule = problem.rule
        self._most_jobs = problem.max_jobs
        self._tables = {block: _table(problem, block) for block in problem.blocks}
        #: For each job the blocks that can serve it, with the largest rate it has there alone.
        self.saturated: dict[str, dict[str, Fraction]] = {
            job.name: {
                block: table.rows[job.name].fastest
                for block, table in self._tables.items()
                if job.name in table.rows
            }
            for job in problem.jobs
        }

    def host(self, block: str, rates: Mapping[str, Fraction]) -> Hosted | None:
        """Return the amounts of the least frame that gives every job its rate; None if none does.

        Parameters
        ----------
        block : str
        rates : Mapping[str, Fraction]
            In items per unit of time, >= 0.
        """
        table = self._tables[block]
        if self._most_jobs is not None and len(rates) > self._most_jobs:
            return None
        try:
            rows = [table.rows[job] for job in rates]
        except KeyError:
            return None
        asked = _asked(rates.values())
        places = [0] * len(rows)
        frame = _least_frame(rows, asked, places, sum(row.lengths[0] for row in rows))
        if frame is None or not self._admits(rows, places, frame):
            return None
        pairs = zip(rates, rows, places, strict=True)
        return Hosted(dict(rates), {job: row.amounts[at] for job, row, at in pairs})

    def most(self, block: str, rates: Mapping[str, Fraction], job: str) -> Hosted | None:
        """Return the largest rate that a job can have beside others, with the amounts.

        Parameters
        ----------
        block : str
        rates : Mapping[str, Fraction]
            Of the others; a rate of the job itself is left out.
        job : str

        Returns
        -------
        Hosted or None
            None if it can have none. The rate is exact: the largest of any mix on this block that
            gives the others what they have.
        """
        table, own = self._tables[block], self._tables[block].rows.get(job)
        others = {name: rate for name, rate in rates.items() if name != job}
        if own is None or not table.rows.keys() >= others.keys():
            return None
        if self._most_jobs is not None and len(others) >= self._most_jobs:
            return None
        rows = [table.rows[name] for name in others]
        asked = _asked(others.values())
        best: tuple[Fraction, list[int]] | None = None
        places, frame = [0] * len(rows), sum(row.lengths[0] for row in rows)
        all_rows, before = [*rows, own], 0
        for at, (amount, length) in enumerate(zip(own.scaled, own.lengths, strict=True)):
            # A longer turn of its own only moves the others further: they go on from here.
            longer = _least_frame(rows, asked, places, frame + length - before)
            if longer is None:
                break
            frame, before = longer, length
            if not self._admits(all_rows, [*places, at], frame):
                break
            rate = Fraction(amount, frame)
            if best is None or rate > best[0]:
                best = rate, [*places, at]
        if best is None:
            return None
        rate, chosen = best
        names = [*others, job]
        pairs = zip(names, all_rows, chosen, strict=True)
        return Hosted({**others, job: rate}, {name: row.amounts[at] for name, row, at in pairs})

    def _admits(self, rows: Sequence[_Row], places: Sequence[int], frame: int) -> bool:
        admits = self._rule.admits
        return all(
            admits(frame, row.lengths[at], row.limit) for row, at in zip(rows, places, strict=True)
        )


def _asked(rates: Iterable[Fraction]) -> list[tuple[int, int]]:
    return [(rate.numerator, rate.denominator) for rate in rates]


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


def _table(problem: TimeSharedProblem, block: str) -> _Table:
    points = problem.usable_points(block)
    limits = {job: problem.job(job).limit for job in points}
    unit = lcm(
        *(number.denominator for own in points.values() for point in own for number in point),
        *(limit.denominator for limit in limits.values()),
    )
    return _Table(
        unit,
        {
            job: _Row(
                tuple(point.amount for point in own),
                tuple(in_parts(point.amount, unit) for point in own),
                tuple(in_parts(point.length, unit) for point in own),
                in_parts(limits[job], unit),
                max(point.amount / point.length for point in own),
            )
            for job, own in points.items()
        },
    )
