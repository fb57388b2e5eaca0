"""One job's cheapest option, in the common subset of Python and numba.

With lists and Python integers these functions are exact on integers of any size; compiled for int64
arrays they find the same options.

Types go first that a cheaper one, or a whole number of another one for no more, satisfies as much
as, or of which a block costs more than the option in hand leaves room for. The others are searched
one by one, with lists of all that can be left of the demand and what it took to get there, without
entries that another one beats in both, or that the price of the rest at the next ratio rules out.
"""

from __future__ import annotations

from typing import Any

#: What :func:`search` returns in place of a value: no block can serve the job; its numbers are too
#: large for int64.
UNSERVABLE, TOO_LARGE = -1, -2
#: What becomes of a row otherwise: it is to be priced, or it has been.
PENDING, PRICED = 0, 1
# The rows of scratch memory: price, gain (what one block satisfies) and index of the types that no
# cheaper one beats, by price; the same of those a cheaper option may contain, by ratio, with the
# lowest price from each on; and where the list of each type starts.
_FRONT_PRICE, _FRONT_GAIN, _FRONT_KIND = 0, 1, 2
_PRICE, _GAIN, _KIND, _LOWEST, _START = 3, 4, 5, 6, 7
#: How many rows of scratch memory :func:`search` needs, each of k integers.
WORK_ROWS = 8
#: Entries of the lists at most: beyond, the value is only a lower bound.
LONGEST_LIST = 2**18
#: Of a demand of more blocks of the best type, what every search would buy is bought first.
MANY_BLOCKS = 2**10
# Up to this, products of two supplies fit into 62 bits.
_LARGEST_SUPPLY = 2**31
#: The functions to compile, in an order in which each finds those that it calls compiled already.
COMPILED = ("undominated", "bought_at_once", "useful", "by_lists", "search", "search_rows")


def search_rows(
    prices: Any,
    order: Any,
    room: int,
    demand: Any,
    supply: Any,
    state: Any,
    values: Any,
    options: Any,
    work: Any,
    lists: Any,
    start: int,
    patience: int,
) -> tuple[int, int]:
    """Price the rows that are PENDING in ``state`` from ``start`` on, into ``values``, ``options``.

    Returns the first row not looked at, once the effort exceeds ``patience``, and the effort.
    """
    effort = 0
    for j in range(start, len(demand)):
        if state[j] != PENDING:
            continue
        value, more = search(prices, supply[j], demand[j], order, options[j], work, lists, room)
        effort += more
        if value < 0:
            state[j] = value
            options[j] = 0
        else:
            values[j], state[j] = value, PRICED
        if effort > patience:
            return j + 1, effort
    return len(demand), effort


def search(
    prices: Any, supply: Any, demand: Any, order: Any, option: Any, work: Any, lists: Any, room: Any
) -> tuple[Any, int]:
    """Search for one job's cheapest option, which ``option`` receives.

    ``order`` has the types by price; ``work`` (WORK_ROWS rows) and ``lists`` (three of LONGEST_LIST
    integers, dicts in plain code) are scratch memory. ``room`` is the largest integer whose product
    with every price fits into 62 bits in compiled code, -1 in plain.

    Returns the minimum, or a lower bound on it below the option's price, or UNSERVABLE or
    TOO_LARGE; and the effort, in entries of lists.
    """
    for i in range(len(option)):
        option[i] = 0
    if demand <= 0:
        return demand - demand, 1
    many = undominated(prices, supply, demand, order, work)
    if many == 0:
        return UNSERVABLE, 1
    front_gain = work[_FRONT_GAIN]
    most = front_gain[many - 1]
    if room >= 0 and most > room:
        return TOO_LARGE, 1
    # The lowest price per supply; of equals the largest.
    best, front_price = 0, work[_FRONT_PRICE]
    for at in range(1, many):
        if front_price[at] * front_gain[best] <= front_price[best] * front_gain[at]:
            best = at
    base, left = demand - demand, demand
    if demand > MANY_BLOCKS * front_gain[best]:
        if room >= 0 and most >= _LARGEST_SUPPLY:
            return TOO_LARGE, 1
        base = bought_at_once(many, best, demand, work)
        left = demand - base * front_gain[best]
    if room >= 0 and (left > room - most or base > room):
        return TOO_LARGE, 1
    value, m = useful(many, best, left, option, work)
    price, gain, kind = work[_PRICE], work[_GAIN], work[_KIND]
    effort = 1
    if m > 1:
        value, settled, effort = by_lists(
            m, left, value, option, work, lists[0], lists[1], lists[2]
        )
        if not settled:
            # The option is a good one; what is proved is the price at the best ratio.
            value = -(-left * price[0] // gain[0])
    option[kind[0]] += base
    return value + base * price[0], effort


def undominated(prices: Any, supply: Any, demand: Any, order: Any, work: Any) -> int:
    """List the types that satisfy more than every cheaper one; return how many."""
    price, gain, kind = work[_FRONT_PRICE], work[_FRONT_GAIN], work[_FRONT_KIND]
    many, most = 0, 0
    for i in order:
        f = supply[i]
        if f > demand:
            f = demand
        if f > most:
            most = f
            price[many], gain[many], kind[many] = prices[i], f, i
            many += 1
    return many


def bought_at_once(many: int, best: int, demand: Any, work: Any) -> Any:
    """Count the blocks of the best type that some cheapest option may be assumed to contain.

    Of other types (theory 6.5) it has fewer than the best type's supply, over the common divisor of
    all; and what they cost beyond the best ratio is less than one block of the best type.
    """
    price, gain = work[_FRONT_PRICE], work[_FRONT_GAIN]
    p0, g0 = price[best], gain[best]
    common, spread, most = g0, 0, 0
    for at in range(many):
        if at != best:
            a, b = common, gain[at]
            while b:
                a, b = b, a % b
            common = a
            dearer = price[at] * g0 - p0 * gain[at]
            times = g0
            if dearer > 0:
                times = min(g0, -(-(p0 * g0) // dearer))
            spread = max(spread, times * gain[at])
            most = max(most, gain[at])
    others = min(spread, (g0 // common - 1) * most)
    return max(0, (demand - others - 1) // g0)


def useful(many: int, best: int, left: Any, option: Any, work: Any) -> tuple[Any, int]:
    """Take a first option, and sort types a cheaper one may contain; return price and number."""
    front_price, front_gain, front_kind = work[_FRONT_PRICE], work[_FRONT_GAIN], work[_FRONT_KIND]
    price, gain, kind, lowest = work[_PRICE], work[_GAIN], work[_KIND], work[_LOWEST]
    p0, g0 = front_price[best], front_gain[best]
    price[0], gain[0], kind[0] = p0, g0, front_kind[best]
    # All but the last block of the best type, and the cheapest block that satisfies the rest.
    whole = -(-left // g0) - 1
    at = 0
    while front_gain[at] < left - whole * g0:
        at += 1
    value = whole * p0 + front_price[at]
    option[kind[0]] = whole
    option[front_kind[at]] += 1
    # What a cheaper option, of at most value - 1, may cost beyond the best ratio, times g0.
    slack = (value - 1) * g0 - left * p0
    m = 1
    for at in range(many):
        p, f = front_price[at], front_gain[at]
        if at != best and p * g0 - p0 * f <= slack and p // p0 * g0 < f:
            to = m
            while to > 1 and p * gain[to - 1] <= price[to - 1] * f:
                price[to], gain[to], kind[to] = price[to - 1], gain[to - 1], kind[to - 1]
                to -= 1
            price[to], gain[to], kind[to] = p, f, front_kind[at]
            m += 1
    kept = min(m, 2)
    for at in range(2, m):
        p, f = price[at], gain[at]
        for better in range(1, kept):
            if p >= price[better] and p // price[better] * gain[better] >= f:
                break
        else:
            price[kept], gain[kept], kind[kept] = p, f, kind[at]
            kept += 1
    low = price[kept - 1]
    for at in range(kept - 1, -1, -1):
        low = min(low, price[at])
        lowest[at] = low
    return value, kept


def by_lists(
    m: int, left: Any, value: Any, option: Any, work: Any, rest: Any, spent: Any, came: Any
) -> tuple[Any, bool, int]:
    """Look for an option cheaper than ``value``; return its price, whether that is settled, effort.

    An entry is what is left of the demand, what is spent, and where it came from: of the first list
    the blocks of the best type, of others an entry of the list before, or, with a block more, of
    the same. A list is sorted by what is spent. Each entry is finished with the next type at once.
    """
    price, gain, kind, lowest = work[_PRICE], work[_GAIN], work[_KIND], work[_LOWEST]
    start = work[_START]
    found, finished, blocks, settled = -1, 0, left - left, True
    # At most this many leave the price of a block of another type; the fewer, the dearer the rest.
    p0, g0, p, g = price[0], gain[0], price[1], gain[1]
    c = (value - 1 - lowest[1]) // p0
    if c * g0 >= left:
        c = -(-left // g0) - 1
    r, s, begin, end = left - c * g0, c * p0, 0, 0
    while c >= 0 and r * p <= (value - 1 - s) * g:
        if end == LONGEST_LIST:
            settled = False
            break
        rest[end], spent[end], came[end] = r, s, c
        more = -(-r // g)
        if s + more * p < value:
            value, found, finished, blocks = s + more * p, end, 1, more
        end, c, r, s = end + 1, c - 1, r + g0, s - p0
    if m > 2 and settled:
        for i in range(end // 2):
            j = end - 1 - i
            rest[i], rest[j] = rest[j], rest[i]
            spent[i], spent[j] = spent[j], spent[i]
            came[i], came[j] = came[j], came[i]
        if found >= 0:
            found = end - 1 - found
    for at in range(1, m - 1):
        if begin == end or not settled:
            break
        p, g, next_p, next_g = price[at], gain[at], price[at + 1], gain[at + 1]
        start[at] = end
        # Next comes what is cheaper: from the last list, or one block more on this one.
        low, new, again, i, least = lowest[at], end, end, begin, left + 1
        r1, s1, r2, s2 = rest[i], spent[i], left, value
        while True:
            if s1 < s2 or (s1 == s2 and r1 <= r2):
                r, s, before, i = r1, s1, i, i + 1
                r1, s1 = (rest[i], spent[i]) if i < end else (left, value)
            else:
                r, s, before, again = r2, s2, again, again + 1
                r2, s2 = (rest[again] - g, spent[again] + p) if again < new else (left, value)
            # Entries go on that leave room for this type or the next ones.
            if s + low >= value:
                break
            if r >= least or r * p > (value - 1 - s) * g:
                continue
            if new == LONGEST_LIST:
                settled = False
                break
            least = r
            rest[new], spent[new], came[new] = r, s, before
            more = -(-r // next_g)
            if s + more * next_p < value:
                value, found, finished, blocks = s + more * next_p, new, at + 1, more
            if again == new:
                r2, s2 = r - g, s + p
            new += 1
        begin, end = end, new
    if found >= 0:
        for i in range(len(option)):
            option[i] = 0
        option[kind[finished]] = blocks
        at = finished - 1
        while at > 0:
            if came[found] >= start[at]:
                option[kind[at]] += 1
            else:
                at -= 1
            found = came[found]
        option[kind[0]] += came[found]
    return value, settled, end + 1
