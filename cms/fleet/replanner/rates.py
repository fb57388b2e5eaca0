"""Observed rates on even steps of time, and times as tables write them.

What was not observed is a gap, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ...errors import FileError, InvalidProblem
from ...files.numerals import number_in
from ...files.source import plain, shortened
from ...files.tables import Cell, TableRow
from ...values.frozen import FrozenMap
from ...values.numbers import shown

DAY_S = 86_400
#: A finer step over a longer time is most likely a slip.
_MAX_MOMENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """Moments, from the first to the last, at which a service's rate is not known, and why."""

    service: str
    first_s: Fraction
    last_s: Fraction
    reason: str  #: ``no value`` or ``counter reset``

    def said(self, is_clock: bool) -> str:
        """Say it with its times: ``chat: no value from ... to ...``."""
        first, last = (format_time(each, is_clock) for each in (self.first_s, self.last_s))
        when = f"at {first}" if first == last else f"from {first} to {last}"
        return f"{self.service}: {self.reason} {when}"


@dataclass(frozen=True)
class Rates:
    """Rates of services at even steps of time, of one or more moments, alike for all services.

    Examples
    --------
    >>> rates = Rates(Fraction(0), Fraction(60), {"chat": (Fraction(3), None, Fraction(5))})
    >>> print(rates, *(gap.said(rates.is_clock) for gap in rates.gaps), sep="; ")
    1 service, 3 moments, every 60 s from 0 s to 120 s; chat: no value at 60 s
    """

    start_s: (
        Fraction  #: the first moment: since 1970 in UTC if `is_clock`, else since some beginning
    )
    step_s: Fraction  #: from one moment to the next, > 0
    #: Items per second of each service at each moment; None where it is not known.
    rates_rps: Mapping[str, tuple[Fraction | None, ...]]
    is_clock: bool = False  #: whether times are of a clock
    gaps: tuple[Gap, ...] = ()  #: why rates are not known; found here where nothing is given
    warnings: tuple[str, ...] = ()  #: what the server that answered said of its answer

    def __post_init__(self) -> None:
        counts = {len(own) for own in self.rates_rps.values()}
        if len(counts) != 1 or not min(counts):
            raise InvalidProblem("rates are for one or more moments, alike for all services")
        object.__setattr__(self, "rates_rps", FrozenMap(self.rates_rps))
        if not self.gaps:
            found = (
                Gap(name, self.time_s(first), self.time_s(last), "no value")
                for name, own in self.rates_rps.items()
                for first, last in find_runs(at for at, rate in enumerate(own) if rate is None)
            )
            object.__setattr__(self, "gaps", tuple(found))

    @property
    def count(self) -> int:
        """How many moments there are."""
        return len(next(iter(self.rates_rps.values())))

    @property
    def services(self) -> tuple[str, ...]:
        """The services' names."""
        return tuple(self.rates_rps)

    @property
    def end_s(self) -> Fraction:
        """The last moment."""
        return self.time_s(self.count - 1)

    def time_s(self, at: int) -> Fraction:
        """Return a moment by its number, from 0."""
        return self.start_s + at * self.step_s

    def said(self, at: int) -> str:
        """Say a moment: ``2026-11-23 10:15:00Z`` or ``900 s``."""
        return format_time(self.time_s(at), self.is_clock)

    def between(self, first: int, last: int) -> Rates:
        """Return the moments from one number to another, both included."""
        own = {name: rates[first : last + 1] for name, rates in self.rates_rps.items()}
        begin, end = self.time_s(first), self.time_s(last)
        gaps = tuple(
            replace(gap, first_s=max(begin, gap.first_s), last_s=min(end, gap.last_s))
            for gap in self.gaps
            if gap.first_s <= end and gap.last_s >= begin
        )
        return Rates(begin, self.step_s, own, self.is_clock, gaps)

    def of(self, names: Iterable[str]) -> Rates:
        """Return the rates of some services, in their order."""
        own = {name: self.rates_rps[name] for name in names}
        gaps = tuple(gap for gap in self.gaps if gap.service in own)
        return replace(self, rates_rps=own, gaps=gaps)

    def __str__(self) -> str:
        services, moments = len(self.services), self.count
        return (
            f"{services} service{'s' * (services != 1)}, {moments} moment{'s' * (moments != 1)}, "
            f"every {shown(self.step_s)} s from {self.said(0)} to {self.said(moments - 1)}"
        )


def find_runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of numbers that follow each other."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def format_time(time_s: Fraction, is_clock: bool) -> str:
    """Say a time: of a clock in UTC, else in seconds."""
    if not is_clock:
        return f"{shown(time_s)} s"
    moment = datetime.fromtimestamp(int(time_s), UTC)
    rest = time_s - int(time_s)
    return f"{moment:%Y-%m-%d %H:%M:%S}{f'.{int(rest * 1000):03d}' if rest else ''}Z"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read of a service at a time; the rate is None where it is not known, and why."""

    at_s: Fraction
    rate_rps: Fraction | None
    refuse: Callable[..., FileError]  #: points at it: what is wrong, `expected` and the `fix`
    reason: str = "no value"


def align_samples(
    samples: Mapping[str, Sequence[Sample]], is_clock: bool, nothing: Callable[[str], FileError]
) -> Rates:
    """Put samples, by service, on even steps: the smallest one between two of them.

    `nothing` makes an error of what is wrong with the whole. FileError if times go back, are there
    twice, are not on even steps, or there is only one.
    """
    say = partial(format_time, is_clock=is_clock)
    for name, own in samples.items():
        for before, after in pairwise(own):
            when = say(after.at_s)
            if after.at_s == before.at_s:
                what = f"{name} is there twice at {when}"
                raise after.refuse(what, expected="one rate a moment", fix="keep one of them")
            if after.at_s < before.at_s:
                what = f"{name} at {when} comes after {say(before.at_s)}"
                raise after.refuse(what, expected="times that ascend", fix="sort the rows by time")
    times = sorted({each.at_s for own in samples.values() for each in own})
    if len(times) < 2:
        raise nothing("there is only one moment")
    begin, step = times[0], min(b - a for a, b in pairwise(times))
    count = int((times[-1] - begin) / step) + 1
    if count * len(samples) > _MAX_MOMENTS:
        raise nothing(
            f"from {say(begin)} to {say(times[-1])} in steps of {shown(step)} s there are {count} "
            f"moments of {len(samples)} services"
        )
    rates, gaps = {}, []
    for name, own in samples.items():
        values: list[Fraction | None] = [None] * count
        reasons = ["no value"] * count
        for each in own:
            at = (each.at_s - begin) / step
            if at.denominator != 1:
                raise each.refuse(
                    f"{name} at {say(each.at_s)} is between the steps of {shown(step)} s from "
                    f"{say(begin)} on", expected="even steps", fix="sample again at even steps",
                )  # fmt: skip
            values[int(at)], reasons[int(at)] = each.rate_rps, each.reason
        rates[name] = tuple(values)
        for reason in dict.fromkeys(reasons):
            for first, end in find_runs(
                at for at in range(count) if values[at] is None and reasons[at] == reason
            ):
                gaps.append(Gap(name, begin + first * step, begin + end * step, reason))
    gaps.sort(key=lambda gap: (gap.first_s, gap.service))
    return Rates(begin, step, rates, is_clock, tuple(gaps))


_CLOCK = re.compile(
    r"(\d{4}([-/])\d\d\2\d\d[ T]\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,18}))?"
    r" ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?[\d.,' \u00a0\u202f_/]*\d([eE][-+]?\d+)?", re.ASCII)
#: From here on seconds are of a clock: since 1970, in 2001 and later.
_UNIX = 10**9
#: Seconds since 1970 reach this in the year 5138; what is more is milliseconds.
_LATEST = 10**11


class Clock(Enum):
    """How a time is meant."""

    SECONDS = "seconds since some beginning"
    UNIX = "seconds since 1970"
    ZONED = "a date and time with a zone"
    NAIVE = "a date and time without a zone"


class Moment(NamedTuple):
    """A time in seconds, since 1970 unless they are since some beginning."""

    at_s: Fraction
    clock: Clock


class NoTime(ValueError):
    """A text is no time; the message says what was expected."""


def read_moment(text: str | Fraction) -> Moment:
    """Read a time; NoTime if it is none.

    ``3600``, ``1764000000``, ``2026-11-23T10:15:00Z``, ``2026-11-23 11:15:07,25+01``, ``2026/11/23
    10:15:00 UTC``; without a zone it is taken as UTC, which the clock says.
    """
    number = text if isinstance(text, Fraction) else number_in(text)
    if number is not None:
        if number < 0:
            raise NoTime("seconds >= 0")
        if number >= _LATEST:
            raise NoTime("seconds; these look like milliseconds or less: divide them")
        return Moment(number, Clock.UNIX if number >= _UNIX else Clock.SECONDS)
    match = _CLOCK.fullmatch(str(text).strip())
    if match is None:
        raise NoTime("seconds, or a date and time: 2026-11-23T10:15:00Z")
    date, _, rest, zone = match.groups()
    is_utc = zone is None or zone.upper() in ("Z", "UTC")
    try:
        moment = datetime.fromisoformat(date.replace("/", "-") + ("+00:00" if is_utc else zone))
    except ValueError:
        raise NoTime("a date and a time of day: a date and time that exist") from None
    whole = moment - datetime(1970, 1, 1, tzinfo=UTC)
    parts = 10 ** len(rest or "")
    at_s = (whole.days * DAY_S + whole.seconds) * parts + int(rest or 0)
    return Moment(Fraction(at_s, parts), Clock.NAIVE if zone is None else Clock.ZONED)


class OneClock:
    """Reads the times of a table, all meant in one way; `said` is how an error names a bad one."""

    def __init__(self, said: str = "{name} is {text}") -> None:
        self.said = said
        self.first: tuple[Clock, TableRow] | None = None

    @property
    def is_clock(self) -> bool:
        """Whether its times are of a clock, and not since some beginning."""
        return self.first is not None and self.first[0] is not Clock.SECONDS

    def time_of(self, cell: Cell) -> Fraction:
        """Return a time in seconds, which is meant as the first one was."""

        def named() -> dict[str, str]:  # of an error alone: there are millions of times
            return {"name": plain(cell.name), "text": shortened(repr(cell.text))}

        try:
            # what a comma or a point in a number is, its column tells
            moment = read_moment(cell.number() if _NUMBER.fullmatch(cell.text) else cell.text)
        except NoTime as fault:
            raise cell.error(self.said.format(**named()), expected=str(fault)) from None
        if self.first is None:
            self.first = moment.clock, cell.row
        known, row = self.first
        if moment.clock is not known:
            raise cell.error(
                "{name} {text} is ".format(**named())
                + f"{moment.clock.value}, that of line {row.line} is {known.value}",
                expected="times of one kind",
                fix="give every time its zone: 2026-11-23T10:15:00Z",
            )
        return moment.at_s
