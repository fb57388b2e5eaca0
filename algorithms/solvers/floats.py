"""Exact numbers for floating-point solvers: the one place where they are rounded, and cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

#: Numbers beyond are cut: a solver multiplies a few of them, and no product may leave the floats.
LARGEST_FLOAT = 1e100
#: Denominators of a vertex that is recognised, and how near the floats must be to it.
_DENOMINATORS = np.arange(1, 1001)
_RECOGNISED = 1e-7


def near(value: Fraction | int, unit: int = 1) -> float:
    """Return the float nearest to ``value / unit``, cut at ``LARGEST_FLOAT`` either way."""
    try:
        found = value.numerator / (value.denominator * unit)
    except OverflowError:
        found = LARGEST_FLOAT if value > 0 else -LARGEST_FLOAT
    return max(-LARGEST_FLOAT, min(LARGEST_FLOAT, found))


def near_table(rows: Sequence[Sequence[int]]) -> NDArray[Any]:
    """Return the floats nearest to a table of whole numbers, cut likewise."""
    try:
        found = np.array(rows, dtype=np.float64)
    except OverflowError:
        found = np.array([[near(number) for number in row] for row in rows])
    return np.clip(found, -LARGEST_FLOAT, LARGEST_FLOAT)


def recognised(values: Sequence[Fraction | float]) -> tuple[list[int], int] | None:
    """Find the rationals of a small common denominator that floats stand for."""
    floats = [value if isinstance(value, float) else near(value) for value in values]
    if any(value and not number for value, number in zip(values, floats, strict=True)):
        return None  # what no float holds is not taken for 0
    scaled = np.multiply.outer(_DENOMINATORS, np.array(floats, dtype=np.float64))
    nearest = np.rint(scaled)
    # Relative to small values, so that none of them is taken for 0.
    wrong = np.abs(scaled - nearest) - _RECOGNISED * np.minimum(1.0, np.abs(scaled))
    good = np.flatnonzero(wrong.max(axis=1, initial=0.0) <= 0)
    if not len(good):
        return None
    at = int(good[0])
    return [int(number) for number in nearest[at]], int(_DENOMINATORS[at])
