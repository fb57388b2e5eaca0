"""Two rules of co-location: the share left for offline work, and what waiting counts for."""

from __future__ import annotations

from fractions import Fraction

from ...errors import InvalidOption, InvalidProblem
from ...values.numbers import Number, exact, shown, whole

#: Steps in which waiting counts, in each scale: so classes stay few.
WAITING_STEPS = 4


def sm_share(activity: Number, margin: int, lowest: int, *, clamp: bool = False) -> int:
    """Return the share of the SMs that offline work may have beside an online activity.

    It is what activity, rounded up, and margin leave, in whole per cent; 0, so nobody, if that is
    below the lowest share. It never rises with activity or margin.

    Parameters
    ----------
    activity : number
        Of the online side, in per cent: best a high quantile of the time until shares change.
    margin : int
        Kept free for more activity than that, in per cent.
    lowest : int
        Smaller shares are not given out, in per cent.
    clamp : bool, default False
        Give the lowest share instead of none: busy GPUs then have less free than the margin.

    Examples
    --------
    >>> sm_share("22.5", margin=10, lowest=5), sm_share(90, margin=10, lowest=5)
    (67, 0)
    """
    part = exact(activity, "activity")
    if part > 100:
        raise InvalidProblem(f"activity is {shown(part)}; expected per cent, 0 to 100")
    checked_percent(margin, "margin")
    checked_percent(lowest, "lowest share")
    left = 100 + (-part.numerator // part.denominator) - margin
    if left >= lowest:
        return max(left, 0)
    return lowest if clamp else 0


def checked_percent(value: object, what: str) -> int:
    """Return a whole number from 0 to 100, or raise InvalidProblem."""
    number = whole(value, what, least=0)
    if number > 100:
        raise InvalidProblem(f"{what} is {shown(number)}; expected whole per cent, 0 to 100")
    return number


def waited_priority(priority: Number, waiting: Number, scale: Number) -> Fraction:
    """Return priority x (1 + waiting / scale), with the quotient rounded down to quarters.

    It is a priority like any other: matching stays exact, with a proof for these weights. Waiting
    and scale are in the same unit.
    """
    of, waited, unit = exact(priority, "priority"), exact(waiting, "waiting"), exact(scale, "scale")
    if unit == 0:
        raise InvalidOption(f"scale is {shown(unit)}; expected a time > 0")
    return of + of * (WAITING_STEPS * waited // unit) / WAITING_STEPS
