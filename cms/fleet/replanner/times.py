"""Times as tables of rates write them: seconds, or a date and a clock with its zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from ...files.numerals import number_in
from ...files.source import plain, shortened
from ...files.tables import Cell, TableRow

_CLOCK = re.compile(
    r"(\d{4})([-/])(\d\d)\2(\d\d)[ T](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,18}))?"
    r" ?(?:(Z|UTC)|([+-])(\d\d)(?::?(\d\d))?)?",
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
    year, _, month, day, minute, second, rest, utc, sign, hours, minutes = match.groups()
    try:
        zone = UTC
        if sign is not None:
            away = int(hours) * 60 + int(minutes or 0)
            zone = timezone(timedelta(minutes=-away if sign == "-" else away))
        moment = datetime.fromisoformat(f"{year}-{month}-{day} {minute}{second or ':00'}").replace(
            tzinfo=zone
        )
    except ValueError:
        raise NoTime("a date and a time of day: a date and time that exist") from None
    whole = moment - datetime(1970, 1, 1, tzinfo=UTC)
    parts = 10 ** len(rest or "")
    at_s = (whole.days * 86_400 + whole.seconds) * parts + int(rest or 0)
    return Moment(Fraction(at_s, parts), Clock.ZONED if utc or sign else Clock.NAIVE)


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
