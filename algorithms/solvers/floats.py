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


def near(value: Fraction | int, unit: int = 1) -> float:
    """Return the float nearest to ``value / unit``, cut at ``LARGEST_FLOAT`` either way.

    What a solver makes of it is a hint; nothing is proved by a float.
    """
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
