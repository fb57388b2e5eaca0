"""What jobs pay at least, many at a time: branch and bound, one block type after another.

Prices are integers above 0 here, and a block that covers more than the demand covers the demand.

**Why it is so.** A job's block types are in the order of their price per unit, the lowest first. A
*node* is what options start with: numbers of the types before one of price p that covers f. They
leave d > 0 to be covered; the root takes none and leaves the demand. With n = ceil(d / f) blocks of
the type the node is an option, and ``best`` is the lowest price of the options met. All others that
start so have n - 1 - j blocks of it, for a j from 0 to n - 1. Let s be the price with n - 1 blocks,
and r = d - (n - 1) f what they leave; now r + j f are left, for s - j p. If no type follows, these
are no options. Otherwise let q be the price and g the cover of the next one: none that follows has
a lower price per unit. So they cost at least

- s - j p + (r + j f) q / g. That is at most ``best`` - 1 as long as
  j (f q - p g) <= (``best`` - 1 - s) g - r q, and f q >= p g;
- s - j p + the lowest price of those that follow, since r > 0.

Options cheaper than ``best`` start with one of the nodes of the next type for the j that satisfy
both. When no node is left, ``best`` is the price of a cheapest option.

Let P and F be the price and the cover of the first type. F times an option's price is P times what
it covers, and p F - P f for each of its blocks. So an option cheaper than ``best``, at a demand D,
has only blocks with p F - P f <= F (``best`` - 1) - P D. Where ``best`` is the price of n of the
first type, or of n - 1 and blocks of one other, that leaves the first type alone for many jobs:
nothing is cheaper.

**Why it stays within 64 bits.** Whatever is paid is counted from n P at the root. So s = -P there,
and -P < ``best`` <= 0, as nothing costs less than P D / F. A block's price times any other's cover
is at most 2^62. Since ``best`` <= s + p, the products above are at most p g, f q, and P g where the
first one is negative. The root's nodes have paid at least -P - j P, where j is at most the lowest
price that follows, over P, plus 1 and ``_MOST_NODES``; with prices up to 2^50 that is within 62
bits. More blocks only add to it, and by the first bound it stays below 0. Demands enter no product.

Jobs of larger numbers, and those of many nodes, are priced one by one by the checker's own search,
equal ones once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd

import numpy as np

from proofs_checks.checker.knapsacks import cheapest_price

from .problem import Rows
from .stored import Bits, Integers, exact_sum

# Prices times covers, and prices, that keep all numbers within 64 bits.
_LARGEST = 2**62
_DEAREST = 2**50
# From so many nodes on the checker's own search takes less for a job.
_MOST_NODES = 2048
# Jobs, covers and nodes at once.
_JOBS_AT_ONCE = 2**14
_COVERS_AT_ONCE = 2**18
_NODES_AT_ONCE = 2**18


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
    paid.sort(key=costs.__getitem__)
    coin = gcd(*(costs[at] for at in paid))
    prices = [costs[at] // coin for at in paid]
    coins, slow = 0, []
    size = max(1, min(_JOBS_AT_ONCE, _COVERS_AT_ONCE // len(prices)))
    for start in range(0, len(pays), size):
        part = slice(start, start + size)
        places = np.flatnonzero(pays[part])
        demand, supply = rows.demand[part], rows.supply[part]
        if len(places) < len(demand):
            demand, supply = demand[places], supply[places]
        demand = demand.astype(np.int64)
        covers = np.minimum(supply.T[paid], demand, order="C")
        found, others = _priced(prices, demand, covers)
        coins += found
        slow.append(start + places[others])
    return total + coin * (coins + _one_by_one(prices, rows, paid, np.concatenate(slow)))


def _one_by_one(prices: Sequence[int], rows: Rows, paid: Sequence[int], places: Integers) -> int:
    demand = rows.demand[places].astype(np.int64)
    covers = np.minimum(rows.supply[places].T[paid], demand)
    different, times = np.unique(np.vstack([demand, covers]), axis=1, return_counts=True)
    return sum(
        n * (cheapest_price(prices, row[1:], row[0]) or 0)
        for n, row in zip(times.tolist(), different.T.tolist(), strict=True)
    )


def _priced(prices: Sequence[int], demand: Integers, covers: Integers) -> tuple[int, Integers]:
    """What jobs pay at rising prices together, but for some, and which of them these are.

    ``covers`` has a row a price; some block serves each job, and none covers more than its demand.
    """
    most = _LARGEST // prices[-1] if prices[-1] <= _DEAREST else 0
    small = covers.max(axis=0) <= most
    others = np.flatnonzero(~small)
    if len(others) == len(demand):
        return 0, others
    if len(others):
        demand, covers = demand[small], covers[:, small]
    price, cover = _best_types(prices, covers)
    number = (demand - 1) // cover + 1
    left = demand - (number - 1) * cover
    best = _one_more(prices, covers, price, left)
    # F (best - 1) - P D, where ``best`` is counted from P times the number on.
    room = price * (cover - left) + cover * (best - 1)
    useful = np.empty(covers.shape, dtype=bool)
    for p, f, fits in zip(prices, covers, useful, strict=True):
        np.less_equal(cover * p - price * f, room, out=fits)
    searched = np.flatnonzero(useful.sum(axis=0) > 1)
    if len(searched):
        types = np.flatnonzero(useful.any(axis=1)).tolist()
        covers = covers.take(searched, axis=1) * useful.take(searched, axis=1)
        found = best.take(searched)
        unsettled = _search(
            [prices[at] for at in types],
            covers[types],
            number.take(searched) - 1,
            left.take(searched),
            found,
        )
        best[searched] = found
        late = searched[unsettled]
        others = np.concatenate([others, np.flatnonzero(small)[late]])
        best[late] = number[late] = 0
    return exact_sum(best) + sum(p * exact_sum(number * (price == p)) for p in set(prices)), others


def _best_types(prices: Sequence[int], covers: Integers) -> tuple[Integers, Integers]:
    """The price and the cover of each job's best type, the cheapest one of equals."""
    price, cover = np.full(covers.shape[1], prices[0]), covers[0].copy()
    for p, f in zip(prices[1:], covers[1:], strict=True):
        better = f * price > cover * p
        price += better * (p - price)
        cover += better * (f - cover)
    return price, cover


def _one_more(prices: Sequence[int], covers: Integers, price: Integers, left: Integers) -> Integers:
    """The lowest price of blocks of one type for what is left, less one block of the best type.

    It is at most 0: one block of the best type covers what is left.
    """
    best = np.zeros_like(left)
    for p, f in zip(prices, covers, strict=True):
        more = (left - 1) // np.maximum(f, 1) * p + p - price
        np.minimum(best, more * (f > 0), out=best)
    return best


def _in_order(prices: Sequence[int], covers: Integers) -> tuple[Integers, Integers]:
    """Prices and covers of each job's types, by price per unit; the last ones may cover nothing.

    A type goes if a cheaper one, or several of it, cover as much for its price.
    """
    covers = covers.copy()
    column = np.array(prices)[:, None]
    rank = np.zeros(covers.shape, dtype=np.intp)
    for at, p in enumerate(prices):
        as_much = covers[:at] * (p // column[:at])
        covers[at] *= as_much.max(axis=0, initial=0) < covers[at]
    for at, p in enumerate(prices):
        worse = covers[at] * column[:at] <= covers[:at] * p
        rank[at] = worse.sum(axis=0)
        rank[:at] += ~worse
    place = rank * covers.shape[1] + np.arange(covers.shape[1])
    price, cover = np.empty_like(covers), np.empty_like(covers)
    price.ravel()[place] = column
    cover.ravel()[place] = covers
    return price, cover


def _search(
    prices: Sequence[int], covers: Integers, number: Integers, left: Integers, best: Integers
) -> Bits:
    """Lower ``best`` to the least; say of which jobs that would take too many nodes.

    So many blocks of the best type leave that much, and one more leaves nothing.
    """
    price, cover = _in_order(prices, covers)
    lowest = np.where(cover > 0, price, _LARGEST)
    lowest = np.minimum.accumulate(lowest[::-1], axis=0)[::-1]
    taken = np.zeros(len(best), dtype=np.int64)
    stack = [(1, np.arange(len(best)), number, left, -price[0])]
    while stack:
        at, job, number, left, spent = stack.pop()
        q, g = price[at].take(job), cover[at].take(job)
        room = best.take(job) - 1 - spent
        slack = room * g - left * q
        # Where no type follows, g = 0.
        live = np.flatnonzero(slack >= 0)
        job, number, left, spent, q, g, room, slack = (
            each.take(live) for each in (job, number, left, spent, q, g, room, slack)
        )
        p, f = price[at - 1].take(job), cover[at - 1].take(job)
        grows = f * q - p * g
        end = np.where(grows > 0, slack // np.maximum(grows, 1), number)
        first = np.maximum(-((room - lowest[at].take(job)) // p), 0)
        nodes = np.maximum(np.minimum(end, number) + 1 - first, 0)
        np.minimum(nodes, _MOST_NODES, out=nodes)
        np.add.at(taken, job, nodes)
        nodes[taken.take(job) >= _MOST_NODES] = 0
        if nodes.sum() > _NODES_AT_ONCE:
            np.subtract.at(taken, job, nodes)
            half = len(job) // 2
            for part in (slice(half, None), slice(half)):
                stack.append((at, job[part], number[part], left[part], spent[part]))
            continue
        parent = np.repeat(np.arange(len(job)), nodes)
        if not len(parent):
            continue
        fewer = np.arange(len(parent)) - (np.cumsum(nodes) - nodes - first).take(parent)
        job = job.take(parent)
        left = left.take(parent) + fewer * f.take(parent)
        spent = spent.take(parent) - fewer * p.take(parent)
        p, f = q.take(parent), g.take(parent)
        number = (left - 1) // f
        left -= number * f
        spent += number * p
        np.minimum.at(best, job, spent + p)
        if at + 1 < len(price):
            stack.append((at + 1, job, number, left, spent))
    return taken >= _MOST_NODES
