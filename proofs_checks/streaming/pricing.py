"""What jobs pay at least, many at a time: branch and bound, a block type after the other.

Prices are integers above 0 here, and a block that covers more than the demand covers the demand.

**Why it is so.** Each job's block types are in the order of their price per unit, the lowest first.
A node is what an option may start with: it has numbers of the types before one of price p that
covers f, has ``paid`` for them, and they leave ``left`` > 0 to be covered; the root has none. With
n = ceil(left / f) of this type it is an option, at ``paid`` + n p: the job's ``best``, if none
before was cheaper. Every other option that starts like this has n - 1 - j of the type, for a j from
0 to n - 1; let r = left - (n - 1) f, so that r + j f are still to be covered, and let s be what is
paid for the n - 1. If there is no other type, that cannot be. Otherwise let q be the price of the
next one, and g its cover; none of those to come is worth more per unit. The option costs at least

- s - j p + (r + j f) q / g, which does not fall with j, since p / f <= q / g. That is less than
  ``best``, and hence at most ``best`` - 1, as long as j (f q - p g) <= (``best`` - 1 - s) g - r q;
- s - j p and the lowest price of the types to come.

So the options cheaper than ``best``, if there are any, start with one of the nodes for the j that
satisfy both; these are the nodes of the next type. When there are none left, ``best`` is the price
of a cheapest option.

The search starts at the root for the best type, of price P and cover F: of n of it, and of n - 1
and blocks of one other type, the cheapest is ``best``. F times an option's price is P times what it
covers, and p F - P f more for each block of price p that covers f. So where an option is cheaper
than ``best``, its blocks have p F - P f <= F (``best`` - 1) - P d each, d being the demand: for
most jobs this leaves the best type alone.

**Why it stays within 64 bits.** What is paid is told from n P on, which is as much as the best type
costs by itself. So ``best`` lies between -P (no option costs less than P d / F) and 0. What the
root's n - 1 - j blocks cost is at least -P (1 + j), and j stays below ``_MOST_NODES`` plus what the
lowest price takes; more blocks only add to it, and it stays below 0. A price times a cover is at
most 2^62, which p and f bound r q by; and as ``best`` <= s + p, the rest is at most p g in size or,
where it is negative, P g. Demands enter no product. Jobs whose numbers are larger, and jobs with
many nodes, are priced one by one by the checker's own search, equal ones once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd

import numpy as np

from proofs_checks.checker.knapsacks import cheapest_price

from .problem import Rows
from .stored import Bits, Integers, exact_sum

# Prices times covers, and prices, up to which all numbers stay within 64 bits.
_LARGEST = 2**62
_DEAREST = 2**52
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
    places = np.flatnonzero(pays & served)
    if not len(places):
        return total
    paid.sort(key=costs.__getitem__)
    coin = gcd(*(costs[at] for at in paid))
    prices = [costs[at] // coin for at in paid]
    coins, slow = 0, []
    size = max(1, min(_JOBS_AT_ONCE, _COVERS_AT_ONCE // len(prices)))
    for start in range(0, len(places), size):
        part = places[start : start + size]
        demand = rows.demand[part].astype(np.int64)
        covers = np.minimum(rows.supply[part].T[paid], demand, order="C")
        found, others = _priced(prices, demand, covers)
        coins += found
        slow.append(part[others])
    return total + coin * (coins + _one_by_one(prices, rows, paid, np.concatenate(slow)))


def _one_by_one(
    prices: Sequence[int], rows: Rows, paid: Sequence[int], places: Integers
) -> int:
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
    if len(others):
        demand, covers = demand[small], covers[:, small]
    price, cover = _best_types(prices, covers)
    number = (demand - 1) // cover
    left = demand - number * cover
    best = _one_more(prices, covers, price, left)
    room = price * (cover - left) + cover * (best - 1)
    useful = np.empty(covers.shape, dtype=bool)
    for p, f, fits in zip(prices, covers, useful, strict=True):
        np.less_equal(cover * p - price * f, room, out=fits)
    searched = np.flatnonzero(useful.sum(axis=0, dtype=np.int32) > 1)
    if len(searched):
        types = np.flatnonzero(useful.any(axis=1))
        covers = (covers * useful)[types].take(searched, axis=1)
        found = best.take(searched)
        many = _search(
            [prices[at] for at in types], covers, number.take(searched), left.take(searched), found
        )
        best[searched] = found
        if many.any():
            many = searched[many]
            others = np.concatenate([others, np.flatnonzero(small)[many]])
            best[many] = 0
            number[many] = -1
    number += 1
    bought = sum(p * exact_sum(number * (price == p)) for p in set(prices))
    return bought + exact_sum(best), others


def _best_types(prices: Sequence[int], covers: Integers) -> tuple[Integers, Integers]:
    """The price and the cover of each job's best type, the cheapest one of equals."""
    price, cover = np.full(covers.shape[1], prices[0]), covers[0].copy()
    for p, f in zip(prices[1:], covers[1:], strict=True):
        better = f * price > cover * p
        price += better * (p - price)
        cover += better * (f - cover)
    return price, cover


def _one_more(
    prices: Sequence[int], covers: Integers, price: Integers, left: Integers
) -> Integers:
    """What is to be paid, from a block of the best type on, if one type covers what is left."""
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
    price, cover = np.empty_like(covers), np.empty_like(covers)
    np.put_along_axis(price, rank, column, axis=0)
    np.put_along_axis(cover, rank, covers, axis=0)
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
        nodes[taken.take(job) >= _MOST_NODES] = 0
        if nodes.sum() > _NODES_AT_ONCE:
            half = len(job) // 2
            for part in (slice(half, None), slice(half)):
                stack.append((at, job[part], number[part], left[part], spent[part]))
            continue
        np.add.at(taken, job, nodes)
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
