"""Rationals of a small denominator behind floating-point numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .floats import near

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

#: Denominators of a vertex that is recognised, and how near the floats must be to it.
_DENOMINATORS = np.arange(1, 1001)
_RECOGNISED = 1e-7


def recognised(values: Sequence[Fraction | float]) -> tuple[list[int], int] | None:
    """Find the rationals of a small common denominator that floats stand for.

    Vertices of the price region often have one below 100.
    """
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
