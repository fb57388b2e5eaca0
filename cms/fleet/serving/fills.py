"""How long a batch takes that is not full: T(n), from the smaller batches that were measured."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise

from ...errors import InvalidProblem
from ...values.numbers import shown
from .load_curve import PointKey, key_of
from .operating_point import OperatingPoint


@dataclass(frozen=True, slots=True)
class FillTimes:
    """The time of a batch by the number of requests in it.

    Examples
    --------
    >>> times = FillTimes({2: Fraction(4), 8: Fraction(10)})
    >>> [str(times.at(n)) for n in (1, 2, 5, 8)]
    ['4', '4', '7', '10']
    """

    #: Ascending numbers, and times that never fall; the last is the full batch.
    times_ms: Mapping[int, Fraction]

    def __post_init__(self) -> None:
        steps = pairwise(self.times_ms.items())
        if not self.times_ms or not all(n < m and s <= t for (n, s), (m, t) in steps):
            raise InvalidProblem(
                f"the times of a batch are {self}; expected ascending numbers of requests, and "
                "times that never fall"
            )

    def __str__(self) -> str:
        return ", ".join(f"{n}: {shown(time)} ms" for n, time in self.times_ms.items()) or "none"

    def at(self, n: int) -> Fraction:
        """Return T(n): linear between two numbers, constant below the smallest."""
        known = list(self.times_ms)
        above = min(bisect.bisect_left(known, n), len(known) - 1)
        if not above or known[above] <= n:
            return self.times_ms[known[above]]
        low, high = known[above - 1], known[above]
        start, end = self.times_ms[low], self.times_ms[high]
        return start + (end - start) * (n - low) / (high - low)

    def rounded_up(self, unit: int) -> list[int]:
        """Return T(1), T(2), ... in units of 1/`unit` ms, each rounded up."""
        (low, start), *rest = self.times_ms.items()
        found = [math.ceil(start * unit)] * low
        for high, end in rest:  # in integers: a batch may hold a million requests
            steps = (high - low) * math.lcm(start.denominator, end.denominator)
            first, last = int(start * unit * steps), int(end * unit * steps)
            rise = (last - first) // (high - low)
            found += [-(-(first + rise * n) // steps) for n in range(1, high - low + 1)]
            low, start = high, end
        return found

    def digest(self, processes: int) -> str:
        """Return the SHA-256 of what a replay by batches knows: the processes and T(n), in ns."""
        known = " ".join(map(str, (processes, *self.rounded_up(10**6))))
        return sha256(known.encode()).hexdigest()


def fills_of(
    wanted: Iterable[OperatingPoint], points: Iterable[OperatingPoint]
) -> dict[PointKey, FillTimes]:
    """Collect the times of the smaller batches of some points.

    Times never fall: a slower smaller batch counts as long as the full one at most.
    """
    keys = {key_of(point): point for point in wanted}
    kinds = {key[:4] for key in keys}
    measured: dict[tuple[str, str, str, int], dict[int, Fraction]] = {}
    for point in points:
        if (kind := key_of(point)[:4]) in kinds:
            measured.setdefault(kind, {})[point.batch] = point.batch_ms
    found = {}
    for key, point in keys.items():
        times: dict[int, Fraction] = {}
        longest = Fraction(0)
        for batch, time in sorted(measured.get(key[:4], {}).items()):
            if batch < point.batch:
                longest = max(longest, min(time, point.batch_ms))
                times[batch] = longest
        found[key] = FillTimes({**times, point.batch: point.batch_ms})
    return found
