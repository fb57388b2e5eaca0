"""The covering knapsack, exact in integers, for one job and for all of them: the hot loop.

``min prices . o`` subject to ``supply . o >= demand`` over integer ``o >= 0`` (theory 6.5). Few
jobs are priced as they stand, and those with rules; many in machine code, in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import ceil, inf, lcm
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.rows import SAFE
from . import cheapest_cover
from .cheapest_cover import PENDING, PRICED, TOO_LARGE, UNSERVABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.row import Row
    from ..problem.rows import Rows

#: With this many rows compiling (or loading what was compiled) pays.
COMPILED_FROM = 4_000
# ... and with this many numbers of supply, a tenth of a second's work.
_COMPILED_SUPPLY = 200_000
# With this many rows, or numbers, it pays to use what is loaded already.
_LOADED_FROM, _LOADED_SUPPLY = 64, 2_000
# Effort of plain pricing until machine code takes over: in a call; and, rows included, in all.
_PATIENCE, _ENOUGH, _spent = 2_000_000, 300_000, [0]
# How much faster compiled code is, about.
_QUICKER = 100
# Rows that a thread takes at once, and the effort after which compiled code, which cannot be
# stopped, comes back: together some hundredths of a second.
_SHARD, _EFFORT = 2**13, 2**22


class Cheapest(NamedTuple):
    """An option that serves a job, and its price; if not ``exact``, a proven lower bound."""

    value: int
    option: tuple[int, ...]
    exact: bool


class Pricing(NamedTuple):
    """All jobs priced: the weighted ``total``, and the ``load`` they buy, a supergradient of it.

    ``options``, (n, k), if asked for, are Python integers where one is larger than int64.
    """

    total: int
    load: tuple[int, ...]
    unservable: tuple[int, ...]
    options: NDArray[Any] | None


def cheapest_option(prices: Sequence[int], supply: Sequence[int], demand: int) -> Cheapest | None:
    """Find the cheapest blocks that serve one job; None if no block can serve it.

    The time does not depend on the demand (theory 6.5). Where many types tie to within a small part
    of one block, the search may end with a lower bound.

    Examples
    --------
    >>> cheapest_option([1, 3, 7], [90, 310, 800], 1200)
    Cheapest(value=11, option=(1, 1, 1), exact=True)
    """
    return _cheapest(prices, supply, demand, _scratch(len(prices)))[0]


def cheapest_bundle(prices: Sequence[int], row: Row) -> Cheapest | None:
    """Find the cheapest blocks that serve a job by its rule; None if no blocks do."""
    return _cheapest_of(prices, row, _scratch(len(prices)))[0]


def _cheapest_of(
    prices: Sequence[int], row: Row, scratch: tuple[Any, Any]
) -> tuple[Cheapest | None, int]:
    """Find a row's cheapest bundle; return what it took as well."""
    if not row.is_equal or row.demand <= 0:
        found, effort = _cheapest(prices, row.supply, row.demand, scratch)
        least = row.rule.number if row.rule and row.demand > 0 else 0
        if not least or found is None or row.replicas(found.option) >= least:
            return found, effort
        return _cheapest_with_replicas(prices, row, least, scratch)
    # As many blocks of the cheapest type of a bundle in equal shares serve the job, too.
    pairs = zip(row.enough, prices, strict=True)
    value, i, n = min(((n * p, i, n) for i, (n, p) in enumerate(pairs) if n), default=(0, 0, 0))
    option = (*([0] * i), n, *([0] * (len(prices) - 1 - i)))
    return (Cheapest(value, option, True) if n else None), 1


def _cheapest_with_replicas(
    prices: Sequence[int], row: Row, count: int, scratch: tuple[Any, Any]
) -> tuple[Cheapest | None, int]:
    """Choose replicas, by lists without what another choice beats, then blocks for the rest."""
    supply, demand, effort, best = row.supply, row.demand, 0, inf
    able: list[tuple[int, int, int]] = []
    for i in sorted(row.carriers, key=lambda i: (prices[i], -supply[i])):
        if not able or supply[i] > able[-1][2]:
            able.append((i, prices[i], min(supply[i], demand)))
    if not able:
        return None, 1
    ratio = min(Fraction(p, f) for p, f in zip(prices, supply, strict=True) if f)
    proved: list[tuple[int, int, tuple[int, ...]]] = []  # what options cost, and cost at least

    def finish(spent: int, covered: int, chosen: Sequence[int]) -> None:
        nonlocal effort, best
        found, more = _cheapest(prices, supply, demand - covered, scratch)
        effort += more
        if found is not None:
            option = tuple(n + chosen.count(i) for i, n in enumerate(found.option))
            proved.append((sum(map(mul, prices, option)), spent + found.value, option))
            best = min(proved)[0]

    def keeps(spent: int, covered: int, others: int) -> bool:
        """Whether a choice may be cheaper than all found so far."""
        return spent + max(ceil((demand - covered) * ratio), others * able[0][1]) < best

    for i, p, f in able:
        finish(count * p, min(demand, count * f), (i,) * count)
    lists: list[list[tuple[int, int, tuple[int, ...]]]] = [
        [(0, 0, ())],
        *([] for _ in range(count)),
    ]
    for i, p, f in able:
        for number in range(1, count + 1):
            longer = [(s + p, min(demand, c + f), (*o, i)) for s, c, o in lists[number - 1]]
            longer += lists[number]
            lists[number], most = [], -1
            for spent, covered, chosen in sorted(longer, key=lambda entry: (entry[0], -entry[1])):
                if covered > most and keeps(spent, covered, count - number):
                    lists[number].append((spent, covered, chosen))
                    most = covered
            effort += len(longer)
    for choice in lists[count]:
        if keeps(*choice[:2], 0):
            finish(*choice)
    value = min(at_least for _, at_least, _ in proved)
    return Cheapest(value, min(proved)[2], value == best), effort


def _scratch(k: int) -> tuple[Any, Any]:
    return [[0] * k for _ in range(cheapest_cover.WORK_ROWS)], ({}, {}, {})


def _cheapest(
    prices: Sequence[int], supply: Sequence[int], demand: int, scratch: tuple[Any, Any]
) -> tuple[Cheapest | None, int]:
    """Find the cheapest option on Python integers; return what it took as well."""
    option = [0] * len(prices)
    # Of hundreds of types few may serve a job.
    order = sorted(filter(supply.__getitem__, range(len(supply))), key=prices.__getitem__)
    value, effort = cheapest_cover.search(prices, supply, demand, order, option, *scratch, -1)
    if value == UNSERVABLE:
        return None, effort
    return Cheapest(value, tuple(option), value == sum(map(mul, prices, option))), effort


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

    What is found for two parts of the jobs adds up to what is found for both, and does not depend
    on threads or on what is compiled. Of thousands of rows the outer images are priced, so that the
    total is at most the exact one; far rows, and those that the option found for the image does not
    serve, are priced as they are.

    ``weights`` (n,) says how often each row counts, below 2**31 together; ``special`` has jobs with
    prices of their own. ``stopped`` is asked several times a second once the effort exceeds
    ``undisturbed`` (a hundred times as much in compiled code); None is returned if it says so.
    """
    n = len(rows)
    tally = _Tally(
        rows,
        prices,
        np.ones(n, dtype=np.int64) if weights is None else weights,
        special or {},
        stopped,
        undisturbed,
        np.zeros((n, rows.n_blocks), dtype=np.int64) if want_options else None,
        np.full(n, PENDING, dtype=np.int8),
        [0] * rows.n_blocks,
    )
    if compiled is None:
        least, supply = COMPILED_FROM, _COMPILED_SUPPLY
        if _kernel.cache_info().currsize or _spent[0] > _ENOUGH:
            least, supply = min(_LOADED_FROM, least), _LOADED_SUPPLY
        compiled = n >= least or n * rows.n_blocks >= supply
    if not compiled:
        _spent[0] += tally.price_plain(range(n), _PATIENCE) + n * (80 + rows.n_blocks) // 8
    if not tally.stopped and (tally.state == PENDING).any():
        tally.price_compiled(threads)
        tally.price_plain(np.flatnonzero(tally.state == TOO_LARGE).tolist())
    return None if tally.stopped else tally.pricing()


@cache
def _kernel() -> Callable[..., tuple[int, int]]:
    """Return :func:`.cheapest_cover.search_rows` in machine code."""
    from .machine_code import compile_functions

    return compile_functions(vars(cheapest_cover), cheapest_cover.COMPILED, ["search_rows"])[0]


def price_histogram(rows: Rows) -> list[int]:
    """Count the rows by the bits, 0 to 63, that a price may have for compiled code to price them.

    Others are worked out at a hundredth of the speed. Histograms of parts of the rows add up.
    """
    demands = rows.outer.demand
    most = rows.outer.supply.max(axis=1, initial=0)
    # Of a demand of very many blocks a part is bought at once; less than this is left.
    left = np.where(
        demands // cheapest_cover.MANY_BLOCKS > most,
        np.minimum(demands, most * np.minimum(most, SAFE // np.maximum(most, 1))),
        demands,
    )
    reach = np.maximum(left + most, demands // np.maximum(most, 1))
    powers = np.int64(1) << np.arange(63, dtype=np.int64)
    bits = np.searchsorted(powers, (SAFE - 1) // np.maximum(reach, 1), side="right")
    return list(np.bincount(bits, minlength=64).tolist())


def price_bits(histogram: Sequence[int]) -> int:
    """Return the most bits of prices at which compiled code does all but one row in a thousand."""
    beyond = sum(histogram) // 1000
    enough = (bits for bits, rows in enumerate(accumulate(histogram)) if rows > beyond)
    return next(enough, (SAFE - 1).bit_length())


@dataclass(slots=True)
class _Tally:
    """Adds up what jobs buy; ``state`` says what became of each row."""

    rows: Rows
    prices: Sequence[int]
    weights: NDArray[np.int64]
    special: Mapping[int, Sequence[int]]
    is_stopped: Callable[[], bool] | None
    undisturbed: int
    options: NDArray[np.int64] | None
    state: NDArray[np.int8]
    load: list[int]
    total: int = 0
    stopped: bool = False
    long: dict[int, tuple[int, ...]] = field(default_factory=dict)  # what int64 does not hold

    def pricing(self) -> Pricing:
        unservable = tuple(np.flatnonzero(self.state == UNSERVABLE).tolist())
        options = self.options
        if options is not None and self.long:
            options = options.astype(object)
            for j, option in self.long.items():
                options[j] = option
        return Pricing(self.total, tuple(self.load), unservable, options)

    def price_plain(self, jobs: Iterable[int], patience: float = float("inf")) -> int:
        """Price jobs one by one, until patience ends; return the effort."""
        effort, scratch = 0, _scratch(len(self.prices))
        for j in jobs:
            if effort > patience or self._stops(effort):
                break
            row = self.rows.row(j)
            prices = self.special.get(j, self.prices)
            found, more = _cheapest_of(prices, row, scratch)
            effort += more
            if found is None:
                self.state[j] = UNSERVABLE
                continue
            self.state[j] = PRICED
            self._add(int(self.weights[j]), found.value, found.option)
            if max(found.option, default=0) >= 2**63:
                self.long[j] = found.option
            elif self.options is not None:
                self.options[j] = found.option
        return effort

    def _add(self, weight: int, value: int, option: Iterable[int]) -> None:
        self.total += weight * value
        self.load = [a + weight * b for a, b in zip(self.load, option, strict=True)]

    def price_compiled(self, threads: int | None) -> None:
        """Price all pending jobs whose numbers are small enough; others become TOO_LARGE."""
        rows, n, k, kernel = self.rows, len(self.rows), self.rows.n_blocks, _kernel()
        demand, supply = rows.outer
        by_hand = np.zeros(n, dtype=bool)
        # Where few rows had to shrink none of them are priced by their images.
        by_hand[[*rows.far, *self.special]] = True
        self.state[by_hand & (self.state == PENDING)] = TOO_LARGE
        prices = np.array([min(price, SAFE - 1) for price in self.prices], dtype=np.int64)
        order = np.argsort(prices, kind="stable")
        room = (SAFE - 1) // max(1, *self.prices)
        starts = iter(range(0, n, _SHARD))

        def work_off() -> list[tuple[int, list[int]]]:
            values, mine = np.zeros(_SHARD, dtype=np.int64), np.zeros((_SHARD, k), dtype=np.int64)
            work = np.zeros((cheapest_cover.WORK_ROWS, k), dtype=np.int64)
            # Nothing of it is touched, and takes memory, before a list grows that long.
            lists = np.empty((3, cheapest_cover.LONGEST_LIST), dtype=np.int64)
            found: list[tuple[int, list[int]]] = []
            effort = 0
            # The threads take their rows from the same iterator: hard ones are not dealt out.
            for start in starts:
                part = slice(start, min(start + _SHARD, n))
                size, state = part.stop - start, self.state[part]
                options = mine[:size] if self.options is None else self.options[part]
                pending, at = state == PENDING, 0
                while at < size:
                    if self._stops(effort // _QUICKER):
                        return found
                    at, more = kernel(
                        prices, order, room, demand[part], supply[part], state, values,
                        options, work, lists, at, _EFFORT,
                    )  # fmt: skip
                    effort += more
                self._refuse_unserved(part, pending, options)
                weights = np.where(pending & (state > PENDING), self.weights[part], 0)
                load = _weighted_sums(weights, options)
                found.append((_weighted_sums(weights, values[:size, None])[0], load))
            return found

        parts = _in_threads(work_off, min(threads or os.cpu_count() or 1, -(-n // _SHARD)), self)
        for total, load in (pair for part in parts for pair in part):
            self._add(1, total, load)

    def _refuse_unserved(
        self, part: slice, pending: NDArray[np.bool_], options: NDArray[np.int64]
    ) -> None:
        """Mark the rows whose image's option does not serve themselves as too large."""
        rows, state = self.rows, self.state[part]
        if rows.inner is rows.outer:
            return
        # Most serve the inner image too, which is enough. Counts are cut so that no sum overflows.
        demand, supply = rows.inner.demand[part], rows.inner.supply[part]
        most = SAFE // (2 * max(1, rows.n_blocks)) // np.maximum(supply, 1)
        sure = (np.minimum(options, most) * supply).sum(axis=1) >= demand
        for place in np.flatnonzero(pending & (state > PENDING) & ~sure).tolist():
            row = rows.row(part.start + place)
            given = zip(row.supply, options[place].tolist(), strict=True)
            if sum(f * blocks for f, blocks in given) < row.demand:
                state[place], options[place] = TOO_LARGE, 0

    def _stops(self, effort: int) -> bool:
        if self.is_stopped is not None and effort >= self.undisturbed and not self.stopped:
            self.stopped = self.is_stopped()
        return self.stopped


def _in_threads(work: Callable[[], Any], threads: int, tally: _Tally) -> list[Any]:
    """Do the work in threads of our own: numba's deal out rows beforehand, hard ones or not."""
    if threads <= 1:
        return [work()]
    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(lambda _: work(), range(threads)))
        except BaseException:
            tally.stopped = True  # Ctrl-C, say: the block would wait for all rows
            raise


def _weighted_sums(weights: NDArray[np.int64], table: NDArray[np.int64]) -> list[int]:
    """Add up the columns, exactly: of weights below 2**31 together neither half overflows."""

    def sums(numbers: NDArray[np.int64]) -> list[int]:
        return list(np.einsum("i,ij->j", weights, numbers).tolist())

    if table.max(initial=0) < 2**31:
        return sums(table)
    high, low = sums(table >> 31), sums(table & (2**31 - 1))
    return [(a << 31) + b for a, b in zip(high, low, strict=True)]


def common_denominator(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Write rationals over their least common denominator."""
    denominator = lcm(*(value.denominator for value in values))
    return [value.numerator * (denominator // value.denominator) for value in values], denominator
