"""The door where numbers come in: whatever the user writes becomes an exact rational.

``int``, ``Fraction``, ``Decimal`` and text are taken as they are. A binary ``float`` means the
shortest decimal that prints as it (0.1 is 1/10, a ``float32`` by its own shortest decimal). NaN,
infinities and (where they make no sense) negative numbers are refused by name.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ..errors import InvalidProblem

Number: TypeAlias = "int | float | Fraction | Decimal | str | np.integer[Any] | np.floating[Any]"

_TEXT = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)", re.ASCII)
# A power of ten above this is a slip of the keyboard, and as an exact integer would fill memory.
_LARGEST_EXPONENT = 400
_LARGEST_POWER = 10**_LARGEST_EXPONENT
#: Digits of a number, before and after the point: Python neither reads nor prints longer ones.
LARGEST_DIGITS = 4300
_TOO_LARGE = 10**LARGEST_DIGITS
# A message has longer numbers in round figures. Sums of floats (5e-324 to 1e308) are shorter.
_LONGEST_SHOWN, _SHOWN_FIGURES = 640, 4
_TOO_LONG_TO_SHOW = 10**_LONGEST_SHOWN


def parse_exact(text: str) -> Fraction:
    """Read ``"12"``, ``"12.5"``, ``"1e3"`` or ``"1/3"`` as an exact rational."""
    # A subclass could answer for itself, also when it is asked for its numerator.
    stripped = str.__str__(text).strip()
    if len(stripped) > LARGEST_DIGITS and any(
        len(part) - part.count(".") > LARGEST_DIGITS
        for part in re.split("[/eE]", stripped.lstrip("+-"), maxsplit=1)
    ):
        raise ValueError(
            f"a text of {len(stripped)} characters is too long for a number; at most "
            f"{LARGEST_DIGITS} digits are read"
        )
    if not _TEXT.fullmatch(stripped):
        raise ValueError(f"{stripped!r} is not a number; write 12, 12.5, 1e3 or 1/3")
    mantissa, _, exponent = stripped.lower().partition("e")
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        raise ValueError(f"{stripped!r} has an exponent beyond {_LARGEST_EXPONENT}")
    _, slash, divisor = mantissa.partition("/")
    if slash and not divisor.strip("0"):
        raise ValueError(f"{stripped!r} divides by zero")
    value = Fraction(stripped)
    if has_too_many_digits(value):
        raise ValueError(f"a number of more than {LARGEST_DIGITS} digits")
    return value


def has_too_many_digits(value: Fraction | int) -> bool:
    """Whether numerator or denominator are too long to be printed."""
    return not (-_TOO_LARGE < value.numerator < _TOO_LARGE and value.denominator < _TOO_LARGE)


def format_exact(value: Fraction | int) -> str:
    """Write a rational so that :func:`parse_exact` gives it back: ``12``, ``12.5`` or ``1/3``."""
    fraction = Fraction(value)
    if fraction.denominator == 1:
        return str(fraction.numerator)
    if _LARGEST_POWER % fraction.denominator:
        return str(fraction)
    places = next(p for p in range(_LARGEST_EXPONENT + 1) if not 10**p % fraction.denominator)
    shifted = abs(fraction.numerator) * 10**places // fraction.denominator
    if has_too_many_digits(shifted):
        return str(fraction)
    digits = str(shifted).rjust(places + 1, "0")
    sign = "-" if fraction < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def json_number(value: Fraction | int) -> int | str:
    """Return a rational as JSON has it, exactly: an integer, or else text."""
    return value.numerator if value.denominator == 1 else format_exact(value)


def shown(value: Fraction | int, longest: int = _LONGEST_SHOWN) -> str:
    """Write a number for a message: exactly, or in round figures where that would be too long.

    Unlike :func:`format_exact` it takes numbers of any length, such as sums and products of numbers
    that are as long as may be.

    Examples
    --------
    >>> shown(Fraction(1, 3)), shown(10**5000 - 1), shown(Fraction(-2, 3 * 10**4300))
    ('1/3', 'about 1.000e5000', 'about -6.667e-4301')
    """
    if max(abs(value.numerator), value.denominator) < _TOO_LONG_TO_SHOW:
        text = format_exact(value)
        if len(text) <= longest:
            return text
    power = power_of_ten(value)
    figures = round(abs(Fraction(value)) * Fraction(10) ** (_SHOWN_FIGURES - 1 - power))
    if figures == 10**_SHOWN_FIGURES:
        figures, power = figures // 10, power + 1
    sign, digits = "-" if value < 0 else "", str(figures)
    return f"about {sign}{digits[0]}.{digits[1:]}{f'e{power}' if power else ''}"


def power_of_ten(value: Fraction | int) -> int:
    """Return the power of ten of a number's first digit, however long the number; 0 for 0."""
    above, below = abs(value.numerator), value.denominator
    if not above:
        return 0
    # From the lengths in binary, which take no time, to at most one too many.
    power = math.floor((above.bit_length() - below.bit_length() + 1) * math.log10(2))
    reached = above >= below * 10**power if power >= 0 else above * 10**-power >= below
    return power if reached else power - 1


def shown_object(value: object) -> str:
    """Write anything a caller may have given for a message: its ``repr``, cut where it is long."""
    try:
        text = shown(value) if type(value) is int else repr(value)
    except Exception:  # noqa: BLE001 (a number in it that Python does not print, or its own fault)
        return f"an object of type {type(value).__name__}"
    if len(text) <= _LONGEST_SHOWN:
        return text
    return f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"


def exact(
    value: Number,
    what: str,
    *,
    nonnegative: bool = True,
    computed: bool = False,
    error: type[Exception] = InvalidProblem,
) -> Fraction:
    """Turn one number into an exact rational.

    Examples
    --------
    >>> exact(0.1, "demand"), exact("1/3", "demand")
    (Fraction(1, 10), Fraction(1, 3))
    """
    result: Fraction | None = None
    huge = False
    if isinstance(value, bool | np.bool_ | np.timedelta64):  # numpy takes a duration for an integer
        pass
    elif isinstance(value, int | np.integer):
        result = Fraction(operator.index(value))
    elif isinstance(value, Fraction):
        result = Fraction(operator.index(value.numerator), operator.index(value.denominator))
    elif isinstance(value, Decimal):
        plain = Decimal(value)
        if plain.is_finite():
            # The exponents tell, without the integers being written out.
            lengths = abs(plain.adjusted()), -int(plain.as_tuple().exponent)
            huge = bool(plain) and max(lengths) >= LARGEST_DIGITS
            result = None if huge else Fraction(plain)
    elif isinstance(value, float | np.floating):
        # str() of a numpy scalar is the shortest decimal of its own precision
        result = Fraction(str.__str__(str(value))) if np.isfinite(value) else None
    elif isinstance(value, str):
        try:
            result = parse_exact(value)
        except ValueError as fault:
            raise error(f"{what}: {fault}") from None
    of_any_length = computed and isinstance(value, int | Fraction)
    if huge or (result is not None and not of_any_length and has_too_many_digits(result)):
        raise error(
            f"{what} has more than {LARGEST_DIGITS} digits; round it, or choose a larger unit"
        )
    if result is None:
        given = value.item() if isinstance(value, np.generic) else value
        raise error(
            f"{what} is {shown_object(given)}; expected a finite number (an int, float, Fraction, "
            'Decimal, or text such as "12.5" or "1/3")'
        )
    if nonnegative and result < 0:
        raise error(f"{what} is {shown(result)}; expected a number >= 0")
    return result


def whole(
    value: object, what: str, *, least: int | None = None, error: type[Exception] = InvalidProblem
) -> int:
    """Turn one count into an int; numpy integers are welcome, bools and floats are not."""
    expected = "a whole number" if least is None else f"a whole number >= {least}"
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        raise error(f"{what} is {shown_object(value)}; expected {expected}") from None
    if has_too_many_digits(number):
        raise error(f"{what} has more than {LARGEST_DIGITS} digits; expected {expected}")
    if least is not None and number < least:
        raise error(f"{what} is {shown(number)}; expected {expected}")
    return number


def in_parts(value: Fraction, parts: int) -> int:
    """Return how many 1/``parts`` a value is, which is a whole number of them.

    The product is not reduced, as that of fractions would be: common denominators are long.
    """
    return value.numerator * (parts // value.denominator)


def common_step(values: Iterable[Fraction]) -> Fraction:
    """Return the largest rational of which all values are whole multiples; 0 if all are 0.

    Examples
    --------
    >>> common_step([Fraction(3, 2), Fraction(1)])
    Fraction(1, 2)
    """
    step = Fraction(0)
    for value in values:
        denominator = math.lcm(step.denominator, value.denominator)
        step = Fraction(math.gcd(int(step * denominator), int(value * denominator)), denominator)
    return step
