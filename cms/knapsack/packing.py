"""The packing knapsack: the most valuable content of one machine of a bounded set (theory 6.8).

A machine is filled with the types of most worth per size first, and then emptied from its end: one
block less of the last type, and filled again behind it, unless what is left of the room could not
be worth enough (Horowitz and Sahni 1974, DOI 10.1145/321812.321823, with the bound of Dantzig).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate
from math import gcd
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from ..problem.rows import SAFE
from .pricing import common_denominator

# Nodes after which a search is ended, if it can be compiled, or not: some tenths of a second. Its
# answer is then a proven upper bound instead of the maximum.
_MANY_NODES, _PLAIN_NODES = 2**22, 50_000
# Nodes after which a table over capacities is tried, and its most cells.
_FEW_NODES, _MOST_CELLS = 2**15, 2**26
# Steps of all searches in plain code, a node taking about as many as there are types and some,
# before compiled code takes over; what is found does not depend on that.
_PLAIN_STEPS, _STEPS_A_NODE = 2**18, 8
_steps_so_far = 0

# Worths, weights and most blocks of the types; the room; the slots, or -1.
Machine = tuple[list[int], list[int], list[int], int, int]


class Found(NamedTuple):
    """A content of one machine, what it is worth, and what none is worth more than."""

    value: int
    ceiling: int
    content: Sequence[int]


class Packing:
    """Machines of a size-bounded set in integers, to be filled again and again.

    ``room`` and ``weights`` are the capacity and sizes in their common divisor, ``most`` how many
    blocks of each type may be there, ``slots`` how many in all.

    Examples
    --------
    >>> Packing([2, 3], Fraction(7), None, [1, 5]).fullest([10, 16])
    Found(value=32, ceiling=32, content=[0, 2])
    """

    def __init__(
        self,
        sizes: Sequence[Fraction],
        capacity: Fraction,
        max_blocks: int | None,
        most: Sequence[int] | None = None,
    ) -> None:
        room, *weights = common_denominator([capacity, *sizes])[0]
        divisor = gcd(*weights) or 1
        self.room, self.weights = room // divisor, [weight // divisor for weight in weights]
        fits = [self.room // weight for weight in self.weights]
        self.most = fits if most is None else list(map(min, fits, most))
        self.slots = max_blocks
        # So many bits tell any two ratios of worth and weight apart.
        self._bits = 2 * max(self.weights, default=0).bit_length()

    def best_first(self, worth: Sequence[int], types: Iterable[int]) -> list[int]:
        """Sort types by falling worth per size."""
        weights, bits = self.weights, self._bits
        return sorted(types, key=lambda i: (-(worth[i] << bits) // weights[i], weights[i]))

    def fullest(
        self, worth: Sequence[int], most: Sequence[int] | None = None, patience: int | None = None
    ) -> Found:
        """Find the most valuable content; blocks of no positive worth are left out.

        ``most`` says how many blocks of each type there may be now; a ``patience`` in nodes
        asks for some good content.
        """
        fits = self.most if most is None else list(map(min, self.most, most))
        content = [0] * len(worth)
        order = self.best_first(worth, (i for i, p in enumerate(worth) if p > 0 and fits[i] > 0))
        if not order:
            return Found(0, 0, content)
        # In common divisors of their own: an upper bound at prices in the same proportions, or with
        # types without value beside them, is the same part of what a machine costs.
        coin, unit = gcd(*(worth[i] for i in order)), gcd(*(self.weights[i] for i in order))
        prices = [worth[i] // coin for i in order]
        weights = [self.weights[i] // unit for i in order]
        room, slots = self.room // unit, -1 if self.slots is None else self.slots
        if slots >= room // min(weights):
            slots = -1  # it never binds
        counts = [fits[i] if slots < 0 else min(fits[i], slots) for i in order]
        machine = prices, weights, counts, room, slots
        value, ceiling, found = _search(machine, _FEW_NODES if patience is None else patience)
        if patience is None and value < ceiling:
            value, ceiling, found = _by_table(machine) or _search(machine, None)
        for i, number in zip(order, found, strict=True):
            content[i] = number
        return Found(coin * value, coin * ceiling, content)

    def list_contents(
        self, worth: Sequence[int], most: Sequence[int], least: int, limit: int, patience: int
    ) -> tuple[list[tuple[int, ...]], bool]:
        """List contents worth no less than ``least``, but the empty one; and whether it is all.

        It ends beyond ``limit`` contents, or ``patience`` types looked at. No worth is negative.
        """
        fits = list(map(min, self.most, most))
        order = self.best_first(worth, (i for i, number in enumerate(fits) if number > 0))
        # Of small machines the bound is exact, so that a list never ends for the bound's weakness.
        small = len(order) * (self.room + 1) <= _MOST_CELLS >> 4
        if small := small and sum(map(mul, worth, fits)) < SAFE:
            order.sort(key=lambda i: -worth[i])
        prices, weights, counts = ([of[i] for i in order] for of in (worth, self.weights, fits))
        table = _most_worth(prices, weights, counts, self.room) if small else None
        volumes, values = ([0, *accumulate(map(mul, of, counts))] for of in (weights, prices))
        dearest = list(accumulate(reversed(prices), max))[::-1]
        bound = partial(at_most, prices, weights, volumes, values)
        found: list[tuple[int, ...]] = []
        content = [0] * len(fits)
        steps = 0

        def descend(at: int, left: int, free: int, value: int) -> bool:
            nonlocal steps
            for here in range(at, len(order)):  # types left out: no recursion for hundreds of them
                more = table[here][left] if table else bound(here, left)
                if value + min(more, free * dearest[here]) < least:
                    return True
                steps += 1
                if steps > patience:
                    return False
                for number in range(min(counts[here], left // weights[here], free), 0, -1):
                    content[order[here]] = number
                    more, behind = value + number * prices[here], left - number * weights[here]
                    if not descend(here + 1, behind, free - number, more):
                        return False
                    if more >= least:
                        # Deeper types are 0 again: the content is this and what stands above.
                        found.append(tuple(content))
                        if len(found) > limit:
                            return False
                content[order[here]] = 0
            return True

        return found, descend(0, self.room, sum(fits) if self.slots is None else self.slots, 0)


def _search(machine: Machine, patience: int | None) -> tuple[int, int, list[int]]:
    """Return the best value found, a bound, and the content; in machine code where that pays."""
    global _steps_so_far
    worth, weights, most, room, slots = machine
    n = len(worth)
    volumes = [0, *accumulate(map(mul, weights, most))]
    values = [0, *accumulate(map(mul, worth, most))]
    lightest = list(accumulate(reversed(weights), min))[::-1]
    dearest = list(accumulate(reversed(worth), max))[::-1]
    numbers: Any = [worth, weights, most, volumes, values, lightest, dearest]
    # No number in a search exceeds this one.
    short = max(values[-1], volumes[-1], room * dearest[0]) + room < SAFE // 4
    if patience is None:
        patience = _MANY_NODES if short else _PLAIN_NODES
    plain, each = patience, _STEPS_A_NODE + n
    if short:
        plain = min(patience, (_PLAIN_STEPS - _steps_so_far) // each)
    if plain >= min(patience, 1):
        best = [0] * n
        limits: Any = room, slots, plain, [0] * n, best
        value, ceiling, nodes = fill(*numbers, *limits)
        _steps_so_far += nodes * each
        if plain == patience or ceiling == value:
            return value, ceiling, best
    arrays = [np.array(column, dtype=np.int64) for column in numbers]
    counts, found = np.zeros((2, n), dtype=np.int64)
    value, ceiling, _ = _kernel()(*arrays, room, slots, patience, counts, found)
    return int(value), int(ceiling), found.tolist()


def _by_table(machine: Machine) -> tuple[int, int, list[int]] | None:
    """Find the best content by dynamic programming; None if the table would be too large."""
    worth, weights, most, room, slots = machine
    layers = max(1, slots + 1)
    steps = [(at, number) for at, count in enumerate(most) for number in _bundles(count)]
    if room * layers * len(steps) > _MOST_CELLS or sum(map(mul, worth, most)) >= SAFE:
        return None
    best = np.zeros((layers, room + 1), dtype=np.int64)
    taken = []
    for at, number in steps:
        weight, taking = number * weights[at], number * (slots >= 0)
        with_it = best[: layers - taking, : room + 1 - weight] + number * worth[at]
        taken.append(with_it > best[taking:, weight:])
        np.copyto(best[taking:, weight:], with_it, where=taken[-1])
    layer, left, counts = layers - 1, room, [0] * len(worth)
    for (at, number), better in zip(reversed(steps), reversed(taken), strict=True):
        weight, taking = number * weights[at], number * (slots >= 0)
        if left >= weight and layer >= taking and better[layer - taking, left - weight]:
            counts[at] += number
            layer, left = layer - taking, left - weight
    return int(best[-1, -1]), int(best[-1, -1]), counts


def _most_worth(prices: Any, weights: Any, counts: Any, room: int) -> list[Any]:
    """Return what the types from each one on are worth at most in each room."""
    best, table = np.zeros(room + 1, dtype=np.int64), [np.zeros(room + 1, dtype=np.int64).data]
    for price, weight, count in reversed([*zip(prices, weights, counts, strict=True)]):
        for number in _bundles(count):
            size = number * weight
            best[size:] = np.maximum(best[size:], best[: room + 1 - size] + number * price)
        table.append(best.copy().data)  # a memoryview, whose items are Python's integers
    return table[::-1]


def _bundles(count: int) -> list[int]:
    """Split a count into powers of two and a rest: they make up every number up to it."""
    return [min(1 << bit, count + 1 - (1 << bit)) for bit in range(count.bit_length())]


@cache
def _kernel() -> Callable[..., tuple[int, int, int]]:
    """Return :func:`fill` in machine code."""
    from .machine_code import compile_functions

    return compile_functions(globals(), ("at_most", "fill"), ["fill"])[0]


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
    paid = [(least, amount) for (least, _), amount in zip(extras, more, strict=True)]
    found = [*fullest_in_boxes(packing, worth, paid)]
    best, ceiling = max(found), max(each.ceiling for each in found)
    return Fullest(Fraction(ceiling, denominator), tuple(best.content), ceiling == best.value)


def fullest_in_boxes(
    packing: Packing, worth: Sequence[int], extras: Sequence[tuple[Mapping[int, int], int]]
) -> Iterator[Found]:
    """Yield the most valuable content of each box that may hold the best one.

    An extra, of any sign, is paid once for a minimum of blocks of some types. So contents fall
    into boxes, of a range of numbers for each type, on each of which the same extras are
    paid: the fewest blocks are there from the first, and what is left is a packing knapsack.
    """
    best: int | None = None
    # What the extras from each one on are worth at most.
    gains = [0, *accumulate(max(0, amount) for _, amount in reversed(extras))][::-1]
    # The types by falling worth per weight, as many of each as there may be: a relaxation.
    order = packing.best_first(worth, (i for i, price in enumerate(worth) if price > 0))
    columns = (worth, packing.weights, packing.most)
    prices, sizes, counts = ([of[i] for i in order] for of in columns)
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
        smaller = copy(packing)
        smaller.room, smaller.slots = room, slots
        value, ceiling, more_blocks = smaller.fullest(worth, left)
        best = held + value if best is None else max(best, held + value)
        content = [n + m for n, m in zip(low, more_blocks, strict=True)]
        yield Found(held + value, held + ceiling, content)

    yield from split([0] * len(worth), list(packing.most), 0, 0)


# -- the search, in the common subset of Python and numba ------------------------------------------


def fill(
    worth: Any,
    weight: Any,
    most: Any,
    volumes: Any,
    values: Any,
    lightest: Any,
    dearest: Any,
    room: Any,
    slots: Any,
    patience: int,
    counts: Any,
    best_counts: Any,
) -> tuple[Any, Any, int]:
    """Search for the most valuable content of one machine, which ``best_counts`` receives.

    ``volumes`` and ``values`` (n + 1) are the weights, and the worth, of all blocks of the types
    before each one; ``lightest`` and ``dearest`` the least weight and largest worth from each type
    on; ``slots`` may be -1, any number; ``counts`` is scratch memory. Returns the worth, what none
    is worth more than (the same unless ``patience``, in nodes, ended the search), and the nodes.
    """
    n = len(worth)
    best, value, left, free = room - room, room - room, room, slots
    nodes, at = 0, 0
    while True:
        first, pruned = at, False
        while at < n and left >= lightest[at] and free != 0:
            if at > first and left < weight[at]:
                counts[at] = 0  # no bound is worked out for each of a thousand types
                at += 1
                continue
            if value + at_most(worth, weight, volumes, values, at, left) <= best:
                pruned = True
                break
            if free > 0 and value + free * dearest[at] <= best:
                break
            number = min(most[at], left // weight[at])
            if free >= 0:
                number = min(number, free)
                free -= number
            counts[at] = number
            value += number * worth[at]
            left -= number * weight[at]
            at += 1
        if value > best:
            best = value
            for i in range(n):
                best_counts[i] = counts[i] if i < at else 0
        at -= 1
        if pruned and at + 1 == first and at >= 0:
            # Behind fewer blocks of a type of a better ratio even less can follow.
            value -= counts[at] * worth[at]
            left += counts[at] * weight[at]
            if free >= 0:
                free += counts[at]
            at -= 1
        while at >= 0 and counts[at] == 0:
            at -= 1
        if at < 0:
            return best, best, nodes
        nodes += 1
        if nodes > patience:
            break
        counts[at] -= 1
        value -= worth[at]
        left += weight[at]
        if free >= 0:
            free += 1
        at += 1
    # What is left untried: one block less of each type that was taken, and what may follow.
    ceiling = best
    while at >= 0:
        if counts[at] > 0:
            value -= counts[at] * worth[at]
            left += counts[at] * weight[at]
            fewer = counts[at] - 1
            most_left = at_most(worth, weight, volumes, values, at + 1, left - fewer * weight[at])
            ceiling = max(ceiling, value + fewer * worth[at] + most_left)
        at -= 1
    return best, ceiling, nodes


def at_most(worth: Any, weight: Any, volumes: Any, values: Any, at: int, left: Any) -> Any:
    """Bound what the types from ``at`` on can add: the best in full, then a part of the next."""
    n = len(worth)
    reach = volumes[at] + left
    low, high = at, n
    while low < high:
        middle = (low + high + 1) // 2
        if volumes[middle] <= reach:
            low = middle
        else:
            high = middle - 1
    added = values[low] - values[at]
    if low < n:
        added += (reach - volumes[low]) * worth[low] // weight[low]
    return added
