"""The packing knapsack where contents with many blocks of some types are worth something extra.

Such an extra is paid once, however many more blocks there are. So contents fall into boxes, of so
many blocks of a type up to so many, on each of which the same extras are paid: the fewest blocks of
a box are there from the first, and what is left to choose is a packing knapsack.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from operator import add, mul
from typing import TYPE_CHECKING, NamedTuple

from .packing import Found, Packing, at_most
from .pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Extra(NamedTuple):
    """What a content with at least so many blocks of these types is worth more; of any sign."""

    least: Mapping[int, int]
    amount: int


class Fullest(NamedTuple):
    """The most valuable content of one machine; ``value`` is an upper bound if not ``exact``."""

    value: Fraction
    content: tuple[int, ...]
    exact: bool


def fullest_machine(
    prices: Sequence[Fraction],
    sizes: Sequence[Fraction],
    capacity: Fraction,
    max_blocks: int | None,
    most: Sequence[int] | None = None,
    extras: Sequence[tuple[Mapping[int, int], Fraction]] = (),
) -> Fullest:
    """Find the most valuable multiset of blocks within a capacity; prices are of any sign.

    Examples
    --------
    >>> two = [Fraction(1), Fraction(1)]
    >>> fullest_machine(two, two, Fraction(3), None, None, [({0: 1, 1: 2}, Fraction(2))])
    Fullest(value=Fraction(5, 1), content=(1, 2), exact=True)
    """
    numbers, denominator = common_denominator([*prices, *(amount for _, amount in extras)])
    worth, more = numbers[: len(prices)], numbers[len(prices) :]
    packing = Packing(sizes, capacity, max_blocks, most)
    paid = [Extra(least, amount) for (least, _), amount in zip(extras, more, strict=True)]
    found = [*fullest_in_boxes(packing, worth, paid)]
    best, ceiling = max(found), max(each.ceiling for each in found)
    return Fullest(Fraction(ceiling, denominator), tuple(best.content), ceiling == best.value)


def fullest_in_boxes(
    packing: Packing, worth: Sequence[int], extras: Sequence[Extra]
) -> Iterator[Found]:
    """Yield the most valuable content of each box that may hold the best one."""
    best: int | None = None
    # The extras from each one on are worth at most so much.
    gains = [0, *accumulate(max(0, extra.amount) for extra in reversed(extras))][::-1]
    # The types by falling worth per weight, as many of each as there may be: a relaxation.
    order = packing.best_first(worth, (i for i, price in enumerate(worth) if price > 0))
    prices, sizes = [worth[i] for i in order], [packing.weights[i] for i in order]
    counts = [packing.most[i] for i in order]
    values, volumes = ([0, *accumulate(map(mul, of, counts))] for of in (prices, sizes))

    def split(low: list[int], high: list[int], at: int, paid: int) -> Iterator[Found]:
        """Split a box until each of the extras from one on is paid on all of it or on none."""
        nonlocal best
        slots = None if packing.slots is None else packing.slots - sum(low)
        room = packing.room - sum(map(mul, low, packing.weights))
        if room < 0 or (slots is not None and slots < 0):
            return
        held = sum(map(mul, low, worth)) + paid
        more = at_most(prices, sizes, volumes, values, 0, room)
        if best is not None and held + more + gains[at] <= best:
            return
        for number in range(at, len(extras)):
            least, amount = extras[number]
            if any(high[i] < count for i, count in least.items()):
                continue
            i = next((i for i, count in least.items() if low[i] < count), None)
            if i is None:
                held += amount
                paid += amount
                continue
            above, below = low.copy(), high.copy()
            above[i], below[i] = least[i], least[i] - 1
            sides = [(above, high), (low, below)]
            for side in sides if amount > 0 else sides[::-1]:
                yield from split(*side, number, paid)
            return
        left = [min(n - m, room // w) for n, m, w in zip(high, low, packing.weights, strict=True)]
        found = packing.within(room, slots).fullest(worth, left)
        best = held + found.value if best is None else max(best, held + found.value)
        yield Found(held + found.value, held + found.ceiling, list(map(add, low, found.content)))

    yield from split([0] * len(worth), list(packing.most), 0, 0)
