"""The mixes in sight, each with the part of every job's demand that it serves, and good new ones.

New mixes at given prices are found at once, by a knapsack on a grid in floating-point numbers: for
each of some cycles D the points of a mix fill D as well as they can, their lengths rounded up to
whole cells of it. What is found meets its limits, since its own cycle is D or shorter, and is worth
at least as much as there. It need not be the dearest mix.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.schedule.contents import Mix

from ..solvers.floats import near

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from cms.time_sharing.problem import TimeSharedProblem

#: Cells of a cycle.
_CELLS = 32
#: From one cycle to the next, and the most of them.
_RATIO, _MOST_FRAMES = 1.04, 96
#: Of a cycle's length that a mix must not exceed, for the digits that floats leave out.
_SAFE = 1 - 1e-9


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
        """How many of it can be of use: enough for all of its jobs."""
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
        #: Of each block the lengths of the points that best mixes are made of.
        self.lengths: list[dict[Pick, Fraction]] = [
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
        #: What guesses mixes on a block.
        self.knapsack = cache(lambda block: BlockKnapsack(problem, self.lengths[block]))

    def __len__(self) -> int:
        return len(self.listed)

    def add(self, block: int, amounts: Mapping[int, Fraction]) -> int:
        """Return the number of an admitted mix of such points; it is taken in if it is new."""
        picks = tuple(sorted(amounts.items()))
        if (block, picks) in self._numbers:
            return self._numbers[block, picks]
        number = self._numbers[block, picks] = len(self.listed)
        lengths, names, demands = self.lengths[block], self.problem.job_names, self._demands
        cycle = sum((lengths[pick] for pick in picks), Fraction(0))
        shares = ((j, min(Fraction(1), amount / (cycle * demands[j]))) for j, amount in picks)
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
        if (job, amount) in self.lengths[block]:
            return amount
        point = self.problem.jobs[job].point(self.problem.blocks[block], amount)
        assert point is not None, "an admitted mix has measured points"
        return max(
            other
            for (of, other), length in self.lengths[block].items()
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
        for block, lengths in enumerate(self.lengths):
            best: dict[int, Fraction] = {}
            for (job, amount), length in lengths.items():
                known = best.get(job)
                if known is None or amount / length > known / lengths[job, known]:
                    best[job] = amount
            for job, amount in best.items():
                self.add(block, {job: amount})


class Prices(NamedTuple):
    """What jobs pay, in floating-point numbers: hints, never facts.

    ``slopes`` are for the whole demand, ``steps`` of a job are ``height * ceil(times * share)`` of
    the share of the demand served, and ``charges`` are paid for having the job at all.
    """

    slopes: NDArray[np.float64]
    steps: Mapping[int, Sequence[tuple[float, float]]]
    charges: Mapping[int, float] = {}

    def worth(self, job: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a job pays for shares of its demand, each in [0, 1]."""
        value: NDArray[np.float64] = self.slopes[job] * shares + self.charges.get(job, 0.0)
        for times, height in self.steps.get(job, ()):
            value = value + height * np.ceil(times * shares - 1e-9)
        return value


#: A mix by places: of its jobs here, and of the point of each.
_Chosen = tuple[tuple[int, int], ...]


class _Points(NamedTuple):
    """A job's points on a block: arrays of length k, or (cycles, k)."""

    job: int
    amounts: list[Fraction]
    lengths: NDArray[np.float64]
    rates: NDArray[np.float64]  # amount / demand
    weights: NDArray[np.int64]  # in cells of each cycle; more than there are where not admitted


class BlockKnapsack:
    """Finds mixes on one type of block, whose points have these lengths by job and amount."""

    def __init__(
        self, problem: TimeSharedProblem, lengths: Mapping[tuple[int, Fraction], Fraction]
    ) -> None:
        table: dict[int, list[tuple[Fraction, Fraction, Fraction]]] = {}
        for (job, amount), length in lengths.items():
            longest = problem.rule.longest(length, problem.jobs[job].limit)
            table.setdefault(job, []).append((amount, length, longest))
        self._cycles = _cycles(table)
        self._points = [
            self._of_job(job, rows, problem.jobs[job].demand) for job, rows in table.items()
        ]
        most = problem.max_jobs
        # Each point takes a cell at least: a larger cap says nothing.
        self._most = most if most is not None and most < min(len(table), _CELLS) else None
        self._layers = 1 if self._most is None else self._most + 1
        #: Of each job, by point, cycle, layer and cell.
        self._before = [self._places_before(points) for points in self._points]

    def _of_job(
        self, job: int, rows: Sequence[tuple[Fraction, Fraction, Fraction]], demand: Fraction
    ) -> _Points:
        amounts = [amount for amount, _, _ in rows]
        lengths = np.array([near(length) for _, length, _ in rows])
        longest = np.array([near(longest) for _, _, longest in rows])
        cycles = self._cycles[:, None]
        weights = np.ceil(np.minimum(lengths * (_CELLS / cycles), _CELLS + 1)).astype(np.int64)
        weights = np.where(cycles <= longest * _SAFE, np.maximum(weights, 1), _CELLS + 1)
        # Alone a point may take all of a cycle that is as long as it.
        rates = np.array([near(amount / demand) for amount in amounts])
        return _Points(job, amounts, lengths, rates, weights)

    def guesses(
        self, prices: Prices, above: float, most: int, left: NDArray[np.float64] | None = None
    ) -> list[dict[int, Fraction]]:
        """Return up to ``most`` mixes that are worth more than ``above``, the dearest first.

        ``left`` are the parts of the demands that are left, of which the prices are; 1 by default.
        """
        if not self._points:
            return []
        if left is None:
            left = np.ones(len(prices.slopes))
        chosen = [own for own in dict.fromkeys(self._filled(prices, left)) if own]
        worths = {own: self._worth(own, prices, left) for own in chosen}
        good = sorted((-worth, own) for own, worth in worths.items() if worth > above)
        return [
            {self._points[at].job: self._points[at].amounts[i] for at, i in own}
            for _, own in good[:most]
        ]

    def _worth(self, chosen: _Chosen, prices: Prices, left: NDArray[np.float64]) -> float:
        cycle = sum(self._points[at].lengths[i] for at, i in chosen)
        total = 0.0
        for at, i in chosen:
            points = self._points[at]
            share = np.minimum(points.rates[i] / (cycle * left[points.job]), 1.0)
            total += float(prices.worth(points.job, share))
        return total

    def _filled(self, prices: Prices, left: NDArray[np.float64]) -> list[_Chosen]:
        """Fill each cycle, with each number of jobs there can be at most."""
        shape = len(self._cycles), self._layers
        # The first cell stands for what does not fit.
        best = np.zeros((*shape, _CELLS + 2))
        best[:, :, 0] = -np.inf
        more = slice(None) if self._most is None else slice(1, None)
        steps: list[tuple[int, NDArray[np.int8]]] = []
        for at, points in enumerate(self._points):
            if not left[points.job]:
                continue
            shares = np.minimum(points.rates / (self._cycles[:, None] * left[points.job]), 1.0)
            values = prices.worth(points.job, shares)
            if not values.any():
                continue
            choice = np.full((*shape, _CELLS + 1), -1, dtype=np.int8)
            after = best.copy()
            now, chosen = after[:, more, 1:], choice[:, more]
            for i in range(len(points.amounts)):
                value = best.take(self._before[at][i])
                value += values[:, i, None, None]
                better = value > now
                np.copyto(now, value, where=better)
                chosen[better] = i
            best = after
            steps.append((at, choice))
        return self._traced(steps)

    def _places_before(self, points: _Points) -> NDArray[np.int32]:
        """Return where in the table of best values each cell's value without a point stands."""
        cycles, layers = len(self._cycles), self._layers
        room = np.maximum(np.arange(_CELLS + 1) - points.weights.T[:, :, None], -1) + 1
        # With a cap, the point is the last of its layer's: the one below has the others.
        lower = np.arange(layers if self._most is None else layers - 1) * (_CELLS + 2)
        start = np.arange(cycles) * (layers * (_CELLS + 2))
        found: NDArray[np.int64] = room[:, :, None, :] + start[:, None, None] + lower[:, None]
        return found.astype(np.int32)

    def _traced(self, steps: Sequence[tuple[int, NDArray[np.int8]]]) -> list[_Chosen]:
        """Return what fills each cycle, with each number of jobs there can be at most."""
        if not steps:
            return []
        cycle = np.arange(len(self._cycles)).repeat(self._layers)
        layer = np.tile(np.arange(self._layers), len(self._cycles))
        cell = np.full(len(cycle), _CELLS)
        columns = []
        for at, choice in reversed(steps):
            i = choice[cycle, layer, cell]
            taken = i >= 0
            cell = cell - np.where(taken, self._points[at].weights[cycle, i], 0)
            if self._most is not None:
                layer = layer - taken
            columns.append(i)
        rows = dict.fromkeys(map(tuple, np.array(columns[::-1]).T.tolist()))
        places = [at for at, _ in steps]
        return [tuple((at, i) for at, i in zip(places, row, strict=True) if i >= 0) for row in rows]


def _cycles(
    table: Mapping[int, Sequence[tuple[Fraction, Fraction, Fraction]]],
) -> NDArray[np.float64]:
    """Return the cycles to fill: from the shortest point to what all jobs can use."""
    if not table:
        return np.zeros(0)
    lengths = [near(length) for rows in table.values() for _, length, _ in rows]
    longest = max(near(longest) for rows in table.values() for _, _, longest in rows)
    useful = sum(max(near(length) for _, length, _ in rows) for rows in table.values())
    low = min(lengths)
    high = max(low, min(longest, useful))
    ratio = max(_RATIO, (high / low) ** (1 / _MOST_FRAMES))
    number = int(np.floor(np.log(high / low) / np.log(ratio))) + 1 if high > low else 0
    return np.array(sorted({*(low * ratio**k for k in range(number)), high * _SAFE}))
