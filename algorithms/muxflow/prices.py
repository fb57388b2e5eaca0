"""Prices that prove a plan optimal, found exactly as longest paths; or what they prove before.

Between the offline classes, and a node ``none`` for GPUs that take nobody, runs what an exchange
gains: from k' to k, the most that w(o, k) exceeds w(o, k') by, over the GPUs o that serve k' now.
Let v be the longest paths from ``none``. If no circle gains, these are prices of the offline side
that hold with equality on every pair in use: the plan is optimal. A circle that gains is an
exchange that improves the plan.
"""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from cms.running.stopping import look

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .plans import Counts, Spread

#: No exchange: so far below any that no path of prices comes up again.
_NO_WAY = -(1 << 61)
#: Numbers worked on at once.
_AT_ONCE = 1 << 21
#: Sweeps after which the prices of a plan that is not optimal are looked at; more do not help.
_SWEEPS = (1, 2, 4, 8, 16)


def exchanges(
    weights: NDArray[np.int64], plan: Spread, counts: Counts, stopped: Callable[[], bool]
) -> NDArray[np.int64]:
    """Return what an exchange gains, shape (K + 1, K + 1); the last node is ``none``.

    Weights (G, K) are negative where a pair is forbidden; the plan has allowed pairs only, of the
    GPUs and workloads that there are.
    """
    k = weights.shape[1]
    rows_left, columns_left = map(list, counts)
    for i, j, n in zip(plan.row.tolist(), plan.column.tolist(), plan.amount, strict=True):
        rows_left[i] -= n
        columns_left[j] -= n
    gains = np.full((k + 1, k + 1), _NO_WAY, dtype=np.int64)
    worth = np.where(weights < 0, _NO_WAY, weights)
    idle = worth[np.array([n > 0 for n in rows_left], dtype=np.bool_)]
    gains[k, :k] = np.maximum(idle.max(axis=0, initial=0), 0)
    gains[k, k] = 0
    order = np.argsort(plan.column, kind="stable")
    row, column = plan.row[order], plan.column[order]
    size = max(1, _AT_ONCE // (k + 1))
    for start in range(0, len(row), size):
        look(stopped)
        some, of = row[start : start + size], column[start : start + size]
        now = worth[some, of]
        firsts = np.flatnonzero(np.diff(of, prepend=-1))
        more = np.maximum.reduceat(worth[some] - now[:, None], firsts, axis=0)
        at = of[firsts]
        gains[at, :k] = np.maximum(gains[at, :k], more)
        gains[at, k] = np.maximum(gains[at, k], np.maximum.reduceat(-now, firsts))
    waiting = np.array([n > 0 for n in columns_left], dtype=np.bool_)
    gains[:k, k][waiting] = np.maximum(gains[:k, k][waiting], 0)
    return gains


def longest_paths(
    gains: NDArray[np.int64], stopped: Callable[[], bool], sweeps: int | None = None
) -> tuple[NDArray[np.int64], bool]:
    """Return the longest paths from ``none`` (K,) after so many sweeps, and whether they are final.

    These prices then prove the plan optimal; without a circle that gains, K + 1 sweeps suffice.
    """
    length = np.zeros(len(gains), dtype=np.int64)
    for _ in range(len(gains) + 1 if sweeps is None else sweeps):
        look(stopped)
        longer = (gains + length[:, None]).max(axis=0)
        longer = np.maximum(longer, length)
        if longer[-1] > 0:  # a circle through `none` gains
            break
        if (longer == length).all():
            return length[:-1], True
        length = longer
    return length[:-1], False


def prices_of(
    weights: NDArray[np.int64], plan: Spread, counts: Counts, stopped: Callable[[], bool]
) -> NDArray[np.int64]:
    """Return the offline side's prices that prove a plan optimal; 0 or more if it is not."""
    return longest_paths(exchanges(weights, plan, counts, stopped), stopped)[0]


def rough_prices(
    weights: NDArray[np.int64], plan: Spread, counts: Counts, stopped: Callable[[], bool]
) -> NDArray[np.int64]:
    """Return prices that prove something, beside a plan that need not be optimal.

    Any prices of one side prove a bound; those that come up on the way to the longest paths are
    looked at after a few sweeps each, and the best taken.
    """
    gains = exchanges(weights, plan, counts, stopped)
    allowed = np.maximum(weights, 0)
    most = allowed.max(axis=0, initial=0)
    tried = [most, np.zeros_like(most)]
    tried += [np.minimum(longest_paths(gains, stopped, n)[0], most) for n in _SWEEPS]

    def bound(prices: NDArray[np.int64]) -> int:
        sides = (allowed - prices).max(axis=1, initial=0).tolist(), prices.tolist()
        return sum(sum(map(mul, *pair)) for pair in zip(counts, sides, strict=True))

    return min(tried, key=bound)
