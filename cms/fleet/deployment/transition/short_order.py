"""The same actions in a sequence that takes less time, with what each waits for.

What removes capacity is put where it begins, what adds where it ends, in a schedule of the waits
that hold; so the new sequence is as safe as the old one. A deletion then waits for the creations
that end first, not for those that the old sequence had first: the old schedule still respects all
waits, and a new one can only be shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import Deployment
from .durations import Durations, Timed
from .goal import TransitionGoal
from .model import Action, Floor
from .order import most_in_use, ordered, with_waits

__all__ = ["ShortOrder", "find_short_order", "order_groups"]

_ROUNDS = 6


class ShortOrder(NamedTuple):
    """A sequence with its waits."""

    milliseconds: int
    actions: tuple[Action, ...]
    gpus: int  # in use at some moment of it, and no more at any moment of any execution


def find_short_order(
    start: Deployment,
    actions: Sequence[Action],
    floors: Mapping[str, Floor],
    most_gpus: int,
    durations: Durations,
    max_parallel: int | None = None,
) -> ShortOrder:
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
        return find_short_order(start, best, floors, used, durations, max_parallel)
    return ShortOrder(timed.end(begin), best, used)


def _by_time(actions: Sequence[Action], begin: Sequence[int], takes: Sequence[int]) -> list[int]:
    def when(at: int) -> tuple[int, int]:
        return begin[at] + (0 if actions[at].removes else takes[at]), at

    return sorted(range(len(actions)), key=when)


def order_groups(
    goal: TransitionGoal,
    actions: Sequence[Action],
    groups: Sequence[int],
    durations: Durations,
    max_parallel: int | None = None,
) -> ShortOrder:
    """Have the actions of a group wait for the same; a node that is drained is apart from others.

    `groups`: By action, 0 where it happens alone. The sequence stays as it is.
    """
    start = goal.start
    used = most_in_use(start, actions)
    done = ordered(start, actions, goal.floors, used)
    alone = [{*done[at].after, *_drained_before(done, groups, at)} for at in range(len(done))]
    waits: dict[int, set[int]] = {}
    for at, group in enumerate(groups):
        waits.setdefault(group, set()).update(alone[at])
    # a node begins once all that any of its GPUs waits for has ended
    together = [
        {before for before in waits[group] if groups[before] != group} if group else alone[at]
        for at, group in enumerate(groups)
    ]
    done = with_waits(done, together)
    timed = Timed.of(start, done, durations, max_parallel, by_node=True)
    return ShortOrder(timed.end(timed.begin([action.after for action in done])), done, used)


def _drained_before(actions: Sequence[Action], groups: Sequence[int], at: int) -> Iterator[int]:
    """Iterate over what comes before on a node that is drained for one of them: it stops all."""
    for before in range(at):
        is_drained = groups[at] or groups[before]
        if is_drained and groups[at] != groups[before] and actions[at].node == actions[before].node:
            yield before
