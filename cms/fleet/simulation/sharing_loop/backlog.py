"""Offline jobs one by one, and what a day has been like, counted in whole numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from .fleet import MILLION, MINUTE, MOST_JOBS, NOBODY, Fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: In the place of a tick that has not come.
NEVER = -1
#: Slowdowns are told apart by thousandths, up to so many.
_FINEST, _BINS = 1_000, 100_001


class Backlog:
    """The jobs of all offline classes, in the order in which they come; drawn by a seed.

    Arrays with an entry a job: its class, millionths of a minute that are left of it alone, the
    ticks when it came, began and ended (or ``NEVER``), and the GPU where it runs (or ``NOBODY``).
    Jobs take so many hours alone on average, and so many come each hour beside the first ones.
    """

    def __init__(
        self, fleet: Fleet, ticks: int, job_hours: float, per_hour: float, *, seed: int
    ) -> None:
        random = np.random.Generator(np.random.PCG64([seed, 2]))
        counts = np.array([each.count for each in fleet.work], dtype=np.int64)
        work = np.repeat(np.arange(len(counts)), counts)
        coming = min(int(random.poisson(per_hour * ticks / MINUTE)), MOST_JOBS)
        self.arrived = np.zeros(len(work), dtype=np.int64)
        if len(work):
            more = np.sort(random.integers(0, max(ticks, 1), coming))
            drawn = work[random.integers(0, len(work), coming)]
            # Those of a class that stand together would be taken before all others.
            work = np.concatenate([work[random.permutation(len(work))], drawn])
            self.arrived = np.concatenate([self.arrived, more])
        self.work: NDArray[np.int64] = work
        minutes = np.maximum(random.standard_exponential(len(work)) * (job_hours * MINUTE), 1)
        self.left: NDArray[np.int64] = np.rint(minutes * MILLION).astype(np.int64)
        self.gpu = np.full(len(work), NOBODY, dtype=np.int64)
        self.begun = np.full(len(work), NEVER, dtype=np.int64)
        self.ended = np.full(len(work), NEVER, dtype=np.int64)

    def waiting(self, tick: int) -> NDArray[np.int64]:
        """Return the jobs that are there, and neither run nor have ended; the first ones first."""
        return np.flatnonzero((self.arrived <= tick) & (self.gpu == NOBODY) & (self.ended < 0))

    def begin(self, job: NDArray[np.int64], gpu: NDArray[np.int64], tick: int) -> None:
        """Let jobs run on GPUs."""
        self.gpu[job] = gpu
        self.begun[job] = np.where(self.begun[job] < 0, tick, self.begun[job])

    def stop(self, job: NDArray[np.int64]) -> None:
        """Take jobs from their GPUs; what they have done is kept."""
        self.gpu[job] = NOBODY

    def advance(
        self, job: NDArray[np.int64], done: NDArray[np.int64], tick: int
    ) -> NDArray[np.bool_]:
        """Let jobs get on by millionths of a minute; return which of them have ended."""
        self.left[job] -= done
        over = self.left[job] <= 0
        self.ended[job[over]] = tick + 1
        self.gpu[job[over]] = NOBODY
        return over

    def waited(self, job: NDArray[np.int64], tick: int) -> NDArray[np.int64]:
        """Return how long jobs had waited when they first ran, or have waited if they did not."""
        until = np.where(self.begun[job] >= 0, self.begun[job], tick)
        return np.asarray(until - self.arrived[job])

    def waits(self, ticks: int) -> NDArray[np.int64]:
        """Return how long each job that came waited until it first ran, or waits still."""
        return self.waited(np.flatnonzero(self.arrived < ticks), ticks)

    def completion(self) -> NDArray[np.int64]:
        """Return the minutes from arrival to end of each job that has ended."""
        return np.asarray((self.ended - self.arrived)[self.ended >= 0])


class Felt:
    """Throughputs and slowdowns of a day; of a sample of GPUs every minute's slowdown is kept.

    Counted are millionths of a minute of work done; GPU-minutes that passed, were shared, and were
    slowed down beyond the limit; the sum of all slowdowns in millionths; jobs that the monitor took
    away, that a matching moved, that got another share, and all other starts.
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
