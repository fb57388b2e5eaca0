"""How long the actions of a transition take at least, in whatever order.

From each action's earliest end, which is the least solution of these rules:

- a creation comes after the deletions in its slots;
- a deletion that its service's floor cannot miss at the beginning comes after as much has come as
  lacks, the earliest first: whichever do come before it, the last of them ends no sooner;
- on a GPU one change of the cut ends before the next begins.

All actions that take from a service, together, wait likewise for what lacks after all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..instance import Instance, Mode
from ..model import Deployment
from .model import Action, Transition

__all__ = ["least"]


def least(transition: Transition, takes: Sequence[int], gpu_of: Sequence[int], shared: int) -> int:
    """Return milliseconds that these actions take in any order.

    `gpu_of` is the GPU of which an action is a change of the cut, or -1; `shared` the milliseconds
    of all of them, shared out among those that may run at once.
    """
    floors = transition.floors.items()
    services = [_Service(name, transition) for name, floor in floors if floor.rps > 0]
    end = _earliest(transition, services, takes)
    on: dict[int, list[tuple[int, int]]] = {}
    for at, gpu in enumerate(gpu_of):
        if gpu >= 0:
            on.setdefault(gpu, []).append((end[at] - takes[at], takes[at]))
    busiest = max(map(_one_by_one, on.values()), default=0)
    last = max((service.end(end, takes) for service in services), default=0)
    return max(busiest, shared, last, max(end, default=0))


def _one_by_one(works: list[tuple[int, int]]) -> int:
    """Return when a GPU has done its work: when each may begin, and what it takes."""
    now = 0
    for begin, takes in sorted(works):
        now = max(now, begin) + takes
    return now


class _Service:
    def __init__(self, name: str, transition: Transition) -> None:
        self.floor = transition.floors[name].rps
        self.slack = transition.start.capacity(name) - self.floor
        pairs = list(enumerate(transition.actions))
        self.comes = [(at, rps) for at, a in pairs if (rps := a.added_rps(name))]
        self.goes = [(at, rps) for at, a in pairs if (rps := a.removed_rps(name))]

    def ready(self, gone: Fraction, end: Sequence[int], but: int = -1) -> int:
        """Return when so much may be missing at the earliest; one action cannot wait for itself."""
        lack = gone - self.slack
        if lack <= 0:
            return 0
        for at, rps in sorted(self.comes, key=lambda one: end[one[0]]):
            if at != but:
                lack -= rps
                if lack <= 0:
                    return end[at]
        return 0  # then it is no transition, and nothing is claimed

    def end(self, end: Sequence[int], takes: Sequence[int]) -> int:
        """Return when the last of those that go has ended: it waits for what all of them take."""
        gone = sum((rps for _, rps in self.goes), Fraction(0))
        shortest = min((takes[at] for at, _ in self.goes), default=0)
        return self.ready(gone, end) + shortest


def _earliest(
    transition: Transition, services: Sequence[_Service], takes: Sequence[int]
) -> list[int]:
    actions = transition.actions
    of = _in_the_way(transition.start, actions)
    end = list(takes)
    changed = True
    while changed:  # from below: each round is a bound, and few are needed
        changed = False
        ready = [max((end[b] for b in before), default=0) for before in of]
        for service in services:
            for at, rps in service.goes:
                ready[at] = max(ready[at], service.ready(rps, end, at))
        for at, when in enumerate(ready):
            if when + takes[at] > end[at]:
                end[at], changed = when + takes[at], True
    return end


def _in_the_way(start: Deployment, actions: Sequence[Action]) -> list[list[int]]:
    """Return, for each action that adds, those that remove what was in its slots at the start.

    Of shares nothing is said: what takes turns in them can be told in any order.
    """
    cards = {(card.node, card.index): card for card in start.gpus()}
    left: dict[tuple[str, int], list[tuple[int, Instance]]] = {}
    found: list[list[int]] = []
    for at, action in enumerate(actions):
        gpu = cards[action.gpu].gpu
        gone = left.setdefault(action.gpu, [])
        own = []
        for each in action.adds:
            for b, old in gone:
                if None in (each.start, old.start) or cards[action.gpu].mode is not Mode.MIG:
                    continue
                one, other = ((i.start or 0, gpu.profile(i.profile).memory) for i in (each, old))
                if one[0] < other[0] + other[1] and other[0] < one[0] + one[1]:
                    own.append(b)
        gone += [(at, each) for each in action.removes if each in cards[action.gpu].instances]
        found.append(sorted(set(own)))
    return found
