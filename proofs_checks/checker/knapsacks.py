"""The knapsack on the jobs' side of a certificate: the cheapest blocks that cover a demand.

The two types of the best price per unit are bought last: how many of each, Euclid's algorithm
says. What the others *waste*, beside the best price per unit, adds up; so they are tried in the
order of what they waste together, until that alone makes up for what is known. Few are where
something is found that wastes next to nothing, as with large numbers there mostly is. Otherwise a
*table* over the remainders modulo what the best type covers tells all, where that is a small number
and the demand large; or the types come one after the other, that of the best price per unit first,
with *lists* of what is left after each, without the entries that another one beats. So the work
grows with neither the demand nor the digits of the numbers. Where many types tie within a hair the
lists could still outgrow any memory: then the answer is a lower bound, a little below the value
itself, and no certificate proves more by it than is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from heapq import heappop, heappush
from math import gcd, lcm
from typing import TypeAlias

Block: TypeAlias = tuple[int, int]  # its price, and what it covers, or its size

# Steps of the first search; ordinary jobs take a dozen.
_STEPS = 300
# Up to so many blocks it takes less to try every number than to look for the best pair.
_FEW = 32
# Up to this cover of the best type a table over the remainders modulo it takes less than lists do.
_MOST_REMAINDERS = 2**17
# So many options of two types are counted while the others are tried in the order of their waste;
# fewer of long numbers, so that it takes no longer.
_COUNTS = 2**13
# Entries of all lists of one job, a second's work.
_LONGEST = 2**19


def cheapest_option(
    prices: Sequence[Fraction], supply: Sequence[Fraction], demand: Fraction
) -> Fraction | None:
    """The price h of the cheapest blocks that cover a demand; they may be any number of blocks.

    That is min { prices·o : supply·o >= demand, o >= 0 integer }; None if no block covers anything.
    It is less, and never more, only if that took lists of more than half a million entries.

    Prices are integers here, so every bound on one is rounded up. Some options are tried first,
    depth first; where that comes to no end, a table or lists settle what is cheaper than the best
    of them.
    """
    coin, costs = integers(prices)
    _, (target, *covers) = integers([demand, *supply])
    price = cheapest_price(costs, covers, target)
    return None if price is None else coin * price


def cheapest_price(costs: Sequence[int], covers: Sequence[int], target: int) -> int | None:
    """Do the same for integers."""
    if target == 0:
        return 0
    # A block that covers more than the demand covers the demand.
    useful = [(p, min(f, target)) for p, f in zip(costs, covers, strict=True) if f > 0]
    if not useful:
        return None
    coin = gcd(*(p for p, _ in useful))
    if any(p == 0 for p, _ in useful):
        return 0
    blocks = _worth_while([(p // coin, f) for p, f in useful])
    P, F = blocks[0]
    # So many of the best type are in some cheapest option: the work does not grow with the demand.
    bought = max(0, target - _most_by_others(blocks) - 1) // F
    target -= bought * F
    full = (target - 1) // F
    best = full * P + min(p for p, f in blocks if f >= target - full * F)
    best, settled = _tried(_within(blocks, target, best), target, best)
    if not settled:
        best, settled = _by_waste(_within(blocks, target, best), target, best)
    if not settled and bought and F <= _MOST_REMAINDERS:
        best = (P * target + _least_waste(tuple(blocks))[target % F]) // F
    elif not settled:
        best = _listed(_within(blocks, target, best), target, best)
    return coin * (bought * P + best)


def integers(values: Sequence[Fraction]) -> tuple[Fraction, list[int]]:
    """A unit, and how many of it each value is."""
    denominator = lcm(*(value.denominator for value in values))
    numbers = [value.numerator * (denominator // value.denominator) for value in values]
    divisor = gcd(*numbers) or 1
    return Fraction(divisor, denominator), [number // divisor for number in numbers]


def by_price(a: Block, b: Block) -> int:
    """Compare prices per unit; of equal ones, the larger block comes first."""
    return a[0] * b[1] - b[0] * a[1] or b[1] - a[1]


def _worth_while(blocks: list[Block]) -> list[Block]:
    """The blocks by price per unit, without those that others replace for no more.

    A block goes if a cheaper one, or several of a better one, cover as much for its price.
    """
    front: list[Block] = []
    for p, f in sorted(blocks, key=lambda block: (block[0], -block[1])):
        if not front or f > front[-1][1]:
            front.append((p, f))
    kept: list[Block] = []
    for p, f in sorted(front, key=cmp_to_key(by_price)):
        if not any(p // q * g >= f for q, g in kept):
            kept.append((p, f))
    return kept


def _within(blocks: Sequence[Block], target: int, best: int) -> list[Block]:
    """The blocks that an option cheaper than ``best`` may have.

    F times an option's price is P·target or more, plus p·F - P·f for each of its blocks.
    """
    P, F = blocks[0]
    room = (best - 1) * F - P * target
    return [blocks[0], *((p, f) for p, f in blocks[1:] if p * F - P * f <= room)]


def _cheapest_from(blocks: Sequence[Block]) -> list[int]:
    """The lowest price of the blocks from each one on."""
    lowest = [p for p, _ in blocks]
    for at in range(len(lowest) - 2, -1, -1):
        lowest[at] = min(lowest[at], lowest[at + 1])
    return lowest


def _tried(blocks: Sequence[Block], target: int, best: int) -> tuple[int, bool]:
    """The price of a good option, ``best`` or lower, and whether none is cheaper."""
    last, lowest, steps = len(blocks) - 1, _cheapest_from(blocks), 0

    def descend(at: int, left: int, spent: int) -> None:
        """Cover what is left with blocks from ``at`` on."""
        nonlocal best, steps
        steps += 1
        p, f = blocks[at]
        alone = -(-left // f)
        best = min(best, spent + p * alone)
        if at == last:
            return
        q, g = blocks[at + 1]
        if at + 1 == last and alone > _FEW:
            best = min(best, spent + _cheapest_pair(p, f, q, g, left))
            return
        most = min(alone - 1, (best - 1 - spent - lowest[at + 1]) // p)
        for number in range(most, -1, -1):
            rest, paid = left - number * f, spent + number * p
            # The fewer of this block, the dearer the rest: from here on nothing is cheaper.
            if paid - (-rest * q // g) >= best or steps > _STEPS:
                break
            descend(at + 1, rest, paid)

    descend(0, target, 0)
    return best, steps <= _STEPS


def _by_waste(blocks: Sequence[Block], target: int, best: int) -> tuple[int, bool]:
    """The price of a better option, or ``best``, and whether none is cheaper.

    The types but the first two are bought in the order of what that wastes: F times an option's
    price is P times what it covers, plus p·F - P·f for each of its blocks.
    """
    if len(blocks) < 3:
        return best, False
    (P, F), (q, g), *others = blocks
    wastes = [p * F - P * f for p, f in others]
    line = [(0, 0, 0, 0)]  # wasted, covered and spent by the others, and the last of their types
    digits = 1 + max(target, F, g).bit_length() // 64
    left = _COUNTS // digits
    while left > 0:
        if not line or P * target + line[0][0] > (best - 1) * F:
            return best, True
        wasted, covered, spent, last = heappop(line)
        if covered >= target:
            best, left = min(best, spent), left - 1
            continue
        pair = _cheapest_pair(P, F, q, g, target - covered, best - spent)
        left -= 1 if spent + pair >= best else best.bit_length()  # halving counts at every step
        best = min(best, spent + pair)
        for at in range(last, len(others)):
            p, f = others[at]
            heappush(line, (wasted + wastes[at], covered + f, spent + p, at))
    return best, False


def _cheapest_pair(p: int, f: int, q: int, g: int, left: int, known: int | None = None) -> int:
    """The least price of two types that cover what is left, or one known before; p / f <= q / g.

    At a price v, with y blocks of the second type, the number x of the first lies between
    (left - g·y) / f and (v - q·y) / p. As long as the former is the smaller one, the integers from
    one to the other are floor((v - q·y) / p) + floor((g·y - left) / f) + 1 in number, which is not
    negative; so these terms add up to the number of options of at most that price, and the least
    price that has one is found by halving.
    """

    def options(v: int) -> int:
        most = left // g  # more of the second type are one more and none of the first: tried below
        if q * f > g * p:
            most = min(most, (v * f - left * p) // (q * f - g * p))
        n = min(most, v // q) + 1
        return _floor_sum(n, p, -q, v) + _floor_sum(n, f, g, -left) + n

    low, high = -(-left * p // f), min(p * -(-left // f), q * -(-left // g))
    if known is not None and known <= high:
        if known <= low or options(known - 1) <= 0:
            return known
        high = known - 1
    while low < high:
        middle = (low + high) // 2
        if options(middle) > 0:
            high = middle
        else:
            low = middle + 1
    return high


def _floor_sum(n: int, m: int, a: int, b: int) -> int:
    """The sum of floor((a·i + b) / m) over i = 0, ..., n - 1; as Euclid's algorithm goes."""
    total = 0
    while True:
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        n, b = divmod(a * n + b, m)
        if n == 0:
            return total
        m, a = a, m


@lru_cache(maxsize=1)
def _least_waste(blocks: tuple[Block, ...]) -> list[int]:
    """F times what covering r + n·F costs at least, without P·(r + n·F), for every r < F.

    P and F are the price and the cover of the first block, and n is so large that the others cover
    less. A block of price p that covers f then wastes p·F - P·f, and a unit covered in vain P; of
    the first block there are as many as are left. The table grows type by type: going round the
    remainders in steps of f, from one of least waste on, every one is reached by as many blocks as
    are worth while. Jobs of equal supply share it, whatever their demands.
    """
    (P, F), *others = blocks
    waste = [0, *range(P * (F - 1), 0, -P)]
    for extra, f in sorted((p * F - P * f, f) for p, f in others):
        if extra >= max(waste):
            break
        rounds = gcd(f, F)
        for start in range(rounds):
            mine = waste[start::rounds]
            least = min(mine)
            r = start + rounds * mine.index(least)
            for _ in range(1, len(mine)):
                r = (r + f) % F
                least = min(least + extra, waste[r])
                waste[r] = least
    return waste


def _listed(blocks: Sequence[Block], target: int, best: int) -> int:
    """The lowest price, or ``best`` if none is lower; or a lower bound, if lists grow too long.

    An entry is (spent, left to be covered). Lists are sorted by what is spent; what is left falls,
    since an entry that spends more and leaves no less is beaten.
    """
    if len(blocks) < 2:
        return best
    (P, F), (p, f) = blocks[:2]
    lowest = _cheapest_from(blocks)
    # All of them the first are no cheaper than ``best``: there is room for one of the others.
    most = min(-(-target // F), (best - 1 - lowest[1]) // P + 1)
    # So many of the first are needed, or else the others, at their best, cost ``best`` or more.
    least, dearer = 0, p * F - P * f
    if dearer > 0:
        least = max(0, -(-(target * p - (best - 1) * f) // dearer))
    if most - least > _LONGEST:
        return min(best, -(-target * P // F))
    entries = [(number * P, target - number * F) for number in range(least, most)]
    total = len(entries)
    for at in range(1, len(blocks)):
        p, f = blocks[at]
        last = at + 1 == len(blocks)
        grown: list[tuple[int, int]] = []
        again, old, fewest = 0, 0, target + 1
        while True:
            # The next by what is spent: an entry as it was, or one with a block more.
            if again < len(grown):
                spent, left = grown[again][0] + p, grown[again][1] - f
                if old < len(entries) and entries[old] < (spent, left):
                    spent, left = entries[old]
                    old += 1
                else:
                    again += 1
            elif old < len(entries):
                spent, left = entries[old]
                old += 1
            else:
                break
            if spent >= best:
                break
            if left >= fewest:
                continue
            fewest = left
            if left <= 0:
                best = spent
                break
            if last:
                best = min(best, spent + p * -(-left // f))
            elif spent + lowest[at] < best and spent - (-left * p // f) < best:
                grown.append((spent, left))
                total += 1
                if total > _LONGEST:
                    return min(best, *(spent - (-left * p // f) for spent, left in entries))
        if last:
            break
        p, f = blocks[at + 1]
        entries = [
            (spent, left)
            for spent, left in grown
            if spent + lowest[at + 1] < best and spent - (-left * p // f) < best
        ]
    return best


def _most_by_others(blocks: Sequence[Block]) -> int:
    """What the blocks but the first, of price P and cover F, cover at most in some cheapest option.

    Among any F of them (F over the divisor common to all) the sum of some is a multiple of F, which
    the first covers for no more: of n + 1 partial sums, two have the same remainder modulo n. And F
    times the price of an option is P·(what it covers) plus p·F - P·f for each block of price p that
    covers f. The first alone costs less than P·(demand + F) / F; so the others, together, add less
    than P·F to this.
    """
    (P, F), *others = blocks
    if not others:
        return 0
    number = F // gcd(F, *(f for _, f in others)) - 1
    most = 0
    for p, f in others:
        waste = p * F - P * f
        most += f * (min(number, (P * F - 1) // waste) if waste > 0 else number)
    return min(most, number * max(f for _, f in others))
