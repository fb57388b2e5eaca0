"""The knapsack on the machines' side of a certificate: the dearest blocks within a capacity.

Blocks come by worth per size. What fits of the best is a first filling, and no other needs to be
far from it; from there it goes on with lists, as ``knapsacks`` does. Where these would outgrow any
memory, the answer is an upper bound, so that no prices pass by it that are too high.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cmp_to_key
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from .knapsacks import by_price, integers
from .reading import ZERO

# Entries of all lists of one machine, some seconds' work. That many of them could all be worth more
# than enough: so the prices are refused then, and this happens once at most.
_LONGEST = 2**22


class _Type(NamedTuple):
    """Blocks of one worth and one size, and how many there may be."""

    worth: int
    size: int
    most: int


class _Bundle(NamedTuple):
    """Blocks of one type that are taken together, or not at all."""

    worth: int
    size: int
    number: int


def dearest_filling(
    prices: Sequence[Fraction],
    sizes: Sequence[Fraction],
    capacity: Fraction,
    max_blocks: int | None = None,
    enough: Fraction = ZERO,
    most: Sequence[int | None] = (),
) -> Fraction:
    """The price of the dearest blocks that fit on one machine of a size-bounded set.

    That is max { prices·z : sizes·z <= capacity, sum(z) <= max_blocks, 0 <= z <= most integer },
    where prices may be negative and None is no limit; if it is at most ``enough``, some number from
    it to ``enough``. It is more, and never less, only if that took lists of more than four million
    entries.

    An entry is (total size, number of blocks, worth), and a list is sorted. An entry is beaten if
    one before it, hence no larger, has no more blocks and is worth as much. Without a limit on the
    number of blocks, all count as 0.
    """
    caps = most or [None] * len(prices)
    useful = [
        (p, s, n)
        for p, s, n in zip(prices, sizes, caps, strict=True)
        if p > 0 and s <= capacity and n != 0
    ]
    if not useful:
        return ZERO
    coin, worths = integers([p for p, _, _ in useful])
    unit, volumes = integers([s for _, s, _ in useful])
    room = int(capacity // unit)
    types = _worth_their_size(
        list(zip(worths, volumes, (n for *_, n in useful), strict=True)), room
    )
    slots = max_blocks
    if slots is not None and slots >= room // min(volumes):
        slots = None  # more blocks do not fit anyway
    return coin * _dearest(types, room, slots, int(enough // coin))


def _worth_their_size(blocks: list[tuple[int, int, int | None]], room: int) -> list[_Type]:
    """The types by worth per size, without those that a smaller one is worth as much as.

    The smaller one must not run out: there may be as many of it as fit.
    """
    found: list[_Type] = []
    best = 0  # of the types that do not run out
    for p, s, n in sorted(blocks, key=lambda block: (block[1], -block[0])):
        fit = room // s
        if p > best:
            found.append(_Type(p, s, fit if n is None else min(n, fit)))
            if n is None or n >= fit:
                best = p
    ratio = cmp_to_key(by_price)
    return sorted(found, key=lambda kind: ratio((kind.worth, kind.size)), reverse=True)


def _dearest(types: list[_Type], room: int, slots: int | None, best: int) -> int:
    """The worth of the dearest filling, or ``best`` if that is more, or an upper bound."""
    size, worth, free = 0, 0, slots
    for p, s, n in types:
        number = min(n, (room - size) // s)
        if free is not None:
            number = min(number, free)
            free -= number
        size, worth = size + number * s, worth + number * p
    best = max(best, worth)
    ranges = list(_near(types, room, best, lemma=slots is None))
    if any(low > high for low, high in ranges):
        return best
    # What every filling of interest has is there from the first.
    held = [(low, t) for (low, _), t in zip(ranges, types, strict=True)]
    number = sum(low for low, _ in held)
    first = sum(low * t.size for low, t in held), number, sum(low * t.worth for low, t in held)
    if first[0] > room or (slots is not None and number > slots):
        return best
    best = max(best, first[2])
    bundles = [
        _Bundle(number * p, number * s, number)
        for (low, high), (p, s, _) in zip(ranges, types, strict=True)
        for number in _powers(high - low)
    ]
    return _Lists(bundles, room, slots).dearest(first, best)


def _near(types: list[_Type], room: int, best: int, *, lemma: bool) -> Iterator[tuple[int, int]]:
    """How many blocks of each type a dearest filling has, if that is worth more than ``best``.

    Take blocks in this order until the first does not fit, one of worth P and size S. Nobody fills
    the machine better than these blocks g and a part of that one, which are worth U; and each block
    less of a type before it, or more of one after it, costs |p - P/S s| of that: less than
    U - ``best``, taken together.

    And without a limit on the number of blocks, fewer than twice the largest size M differ from g,
    in some dearest filling z: put blocks of z that g lacks, and of g that z lacks, in one line, so
    that the sum of their sizes, these with a minus, stays between -M and M: it can, as the rest of
    either kind alone does not lead further. If it had a value twice, the blocks between could be
    exchanged for one another, as those of g are worth no less a size: z would be nearer to g.
    """
    g, size, worth = [0] * len(types), 0, 0
    P, S = 0, 1  # if all fit
    for at, (p, s, n) in enumerate(types):
        g[at] = min(n, (room - size) // s)
        size, worth = size + g[at] * s, worth + g[at] * p
        if g[at] < n:
            P, S = p, s
            break
    spare = (worth - best - 1) * S + (room - size) * P
    near = 2 * max(t.size for t in types) - 1 if lemma else max(t.most for t in types)
    for number, (p, s, n) in zip(g, types, strict=True):
        low, high = max(0, number - near), min(n, number + near)
        loss = abs(p * S - P * s)
        if loss:
            fewer = spare // loss
            low, high = max(low, number - fewer), min(high, number + fewer)
        yield low, high


def _powers(number: int) -> Iterator[int]:
    """Yield numbers some of which add up to any number from 0 to this one."""
    power = 1
    while number:
        yield min(power, number)
        number -= min(power, number)
        power *= 2


class _Lists:
    """Lists of fillings, from bundle to bundle."""

    def __init__(self, bundles: list[_Bundle], room: int, slots: int | None) -> None:
        self._bundles, self._room, self._slots = bundles, room, slots
        self._sizes = [0, *accumulate(bundle.size for bundle in bundles)]
        self._worths = [0, *accumulate(bundle.worth for bundle in bundles)]
        each = (bundle.worth // bundle.number for bundle in reversed(bundles))
        self._dearest = [0, *accumulate(each, max)][::-1]

    def dearest(self, first: tuple[int, int, int], best: int) -> int:
        """The worth of the dearest filling, or ``best`` if that is more, or an upper bound."""
        entries, total = [first], 0
        for at, (worth, size, number) in enumerate(self._bundles):
            most = self._room - size
            grown = [(s + size, n + number, w + worth) for s, n, w in entries if s <= most]
            entries, best, ceiling = self._kept(sorted(entries + grown), at + 1, best)
            total += len(entries)
            if total > _LONGEST:
                return max(best, ceiling)
        return best

    def _kept(
        self, entries: list[tuple[int, int, int]], at: int, best: int
    ) -> tuple[list[tuple[int, int, int]], int, int]:
        """The entries that are not beaten and that bundles from ``at`` on can lift above the best.

        Also the best, and what none of them can be lifted above.
        """
        sizes, worths, slots = self._sizes, self._worths, self._slots
        kept, ceiling = [], best
        beaten: list[tuple[int, int]] = []  # (number, worth) so far, both rising
        top = -1
        # The bundles from ``at`` to ``full`` fit, with a part of the next.
        full = len(self._bundles)
        behind, given = sizes[at] + self._room, worths[at]
        for entry in entries:
            size, number, worth = entry
            if slots is None:
                if worth <= top:
                    continue
                top = worth
            elif number > slots or _is_beaten(beaten, number, worth):
                continue
            left = behind - size
            while sizes[full] > left:
                full -= 1
            most = worth + worths[full] - given
            if slots is None:
                best = max(best, most)
            else:
                best = max(best, worth)
            if left > sizes[full] and full < len(self._bundles):
                bundle = self._bundles[full]
                most += (left - sizes[full]) * bundle.worth // bundle.size
            if slots is not None:
                most = min(most, worth + (slots - number) * self._dearest[at])
            if most > best:
                kept.append(entry)
                ceiling = max(ceiling, most)
        return kept, best, ceiling


def _is_beaten(beaten: list[tuple[int, int]], number: int, worth: int) -> bool:
    """Whether an entry with no more blocks is worth as much; if not, this one is among them."""
    place = bisect_right(beaten, number, key=itemgetter(0))
    if place and beaten[place - 1][1] >= worth:
        return True
    end = place
    while end < len(beaten) and beaten[end][1] <= worth:
        end += 1
    beaten[place - (place > 0 and beaten[place - 1][0] == number) : end] = [(number, worth)]
    return False
