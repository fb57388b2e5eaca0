"""Transitions on two or three small GPUs by trying everything, and a plain simulator of any.

Written from the rules alone: layouts by brute force, capacities in rationals, no order but what
an action says it waits for.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache

from cms.fleet import Gpu
from cms.fleet.deployment.transition.model import Transition
from cms.fleet.hardware import Placement
from tests.references.layouts import is_valid

#: Profile, start, service, supply.
Placed = tuple[str, int, str, Fraction]
Content = frozenset[Placed]
#: Profile, service, supply.
Thing = tuple[str, str, Fraction]


@cache
def contents(card: Gpu, things: frozenset[Thing]) -> tuple[Content, ...]:
    """All that can be on a GPU."""
    found: set[Content] = {frozenset()}
    border: list[Content] = [frozenset()]
    while border:
        held = border.pop()
        for profile, service, supply in things:
            for start in card.profile(profile).starts:
                more = held | {(profile, start, service, supply)}
                if len(more) == len(held) or more in found:
                    continue
                if is_valid(card, [Placement(*each[:2]) for each in more]):
                    found.add(more)
                    border.append(more)
    return tuple(found)


def is_reachable(
    card: Gpu,
    start: Sequence[Content],
    wanted: Mapping[Thing, int],
    floors: Mapping[str, Fraction],
    most_gpus: int,
    used_at_end: int,
    places: Sequence[Content] | None = None,
) -> bool:
    """Whether some sequence of creations and deletions leads to what is wanted (in its places).

    Nothing of the service "other" is ever created.
    """
    things = frozenset(wanted) | {(p, s, r) for held in start for p, _, s, r in held}
    allowed = contents(card, things)
    grown: dict[Content, list[Content]] = {each: [] for each in allowed}
    shrunk: dict[Content, list[tuple[Content, str, Fraction]]] = {each: [] for each in allowed}
    for each in allowed:
        for one in each:
            if one[2] != "other":
                grown[each - {one}].append(each)
            shrunk[each].append((each - {one}, one[2], one[3]))
    goal = Counter(wanted)
    begin = tuple(start if places else sorted(start, key=sorted))
    seen, queue = {begin}, deque([begin])
    while queue:
        state = queue.popleft()
        here = Counter((p, s, r) for held in state for p, _, s, r in held)
        used = sum(bool(held) for held in state)
        if here == goal and used <= used_at_end and places in (None, list(state)):
            return True
        capacity: Counter[str] = Counter()
        for (_, service, supply), n in here.items():
            capacity[service] += n * supply  # type: ignore[assignment]
        for at, held in enumerate(state):
            if not places and at and state[at - 1] == held:
                continue
            after = list(grown[held]) if held or used < most_gpus else []
            after += [
                less
                for less, service, supply in shrunk[held]
                if capacity[service] - supply >= floors.get(service, 0)
            ]
            for other in after:
                found = (*state[:at], other, *state[at + 1 :])
                found = found if places else tuple(sorted(found, key=sorted))
                if found not in seen:
                    seen.add(found)
                    queue.append(found)
    return False


def _fits(card: Gpu, layout: list[tuple[str, int | None]]) -> bool:
    """Whether instances can be on a GPU at once: all cut by MIG, all shares, or one alone."""
    if any(name == "whole" for name, _ in layout):
        return layout == [("whole", None)]
    shares = [int(name.removeprefix("mps:")) for name, _ in layout if name.startswith("mps:")]
    cut = [(name, start) for name, start in layout if start is not None]
    if shares:
        return sum(shares) <= 100 and len(shares) == len(layout)
    return len(cut) == len(layout) and card.is_layout(cut)


def run(transition: Transition, rng: random.Random) -> list[str]:
    """Do the actions at random, side by side as far as they may; return breaches."""
    actions = transition.actions
    waiting, running, ended = set(range(len(actions))), set[int](), set[int]()
    cards = {(card.node, card.index): card for card in transition.start.gpus()}
    there = {
        place: Counter((e.profile, e.start, e.owner, e.work) for e in card.instances)
        for place, card in cards.items()
    }
    capacity = {
        name: transition.start.capacity(name) if floor.rps else Fraction(0)
        for name, floor in transition.floors.items()
    }
    most = max(len(transition.start.used_gpus()), len(transition.target.used_gpus()))
    used = {place for place, held in there.items() if held}
    breaches = []

    def look(what: str, places: Iterable[tuple[str, int]]) -> None:
        for name, floor in transition.floors.items():
            if floor.rps and capacity[name] < floor.rps:
                breaches.append(f"{what}: {name} has {capacity[name]}")
        for place in places:  # where something has changed
            layout = [(profile, start) for profile, start, *_ in there[place].elements()]
            if not _fits(cards[place].gpu, layout):
                breaches.append(f"{what}: {layout} on {place}")
            (used.add if +there[place] else used.discard)(place)
        if len(used) > most + transition.spare.count:
            breaches.append(f"{what}: too many GPUs in use")

    look("before", there)
    while waiting or running:
        ready = [at for at in sorted(waiting) if ended.issuperset(actions[at].after)]
        at = rng.choice([*ready, *sorted(running)])
        action, held = actions[at], there[actions[at].gpu]
        if at in waiting:
            waiting.remove(at)
            running.add(at)
            for each in action.removes:
                if each.work is not None and each.work.service in capacity:
                    capacity[each.work.service] -= each.supply_rps
                if action.adds:  # in place: its slots are taken once
                    held[each.profile, each.start, each.owner, each.work] -= 1
            for each in action.adds:
                held[each.profile, each.start, each.owner, each.work] += 1
            look(f"{action} begins", [action.gpu])
        else:
            running.remove(at)
            ended.add(at)
            for each in action.adds:
                if each.work is not None and each.work.service in capacity:
                    capacity[each.work.service] += each.supply_rps
            for each in action.removes if not action.adds else ():
                key = each.profile, each.start, each.owner, each.work
                held[key] -= 1
                if held[key] < 0:
                    breaches.append(f"{action} ends: nothing to remove")
            look(f"{action} ends", [action.gpu])
    end = {
        (card.node, card.index): Counter(
            (e.profile, e.start, e.owner, e.work) for e in card.instances
        )
        for card in transition.target.gpus()
    }
    if {place: +held for place, held in there.items()} != end:
        breaches.append("the end is not the target")
    return breaches
