"""Offline jobs: what is left of each, where it is, and how long it has waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .fleet import MILLION, MINUTE, MOST_JOBS, NOBODY, Fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: In the place of a tick that has not come.
NEVER = -1


class Backlog:
    """The jobs of all offline classes, in the order in which they come; drawn by a seed.

    Parameters
    ----------
    fleet : Fleet
    ticks : int
        Minutes that are simulated.
    job_hours : float
        How long a job takes alone, on average.
    per_hour : float
        Jobs that come each hour beside those that are there at first, on average; of classes as
        these are counted.

    Attributes
    ----------
    work : numpy.ndarray of int64, shape (J,)
        The offline class of each.
    left : numpy.ndarray of int64
        Millionths of a minute that it would still take alone.
    arrived, begun, ended : numpy.ndarray of int64
        Ticks; ``NEVER`` where that has not come.
    gpu : numpy.ndarray of int64
        Where it runs, or -1.
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
        found: NDArray[np.int64] = until - self.arrived[job]
        return found

    def waits(self, ticks: int) -> NDArray[np.int64]:
        """Return how long each job that came waited until it first ran, or waits still."""
        return self.waited(np.flatnonzero(self.arrived < ticks), ticks)

    def completion(self) -> NDArray[np.int64]:
        """Return the minutes from arrival to end of each job that has ended."""
        found: NDArray[np.int64] = (self.ended - self.arrived)[self.ended >= 0]
        return found
