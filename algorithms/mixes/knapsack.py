"""Good mixes at given prices, at once: a knapsack on a grid, in floating-point numbers.

For each of some frames D the points of a mix fill D as well as they can, their lengths rounded up
to whole cells of it. What is found keeps its limits, since its own frame is D or shorter, and is
worth at least as much as there. It need not be the dearest mix.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..solvers.floats import near

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .columns import Columns

#: Cells of a frame.
_CELLS = 32
#: From one frame to the next, and the most of them.
_RATIO, _MOST_FRAMES = 1.04, 96
#: Of a frame's length that a mix must not exceed, for the digits that floats leave out.
_SAFE = 1 - 1e-9


class Prices(NamedTuple):
    """What jobs pay, in floating-point numbers: hints, never facts.

    Attributes
    ----------
    slopes : array of n floats
        For the whole demand.
    steps : mapping of job to list of (times, height)
        ``height * ceil(times * share)``, of the share of the demand served.
    turns : mapping of job to list of (length, worth)
        What is paid for a turn that takes so long or longer, whatever the share.
    """

    slopes: NDArray[np.float64]
    steps: Mapping[int, Sequence[tuple[float, float]]]
    turns: Mapping[int, Sequence[tuple[float, float]]] = {}

    def worth(self, job: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a job pays for shares of its demand, each in [0, 1]."""
        value: NDArray[np.float64] = self.slopes[job] * shares
        for times, height in self.steps.get(job, ()):
            value = value + height * np.ceil(times * shares - 1e-9)
        return value

    def charged(self, job: int, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is paid for turns of these lengths, beside their shares."""
        value = np.zeros(len(lengths))
        for length, worth in self.turns.get(job, ()):
            value += worth * (lengths >= length * _SAFE)
        return value


class Guess(NamedTuple):
    """A mix, by the places of its jobs, and what it is worth, roughly."""

    amounts: dict[int, Fraction]
    worth: float


class _Points(NamedTuple):
    """A job's points on a block: arrays of length k, or (frames, k)."""

    job: int
    amounts: list[Fraction]
    lengths: NDArray[np.float64]
    rates: NDArray[np.float64]  # amount / demand
    weights: NDArray[np.int64]  # in cells of each frame; more than there are where not admitted


class BlockKnapsack:
    """Finds mixes on one type of block.

    Parameters
    ----------
    columns : Columns
        For the points.
    block : int
    """

    def __init__(self, columns: Columns, block: int) -> None:
        problem = columns.problem
        table: dict[int, list[tuple[Fraction, Fraction, Fraction]]] = {}
        for (job, amount), length in columns.lengths(block).items():
            longest = problem.rule.longest(length, problem.jobs[job].limit)
            table.setdefault(job, []).append((amount, length, longest))
        self._frames = _frames(table)
        self._points = [
            self._of_job(job, rows, problem.jobs[job].demand) for job, rows in table.items()
        ]
        most = problem.max_jobs
        # Each point takes a cell at least: a larger cap says nothing.
        self._most = most if most is not None and most < min(len(table), _CELLS) else None
        #: Of each job, by point, frame, layer and cell.
        self._before = [self._places_before(points) for points in self._points]

    def _of_job(
        self, job: int, rows: Sequence[tuple[Fraction, Fraction, Fraction]], demand: Fraction
    ) -> _Points:
        amounts = [amount for amount, _, _ in rows]
        lengths = np.array([near(length) for _, length, _ in rows])
        longest = np.array([near(longest) for _, _, longest in rows])
        frames = self._frames[:, None]
        weights = np.ceil(np.minimum(lengths * (_CELLS / frames), _CELLS + 1)).astype(np.int64)
        weights = np.where(frames <= longest * _SAFE, np.maximum(weights, 1), _CELLS + 1)
        # Alone a point may take all of a frame that is as long as it.
        rates = np.array([near(amount / demand) for amount in amounts])
        return _Points(job, amounts, lengths, rates, weights)

    def guesses(
        self,
        prices: Prices,
        above: float,
        most: int,
        left: NDArray[np.float64] | None = None,
    ) -> list[Guess]:
        """Return some of the mixes that are worth more than ``above``, the dearest first.

        Parameters
        ----------
        prices : Prices
        above : float
        most : int
            How many to return.
        left : array of n floats, optional
            The parts of the demands that are left, of which the prices are; 1 by default.
        """
        if not self._points:
            return []
        if left is None:
            left = np.ones(len(prices.slopes))
        picks = self._filled(prices, left)
        found: dict[tuple[tuple[int, int], ...], float] = {}
        for chosen in picks:
            if chosen and chosen not in found:
                found[chosen] = self._worth(chosen, prices, left)
        good = [(worth, chosen) for chosen, worth in found.items() if worth > above]
        good.sort(key=lambda pair: (-pair[0], pair[1]))
        return [
            Guess({self._points[at].job: self._points[at].amounts[i] for at, i in chosen}, worth)
            for worth, chosen in good[:most]
        ]

    def _worth(
        self, chosen: Sequence[tuple[int, int]], prices: Prices, left: NDArray[np.float64]
    ) -> float:
        frame = sum(self._points[at].lengths[i] for at, i in chosen)
        total = 0.0
        for at, i in chosen:
            points = self._points[at]
            share = np.minimum(points.rates[i] / (frame * left[points.job]), 1.0)
            total += float(prices.worth(points.job, share))
            if prices.turns:
                total += float(prices.charged(points.job, points.lengths)[i])
        return total

    def _filled(
        self, prices: Prices, left: NDArray[np.float64]
    ) -> list[tuple[tuple[int, int], ...]]:
        """Fill each frame, with each number of jobs there can be at most."""
        frames, layers = len(self._frames), 1 if self._most is None else self._most + 1
        # The first cell stands for what does not fit.
        best = np.zeros((frames, layers, _CELLS + 2))
        best[:, :, 0] = -np.inf
        more = slice(None) if self._most is None else slice(1, None)
        steps: list[tuple[int, NDArray[np.int8]]] = []
        for at, points in enumerate(self._points):
            if not left[points.job]:
                continue
            frames_left = self._frames[:, None] * left[points.job]
            shares = np.minimum(points.rates / frames_left, 1.0)
            values = prices.worth(points.job, shares)
            if prices.turns:
                values = values + prices.charged(points.job, points.lengths)
            if not values.any():
                continue
            choice = np.full((frames, layers, _CELLS + 1), -1, dtype=np.int8)
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
        return self._traced(steps, frames, layers)

    def _places_before(self, points: _Points) -> NDArray[np.int32]:
        """Return where in the table of best values each cell's value without a point stands."""
        frames, layers = len(self._frames), 1 if self._most is None else self._most + 1
        room = np.maximum(np.arange(_CELLS + 1) - points.weights.T[:, :, None], -1) + 1
        # With a cap, the point is the last of its layer's: the one below has the others.
        lower = np.arange(layers if self._most is None else layers - 1) * (_CELLS + 2)
        start = np.arange(frames) * (layers * (_CELLS + 2))
        found: NDArray[np.int64] = room[:, :, None, :] + start[:, None, None] + lower[:, None]
        return found.astype(np.int32)

    def _traced(
        self, steps: Sequence[tuple[int, NDArray[np.int8]]], frames: int, layers: int
    ) -> list[tuple[tuple[int, int], ...]]:
        """Return what fills each frame, with each number of jobs there can be at most."""
        frame = np.arange(frames).repeat(layers)
        layer = np.tile(np.arange(layers), frames)
        cell = np.full(frames * layers, _CELLS)
        columns = []
        for at, choice in reversed(steps):
            i = choice[frame, layer, cell]
            taken = i >= 0
            cell = cell - np.where(taken, self._points[at].weights[frame, i], 0)
            if self._most is not None:
                layer = layer - taken
            columns.append(i)
        if not columns:
            return []
        rows = dict.fromkeys(map(tuple, np.array(columns[::-1]).T.tolist()))
        places = [at for at, _ in steps]
        return [tuple((at, i) for at, i in zip(places, row, strict=True) if i >= 0) for row in rows]


def _frames(
    table: Mapping[int, Sequence[tuple[Fraction, Fraction, Fraction]]],
) -> NDArray[np.float64]:
    """Return the frames to fill: from the shortest point to what all jobs can use."""
    if not table:
        return np.zeros(0)
    lengths = [near(length) for rows in table.values() for _, length, _ in rows]
    longest = max(near(longest) for rows in table.values() for _, _, longest in rows)
    useful = sum(max(near(length) for _, length, _ in rows) for rows in table.values())
    low, high = min(lengths), min(longest, useful)
    high = max(low, high)
    ratio = max(_RATIO, (high / low) ** (1 / _MOST_FRAMES))
    number = int(np.floor(np.log(high / low) / np.log(ratio))) + 1 if high > low else 0
    return np.array(sorted({*(low * ratio**k for k in range(number)), high * _SAFE}))
