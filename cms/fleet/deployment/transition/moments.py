"""The worst moment of any execution: exact, without walking through all moments.

At a moment some actions have begun, and some of these have ended: all that a begun one waits for,
at least. Let the beginning of an action add to a sum, and its end take from it. The sum is largest
at a moment at which only those have ended that must have; so its maximum is that of

    what the begun ones of a set add - what those take that must have ended by then,

over all sets of actions. Which set that is, a minimum cut says: either what an action adds is given
up, or all that it waits for is paid. Such sums are what a service lacks, and what is on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm

from .model import Action

_NOTHING = Fraction(0)
#: Of the actions that make a moment the worst, the last ones are named.
_MOST_NAMED = 3


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

    >>> worst_moment([0, 0b1], {0: 1, 1: 1}, {0: 1})
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
    waits = {at: ended[at] & taking for at in {*begun, *takes}}
    return _cut({at: adds[at] for at in begun}, takes, waits)


def _sum(amounts: Mapping[int, Fraction], bits: int) -> Fraction:
    return sum((amounts[at] for at in bits_of(bits)), _NOTHING)


def _cut(
    adds: Mapping[int, Fraction], takes: Mapping[int, Fraction], ended: Mapping[int, int]
) -> tuple[Fraction, tuple[int, ...]]:
    """Pay for what is added by what must have ended, as far as that goes: a maximum flow."""
    import networkx as nx

    scale = lcm(*(amount.denominator for amount in (*adds.values(), *takes.values())))
    graph: nx.DiGraph[int | str] = nx.DiGraph()  # what begins is at, and what has ended ~at
    graph.add_edge("adds", "takes", capacity=0)
    for at, amount in takes.items():
        graph.add_edge(~at, "takes", capacity=int(amount * scale))
    for at, amount in adds.items():
        graph.add_edge("adds", at, capacity=int(amount * scale))
    for node in (*adds, *(~at for at in takes)):
        left = ended[max(node, ~node)]
        while left:  # those that the last one has waited for are reached through it
            last = left.bit_length() - 1
            graph.add_edge(node, ~last)
            left &= ~(ended[last] | 1 << last)
    paid, (begun, _) = nx.minimum_cut(graph, "adds", "takes")
    return sum(adds.values()) - Fraction(int(paid), scale), tuple(at for at in adds if at in begun)


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


def when(actions: Sequence[Action], moment: Sequence[int]) -> str:
    """Say when a moment is: with which actions under way."""
    if not moment:
        return "at the start"
    words = [f"action {at} ({actions[at]})" for at in moment[-_MOST_NAMED:]]
    more = len(moment) - len(words)
    return f"while {', '.join(words)}{f' and {more} more' * (more > 0)} can be under way"
