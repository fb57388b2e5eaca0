"""What slowdowns do to single requests: a sample of GPUs, minute by minute."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..model import SECOND
from .fleet import MILLION

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How long a batch of 1, 2, ... requests takes alone, in nanoseconds: of a service that is made up.
BATCH_NS = tuple(25_000_000 + 5_000_000 * n for n in range(1, 6))
#: Each minute is represented by so many nanoseconds of it.
_SPAN = 2 * SECOND
#: A service that is never idle has no 99th percentile; the activity counts for at most so much.
_BUSIEST = 9_000


class SampledGpu(NamedTuple):
    """What the requests to a GPU's online service took."""

    gpu: int
    requests: int
    #: The 99th percentile beside the offline work, and of the same requests without any
    p99_ms: Fraction
    alone_p99_ms: Fraction


def replayed(
    gpu: int, activity: NDArray[np.int64], slowdown: NDArray[np.int64], seed: int
) -> SampledGpu:
    """Send requests to a GPU all day, with and without what slows it down.

    The service is a made-up one: a process with batches of up to 5 requests, :data:`BATCH_NS`; it
    is asked as often as keeps it as busy as the activity says, in hundredths of a per cent. Two
    seconds stand for each minute. Slowdowns are in millionths.
    """
    random = np.random.Generator(np.random.PCG64([seed, 3, gpu]))
    fullest = len(BATCH_NS) * SECOND / BATCH_NS[-1]
    arrivals: list[int] = []
    for minute, active in enumerate(np.minimum(activity, _BUSIEST).tolist()):
        count = int(random.poisson(_SPAN // SECOND * fullest * active / 10_000))
        arrivals += np.sort(random.integers(minute * _SPAN, (minute + 1) * _SPAN, count)).tolist()
    beside, alone = (
        latencies(arrivals, factors) for factors in (slowdown.tolist(), [MILLION] * len(slowdown))
    )
    return SampledGpu(gpu, len(beside), _p99(beside), _p99(alone))


def latencies(arrivals: list[int], factors: list[int]) -> list[int]:
    """Let a process work off arrivals while its batches take so many millionths of their time.

    A batch takes what those take of the minute of the first request that is not before its start,
    or of the one after that of the last request before it, if that is sooner.
    """
    found: list[int] = []
    end, n = 0, len(arrivals)

    def minute(at: int) -> int:
        return arrivals[at] // _SPAN if at < n else len(factors) - 1

    while (first := len(found)) < n:
        start = max(end, arrivals[first])  # idle, it takes who came; else all who came before
        later = bisect_left(arrivals, start, first)
        taken = min(max(later - first, 1), len(BATCH_NS))
        factor = factors[min(minute(later), minute(max(later - 1, first)) + 1)]
        end = start + -(-BATCH_NS[taken - 1] * factor // MILLION)
        found += [end - arrival for arrival in arrivals[first : first + taken]]
    return found


def _p99(latencies: list[int]) -> Fraction:
    if not latencies:
        return Fraction(0)
    return Fraction(sorted(latencies)[-(-99 * len(latencies) // 100) - 1], MILLION)
