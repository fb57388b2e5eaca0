"""Statistics of latencies: exact counts of late requests, a histogram, batch means."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .model import SECOND, Ints

# A float's leading bits: 1,024 bins an octave, so each is 0.1 % wide, and the same on any machine.
_SHIFT = 42
_FIRST_BIN = 1023 << 10  # of 1 nanosecond
_BINS = 63 << 10
#: Cells of equal time a run is watched in; a longer run than was expected makes them longer.
_CELLS = 600
#: Parts whose means the interval is made from.
_PARTS = 20
#: More requests than any run has.
NEVER_ENOUGH = 2**62
# In units of 1 / (1 - load)^2 requests, half the time in which a queue forgets its past: of all
# requests, and of those of each queue.
_OF_ALL, _OF_EACH = 100, 30
_CONFIDENCE_Z = 2.5758293035489004  # 99 %, two-sided


class Verdict(StrEnum):
    """Whether a limit was met.

    ``UNDECIDED``: the interval holds the tolerated share, or is below it after fewer requests than
    tell of rare long queues; a longer run would tell. ``NOT_REPLAYED``: the service counts on a
    curve that is not of batches.
    """

    MET = "met"
    VIOLATED = "violated"
    UNDECIDED = "undecided"
    NO_LIMIT = "no limit"
    NOT_REPLAYED = "not replayed"


class Interval(NamedTuple):
    """The two ends of a 99 % interval, rounded outwards to millionths."""

    low: Fraction
    high: Fraction


class Tally:
    """Counts of one service's requests, over some expected time.

    A request that takes longer than the limit is late; without a limit, only a lost one. A limit is
    not met by fewer requests than are needed. The late share's interval is that of batch means: the
    run is split into some 20 parts of equal time, which are nearly independent of each other though
    requests within one are not (S. Asmussen and P. W. Glynn, *Stochastic Simulation*, Springer
    2007, section IV.5).
    """

    def __init__(self, limit_ns: int | None, horizon_ns: int, needed: int = 0) -> None:
        self.limit_ns, self.needed = limit_ns, needed
        self.requests = self.late = self.lost = self.total_ns = self.largest = 0
        self.cell_ns = max(-(-horizon_ns // _CELLS), 1)
        self._bins = np.zeros(_BINS, dtype=np.int64)
        # requests, late ones, and their latencies: whole seconds, and the nanoseconds beyond them
        self._counts = np.zeros((4, _CELLS), dtype=np.int64)

    def add(self, clocks: Ints, latencies: Ints) -> None:
        """Count requests that were answered, by when they first arrived."""
        if not len(clocks):
            return
        late = latencies > (NEVER_ENOUGH if self.limit_ns is None else self.limit_ns)
        self.requests += len(clocks)
        self.late += int(np.count_nonzero(late))
        seconds, rest = np.divmod(latencies, SECOND)  # whose sums stay below 2**53
        self.total_ns += int(seconds.sum()) * SECOND + int(rest.sum())
        self.largest = max(self.largest, int(latencies.max()))
        bins = (latencies.astype(np.float64).view(np.int64) >> _SHIFT) - _FIRST_BIN
        first = int(bins.min())
        found = np.bincount(bins - first)
        self._bins[first : first + len(found)] += found
        cells = self._cells(clocks)
        for row, weights in enumerate((None, late, seconds, rest)):
            self._counts[row] += np.bincount(cells, weights, _CELLS).astype(np.int64)

    def lose(self, clocks: Ints) -> None:
        """Count requests that were never answered; they are late."""
        self.requests += len(clocks)
        self.late += len(clocks)
        self.lost += len(clocks)
        if len(clocks):
            self._counts[:2] += np.bincount(self._cells(clocks), minlength=_CELLS)

    def _cells(self, clocks: Ints) -> Ints:
        while clocks.max() >= self.cell_ns * _CELLS:
            half = self._counts[:, ::2] + self._counts[:, 1::2]
            self._counts[:] = 0
            self._counts[:, : _CELLS // 2] = half
            self.cell_ns *= 2
        return clocks // self.cell_ns

    @property
    def late_share(self) -> Fraction:
        """Late requests over all."""
        return Fraction(self.late, self.requests or 1)

    def quantile(self, share: Fraction) -> int:
        """Return a latency, at most 0.1 % too long, that this share did not exceed."""
        if not (answered := self.requests - self.lost):
            return 0
        at = int(np.searchsorted(np.cumsum(self._bins), math.ceil(share * answered)))
        end = np.array([at + 1 + _FIRST_BIN], dtype=np.int64) << _SHIFT
        return min(int(end.view(np.float64)[0]), self.largest)

    @property
    def cells(self) -> Ints:
        """Requests, late ones, seconds and nanoseconds of latency, each in every cell of time."""
        used = np.flatnonzero(self._counts[0])
        return self._counts[:, : int(used[-1]) + 1 if len(used) else 0]

    def interval(self) -> Interval:
        """Return the 99 % interval of the late share.

        Wilson's, with the number of independent requests that fits the variance between parts.
        """
        if not self.requests:
            return Interval(Fraction(0), Fraction(1))
        parts = self._parts()
        share, free = float(self.late_share), len(parts) - 1
        count, t = float(self.requests), student(max(free, 1))
        if free > 0 and 0 < share < 1:
            errors = parts[:, 1] - share * parts[:, 0]
            variance = float((errors**2).sum()) * (free + 1) / free / self.requests**2
            count = min(count, share * (1 - share) / variance) if variance > 0 else count
        spread = t * t / count
        middle = (share + spread / 2) / (1 + spread)
        half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
        low = max(middle - half, 0.0) if self.late else 0.0
        ends = math.floor(low * 10**6), math.ceil(min(middle + half, 1.0) * 10**6)
        return Interval(*(Fraction(end, 10**6) for end in ends))

    def verdict(self, late_share: Fraction) -> Verdict:
        """Say whether at most this share is late, as far as the run tells."""
        if self.limit_ns is None:
            return Verdict.NO_LIMIT
        low, high = self.interval()
        if not self.requests or (high <= late_share and self.requests >= self.needed):
            return Verdict.MET
        if low > late_share or self.overloaded(late_share):
            return Verdict.VIOLATED
        return Verdict.UNDECIDED

    def overloaded(self, late_share: Fraction) -> bool:
        """Whether the latency grew from tenth to tenth, to twice the first, too many late then."""
        parts = self._parts()
        if len(parts) < _PARTS:
            return False
        tenths = parts.reshape(10, -1, 4).sum(axis=1)
        if not tenths[:, 0].all():
            return False
        means = (tenths[:, 2] * float(SECOND) + tenths[:, 3]) / tenths[:, 0]
        too_many = self.limit_ns is None or tenths[-1, 1] > float(late_share) * tenths[-1, 0]
        return bool((np.diff(means) > 0).all() and means[-1] > 2 * means[0] and too_many)

    def _parts(self) -> Ints:
        """Requests, late ones and latency of each of 20 parts of equal time, or of fewer."""
        cells = self.cells.T
        if len(cells) < _PARTS:
            return cells
        edges = np.arange(_PARTS) * len(cells) // _PARTS
        return np.add.reduceat(cells, edges, axis=0)


def requests_needed(load: Fraction, queues: int) -> int:
    """Return how many Poisson requests tell whether a limit is met that nearly all meet.

    The latencies beyond it come in rare long queues; a shorter run, which begins with none, may not
    have had its share of them. At full load no number is enough.
    """
    if load >= 1:
        return NEVER_ENOUGH
    return math.ceil(max(_OF_ALL, _OF_EACH * queues) / (1 - load) ** 2)


def student(free: int) -> float:
    """Student's t at 99.5 %, by the Cornish-Fisher expansion (to 0.5 % from 5 degrees on)."""
    z = _CONFIDENCE_Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / free ** (i + 1) for i, term in enumerate(terms))
