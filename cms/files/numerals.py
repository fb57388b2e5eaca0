"""Text in a file becomes an exact number here, and what is not a number gets a reason."""

from __future__ import annotations

import re
from fractions import Fraction

from ..values.numbers import LARGEST_DIGITS, format_exact, parse_exact
from .source import shortened

NUMBER_FORMS = 'a number such as 12, "12.5" or "1/3"'
_COUNTED_DIGITS = 18
_MISSING = frozenset({"", "-", "--", "?", "n/a", "na", "nan", "none", "null", "nil", "#n/a"})
# Whole thousands, one kind of mark between them. A number that begins with a zero has none: 0,250
# is a quarter.
_THOUSANDS = re.compile(
    r"[+-]?[1-9]\d{0,2}([,' \u2019_\u00a0\u2007\u2009\u202f])\d{3}(\1\d{3})*(\.\d*)?", re.ASCII
)
_COMMAS_FOR_POINTS = str.maketrans(".,", ",.")
_UNIT = re.compile(
    r"([+-]?(?:\d+/\d+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))\s*([^\W\d_][^\W\d]*(?:/[^\W\d]+)?|%)"
)
#: Letters that look like digits.
_LETTERS = str.maketrans("OoIl", "0011")


def is_missing(text: str) -> bool:
    """Tell whether a cell says that there is no value: empty, ``N/A``, ``NaN``, ``-``, ``null``."""
    return text.strip().casefold() in _MISSING


def is_whole(text: str) -> bool:
    """Tell whether a text is decimal digits, and so few that any program counts so far."""
    return text.isascii() and text.isdigit() and len(text) <= _COUNTED_DIGITS


def number_in(text: str) -> Fraction | None:
    """Read a number exactly, or return None if the text is not one."""
    whole, _, places = text.partition(".")
    if len(text) < 40 and text.isascii() and whole.isdigit() and places.isdigit():
        # What most numbers look like, three times as fast: a table may hold a million.
        return Fraction(int(whole + places), 10 ** len(places))
    try:
        return parse_exact(text)
    except ValueError:
        return None


def readings(text: str) -> tuple[Fraction | None, Fraction | None]:
    """Read a number with a decimal point and with a decimal comma, either with thousands marked."""
    text = text.strip()
    return _reading(text), _reading(text.translate(_COMMAS_FOR_POINTS))


def _reading(text: str) -> Fraction | None:
    match = _THOUSANDS.fullmatch(text)
    return number_in(text.replace(match[1], "") if match else text)


def number_hint(text: str) -> str | None:
    """Say what to write instead of a text that is not a number, where that can be told."""
    text = text.strip()
    if is_missing(text):
        return "write the number, or leave the whole entry out"
    if len(text) > LARGEST_DIGITS:
        why = f"a number has at most {LARGEST_DIGITS} digits: round it, or choose a larger unit"
        return why if text[0] in "+-.0123456789" else None
    point, comma = readings(text)
    apart = "decimal comma" if "," in text else "thousands separator"
    read = ((point, "thousands separator"), (comma, apart))
    told = [f"{shortened(format_exact(it))} ({why}?)" for it, why in read if it is not None]
    if told:
        return f"write {' or '.join(told)}"
    digits = text.translate(_LETTERS)
    if digits != text and text[0].isdigit() and number_in(digits) is not None:
        return f"write {shortened(digits)} (a letter in place of a digit?)"
    if (match := _UNIT.fullmatch(text)) and number_in(match[1]) is not None:
        return f"write {shortened(match[1])} without the unit {shortened(repr(match[2]))}"
    return None
