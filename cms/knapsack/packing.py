"""The packing knapsack: the most valuable content of one machine of a size-bounded set.

It decides whether prices keep the machines of such a set within their cost (theory 6.8).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .pricing import common_denominator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

#: The search stops here and returns a proven upper bound instead of the maximum.
NODE_LIMIT = 50_000
#: Cells of a table over all capacities (and numbers of blocks), beyond which the search is used.
_MOST_CELLS = 2**22


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
    useful = [i for i in range(k) if prices[i] > 0 and sizes[i] <= capacity]
    # Best value per size first, by exact division.
    useful.sort(key=lambda i: (-prices[i] / sizes[i], sizes[i]))
    if (
        useful
        and max_blocks is not None
        and max_blocks >= capacity // min(sizes[i] for i in useful)
    ):
        max_blocks = None  # it never binds
    if not useful:
        return Fullest(Fraction(0), (0,) * k, True)
    worth, denominator = common_denominator([prices[i] for i in useful])
    room, *weights = common_denominator([capacity, *(sizes[i] for i in useful)])[0]
    by_table = _Table(worth, weights, room, max_blocks).fullest()
    value, counts, exact = by_table or _searched(worth, weights, room, max_blocks)
    content = [0] * k
    for i, number in zip(useful, counts, strict=True):
        content[i] = number
    return Fullest(Fraction(value, denominator), tuple(content), exact)


class _Table:
    """Dynamic programming over capacities, and over numbers of blocks where these are limited."""

    def __init__(
        self, worth: Sequence[int], weights: Sequence[int], room: int, slots: int | None
    ) -> None:
        self._worth, self._weights, self._slots = worth, weights, slots
        # Sizes count in their common divisor.
        divisor = int(np.gcd.reduce(np.array(weights, dtype=object)))
        self._weights = [weight // divisor for weight in weights]
        self._room = room // divisor

    def fullest(self) -> tuple[int, list[int], bool] | None:
        """Return the value and the counts; None if the table would be too large."""
        layers = 1 if self._slots is None else self._slots + 1
        if self._room * layers * sum(1 for _ in self._steps()) > _MOST_CELLS:
            return None
        most = max(self._room * p // w for p, w in zip(self._worth, self._weights, strict=True))
        kind: Any = np.int64 if most < 2**62 else object
        best: NDArray[Any] = np.zeros((layers, self._room + 1), dtype=kind)
        taken = []
        for at, number in self._steps():
            weight, slots = number * self._weights[at], self._takes(number)
            with_it = best[: layers - slots, : self._room + 1 - weight] + number * self._worth[at]
            before = best[slots:, weight:]
            better = with_it > before
            best[slots:, weight:] = np.where(better, with_it, before)
            taken.append(better)
        layer, left = layers - 1, self._room
        counts = [0] * len(self._worth)
        for (at, number), better in zip(reversed([*self._steps()]), reversed(taken), strict=True):
            weight, slots = number * self._weights[at], self._takes(number)
            if left >= weight and layer >= slots and better[layer - slots, left - weight]:
                counts[at] += number
                layer, left = layer - slots, left - weight
        return int(best[-1, -1]), counts, True

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Yield (type, number): powers of two, which add up to every count that fits."""
        for at, weight in enumerate(self._weights):
            most = self._room // weight
            if self._slots is not None:
                most = min(most, self._slots)
            for bit in range(most.bit_length()):
                yield at, 1 << bit

    def _takes(self, number: int) -> int:
        return 0 if self._slots is None else number


def _searched(
    worth: Sequence[int], weights: Sequence[int], room: int, slots: int | None
) -> tuple[int, list[int], bool]:
    """Branch and bound; the types come by falling worth per weight."""
    n = len(worth)
    # The dearest block from each position on.
    dearest = [max(worth[at:]) for at in range(n)]
    best, ceiling, content = 0, 0, [0] * n
    counts = [0] * n
    nodes = 0

    def at_most(depth: int, room: int, slots: int | None) -> int:
        """What is left could be worth at most: filled at the best ratio, or the dearest blocks."""
        if depth >= n:
            return 0
        most = room * worth[depth] // weights[depth]
        return most if slots is None else min(most, slots * dearest[depth])

    def descend(depth: int, value: int, room: int, slots: int | None) -> None:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal best, nodes, ceiling
        if value > best:
            best = value
            content[:] = [*counts[:depth], *[0] * (n - depth)]
        for here in range(depth, n):
            most = room // weights[here]
            if slots is not None:
                most = min(most, slots)
            for number in range(most, -1, -1):
                nodes += 1
                if nodes > NODE_LIMIT:
                    ceiling = max(ceiling, value + at_most(here, room, slots))
                    counts[here] = 0
                    return
                after = room - number * weights[here]
                free = None if slots is None else slots - number
                reached = value + number * worth[here]
                if reached + at_most(here + 1, after, None) <= best:
                    counts[here] = 0
                    return  # fewer of the best ratio: this bound only falls
                counts[here] = number
                if number and reached + at_most(here + 1, after, free) > best:
                    descend(here + 1, reached, after, free)
            counts[here] = 0
            if value + at_most(here + 1, room, slots) <= best:
                return

    descend(0, 0, room, slots)
    return max(best, ceiling), content, ceiling <= best
