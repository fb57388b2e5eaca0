"""Offline jobs: what is left of each, where it is, and how long it has waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .fleet import MILLION, MINUTE, MOST_JOBS, NOBODY, Fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NEVER", "Backlog"]

#: In the place of a tick that has not come.
NEVER = -1


class Backlog:
    """The jobs of all offline classes, in the order in which they come.

    Parameters
    ----------
    fleet : Fleet
    ticks : int
        Minutes that are simulated.
    job_hours : float
        How long a job takes alone, on average; drawn for each.
    per_hour : float
        Jobs that come each hour beside those that are there at first, on average; of classes as
        these are counted.
    seed : int

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

    Examples
    --------
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> backlog = Backlog(Fleet.of(posed([2], [3], [[5]])), 60, 2, 0, seed=0)
    >>> backlog.waiting(0).tolist(), bool((backlog.left > 0).all())
    ([0, 1, 2], True)
    """

    def __init__(
        self, fleet: Fleet, ticks: int, job_hours: float, per_hour: float, *, seed: int
    ) -> None:
        random = np.random.Generator(np.random.PCG64([seed, 2]))
        counts = np.array([each.count for each in fleet.work], dtype=np.int64)
        work = np.repeat(np.arange(len(counts)), counts)
        coming = min(int(random.poisson(per_hour * ticks / MINUTE)), MOST_JOBS)
        if len(work):
            more = np.sort(random.integers(0, max(ticks, 1), coming))
            drawn = work[random.integers(0, len(work), coming)]
            # Those of a class that stand together would be taken before all others.
            work = np.concatenate([work[random.permutation(len(work))], drawn])
            self.arrived = np.concatenate([np.zeros(int(counts.sum()), dtype=np.int64), more])
        else:
            self.arrived = np.zeros(0, dtype=np.int64)
        self.work: NDArray[np.int64] = work
        mean = job_hours * MINUTE
        minutes = np.maximum(random.standard_exponential(len(work)) * mean, 1)
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
        there = self.arrived < ticks
        return self.waited(np.flatnonzero(there), ticks)

    def completion(self) -> NDArray[np.int64]:
        """Return the minutes from arrival to end of each job that has ended."""
        done = self.ended >= 0
        found: NDArray[np.int64] = (self.ended - self.arrived)[done]
        return found
