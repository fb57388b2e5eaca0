"""The packing knapsack: the most valuable content of one machine of a size-bounded set.

It decides whether prices keep the machines of such a set within their cost (theory 6.8).
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import gcd
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.images import SAFE
from . import packing_search
from .packing_search import fill
from .pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Nodes after which a search is ended, if it can be compiled, or not: some tenths of a second. Its
#: answer is then a proven upper bound instead of the maximum.
_MANY_NODES, NODE_LIMIT = 2**21, 50_000
#: Cells of the largest table over capacities.
_MOST_CELLS = 2**25
#: Nodes of one search in plain code, and steps in all of them, a node taking about as many as there
#: are types and some, before compiled code takes over; what is found does not depend on that.
_FEW_NODES, _PLAIN_STEPS, _STEPS_A_NODE = 2**15, 2**18, 8
_steps_so_far = 0


class Found(NamedTuple):
    """A content of one machine, what it is worth, and what none is worth more than."""

    value: int
    ceiling: int
    content: Sequence[int]


class Packing:
    """Machines of a size-bounded set in integers, to be filled again and again.

    ``room`` and ``weights`` are the capacity and sizes in their common divisor, ``most`` how many
    blocks of each type fit, or may be there, ``slots`` how many blocks there may be in all.
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

    def within(self, room: int, slots: int | None) -> Packing:
        """Return machines of these blocks with less room; callers say how many blocks fit."""
        smaller = copy(self)
        smaller.room, smaller.slots = room, slots
        return smaller

    def fullest(
        self,
        worth: Sequence[int],
        most: Sequence[int] | None = None,
        patience: int | None = None,
    ) -> Found:
        """Find the most valuable content; blocks of no positive worth are left out.

        ``most`` says how many blocks of each type there may be now; a ``patience`` of so many nodes
        asks for some good content.
        """
        fits = self.most if most is None else list(map(min, self.most, most))
        order = [i for i, price in enumerate(worth) if price > 0 and fits[i] > 0]
        content = [0] * len(worth)
        if not order:
            return Found(0, 0, content)
        # Best value per size first.
        order.sort(key=lambda i: (-(worth[i] << self._bits) // self.weights[i], self.weights[i]))
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
        value, ceiling, found = _search(*machine, _FEW_NODES if patience is None else patience)
        if patience is None and value < ceiling:
            value, ceiling, found = _by_table(*machine) or _search(*machine, None)
        for i, number in zip(order, found, strict=True):
            content[i] = number
        return Found(coin * value, coin * ceiling, content)


def _search(
    worth: list[int],
    weights: list[int],
    most: list[int],
    room: int,
    slots: int,
    patience: int | None,
) -> tuple[int, int, list[int]]:
    """Return the best content found, its value and a bound; in machine code where that pays."""
    global _steps_so_far
    n = len(worth)
    volumes = [0, *accumulate(map(mul, weights, most))]
    values = [0, *accumulate(map(mul, worth, most))]
    lightest = list(accumulate(reversed(weights), min))[::-1]
    dearest = list(accumulate(reversed(worth), max))[::-1]
    numbers: Any = [worth, weights, most, volumes, values, lightest, dearest]
    # No number in a search exceeds this one.
    short = max(values[-1], volumes[-1], room * dearest[0]) + room < SAFE // 4
    if patience is None:
        patience = _MANY_NODES if short else NODE_LIMIT
    plain, each = patience, _STEPS_A_NODE + n
    if short:
        plain = min(patience, _FEW_NODES, (_PLAIN_STEPS - _steps_so_far) // each)
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


def _by_table(
    worth: list[int], weights: list[int], most: list[int], room: int, slots: int
) -> tuple[int, int, list[int]] | None:
    """Find the best content by dynamic programming; None if the table would be too large."""
    layers = max(1, slots + 1)
    # Powers of two and a rest make up every count up to the most.
    steps = []
    for at, left in enumerate(most):
        bit = 1
        while left:
            steps.append((at, number := min(bit, left)))
            left, bit = left - number, 2 * bit
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


@cache
def _kernel() -> Callable[..., tuple[int, int, int]]:
    """Return :func:`.packing_search.fill` in machine code."""
    from .machine_code import compile_functions

    return compile_functions(vars(packing_search), ("at_most", "fill"), ["fill"])[0]
