"""All contents of one machine that are worth enough, by depth-first search.

What a set's last types are worth at most in so much room is looked up where a table of that is
small, so that no way leads nowhere; otherwise it is Dantzig's bound.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.images import SAFE
from .packing_search import at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Cells of a table of what the last types are worth in any room.
_MOST_CELLS = 2**22


def contents_worth(
    worth: Sequence[int],
    weight: Sequence[int],
    most: Sequence[int],
    room: int,
    slots: int | None,
    least: int,
    limit: int,
    patience: int,
) -> tuple[list[list[int]], bool]:
    """List the contents that are worth no less than ``least``, empty machines left out.

    Parameters
    ----------
    worth, weight, most : sequences of n ints
        Of each type: >= 0, > 0, > 0.
    room : int
    slots : int or None
        How many blocks there may be.
    least : int
    limit : int
        Ends beyond so many contents ...
    patience : int
        ... or after so many types have been looked at.

    Returns
    -------
    contents : list of n ints each
        Those with many blocks of the dearest types first.
    complete : bool

    Examples
    --------
    >>> contents_worth([2, 3], [2, 3], [2, 2], 7, None, 6, 10, 100)
    ([[0, 2], [2, 1]], True)
    """
    n = len(worth)
    volume = sum(w * m for w, m in zip(weight, most, strict=True))
    total = sum(p * m for p, m in zip(worth, most, strict=True))
    by_table = n * (room + 1) <= _MOST_CELLS and max(volume, total) < SAFE
    order = list(range(n))
    order.sort(key=lambda i: -worth[i] if by_table else Fraction(-worth[i], weight[i]))
    worth, weight, most = ([of[i] for i in order] for of in (worth, weight, most))
    bound = (_table if by_table else _dantzig)(worth, weight, most, room)
    dearest = list(accumulate(reversed(worth), max))[::-1]
    found: list[list[int]] = []
    counts = [0] * n
    steps = 0

    def descend(at: int, left: int, free: int | None, value: int) -> bool:
        # Types left out are a loop: the depth is the types in a machine, not the types there are.
        nonlocal steps
        for here in range(at, n):
            if value + bound(here, left) < least:
                return True
            if free is not None and value + free * dearest[here] < least:
                return True
            steps += 1
            if steps > patience:
                return False
            fits = min(most[here], left // weight[here])
            for number in range(fits if free is None else min(fits, free), 0, -1):
                counts[here] = number
                more = value + number * worth[here]
                behind = None if free is None else free - number
                if not descend(here + 1, left - number * weight[here], behind, more):
                    return False
                if more >= least:
                    content = [0] * n
                    for i, count in zip(order, counts, strict=True):
                        content[i] = count
                    found.append(content)
                    if len(found) > limit:
                        return False
            counts[here] = 0
        return True

    complete = descend(0, room, slots, 0)
    return found, complete


def _dantzig(
    worth: Sequence[int], weight: Sequence[int], most: Sequence[int], room: int
) -> Callable[[int, int], int]:
    """Return what bounds the worth of the types from one on within so much room."""
    volumes = [0, *accumulate(w * m for w, m in zip(weight, most, strict=True))]
    values = [0, *accumulate(p * m for p, m in zip(worth, most, strict=True))]
    return lambda at, left: int(at_most(worth, weight, volumes, values, at, left))


def _table(
    worth: Sequence[int], weight: Sequence[int], most: Sequence[int], room: int
) -> Callable[[int, int], int]:
    """Return what tells the worth of the types from one on within so much room."""
    table: Any = np.zeros((len(worth) + 1, room + 1), dtype=np.int64)
    for at in range(len(worth) - 1, -1, -1):
        row = table[at]
        row[:] = table[at + 1]
        number, bundle = most[at], 1
        while number:
            bundle = min(bundle, number)
            size, price = bundle * weight[at], bundle * worth[at]
            if size > room:
                break
            row[size:] = np.maximum(row[size:], row[: room + 1 - size] + price)
            number -= bundle
            bundle *= 2
    return lambda at, left: int(table[at, left])
