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

from .packing import Found, Packing
from .packing_search import at_most
from .pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Extra(NamedTuple):
    """What a content with at least so many blocks of these types is worth more; of any sign."""

    least: Mapping[int, int]
    amount: int


def fullest_in_boxes(
    packing: Packing,
    worth: Sequence[int],
    extras: Sequence[Extra],
) -> Iterator[Found]:
    """Yield the most valuable content of each box that may hold the best one."""
    boxes = _Boxes(packing, worth, extras)
    yield from boxes.split([0] * len(worth), list(packing.most), 0, 0)


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
    """Find the most valuable multiset of blocks within a capacity."""
    numbers, denominator = common_denominator([*prices, *(amount for _, amount in extras)])
    worth, more = numbers[: len(prices)], numbers[len(prices) :]
    packing = Packing(sizes, capacity, max_blocks, most)
    paid = [Extra(least, amount) for (least, _), amount in zip(extras, more, strict=True)]
    found = [*fullest_in_boxes(packing, worth, paid)]
    best, ceiling = max(found), max(each.ceiling for each in found)
    return Fullest(Fraction(ceiling, denominator), tuple(best.content), ceiling == best.value)


class _Boxes:
    def __init__(self, packing: Packing, worth: Sequence[int], extras: Sequence[Extra]) -> None:
        self._packing, self._worth, self._extras = packing, worth, extras
        most = packing.most
        self._best: int | None = None
        # The extras from each one on are worth at most so much.
        gains = [max(0, extra.amount) for extra in reversed(extras)]
        self._gains = [0, *accumulate(gains)][::-1]
        # The types by falling worth per weight, as many of each as there may be: a relaxation.
        weights = packing.weights
        order = [i for i, price in enumerate(worth) if price > 0 and most[i] > 0]
        order.sort(key=lambda i: Fraction(-worth[i], weights[i]))
        self._prices, self._sizes = [worth[i] for i in order], [weights[i] for i in order]
        self._values = [0, *accumulate(worth[i] * most[i] for i in order)]
        self._volumes = [0, *accumulate(weights[i] * most[i] for i in order)]

    def split(self, low: list[int], high: list[int], at: int, paid: int) -> Iterator[Found]:
        """Split a box until each of the extras from one on is paid on all of it or on none."""
        packing, slots = self._packing, self._packing.slots
        room = packing.room - sum(map(mul, low, packing.weights))
        if room < 0 or (slots is not None and sum(low) > slots):
            return
        held = sum(map(mul, low, self._worth)) + paid
        more = at_most(self._prices, self._sizes, self._volumes, self._values, 0, room)
        if self._best is not None and held + more + self._gains[at] <= self._best:
            return
        for number in range(at, len(self._extras)):
            least, amount = self._extras[number]
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
                yield from self.split(*side, number, paid)
            return
        left = [min(n - m, room // w) for n, m, w in zip(high, low, packing.weights, strict=True)]
        found = packing.within(room, slots if slots is None else slots - sum(low)).fullest(
            self._worth, left
        )
        content = list(map(add, low, found.content))
        self._best = (
            held + found.value if self._best is None else max(self._best, held + found.value)
        )
        yield Found(held + found.value, held + found.ceiling, content)
