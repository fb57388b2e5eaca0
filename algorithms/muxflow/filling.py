"""Plans made pair by pair: each pair of classes takes all that is left of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cms.fleet.sharing.plan import SharingPlan
from cms.plugin.algorithm import Named
from cms.running.stopping import look

from .prices import Spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from cms.fleet.sharing.problem import SharingProblem

#: Pairs looked at between two looks at the clock.
_AT_ONCE = 1 << 13


def pairs_by_weight(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs that are worth something, the best first: positions in the flat table.

    Examples
    --------
    >>> pairs_by_weight(np.array([[3, -1], [0, 9]])).tolist()
    [3, 0]
    """
    order = np.argsort(-weights, axis=None, kind="stable")
    return order[: int((weights > 0).sum())]


def filled(
    pairs: NDArray[np.int64], rows: list[int], columns: list[int], stopped: Callable[[], bool]
) -> Spread:
    """Go through pairs in their order, and put on each as many workloads as there still can be.

    Parameters
    ----------
    pairs : numpy.ndarray of int64
        Positions in the flat table of rows and columns.
    rows, columns : list of int
        How many GPUs and workloads there are.
    stopped : callable

    Raises
    ------
    Stopped

    Examples
    --------
    >>> filled(np.array([3, 0, 2]), [2, 4], [5, 3], lambda: False)
    Spread(row=array([1, 0, 1]), column=array([1, 0, 0]), amount=[3, 2, 1])
    """
    left, wanted = list(rows), list(columns)
    open_rows = np.array([n > 0 for n in left], dtype=np.bool_)
    open_columns = np.array([n > 0 for n in wanted], dtype=np.bool_)
    entries: list[tuple[int, int, int]] = []
    width = len(columns)
    for start in range(0, len(pairs), _AT_ONCE):
        look(stopped)
        if not (open_rows.any() and open_columns.any()):
            break
        some = pairs[start : start + _AT_ONCE]
        row, column = some // width, some % width
        useful = open_rows[row] & open_columns[column]
        for i, j in zip(row[useful].tolist(), column[useful].tolist(), strict=True):
            if count := min(left[i], wanted[j]):
                entries.append((i, j, count))
                left[i] -= count
                wanted[j] -= count
                open_rows[i], open_columns[j] = left[i] > 0, wanted[j] > 0
    return spread_of(entries)


def spread_of(entries: list[tuple[int, int, int]]) -> Spread:
    """Return entries (row, column, count) as arrays."""
    places = np.array([entry[:2] for entry in entries], dtype=np.int64).reshape(-1, 2)
    return Spread(places[:, 0], places[:, 1], [entry[2] for entry in entries])


def counts_of(problem: SharingProblem) -> tuple[list[int], list[int]]:
    """Return how many GPUs and workloads each class has."""
    return [each.count for each in problem.online], [each.count for each in problem.offline]


def left_of(
    plan: Spread, rows: list[int], columns: list[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where GPUs, and where workloads, are left over."""
    more, wanted = list(rows), list(columns)
    for i, j, n in zip(plan.row.tolist(), plan.column.tolist(), plan.amount, strict=True):
        more[i] -= n
        wanted[j] -= n
    return (
        np.array([n > 0 for n in more], dtype=np.bool_),
        np.array([n > 0 for n in wanted], dtype=np.bool_),
    )


def claim(made: Any, words: str) -> Named:
    """Name a part of the method beside a claim; what :class:`Named` takes is typed by problems."""
    return Named(made, words)


def named(problem: SharingProblem, plan: Spread) -> SharingPlan:
    """Return a plan with the names of its classes."""
    online = [each.name for each in problem.online]
    offline = [each.name for each in problem.offline]
    counts: dict[tuple[str, str], int] = {}
    for i, j, n in zip(plan.row.tolist(), plan.column.tolist(), plan.amount, strict=True):
        counts[online[i], offline[j]] = counts.get((online[i], offline[j]), 0) + n
    return SharingPlan(counts)
