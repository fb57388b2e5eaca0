"""Batched queues (facts 1 and 2, and the exact chain): what the capacity rule's table rests on.

**Statement.** An instance has c processes that take min(queue, b) requests at once, greedily, for a
time T(n) <= L that may depend on their number n. Let Q(t) count those that wait.

1. Q(t + L) <= max(Q(t) - cb, 0) + A(t, t+L], for all arrivals A. So a request that finds fewer than
   m c b waiting starts within m L.
2. If A(s, t] <= sigma + r (t - s) for all s < t, and r L <= c b, then every latency is at most
   (1 + ceil((sigma + r L) / (c b))) L.
3. One process, T(n) = L, Poisson arrivals: the late share is what ``checker/loads.py`` says, and
   each entry of ``cms/fleet/serving/loads/certified.json`` keeps its late share at its load and at
   every lower one.

**Machine-checked.** 1 and 2 on random paths, Poisson and bursty, with random T, at every start and
end of a window that matters, by a plain replay in integers. 3: entries of the table in integers,
each also raised, which must be refused (a sample here, all of them in the long run); and the share
that the chain computes is between the observed ones of a replay.

**On paper.** 1: if a process idles at t, nobody waits; otherwise all c are busy, each ends once
within (t, t + L] and starts again, with a full batch, or with all that wait. 2: going back to an
empty queue, Q(t) <= max over j of (sigma + r (j + 1) L - j c b). 3: in ``checker/loads.py``.
"""

from __future__ import annotations

import heapq
import json
import random
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from .checker.loads import entries, why_not
from .finding import Tally, require, theorem

#: By so much more than a table says, it must be refused.
RAISED = Fraction(102, 100)


class Path(NamedTuple):
    """One run of an instance in whole times: T(1)...T(b), arrivals, each request's batch."""

    c: int
    b: int
    times: Sequence[int]
    arrivals: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]

    @property
    def longest(self) -> int:
        """L."""
        return max(self.times)

    def waiting(self, t: int) -> int:
        """Count those that wait after all that happens at t."""
        return bisect_right(self.arrivals, t) - bisect_right(self.starts, t)


def replay(c: int, b: int, times: Sequence[int], arrivals: Sequence[int]) -> Path:
    """Serve arrivals in their order: an idle process takes min(queue, b) at once."""
    free, starts, ends = [0] * c, list[int](), list[int]()
    at = 0
    while at < len(arrivals):
        start = max(heapq.heappop(free), arrivals[at])
        fill = min(b, bisect_right(arrivals, start) - at)
        end = start + times[fill - 1]
        starts += [start] * fill
        ends += [end] * fill
        heapq.heappush(free, end)
        at += fill
    return Path(c, b, times, arrivals, starts, ends)


def random_path(rng: random.Random, requests: int = 60) -> Path:
    """Draw an instance and its arrivals: Poisson, in bursts, or all but regular."""
    c, b = rng.randint(1, 4), rng.choice([1, 2, 3, 8])
    longest = rng.randint(5, 60)
    times = sorted(rng.randint(1, longest) for _ in range(b - 1)) if rng.random() < 0.7 else []
    if len(times) < b - 1:
        times = [rng.randint(1, longest) for _ in range(b - 1)]  # not even monotone
    times = [*times, longest]
    mean = longest / (c * b * rng.uniform(0.3, 1.3))
    shape = rng.choice([0.1, 1, 1, 9])
    now, arrivals = 0, []
    for _ in range(requests):
        now += int(rng.gammavariate(shape, mean / shape) + rng.random())
        arrivals.append(now)
    return replay(c, b, times, arrivals)


def require_fact_1(path: Path) -> None:
    """Compare Q(t + L) with Q(t) and the arrivals between, and waits with what was found."""
    long, cb = path.longest, path.c * path.b
    moments = {t + shift for t in (*path.arrivals, *path.ends) for shift in (0, -1, -long)}
    for t in moments:
        came = bisect_right(path.arrivals, t + long) - bisect_right(path.arrivals, t)
        most = max(path.waiting(t) - cb, 0) + came
        found = path.waiting(t + long)
        require(found <= most, f"at {t}: {found} wait a batch time later, at most {most} may")
    for at, (arrival, start) in enumerate(zip(path.arrivals, path.starts, strict=True)):
        # of the same moment, those before it in the line
        found = at - bisect_right(path.starts, arrival - 1, hi=at)
        rounds = found // cb + 1
        require(start - arrival <= rounds * long, f"request {at} waits {start - arrival}")


def require_fact_2(path: Path) -> Fraction:
    """Bound the latencies by the arrivals' envelope; return the largest as a share of that."""
    long, cb = path.longest, path.c * path.b
    rate = Fraction(cb, long)
    sigma, lowest = Fraction(0), -rate * path.arrivals[0]
    for n, t in enumerate(path.arrivals):
        # the most that arrive beyond the rate, in a window that ends here
        lowest = min(lowest, n - rate * t)
        sigma = max(sigma, n + 1 - rate * t - lowest)
    bound = (1 - (-(sigma + rate * long) // cb)) * long
    latency = max(end - t for t, end in zip(path.arrivals, path.ends, strict=True))
    require(latency <= bound, f"a latency of {latency}, at most {bound} is proved")
    return Fraction(latency) / bound


@cache
def certified() -> Any:
    """Return the table of certified loads, as its file has it."""
    folder = files("cms.fleet.serving") / "loads"
    return json.loads((folder / "certified.json").read_text("utf-8"))


@theorem(
    "Batched queues",
    "facts 1 and 2 on random paths, entries of the table in integers",
    ratio="latency / bound of fact 2",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 100) -> None:
    """Check all of it; an entry of the table for every tenth path, all of them from 15,390 on."""
    for number in range(cases):
        with tally.case(f"path {number}"):
            path = random_path(random.Random(f"queueing {seed} {number}"))
            require_fact_1(path)
            tally.seen(require_fact_2(path))
    table = list(entries(certified()))
    every = max(1, 10 * len(table) // cases)
    for batch, ratio, late_share, load in table[seed % every :: every]:
        with tally.case(f"batch {batch}, ratio {ratio}, late share {late_share}"):
            require(not (why := why_not(batch, ratio, late_share, load)), why)
            too_much = RAISED * load
            refused = why_not(batch, ratio, late_share, too_much)
            require(bool(refused), f"load {too_much} is not refused")
