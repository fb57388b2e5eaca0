"""The door where numbers come in: whatever the user writes becomes an exact rational.

``int``, ``Fraction``, ``Decimal`` and text are taken as they are. A binary ``float`` means the
shortest decimal that prints as it (0.1 is 1/10, a ``float32`` by its own shortest decimal). NaN,
infinities and (where they make no sense) negative numbers are refused by name.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Any, TypeAlias

import numpy as np

from .errors import InvalidProblem

Number: TypeAlias = "int | float | Fraction | Decimal | str | np.integer[Any] | np.floating[Any]"

_TEXT = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)", re.ASCII)
# A power of ten above this is a slip of the keyboard, and as an exact integer would fill memory.
_LARGEST_EXPONENT = 400
#: Digits of a number, before and after the point: Python neither reads nor prints longer ones.
LARGEST_DIGITS = 4300
_TOO_LARGE = 10**LARGEST_DIGITS


def parse_exact(text: str) -> Fraction:
    """Read ``"12"``, ``"12.5"``, ``"1e3"`` or ``"1/3"`` as an exact rational.

    Parameters
    ----------
    text : str
        Blanks around it are allowed; decimal commas, thousands separators and units are not. An
        exponent is at most 400 in size, and there are at most 4300 digits.

    Returns
    -------
    Fraction

    Raises
    ------
    ValueError
        If the text is not a number in one of these forms.

    Examples
    --------
    >>> parse_exact("310.5"), parse_exact("1/3")
    (Fraction(621, 2), Fraction(1, 3))
    """
    stripped = text.strip()
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
    """Whether numerator or denominator are too long to be printed.

    Examples
    --------
    >>> has_too_many_digits(10**4299), has_too_many_digits(Fraction(1, 10**4300))
    (False, True)
    """
    return not (-_TOO_LARGE < value.numerator < _TOO_LARGE and value.denominator < _TOO_LARGE)


def format_exact(value: Fraction | int) -> str:
    """Write a rational so that :func:`parse_exact` gives it back: ``12``, ``12.5`` or ``1/3``.

    Examples
    --------
    >>> format_exact(Fraction(621, 2)), format_exact(Fraction(1, 3)), format_exact(7)
    ('310.5', '1/3', '7')
    """
    fraction = Fraction(value)
    if fraction.denominator == 1:
        return str(fraction.numerator)
    twos = fives = 0
    rest = fraction.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > _LARGEST_EXPONENT:
        return str(fraction)
    shifted = abs(fraction.numerator) * 10**places // fraction.denominator
    if has_too_many_digits(shifted):
        return str(fraction)
    digits = str(shifted).rjust(places + 1, "0")
    sign = "-" if fraction < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def exact(
    value: Number,
    what: str,
    *,
    nonnegative: bool = True,
    error: type[Exception] = InvalidProblem,
) -> Fraction:
    """Turn one number into an exact rational.

    Parameters
    ----------
    value : int, float, Fraction, Decimal, str or numpy scalar
        A float means the shortest decimal that prints as it.
    what : str
        What the number is ("demand of job 'bert'"), for the error.
    nonnegative : bool, default True
        Whether negative numbers are refused.
    error : type, default InvalidProblem
        The exception raised.

    Returns
    -------
    Fraction

    Raises
    ------
    InvalidProblem
        (or ``error``) if the value is not a finite number or is negative.

    Examples
    --------
    >>> exact(0.1, "demand"), exact("1/3", "demand")
    (Fraction(1, 10), Fraction(1, 3))
    """
    result: Fraction | None = None
    if isinstance(value, bool | np.bool_ | np.timedelta64):  # numpy takes a duration for an integer
        pass
    elif isinstance(value, int | Fraction | np.integer):
        result = Fraction(int(value) if isinstance(value, np.integer) else value)
    elif isinstance(value, Decimal):
        result = Fraction(value) if value.is_finite() and not _is_huge(value) else None
    elif isinstance(value, float | np.floating):
        # str() of a numpy scalar is the shortest decimal of its own precision
        result = Fraction(str(value)) if np.isfinite(value) else None
    elif isinstance(value, str):
        try:
            result = parse_exact(value)
        except ValueError as fault:
            raise error(f"{what}: {fault}") from None
    huge = isinstance(value, Decimal) and _is_huge(value)
    if huge or (result is not None and has_too_many_digits(result)):
        raise error(
            f"{what} has more than {LARGEST_DIGITS} digits; round it, or choose a larger unit"
        )
    if result is None:
        shown = value.item() if isinstance(value, np.generic) else value
        raise error(
            f"{what} is {shown!r}; expected a finite number (an int, float, Fraction, Decimal, "
            'or text such as "12.5" or "1/3")'
        )
    if nonnegative and result < 0:
        raise error(f"{what} is {format_exact(result)}; expected a number >= 0")
    return result


def whole(
    value: object,
    what: str,
    *,
    least: int | None = None,
    error: type[Exception] = InvalidProblem,
) -> int:
    """Turn one count into an int; numpy integers are welcome, bools and floats are not.

    Parameters
    ----------
    value : object
        Anything that Python takes for an index.
    what : str
        What is counted, for the error.
    least : int, optional
        The smallest number allowed.
    error : type, default InvalidProblem
        The exception raised.

    Raises
    ------
    InvalidProblem
        (or ``error``) if it is no whole number, or too small.

    Examples
    --------
    >>> whole(np.int64(7), "count")
    7
    """
    expected = "a whole number" if least is None else f"a whole number >= {least}"
    number: int | None = None
    if not isinstance(value, bool | np.bool_):
        try:
            number = int(operator.index(value))  # type: ignore[arg-type]
        except TypeError:
            number = None
    if number is None:
        raise error(f"{what} is {value!r}; expected {expected}")
    if has_too_many_digits(number):
        raise error(f"{what} has more than {LARGEST_DIGITS} digits; expected {expected}")
    if least is not None and number < least:
        raise error(f"{what} is {number}; expected {expected}")
    return number


def common_step(values: Iterable[Fraction]) -> Fraction:
    """Return the largest rational of which all values are whole multiples; 0 if all are 0.

    Examples
    --------
    >>> common_step([Fraction(3, 2), Fraction(1)])
    Fraction(1, 2)
    """
    step = Fraction(0)
    for value in values:
        denominator = lcm(step.denominator, value.denominator)
        step = Fraction(gcd(int(step * denominator), int(value * denominator)), denominator)
    return step


def _is_huge(value: Decimal) -> bool:
    """Whether a decimal's integers would be too long, found without writing them out."""
    if not value or not value.is_finite():
        return False
    exponent = value.as_tuple().exponent
    return abs(value.adjusted()) >= LARGEST_DIGITS or -int(exponent) >= LARGEST_DIGITS
