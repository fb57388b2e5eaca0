"""Best fit decreasing: the classical first packing, for many equal blocks at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a machine holds: (type, number) in the order they came.
Content = tuple[tuple[int, int], ...]


def best_fit(
    sizes: Mapping[int, int], capacity: int, slots: int | None, load: Mapping[int, int]
) -> dict[Content, int]:
    """Pack blocks by falling size, each on the fullest machine that has room for it.

    References
    ----------
    Johnson, Demers, Ullman, Garey, Graham 1974, DOI 10.1137/0203025: at most 11/9 of the optimum
    and 4 machines more.

    Examples
    --------
    >>> best_fit({0: 6, 1: 4, 2: 3}, 10, None, {0: 2, 1: 1, 2: 3})
    {((0, 1), (1, 1)): 1, ((0, 1), (2, 1)): 1, ((2, 2),): 1}
    """
    # How many machines there are of each (room, free slots, content); those with room, the fullest
    # first.
    found: dict[tuple[int, int, Content], int] = {}
    by_room: list[tuple[int, int, Content]] = []

    def put(state: tuple[int, int, Content], number: int) -> None:
        if state not in found and state[0] and state[1]:
            insort(by_room, state)
        found[state] = found.get(state, 0) + number

    most = sum(load.values()) if slots is None else slots
    for i in sorted(load, key=lambda i: (-sizes[i], i)):
        size, left = sizes[i], load[i]
        at = bisect_left(by_room, (size, 0, ()))
        waiting = by_room[at:]
        fresh = (capacity, most, ())
        for state in [*waiting, fresh]:
            if not left:
                break
            room, free, content = state
            each = min(room // size, free)
            if not each:
                continue
            there = found[state] if state in found else -(-left // each)
            full = min(there, left // each)
            taken = full
            if full:
                put((room - each * size, free - each, (*content, (i, each))), full)
                left -= full * each
            if left and taken < there:
                put((room - left * size, free - left, (*content, (i, left))), 1)
                taken, left = taken + 1, 0
            if state in found:
                found[state] -= taken
                if not found[state]:
                    del found[state]
                    del by_room[bisect_left(by_room, state)]
    return {content: number for (_, _, content), number in found.items()}
