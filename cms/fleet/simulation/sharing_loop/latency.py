"""What slowdowns do to single requests: the event loop on a sample of GPUs, minute by minute."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import reference
from ..arrivals import NEVER
from ..kernel import ALONE
from ..model import SECOND, Station
from ..state import UNDER_WAY, finished, new_state, with_room
from .fleet import MILLION

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BATCH_NS", "SampledGpu", "replayed"]

#: How long a batch of 1, 2, ... requests takes alone, in nanoseconds: of a service that is made up.
BATCH_NS = tuple(25_000_000 + 5_000_000 * n for n in range(1, 6))
#: Each minute is represented by so many seconds of it.
_SECONDS = 2
#: A service that is never idle has no 99th percentile; the activity counts for at most so much.
_BUSIEST = 9_000
_NO_TIMES = np.zeros(0, dtype=np.int64)
_NOBODY = np.zeros(0, dtype=np.int32)


class SampledGpu(NamedTuple):
    """What the requests to a GPU's online service took.

    Attributes
    ----------
    gpu : int
    requests : int
    p99_ms, alone_p99_ms : Fraction
        The 99th percentile beside the offline work, and of the same requests without any.
    """

    gpu: int
    requests: int
    p99_ms: Fraction
    alone_p99_ms: Fraction


def replayed(
    gpu: int, activity: NDArray[np.int64], slowdown: NDArray[np.int64], seed: int
) -> SampledGpu:
    """Send requests to a GPU all day, with and without what slows it down.

    The service is a made-up one: a process with batches of up to 5 requests, :data:`BATCH_NS`; it
    is asked as often as keeps it as busy as the activity says. Two seconds stand for each minute.

    Parameters
    ----------
    gpu : int
    activity : numpy.ndarray of int64, shape (T,)
        In hundredths of a per cent, minute by minute.
    slowdown : numpy.ndarray of int64, shape (T,)
        In millionths.
    seed : int

    Examples
    --------
    >>> busy = np.full(60, 5_000)
    >>> found = replayed(0, busy, np.full(60, 1_500_000), 1)
    >>> found.requests == replayed(0, busy, np.full(60, 1_000_000), 1).requests
    True
    >>> found.p99_ms > found.alone_p99_ms * Fraction(3, 2)
    True
    """
    random = np.random.Generator(np.random.PCG64([seed, 3, gpu]))
    fullest = len(BATCH_NS) * SECOND / BATCH_NS[-1]
    span = _SECONDS * SECOND
    arrivals = []
    for minute, active in enumerate(np.minimum(activity, _BUSIEST).tolist()):
        count = int(random.poisson(_SECONDS * fullest * active / 10_000))
        arrivals.append(np.sort(random.integers(minute * span, (minute + 1) * span, count)))
    plain = np.full(len(slowdown), MILLION, dtype=np.int64)
    beside, alone = (_latencies(arrivals, factors) for factors in (slowdown, plain))
    return SampledGpu(gpu, len(beside), _p99(beside), _p99(alone))


def _latencies(arrivals: list[NDArray[np.int64]], factors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Let a station work off arrivals while its batches take so many millionths of their time."""
    largest = max((len(each) for each in arrivals), default=0)
    station = Station(0, Fraction(1), 1, BATCH_NS, 0)
    room = 2 * largest + 2 * len(BATCH_NS) + 16
    state = new_state([station], np.ones(1, dtype=np.int64), room)
    base = np.array(BATCH_NS, dtype=np.int64)
    found = []
    pace = factors.tolist()
    # After the last minute what waits is worked off, at its pace.
    for times, factor in zip([*arrivals, _NO_TIMES], [*pace, *pace[-1:]], strict=True):
        state.times[:] = -(-base * factor // MILLION)
        state = with_room(state, len(times))
        done = 0
        until = 0 if len(times) else NEVER
        while True:
            done += reference.advance(
                state, ALONE, times[done:], _NO_TIMES, _NOBODY, _NOBODY, until
            )
            tags, ends = finished(state, NEVER)
            found.append(ends - (tags >> 1))
            if done == len(times) and not (until and state.counts[UNDER_WAY]):
                break
    return np.concatenate(found) if found else _NO_TIMES


def _p99(latencies: NDArray[np.int64]) -> Fraction:
    if not len(latencies):
        return Fraction(0)
    place = -(-99 * len(latencies) // 100) - 1
    return Fraction(int(np.partition(latencies, place)[place]), 10**6)
