"""The door where numbers come in: whatever the user writes becomes an exact rational.

``int``, ``Fraction``, ``Decimal`` and text are taken as they are. A binary ``float`` means the
shortest decimal that prints as it (0.1 is 1/10, a ``float32`` by its own shortest decimal). NaN,
infinities and (where they make no sense) negative numbers are refused by name.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from .errors import InvalidProblem

Number: TypeAlias = "int | float | Fraction | Decimal | str | np.integer[Any] | np.floating[Any]"

_TEXT = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)", re.ASCII)
# A power of ten above this is a slip of the keyboard, and as an exact integer would fill memory.
_LARGEST_EXPONENT = 400


def parse_exact(text: str) -> Fraction:
    """Read ``"12"``, ``"12.5"``, ``"1e3"`` or ``"1/3"`` as an exact rational.

    Parameters
    ----------
    text : str
        Blanks around it are allowed; decimal commas, thousands separators and units are not.

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
    if not _TEXT.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a number; write 12, 12.5, 1e3 or 1/3")
    mantissa, _, exponent = stripped.lower().partition("e")
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        raise ValueError(f"{text!r} has an exponent beyond {_LARGEST_EXPONENT}")
    if mantissa.endswith("/0") or re.fullmatch(r".*/0+", mantissa):
        raise ValueError(f"{text!r} divides by zero")
    return Fraction(stripped)


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
    digits = str(abs(fraction.numerator) * 10**places // fraction.denominator).rjust(
        places + 1, "0"
    )
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
    if isinstance(value, bool | np.bool_):
        pass
    elif isinstance(value, int | Fraction | np.integer):
        result = Fraction(int(value) if isinstance(value, np.integer) else value)
    elif isinstance(value, Decimal):
        result = Fraction(value) if value.is_finite() else None
    elif isinstance(value, float | np.floating):
        # str() of a numpy scalar is the shortest decimal of its own precision
        result = Fraction(str(value)) if np.isfinite(value) else None
    elif isinstance(value, str):
        try:
            result = parse_exact(value)
        except ValueError as fault:
            raise error(f"{what}: {fault}") from None
    if result is None:
        raise error(
            f"{what} is {value!r}; expected a finite number (an int, float, Fraction, Decimal, "
            'or text such as "12.5" or "1/3")'
        )
    if nonnegative and result < 0:
        raise error(f"{what} is {format_exact(result)}; expected a number >= 0")
    return result
