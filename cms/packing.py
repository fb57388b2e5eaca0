"""The packing knapsack: the most valuable content of one machine of a size-bounded set.

It decides whether prices keep the machines of such a set within their cost (theory 6.8).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from .knapsack import NODE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    # Best value per size first, by exact cross-multiplication through Fractions.
    useful.sort(key=lambda i: (-prices[i] / sizes[i], sizes[i]))
    limit = max_blocks if max_blocks is not None else None
    best, content, bound = Fraction(0), [0] * k, Fraction(0)
    counts = [0] * len(useful)
    nodes = 0
    ceiling = Fraction(0)

    def optimistic(depth: int, room: Fraction, slots: int | None) -> Fraction:
        """What the rest could be worth at most, filled at the next ratio."""
        if depth >= len(useful):
            return Fraction(0)
        i = useful[depth]
        worth = room * prices[i] / sizes[i]
        if slots is not None:
            worth = min(worth, slots * max(prices[u] for u in useful[depth:]))
        return worth

    def descend(depth: int, value: Fraction, room: Fraction, slots: int | None) -> None:
        nonlocal best, nodes, ceiling
        nodes += 1
        if value > best:
            best = value
            for position, i in enumerate(useful):
                content[i] = counts[position] if position < depth else 0
        if depth >= len(useful):
            return
        if nodes > NODE_LIMIT:
            ceiling = max(ceiling, value + optimistic(depth, room, slots))
            return
        i = useful[depth]
        most = room // sizes[i]
        if slots is not None:
            most = min(most, slots)
        for number in range(int(most), -1, -1):
            after = room - number * sizes[i]
            free = None if slots is None else slots - number
            reached = value + number * prices[i]
            if reached + optimistic(depth + 1, after, free) > best:
                counts[depth] = number
                descend(depth + 1, reached, after, free)
            elif slots is None:
                break  # without a limit on blocks the bound only falls with the number
        counts[depth] = 0

    descend(0, Fraction(0), capacity, limit)
    bound = max(best, ceiling)
    return Fullest(bound, tuple(content), ceiling <= best)
