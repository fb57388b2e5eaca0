"""Observed rates on even steps of time, and times as tables write them.

What was not observed is a gap, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import NamedTuple

from ...errors import FileError, InvalidProblem
from ...files.numerals import number_in
from ...files.parsed import Parsed
from ...files.source import plain, quoted
from ...files.tables import Cell, TableRow
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from ...values.words import count

DAY_S = 86_400
#: A finer step over a longer time is most likely a slip.
_MAX_MOMENTS = 1_000_000


@dataclass(frozen=True)
class Rates:
    """Rates of services at even steps of time, of one or more moments, alike for all services.

    Examples
    --------
    >>> rates = Rates(Fraction(0), Fraction(60), {"chat": (Fraction(3), None, Fraction(5))})
    >>> print(rates, *rates.gaps, sep="; ")
    1 service, 3 moments, every 60 s from 0 s to 120 s; chat: no value at 60 s
    """

    #: The first moment: since 1970 in UTC if `is_clock`, else since some beginning.
    start_s: Fraction
    step_s: Fraction  #: from one moment to the next, > 0
    #: Items per second of each service at each moment; None where it is not known.
    rates_rps: Mapping[str, tuple[Fraction | None, ...]]
    is_clock: bool = False  #: whether times are of a clock
    #: By service and time, why a rate is not known where it is not for want of a value.
    reasons: Mapping[tuple[str, Fraction], str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  #: what the server that answered said of its answer

    def __post_init__(self) -> None:
        counts = {len(own) for own in self.rates_rps.values()}
        if len(counts) != 1 or not min(counts):
            raise InvalidProblem("rates are for one or more moments, alike for all services")
        object.__setattr__(self, "rates_rps", FrozenMap(self.rates_rps))
        object.__setattr__(self, "reasons", FrozenMap(self.reasons))

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """When rates are not known, and why, in the order of time."""
        found = []
        for name, own in self.rates_rps.items():
            reasons = [
                "" if rate is not None else self.reason(name, at) for at, rate in enumerate(own)
            ]
            for reason, run in groupby(range(self.count), reasons.__getitem__):
                if reason:
                    at = [*run]
                    to = f"to {self.said(at[-1])}"
                    when = f"from {self.said(at[0])} {to}" if at[1:] else f"at {self.said(at[0])}"
                    found.append((at[0], f"{name}: {reason} {when}"))
        return tuple(text for _, text in sorted(found))

    def reason(self, name: str, at: int) -> str:
        """Say why a rate is not known."""
        return self.reasons.get((name, self.time_s(at)), "no value")

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
        return replace(self, start_s=self.time_s(first), rates_rps=own)

    def of(self, names: Iterable[str]) -> Rates:
        """Return the rates of some services."""
        return replace(self, rates_rps={name: self.rates_rps[name] for name in names})

    def __str__(self) -> str:
        return (
            f"{count(len(self.services), 'service')}, {count(self.count, 'moment')}, "
            f"every {shown(self.step_s)} s from {self.said(0)} to {self.said(self.count - 1)}"
        )


def format_time(time_s: Fraction, is_clock: bool) -> str:
    """Say a time: of a clock in UTC, else in seconds."""
    if not is_clock:
        return f"{shown(time_s)} s"
    moment = datetime.fromtimestamp(int(time_s), UTC)
    rest = time_s - int(time_s)
    return f"{moment:%Y-%m-%d %H:%M:%S}{f'.{int(rest * 1000):03d}' if rest else ''}Z"


class Sample(NamedTuple):
    """What was read of a service at a time, and where; the rate is None where it is not known."""

    at_s: Fraction
    rate_rps: Fraction | None
    place: TableRow | Parsed


def align_samples(
    samples: Mapping[str, Sequence[Sample]], is_clock: bool, refuse: Callable[[str], FileError]
) -> Rates:
    """Put samples, by service, on even steps: the smallest one between two of them.

    `refuse` makes an error of what is wrong with the whole. FileError if times go back, are there
    twice, are not on even steps, or there is only one.
    """
    say = partial(format_time, is_clock=is_clock)
    for name, own in samples.items():
        for before, after in pairwise(own):
            when = say(after.at_s)
            if after.at_s == before.at_s:
                what = f"{name} is there twice at {when}"
                raise after.place.error(what, expected="one rate a moment", fix="keep one of them")
            if after.at_s < before.at_s:
                what = f"{name} at {when} comes after {say(before.at_s)}"
                fix = "sort the rows by time"
                raise after.place.error(what, expected="times that ascend", fix=fix)
    times = sorted({each.at_s for own in samples.values() for each in own})
    if len(times) < 2:
        raise refuse("there is only one moment")
    begin, step = times[0], min(b - a for a, b in pairwise(times))
    moments = int((times[-1] - begin) / step) + 1
    if moments * len(samples) > _MAX_MOMENTS:
        raise refuse(
            f"from {say(begin)} to {say(times[-1])} in steps of {shown(step)} s there are "
            f"{moments} moments of {len(samples)} services"
        )
    rates = {}
    for name, own in samples.items():
        values: list[Fraction | None] = [None] * moments
        for each in own:
            at = (each.at_s - begin) / step
            if at.denominator != 1:
                raise each.place.error(
                    f"{name} at {say(each.at_s)} is between the steps of {shown(step)} s from "
                    f"{say(begin)} on", expected="even steps", fix="sample again at even steps",
                )  # fmt: skip
            values[int(at)] = each.rate_rps
        rates[name] = tuple(values)
    return Rates(begin, step, rates, is_clock)


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


def read_moment(text: str | Fraction) -> tuple[Fraction, Clock]:
    """Read a time in seconds, and how it is meant; ValueError with what was expected if it is none.

    ``3600``, ``1764000000``, ``2026-11-23T10:15:00Z``, ``2026-11-23 11:15:07,25+01``, ``2026/11/23
    10:15:00 UTC``; without a zone it is taken as UTC, which the clock says.
    """
    number = text if isinstance(text, Fraction) else number_in(text)
    if number is not None:
        if number < 0:
            raise ValueError("seconds >= 0")
        if number >= _LATEST:
            raise ValueError("seconds; these look like milliseconds or less: divide them")
        return number, Clock.UNIX if number >= _UNIX else Clock.SECONDS
    match = _CLOCK.fullmatch(str(text).strip())
    if match is None:
        raise ValueError("seconds, or a date and time: 2026-11-23T10:15:00Z")
    date, _, rest, zone = match.groups()
    is_utc = zone is None or zone.upper() in ("Z", "UTC")
    try:
        moment = datetime.fromisoformat(date.replace("/", "-") + ("+00:00" if is_utc else zone))
    except ValueError:
        raise ValueError("a date and a time of day: a date and time that exist") from None
    whole = moment - datetime(1970, 1, 1, tzinfo=UTC)
    part = Fraction(int(rest or 0), 10 ** len(rest or ""))
    return whole.days * DAY_S + whole.seconds + part, Clock.ZONED if zone else Clock.NAIVE


class OneClock:
    """Reads the times of a table, all meant in one way."""

    def __init__(self) -> None:
        self.first: tuple[Clock, TableRow] | None = None

    @property
    def is_clock(self) -> bool:
        """Whether its times are of a clock, and not since some beginning."""
        return self.first is not None and self.first[0] is not Clock.SECONDS

    def time_of(self, cell: Cell) -> Fraction:
        """Return a time in seconds, which is meant as the first one was."""
        # what a comma or a point in a number is, its column tells
        text = cell.number() if _NUMBER.fullmatch(cell.text) else cell.text
        try:
            at_s, clock = read_moment(text)
        except ValueError as fault:
            said = f"{plain(cell.name)} is {quoted(cell.text)}"
            raise cell.error(said, expected=str(fault)) from None
        if self.first is None:
            self.first = clock, cell.row
        known, row = self.first
        if clock is not known:
            raise cell.error(
                f"{plain(cell.name)} is {quoted(cell.text)}, {clock.value}; "
                f"that of line {row.line} is {known.value}",
                expected="times of one kind",
                fix="give every time its zone: 2026-11-23T10:15:00Z",
            )
        return at_s
