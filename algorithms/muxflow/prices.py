"""Prices that prove a plan optimal, found exactly as longest paths; or what they prove before.

Between the offline classes, and a node ``none`` for GPUs that take nobody, runs what an exchange
gains: from k' to k, the most that w(o, k) exceeds w(o, k') by, over the GPUs o that serve k' now.
Let v be the longest paths from ``none``. If no circle gains, these are prices of the offline side
that hold with equality on every pair in use: the plan is optimal. A circle that gains is an
exchange that improves the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.running.stopping import look

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

#: No exchange: so far below any that no path of prices comes up again.
_NO_WAY = -(1 << 61)
#: Numbers worked on at once.
_AT_ONCE = 1 << 21


class Spread(NamedTuple):
    """A plan as arrays: the entry e puts ``amount[e]`` of the column on the row.

    Amounts may be of any size, so they are a list.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    amount: list[int]


class Longest(NamedTuple):
    """Prices of the offline side, and whether they are the longest paths.

    Attributes
    ----------
    prices : numpy.ndarray of int64, shape (K,)
    proved : bool
        Whether they prove the plan optimal.
    sweeps : int
    """

    prices: NDArray[np.int64]
    proved: bool
    sweeps: int


def exchanges(
    weights: NDArray[np.int64],
    plan: Spread,
    rows_left: NDArray[np.bool_],
    columns_left: NDArray[np.bool_],
    stopped: Callable[[], bool],
) -> NDArray[np.int64]:
    """Return what an exchange gains, shape (K + 1, K + 1); the last node is ``none``.

    Parameters
    ----------
    weights : numpy.ndarray of int64, shape (G, K)
        Negative where a pair is forbidden.
    plan : Spread
        Allowed pairs only.
    rows_left, columns_left : numpy.ndarray of bool
        Where GPUs, or workloads, are left over.
    stopped : callable

    Raises
    ------
    Stopped
    """
    k = weights.shape[1]
    gains = np.full((k + 1, k + 1), _NO_WAY, dtype=np.int64)
    worth = np.where(weights < 0, _NO_WAY, weights)
    gains[k, :k] = np.maximum(worth[rows_left].max(axis=0, initial=0), 0)
    gains[k, k] = 0
    order = np.argsort(plan.column, kind="stable")
    rows, columns = plan.row[order], plan.column[order]
    size = max(1, _AT_ONCE // (k + 1))
    for start in range(0, len(rows), size):
        look(stopped)
        some, of = rows[start : start + size], columns[start : start + size]
        now = worth[some, of]
        firsts = np.flatnonzero(np.diff(of, prepend=-1))
        more = np.maximum.reduceat(worth[some] - now[:, None], firsts, axis=0)
        at = of[firsts]
        gains[at, :k] = np.maximum(gains[at, :k], more)
        gains[at, k] = np.maximum(gains[at, k], np.maximum.reduceat(-now, firsts))
    gains[:k, k][columns_left] = np.maximum(gains[:k, k][columns_left], 0)
    return gains


def longest_paths(
    gains: NDArray[np.int64], stopped: Callable[[], bool], sweeps: int | None = None
) -> Longest:
    """Return the longest paths from ``none``, or how far they came.

    Parameters
    ----------
    gains : numpy.ndarray of int64, shape (K + 1, K + 1)
    stopped : callable
    sweeps : int, optional
        At most so many; without a circle that gains, K + 1 always suffice.

    Raises
    ------
    Stopped

    Examples
    --------
    >>> gains = np.array([[0, 3, -5], [-3, 0, -4], [1, 2, 0]])
    >>> longest_paths(gains, lambda: False)
    Longest(prices=array([1, 4]), proved=True, sweeps=3)
    """
    length = np.zeros(len(gains), dtype=np.int64)
    for sweep in range(1, (len(gains) + 1 if sweeps is None else sweeps) + 1):
        look(stopped)
        longer = (gains + length[:, None]).max(axis=0)
        longer = np.maximum(longer, length)
        if longer[-1] > 0:  # a circle through `none` gains
            break
        if (longer == length).all():
            return Longest(length[:-1], True, sweep)
        length = longer
    return Longest(length[:-1], False, sweep)
