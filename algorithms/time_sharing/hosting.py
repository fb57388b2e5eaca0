"""Which rates one block can carry in turn, the least cycle, exact; and machines of such blocks.

The lengths of a block are whole multiples of one unit of time, so that a cycle is an int and no
question takes a fraction apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from cms.schedule.contents import Mix
from cms.schedule.schedule import MachineGroup, Schedule
from cms.values.numbers import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cms.problem.parts import Configuration
    from cms.time_sharing.problem import TimeSharedProblem

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
    ends at the least D with F(D) <= D, or runs out of points. A mix that carries q with a cycle of
    D has F(D) <= D, hence no shorter one than this; and both rules admit what is shorter. So the
    rates can be hosted iff the rule admits the least cycle. The question is gpulet's (USENIX
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
        """Return the amounts of the least cycle that gives every job its rate; None if none does.

        Rates are in items per unit of time, >= 0.
        """
        known = self._rows[block]
        if self._most_jobs is not None and len(rates) > self._most_jobs:
            return None
        if not known.keys() >= rates.keys():
            return None
        rows = [known[job] for job in rates]
        places = [0] * len(rows)
        asked = [rate.as_integer_ratio() for rate in rates.values()]
        cycle = _least_cycle(rows, asked, places, sum(row.lengths[0] for row in rows))
        if cycle is None or not self._admitted(rows, places, cycle):
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
        rows = [known[name] for name in others]
        asked = [other.as_integer_ratio() for other in others.values()]
        rate, chosen = Fraction(0), list[int]()
        places, cycle, before = [0] * len(rows), sum(row.lengths[0] for row in rows), 0
        for at, (amount, length) in enumerate(zip(own.scaled, own.lengths, strict=True)):
            # A longer turn of its own only moves the others further: they go on from here.
            longer = _least_cycle(rows, asked, places, cycle + length - before)
            if longer is None or not self._admitted([*rows, own], [*places, at], longer):
                break
            cycle, before = longer, length
            if Fraction(amount, cycle) > rate:
                rate, chosen = Fraction(amount, cycle), [*places, at]
        if not chosen:
            return None
        pairs = zip([*others, job], [*rows, own], chosen, strict=True)
        return Hosted({**others, job: rate}, {name: row.amounts[at] for name, row, at in pairs})

    def _admitted(self, rows: Sequence[_Row], places: Sequence[int], cycle: int) -> bool:
        return all(
            self._admits(cycle, row.lengths[at], row.limit)
            for row, at in zip(rows, places, strict=True)
        )


def _least_cycle(
    rows: Sequence[_Row], asked: Sequence[tuple[int, int]], places: list[int], cycle: int
) -> int | None:
    """Move every job on to the shortest point that gives its rate; None if one runs out of points.

    ``places`` are changed to the points of the least cycle, ``cycle`` is the sum of the lengths at
    those given (and of whatever else takes its turn).
    """
    jobs = range(len(rows))
    settled = False
    while not settled:
        settled = True
        for j in jobs:
            row, (rate, parts), at = rows[j], asked[j], places[j]
            needed = rate * cycle
            if row.scaled[at] * parts >= needed:
                continue
            length, last = row.lengths[at], len(row.scaled) - 1
            while row.scaled[at] * parts < needed:
                if at == last:
                    return None
                at += 1
            places[j], settled = at, False
            cycle += row.lengths[at] - length
    return cycle


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


@dataclass(slots=True)
class Loaded:
    """A block of an opened machine; ``hosted`` is None while it is free."""

    block: str
    hosted: Hosted | None = None

    @property
    def rates(self) -> dict[str, Fraction]:
        """The rate of each job it serves."""
        return {} if self.hosted is None else self.hosted.rates

    def with_more(self, job: str, rate: Fraction) -> dict[str, Fraction]:
        """Return the rates with an amount more of a job."""
        return {**self.rates, job: self.rates.get(job, 0) + rate}


class Machine:
    """So many machines of one configuration that carry the same."""

    def __init__(self, configuration: Configuration, count: int = 1) -> None:
        self.configuration, self.count = configuration, count
        pairs = configuration.blocks.items()
        self.blocks = [Loaded(block) for block, number in pairs for _ in range(number)]


def schedule_of(machines: Iterable[Machine]) -> Schedule:
    """Return the schedule of machines; those that serve no job are left out."""
    counts: Counter[tuple[Configuration, frozenset[tuple[tuple[str, Mix], int]]]] = Counter()
    for machine in machines:
        served = Counter(
            (loaded.block, Mix(loaded.hosted.amounts))
            for loaded in machine.blocks
            if loaded.hosted is not None
        )
        if served:
            counts[machine.configuration, frozenset(served.items())] += machine.count
    return Schedule(
        MachineGroup(configuration, dict(sorted(served)), count)
        for (configuration, served), count in counts.items()
    )


class Saturated:
    """Jobs with a demand, and what each configuration gives them when it serves no other job.

    Nothing serves an ``unservable`` job.
    """

    def __init__(self, hosting: Hosting, shapes: Sequence[Configuration]) -> None:
        self._alone, self._shapes = hosting.saturated, shapes
        problem = hosting.problem
        self.demands = {job.name: job.demand for job in problem.jobs if job.demand}
        self.costs = [problem.machine_type(shape.machine).cost for shape in shapes]
        self.gives = {
            job: [_total(shape, self._alone[job]) for shape in shapes] for job in self.demands
        }
        self.unservable = any(not any(row) for row in self.gives.values())

    def least_cost(self) -> Fraction:
        """Return a cost below which there is no schedule; every job can be served.

        A unit of a job's rate is priced at what it costs on the configuration that gives the job
        most for its cost. A block is worth no more than to one job alone, since a mix gives an
        average of what its jobs would get alone, each for its part of the cycle. So all demands
        cost no less than they are worth, at the rate of the configuration that is worth most for
        its cost.
        """
        prices = {
            job: min(cost / give for cost, give in zip(self.costs, row, strict=True) if give)
            for job, row in self.gives.items()
        }
        dearest: dict[str, Fraction] = {}
        for job, price in prices.items():
            for block, rate in self._alone[job].items():
                dearest[block] = max(dearest.get(block, Fraction(0)), price * rate)
        worths = [_total(shape, dearest) for shape in self._shapes]
        rates = (cost / worth for cost, worth in zip(self.costs, worths, strict=True) if worth)
        paid = (demand * prices[job] for job, demand in self.demands.items())
        return min(rates, default=Fraction(0)) * sum(paid, Fraction(0))


def _total(shape: Configuration, of_block: Mapping[str, Fraction]) -> Fraction:
    worths = (n * of_block.get(block, Fraction(0)) for block, n in shape.blocks.items())
    return sum(worths, Fraction(0))
