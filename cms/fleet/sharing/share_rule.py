"""What share of a GPU is left for offline work beside an online service."""

from __future__ import annotations

from ...errors import InvalidProblem
from ...values.numbers import Number, exact, shown, whole


def sm_share(activity: Number, margin: int, lowest: int, *, clamp: bool = False) -> int:
    """Return the share of the SMs that offline work may have beside an online activity.

    It is what activity, rounded up, and margin leave; nothing, if that is below the lowest share
    worth having. It never rises with activity or margin.

    Parameters
    ----------
    activity : number
        Of the online side, in per cent of the SMs, 0 to 100: best a high quantile over the time
        until shares can be changed again, which takes a restart of the process.
    margin : int
        Kept free for what the activity does beyond that, in per cent, >= 0.
    lowest : int
        Smaller shares are not given out, in per cent, 0 to 100.
    clamp : bool, default False
        Give the lowest share instead of none: busy GPUs then have less free than the margin.

    Returns
    -------
    int
        Whole per cent. 0: nobody.

    Raises
    ------
    InvalidProblem
        If a number is out of its range.

    Examples
    --------
    >>> sm_share("22.5", margin=10, lowest=5), sm_share(90, margin=10, lowest=5)
    (67, 0)
    >>> sm_share(90, margin=10, lowest=5, clamp=True)
    5
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
