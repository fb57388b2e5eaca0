"""Numbers and names as a person reads them: rounded, but never in favour of a promise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from .numbers import format_exact, power_of_ten


def decimal(
    value: Fraction | int, digits: int = 4, rounding: Callable[[Fraction], int] = round
) -> str:
    """Write a number for reading: exact if short, otherwise rounded to ``digits`` digits.

    What is promised must not be rounded in favour of whoever promises it: a lower bound takes
    ``rounding=math.floor``, a cost or a gap ``math.ceil``.

    Examples
    --------
    >>> decimal(Fraction(2, 3)), decimal(Fraction(2, 3), rounding=math.floor)
    ('0.6667', '0.6666')
    >>> decimal(12), decimal(Fraction(837, 2)), decimal(Fraction(1, 3)), decimal(1234567)
    ('12', '418.5', '0.3333', '1,234,567')
    """
    exact = Fraction(value)
    if exact.denominator == 1:
        if abs(exact.numerator) < 10**15:
            return f"{exact.numerator:,}"
        return _scientific(exact, digits, rounding)
    magnitude = power_of_ten(exact)
    if magnitude >= 15 or magnitude < -digits:
        return _scientific(exact, digits, rounding)
    places = max(0, digits - 1 - magnitude)
    scaled = rounding(exact * 10**places)
    sign = "-" if scaled < 0 else ""
    whole, part = divmod(abs(scaled), 10**places)
    text = f"{sign}{whole:,}"
    tail = str(part).rjust(places, "0").rstrip("0") if places else ""
    return f"{text}.{tail}" if tail else text


def _scientific(value: Fraction, digits: int, rounding: Callable[[Fraction], int]) -> str:
    power = power_of_ten(value)
    mantissa = rounding(value / Fraction(10) ** power * 10 ** (digits - 1))
    if abs(mantissa) >= 10**digits:
        mantissa, power = mantissa // 10, power + 1
    return f"{decimal(Fraction(mantissa, 10 ** (digits - 1)), digits)}e{power}"


def brief(value: Fraction | int, digits: int = 4) -> str:
    """Write a number >= 0 for a narrow column, rounded down; a large one as a power of ten."""
    exact = Fraction(value)
    if exact < 10**7:
        return decimal(exact, digits, math.floor)
    return _scientific(exact, min(digits, 3), math.floor)


def percent(share: Fraction, *, up: bool = False) -> str:
    """Write a share as a percentage with one place, rounded down (or up).

    Head-room is rounded down and a gap up, so that neither flatters.

    Examples
    --------
    >>> percent(Fraction(1, 3)), percent(Fraction(1, 12), up=True), percent(Fraction(1, 2))
    ('33.3 %', '8.4 %', '50 %')
    """
    tenths = math.ceil(share * 1000) if up else math.floor(share * 1000)
    return f"{decimal(Fraction(tenths, 10), 9, math.ceil if up else math.floor)} %"


def short(value: Fraction, rounding: Callable[[Fraction], int] = round) -> str:
    """Print a number for a message: exactly if that is a short decimal, else in six digits.

    Examples
    --------
    >>> short(Fraction("12.5")), short(Fraction(320_000, 53)), short(Fraction(1, 3), math.ceil)
    ('12.5', '6037.74', '0.333334')
    >>> short(Fraction("1234.5612345"), math.ceil), short(Fraction("1234.569999"), math.floor)
    ('1234.57', '1234.56')
    """
    if max(value.numerator, value.denominator) < 10**9:
        text = format_exact(value)
        if "/" in text:
            return decimal(value, 6, rounding).replace(",", "")
        if len(text) <= 9:
            return text
    if rounding is not round and value > 0:
        places = 5 - power_of_ten(value)
        value = Fraction(rounding(value * Fraction(10) ** places)) / Fraction(10) ** places
    if 1 <= value * 10**300 <= 10**600:
        return f"{float(value):.6g}"
    ratio = Decimal(value.numerator) / value.denominator  # 1e399 is no float
    return f"{ratio.normalize():.6g}"


def fraction(value: Fraction) -> str:
    """Write a number as a fraction, if it is one that a person can read."""
    return str(value) if value.denominator < 1000 else decimal(value)


def at_least(bound: Fraction) -> str:
    """Write a lower bound: rounded down, so that no more is said than was proved."""
    return decimal(bound, rounding=math.floor)


def money(cost: Fraction, currency: str, rounding: Callable[[Fraction], int] = math.ceil) -> str:
    """Write a cost by the hour; in no currency the number alone.

    Examples
    --------
    >>> money(Fraction(5, 2), "EUR"), money(Fraction(5, 2), ""), money(Fraction(1, 3), "EUR")
    ('2.50 EUR/h', '2.5', '0.333334 EUR/h')
    """
    if not currency:
        return decimal(cost, rounding=rounding)
    whole, cents = divmod(100 * cost, 100)
    is_short = cents.denominator == 1
    return f"{f'{whole}.{int(cents):02d}' if is_short else short(cost, rounding)} {currency}/h"


def is_told_apart(cost: Fraction, bound: Fraction, currency: str = "") -> bool:
    """Whether a cost and a lower bound may stand side by side: equal ones must look equal."""
    return cost != bound or money(cost, currency) == money(bound, currency, math.floor)


def count(number: int, what: str, rounding: Callable[[Fraction], int] = round) -> str:
    """Write a number with its noun, in the plural where that is due.

    Examples
    --------
    >>> count(1, "GPU"), count(12, "GPU"), count(2, "branch"), count(0, "entry")
    ('1 GPU', '12 GPUs', '2 branches', '0 entries')
    """
    ending = "es" if what.endswith(("ch", "x", "s")) else "s"
    plural = f"{what[:-1]}ies" if what.endswith("ry") else what + ending
    return f"1 {what}" if number == 1 else f"{decimal(number, rounding=rounding)} {plural}"


def printable(name: str) -> str:
    """Return a name with characters that would steer a terminal written as escapes."""
    if name.isprintable():
        return name
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in name
    )


def printable_lines(text: str) -> str:
    """Return lines likewise: their ends stay, as do tabs and the blanks that do not break."""
    return re.sub("[^\n\t\xa0\u2007\u2009\u202f]+", lambda found: printable(found[0]), text)
