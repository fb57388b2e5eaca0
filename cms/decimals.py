"""Whole arrays of floats become exact decimals at once: the vectorised half of the door.

A float means the shortest decimal that prints as it. For a float64 that has a decimal of at most
15 significant digits this decimal is found by trying 0, 1, 2, ... digits after the point on the
whole array: ``r = round(x * 10**p)`` is the wanted numerator as soon as ``r / 10**p == x``,
because the division is correctly rounded (both operands are exact) and because no two decimals of
up to 15 digits read as the same float64. Anything else takes the slow path, one distinct value at
a time, through its printed form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_PLACES = 18
# Decimals with up to this many significant digits are told apart by the type (IEEE 754: 15, 6).
_UNIQUE_DIGITS = {np.dtype(np.float64): 15, np.dtype(np.float32): 6}


def decimals(
    values: NDArray[np.floating[Any] | np.integer[Any]],
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Write floats (or ints) as ``numerator / 10**places``, exactly as they print.

    Parameters
    ----------
    values : ndarray of float or int, any shape
        Finite and >= 0; ints below 2**63.

    Returns
    -------
    numerators : ndarray of int64, same shape
    places : ndarray of int8, same shape
        Digits after the point, 0 to 18; -1 where the value does not fit in this form (more than
        18 digits before or after the point): the caller takes ``Fraction(str(value))`` there.

    Examples
    --------
    >>> decimals(np.array([0.1, 12.5, 7.0, 1 / 3]))
    (array([               1,              125,                7, 3333333333333333]), \
array([ 1,  1,  0, 16], dtype=int8))
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64), np.zeros(values.shape, dtype=np.int8)
    flat = np.ascontiguousarray(values).reshape(-1)
    numerators = np.zeros(flat.shape, dtype=np.int64)
    places = np.full(flat.shape, -1, dtype=np.int8)
    digits = _UNIQUE_DIGITS.get(flat.dtype)
    if digits is None:
        open_at = np.arange(flat.size)
    else:
        open_at = _few_digits(flat, digits, numerators, places)
    if open_at.size:
        distinct, where = np.unique(flat[open_at], return_inverse=True)
        parsed = [_printed(str(value)) for value in distinct]
        numerators[open_at] = np.array([r for r, _ in parsed], dtype=np.int64)[where]
        places[open_at] = np.array([p for _, p in parsed], dtype=np.int8)[where]
    return numerators.reshape(values.shape), places.reshape(values.shape)


def _few_digits(
    flat: NDArray[Any],
    digits: int,
    numerators: NDArray[np.int64],
    places: NDArray[np.int8],
) -> NDArray[np.int64]:
    """Fill in all values with few digits; return the indices of the others."""
    limit = 10.0**digits
    open_at = np.arange(flat.size)
    rest = flat
    for p in range(_LARGEST_PLACES + 1):
        # float64 arithmetic for float32 too: r and 10**p are exact there, and rounding twice does
        # no harm: of all r <= 10**6 and p <= 18, none lies within a relative 2**-50 of the middle
        # between two float32 (all were tried).
        scaled = np.rint(rest.astype(np.float64) * 10.0**p)
        small = scaled <= limit
        found = small & ((scaled / 10.0**p).astype(flat.dtype) == rest)
        hit = open_at[found]
        numerators[hit] = scaled[found].astype(np.int64)
        places[hit] = p
        # A value that is too large already only grows with p: it leaves for the slow path.
        keep = small & ~found
        open_at, rest = open_at[keep], rest[keep]
        if not open_at.size:
            break
    return np.flatnonzero(places < 0)


def _printed(text: str) -> tuple[int, int]:
    """Numerator and places of a printed float, or (0, -1) if it does not fit."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    places = len(fraction) - int(exponent or 0)
    numerator = int(whole + fraction)
    if places < 0 and places >= -_LARGEST_PLACES:
        numerator, places = numerator * 10**-places, 0
    if 0 <= places <= _LARGEST_PLACES and numerator < 2**63:
        return numerator, places
    return 0, -1
