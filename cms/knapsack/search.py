"""One job's cheapest option: the search, in the common subset of Python and numba.

With lists and Python integers these functions are the plain path, exact on integers of any size and
without compiling anything; ``knapsack_compiled`` compiles the same source for int64 arrays. Both
find the same option.

A job's types are first thinned out: a type goes if a cheaper one satisfies as much, if a whole
number of the best one (of the lowest price per supply) satisfies as much for no more, or if one
block of it costs more than the option in hand leaves room for. What is left is searched
depth-first, pruned by the price of the rest at the next ratio (theory 6.5); ordinary jobs end after
a dozen nodes. Where blocks of the last two types can be had by the dozen, the best pair is found at
once (``knapsack_pair``). Where ratios nearly tie the search would try every combination. Such a job
goes on to *lists*: type by type, all that can be left of the demand and what it took to get there,
without the entries that another one beats in both.
"""

from __future__ import annotations

from typing import Any

from .pair import cheapest_pair

#: What :func:`search` returns in place of a value: no block can serve the job; its numbers are too
#: large for int64; its lists are too long for the scratch memory.
UNSERVABLE, TOO_LARGE, TOO_LONG = -1, -2, -3
# The rows of scratch memory: price, gain (what one block satisfies) and index of the types that no
# cheaper one beats, by price; the same of those a cheaper option may contain, by ratio, with the
# lowest price from each on; of the search by depth, the blocks taken, those of the best option, and
# what was left and paid before; and where the list of each type starts.
_FRONT_PRICE, _FRONT_GAIN, _FRONT_KIND = 0, 1, 2
_PRICE, _GAIN, _KIND, _LOWEST = 3, 4, 5, 6
_COUNT, _BEST, _UNDONE, _PAID = 7, 8, 9, 10
_START = 11
#: How many rows of scratch memory :func:`search` needs, each of k integers.
WORK_ROWS = 12
#: Entries of the lists at first, and at most: beyond, the value is only a lower bound.
SHORT_LIST, LONGEST_LIST = 2**10, 2**18
# Nodes of the depth-first search before the lists take over.
_FEW_NODES = 300
# Up to so many blocks are put back one by one, which takes less than to divide.
_STEPS = 32
#: Of a demand of more blocks of the best type, what every search would buy is bought first.
MANY_BLOCKS = 2**10
# Up to this, products of two supplies fit into 62 bits.
_LARGEST_SUPPLY = 2**31


def search(
    prices: Any,
    supply: Any,
    demand: Any,
    order: Any,
    option: Any,
    work: Any,
    rest: Any,
    spent: Any,
    room: Any,
) -> tuple[Any, bool, int]:
    """Search for one job's cheapest option.

    Parameters
    ----------
    prices, supply : k integers
        >= 0.
    demand : int
        > 0.
    order : k ints
        The types by price, ascending.
    option : k integers
        Receives the best option found; means nothing if the value is negative.
    work : WORK_ROWS rows of at least k integers
        Scratch memory.
    rest, spent : two rows of equally many integers
        Scratch memory for the lists.
    room : int
        Compiled: the largest integer whose product with every price fits into 62 bits. Plain: -1.

    Returns
    -------
    value : int
        The minimum, or a proven lower bound on it; or UNSERVABLE, TOO_LARGE or TOO_LONG.
    exact : bool
        Whether the value is the minimum, and the option's price.
    effort : int
        Nodes and entries of lists: what the time is proportional to.
    """
    for i in range(len(option)):
        option[i] = 0
    many = undominated(prices, supply, demand, order, work)
    if many == 0:
        return UNSERVABLE, True, 0
    front_gain = work[_FRONT_GAIN]
    most = front_gain[many - 1]
    if room >= 0 and most > room:
        return TOO_LARGE, True, 0
    best = best_ratio(many, work)
    base, left = 0, demand
    if demand > MANY_BLOCKS * front_gain[best]:
        if room >= 0 and most >= _LARGEST_SUPPLY:
            return TOO_LARGE, True, 0
        base = bought_at_once(many, best, demand, work)
        left = demand - base * front_gain[best]
    if room >= 0 and (left > room - most or base > room):
        return TOO_LARGE, True, 0
    value, m = useful(many, best, left, option, work)
    exact, effort = True, 0
    if m > 1:
        value, exact, effort = depth_first(m, left, value, option, work)
        if not exact:
            value, exact, effort = by_lists(m, left, value, option, work, rest, spent)
            if value < 0:
                return TOO_LONG, True, effort
    price, kind = work[_PRICE], work[_KIND]
    option[kind[0]] += base
    return value + base * price[0], exact, effort


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


def best_ratio(many: int, work: Any) -> int:
    """Find the type of the lowest price per supply; of equals the largest."""
    price, gain = work[_FRONT_PRICE], work[_FRONT_GAIN]
    best = 0
    for at in range(1, many):
        if price[at] * gain[best] <= price[best] * gain[at]:
            best = at
    return best


def bought_at_once(many: int, best: int, demand: Any, work: Any) -> Any:
    """Count the blocks of the best type that some cheapest option may be assumed to contain.

    It has too few blocks of other types for more (theory 6.5). Their number is less than the best
    type's supply, over the divisor common to all; and what they cost beyond the best ratio is less
    than one block of the best type, since buying nothing else would cost no more than that.
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
    """Take a first option, and sort by ratio the types that a cheaper one may contain.

    Returns the option's price and the number of types; the best one comes first.
    """
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
        beaten = False
        for better in range(1, kept):
            if p >= price[better] and p // price[better] * gain[better] >= f:
                beaten = True
                break
        if not beaten:
            price[kept], gain[kept], kind[kept] = p, f, kind[at]
            kept += 1
    low = price[kept - 1]
    for at in range(kept - 1, -1, -1):
        low = min(low, price[at])
        lowest[at] = low
    return value, kept


def depth_first(m: int, left: Any, value: Any, option: Any, work: Any) -> tuple[Any, bool, int]:
    """Look for an option cheaper than ``value``; return its price, and whether that is settled."""
    price, gain, kind, lowest = work[_PRICE], work[_GAIN], work[_KIND], work[_LOWEST]
    count, best, undone, paid = work[_COUNT], work[_BEST], work[_UNDONE], work[_PAID]
    improved, settled = False, True
    nodes, depth = 0, 0
    r, s, p, g = left, left - left, price[0], gain[0]
    undone[0], paid[0] = r, s
    c = -(-left // g)
    while True:
        nodes += 1
        c -= 1
        following = depth + 1
        p2, g2 = price[following], gain[following]
        open_ = c >= 0
        if open_:
            r2, s2 = r - c * g, s + c * p
            spare = value - 1 - s2
            # The bound only grows as c falls, so the first cut ends this level.
            open_ = r2 * p2 <= spare * g2
        if not open_:
            if depth == 0:
                break
            depth -= 1
            r, s, p, g, c = undone[depth], paid[depth], price[depth], gain[depth], count[depth]
            continue
        if lowest[following] > spare:
            if c > _STEPS:
                # Only so much fewer blocks leave the price of one of another type.
                c = min(c, (value - 1 - s - lowest[following]) // p + 1)
            continue
        last = following + 1 == m
        at_once = last and c > _STEPS
        finish = -(-r2 // g2)
        if at_once:
            c, finish = cheapest_pair(r, p, g, p2, g2)
            s2 = s + c * p
            spare = value - 1 - s2
        if finish * p2 <= spare:
            value, improved = s2 + finish * p2, True
            for d in range(depth):
                best[d] = count[d]
            best[depth], best[following] = c, finish
            for d in range(following + 1, m):
                best[d] = 0
        if at_once:
            c = 0  # of two types there is no better pair
        elif not last:
            if nodes >= _FEW_NODES:
                settled = False
                break
            count[depth] = c
            depth, r, s, p, g, c = following, r2, s2, p2, g2, finish
            undone[depth], paid[depth] = r, s
    if improved:
        take(m, best, kind, option)
    return value, settled, nodes


def take(m: int, count: Any, kind: Any, option: Any) -> None:
    """Write the numbers of the sorted types into the option."""
    for i in range(len(option)):
        option[i] = 0
    for at in range(m):
        option[kind[at]] = count[at]


def by_lists(
    m: int, left: Any, value: Any, option: Any, work: Any, rest: Any, spent: Any
) -> tuple[Any, bool, int]:
    """Do the same, type by type, with lists of what is left and what is spent.

    A list is sorted by what is spent, ascending, and thereby by what is left, descending; each
    stands behind the one before it. Where they need more memory than there is, the value is
    TOO_LONG, or a proven lower bound if it is the most there may be.
    """
    price, gain, kind, lowest = work[_PRICE], work[_GAIN], work[_KIND], work[_LOWEST]
    count, start = work[_COUNT], work[_START]
    size = len(rest)
    begin, end = 0, first_list(left, value, work, rest, spent)
    effort, found, overshoot, lower = end, 0, left - left, value
    full = end > size
    if full:
        lower = -(-left * price[0] // gain[0])
        end = 0
    for at in range(1, m):
        if begin == end:
            break
        start[at - 1], start[at] = begin, end
        p, g, low = price[at], gain[at], lowest[at]
        if at == m - 1:
            for i in range(begin, end):
                r, s = rest[i], spent[i]
                if r * p <= (value - 1 - s) * g:
                    c = -(-r // g)
                    if s + c * p < value:
                        value, found, overshoot = s + c * p, at, r - c * g
            break
        new, again, i = end, end, begin
        least = left + 1
        while True:
            # The next by what is spent: from the last list, or one block more on this one.
            if again < new:
                r, s = rest[again] - g, spent[again] + p
            elif i == end:
                break
            if i < end and (again == new or spent[i] < s or (spent[i] == s and rest[i] <= r)):
                r, s = rest[i], spent[i]
                i += 1
            else:
                again += 1
            if s >= value:
                break
            if r >= least:
                continue
            least = r
            if r <= 0:
                value, found, overshoot = s, at, r
                break
            if s + low >= value or r * p > (value - 1 - s) * g:
                continue
            if new == size:
                full = True
                break
            rest[new], spent[new] = r, s
            new += 1
        effort += new - end
        if full:
            for i in range(begin, end):
                lower = min(lower, spent[i] + -(-rest[i] * p // g))
            break
        # Only those go on that leave room for the next types.
        p, g, low = price[at + 1], gain[at + 1], lowest[at + 1]
        begin, end, last = end, end, new
        for i in range(begin, last):
            r, s = rest[i], spent[i]
            if s + low < value and r * p <= (value - 1 - s) * g:
                rest[end], spent[end] = r, s
                end += 1
    if full and size < LONGEST_LIST:
        return TOO_LONG, True, effort
    if found > 0:
        trace(found, overshoot, value, work, rest, spent)
        take(m, count, kind, option)
    return min(value, lower), lower >= value, effort


def first_list(left: Any, value: Any, work: Any, rest: Any, spent: Any) -> int:
    """List the numbers of the best type that leave room for the others; return how many.

    One more than fit means that they do not all fit.
    """
    price, gain, lowest = work[_PRICE], work[_GAIN], work[_LOWEST]
    p0, g0, p, g = price[0], gain[0], price[1], gain[1]
    most = -(-left // g0)
    first = 0
    needed = left * p - (value - 1) * g
    if needed > 0:
        dearer = p * g0 - p0 * g
        first = -(-needed // dearer) if dearer > 0 else most
    end = 0
    for c in range(first, most):
        s = c * p0
        if s + lowest[1] >= value:
            break
        if end == len(rest):
            return end + 1
        rest[end], spent[end] = left - c * g0, s
        end += 1
    return end


def trace(found: int, r: Any, s: Any, work: Any, rest: Any, spent: Any) -> None:
    """Read off the lists how many blocks of each type led to what is left and spent at the end."""
    price, gain, count, start = work[_PRICE], work[_GAIN], work[_COUNT], work[_START]
    for at in range(len(count)):
        count[at] = 0
    for at in range(found, 0, -1):
        c = 0
        while True:
            low, high = start[at - 1], start[at]
            while low < high:
                middle = (low + high) // 2
                if spent[middle] < s:
                    low = middle + 1
                else:
                    high = middle
            if low < start[at] and spent[low] == s and rest[low] == r:
                break
            c += 1
            r += gain[at]
            s -= price[at]
        count[at] = c
    count[0] = s // price[0]
