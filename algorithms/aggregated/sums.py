"""Sums of many fractions: those of one denominator first, and then in pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.errors import UnsupportedProblem
from cms.running.stopping import look, never

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

#: Binary digits of a denominator, beyond which a sum takes longer than anybody may wait.
_MOST_BITS = 2**20
#: Additions between two looks at the clock.
_AT_ONCE = 64


def total_of_quotients(
    over: NDArray[Any], under: NDArray[Any], stopped: Callable[[], bool] = never
) -> Fraction:
    """Add up quotients of whole numbers > 0 whose sum fits, as arrays of int64 or of ints.

    Raises
    ------
    Stopped
    UnsupportedProblem
        If the sum's denominator is too long.

    Examples
    --------
    >>> total_of_quotients(np.array([1, 3, 1]), np.array([2, 9, 2]))
    Fraction(4, 3)
    """
    common = np.gcd(over, under)
    over, (denominators, places) = over // common, np.unique(under // common, return_inverse=True)
    sums = np.zeros(len(denominators), dtype=over.dtype)
    np.add.at(sums, places, over)
    left = [Fraction(*pair) for pair in zip(sums.tolist(), denominators.tolist(), strict=True)]
    while len(left) > 1:
        look(stopped)
        if left[0].denominator.bit_length() > _MOST_BITS // 2:
            raise UnsupportedProblem(
                "the numbers of blocks that jobs need have no common denominator that can be "
                "written down; use auto or price_and_branch"
            )
        pairs = []
        for number, at in enumerate(range(0, len(left), 2)):
            if not number % _AT_ONCE:
                look(stopped)
            pairs.append(sum(left[at : at + 2], Fraction(0)))
        left = pairs
    return left[0] if left else Fraction(0)
