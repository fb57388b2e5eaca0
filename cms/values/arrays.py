"""Arrays as users have them, taken in without a number changing its meaning, and kept read-only.

``numpy.asarray`` makes binary floats of a list in which an int stands beside a float, and forgets
what a masked array hides; neither may happen unnoticed to exact numbers.

A float means the shortest decimal that prints as it. For a float64 that has a decimal of at most 15
significant digits this decimal is found by trying 0, 1, 2, ... digits after the point on the whole
array: ``r = round(x * 10**p)`` is the wanted numerator as soon as ``r / 10**p == x``, because the
division is correctly rounded (both operands are exact) and because no two decimals of up to 15
digits read as the same float64. Anything else takes the slow path, one distinct value at a time,
through its printed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidProblem
from .numbers import exact

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


_MAX_PLACES = 18
_TENS = 10.0 ** np.arange(_MAX_PLACES + 2)  # exact
# Decimals with up to this many significant digits are told apart by the type (IEEE 754: 15, 6).
_UNIQUE_DIGITS = {np.dtype(np.float64): 15, np.dtype(np.float32): 6}
# Rows worked on at once, within the processor's cache.
_CHUNK = 2**13


def number_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return an array of what is given; of its objects, where any other would change them.

    Examples
    --------
    >>> number_array([2**53 + 1, 0.5], "demands")
    array([9007199254740993, 0.5], dtype=object)
    """
    if np.ma.is_masked(values):
        raise InvalidProblem(f"{what} has masked values; fill them in or leave them out")
    try:
        plain = np.asarray(values)
        if not isinstance(values, Sequence) or isinstance(values, str):
            return plain
        objects = np.array(values, dtype=object)
    except (TypeError, ValueError) as fault:
        raise InvalidProblem(f"{what} is no array: {fault}") from None
    kinds = set(map(type, objects.reshape(-1)))
    if kinds <= {float, np.float64} or (kinds == {int} and plain.dtype.kind in "iu"):
        return plain
    return objects


def refuse_bad_numbers(
    demands: NDArray[Any], supply: NDArray[Any], job_names: Sequence[str], blocks: Sequence[str]
) -> None:
    """Name the first NaN, infinite or negative value of two arrays of ints or floats."""
    for table in (demands, supply):
        bad = table < 0
        if table.dtype.kind == "f":
            bad |= ~np.isfinite(table)
        if bad.any():
            j, *block = (int(index) for index in np.argwhere(bad)[0])
            exact(table[(j, *block)], described(job_names[j], *(blocks[i] for i in block)))


def described(job: str, block: str | None = None) -> str:
    """Word what a number of the two arrays is, for an error."""
    if block is None:
        return f"demand of job {job!r}"
    return f"supply of block {block!r} to job {job!r}"


def integers(table: Any) -> NDArray[Any]:
    """Return Python's integers as int64, or as they are if one is larger; numpy makes floats."""
    try:
        return np.array(table, dtype=np.int64)
    except OverflowError:
        return np.array(table, dtype=object)


def roomy(values: NDArray[Any], times: int) -> NDArray[Any]:
    """Return integers as Python's own if `times` the largest of them may leave 62 bits."""
    most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    return values.astype(object) if most * times >= 2**62 else values


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only; return a view of it that cannot be made writeable by itself."""
    values.setflags(write=False)
    return values.view()


class DecimalRows(NamedTuple):
    """Rows of decimals as integers: job j's demand is ``demands[j] / denominators[j]``.

    ``hard`` are rows that may need more than 62 bits, 0 in all three arrays: the caller takes
    ``Fraction(str(value))`` there.
    """

    demands: NDArray[np.int64]
    supplies: NDArray[np.int64]
    denominators: NDArray[np.int64]
    hard: list[int]


def decimal_rows(demands: NDArray[Any], supply: NDArray[Any]) -> DecimalRows:
    """Write every row of finite floats >= 0 (or ints) as the smallest integers."""
    n = len(demands)
    integers = np.empty(n, np.int64), np.empty(supply.shape, np.int64), np.empty(n, np.int64)
    result = DecimalRows(*integers, [])
    likely = [0, 0]
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        parts = [decimals(demands[part, None], likely[0]), decimals(supply[part], likely[1])]
        likely = [int(places.max(initial=0)) for _, places in parts]
        numerators, places = (np.column_stack(columns) for columns in zip(*parts, strict=True))
        denominators, hard = _put_over_common_denominator(numerators, places)
        result.demands[part], result.supplies[part] = numerators[:, 0], numerators[:, 1:]
        result.denominators[part] = denominators
        result.hard.extend((hard + start).tolist())
    return result


def _put_over_common_denominator(
    numerators: NDArray[np.int64], places: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Make numerators the reduced integers; return denominators, and the rows that may not fit."""
    # By columns: numpy reduces short rows an element at a time.
    most = reduce(np.maximum, places.T).astype(np.int64)
    tens = _TENS[most[:, None] - places]
    # A row is easy if every value fits and stays below 2**62 over the common denominator.
    hard = np.flatnonzero(((numerators * tens >= 2.0**62) | (places < 0)).any(axis=1))
    tens[hard] = 1
    most[hard] = numerators[hard] = 0
    numerators *= tens.astype(np.int64)
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
    denominators[hard] = 0
    return denominators, hard


def decimals(
    values: NDArray[np.floating[Any] | np.integer[Any]], likely: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Write finite floats >= 0 (or ints) as ``numerator / 10**places``, exactly as they print.

    Places are 0 to 18, perhaps with zeros at the end if they are ``likely``, which is tried first;
    -1 where the value does not fit in this form.
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64), np.zeros(values.shape, dtype=np.int8)
    flat = np.ascontiguousarray(values).reshape(-1)
    numerators = np.zeros(flat.shape, dtype=np.int64)
    places = np.full(flat.shape, -1, dtype=np.int8)
    digits = _UNIQUE_DIGITS.get(flat.dtype, 0)
    left = np.arange(flat.size)
    for attempt, p in enumerate((likely, *range(_MAX_PLACES + 1)) if digits else ()):
        if not left.size:
            break
        some = flat[left] if attempt else flat
        # float64 arithmetic for float32 too: r and 10**p are exact there, and rounding twice does
        # no harm: of all r <= 10**6 and p <= 18, none lies within a relative 2**-50 of the middle
        # between two float32 (all were tried).
        with np.errstate(over="ignore"):
            scaled = np.rint(some.astype(np.float64, copy=False) * 10.0**p)
        fits = scaled <= 10.0**digits
        found = fits & ((scaled / 10.0**p).astype(flat.dtype, copy=False) == some)
        numerators[left[found]], places[left[found]] = scaled[found].astype(np.int64), p
        # A value that is too large already only grows with p: it leaves for the slow path.
        left = left[~found & (fits | (attempt == 0))]
    rest = np.flatnonzero(places < 0)
    if rest.size:
        distinct, where = np.unique(flat[rest], return_inverse=True)
        printed = np.array([_printed(str(value)) for value in distinct], dtype=np.int64)[where]
        numerators[rest], places[rest] = printed[:, 0], printed[:, 1]
    return numerators.reshape(values.shape), places.reshape(values.shape)


def _printed(text: str) -> tuple[int, int]:
    """Numerator and places of a printed float, or (0, -1) if it does not fit."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    places = len(fraction) - int(exponent or 0)
    numerator = int(whole + fraction)
    if -_MAX_PLACES <= places < 0:
        numerator, places = numerator * 10**-places, 0
    fits = 0 <= places <= _MAX_PLACES and numerator < 2**63
    return (numerator, places) if fits else (0, -1)


def narrowest(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in as few bytes as they need, little-endian; long ones as they are."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in ("<i1", "<i2", "<i4", "<i8"):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return values.astype(kind)
    return values
