"""The packing knapsack: the most valuable content of one machine of a size-bounded set.

It decides whether prices keep the machines of such a set within their cost (theory 6.8).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem.images import SAFE
from .packing_search import fill
from .pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

#: Nodes of the plain search: most machines are settled by then, the others take a table or more.
_FEW_NODES = 2_000
#: Cells of a table over all capacities (and numbers of blocks), some tenths of a second's work;
#: beyond, the search goes on, compiled if the numbers are short. Its answer then is a proven upper
#: bound instead of the maximum if it has to be ended.
_MOST_CELLS = 2**25
NODE_LIMIT, _COMPILED_NODES = 50_000, 2**24


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
) -> Fullest:
    """Find the most valuable multiset of blocks within a capacity.

    Parameters
    ----------
    prices : sequence of k Fractions
        Of any sign; a block without value is left out.
    sizes : sequence of k Fractions
        > 0.
    capacity : Fraction
    max_blocks : int or None
    most : sequence of k ints, optional
        How many blocks of each type there may be; by default any number.

    Returns
    -------
    Fullest

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> fullest_machine([third, Fraction(1, 4), Fraction(1, 11)], [44, 33, 12], Fraction(132), None)
    Fullest(value=Fraction(1, 1), content=(0, 0, 11), exact=True)
    """
    k = len(prices)
    useful = [
        i for i in range(k) if prices[i] > 0 and sizes[i] <= capacity and (most is None or most[i])
    ]
    if not useful:
        return Fullest(Fraction(0), (0,) * k, True)
    worth, denominator = common_denominator([prices[i] for i in useful])
    room, *weights = common_denominator([capacity, *(sizes[i] for i in useful)])[0]
    # Sizes count in their common divisor.
    divisor = gcd(*weights)
    room, weights = room // divisor, [weight // divisor for weight in weights]
    # Best value per size first; so many bits tell any two ratios apart.
    bits = 2 * max(weights).bit_length()
    order = sorted(
        range(len(useful)), key=lambda at: (-(worth[at] << bits) // weights[at], weights[at])
    )
    fits = [room // weight for weight in weights]
    if most is not None:
        fits = [min(number, most[i]) for number, i in zip(fits, useful, strict=True)]
    slots = max_blocks
    if slots is not None:
        if slots >= sum(fits) or slots >= room // min(weights):
            slots = None  # it never binds
        else:
            fits = [min(number, slots) for number in fits]
    machine = _Machine(
        [worth[at] for at in order],
        [weights[at] for at in order],
        [fits[at] for at in order],
        room,
        slots,
    )
    found = machine.fullest()
    content = [0] * k
    for at, number in zip(order, found.counts, strict=True):
        content[useful[at]] = number
    exact = found.ceiling == found.value
    return Fullest(Fraction(found.ceiling, denominator), tuple(content), exact)


class _Found(NamedTuple):
    value: int
    ceiling: int
    counts: Sequence[int]


class _Machine:
    """One machine in integers, its types by falling worth per weight."""

    def __init__(
        self,
        worth: Sequence[int],
        weights: Sequence[int],
        most: Sequence[int],
        room: int,
        slots: int | None,
    ) -> None:
        self._worth, self._weights, self._most = worth, weights, most
        self._room, self._slots = room, slots

    def fullest(self) -> _Found:
        found = self._searched(_FEW_NODES)
        if found.ceiling > found.value:
            found = self._by_table() or self._searched(NODE_LIMIT)
        return found

    def _searched(self, patience: int) -> _Found:
        types = list(zip(self._worth, self._weights, self._most, strict=True))
        volumes = [0, *accumulate(weight * most for _, weight, most in types)]
        values = [0, *accumulate(worth * most for worth, _, most in types)]
        lightest = list(accumulate(reversed(self._weights), min))[::-1]
        dearest = list(accumulate(reversed(self._worth), max))[::-1]
        largest = max(values[-1] + self._room * max(self._worth), volumes[-1] + self._room)
        arguments: Any = [self._worth, self._weights, self._most, volumes, values, lightest]
        arguments = [*arguments, dearest, self._room, -1 if self._slots is None else self._slots]
        if patience > _FEW_NODES and largest < SAFE:
            # Compiled code takes seconds to make, and longer lists a tenth of a second's work.
            from .packing_compiled import filled

            return _Found(*filled(*arguments, _COMPILED_NODES))
        counts, best = [0] * len(types), [0] * len(types)
        value, ceiling, _ = fill(*arguments, patience, counts, best)
        return _Found(value, ceiling, best)

    def _by_table(self) -> _Found | None:
        """Use dynamic programming over capacities; None if the table would be too large."""
        layers = 1 if self._slots is None else self._slots + 1
        steps = list(self._steps())
        if self._room * layers * len(steps) > _MOST_CELLS:
            return None
        highest = max(self._room * p // w for p, w in zip(self._worth, self._weights, strict=True))
        kind: Any = np.int64 if highest < SAFE else object
        best: NDArray[Any] = np.zeros((layers, self._room + 1), dtype=kind)
        taken = []
        for at, number in steps:
            weight, slots = number * self._weights[at], self._takes(number)
            with_it = best[: layers - slots, : self._room + 1 - weight] + number * self._worth[at]
            before = best[slots:, weight:]
            better = with_it > before
            best[slots:, weight:] = np.where(better, with_it, before)
            taken.append(better)
        layer, left = layers - 1, self._room
        counts = [0] * len(self._worth)
        for (at, number), better in zip(reversed(steps), reversed(taken), strict=True):
            weight, slots = number * self._weights[at], self._takes(number)
            if left >= weight and layer >= slots and better[layer - slots, left - weight]:
                counts[at] += number
                layer, left = layer - slots, left - weight
        return _Found(int(best[-1, -1]), int(best[-1, -1]), counts)

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Yield (type, number): powers of two and a rest, which add up to every count up to most."""
        for at, left in enumerate(self._most):
            bit = 1
            while left:
                number = min(bit, left)
                yield at, number
                left -= number
                bit *= 2

    def _takes(self, number: int) -> int:
        return 0 if self._slots is None else number
