"""The same actions in a sequence that takes less time.

What removes capacity is put where it begins, what adds where it ends, in a schedule of the waits
that hold; so the new sequence is as safe as the old one. A deletion then waits for the creations
that end first, not for those that the old sequence had first: the old schedule still respects all
waits, and a new one can only be shorter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..model import Deployment
from .durations import Durations, Timed
from .model import Action, Floor
from .order import most_in_use, ordered

__all__ = ["Shortened", "shortened"]

_ROUNDS = 6


class Shortened(NamedTuple):
    """A sequence with its waits."""

    milliseconds: int
    actions: tuple[Action, ...]
    gpus: int  # in use at some moment of it, and no more at any moment of any execution


def shortened(
    start: Deployment,
    actions: Sequence[Action],
    floors: Mapping[str, Floor],
    most_gpus: int,
    durations: Durations,
    max_parallel: int | None = None,
) -> Shortened:
    """Find a sequence that takes less time; if it uses fewer GPUs, it has to stay with those."""
    best = ordered(start, actions, floors, most_gpus)
    timed = Timed.of(start, best, durations, max_parallel)
    begin = timed.begin([action.after for action in best])
    for _ in range(_ROUNDS):
        order = _by_time(best, begin, timed.takes)
        again = ordered(start, [best[at] for at in order], floors, most_gpus)
        then = Timed.of(start, again, durations, max_parallel)
        found = then.begin([action.after for action in again])
        if then.end(found) >= timed.end(begin):
            break
        best, timed, begin = again, then, found
    used = most_in_use(start, best)
    if used < most_gpus:
        return shortened(start, best, floors, used, durations, max_parallel)
    return Shortened(timed.end(begin), best, used)


def _by_time(actions: Sequence[Action], begin: Sequence[int], takes: Sequence[int]) -> list[int]:
    def when(at: int) -> tuple[int, int]:
        return begin[at] + (0 if actions[at].removes else takes[at]), at

    return sorted(range(len(actions)), key=when)
