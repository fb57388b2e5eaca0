"""What a day has been like, counted minute by minute in whole numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from .fleet import MILLION, Fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Slowdowns are told apart by thousandths, up to so many.
_FINEST, _BINS = 1_000, 100_001


class Felt:
    """Throughputs and slowdowns of a day; of a sample of GPUs every minute's slowdown is kept.

    Attributes
    ----------
    done : int
        Millionths of a minute of offline work, as it takes alone.
    minutes, shared, over : int
        GPU-minutes that have passed, of them those with offline work beside the online side, and of
        them those in which this was slowed down beyond its limit.
    slowed : int
        The sum of all slowdowns, in millionths.
    evictions, moves, restarts, starts : int
        Jobs that the monitor took from a GPU, that a matching moved, that got another share, and
        all starts but these last.
    sampled : list of numpy.ndarray of int64
        The slowdowns of the sample, minute by minute.
    """

    def __init__(self, fleet: Fleet, sample: NDArray[np.int64]) -> None:
        self._limit, self.sample, self._gpus = fleet.limit, sample, fleet.gpus
        self._bins = np.zeros(_BINS, dtype=np.int64)
        self.sampled: list[NDArray[np.int64]] = []
        self.done = self.minutes = self.shared = self.over = self.slowed = 0
        self.evictions = self.moves = self.restarts = self.starts = 0

    def add(
        self, gpus: NDArray[np.int64], part: NDArray[np.int64], slower: NDArray[np.int64]
    ) -> None:
        """Count a minute: what was done on the GPUs that are shared, and how slow these were."""
        alone = self._gpus - len(gpus)
        self.minutes += self._gpus
        self.shared += len(gpus)
        self.done += int(part.sum())
        self.over += int((slower > self._limit[gpus]).sum())
        self.slowed += int(slower.sum()) + MILLION * alone
        bins = np.minimum(-(-slower // _FINEST), _BINS - 1)
        self._bins += np.bincount(bins, minlength=_BINS)
        self._bins[MILLION // _FINEST] += alone
        if len(self.sample):
            now = np.full(self._gpus, MILLION, dtype=np.int64)
            now[gpus] = slower
            self.sampled.append(now[self.sample])

    @property
    def mean(self) -> Fraction:
        """The mean slowdown over all GPUs and minutes, to a millionth, up."""
        return Fraction(-(-self.slowed // self.minutes), MILLION) if self.minutes else Fraction(1)

    def percentile(self, per_cent: int) -> Fraction:
        """Return the slowdown that so many of all GPU-minutes do not exceed, to a thousandth."""
        if not self.minutes:
            return Fraction(1)
        most = np.cumsum(self._bins)
        found = int(np.searchsorted(most, -(-self.minutes * per_cent // 100)))
        return Fraction(found * _FINEST, MILLION)
