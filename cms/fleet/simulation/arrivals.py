"""When requests arrive: processes that are drawn from, and recorded traces, as nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from ...errors import FileError, InvalidOption
from ...files.csv_records import folded
from ...files.source import StrPath
from ...files.tables import Table, read_table
from ...values.names import nearest
from ...values.numbers import Number, exact, shown
from ..replanner.rates import OneClock
from .model import LONGEST_NS, SECOND, BriefFields, Floats, Ints

Random: TypeAlias = np.random.Generator
Pieces: TypeAlias = Iterator[Ints]
#: Arrivals that are made at a time: they fit into a processor's cache.
PIECE = 2**16
#: A time that does not come: 146 years.
NEVER = 2**62
_PHASES = 64
#: The least number that a float divides by here
_LEAST = Fraction(1, 10**15)


class Arrivals(Protocol):
    """A process of arrivals; implement it to bring another one.

    The same stream of random numbers gives the same arrivals however they are cut into pieces.
    """

    @property
    def name(self) -> str:
        """What reports call it: ``Poisson``, ``gamma:4``."""
        ...

    def pieces(self, service: str, rate: Fraction, random: Random, size: int = PIECE) -> Pieces:
        """Yield the times of a service's arrivals, in their order, at most `size` at a time.

        The rate is in requests a second, > 0; the size is at most 2**20.
        """
        ...


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent arrivals, as of many users."""

    name: ClassVar[str] = "Poisson"

    def pieces(self, service: str, rate: Fraction, random: Random, size: int = PIECE) -> Pieces:
        """Yield the times of arrivals; see :class:`Arrivals`."""
        mean = mean_gap(rate)
        return _add_up(lambda: random.standard_exponential(size) * mean)


@dataclass(frozen=True)
class Gamma(BriefFields):
    """Independent gaps with a gamma distribution, more or less regular than Poisson's."""

    #: Squared coefficient of variation of the gaps, > 0: 1 is Poisson, more has more bursts.
    cv2: Number

    def __post_init__(self) -> None:
        self._number("cv2", least=_LEAST, most=10**6)

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"gamma:{shown(exact(self.cv2, 'cv2'))}"

    def pieces(self, service: str, rate: Fraction, random: Random, size: int = PIECE) -> Pieces:
        """Yield the times of arrivals; see :class:`Arrivals`."""
        cv2 = float(exact(self.cv2, "cv2"))
        scale = mean_gap(rate) * cv2
        return _add_up(lambda: random.standard_gamma(1 / cv2, size) * scale)


@dataclass(frozen=True)
class Bursts(BriefFields):
    """A Poisson process with two rates that take turns, for exponential times."""

    ratio: Number  #: The rate of a burst over the mean rate, > 1
    share: Number  #: The share of the time that bursts take; ``ratio * share`` is at most 1.
    seconds: Number  #: How long a burst lasts on average

    def __post_init__(self) -> None:
        self._number("ratio", above=1, most=10**6)
        self._number("share", least=_LEAST, most=1)
        self._number("seconds", least=_LEAST, most=10**12)
        if exact(self.ratio, "ratio") * exact(self.share, "share") > 1:
            raise self._refuse("share", f"at most 1 / ratio, and the ratio is {self.ratio}")

    @property
    def name(self) -> str:
        """What reports call it."""
        values = (self.ratio, self.share, self.seconds)
        return "bursts:" + ",".join(shown(exact(each, "a value")) for each in values)

    def pieces(self, service: str, rate: Fraction, random: Random, size: int = PIECE) -> Pieces:
        """Yield the times of arrivals; see :class:`Arrivals`."""
        ratio, share = float(exact(self.ratio, "ratio")), float(exact(self.share, "share"))
        burst = float(exact(self.seconds, "seconds")) * 10**9
        gap = mean_gap(rate)
        if not gap / _PHASES <= burst / share <= LONGEST_NS:
            said = f"service {service!r} gets {shown(rate)} requests/s in {self.name}"
            raise InvalidOption(
                f"{said}; expected at most {_PHASES} bursts between two requests, none years away"
            )
        pair = np.array([burst * (1 - share) / share, burst])
        pair_rates = np.array([max(1 - ratio * share, 0.0) / (1 - share), ratio])
        (own,) = random.spawn(1)
        ends, worked = np.zeros(1), np.zeros(1)  # the phases' ends, and the mean arrivals by then
        for even in Poisson().pieces(service, rate, random, size):
            while worked[-1] <= even[-1]:
                more = max(_PHASES, len(ends) // 2)  # all together in linear time
                spans = own.standard_exponential(2 * more) * np.tile(pair, more)
                work = spans * np.tile(pair_rates, more)
                ends = np.concatenate([ends, np.cumsum([ends[-1], *spans])[1:]])
                worked = np.concatenate([worked, np.cumsum([worked[-1], *work])[1:]])
            passed = max(int(np.searchsorted(worked, even[0], "right")) - 2, 0)
            ends, worked = ends[passed:], worked[passed:]
            yield np.interp(even, worked, ends).astype(np.int64)


@dataclass(frozen=True, slots=True)
class EachItsOwn:
    """Some services have arrivals of their own, by their names, and all others the same."""

    own: Mapping[str, Arrivals]
    others: Arrivals

    @property
    def name(self) -> str:
        """What reports call it."""
        own = ", ".join(f"{service}: {each.name}" for service, each in self.own.items())
        return f"{self.others.name} ({own})"

    def of(self, service: str) -> Arrivals:
        """Return the process of a service."""
        return self.own.get(service, self.others)

    def pieces(self, service: str, rate: Fraction, random: Random, size: int = PIECE) -> Pieces:
        """Yield the times of arrivals; see :class:`Arrivals`."""
        return self.of(service).pieces(service, rate, random, size)


def mean_gap(rate: Fraction) -> float:
    """Return nanoseconds between two arrivals, at most 36 years."""
    return float(min(SECOND / rate, Fraction(NEVER // 4)))


def _add_up(gaps: Callable[[], Floats]) -> Pieces:
    """Add up gaps, each rounded to whole nanoseconds, so that errors do not add up."""
    now = 0
    while True:
        times = np.rint(np.minimum(gaps(), NEVER // 4)).astype(np.int64)
        times[0] += now
        np.cumsum(times, out=times)
        now = int(times[-1])
        yield times


class RateClock:
    """Turn the time of a process into the time of a service whose rate changes.

    A change is a nanosecond and the factor of the rate from then on; they are in order.
    """

    def __init__(self, changes: Sequence[tuple[int, Fraction]]) -> None:
        reals, bases, factors = [0], [Fraction(0)], [Fraction(1)]
        for at, factor in changes:
            bases.append(bases[-1] + (at - reals[-1]) * factors[-1])
            reals.append(at)
            factors.append(factor)
        self._reals, self._factors = np.array(reals), np.array([float(each) for each in factors])
        self._bases = np.array([round(base) for base in bases])

    def __call__(self, times: Ints) -> Ints:
        """Return when arrivals come; ``NEVER`` where the rate stays 0."""
        if len(self._reals) == 1:
            return times
        at = np.searchsorted(self._bases, times, "right") - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            passed = np.nan_to_num((times - self._bases[at]) / self._factors[at], nan=0.0)
        # a rate of 0 that ends leaves no arrival behind it: the next change has the same base
        most = np.minimum(passed, float(NEVER // 2)).astype(np.int64)
        return np.where(passed >= NEVER // 2, NEVER, self._reals[at] + most)


# What published traces call the time of an arrival: Azure's of language models (TIMESTAMP),
# BurstGPT's (Timestamp).
_KNOWN = ("timestamp", "arrival_seconds", "seconds")
_END, _DURATION = "end_timestamp", "duration"  # of Azure Functions 2021
_UNIT = re.compile(r"(?:^|_)\W?((?:milli|micro|nano)s?(?:ec(?:ond)?s?)?|[mun\u00b5]s(?:ecs?)?)\W?$")


@dataclass(frozen=True)
class Replay:
    """Arrivals as they were recorded.

    A trace has times alone: a fixed time a batch does not describe the continuous batching of
    language models, whose requests differ by what they read and write.
    """

    #: The arrivals of each service, from 0 on, in order; of all services under the empty name.
    times_ns: dict[str, Ints] = field(repr=False)
    name: str  #: What reports call it
    #: Whether the trace's time is stretched so that its mean rate is the service's
    scaled: bool = True

    def pieces(self, service: str, rate: Fraction, random: Random, size: int = PIECE) -> Pieces:
        """Yield the times of arrivals; see :class:`Arrivals`. A trace has an end."""
        times = self.times_ns.get("", self.times_ns.get(service))
        if times is None:
            said = f"the trace {self.name} has no arrival of service {service!r}"
            has = ", ".join(self.times_ns)
            raise InvalidOption(f"{said}{nearest(service, self.times_ns)}; it has {has}")
        n, span, stretch = len(times), int(times[-1]), 1.0
        if self.scaled and n > 1 and span:
            # n arrivals have n gaps: the last one, to the trace's end, is as long as the mean
            stretch = float(min(Fraction((n - 1) * SECOND, span) / rate, Fraction(NEVER)))
        if self.scaled:
            times = np.minimum(np.rint(times * stretch), NEVER).astype(np.int64)
        yield from (times[first : first + size] for first in range(0, n, size))


def read_trace(
    path: StrPath,
    column: str | None = None,
    service_column: str | None = None,
    *,
    scaled: bool = True,
) -> Replay:
    """Read recorded arrivals from a CSV table.

    Where all times are whole seconds, those of a second are spread evenly over it.

    `column`: where the times are: seconds, or ``2024-05-10 00:00:00.009930+00:00``, with or without
    a zone. By default one that a published trace has: ``TIMESTAMP`` (Azure LLM inference),
    ``Timestamp`` (BurstGPT), or ``end_timestamp`` less ``duration`` (Azure Functions 2021).
    `service_column`: which column says whose arrival it is; without one, every service gets all of
    them. `scaled`: whether the trace's time is stretched so that its mean rate is the service's.
    """
    asked = [name for name in (column, service_column) if name is not None]
    known = () if column is not None else (*_KNOWN, _END, _DURATION)
    others = {*known} - {folded(name) for name in asked}
    table = read_table(path, asked, [name for name in known if name in others])
    times = _times(table, column)
    rows: dict[str, list[int]] = {}
    for row, time in zip(table, times, strict=True):
        rows.setdefault(row[service_column].word() if service_column else "", []).append(time)
    first, last = min(times), max(times)
    if last - first > LONGEST_NS:
        raise table.rows[times.index(last)].error("the trace is longer than nine years")
    whole, found = not any(time % SECOND for time in times), {}
    for name, own in rows.items():
        arrivals = np.sort(np.array([time - first for time in own], dtype=np.int64))
        if whole:  # those of a second are spread evenly over it
            _, begin, counts = np.unique(arrivals, return_index=True, return_counts=True)
            nth = np.arange(len(arrivals)) - np.repeat(begin, counts)
            arrivals += (2 * nth + 1) * SECOND // (2 * np.repeat(counts, counts))
        found[name] = arrivals
    return Replay(found, table.source.name, scaled)


def _times(table: Table, column: str | None) -> Sequence[int]:
    """Return the arrivals in nanoseconds, in the order of the rows."""
    clock = OneClock()
    if column is None and _END in table.index and _DURATION in table.index:
        begins = (clock.time_of(row[_END]) - row[_DURATION].number() for row in table)
        return [round(begin * SECOND) for begin in begins]
    column = column or next((name for name in _KNOWN if name in table.index), None)
    if column is None:
        said = f"no column is known to hold times: {', '.join(table.index)}"
        fix, expected = "name it as time_column in [traces]", f"one of {', '.join(_KNOWN)}"
        raise table.rows[0].error(said, expected=expected, fix=fix)
    if unit := _UNIT.search(folded(re.sub("(?<=[a-z])(?=[A-Z])", "_", column))):
        raise FileError(
            table.source.name, f"the column {column!r} holds times in {unit[1]}, by its name",
            line=table.line, expected="seconds, or a date and time",
            fix="divide them, or rename the column if they are seconds",
        )  # fmt: skip
    return [round(clock.time_of(row[column]) * SECOND) for row in table]
