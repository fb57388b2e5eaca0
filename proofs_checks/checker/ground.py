"""What proofs about spare GPUs speak of: the instances of ours that count, and where others are.

Of each GPU those of ours that run or start, at a point that has a floor to keep or is wanted: all
else can be deleted first, and what starts counts as if it ran already. What others have stays. The
points are those of the instances that the transition names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from .fleet import Card, supplies
from .reading import ZERO, Fault, show
from .room import Held, offered
from .transition import Transition


class Kind(NamedTuple):
    """A point that counts: where it runs, and what it gives to a service with a floor."""

    device: str
    profile: str
    service: str
    supply: Fraction


Placed = tuple[str, int, str]  # profile, start, point


class Site(NamedTuple):
    """A GPU: what is there of others and of ours, and what the target has of ours."""

    card: Card
    able: frozenset[str]
    foreign: Held
    held: frozenset[Placed]
    wanted: frozenset[Placed]


@dataclass(frozen=True)
class Ground:
    """What a proof is about."""

    kinds: dict[str, Kind]
    sites: list[Site]
    floors: dict[str, Fraction]
    wanted: Counter[str]
    gpus: Counter[str]


def ground_of(of: Transition) -> Ground:
    """Leave out what does not matter."""
    for side in (of.start, of.target):
        for card in side.cards.values():
            if any(each.start is None for each in card.held) or (card.held and card.mode != "mig"):
                raise Fault(f"what is on {card.name} has no starts")
    others = [e for card in of.start.cards.values() for e in card.held if e.owner is not None]
    base = supplies((e._replace(state=_runs(e.state)) for e in others), of.points)
    floors = {name: floor for name, floor in of.floors.items() if floor}
    ours = [e for card in of.target.cards.values() for e in card.held if e.owner is None]
    wanted = Counter(each.point for each in ours if each.point is not None)
    sides = (each for side in (of.start, of.target) for c in side.cards.values() for each in c.held)
    ways = (each for action in of.actions for each in (*action.removes, *action.adds))
    named = {each.point for each in (*sides, *ways)}
    kinds = {}
    for name, point in of.points.items():
        if name not in named:
            continue
        supply = point.supply if point.service in floors else ZERO
        if not supply and not wanted[name]:
            continue
        devices = [c.device for c in of.start.cards.values() if c.device.is_called(point.device)]
        if not devices or point.profile not in devices[0].profiles:
            raise Fault(f"the point {show(name)} is of no profile of a GPU that is there")
        key, profile = devices[0].key, devices[0].name_of(point.profile)
        kinds[name] = Kind(key, profile, point.service, supply)
    sites = [_site(of, name, kinds) for name in sorted(of.start.cards)]
    gpus = Counter(card.device.key for card in of.target.cards.values() if card.held)
    owed = {name: floor - base[name] for name, floor in floors.items()}
    return Ground(kinds, sites, owed, wanted, gpus)


def _runs(state: str) -> str:
    return "running" if state == "starting" else state


def _site(of: Transition, name: str, kinds: Mapping[str, Kind]) -> Site:
    card, end = of.start.cards[name], of.target.cards[name]
    able = frozenset(
        point
        for point, kind in kinds.items()
        if kind.device == card.device.key and offered(card, kind.profile)
    )
    pinned, held = set(), set()
    for each in card.held:
        profile, start = card.device.name_of(each.profile), each.start or 0
        if each.owner is not None:
            pinned.add((profile, start))
        elif each.point in kinds and _runs(each.state) == "running":
            held.add((profile, start, str(each.point)))
    wanted = frozenset(
        (card.device.name_of(each.profile), each.start or 0, str(each.point))
        for each in end.held
        if each.owner is None and each.point in kinds
    )
    return Site(card, able, frozenset(pinned), frozenset(held), wanted)
