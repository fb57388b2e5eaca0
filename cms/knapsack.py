"""The covering knapsack of the theory, exact in integers.

The cheapest way to serve one job at given block prices, ``min prices . o`` subject to
``supply . o >= demand`` over integer ``o >= 0`` (theory 6.5). It is the hot loop of pricing and the
job side of every certificate.

The search is written once, in the common subset of Python and numba: with lists it is the
plain path, on integers of any size and without compiling anything; ``knapsack_compiled`` compiles
the same function for arrays, parallel over jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .rows import SAFE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .rows import Rows

#: The search for one job stops here and returns a proven lower bound instead of the minimum.
NODE_LIMIT = 50_000
#: With this many rows compiling (or loading what was compiled) pays.
COMPILED_FROM = 4_000
#: Rows in one call of compiled code, which cannot be stopped: a fraction of a second.
_CHUNK = 100_000
#: Jobs priced one by one between two looks at whether to stop.
_LOOK_EVERY = 16
#: Numba's default threading layer aborts the process when two threads enter it at once.
_ONE_AT_A_TIME = threading.Lock()


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
        The sum of the values; jobs no block can serve count 0.
    load : tuple of int
        Blocks of each type the jobs would buy, a supergradient of the total.
    unservable : tuple of int
        Jobs with a positive demand that no block can serve.
    options : ndarray of int64, shape (n, k), or None
        Each job's option, if asked for.
    """

    total: int
    load: tuple[int, ...]
    unservable: tuple[int, ...]
    options: NDArray[np.int64] | None


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
    Depth-first over the types by price per supply, pruned by the cost of buying the rest at the
    next ratio. Some optimal option uses fewer than ``supply[b]`` blocks of other types than the
    best one b (theory 6.5), so most of a huge demand is bought at once and the search does not
    depend on it; the pairwise form of the same exchange caps every other type.

    Examples
    --------
    >>> cheapest_option([1, 3, 7], [90, 310, 800], 1200)
    Cheapest(value=11, option=(1, 1, 1), exact=True)
    >>> cheapest_option([1, 3, 7], [90, 310, 800], 10**12).exact
    True
    """
    k = len(prices)
    if demand <= 0:
        return Cheapest(0, (0,) * k, True)
    work = [[0] * (k + 1) for _ in range(WORK_ROWS)]
    option = [0] * k
    value, nodes = search(list(prices), list(supply), demand, option, work, NODE_LIMIT)
    if value < 0:
        return None
    return Cheapest(value, tuple(option), nodes <= NODE_LIMIT)


#: Scratch rows that ``search`` needs, each of k + 1 integers.
WORK_ROWS = 8


def search(
    prices: Any, supply: Any, demand: Any, option: Any, work: Any, node_limit: int
) -> tuple[Any, int]:
    """Search for one job's cheapest option; lists of ints, or compiled on int64 arrays.

    ``option`` (k) receives the best option found, ``work`` is scratch. Returns the value and the
    nodes used; the value is -1 if no block can serve the job, and a proven lower bound if the
    nodes exceed the limit.
    """
    k = len(prices)
    price, gain, kind, cap = work[0], work[1], work[2], work[3]
    count, rest, spent, best = work[4], work[5], work[6], work[7]
    for i in range(k):
        option[i] = 0
    # Sort the useful types by price per supply (then larger supply first).
    m = 0
    for i in range(k):
        f = min(supply[i], demand)
        p = prices[i]
        if f <= 0:
            continue
        at = m
        while at > 0 and (
            p * gain[at - 1] < price[at - 1] * f
            or (p * gain[at - 1] == price[at - 1] * f and f > gain[at - 1])
        ):
            price[at], gain[at], kind[at] = price[at - 1], gain[at - 1], kind[at - 1]
            at -= 1
        price[at], gain[at], kind[at] = p, f, i
        m += 1
    if m == 0:
        return -1, 0
    # Drop a type that some other one beats in price and in supply.
    kept = 0
    for at in range(m):
        beaten = False
        for other in range(m):
            if other != at and price[other] <= price[at] and gain[other] >= gain[at]:
                same = price[other] == price[at] and gain[other] == gain[at]
                if not same or other < at:
                    beaten = True
                    break
        cap[at] = 0 if beaten else 1
    for at in range(m):
        if cap[at] == 1:
            price[kept], gain[kept], kind[kept] = price[at], gain[at], kind[at]
            kept += 1
    m = kept
    # Huge demands: buy at once what every optimal option may be assumed to contain.
    most = 0
    for at in range(1, m):
        most = max(most, gain[at])
    base = -(-(demand - (gain[0] - 1) * most) // gain[0])
    base = max(base, 0)
    left = demand - base * gain[0]
    if left <= 0:
        option[kind[0]] = base
        return base * price[0], 0
    cap[0] = -(-left // gain[0])
    for at in range(1, m):
        cap[at] = -(-left // gain[at])
        for better in range(at):
            a, b = gain[better], gain[at]
            while b:
                a, b = b, a % b
            cap[at] = min(cap[at], gain[better] // a - 1)
    # The best single type to start from.
    best_value = -1
    for at in range(m):
        value = -(-left // gain[at]) * price[at]
        if best_value < 0 or value < best_value:
            best_value = value
            for other in range(m):
                best[other] = 0
            best[at] = -(-left // gain[at])
    # Depth-first; count[d] is the number of type d now being tried, -1 before the first.
    nodes = 0
    proven = best_value
    depth = 0
    rest[0], spent[0], count[0] = left, 0, -1
    while depth >= 0:
        nodes += 1
        r, c = rest[depth], count[depth]
        if c < 0:
            # first visit: finish the job with this type alone
            finish = -(-r // gain[depth])
            value = spent[depth] + finish * price[depth]
            if value < best_value:
                best_value = value
                for d in range(depth):
                    best[d] = count[d]
                for d in range(depth, m):
                    best[d] = 0
                best[depth] = finish
            c = min(finish - 1, cap[depth]) + 1
        c -= 1
        if c < 0 or depth + 1 >= m:
            depth -= 1
            continue
        count[depth] = c
        r2 = r - c * gain[depth]
        s2 = spent[depth] + c * price[depth]
        # The bound only grows as c falls, so the first cut ends this level.
        if s2 + -(-r2 * price[depth + 1] // gain[depth + 1]) >= best_value:
            depth -= 1
            continue
        if nodes > node_limit:
            break
        depth += 1
        rest[depth], spent[depth], count[depth] = r2, s2, -1
    proven = best_value
    if nodes > node_limit:
        # What is still open costs at least its bound: this child and, for each level above, the
        # next smaller count.
        proven = min(proven, s2 + -(-r2 * price[depth + 1] // gain[depth + 1]))
        for d in range(depth + 1):
            c = count[d] - 1
            if c >= 0:
                r2 = rest[d] - c * gain[d]
                s2 = spent[d] + c * price[d]
                proven = min(proven, s2 + -(-r2 * price[d + 1] // gain[d + 1]))
    for at in range(m):
        option[kind[at]] = best[at]
    option[kind[0]] += base
    return proven + base * price[0], nodes


def price_jobs(
    rows: Rows,
    prices: Sequence[int],
    *,
    want_options: bool = False,
    inner: bool = False,
    special: Mapping[int, Sequence[int]] | None = None,
    threads: int | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Pricing | None:
    """Price every job at one price vector.

    Parameters
    ----------
    rows : Rows
        The jobs. Small problems are priced on the exact rows; large ones on the outer image, so
        that the total is at most the exact one.
    prices : sequence of k ints
        >= 0.
    want_options : bool, default False
        Whether to return each job's option.
    inner : bool, default False
        Price large problems on the inner image instead: the options then serve the exact rows, but
        the total is no lower bound.
    special : Mapping[int, sequence of int], optional
        Jobs with prices of their own (branches on one job's blocks).
    threads : int, optional
        For compiled work; by default all cores.
    stopped : callable, optional
        Asked between chunks of work.

    Returns
    -------
    Pricing, or None if it was stopped

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms.rows import Rows
    >>> rows = Rows.from_fractions([(Fraction(1200), [Fraction(90), Fraction(800)])] * 2, 2)
    >>> price_jobs(rows, [1, 7])
    Pricing(total=24, load=(10, 2), unservable=(), options=None)
    """
    special = special or {}
    n, k = len(rows), rows.n_blocks
    if n >= COMPILED_FROM:
        return _price_compiled(rows, prices, want_options, inner, special, threads, stopped)
    tally = _Tally(k, np.zeros((n, k), dtype=object) if want_options else None)
    for j in range(n):
        if j % _LOOK_EVERY == 0 and stopped is not None and stopped():
            return None
        tally.price(rows, j, special.get(j, prices))
    return tally.pricing()


class _Tally:
    """Adds up what jobs that are priced one by one buy."""

    def __init__(self, k: int, options: NDArray[Any] | None) -> None:
        self.total, self.load, self.options = 0, [0] * k, options
        self.unservable: list[int] = []

    def price(self, rows: Rows, j: int, prices: Sequence[int]) -> None:
        row = rows.row(j)
        found = cheapest_option(prices, row.supply, row.demand)
        if found is None:
            self.unservable.append(j)
            return
        self.total += found.value
        for i, blocks in enumerate(found.option):
            self.load[i] += blocks
        if self.options is not None:
            if max(found.option, default=0) >= 2**63:
                self.options = self.options.astype(object)
            self.options[j] = found.option

    def pricing(self) -> Pricing:
        return Pricing(self.total, tuple(self.load), tuple(sorted(self.unservable)), self.options)


def _price_compiled(
    rows: Rows,
    prices: Sequence[int],
    want_options: bool,
    inner: bool,
    special: Mapping[int, Sequence[int]],
    threads: int | None,
    stopped: Callable[[], bool] | None,
) -> Pricing | None:
    from .knapsack_compiled import price_rows, use_threads

    image, k = rows.inner if inner else rows.outer, rows.n_blocks
    n = len(rows)
    largest = max(prices, default=0)
    by_hand = set(special) | rows.far
    reach = int((image.demand + image.supply.max(axis=1, initial=0)).max()) if k else 0
    if largest * reach >= SAFE:
        size = image.demand + image.supply.max(axis=1, initial=0)
        by_hand |= set(np.flatnonzero(size > (SAFE - 1) // largest).tolist())
    vector = np.array([min(price, SAFE - 1) for price in prices], dtype=np.int64)
    options = np.zeros((n, k), dtype=np.int64) if want_options else None
    tally = _Tally(k, options)
    skip = np.zeros(n, dtype=np.bool_)
    skip[sorted(by_hand)] = True
    for start in range(0, n, _CHUNK):
        if stopped is not None and stopped():
            return None
        part = slice(start, min(start + _CHUNK, n))
        values = np.zeros(part.stop - start, dtype=np.int64)
        chosen = np.zeros((part.stop - start, k), dtype=np.int64)
        with _ONE_AT_A_TIME:
            use_threads(threads)
            price_rows(
                vector,
                image.demand[part],
                image.supply[part],
                skip[part],
                values,
                chosen,
                NODE_LIMIT,
            )
        lost = np.flatnonzero(values < 0)
        tally.unservable += (lost + start).tolist()
        values[lost] = 0
        tally.total += _exact_sum(values)
        for i in range(k):
            tally.load[i] += _exact_sum(chosen[:, i])
        if options is not None:
            options[part] = chosen
    for number, j in enumerate(sorted(by_hand)):
        if number % _LOOK_EVERY == 0 and stopped is not None and stopped():
            return None
        tally.price(rows, j, special.get(j, prices))
    return tally.pricing()


def _exact_sum(values: NDArray[np.int64]) -> int:
    """Sum without overflow: the high and the low halves apart."""
    return (int((values >> 31).sum()) << 31) + int((values & (2**31 - 1)).sum())


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
