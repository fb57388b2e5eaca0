"""The capacity rule: an instance counts for the largest rate that it sustains within the limit."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ...errors import InvalidOption
from ...files import fields as f
from ...files import model as m
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from ...values.words import short
from .latency_rule import NO_LIMIT, Breakpoint, margin_words, require_margin
from .load_curve import LoadCurve, PointKey, key_of
from .operating_point import OperatingPoint
from .service import QUEUES, Promise, Queue, Service, require_late_share

#: Within less than two batch times no load is sustained: requests wait for a batch they missed.
LEAST_RATIO = 2
_FOLDER = Path(__file__).parent / "loads"


class _Table(NamedTuple):
    """Loads in thousandths by late share, processes, sixteenths of ratio and batch, ascending.

    An instance has c processes that take at most b requests at once, each for a batch time L; the
    limit is `ratio` times L. The rate (load times c b / L) that is sustained never falls when c, b,
    the ratio or the late share grows, so each of them is rounded down to an entry.

    ``certified.json`` holds the exact chain of one process, proved in integers, also for all lower
    rates (``proofs_checks/queueing.py``). ``simulated.json`` holds several processes on one queue:
    lower ends of 99 % intervals, at this load and every lower one of a grid, the least over several
    shapes of the times of batches that are not full.
    """

    late_shares: Sequence[Fraction]
    processes: Sequence[int]
    sixteenths: Sequence[int]
    batches: Sequence[int]
    thousandths: Sequence[Sequence[Sequence[Sequence[int]]]]


def sustainable_load(
    processes: int, batch: int, ratio: Fraction, late_share: Fraction, *, queue: str = "process"
) -> Fraction:
    """Look up the share of its throughput that an instance may be asked for, or of any less.

    `ratio` is the latency limit in batch times; nothing is sustained below 2, nor where fewer
    requests may be late than the table's least `late_share`. Requests wait in a `queue` of each
    ``"process"``, fed at random, or in one of the ``"instance"``.
    """
    wanted = late_share, processes, 16 * ratio.numerator // ratio.denominator, batch
    found = [Fraction(0)]
    for table in _tables(queue):
        axes: Sequence[Any] = table[:4]
        at = [bisect_right(axis, value) - 1 for axis, value in zip(axes, wanted, strict=True)]
        if min(at) >= 0:
            share, c, limit, b = at
            # a table of one process alone counts each of them
            served = processes if len(table.processes) == 1 else table.processes[c]
            thousandths = table.thousandths[share][c][limit][b] * served * table.batches[b]
            found.append(Fraction(thousandths, 1000 * processes * batch))
    return max(found)


def late_shares() -> list[Fraction]:
    """Return the late shares of the tables, ascending: from each on more may be sustained."""
    return sorted({share for table in _tables() for share in table.late_shares})


@cache
def list_ratios(queue: str) -> list[Fraction]:
    """Return the ratios of limit to batch time from which more may be sustained, ascending."""
    found = {each for table in _tables(queue) for each in table.sixteenths}
    return [Fraction(each, 16) for each in sorted(found)]


def _tables(queue: str = "instance") -> list[_Table]:
    """The tables that speak of a queue."""
    return [_table("certified"), *([] if queue == "process" else [_table("simulated")])]


@cache
def _table(name: str) -> _Table:
    document = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    processes, batches, loads = (document[key] for key in ("processes", "batches", "thousandths"))
    sixteenths = [int(16 * Fraction(each)) for each in document["ratios"]]
    shares = [Fraction(each) for each in document["late_shares"]]
    return _Table(shares, processes, sixteenths, batches, loads)


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a table's figures, which its file says beside them."""
    axes = ("late_shares", "processes", "ratios", "batches", "thousandths")
    figures = {name: document[name] for name in axes if name in document}
    return sha256(json.dumps(figures, separators=(",", ":")).encode()).hexdigest()


class Evidence(NamedTuple):
    """Why a point counts for what it does."""

    kind: str  #: ``measured`` or ``simulated`` (a load curve), ``table`` or ``certified``
    curve: LoadCurve | None = None


@dataclass(frozen=True, slots=True)
class CapacityRule:
    """A point supplies the largest Poisson rate at which its requests are in time.

    A batch takes L = processes x batch / throughput. The table is entered with the limit in batch
    times, at least 2; see :func:`cms.fleet.serving.sustainable_load`. Batches that take f
    times as long are a clock that runs slower: within a limit they sustain 1/f of the rate that
    those measured sustain within 1/f of the limit.

    Examples
    --------
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=60)
    >>> point = OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 8, "320", 25)
    >>> CAPACITY.supply(service, point)
    Fraction(5584, 25)
    """

    name: str  #: what plans and messages call it
    #: How many requests may be later than the limit, unless a service says otherwise.
    late_share: Fraction = Fraction(1, 100)
    #: Whether requests wait in one queue of the ``instance`` or in one of each ``process``, unless
    #: a service says otherwise.
    queue: str = "instance"
    #: Whether only what is proved counts: batches of one length, a queue a process.
    certified: bool = False
    #: Batches are taken to be slower than measured by this share.
    latency_margin: Fraction = Fraction(0)
    #: Load curves of points; where there is one, it goes before the table. Equality ignores them:
    #: they are data, not the rule.
    curves: Mapping[PointKey, LoadCurve] = field(
        default_factory=FrozenMap, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "late_share", require_late_share(self.late_share, f"rule {self.name!r}"))
        put(self, "latency_margin", require_margin(self.latency_margin))
        put(self, "curves", FrozenMap(self.curves))
        if self.queue not in QUEUES:
            raise InvalidOption(
                f"the queue of rule {self.name!r} is {self.queue!r}; expected {' or '.join(QUEUES)}"
            )

    @property
    def promise(self) -> Promise:
        """All but a share of the requests are in time."""
        return Promise(self.late_share, self.queue, latency_margin=self.latency_margin)

    def with_curves(self, curves: Mapping[PointKey, LoadCurve]) -> CapacityRule:
        """Return the rule with load curves; InvalidOption if only what is proved counts."""
        if self.certified and curves:
            raise InvalidOption(
                f"load curves are given, and the rule {self.name!r} takes only what is proved; "
                "leave them out, or take the rule 'capacity'"
            )
        return replace(self, curves=curves)

    def supply(self, service: Service, point: OperatingPoint) -> Fraction:
        """The largest rate within the limit, rounded down, or 0; without one all it works off."""
        limit, slower = service.latency_limit_ms, 1 + self.latency_margin
        if limit is None:
            return 1000 * point.processes * point.batch / point.batch_ms / slower
        return _round_down(self._sustained(service, point, limit / slower) / slower)

    def next_limit(self, service: Service, point: OperatingPoint) -> Breakpoint | None:
        """Return the next looser limit at which the point counts for more; None if none is."""
        limit, slower = service.latency_limit_ms, 1 + self.latency_margin
        if limit is None:
            return None
        now, steps = self.supply(service, point), self._steps(service, point)
        for step in steps[bisect_right(steps, limit / slower) :]:
            if _round_down(self._sustained(service, point, step) / slower) > now:
                return Breakpoint(step * slower)
        return None

    def find_slowest(self, service: Service, point: OperatingPoint, rate_rps: Fraction) -> Fraction:
        """Return by which factor batches may be slower at most to supply `rate_rps`, > 0."""
        limit, parts = service.latency_limit_ms, _parts(rate_rps)
        if limit is None:
            return 1000 * point.processes * point.batch / point.batch_ms / rate_rps
        rate = Fraction(-(-rate_rps * parts // 1), parts)  # what is not less after rounding
        steps, sustained = self._steps(service, point), partial(self._sustained, service, point)
        # From one step on the time is short, up to the next the throughput.
        at = bisect_left(steps, True, key=lambda step: sustained(step) * step >= rate * limit)
        shorter = (sustained(step) / rate for step in steps[at - 1 : at])
        return max([*(limit / step for step in steps[at : at + 1]), *shorter])

    def looser_late_shares(
        self, service: Service, points: Iterable[OperatingPoint]
    ) -> list[Fraction]:
        """Return the late shares at which points may count for more, ascending."""
        curves = (self.curves.get(key_of(point)) for point in points)
        known = {*late_shares(), *(curve.late_share for curve in curves if curve is not None)}
        return sorted(each for each in known if each > self.tolerated(service))

    def tolerated(self, service: Service) -> Fraction:
        """Return how many requests of a service may be late."""
        return self.late_share if service.late_share is None else service.late_share

    def evidence(self, service: Service, point: OperatingPoint) -> Evidence:
        """What the supply of a point rests on, for a service with a limit."""
        if (curve := self._curve(service, point)) is not None:
            return Evidence(curve.evidence, curve)
        return Evidence("certified" if self.certified else "table")

    def refusal(self, service: Service, point: OperatingPoint) -> str:
        """Say how often a batch fits into the limit, and which limit would do."""
        share, queue = self._asked(service)
        limit, slower = service.latency_limit_ms, 1 + self.latency_margin
        more = margin_words(self.latency_margin)
        if limit is None:
            return NO_LIMIT
        if (curve := self._curve(service, point)) is not None:
            lowest = curve.latencies_ms[0]
            return (
                f"its load curve has {short(lowest, math.ceil)} ms{more} at "
                f"{short(curve.rates_rps[0])} requests/s, its lowest rate, which is not within "
                f"{short(limit)} ms; a limit of {_up(lowest * slower)} ms would do"
            )
        if self.certified and queue != "process":
            return "the rule is proved for a queue a process, and the service wants one an instance"
        if share < late_shares()[0]:
            return (
                f"a late share of {shown(share)} is below {shown(late_shares()[0])}, the least "
                "in the table; a load curve of the point would do"
            )
        batch_ms = point.batch_ms * slower
        needed = _up(LEAST_RATIO * batch_ms)
        times = shown(Fraction(int(100 * limit / batch_ms), 100))
        return (
            f"{short(point.batch_ms, math.ceil)} ms{more} a batch is {times} times within "
            f"{short(limit)} ms; the rule needs {LEAST_RATIO}: a limit of {needed} ms would do"
        )

    def to_json(self) -> dict[str, Any]:
        """The rule as a JSON object; load curves stand beside the points that have them."""
        return CapacityRulePart.from_object(self).to_json()

    def __str__(self) -> str:
        proved = " (proved)" if self.certified else ""
        within = f"{shown(100 * (1 - self.late_share))} % within the limit{proved}"
        more = margin_words(self.latency_margin)
        return f"{within}, batch times{more}" if more else within

    def _sustained(self, service: Service, point: OperatingPoint, limit_ms: Fraction) -> Fraction:
        """The largest rate within a limit for the batch times measured, exactly."""
        share, queue = self._asked(service)
        if (curve := self._curve(service, point)) is not None:
            return curve.sustained(limit_ms)
        if self.certified and queue != "process":
            return Fraction(0)
        processes, batch, batch_ms = point.processes, point.batch, point.batch_ms
        load = sustainable_load(processes, batch, limit_ms / batch_ms, share, queue=queue)
        return load * processes * batch * 1000 / batch_ms

    def _steps(self, service: Service, point: OperatingPoint) -> Sequence[Fraction]:
        """The limits from which on more is sustained for the batch times measured, ascending."""
        if (curve := self._curve(service, point)) is not None:
            return curve.highest_ms
        batch_ms = point.batch_ms
        return [ratio * batch_ms for ratio in list_ratios(self._asked(service)[1])]

    def _asked(self, service: Service) -> tuple[Fraction, str]:
        """The late share and the queue that hold for a service."""
        return self.tolerated(service), service.queue or self.queue

    def _curve(self, service: Service, point: OperatingPoint) -> LoadCurve | None:
        """The point's curve, if it says enough: it is of one queue, and not of a larger share."""
        share, queue = self._asked(service)
        curve = self.curves.get(key_of(point))
        if curve is None or curve.late_share > share:
            return None
        return curve if queue == "instance" or point.processes == 1 else None


class CapacityRulePart(m.Part):
    """A capacity rule in a document."""

    MAKES: ClassVar[Any] = CapacityRule
    name: f.Text
    late_share: f.Exact
    queue: Queue
    certified: f.Flag
    latency_margin: f.Exact = f.omitted(Fraction(0))


def _parts(rate: Fraction) -> int:
    """Return in how many parts of 1 a rate is given: thousandths, or four digits."""
    parts = 1000
    while 0 < rate.numerator * parts < 1000 * rate.denominator:
        parts *= 10
    return parts


def _round_down(rate: Fraction) -> Fraction:
    parts = _parts(rate)
    return Fraction(rate.numerator * parts // rate.denominator, parts)


def _up(milliseconds: Fraction) -> str:
    return shown(Fraction(-(-milliseconds * 100 // 1), 100))


#: All but one in a hundred requests in time, by load curves and tables.
CAPACITY = CapacityRule("capacity")
#: The same by what is proved.
CERTIFIED = CapacityRule("capacity_certified", queue="process", certified=True)
