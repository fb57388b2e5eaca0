"""The knapsack on the machines' side of a certificate: the dearest blocks within a capacity.

It works as ``knapsacks`` does, type by type with lists; and where these would outgrow any memory,
the answer is an upper bound, so that no prices pass by it that are too high.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key
from math import gcd
from operator import itemgetter

from .knapsacks import Block, by_price, integers
from .reading import ZERO

# Entries of all lists of one machine, some seconds' work. That many of them could all be worth more
# than enough: so the prices are refused then, and this happens once at most.
_LONGEST = 2**20


def dearest_filling(
    prices: Sequence[Fraction],
    sizes: Sequence[Fraction],
    capacity: Fraction,
    max_blocks: int | None = None,
    enough: Fraction = ZERO,
) -> Fraction:
    """The price of the dearest blocks that fit on one machine of a size-bounded set.

    Parameters
    ----------
    prices : sequence of Fraction
        What a block of each type is worth; may be negative.
    sizes : sequence of Fraction
        Its size, > 0.
    capacity : Fraction
        The largest total size.
    max_blocks : int, optional
        The largest number of blocks.
    enough : Fraction, optional
        What a machine may be worth: whether more is possible is the question.

    Returns
    -------
    Fraction
        max { prices·z : sizes·z <= capacity, sum(z) <= max_blocks, z >= 0 integer }; if that is at
        most ``enough``, some number from it to ``enough``. It is more, and never less, only if that
        took lists of more than a million entries.

    Notes
    -----
    An entry is (total size, number of blocks, worth), and a list is sorted. An entry is beaten if
    one before it, hence no larger, has no more blocks and is worth as much. Without a limit on the
    number of blocks, all count as 0.

    Examples
    --------
    >>> dearest_filling([Fraction(3), Fraction(2)], [Fraction(3), Fraction(2)], Fraction(7))
    Fraction(7, 1)
    """
    useful = [(p, s) for p, s in zip(prices, sizes, strict=True) if p > 0 and s <= capacity]
    if not useful:
        return ZERO
    coin, worths = integers([p for p, _ in useful])
    unit, volumes = integers([s for _, s in useful])
    room = int(capacity // unit)
    slots = max_blocks
    if slots is not None and slots >= room // min(volumes):
        slots = None  # more blocks do not fit anyway
    one = 0 if slots is None else 1
    blocks = _worth_their_size(list(zip(worths, volumes, strict=True)))
    dearest = [max(p for p, _ in blocks[at:]) for at in range(len(blocks))]

    def at_most(at: int, size: int, number: int) -> int:
        """What blocks from ``at`` on can add."""
        p, s = blocks[at]
        most = (room - size) * p // s
        return most if slots is None else min(most, (slots - number) * dearest[at])

    P, S = blocks[0]
    number = room // S if slots is None else min(slots, room // S)
    best = max(int(enough // coin), P * number)
    least = _fewest_of_the_first(blocks, room, best, lemma=slots is None)
    entries = [(least * S, least * one, least * P)] if least <= number else []
    total = 0
    for at, (p, s) in enumerate(blocks):
        last = at + 1 == len(blocks)
        grown: list[tuple[int, int, int]] = []
        again, old = 0, 0
        beaten: list[tuple[int, int]] = []  # (number, worth) so far, both rising
        while True:
            # The next by size: an entry as it was, or one with a block more.
            if again < len(grown):
                size, number, worth = grown[again]
                size, number, worth = size + s, number + one, worth + p
                if old < len(entries) and entries[old][:2] <= (size, number):
                    size, number, worth = entries[old]
                    old += 1
                else:
                    again += 1
            elif old < len(entries):
                size, number, worth = entries[old]
                old += 1
            else:
                break
            if size > room or (slots is not None and number > slots):
                continue
            place = bisect_right(beaten, number, key=itemgetter(0))
            if place and beaten[place - 1][1] >= worth:
                continue
            end = place
            while end < len(beaten) and beaten[end][1] <= worth:
                end += 1
            beaten[place - (place > 0 and beaten[place - 1][0] == number) : end] = [(number, worth)]
            best = max(best, worth)
            if worth + at_most(at, size, number) <= best:
                continue
            if last:
                fit = (room - size) // s
                best = max(best, worth + p * (fit if slots is None else min(fit, slots - number)))
                continue
            grown.append((size, number, worth))
            total += 1
            if total > _LONGEST:
                return coin * max(w + at_most(at, size, number) for size, number, w in entries)
        if last:
            break
        entries = [entry for entry in grown if entry[2] + at_most(at + 1, *entry[:2]) > best]
    return coin * best


def _worth_their_size(blocks: list[Block]) -> list[Block]:
    """The blocks by worth per size, without those that a smaller one is worth as much as."""
    front: list[Block] = []
    for p, s in sorted(blocks, key=lambda block: (block[1], -block[0])):
        if not front or p > front[-1][0]:
            front.append((p, s))
    return sorted(front, key=cmp_to_key(by_price), reverse=True)


def _fewest_of_the_first(blocks: Sequence[Block], room: int, best: int, *, lemma: bool) -> int:
    """How many of the first block, at least, some filling has that is worth more than ``best``.

    The rest is worth no more than at the next price per size. And without a limit on the number of
    blocks, fewer than S others are needed, S the size of the first (over the divisor common to
    all): any S of them have some whose total size S divides, and the first is worth no less there.
    """
    if len(blocks) == 1:
        return room // blocks[0][1] if lemma else 0
    (P, S), (p, s) = blocks[:2]
    least = 0
    if P * s > p * S:
        least = max(0, (best * s - room * p) // (P * s - p * S) + 1)
    if lemma:
        others = [size for _, size in blocks[1:]]
        number = S // gcd(S, *others) - 1
        least = max(least, (room - number * max(others)) // S)
    return least
