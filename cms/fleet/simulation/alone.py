"""One instance with one queue: latencies in the order of arrivals, without a heap or a log.

Requests are taken in the order they came, so where they wait need not be kept. What it gives is
what :func:`.kernel.advance` gives for a station that is alone, to the nanosecond, ten times as fast
or more; load curves and the table of loads take some 10^10 requests.
"""

from __future__ import annotations

from typing import Any


def alone(times: Any, ends: Any, arrivals: Any, gap: float, found: Any) -> None:
    """Write the latency of each request into `found`, in nanoseconds, all being idle at first.

    Times are of a batch of 1, 2, ... requests; `ends`, all 0, is written over: when each process is
    idle again. Arrivals are floats that ascend; times the gap, rounded down, they are nanoseconds.
    """
    n, b, c = len(arrivals), len(times), len(ends)
    j = 0
    while j < n:
        now, fill = int(arrivals[j] * gap), 1
        start = ends[0]
        if start <= now:
            start = now  # it is idle, and takes who came
        else:
            while fill < b and j + fill < n and int(arrivals[j + fill] * gap) < start:
                fill += 1
        end = start + times[fill - 1]
        for i in range(j, j + fill):
            found[i] = end - int(arrivals[i] * gap)
        j += fill
        at = 0  # the ends stay in order
        while at + 1 < c and ends[at + 1] < end:
            ends[at] = ends[at + 1]
            at += 1
        ends[at] = end
