"""Best plans by a flow between classes, and the prices that prove them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cms.running.stopping import Stopped, look

from ..solvers.transport import Offers, best_transport
from .filling import left_of
from .prices import Spread, exchanges, longest_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

#: Sweeps after which the prices of a plan that is not optimal are looked at; more do not help.
_SWEEPS = (1, 2, 4, 8, 16)


def best_plan(
    weights: NDArray[np.int64], rows: list[int], columns: list[int], budget: Budget | None
) -> Spread:
    """Return a plan of the most value.

    Raises
    ------
    Stopped
        If the budget's run was.
    """
    row, column = np.nonzero(weights > 0)
    offers = Offers(
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        row,
        column,
        weights[row, column],
    )
    flows = best_transport(offers, budget)
    if flows is None:
        raise Stopped
    used = np.flatnonzero(flows)
    return Spread(row[used], column[used], flows[used].tolist())


def prices_of(
    weights: NDArray[np.int64],
    plan: Spread,
    rows: list[int],
    columns: list[int],
    stopped: Callable[[], bool],
) -> NDArray[np.int64]:
    """Return the offline side's prices that prove a plan optimal; 0 or more if it is not."""
    gains = exchanges(weights, plan, *left_of(plan, rows, columns), stopped)
    return longest_paths(gains, stopped).prices


def rough_prices(
    weights: NDArray[np.int64],
    plan: Spread,
    rows: list[int],
    columns: list[int],
    stopped: Callable[[], bool],
) -> NDArray[np.int64]:
    """Return prices that prove something, beside a plan that need not be optimal.

    Any prices of one side prove a bound; those that come up on the way to the longest paths are
    looked at after a few sweeps each, and the best taken.
    """
    gains = exchanges(weights, plan, *left_of(plan, rows, columns), stopped)
    allowed = np.maximum(weights, 0)
    most = allowed.max(axis=0, initial=0)
    best: NDArray[np.int64] = most
    least = _bound(allowed, most, rows, columns)
    for sweeps in (0, *_SWEEPS):
        look(stopped)
        tried = np.zeros_like(most)
        if sweeps:
            tried = np.minimum(longest_paths(gains, stopped, sweeps).prices, most)
        bound = _bound(allowed, tried, rows, columns)
        if bound < least:
            best, least = tried, bound
    return best


def _bound(
    allowed: NDArray[np.int64], prices: NDArray[np.int64], rows: list[int], columns: list[int]
) -> int:
    left = (allowed - prices).max(axis=1, initial=0).tolist()
    total = sum(n * u for n, u in zip(rows, left, strict=True))
    total += sum(m * v for m, v in zip(columns, prices.tolist(), strict=True))
    return int(total)
