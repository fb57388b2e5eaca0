"""The search behind the packing knapsack, on plain integers; may be compiled as it stands.

Types come by falling worth per size. A machine is filled with the best first, as far as they go,
and then emptied from its end: one block less of the last type, and filled again behind it, unless
what is left of the room could not be worth enough (Horowitz and Sahni 1974, DOI
10.1145/321812.321823, with the bound of Dantzig for types that are used up).
"""

from __future__ import annotations

from typing import Any


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
    on; ``slots`` how many blocks there may be, -1 for any number; ``counts`` scratch memory.

    Returns what that is worth, what no content is worth more than (the same unless ``patience``, in
    nodes, ended the search), and the nodes.
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
