"""What a sequence of actions makes of a deployment, each done before the next begins."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import NamedTuple

from ..instance import Instance, State
from ..model import Deployment, FleetGpu
from .model import Action, What

_Place = tuple[str, int]


class CapacityChanges(NamedTuple):
    """By action, ascending, what it takes from a service, and what it gives to it."""

    removed: dict[int, Fraction]
    added: dict[int, Fraction]


def list_changes(actions: Iterable[Action]) -> defaultdict[str, CapacityChanges]:
    """Return what actions change of each service, in items per second."""
    found = defaultdict[str, CapacityChanges](lambda: CapacityChanges({}, {}))
    for at, action in enumerate(actions):
        for service in action.services:
            rates = action.removed_rps(service), action.added_rps(service)
            for part, rps in zip(found[service], rates, strict=True):
                if rps:
                    part[at] = rps
    return found


@dataclass(slots=True)
class GpuUse:
    """A GPU in use: from an action that adds to it while it is empty until it is empty again.

    `begin`: That action, -1 from the start on. `members`: All actions on the GPU up to its end.
    `adders`: Those of the use that add. `end`: The action that empties the GPU, if any does.
    """

    begin: int
    members: list[int]
    adders: list[int] = field(default_factory=list)
    end: float = inf


def list_uses(start: Deployment, actions: Iterable[Action]) -> list[GpuUse]:
    """List the uses of GPUs as they begin, if each action has ended before the next begins."""
    held = {(card.node, card.index): len(card.instances) for card in start.gpus()}
    own: dict[tuple[str, int], list[int]] = {place: [] for place in held}
    now = {place: GpuUse(-1, own[place]) for place, count in held.items() if count}
    found = list(now.values())
    for at, action in enumerate(actions):
        place = action.gpu
        own[place].append(at)
        held[place] += len(action.adds) - len(action.removes)
        if action.adds and place not in now:
            now[place] = GpuUse(at, own[place])
            found.append(now[place])
        if action.adds:
            now[place].adders.append(at)
        if not held[place] and place in now:
            now[place].end = at
            now.pop(place).members = own[place][:]
    return found


def most_in_use(uses: Sequence[GpuUse]) -> int:
    """Return how many GPUs are in use at most, if each action has ended before the next begins."""
    ends = sorted(use.end for use in uses)
    return max((n - bisect_left(ends, use.begin) for n, use in enumerate(uses, 1)), default=0)


def change_gpus(
    cards: Mapping[_Place, FleetGpu], actions: Iterable[Action]
) -> dict[_Place, FleetGpu]:
    """Return the GPUs that actions change, as they are after them."""
    changed: dict[_Place, FleetGpu] = {}
    for action in actions:
        card = changed.get(action.gpu, cards[action.gpu])
        held = list(card.instances)
        for each in action.removes:
            held.remove(each)
        after = card.with_instances((*held, *action.adds), action.mode)
        if action.what is not What.REPARTITION:
            after = replace(after, start_source=card.start_source)
        changed[action.gpu] = after
    return changed


def find_end(start: Deployment, actions: Iterable[Action]) -> dict[_Place, FleetGpu]:
    """Return the GPUs as they are in the end; what starts runs by then."""
    cards = {(card.node, card.index): card for card in start.gpus()}
    for place, card in (cards := cards | change_gpus(cards, actions)).items():
        runs = (
            replace(each, state=State.RUNNING) if each.state is State.STARTING else each
            for each in card.instances
        )  # fmt: skip
        cards[place] = replace(card, instances=tuple(runs))
    return cards


def temporaries(start: Deployment, actions: Sequence[Action]) -> tuple[set[int], set[int]]:
    """Return the actions whose additions go again or that remove such, and those not to tell.

    Which of equal ones goes cannot be told.
    """
    adders: dict[tuple[_Place, Instance], list[int]] = {}
    for card, instance in start.instances():
        adders.setdefault(((card.node, card.index), instance), []).append(-1)
    temporary: set[int] = set()
    unsure: set[int] = set()
    for at, action in enumerate(actions):
        for each in action.removes:
            there = adders.get((action.gpu, each), [])
            if len(there) > 1:
                unsure.update((at, *there))
            if there and (adder := there.pop()) >= 0:
                temporary.update((at, adder))
        for each in action.adds:
            adders.setdefault((action.gpu, each), []).append(at)
    return temporary, unsure
