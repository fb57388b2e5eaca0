"""All contents of one machine that are worth enough, by depth-first search and Dantzig's bound."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING

from .packing_search import at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .packing import Packing


def list_contents(
    packing: Packing,
    worth: Sequence[int],
    most: Sequence[int],
    least: int,
    limit: int,
    patience: int,
) -> tuple[list[tuple[int, ...]], bool]:
    """List the contents that are worth no less than ``least``, empty machines left out.

    It ends beyond ``limit`` contents, or ``patience`` types looked at; returns whether it did not.
    """
    fits = list(map(min, packing.most, most))
    order = [i for i, number in enumerate(fits) if number > 0]
    order.sort(key=lambda i: Fraction(-worth[i], packing.weights[i]))
    prices, weights, counts = ([of[i] for i in order] for of in (worth, packing.weights, fits))
    n = len(order)
    volumes, values = ([0, *accumulate(map(mul, of, counts))] for of in (weights, prices))
    dearest = list(accumulate(reversed(prices), max))[::-1]
    found: list[tuple[int, ...]] = []
    content = [0] * len(fits)
    steps = 0

    def descend(at: int, left: int, free: int | None, value: int) -> bool:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal steps
        for here in range(at, n):
            if value + at_most(prices, weights, volumes, values, here, left) < least:
                return True
            if free is not None and value + free * dearest[here] < least:
                return True
            steps += 1
            if steps > patience:
                return False
            most_here = min(counts[here], left // weights[here])
            for number in range(most_here if free is None else min(most_here, free), 0, -1):
                content[order[here]] = number
                more = value + number * prices[here]
                behind = None if free is None else free - number
                if not descend(here + 1, left - number * weights[here], behind, more):
                    return False
                if more >= least:
                    # Deeper types are 0 again: the content is this and what stands above.
                    found.append(tuple(content))
                    if len(found) > limit:
                        return False
            content[order[here]] = 0
        return True

    complete = descend(0, packing.room, packing.slots, 0)
    return found, complete
