"""Good mixes at given prices, where all of a block are listed: each is looked at, in floats."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..solvers.floats import near
from .knapsack import BlockKnapsack, Guess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cms.mixes.listed import ListedMixes

    from .columns import Columns, Pick
    from .knapsack import Prices

#: Of the dearest mixes, so many are looked at for some of different jobs.
_LOOKED_AT = 40


class _Turns(NamedTuple):
    """The mixes that have some job: arrays of its turn in each of them."""

    job: int
    mixes: NDArray[np.intp]
    lengths: NDArray[np.float64]
    shares: NDArray[np.float64]  # amount / (frame * demand), more than 1 where more is served


class ListedGuesses:
    """Finds the dearest mixes on one type of block, among all that there are.

    Parameters
    ----------
    columns : Columns
        For the points.
    block : int
    listed : ListedMixes
        Of this block.
    """

    def __init__(self, columns: Columns, block: int, listed: ListedMixes) -> None:
        problem, lengths = columns.problem, columns.lengths(block)
        self._points: list[Pick] = [
            (problem.job_index(offer.job), choice.amount)
            for offer in listed.offers
            for choice in offer.choices
        ]
        usable = np.array([point in lengths for point in self._points])
        #: Of mixes of 1, 2, ... jobs: their points, none of which some other beats.
        self._levels = [level[usable[level].all(axis=1)] for level in listed.picks]
        self._starts = [*accumulate(map(len, self._levels), initial=0)]
        self._turns = list(self._by_job(columns, block))

    def _by_job(self, columns: Columns, block: int) -> Iterator[_Turns]:
        lengths, jobs = columns.lengths(block), columns.problem.jobs
        took = np.array([near(lengths.get(point, 0)) for point in self._points])
        frames = np.concatenate([took[level].sum(axis=1) for level in self._levels])
        points = np.concatenate([level.ravel() for level in self._levels])
        mixes = np.concatenate(
            [
                np.arange(start, start + len(level)).repeat(level.shape[1])
                for start, level in zip(self._starts, self._levels, strict=False)
            ]
        )
        job_of = np.array([job for job, _ in self._points])[points]
        for job in np.unique(job_of).tolist():
            own = job_of == job
            places, of = points[own], mixes[own]
            rates = np.array(
                [near(amount / jobs[job].demand) if j == job else 0.0 for j, amount in self._points]
            )
            yield _Turns(job, of, took[places], rates[places] / frames[of])

    def guesses(
        self,
        prices: Prices,
        above: float,
        most: int,
        left: NDArray[np.float64] | None = None,
    ) -> list[Guess]:
        """Return the dearest mix of each set of jobs, where it is worth more than ``above``.

        Parameters
        ----------
        prices, above, most, left
            As of :meth:`.knapsack.BlockKnapsack.guesses`.
        """
        worth = np.zeros(self._starts[-1])
        for turns in self._turns:
            paid = self._paid(turns, prices, 1.0 if left is None else float(left[turns.job]))
            # Who pays nothing only takes time.
            worth[turns.mixes] += paid if paid.any() else -np.inf
        found = np.flatnonzero(worth > above)
        found = found[np.argsort(-worth[found], kind="stable")]
        chosen: dict[frozenset[int], Guess] = {}
        for mix in found[:_LOOKED_AT].tolist():
            amounts = dict(self._points[point] for point in self._mix(mix))
            chosen.setdefault(frozenset(amounts), Guess(amounts, float(worth[mix])))
            if len(chosen) == most:
                break
        return list(chosen.values())

    def _paid(self, turns: _Turns, prices: Prices, part: float) -> NDArray[np.float64]:
        """Return what a job pays in each mix that has it, when a part of its demand is left."""
        if not part:
            return np.zeros(len(turns.mixes))
        paid = prices.worth(turns.job, np.minimum(turns.shares / part, 1.0))
        return paid + prices.charged(turns.job, turns.lengths) if prices.turns else paid

    def _mix(self, mix: int) -> list[int]:
        level = int(np.searchsorted(self._starts, mix, side="right")) - 1
        points: list[int] = self._levels[level][mix - self._starts[level]].tolist()
        return points


#: Who finds good mixes on one type of block.
Guesser = BlockKnapsack | ListedGuesses


def guesser(columns: Columns, block: int) -> Guesser:
    """Return who finds good mixes on a type of block: among all of them, where these are listed."""
    problem = columns.problem
    listed = problem.listed_mixes(problem.blocks[block])
    if listed is None:
        return BlockKnapsack(columns, block)
    return ListedGuesses(columns, block, listed)
