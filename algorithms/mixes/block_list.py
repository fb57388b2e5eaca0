"""The dearest mixes at given prices, where all of a block are listed: each is looked at, in floats.

They are hints: of mixes whose worths are all but equal it need not be the dearest that is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..solvers.floats import near
from .knapsack import BlockKnapsack, Guess

if TYPE_CHECKING:
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
    choices: NDArray[np.intp]
    shares: NDArray[np.float64]  # of its demand, at most 1
    lengths: NDArray[np.float64]  # of each choice


class BlockList:
    """Finds mixes on one type of block, among all that there are.

    Parameters
    ----------
    columns : Columns
        For the points.
    block : int
    listed : ListedMixes
        Of this block.
    """

    def __init__(self, columns: Columns, block: int, listed: ListedMixes) -> None:
        problem, known = columns.problem, columns.lengths(block)
        jobs = [problem.job_index(offer.job) for offer in listed.offers]
        self._listed = listed
        self._points: list[list[Pick]] = [
            [(job, choice.amount) for choice in offer.choices]
            for job, offer in zip(jobs, listed.offers, strict=True)
        ]
        #: Of each mix: 0, or less than nothing where a better point could take one's place.
        self._start = np.zeros(len(listed))
        frames = np.zeros(len(listed))
        # However short or long turns are, those of one block are near each other.
        unit = max(choice.length for offer in listed.offers for choice in offer.choices)
        for turns, points, offer in zip(listed.turns, self._points, listed.offers, strict=True):
            worse = np.array([point not in known for point in points])
            self._start[turns.mixes[worse[turns.choices]]] = -np.inf
            took = np.array([near(choice.length / unit) for choice in offer.choices])
            frames[turns.mixes] += took[turns.choices]
        self._turns: list[_Turns] = []
        for job, turns, offer in zip(jobs, listed.turns, listed.offers, strict=True):
            mixes, choices = turns.mixes, turns.choices
            kept = self._start[mixes] == 0
            if not kept.all():
                mixes, choices = mixes[kept], choices[kept]
            if len(mixes):  # of a job without a demand none is left
                most = offer.demand * unit
                rates = np.array([near(choice.amount / most) for choice in offer.choices])
                shares = np.minimum(rates[choices] / frames[mixes], 1.0)
                lengths = np.array([near(choice.length) for choice in offer.choices])
                self._turns.append(_Turns(job, mixes, choices, shares, lengths))

    def guesses(self, prices: Prices, above: float, most: int) -> list[Guess]:
        """Return the dearest mixes of different jobs, if they are worth more than ``above``.

        Parameters
        ----------
        prices : Prices
        above : float
        most : int
            How many to return; they are fewer where the dearest mixes have the same jobs.
        """
        worth = self._start.copy()
        for job, mixes, choices, shares, lengths in self._turns:
            paid = prices.worth(job, shares)
            if job in prices.turns:
                paid += prices.charged(job, lengths)[choices]
            # Who pays nothing only takes time.
            worth[mixes] += paid if paid.any() else -np.inf
        found = np.flatnonzero(worth > above)
        found = found[np.argsort(-worth[found], kind="stable")]
        chosen: dict[frozenset[int], Guess] = {}
        for mix in found[:_LOOKED_AT].tolist():
            amounts = dict(self._points[at][choice] for at, choice in self._listed.mix(mix))
            chosen.setdefault(frozenset(amounts), Guess(amounts, float(worth[mix])))
            if len(chosen) == most:
                break
        return list(chosen.values())


#: Who finds good mixes on one type of block.
Guesser = BlockKnapsack | BlockList


def guesser_of(columns: Columns, block: int) -> Guesser:
    """Return who finds good mixes on a type of block: a list of all of them, where there is one."""
    problem = columns.problem
    listed = problem.listed_mixes(problem.blocks[block])
    return BlockKnapsack(columns, block) if listed is None else BlockList(columns, block, listed)
