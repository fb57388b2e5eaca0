"""Arrays as users have them, taken in without a number changing its meaning, and kept read-only.

``numpy.asarray`` makes binary floats of a list in which an int stands beside a float, and forgets
what a masked array hides; neither may happen unnoticed to exact numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from .numbers import exact

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def number_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return an array of what is given; of its objects, where any other would change them.

    Examples
    --------
    >>> number_array([2**53 + 1, 0.5], "demands")
    array([9007199254740993, 0.5], dtype=object)
    """
    if np.ma.is_masked(values):
        raise InvalidProblem(f"{what} has masked values; fill them in or leave them out")
    try:
        plain = np.asarray(values)
        if not isinstance(values, Sequence) or isinstance(values, str):
            return plain
        objects = np.array(values, dtype=object)
    except (TypeError, ValueError) as fault:
        raise InvalidProblem(f"{what} is no array: {fault}") from None
    kinds = set(map(type, objects.reshape(-1)))
    if kinds <= {float, np.float64} or (kinds == {int} and plain.dtype.kind in "iu"):
        return plain
    return objects


def refuse_bad_numbers(
    demands: NDArray[Any], supply: NDArray[Any], job_names: Sequence[str], blocks: Sequence[str]
) -> None:
    """Name the first NaN, infinite or negative value of two arrays of ints or floats."""
    for table in (demands, supply):
        bad = table < 0
        if table.dtype.kind == "f":
            bad |= ~np.isfinite(table)
        if bad.any():
            j, *block = (int(index) for index in np.argwhere(bad)[0])
            exact(table[(j, *block)], described(job_names[j], *(blocks[i] for i in block)))


def described(job: str, block: str | None = None) -> str:
    """Word what a number of the two arrays is, for an error."""
    if block is None:
        return f"demand of job {job!r}"
    return f"supply of block {block!r} to job {job!r}"


def roomy(values: NDArray[Any], times: int) -> NDArray[Any]:
    """Return integers as Python's own if so many times the largest of them may leave 62 bits."""
    most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    return values.astype(object) if most * times >= 2**62 else values


def frozen_array(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody can make writeable again (it lives in a ``bytes`` object)."""
    packed = np.frombuffer(values.tobytes(), dtype=values.dtype)
    return packed.reshape(values.shape)
