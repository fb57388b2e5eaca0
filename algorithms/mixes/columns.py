"""The mixes in sight, each with the part of every job's demand that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from cms.schedule.contents import Mix

from .knapsack import BlockKnapsack

if TYPE_CHECKING:
    from cms.mixes.problem import TimeSharedProblem

#: A point of a job, by the job's place and the amount.
Pick = tuple[int, Fraction]


class Column(NamedTuple):
    """A mix on a type of block.

    ``shares`` says of the jobs that have a demand which part of it the mix serves, in (0, 1].
    """

    block: int
    mix: Mix
    shares: tuple[tuple[int, Fraction], ...]

    @property
    def most(self) -> int:
        """How many of it can be of use: so many serve all of its jobs."""
        return max(ceil(1 / share) for _, share in self.shares)


class Step(NamedTuple):
    """A cut of a job's row: its shares times ``times``, each rounded up."""

    job: int
    times: Fraction

    def count(self, share: Fraction) -> int:
        """Return what a mix with this share counts."""
        times = self.times  # fractions would take most of the time of a cut
        return -(-times.numerator * share.numerator // (times.denominator * share.denominator))


class Columns:
    """The mixes in sight, each once, in the order in which they came.

    ``jobs`` are the places of those that have a demand: all others are left out of mixes.
    """

    def __init__(self, problem: TimeSharedProblem) -> None:
        self.problem = problem
        self.jobs = tuple(j for j, job in enumerate(problem.jobs) if job.demand)
        self.listed: list[Column] = []
        self._numbers: dict[tuple[int, tuple[Pick, ...]], int] = {}
        self._lengths = [
            {
                (problem.job_index(name), point.amount): point.length
                for name, points in problem.usable_points(block).items()
                for point in points
                if problem.job(name).demand
            }
            for block in problem.blocks
        ]
        self._demands = [job.demand for job in problem.jobs]
        self._counted: dict[Step, list[int]] = {}
        self._knapsacks: dict[int, BlockKnapsack] = {}

    def __len__(self) -> int:
        return len(self.listed)

    def lengths(self, block: int) -> Mapping[Pick, Fraction]:
        """Return the lengths of a block's points that best mixes are made of."""
        return self._lengths[block]

    def knapsack(self, block: int) -> BlockKnapsack:
        """Return what guesses mixes on a block."""
        if block not in self._knapsacks:
            self._knapsacks[block] = BlockKnapsack(self.problem, self._lengths[block])
        return self._knapsacks[block]

    def add(self, block: int, amounts: Mapping[int, Fraction]) -> int:
        """Return the number of an admitted mix of such points; it is taken in if it is new."""
        picks = tuple(sorted(amounts.items()))
        if (block, picks) in self._numbers:
            return self._numbers[block, picks]
        number = self._numbers[block, picks] = len(self.listed)
        lengths, names, demands = self._lengths[block], self.problem.job_names, self._demands
        frame = sum((lengths[pick] for pick in picks), Fraction(0))
        shares = ((j, min(Fraction(1), amount / (frame * demands[j]))) for j, amount in picks)
        mix = Mix({names[job]: amount for job, amount in picks})
        self.listed.append(Column(block, mix, tuple(shares)))
        return number

    def add_mix(self, block: int, mix: Mapping[str, Fraction]) -> int | None:
        """Return the number of an admitted mix without jobs of no demand; None if none is left.

        Points that no best mix needs give way to better ones.
        """
        amounts: dict[int, Fraction] = {}
        for name, amount in mix.items():
            job = self.problem.job_index(name)
            if self._demands[job]:
                amounts[job] = self._best_amount(block, job, amount)
        return self.add(block, amounts) if amounts else None

    def _best_amount(self, block: int, job: int, amount: Fraction) -> Fraction:
        """Return the amount of a usable point that takes no longer and as much, or more."""
        if (job, amount) in self._lengths[block]:
            return amount
        point = self.problem.jobs[job].point(self.problem.blocks[block], amount)
        assert point is not None, "an admitted mix has measured points"
        return max(
            other
            for (of, other), length in self._lengths[block].items()
            if of == job and length <= point.length
        )

    def counted(self, step: Step) -> list[int]:
        """Return what each mix counts in a cut."""
        counts = self._counted.setdefault(step, [])
        for column in self.listed[len(counts) :]:
            own = (step.count(share) for job, share in column.shares if job == step.job)
            counts.append(next(own, 0))
        return counts

    def add_alone(self) -> None:
        """Take in each job by itself on each block that can serve it, as well as that can."""
        for block, lengths in enumerate(self._lengths):
            best: dict[int, Fraction] = {}
            for (job, amount), length in lengths.items():
                known = best.get(job)
                if known is None or amount / length > known / lengths[job, known]:
                    best[job] = amount
            for job, amount in best.items():
                self.add(block, {job: amount})
