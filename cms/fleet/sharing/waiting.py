"""Fairness: who has waited longer counts for more, in steps, so that classes stay few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import InvalidOption
from ...values.numbers import exact, shown

if TYPE_CHECKING:
    from fractions import Fraction

    from ...values.numbers import Number

__all__ = ["WAITING_STEPS", "waited_priority"]

#: Steps in which waiting counts, in each scale.
WAITING_STEPS = 4


def waited_priority(priority: Number, waiting: Number, scale: Number) -> Fraction:
    """Return priority x (1 + waiting / scale), with the quotient rounded down to quarters.

    A priority like any other: matching stays exact, with a proof for these weights.

    Parameters
    ----------
    priority : number
        Of the workload, >= 0.
    waiting, scale : number
        In the same unit; >= 0 and > 0.

    Raises
    ------
    InvalidProblem
        If one is no number >= 0.
    InvalidOption
        If the scale is 0.

    Examples
    --------
    >>> [str(waited_priority(2, seconds, 3600)) for seconds in (0, 899, 900, 3600, 9000)]
    ['2', '2', '5/2', '4', '7']
    """
    of, waited, unit = exact(priority, "priority"), exact(waiting, "waiting"), exact(scale, "scale")
    if unit == 0:
        raise InvalidOption(f"scale is {shown(unit)}; expected a time > 0")
    return of + of * (WAITING_STEPS * waited // unit) / WAITING_STEPS
