"""The covering knapsack of the theory, exact in integers, for one job and for all of them.

The cheapest way to serve one job at given block prices, ``min prices . o`` subject to
``supply . o >= demand`` over integer ``o >= 0`` (theory 6.5). It is the hot loop of pricing and the
job side of every certificate. The search itself is ``knapsack_search``: few jobs are priced by it
as it stands, many by ``knapsack_compiled``, in parallel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.images import FEW, SAFE
from .search import (
    LONGEST_LIST,
    MANY_BLOCKS,
    SHORT_LIST,
    TOO_LONG,
    UNSERVABLE,
    WORK_ROWS,
    search,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.rows import Rows
    from .compiled import Part

#: With this many rows compiling (or loading what was compiled) pays.
COMPILED_FROM = 4_000
# ... and with so many numbers of supply, a tenth of a second's work.
_COMPILED_SUPPLY = 200_000
#: With this many it pays to use what is loaded already.
_LOADED_FROM = 64
# Nodes and list entries, of some seconds' work, after which plain pricing gives up for compiled.
_PATIENCE = 2_000_000
# How much faster compiled code is, about.
_QUICKER = 100


class Cheapest(NamedTuple):
    """The cheapest option of one job.

    ``value`` is the minimum, or (``exact`` False) a proven lower bound on it; ``option`` always
    serves the job.
    """

    value: int
    option: tuple[int, ...]
    exact: bool


class Pricing(NamedTuple):
    """All jobs priced at one price vector.

    Attributes
    ----------
    total : int
        The sum of the values, each times its row's weight; jobs no block can serve count 0.
    load : tuple of int
        Blocks of each type the jobs would buy, a supergradient of the total.
    unservable : tuple of int
        Jobs with a positive demand that no block can serve.
    options : ndarray of int64, shape (n, k), or None
        Each job's option, if asked for; Python integers in an object array if one is larger.
    inexact : int
        Rows whose value is only a lower bound on the price of their option.
    """

    total: int
    load: tuple[int, ...]
    unservable: tuple[int, ...]
    options: NDArray[Any] | None
    inexact: int = 0


def cheapest_option(prices: Sequence[int], supply: Sequence[int], demand: int) -> Cheapest | None:
    """Find the cheapest blocks that serve one job.

    Parameters
    ----------
    prices : sequence of k ints
        >= 0.
    supply : sequence of k ints
        What one block of each type satisfies; >= 0.
    demand : int

    Returns
    -------
    Cheapest or None
        None if no block can serve the job.

    Notes
    -----
    Most of a huge demand is bought at once, so the time does not depend on it (theory 6.5). Where
    many types tie to within a small part of one block, the search may end with a lower bound.

    Examples
    --------
    >>> cheapest_option([1, 3, 7], [90, 310, 800], 1200)
    Cheapest(value=11, option=(1, 1, 1), exact=True)
    >>> cheapest_option([1, 3, 7], [90, 310, 800], 10**12).exact
    True
    """
    return _Plain(prices).cheapest(supply, demand)


class _Plain:
    """The search at one price vector, on Python integers."""

    def __init__(self, prices: Sequence[int]) -> None:
        self.prices, k = list(prices), len(prices)
        self._order = sorted(range(k), key=self.prices.__getitem__)
        self._work = [[0] * k for _ in range(WORK_ROWS)]
        # Most jobs need no lists; the first that does is searched again.
        self._rest, self._spent = list[int](), list[int]()
        self.effort = 0

    def cheapest(self, supply: Sequence[int], demand: int) -> Cheapest | None:
        option = [0] * len(self.prices)
        if demand <= 0:
            return Cheapest(0, tuple(option), True)
        # Of hundreds of types few may serve a job.
        order = [i for i in self._order if supply[i]]
        while True:
            value, exact, effort = search(
                self.prices,
                supply,
                demand,
                order,
                option,
                self._work,
                self._rest,
                self._spent,
                -1,
            )
            self.effort += effort + 1
            if value == UNSERVABLE:
                return None
            if value != TOO_LONG:
                return Cheapest(value, tuple(option), exact)
            longer = min(max(SHORT_LIST, 4 * len(self._rest)), LONGEST_LIST)
            self._rest, self._spent = [0] * longer, [0] * longer


def price_jobs(
    rows: Rows,
    prices: Sequence[int],
    *,
    weights: NDArray[np.int64] | None = None,
    want_options: bool = False,
    special: Mapping[int, Sequence[int]] | None = None,
    threads: int | None = None,
    stopped: Callable[[], bool] | None = None,
    undisturbed: int = 0,
    compiled: bool | None = None,
) -> Pricing | None:
    """Price every job at one price vector.

    A pure function of the prices and the rows given: what is found for two parts of the jobs adds
    up to what is found for both, and does not depend on threads or on what is compiled.

    Parameters
    ----------
    rows : Rows
        The jobs. Every one is priced on its exact row; only if more than a thousand rows of a large
        problem do not fit into 63 bits, these are priced on their outer image, so that the total is
        at most the exact one; where the option found there does not serve the exact row, on that.
    prices : sequence of k ints
        >= 0. Of :func:`price_bits` bits at most, nearly all rows are priced by compiled code.
    weights : ndarray of int64, shape (n,), optional
        How often each row counts (:func:`cms.knapsack.kinds.kinds`); >= 0, below 2**31 together.
    want_options : bool, default False
        Whether to return each job's option.
    special : Mapping[int, sequence of int], optional
        Jobs with prices of their own (branches on one job's blocks).
    threads : int, optional
        For compiled work; by default all cores.
    stopped : callable, optional
        Asked between chunks of work of a small part of a second, by any of the threads.
    undisturbed : int, default 0
        The nodes and list entries after which it is asked first; compiled code, as it is
        a hundred times as fast, has a hundred times as many, and each of its threads has them.
    compiled : bool, optional
        Whether to compile; by default if there are many rows, or all is compiled already.

    Returns
    -------
    Pricing, or None if it was stopped

    Raises
    ------
    ValueError
        If the weights are not one a row, negative or too large.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms.problem.rows import Rows
    >>> rows = Rows.from_fractions([(Fraction(1200), [Fraction(90), Fraction(800)])] * 2, 2)
    >>> price_jobs(rows, [1, 7])
    Pricing(total=24, load=(10, 2), unservable=(), options=None, inexact=0)
    >>> price_jobs(rows, [1, 7], weights=np.array([1, 10])).total
    132
    """
    special = special or {}
    n = len(rows)
    if weights is not None:
        weights = _checked(weights, n)
    if compiled is None:
        least = min(_LOADED_FROM, COMPILED_FROM) if _loaded() else COMPILED_FROM
        compiled = n >= least or n * rows.n_blocks >= _COMPILED_SUPPLY
    tally = _Tally(prices, rows, weights, want_options)
    if not compiled:
        if not tally.price(range(n), special, stopped, undisturbed, patience=_PATIENCE):
            return None
        if tally.complete:
            return tally.pricing()
        tally = _Tally(prices, rows, weights, want_options)
    return _price_compiled(tally, special, threads, stopped, undisturbed)


def _loaded() -> bool:
    """Whether compiled code is there to be called: importing its module does not compile it yet."""
    module = sys.modules.get("cms.knapsack.compiled")
    return module is not None and module.loaded()


def price_histogram(rows: Rows) -> list[int]:
    """Count the rows by the bits that a price may have for compiled code to price them.

    A row where price times demand (of a huge demand: times what is left once most of it is bought)
    exceeds 62 bits is worked out on Python integers, at a hundredth of the speed. The histograms of
    parts of the rows add up to that of all; :func:`price_bits` reads it.

    Returns
    -------
    list of 64 ints
        How many rows take prices of so many bits at most.

    Examples
    --------
    >>> from cms.problem.rows import Rows
    >>> found = price_histogram(Rows.from_arrays([10, 2**40], [[3], [2**30]], "ab", ["x"]))
    >>> {bits: rows for bits, rows in enumerate(found) if rows}
    {22: 1, 59: 1}
    """
    most = np.minimum(rows.supplies.max(axis=1, initial=0), rows.demands)
    # Of a demand of very many blocks so much is bought at once that less than this is left.
    left = np.where(
        rows.demands // MANY_BLOCKS > most,
        np.minimum(rows.demands, most * np.minimum(most, SAFE // np.maximum(most, 1))),
        rows.demands,
    )
    reach = np.maximum(left + most, rows.demands // np.maximum(most, 1))
    powers = np.int64(1) << np.arange(63, dtype=np.int64)
    bits = np.searchsorted(powers, (SAFE - 1) // np.maximum(reach, 1), side="right")
    return list(np.bincount(bits, minlength=64).tolist())


def price_bits(histogram: Sequence[int]) -> int:
    """Return the most bits of prices at which compiled code does all but one row in a thousand.

    Examples
    --------
    >>> price_bits([0] * 22 + [1] + [0] * 36 + [999] + [0] * 4)
    59
    """
    beyond = sum(histogram) // 1000
    for bits, rows in enumerate(histogram):
        beyond -= rows
        if beyond < 0:
            return bits
    return (SAFE - 1).bit_length()


def _checked(weights: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    weights = np.ascontiguousarray(weights, dtype=np.int64)
    if weights.shape != (n,):
        raise ValueError(f"weights has shape {weights.shape}; expected ({n},), one a row")
    if n and (weights.min() < 0 or weights.max() >= 2**31 or weights.sum() >= 2**31):
        raise ValueError(
            f"weights range from {weights.min()} to {weights.max()}; expected numbers >= 0 whose "
            f"sum is less than {2**31}"
        )
    return weights


class _Tally:
    """Adds up what jobs buy."""

    def __init__(
        self,
        prices: Sequence[int],
        rows: Rows,
        weights: NDArray[np.int64] | None,
        want_options: bool,
    ) -> None:
        n, k = len(rows), rows.n_blocks
        self.prices, self.rows, self.weights = prices, rows, weights
        self.total, self.load = 0, [0] * k
        self.unservable: list[int] = []
        self.options: NDArray[Any] | None = None
        if want_options:
            self.options = np.zeros((n, k), dtype=np.int64)
        self.inexact = 0
        self.complete = True
        self._plain, self._effort = _Plain(prices), 0

    def price(
        self,
        jobs: Sequence[int],
        special: Mapping[int, Sequence[int]],
        stopped: Callable[[], bool] | None,
        undisturbed: int,
        patience: int | None = None,
    ) -> bool:
        """Price jobs one by one; False if stopped. With patience, ``complete`` tells if it held."""
        for j in jobs:
            if stopped is not None and self._effort >= undisturbed and stopped():
                return False
            if patience is not None and self._effort > patience:
                self.complete = False
                return True
            row = self.rows.row(j)
            plain = _Plain(special[j]) if j in special else self._plain
            before = plain.effort
            found = plain.cheapest(row.supply, row.demand)
            self._effort += plain.effort - before
            if found is None:
                self.unservable.append(j)
                continue
            weight = 1 if self.weights is None else int(self.weights[j])
            self.total += weight * found.value
            self.inexact += not found.exact
            for i, blocks in enumerate(found.option):
                self.load[i] += weight * blocks
            if self.options is not None:
                if max(found.option, default=0) >= 2**63:
                    self.options = self.options.astype(object)
                self.options[j] = found.option
        return True

    def pricing(self) -> Pricing:
        return Pricing(
            self.total,
            tuple(self.load),
            tuple(sorted(self.unservable)),
            self.options,
            self.inexact,
        )


def _price_compiled(
    tally: _Tally,
    special: Mapping[int, Sequence[int]],
    threads: int | None,
    stopped: Callable[[], bool] | None,
    undisturbed: int,
) -> Pricing | None:
    from .compiled import BY_HAND, LOST, PRICED, Kernel

    rows = tally.rows
    kernel = Kernel(tally.prices, threads, stopped, _QUICKER * undisturbed)
    marks = np.zeros(len(rows), dtype=np.int8)
    marks[rows.is_wide] = BY_HAND
    marks[list(special)] = BY_HAND
    part = kernel.price(rows.demands, rows.supplies, tally.weights, marks, tally.options)
    if part is None:
        return None
    _add(tally, part)
    by_hand = np.flatnonzero(marks == BY_HAND)
    if len(by_hand) > FEW and len(rows) >= COMPILED_FROM:
        shrunk = np.setdiff1d(by_hand, [*special, *rows.far])
        marks_there = np.zeros(len(shrunk), dtype=np.int8)
        options = np.zeros((len(shrunk), rows.n_blocks), dtype=np.int64)
        weights = None if tally.weights is None else tally.weights[shrunk]
        numbers = rows.outer.demand[shrunk], rows.outer.supply[shrunk], weights
        part = kernel.price(*numbers, marks_there, options)
        if part is not None:
            # What serves an outer image may fail its row by a little: such rows are few.
            failed = _not_served(rows, shrunk, options, marks_there == PRICED)
            if len(failed):
                marks_there[failed], options[failed] = BY_HAND, 0
                part = kernel.price(*numbers, marks_there, options)
        if part is None:
            return None
        _add(tally, part)
        marks[shrunk] = marks_there
        if tally.options is not None:
            tally.options[shrunk] = options
        by_hand = np.flatnonzero(marks == BY_HAND)
    tally.unservable += np.flatnonzero(marks == LOST).tolist()
    if not tally.price(by_hand.tolist(), special, stopped, undisturbed):
        return None
    return tally.pricing()


def _not_served(
    rows: Rows, jobs: NDArray[np.int64], options: NDArray[np.int64], priced: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the places of priced jobs whose options do not serve their exact rows."""
    # Most serve the inner image too, which is enough. Counts are cut so that no sum overflows.
    demand, supply = rows.inner.demand[jobs], rows.inner.supply[jobs]
    most = SAFE // (2 * max(1, rows.n_blocks)) // np.maximum(supply, 1)
    sure = (np.minimum(options, most) * supply).sum(axis=1) >= demand
    places = np.flatnonzero(priced & ~sure).tolist()
    failed = []
    for place in places:
        row = rows.row(int(jobs[place]))
        given = zip(row.supply, options[place].tolist(), strict=True)
        if sum(f * blocks for f, blocks in given) < row.demand:
            failed.append(place)
    return np.array(failed, dtype=np.int64)


def _add(tally: _Tally, part: Part) -> None:
    tally.total += part.total
    tally.load = [one + two for one, two in zip(tally.load, part.load, strict=True)]
    tally.inexact += part.inexact


def common_denominator(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Write rationals over their least common denominator.

    Examples
    --------
    >>> common_denominator([Fraction(1, 7), Fraction(1, 2)])
    ([2, 7], 14)
    """
    denominator = 1
    for value in values:
        denominator = denominator * value.denominator // gcd(denominator, value.denominator)
    return [int(value * denominator) for value in values], denominator
