"""What jobs pay at least, many at a time: prices are coins.

**Why it is so.** Let the prices be integers, and G_b the most that blocks worth at most b cover:
G_0 = 0, and G_b is the largest of G_{b-1} and of G_{b-p} + f over the blocks of price p <= b that
cover f. A job of demand d then pays the least b with G_b >= d; this is the number of all b >= 0
with G_b < d, since G never falls. So nothing but these numbers is added up. G is cut at d, which
changes none of them.

**Large demands.** Let P and F be the price and the cover of a block of the best price per unit. Of
any P other blocks, some have together a price that is a multiple of P (of P + 1 partial sums two
are equal modulo P), and for that price the best block covers no less. So some cheapest option has
at most P - 1 others, which cover at most X = (P - 1) times the largest f; and if d >= X, it has
t = floor((d - X) / F) of the best at least: h(d) = t P + h(d - t F).

A block that covers more than the demand covers the demand. The other jobs, of whatever demands and
prices, are priced one by one by the checker's own search, equal rows once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd

import numpy as np

from proofs_checks.checker.knapsacks import cheapest_price

from .problem import Rows
from .stored import Bits, Integers, exact_sum

# Coins that a job may cost before the checker's own search takes less.
_MOST_COINS = 4096
# From so many coins on a job is worth looking for equal ones and for blocks that it has for sure.
_MANY_COINS = 256
# A demand below 2^47 times a price up to _MOST_COINS stays within 64 bits.
_LARGEST = 2**47
# Numbers of a table of coins that stay in a processor's cache.
_AT_ONCE = 2**18
_FEWEST = 2**12


def paid_by(rows: Rows, costs: Sequence[int], left_out: Collection[int]) -> int:
    """Add up what jobs pay at least at integer prices, but for those at some places.

    Those that no block serves pay nothing.
    """
    total = sum(
        cheapest_price(costs, row.supply, row.demand) or 0
        for place, row in rows.wide.items()
        if place not in left_out
    )
    pays = rows.demand > 0
    pays[list(left_out)] = False
    served = np.zeros(len(pays), dtype=bool)
    paid = []
    for at, price in enumerate(costs):
        gives = rows.supply[:, at] > 0
        if price == 0:
            pays &= ~gives
        elif gives.any():
            served |= gives
            paid.append(at)
    pays &= served
    if not pays.any():
        return total
    coin = gcd(*(costs[at] for at in paid))
    prices = [costs[at] // coin for at in paid]
    where = slice(None) if pays.all() else pays
    demand = rows.demand[where]
    covers = [np.minimum(rows.supply[where, at], demand) for at in paid]
    return total + coin * _priced(prices, demand, covers)


def _priced(prices: Sequence[int], demand: Integers, covers: list[Integers]) -> int:
    """The same of jobs that some block serves, at prices above 0; no block covers more than all."""
    if max(prices) > _MOST_COINS:
        return _one_by_one(prices, *_collapsed(demand, covers))
    total = 0
    large = demand >= _LARGEST
    if large.any():
        total += _one_by_one(prices, *_collapsed(*_those(large, demand, covers)))
        demand, covers = _those(~large, demand, covers)
    most = _enough(prices, demand, covers)
    many = most > _MANY_COINS
    if many.any():
        total += _priced_at_length(prices, *_those(many, demand, covers))
        demand, covers = _those(~many, demand, covers)
        most = most[~many]
    return total + _coins(prices, demand, covers, most, None)


def _priced_at_length(prices: Sequence[int], demand: Integers, covers: list[Integers]) -> int:
    """The same of jobs that cost many coins."""
    demand = demand.astype(np.int64)
    price = np.full(len(demand), prices[0])
    cover = covers[0].astype(np.int64)
    for p, f in zip(prices[1:], covers[1:], strict=True):
        better = f * price > cover * p
        price[better], cover[better] = p, f[better]
    by_others = (price - 1) * np.maximum.reduce(covers)
    sure = np.maximum(demand - by_others, 0) // cover
    total = sum(p * exact_sum(sure[price == p]) for p in set(prices))
    demand -= sure * cover
    demand, covers, times = _collapsed(demand, [np.minimum(f, demand) for f in covers])
    most = _enough(prices, demand, covers)
    long = most > _MOST_COINS
    total += _one_by_one(prices, *_those(long, demand, covers), times[long])
    return total + _coins(prices, *_those(~long, demand, covers), most[~long], times[~long])


def _those(
    where: Bits, demand: Integers, covers: list[Integers]
) -> tuple[Integers, list[Integers]]:
    return demand[where], [f[where] for f in covers]


def _collapsed(
    demand: Integers, covers: list[Integers]
) -> tuple[Integers, list[Integers], Integers]:
    """Jobs with different rows, and how many there are of each."""
    rows, times = np.unique(np.column_stack([demand, *covers]), axis=0, return_counts=True)
    demand, *covers = np.ascontiguousarray(rows.T)
    return demand, covers, times


def _enough(prices: Sequence[int], demand: Integers, covers: list[Integers]) -> Integers:
    """As many coins as suffice for each job, if it takes blocks of a single type."""
    most = np.full(len(demand), np.iinfo(np.int64).max)
    for price, f in zip(prices, covers, strict=True):
        blocks = -(-demand // np.maximum(f, 1))
        np.minimum(most, blocks * np.int64(price), out=most, where=f > 0)
    return most


def _one_by_one(
    prices: Sequence[int], demand: Integers, covers: list[Integers], times: Integers
) -> int:
    rows = zip(*(f.tolist() for f in covers), strict=True)
    return sum(
        n * (cheapest_price(prices, row, d) or 0)
        for d, n, row in zip(demand.tolist(), times.tolist(), rows, strict=True)
    )


def _coins(
    prices: Sequence[int],
    demand: Integers,
    covers: list[Integers],
    most: Integers,
    times: Integers | None,
) -> int:
    """The same of jobs that cost at most so many coins; ``times``: how many there are of each."""
    if not len(demand):
        return 0
    kind = np.int32 if demand.max() < 2**30 else np.int64
    size = max(_FEWEST, _AT_ONCE // (max(prices) + 1))
    # Those that take alike many coins go together.
    order = np.argsort(np.minimum(most, _MOST_COINS).astype(np.uint16), kind="stable")
    total = 0
    for start in range(0, len(order), size):
        part = order[start : start + size]
        total += _number_of_coins(
            prices,
            demand[part].astype(kind),
            [f[part].astype(kind) for f in covers],
            None if times is None else times[part],
        )
    return total


def _number_of_coins(
    prices: Sequence[int], demand: Integers, covers: list[Integers], times: Integers | None
) -> int:
    # Of G only as many b as the dearest block goes back; a row each, over and over.
    table = np.zeros((max(prices) + 1, len(demand)), dtype=demand.dtype)
    more = np.empty_like(demand)
    number, total = 0, 0
    while True:
        covered = table[number % len(table)]
        short = covered < demand
        left = int(np.count_nonzero(short) if times is None else times[short].sum())
        if not left:
            return total
        total += left
        number += 1
        best = table[number % len(table)]
        best[:] = covered
        for price, f in zip(prices, covers, strict=True):
            if price <= number:
                np.add(table[(number - price) % len(table)], f, out=more)
                np.maximum(best, more, out=best)
        # What a job has beyond its demand would grow out of its bits.
        np.minimum(best, demand, out=best)
