"""The compiled, parallel path of the covering knapsack; imported for large problems only."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.images import SAFE
from . import search
from .machine_code import compiled, twins
from .search import LONGEST_LIST, UNSERVABLE, WORK_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What becomes of a row: it is priced, no block can serve it, or it is left to Python integers.
PRICED, LOST, BY_HAND = 0, 1, 2
# Rows that a thread takes at once, and nodes after which compiled code, which cannot be stopped,
# comes back: together some hundredths of a second.
_SHARD, _EFFORT = 2**13, 2**22
# Sums are kept in two halves: of weights below 2**31 together neither overflows.
_HALF_BITS = 32
_LOW_HALF = 2**_HALF_BITS - 1

# In this order, so that each finds those it calls compiled already. What every job goes through is
# inlined, since handing on arrays would take as long as the work.
_INLINED = ("undominated", "best_ratio", "useful", "depth_first", "search")
_COMPILED = (
    "undominated",
    "best_ratio",
    "bought_at_once",
    "useful",
    "cheapest_pair",
    "take",
    "depth_first",
    "first_list",
    "trace",
    "by_lists",
    "search",
)


_search = twins(vars(search), _COMPILED, _INLINED)["search"]


def _price_rows(
    prices: Any,
    order: Any,
    room: int,
    demand: Any,
    supply: Any,
    weights: Any,
    marks: Any,
    options: Any,
    sums: Any,
    work: Any,
    lists: Any,
    start: int,
    stop: int,
    patience: int,
) -> int:
    """Price rows from ``start`` on and add them up; return the first row not looked at.

    It comes back before ``stop`` once the effort exceeds ``patience``.

    ``sums`` holds the high and the low halves of what is bought of every type, of the values, of
    the number of rows without an exact value and of the effort. Marked rows are passed over; no
    weights means 1 each; no options, none kept.
    """
    k = len(prices)
    option = np.zeros(k, dtype=np.int64)
    effort = 0
    for j in range(start, stop):
        if marks[j] != PRICED or demand[j] <= 0:
            continue
        value, exact, nodes = _search(
            prices, supply[j], demand[j], order, option, work, lists[0], lists[1], room
        )
        effort += nodes
        sums[k + 2, 1] += nodes
        if value < 0:
            marks[j] = LOST if value == UNSERVABLE else BY_HAND
            continue
        weight = weights[j] if len(weights) else 1
        sums[k, 0] += weight * (value >> _HALF_BITS)
        sums[k, 1] += weight * (value & _LOW_HALF)
        if not exact:
            sums[k + 1, 1] += 1
        for i in range(k):
            blocks = option[i]
            if blocks:
                sums[i, 0] += weight * (blocks >> _HALF_BITS)
                sums[i, 1] += weight * (blocks & _LOW_HALF)
                if len(options):
                    options[j, i] = blocks
        if effort > patience:
            return j + 1
    return stop


_sources = sorted({__file__, *(vars(search)[name].__code__.co_filename for name in _COMPILED)})
# Threads of our own, not numba's: its usual threading layer aborts the process when two threads
# enter it at once, and deals out rows beforehand, hard ones or not.
_compiled_price_rows = compiled(_price_rows, _sources)


def loaded() -> bool:
    """Whether the code was compiled, or loaded from the cache, by a first call.

    Examples
    --------
    >>> marks = np.full(1, PRICED, dtype=np.int8)
    >>> part = Kernel([1], 1, None).price(np.array([3]), np.array([[2]]), None, marks, None)
    >>> part.total, loaded()
    (2, True)
    """
    return bool(_compiled_price_rows.signatures)


def _read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """A view like a problem's rows: for arrays that can be written to it would be compiled anew."""
    view = array.view()
    view.flags.writeable = False
    return view


class Part(NamedTuple):
    """What a kernel found for some rows.

    Attributes
    ----------
    total, load, inexact
        As in :class:`cms.knapsack.pricing.Pricing`.
    effort : int
        Nodes and entries of lists, what the time beyond the setting up of each row is for.
    """

    total: int
    load: list[int]
    inexact: int
    effort: int


class Kernel:
    """Compiled pricing at one price vector.

    Parameters
    ----------
    prices : sequence of k ints
        >= 0, of any size: rows for which one is too large are marked BY_HAND.
    threads : int, optional
        By default all cores.
    stopped : callable, optional
        Asked by any of the threads between two pieces of work.
    undisturbed : int, default 0
        The effort of a thread after which it asks first.
    """

    def __init__(
        self,
        prices: Sequence[int],
        threads: int | None,
        stopped: Callable[[], bool] | None,
        undisturbed: int = 0,
    ) -> None:
        self._prices = np.array([min(price, SAFE - 1) for price in prices], dtype=np.int64)
        self._order = np.argsort(self._prices, kind="stable")
        self._room = (SAFE - 1) // max(1, *prices)
        self._threads = os.cpu_count() or 1 if threads is None else threads
        self._stopped, self._undisturbed = stopped, undisturbed
        self._given_up = False

    def price(
        self,
        demand: NDArray[np.int64],
        supply: NDArray[np.int64],
        weights: NDArray[np.int64] | None,
        marks: NDArray[np.int8],
        options: NDArray[np.int64] | None,
    ) -> Part | None:
        """Price all rows not marked, and mark those that are not priced.

        Parameters
        ----------
        demand : ndarray of int64, shape (n,)
        supply : ndarray of int64, shape (n, k)
        weights : ndarray of int64, shape (n,), optional
        marks : ndarray of int8, shape (n,)
            PRICED (to be), LOST or BY_HAND.
        options : ndarray of int64, shape (n, k), optional
            Receives the options.

        Returns
        -------
        Part, or None if it was stopped
        """
        n, k = supply.shape
        demand, supply = _read_only(demand), _read_only(supply)
        weights = np.zeros(0, dtype=np.int64) if weights is None else weights
        options = np.zeros((0, k), dtype=np.int64) if options is None else options
        starts = iter(range(0, n, _SHARD))

        def work_off() -> NDArray[np.int64] | None:
            sums = np.zeros((k + 3, 2), dtype=np.int64)
            work = np.zeros((WORK_ROWS, k), dtype=np.int64)
            # Nothing of it is touched, and takes memory, before a list grows that long.
            lists = np.empty((2, LONGEST_LIST), dtype=np.int64)
            # The threads take their rows from the same iterator.
            for start in starts:
                at, stop = start, min(start + _SHARD, n)
                while at < stop:
                    if self._given_up or self._is_stopped(effort=sums[k + 2, 1]):
                        return None
                    at = _compiled_price_rows(
                        self._prices,
                        self._order,
                        self._room,
                        demand,
                        supply,
                        weights,
                        marks,
                        options,
                        sums,
                        work,
                        lists,
                        at,
                        stop,
                        _EFFORT,
                    )
            return sums

        threads = min(self._threads, -(-n // _SHARD))
        if threads <= 1:
            parts = [work_off()]
        else:
            with ThreadPoolExecutor(threads) as pool:
                try:
                    parts = list(pool.map(lambda _: work_off(), range(threads)))
                except BaseException:
                    # Ctrl-C, say: without this, leaving the block would wait for all rows.
                    self._given_up = True
                    raise
        sums = [0] * (k + 3)
        for part in parts:
            if part is None:
                return None
            for i, (high, low) in enumerate(part.tolist()):
                sums[i] += (high << _HALF_BITS) + low
        return Part(sums[k], sums[:k], sums[k + 1], sums[k + 2])

    def _is_stopped(self, effort: int) -> bool:
        return self._stopped is not None and effort >= self._undisturbed and self._stopped()
