"""The worst moment of any execution: exact, without walking through all moments.

At a moment some actions have begun, and some of these have ended: all that a begun one waits for,
at least. Let the beginning of an action add to a sum, and its end take from it. The sum is largest
at a moment at which only those have ended that must have; so its maximum is that of

    what the begun ones of a set add - what those take that must have ended by then,

over all sets of actions. Which set that is, a minimum cut says: either what an action adds is given
up, or all that it waits for is paid.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm

from .model import Action

__all__ = ["bits_of", "every_moment", "predecessors", "worst_moment"]

_NOTHING = Fraction(0)


def predecessors(actions: Sequence[Action]) -> list[int]:
    """Return, as bits, the positions of all actions that have ended when each one begins."""
    found: list[int] = []
    for action in actions:
        bits = 0
        for before in action.after:
            bits |= found[before] | 1 << before
        found.append(bits)
    return found


def bits_of(bits: int) -> Iterator[int]:
    """Iterate over the positions of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def worst_moment(
    actions: Sequence[Action],
    ended: Sequence[int],
    adds: Mapping[int, Fraction | int],
    takes: Mapping[int, Fraction | int],
) -> tuple[Fraction, tuple[int, ...]]:
    """Return the largest value of a sum at any moment of any execution, and such a moment.

    The beginning of an action adds to the sum, and its end takes from it; both are 0 or more. The
    moment is told by the actions that have begun then and add; of all others only those have ended
    that these wait for.

    Examples
    --------
    The second action waits for the first one, so that at most one of them is there.

    >>> first, second = Action("create", "a", 0), Action("create", "a", 0, after=(0,))
    >>> worst_moment([first, second], [0, 0b1], {0: 1, 1: 1}, {0: 1})
    (Fraction(1, 1), (0,))
    """
    adds, takes = ({at: Fraction(n) for at, n in each.items()} for each in (adds, takes))
    begun = [at for at in sorted(adds) if adds[at]]
    taking = sum(1 << at for at, amount in takes.items() if amount)
    # The actions up to each one, with all that they wait for, are a moment; and if it is the last
    # to begin, at most these have begun, and what it waits for has ended.
    most, seen, moment = _NOTHING, _NOTHING, 0
    added, over = _NOTHING, 0
    for number, at in enumerate(begun, 1):
        added += adds[at]
        over |= ended[at] & taking
        most = max(most, added - _sum(takes, ended[at] & taking))
        if (value := added - _sum(takes, over)) > seen:
            seen, moment = value, number
    if seen == most:
        return seen, tuple(begun[:moment])
    return _cut(actions, {at: adds[at] for at in begun}, takes)


def _sum(amounts: Mapping[int, Fraction], bits: int) -> Fraction:
    return sum((amounts[at] for at in bits_of(bits)), _NOTHING)


def _cut(
    actions: Sequence[Action], adds: Mapping[int, Fraction], takes: Mapping[int, Fraction]
) -> tuple[Fraction, tuple[int, ...]]:
    """Pay for what is added by what must have ended, as far as that goes: a maximum flow.

    From what an action adds amounts go to what it waits for, and from there on; where some is paid
    already, its payer may be paid by another one.
    """
    scale = lcm(*(amount.denominator for amount in (*adds.values(), *takes.values())))
    left = {at: int(amount * scale) for at, amount in adds.items()}
    room = {at: int(amount * scale) for at, amount in takes.items()}
    sent: dict[int, Counter[int]] = defaultdict(Counter)  # to what has ended, from whom
    while True:
        # what begins is at, and what has ended ~at
        came: dict[int, int | None] = {at: None for at, amount in left.items() if amount}
        line = list(came)
        for node in line:
            if node < 0 and room.get(~node):
                break
            on = [~before for before in actions[node if node >= 0 else ~node].after]
            back = sent[node] if node < 0 else {}
            for step in (*on, *(payer for payer, amount in back.items() if amount)):
                if step not in came:
                    came[step] = node
                    line.append(step)
        else:
            moment = tuple(at for at in adds if at in came)
            return Fraction(sum(left.values()), scale), moment
        path = [node]
        while (earlier := came[path[-1]]) is not None:
            path.append(earlier)
        steps = [(one, two) for two, one in pairwise(path)]
        undone = [sent[one][two] for one, two in steps if sent[one][two]]
        amount = min(left[path[-1]], room[~node], *undone)
        left[path[-1]] -= amount
        room[~node] -= amount
        for one, two in steps:
            if sent[one][two]:
                sent[one][two] -= amount
            else:
                sent[two][one] += amount


def every_moment(ended: Sequence[int], most: int) -> list[tuple[int, int]] | None:
    """Return all sets of begun actions, each with those that must have ended; None if too many.

    Examples
    --------
    >>> every_moment([0, 0b1], 9)
    [(0, 0), (1, 0), (3, 1)]
    >>> every_moment([0, 0, 0], 7) is None
    True
    """
    found = [(0, 0)]
    for at, needed in enumerate(ended):
        found += [(begun | 1 << at, over | needed) for begun, over in found if not needed & ~begun]
        if len(found) > most:
            return None
    return found
