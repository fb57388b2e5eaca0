"""Why fewer spare GPUs will not do where a tool can only cut whole GPUs anew.

Said of transitions that give instances other work in their places and repartition whole GPUs, all
in MIG mode; with ``by_node``, of those in which nothing of ours works on a node while one of its
GPUs is repartitioned.

Let ``e`` more GPUs be allowed in use than at the start. GPUs in use stay so until one of them is
repartitioned. If none is, all that is wanted is on those instances and on ``e`` other GPUs; where
its sizes say that this is too little room, some GPU in use is repartitioned, which has nothing of
others, since nobody may remove that. When the first one is, what supplies is on the other GPUs in
use, which have the instances of the start, and on at most ``e`` others. Every item per second of a
service has a price; an instance is worth the dearest that the points of its profile give, and a GPU
what its dearest layout is worth. If for no GPU (node) that could be the first this reaches the
price of all floors, less what others' instances supply (what starts as if it ran), then ``e`` more
GPUs will not do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

from .devices import Device
from .fleet import Card, supplies
from .reading import ZERO, show
from .room import dearest, shape
from .transition import FirstCut, Transition

_Blocks = Counter[tuple[str, str]]  # device and profile


def first_repartition_faults(of: Transition, proof: FirstCut, most: int) -> list[str]:
    """Say why a proof that ``most`` GPUs in use will not do, is none."""
    cards = [card for side in (of.start, of.target) for card in side.cards.values()]
    if other := [card.name for card in cards if card.mode != "mig"]:
        return [f"{other[0]} is not cut by MIG"]
    for at, action in enumerate(of.actions):
        if action.what not in ("restart", "repartition") or action.mode is not None:
            return [f"action {at} is no restart and no repartition in the same mode"]
    if proof.by_node and (name := _works_on(of)) is not None:
        return [f"an instance on {name} works while its node is drained"]
    used = [card for card in of.start.cards.values() if card.held]
    more = most - len(used)
    devices = {card.device.key: card.device for card in cards}
    there = sum((_ours(card) for card in used), _Blocks())
    if _fits(there, of, devices, more):
        return [f"with {more} empty GPUs nothing in use may have to be cut anew"]
    worth = _worths(of, proof, devices)
    owed = _owed(of, proof, used)
    parts: dict[str, Fraction] = defaultdict(Fraction)
    for card in used:
        parts[_unit(card, proof)] += sum((worth[each] * n for each, n in _ours(card).items()), ZERO)
    best = max(
        dearest(
            shape(device, frozenset(name for own, name in worth if own == key)),
            frozenset(),
            {name: each for (own, name), each in worth.items() if own == key},
        )
        for key, device in devices.items()
    )
    firsts = {_unit(card, proof) for card in used if all(each.owner is None for each in card.held)}
    total = sum(parts.values(), more * best)
    enough = [unit for unit in sorted(firsts) if total - parts[unit] >= owed]
    return [f"{show(unit)} may be cut first: the others are worth the floors" for unit in enough]


def _unit(card: Card, proof: FirstCut) -> str:
    return card.name.rpartition("/")[0] if proof.by_node else card.name


def _ours(card: Card) -> _Blocks:
    return Counter(
        (card.device.key, card.device.name_of(each.profile))
        for each in card.held
        if each.owner is None
    )


def _fits(there: _Blocks, of: Transition, devices: dict[str, Device], more: int) -> bool:
    """Whether, for its sizes, what is wanted and is not there could be on so many empty GPUs."""
    wanted = Counter(
        (card.device.key, card.device.name_of(each.profile))
        for card in of.target.cards.values()
        for each in card.held
        if each.owner is None and each.point is not None
    )
    needed = 0
    for key, device in devices.items():
        lacks = [
            (device.profiles[name], n) for (own, name), n in (wanted - there).items() if own == key
        ]
        shares = [Fraction(n, profile.most) for profile, n in lacks]
        shares.append(Fraction(sum(p.memory * n for p, n in lacks), device.memory))
        shares.append(Fraction(sum(p.compute * n for p, n in lacks), device.compute))
        needed += -(-max(shares) // 1)
    return needed <= more


def _worths(
    of: Transition, proof: FirstCut, devices: dict[str, Device]
) -> dict[tuple[str, str], Fraction]:
    """Say what an instance of each profile is worth, at the points that the transition names."""
    cards = [card for side in (of.start, of.target) for card in side.cards.values()]
    named = {each.point for card in cards for each in card.held}
    named |= {each.point for action in of.actions for each in (*action.removes, *action.adds)}
    worth: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for name, point in of.points.items():
        for key, device in devices.items():
            if (
                name in named
                and device.is_called(point.device)
                and point.profile in device.profiles
            ):
                block = key, device.name_of(point.profile)
                price = proof.prices.get(point.service, ZERO)
                worth[block] = max(worth[block], price * point.supply)
    return worth


def _owed(of: Transition, proof: FirstCut, used: list[Card]) -> Fraction:
    """Say what ours have to supply of the floors, at the prices."""
    others = [each for card in used for each in card.held if each.owner is not None]
    running = (
        each._replace(state="running") if each.state == "starting" else each for each in others
    )
    given = supplies(running, of.points)
    return sum(
        (price * max(ZERO, of.floors[name] - given[name]) for name, price in proof.prices.items()),
        ZERO,
    )


def _works_on(of: Transition) -> str | None:
    """Return a GPU on which something of ours works while a GPU of its node is repartitioned.

    What happens on a drained node has one list of waits.
    """
    steps: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for at, action in enumerate(of.actions):
        steps[action.card.rpartition("/")[0], tuple(of.after[at])].append(at)
    for (node, _), own in steps.items():
        if all(of.actions[at].what != "repartition" for at in own):
            continue
        for name, card in of.start.cards.items():
            if name.rpartition("/")[0] == node:
                there = Counter(card.held)
                before = [a for a in of.actions[: own[0]] if a.card == name]
                for action in (*before, *(of.actions[at] for at in own)):
                    there.subtract(action.removes)
                for action in before:
                    there.update(action.adds)
                if any(n > 0 and e.owner is None and e.point for e, n in there.items()):
                    return name
    return None
