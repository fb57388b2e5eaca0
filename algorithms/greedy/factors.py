"""The logarithms in the guarantees, as rationals that are never below them (theory 2.2, 2.3)."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

_DIGITS = 50
#: Factors are rounded up to this many digits after the point.
_PRINTED = 10**6
#: Up to here harmonic numbers are added up exactly.
_SUMMED = 1_000
#: The Euler-Mascheroni constant, rounded up.
_EULER = Fraction(57_721_566_490_153_287, 10**17)
#: How finely the inflation is chosen.
_FINEST = 50


def rounded_up(value: Fraction) -> Fraction:
    """Round up to six digits after the point.

    Examples
    --------
    >>> rounded_up(Fraction(1, 3))
    Fraction(166667, 500000)
    """
    return Fraction(ceil(value * _PRINTED), _PRINTED)


def log_above(value: Fraction) -> Fraction:
    """Return a rational just above the natural logarithm of a number >= 1.

    Examples
    --------
    >>> 0 < float(log_above(Fraction(2)) - Fraction("0.693147180559945309417232121458")) < 1e-29
    True
    """
    up = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    quotient = up.divide(Decimal(value.numerator), Decimal(value.denominator))
    # Decimal's logarithm is within half a unit of its last digit.
    logarithm = Fraction(up.ln(quotient))
    return logarithm + Fraction(1, 10 ** (_DIGITS - 12))


def harmonic_above(number: int) -> Fraction:
    """Return a rational not below 1 + 1/2 + ... + 1/number; exact, but for rounding up.

    Examples
    --------
    >>> harmonic_above(4), float(harmonic_above(10**12)) < 28.21
    (Fraction(25, 12), True)
    """
    if number <= 0:
        return Fraction(0)
    if number <= 30:
        return sum((Fraction(1, i) for i in range(1, number + 1)), Fraction(0))
    if number <= _SUMMED:
        unit = 10**30
        return Fraction(sum(-(-unit // i) for i in range(1, number + 1)), unit)
    return log_above(Fraction(number)) + _EULER + Fraction(1, 2 * number)


def kappa(n: int) -> Fraction:
    """Return kappa with kappa - 1 - ln kappa >= ln n: the factor of the inflated greedy.

    Parameters
    ----------
    n : int
        >= 1.

    Returns
    -------
    Fraction
        Rounded up to six digits; theory 2.2 has a table.

    Examples
    --------
    >>> [float(kappa(n)) for n in (2, 16, 1024)]
    [2.678348, 5.472286, 10.259695]
    """
    return rounded_up(_kappa_above(max(1, n)))


@lru_cache
def _kappa_above(n: int) -> Fraction:
    """Halve what kappa is in; a run asks for the same few several times."""
    least = log_above(Fraction(n))
    low, high = Fraction(1), 4 + 2 * least
    while high - low > Fraction(1, 4 * _PRINTED):
        middle = Fraction(round((low + high) / 2 * 10**12), 10**12)
        if middle - 1 - log_above(middle) >= least:
            high = middle
        else:
            low = middle
    return high


def best_inflation(n: int) -> Fraction:
    """Return a simple delta near the best one, 1 / (kappa(n) - 1).

    Examples
    --------
    >>> best_inflation(16)
    Fraction(2, 9)
    """
    best = 1 / (max(kappa(n), Fraction(3, 2)) - 1)
    return max(best.limit_denominator(12), Fraction(1, _FINEST))


def inflated_factor(n: int, delta: Fraction) -> Fraction:
    """Return ``(1 + delta) ln((1 + delta) n / delta)``, rounded up (theory 2.2, G-real).

    Examples
    --------
    >>> inflated_factor(16, Fraction(2, 9)) - kappa(16) < Fraction(1, 1000)
    True
    """
    return rounded_up((1 + delta) * log_above((1 + delta) * max(1, n) / delta))
