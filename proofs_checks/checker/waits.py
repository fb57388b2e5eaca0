"""The worst moment of any parallel execution: exact, without walking through the moments.

Actions wait for others and may take any time. A moment is told by which actions have begun and
which have ended: all that a begun action waits for, directly or not, have ended, and any set that
contains what its members wait for can have begun. Let beginning an action add its *gain* to a
quantity and its ending take its *loss* from it, all >= 0. The quantity is largest where only those
have ended that must have. So its largest value is the maximum, over sets S of actions, of

    the gains of S - the losses of all that some member of S waits for.

What S waits for is begun, too, and can only gain; so the set need not be closed. This is a maximum
closure: all gains less a maximum flow from the gains to the losses that each waits for (Picard,
1976). In words: each gain has to be made up for by losses that have happened by then.

Capacity that is lost is such a quantity, with what is removed as gains and what is added as losses.
So is what takes a GPU's slots, compute slices or shares, with what is added as gains and what is
removed as losses.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm


def ended_before(after: Sequence[Sequence[int]]) -> list[int]:
    """As bits, the actions that have ended when each begins: what it waits for, directly or not."""
    found: list[int] = []
    for waits in after:
        bits = 0
        for before in waits:
            bits |= found[before] | 1 << before
        found.append(bits)
    return found


def bits_of(bits: int) -> Iterator[int]:
    """Iterate over the positions of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def worst(
    gains: Mapping[int, Fraction], losses: Mapping[int, Fraction], before: Mapping[int, int]
) -> tuple[Fraction, tuple[int, ...]]:
    """Find the largest value of a quantity at any moment of any execution, and the moment.

    Gains and losses are > 0; ``before`` has, for each action with a gain, as bits, those that have
    ended when it begins. The moment is a set of actions that have begun then, beside what they wait
    for.
    """
    scale = lcm(*(each.denominator for each in (*gains.values(), *losses.values())))
    left = {at: int(gain * scale) for at, gain in gains.items()}
    room = {at: int(loss * scale) for at, loss in losses.items()}
    some = sum(1 << at for at in room)
    reach = {at: before[at] & some for at in left}
    flow: dict[int, dict[int, int]] = {at: {} for at in room}  # by loss, from which gains
    for at in sorted(left, key=lambda at: reach[at].bit_count()):
        for to in bits_of(reach[at]):
            if not left[at]:
                break
            if amount := min(left[at], room[to]):
                flow[to][at] = amount
                left[at] -= amount
                room[to] -= amount
    while True:
        seen = _augmented(left, room, reach, flow)
        if seen is not None:
            value = Fraction(sum(left.values()), scale)
            return value, tuple(sorted(seen))


def _augmented(
    left: dict[int, int], room: dict[int, int], reach: Mapping[int, int],
    flow: dict[int, dict[int, int]],
) -> set[int] | None:  # fmt: skip
    """Send more along one path; None: done. If there is none, the gains that were reached."""
    came: dict[tuple[str, int], tuple[str, int] | None] = {
        ("gain", at): None for at, amount in left.items() if amount
    }
    line, unseen = list(came), -1
    for node in line:
        kind, at = node
        if kind == "gain":
            fresh = reach[at] & unseen
            unseen &= ~fresh
            steps = [("loss", to) for to in bits_of(fresh)]
        elif room[at]:
            _send(node, came, left, room, flow)
            return None
        else:
            steps = [("gain", to) for to, amount in flow[at].items() if amount]
        for step in steps:
            if step not in came:
                came[step] = node
                line.append(step)
    return {at for kind, at in came if kind == "gain"}


def _send(
    end: tuple[str, int],
    came: Mapping[tuple[str, int], tuple[str, int] | None],
    left: dict[int, int],
    room: dict[int, int],
    flow: dict[int, dict[int, int]],
) -> None:
    path = [end]
    while (last := came[path[-1]]) is not None:
        path.append(last)
    path.reverse()
    pairs = list(itertools.pairwise(path))
    amount = min(left[path[0][1]], room[end[1]])
    for (kind, at), (_, to) in pairs:
        if kind == "loss":  # back to a gain: less of it comes here
            amount = min(amount, flow[at][to])
    left[path[0][1]] -= amount
    room[end[1]] -= amount
    for (kind, at), (_, to) in pairs:
        if kind == "loss":
            flow[at][to] -= amount
        else:
            flow[to][at] = flow[to].get(at, 0) + amount


def moments(before: Sequence[int], most: int) -> list[tuple[int, int]] | None:
    """List all sets of begun actions, each with those that must have ended; None if too many."""
    found = [(0, 0)]
    for at, needed in enumerate(before):
        found += [
            (begun | 1 << at, ended | needed) for begun, ended in found if needed & ~begun == 0
        ]
        if len(found) > most:
            return None
    return found
