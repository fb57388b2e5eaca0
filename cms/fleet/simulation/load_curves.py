"""Load curves by simulation: the latency of an operating point at each of several rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from ...errors import InvalidOption
from ...values.numbers import Number, shown
from ..serving.load_curve import LoadCurve, PointKey, fills_of, key_of
from ..serving.operating_point import OperatingPoint
from ..serving.service import require_late_share
from .kernel import alone
from .model import LONGEST_NS, MILLISECOND, SECOND, Floats, Ints
from .statistics import student

#: The rates of a curve, as shares of the throughput: close together where latencies bend, also
#: downwards, as those of small batches do between two and three batch times.
LOADS = tuple(
    Fraction(parts, 1000)
    for parts in (
        50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 690, 720, 750, 780, 805,
        830, 850, 870, 885, 900, 925, 930, 935, 945, 960, 975, 980, 985,
    )
)  # fmt: skip
#: Requests at each rate.
REQUESTS = 1_000_000
_PARTS = 20
#: One in 50 requests is left out, at the start of a run, when the queue is still empty.
_WARM_UP = 50
_WORTH_COMPILING = 100_000
# A queue at load r forgets its past in some 2 / (1 - r)^2 requests. A run of 500 / (1 - r)^2 tells
# its longest latencies; of thirty shorter ones, some miss the rare long queues altogether.
_TELLING = 500
#: Near full load a run is 10 times that long, which brings its interval near to the truth ...
_WELL = 10
#: ... but at most 25 times as long as at low rates; where that does not tell, the rate is left out.
_LONGER = 25
#: Where latencies are beyond 16 batch times, where the tables of loads end too, a run is as long
#: as it takes to tell.
_FAR = 16
#: Of none late among n, no more is known (99 %) than a share below 5.3 / n.
_LATE_REQUESTS = 10


def load_curves(
    points: Iterable[OperatingPoint],
    measured: Iterable[OperatingPoint] | None = None,
    *,
    late_share: Number = Fraction(1, 100),
    requests: int = REQUESTS,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[PointKey, LoadCurve]:
    """Simulate each point under Poisson arrivals, by itself, with one queue.

    Keys name a point; see :func:`cms.fleet.build_problem`. A smaller batch takes as long as it did
    among `measured`, by default `points`. Latencies are the upper ends of 99 % intervals of the
    latency that all but the late share of the requests meet. All points and rates get the same gaps
    between arrivals, stretched.

    `requests`: at each of the 31 rates. Near full load 500 / (1 - load)^2 requests tell: ten times
    this number is simulated where it is larger, but at most 25 times `requests`; a rate for which
    that is not enough is left out, and beyond 16 batch times the first number suffices. 100,000 are
    enough for all, 1,000 for loads up to 85 %. Progress is in points; `stopped`, called after each,
    may end the run early.
    """
    share = require_late_share(late_share, "the load curves")
    if share * requests < _LATE_REQUESTS:
        said = f"{requests:,} requests at each rate tell nothing of a late share of {shown(share)}"
        raise InvalidOption(f"{said}; expected at least {math.ceil(_LATE_REQUESTS / share):,}")
    chosen = list(points)
    fills = fills_of(chosen, chosen if measured is None else measured)
    lengths = run_lengths(requests)
    gaps = np.random.Generator(np.random.PCG64(seed)).exponential(size=max(lengths))
    unit = np.cumsum(gaps)
    loop: Callable[..., None] = alone
    if len(chosen) * sum(lengths) >= _WORTH_COMPILING:
        from .compiled import alone as loop
    room = np.empty(max(lengths), dtype=np.int64)

    def simulated(point: OperatingPoint) -> LoadCurve:
        times = fills[key_of(point)].rounded_up(MILLISECOND)
        full = Fraction(1000 * point.processes * point.batch) / point.batch_ms
        if times[-1] * (len(unit) + point.batch) > LONGEST_NS:
            said = f"{len(unit):,} requests may take longer than nine years"
            raise point.fault(f"{point}: {said}; simulate fewer, or leave it out")
        rates, sustained = list[Fraction](), list[Fraction]()
        for load, most in zip(LOADS, lengths, strict=False):
            far = bool(sustained) and sustained[-1] > _FAR * point.batch_ms
            size = min(most, max(lengths[0], _least(load))) if far else most
            # written with six digits; a little less than the share is as good
            unit_rate = Fraction(10) ** (math.floor(math.log10(full * load)) - 5)
            rates.append(full * load // unit_rate * unit_rate)
            gap = SECOND / float(rates[-1])
            found = latencies(times, point.processes, unit[:size], gap, loop, room)
            above = quantile_above(found, share, widened(load, size))
            sustained.append(Fraction(-(-above // 10**4), 100))
        digest = fills[key_of(point)].digest(point.processes)
        return LoadCurve(rates, sustained, share, "simulated", digest)

    curves = dict[PointKey, LoadCurve]()
    for done, point in enumerate(chosen, 1):
        if stopped():
            break
        curves[key_of(point)] = simulated(point)
        if on_progress is not None:
            on_progress(done, len(chosen))
    return curves


def run_lengths(requests: int) -> list[int]:
    """Return how many requests each rate of :data:`LOADS` gets, without the last that get none."""
    most = _LONGER * requests
    least = (each for load in LOADS if (each := _least(load)) <= most)
    return [min(max(requests, _WELL * each), most) for each in least]


def _least(load: Fraction) -> int:
    return math.ceil(_TELLING / (1 - load) ** 2)


def widened(load: Fraction, requests: int) -> float:
    """Return by which factor an interval must be wider than Student's for 99 % to be 99 %.

    Few of 20 parts of a run have the long queues, so their means are skewed, the less so the longer
    the run is: twice as wide at 500 / (1 - load)^2 requests; the rest falls with the root of the
    length. Of 6,000 runs of one process, whose truth the exact chain tells (batches of 1, 8, 32 at
    loads of 0.5 to 0.9, runs of 1 to 20 times that length), 17 ends were below it, at most 3 of the
    300 of a kind; of Student's 106, at most 19.
    """
    return 1 + math.sqrt(_TELLING / requests) / (1 - float(load))


def latencies(
    times: Sequence[int],
    processes: int,
    arrivals: Floats,
    gap: float,
    loop: Callable[..., None] = alone,
    room: Ints | None = None,
) -> Ints:
    """Return the latencies of requests at one instance in the order of their arrivals, warmed up.

    Times are nanoseconds of a batch of 1, 2, ...; arrivals ascend, in units of `gap` nanoseconds.
    The room, if it suffices, is written over and returned.
    """
    size = len(arrivals)
    found = np.empty(size, dtype=np.int64) if room is None or len(room) < size else room[:size]
    loop(np.array(times), np.zeros(processes, dtype=np.int64), arrivals, float(gap), found)
    return found[size // _WARM_UP :]


def quantile_above(found: Ints, late_share: Fraction, wider: float = 1.0) -> int:
    """Return a latency beyond which at most this share is, with 99 % confidence, by batch means.

    Latencies are in the order of the arrivals. `wider`: the interval's width over Student's.
    """
    each = len(found) // _PARTS
    found = found[: each * _PARTS]
    # the latencies sought are among the longest
    first = len(found) - min(math.ceil(late_share * len(found)) + 1, len(found))
    at = np.flatnonzero(found >= np.partition(found, first)[first])
    open_, part = found[at], at // each
    beyond = np.zeros(_PARTS, dtype=np.int64)  # requests that no further step looks at
    share, spread = float(late_share), wider * student(_PARTS - 1)
    low, high = int(open_.min()), int(open_.max())
    while low < high:
        middle = (low + high) // 2
        above = open_ > middle
        late = beyond + np.bincount(part[above], minlength=_PARTS)
        mean = float((late / each).mean())
        error = float((late / each).std(ddof=1)) / math.sqrt(_PARTS)
        if 0 < mean < share:  # as large as if the whole share were late (Wilson's interval)
            error *= math.sqrt(share * (1 - share) / (mean * (1 - mean)))
        if mean + spread * error <= share:
            high, beyond, above = middle, late, ~above
        else:
            low = middle + 1
        open_, part = open_[above], part[above]
    return low
