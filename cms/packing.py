"""The packing knapsack: the most valuable content of one machine of a size-bounded set.

It decides whether prices keep the machines of such a set within their cost (theory 6.8).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


#: The search stops here and returns a proven upper bound instead of the maximum.
NODE_LIMIT = 50_000


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
    # The dearest block from each position on.
    dearest = [max(prices[u] for u in useful[at:]) for at in range(len(useful))]
    best, ceiling, content = Fraction(0), Fraction(0), [0] * k
    counts = [0] * len(useful)
    nodes = 0

    def by_size(depth: int, room: Fraction) -> Fraction:
        """What the room could be worth at most, filled at the best ratio left."""
        if depth >= len(useful):
            return Fraction(0)
        return room * prices[useful[depth]] / sizes[useful[depth]]

    def by_number(depth: int, slots: int | None, other: Fraction) -> Fraction:
        """The same through the number of blocks, if that is smaller."""
        if slots is None or depth >= len(useful):
            return other
        return min(other, slots * dearest[depth])

    def descend(depth: int, value: Fraction, room: Fraction, slots: int | None) -> None:
        nonlocal best, nodes, ceiling
        if value > best:
            best = value
            for position, i in enumerate(useful):
                content[i] = counts[position] if position < depth else 0
        if depth >= len(useful):
            return
        i = useful[depth]
        most = int(room // sizes[i])
        if slots is not None:
            most = min(most, slots)
        for number in range(most, -1, -1):
            nodes += 1
            if nodes > NODE_LIMIT:
                ceiling = max(ceiling, value + by_number(depth, slots, by_size(depth, room)))
                break
            after = room - number * sizes[i]
            free = None if slots is None else slots - number
            reached = value + number * prices[i]
            rest = by_size(depth + 1, after)
            if reached + rest <= best:
                break  # fewer of the best ratio: this bound only falls
            if reached + by_number(depth + 1, free, rest) > best:
                counts[depth] = number
                descend(depth + 1, reached, after, free)
        counts[depth] = 0

    descend(0, Fraction(0), capacity, max_blocks)
    return Fullest(max(best, ceiling), tuple(content), ceiling <= best)
