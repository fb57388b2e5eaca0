"""Sums of many fractions: those of one denominator first, and then in pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Sums of numbers in int64 are kept below this.
_FITS = 2.0**62


def total(parts: Sequence[Fraction]) -> Fraction:
    """Add up fractions, those of one denominator first, and then in pairs.

    Examples
    --------
    >>> total([Fraction(1, 2), Fraction(1, 3), Fraction(1, 2)])
    Fraction(4, 3)
    """
    numerators: dict[int, int] = {}
    for part in parts:
        under = part.denominator
        numerators[under] = numerators.get(under, 0) + part.numerator
    sums = [Fraction(over, under) for under, over in sorted(numerators.items())]
    while len(sums) > 1:
        sums = [sum(sums[at : at + 2], Fraction(0)) for at in range(0, len(sums), 2)]
    return sums[0] if sums else Fraction(0)


def total_of_quotients(over: NDArray[Any], under: NDArray[Any]) -> Fraction:
    """Add up quotients of whole numbers > 0, given as arrays of int64 or of ints.

    Examples
    --------
    >>> total_of_quotients(np.array([1, 3, 1]), np.array([2, 9, 2]))
    Fraction(4, 3)
    """
    if not len(over):
        return Fraction(0)
    common = np.gcd(over, under)
    over, (denominators, places) = over // common, np.unique(under // common, return_inverse=True)
    if over.dtype != object and float(over.max()) * len(over) >= _FITS:
        over = over.astype(object)
    sums = np.zeros(len(denominators), dtype=over.dtype)
    np.add.at(sums, places, over)
    pairs = zip(sums.tolist(), denominators.tolist(), strict=True)
    return total([Fraction(numerator, denominator) for numerator, denominator in pairs])
