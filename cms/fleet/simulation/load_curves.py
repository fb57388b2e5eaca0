"""Load curves by simulation: what latency an operating point keeps at each of several rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvalidOption
from ...values.numbers import Number, shown
from ..serving.fills import FillTimes, fills_of
from ..serving.load_curve import LoadCurve, PointKey, key_of
from ..serving.operating_point import OperatingPoint
from ..serving.service import require_late_share
from . import kernel, reference
from .model import LONGEST_NS, SECOND, Station
from .state import LOGGED, new_state, with_room
from .statistics import student

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LOADS", "latencies", "load_curves", "quantile_above", "run_lengths"]

#: The rates of a curve, as shares of the throughput.
LOADS = tuple(
    Fraction(parts, 1000)
    for parts in (50, 150, 300, 450, 550, 650, 720, 780, 830, 870, 900, 925, 945, 960, 975, 985)
)
#: So many requests at each rate.
REQUESTS = 100_000
_MILLISECOND = 10**6
_PARTS = 20
#: Of a run, so much is left out at its start, when nobody waits yet.
_WARM_UP = 50
_WORTH_COMPILING = 100_000
# A queue at load r forgets its past in some 2 / (1 - r)^2 requests. A run of 500 / (1 - r)^2 tells
# its longest latencies; of thirty shorter ones, some miss the rare long queues altogether.
_TELLING = 500
#: Near full load a run is up to so many times as long; beyond, the rate is left out.
_LONGER = 25
#: Few of 20 parts have the long queues, so their means are skewed. So much wider, 99 % is 99 %: of
#: 300 runs of the least length one end was below the truth, 8 with 1.3, 21 as it is.
_WIDER = 2
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

    Parameters
    ----------
    points : iterable of OperatingPoint
    measured : iterable of OperatingPoint, optional
        Where smaller batches are looked up that say how long a batch takes that is not full; by
        default `points`.
    late_share : number, default 0.01
        Latencies are the upper ends of 99 % intervals of what all but this share keep.
    requests : int, default 100,000
        At each of the 16 rates. Near full load it takes 500 / (1 - load)^2 to tell: as many are
        simulated where these are more, if they are at most 25 times `requests`; else the rate is
        left out. 100,000 are enough for all, 1,000 for loads up to 83 %.
    seed : int, default 0
        All points and rates get the same gaps between arrivals, stretched.
    on_progress : callable, optional
        Gets the points that are done and all.
    stopped : callable, optional
        Asked after each point; if it says so, what is done is returned.

    Returns
    -------
    dict
        By what names a point; see :func:`cms.fleet.as_problem`.

    Examples
    --------
    >>> point = OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 8, 320, 25)
    >>> (curve,) = load_curves([point], requests=1000).values()
    >>> len(curve.rates_rps), curve.evidence, 100 < curve.sustained(Fraction(55)) < 320
    (9, 'simulated', True)
    """
    share = require_late_share(late_share, "the load curves")
    if share * requests < _LATE_REQUESTS:
        raise InvalidOption(
            f"{requests:,} requests at each rate tell nothing of a late share of {shown(share)}; "
            f"expected at least {math.ceil(_LATE_REQUESTS / share):,}"
        )
    chosen = list(points)
    fills = fills_of(chosen, chosen if measured is None else measured)
    lengths = run_lengths(requests)
    gaps = np.random.Generator(np.random.PCG64(seed)).exponential(size=max(lengths))
    unit = np.cumsum(gaps)
    advance = _loop(len(chosen) * sum(lengths))
    found = {}
    for done, point in enumerate(chosen):
        if stopped():
            break
        key = key_of(point)
        found[key] = _curve(point, fills[key], unit, lengths, share, advance)
        if on_progress is not None:
            on_progress(done + 1, len(chosen))
    return found


def run_lengths(requests: int) -> list[int]:
    """Return how many requests each rate of :data:`LOADS` gets, without the last that get none.

    Parameters
    ----------
    requests : int
        At low rates.

    Examples
    --------
    >>> run_lengths(100_000)[-4:], LOADS[len(run_lengths(100_000)) - 1]
    ([165290, 312500, 800000, 2222223], Fraction(197, 200))
    """
    telling = [max(requests, math.ceil(_TELLING / (1 - load) ** 2)) for load in LOADS]
    return [each for each in telling if each <= _LONGER * requests]


def _curve(
    point: OperatingPoint,
    fills: FillTimes,
    unit: NDArray[np.float64],
    lengths: Sequence[int],
    late_share: Fraction,
    advance: Callable[..., int],
) -> LoadCurve:
    times = [math.ceil(fills.at(n) * _MILLISECOND) for n in range(1, point.batch + 1)]
    full = Fraction(1000 * point.processes * point.batch) / point.batch_ms
    if times[-1] * (len(unit) + point.batch) > LONGEST_NS:
        raise point.fault(
            f"{point}: {len(unit):,} requests may take longer than nine years; simulate fewer, or "
            "leave it out"
        )
    rates, kept = [], []
    for load, requests in zip(LOADS, lengths, strict=False):
        # written with few digits; a little less than the share is as good
        rate = _short(full * load)
        found = latencies(times, point.processes, unit[:requests] * (SECOND / float(rate)), advance)
        rates.append(rate)
        kept.append(Fraction(-(-quantile_above(found, late_share) // 10**4), 100))
    return LoadCurve(rates, kept, late_share, "simulated")


def _short(rate: Fraction) -> Fraction:
    digits = 5 - math.floor(math.log10(rate))
    return Fraction(math.floor(rate * Fraction(10) ** digits), 1) / Fraction(10) ** digits


def latencies(
    times: Sequence[int],
    processes: int,
    arrivals: NDArray[np.float64],
    advance: Callable[..., int] = reference.advance,
) -> NDArray[np.int64]:
    """Return the latencies of requests at one instance in the order of their arrivals, warmed up.

    Parameters
    ----------
    times : sequence of int
        Nanoseconds of a batch of 1, 2, ...
    processes : int
    arrivals : array
        Nanoseconds, ascending.
    advance : callable, optional
        The loop: the plain one, or the compiled one.

    Examples
    --------
    >>> latencies([10, 12], 1, np.arange(0, 1000, 8.0))[-2:].tolist()
    [16, 18]
    """
    at = np.floor(arrivals).astype(np.int64)
    none = np.zeros(0, dtype=np.int64)
    station = Station(0, Fraction(1), processes, tuple(times), 0)
    state = new_state([station], np.ones(1, dtype=np.int64), len(at) + len(times))
    state = with_room(state, len(at))
    advance(state, kernel.ALONE, at, none, none, none, 2**62)
    logged = int(state.counts[LOGGED])
    found: NDArray[np.int64] = state.log_ends[:logged] - (state.log_tags[:logged] >> 1)
    return found[len(found) // _WARM_UP :]


def quantile_above(found: NDArray[np.int64], late_share: Fraction) -> int:
    """Return a latency beyond which at most this share is, with 99 % confidence, by batch means.

    Examples
    --------
    >>> quantile_above(np.arange(100_000) % 1000, Fraction(1, 100))
    990
    """
    found = found[: len(found) // _PARTS * _PARTS]
    each = len(found) // _PARTS
    # the latencies sought are among the longest
    least = max(len(found) - math.ceil(late_share * len(found)) - 1, 0)
    shortest = np.partition(found, least)[least]
    at = np.flatnonzero(found >= shortest)
    longest, part = found[at], at // each
    ordered = np.unique(longest)
    share, spread = float(late_share), _WIDER * student(_PARTS - 1)
    low, high = 0, len(ordered) - 1
    while low < high:
        middle = (low + high) // 2
        means = np.bincount(part[longest > ordered[middle]], minlength=_PARTS) / each
        mean, error = float(means.mean()), float(means.std(ddof=1)) / math.sqrt(_PARTS)
        if 0 < mean < share:
            # as large as it would be if the whole tolerated share were late (Wilson's interval)
            error *= math.sqrt(share * (1 - share) / (mean * (1 - mean)))
        if mean + spread * error <= share:
            high = middle
        else:
            low = middle + 1
    return int(ordered[low])


def _loop(requests: int) -> Callable[..., Any]:
    if requests < _WORTH_COMPILING:
        return reference.advance
    from .compiled import advance

    return advance  # type: ignore[no-any-return]
