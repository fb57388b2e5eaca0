"""Closed forms: what a surge does to a service, seen as a fluid that runs into a tank."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption
from ...values.numbers import shown

__all__ = ["Surge", "surge"]


class Surge(NamedTuple):
    """What a surge leaves behind.

    Attributes
    ----------
    backlog_seconds : Fraction
        How long the instances work on what waits at its end; the last one's wait.
    drain_seconds : Fraction or None
        How long after its end nothing waits any more; None if that never comes.
    """

    backlog_seconds: Fraction
    drain_seconds: Fraction | None


def surge(load: Fraction, factor: Fraction, seconds: Fraction) -> Surge:
    """Say what a service goes through whose rate is multiplied for a while.

    Parameters
    ----------
    load : Fraction
        The rate before and after it, as a share of what the instances work off.
    factor : Fraction
        By what the rate is multiplied.
    seconds : Fraction
        For how long.

    Examples
    --------
    >>> surge(Fraction(17, 20), Fraction(13, 10), Fraction(30))
    Surge(backlog_seconds=Fraction(63, 20), drain_seconds=Fraction(21, 1))
    """
    if load < 0 or factor < 0 or seconds < 0:
        raise InvalidOption(
            f"a load of {shown(load)} times {shown(factor)} for {shown(seconds)} s; expected "
            "numbers >= 0"
        )
    backlog = max(load * factor - 1, Fraction(0)) * seconds
    if not backlog:
        return Surge(backlog, Fraction(0))
    return Surge(backlog, backlog / (1 - load) if load < 1 else None)
