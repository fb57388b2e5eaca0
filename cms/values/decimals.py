"""Whole arrays of floats become exact decimals at once: the vectorised half of the door.

A float means the shortest decimal that prints as it. For a float64 that has a decimal of at most
15 significant digits this decimal is found by trying 0, 1, 2, ... digits after the point on the
whole array: ``r = round(x * 10**p)`` is the wanted numerator as soon as ``r / 10**p == x``,
because the division is correctly rounded (both operands are exact) and because no two decimals of
up to 15 digits read as the same float64. Anything else takes the slow path, one distinct value at
a time, through its printed form.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_PLACES = 18
# Decimals with up to this many significant digits are told apart by the type (IEEE 754: 15, 6).
_UNIQUE_DIGITS = {np.dtype(np.float64): 15, np.dtype(np.float32): 6}
# Rows worked on at once: what they need on the way stays in the processor's cache.
_CHUNK = 2**13


class DecimalRows(NamedTuple):
    """Rows of decimals as integers: job j's demand is ``demands[j] / denominators[j]``."""

    demands: NDArray[np.int64]
    supplies: NDArray[np.int64]
    denominators: NDArray[np.int64]
    hard: list[int]


def decimal_rows(demands: NDArray[Any], supply: NDArray[Any]) -> DecimalRows:
    """Write every row of floats (or ints) as the smallest integers over a common denominator."""
    n = len(demands)
    result = DecimalRows(
        np.empty(n, dtype=np.int64),
        np.empty(supply.shape, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        [],
    )
    likely = [0, 0]
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        parts = [decimals(demands[part, None], likely[0]), decimals(supply[part], likely[1])]
        likely = [int(places.max(initial=0)) for _, places in parts]
        integers, denominators, hard = _over_common_denominator(
            np.column_stack([numerators for numerators, _ in parts]),
            np.column_stack([places for _, places in parts]),
        )
        result.demands[part], result.supplies[part] = integers[:, 0], integers[:, 1:]
        result.denominators[part] = denominators
        result.hard.extend((hard + start).tolist())
    return result


def _over_common_denominator(
    numerators: NDArray[np.int64], places: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Return reduced integers, denominators and the rows (0 in both) that may not fit."""
    # By columns: numpy reduces short rows an element at a time.
    most = reduce(np.maximum, places.T).astype(np.int64)
    shift = most[:, None] - places
    # A row is easy if every value fits and stays below 2**62 over the common denominator.
    if shift.any():
        unfit = (numerators * 10.0**shift >= 2.0**62) | (places < 0)
    else:
        unfit = (numerators >= 2**62) | (places < 0)
    hard = np.flatnonzero(unfit.any(axis=1)) if unfit.any() else np.zeros(0, dtype=np.intp)
    shift[hard] = most[hard] = 0
    if shift.any():
        numerators *= 10**shift
    denominators = np.power(10, most)
    # Only 2 and 5 divide a denominator; a row whose numbers share either is reduced.
    shared = reduce(np.bitwise_or, numerators.T) & 1 == 0
    shared |= reduce(np.logical_and, (numerators % 5 == 0).T)
    at = np.flatnonzero(shared & (most > 0))
    common = denominators[at]
    for column in numerators[at].T:
        common = np.gcd(common, column)
    numerators[at] //= common[:, None]
    denominators[at] //= common
    numerators[hard] = 0
    denominators[hard] = 0
    return numerators, denominators, hard


def decimals(
    values: NDArray[np.floating[Any] | np.integer[Any]], likely: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Write floats (or ints) as ``numerator / 10**places``, exactly as they print."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64), np.zeros(values.shape, dtype=np.int8)
    flat = np.ascontiguousarray(values).reshape(-1)
    digits = _UNIQUE_DIGITS.get(flat.dtype)
    if digits is None:
        numerators = np.zeros(flat.shape, dtype=np.int64)
        places = np.full(flat.shape, -1, dtype=np.int8)
    else:
        numerators, places = _few_digits(flat, digits, likely)
    open_at = np.flatnonzero(places < 0)
    if open_at.size:
        distinct, where = np.unique(flat[open_at], return_inverse=True)
        parsed = [_printed(str(value)) for value in distinct]
        numerators[open_at] = np.array([r for r, _ in parsed], dtype=np.int64)[where]
        places[open_at] = np.array([p for _, p in parsed], dtype=np.int8)[where]
    return numerators.reshape(values.shape), places.reshape(values.shape)


def _few_digits(
    flat: NDArray[Any], digits: int, likely: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Write all values with few digits; -1 places for the others."""
    scaled, found = _scaled(flat, likely, digits)
    numerators = np.where(found, scaled, 0).astype(np.int64)
    places = np.where(found, likely, -1).astype(np.int8)
    open_at = np.flatnonzero(~found)
    for p in range(_LARGEST_PLACES + 1):
        if not open_at.size:
            break
        scaled, found = _scaled(flat[open_at], p, digits)
        hit = open_at[found]
        numerators[hit] = scaled[found].astype(np.int64)
        places[hit] = p
        # A value that is too large already only grows with p: it leaves for the slow path.
        open_at = open_at[(scaled <= 10.0**digits) & ~found]
    return numerators, places


def _scaled(
    values: NDArray[Any], places: int, digits: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numerators of values with so many places, and which are right."""
    # float64 arithmetic for float32 too: r and 10**p are exact there, and rounding twice does no
    # harm: of all r <= 10**6 and p <= 18, none lies within a relative 2**-50 of the middle between
    # two float32 (all were tried).
    with np.errstate(over="ignore"):
        scaled = np.rint(values.astype(np.float64, copy=False) * 10.0**places)
    back = (scaled / 10.0**places).astype(values.dtype, copy=False)
    return scaled, (scaled <= 10.0**digits) & (back == values)


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
