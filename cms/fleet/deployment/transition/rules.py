"""The rules by which a transition goes on: what can be done next, the best first.

See :mod:`~cms.fleet.deployment.transition.ordering` for A to E.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from ..instance import Instance, Mode
from .state import Card, Item, Use, supplied
from .way import Way

__all__ = ["Choice", "Cover", "choices", "clear", "cover", "do", "drop", "fill", "rest", "rooms"]

#: Positions for which covers are looked for at once: the cheapest ones.
_TRIED = 24


class Cover(NamedTuple):
    """A temporary instance."""

    gpu: int
    instance: Instance


class Choice(NamedTuple):
    """What is done next: covers come, something goes, and a position (-1: none) is filled."""

    covers: tuple[Cover, ...] = ()
    goes: tuple[tuple[int, Item], ...] = ()
    position: int = -1
    use: int = -1


def do(way: Way, choice: Choice) -> None:
    """Do what was chosen."""
    for cover in choice.covers:
        way.cover(*cover)
    for gpu, item in choice.goes:
        way.delete(gpu, (item,))
    if choice.position >= 0:
        use = choice.use
        if use < 0:  # what waits most
            need = way.need[way.fleet.positions[choice.position].pool]
            use = max(_waits(way, need).items(), key=itemgetter(1))[0]
        way.fill(choice.position, use)


def choices(way: Way) -> Iterator[Choice]:
    """Iterate over what can be done next, the best by the rules first."""
    if not way.entries:
        yield from rest(way)
        return
    for rule in (fill, clear, cover, drop):
        yield from rule(way)


def rest(way: Way) -> Iterator[Choice]:
    """Once all is there: delete what goes."""
    for gpu, item in way.leaving():
        if gpu not in way.busy and (not item.supply or item.supply <= way.spared(item.service)):
            yield Choice(goes=((gpu, item),))


def fill(way: Way) -> Iterator[Choice]:
    """A: iterate over free positions and what is wanted there, what waits most first."""
    positions = way.fleet.positions
    free: dict[int, int] = {}
    best: dict[int, tuple[bool, int]] = {}
    for number, entry in way.entries.items():
        if entry is not None and not entry.blockers:
            gpu = positions[number].gpu
            if not way.can_take(gpu):
                continue
            score = bool(way.cards[gpu].items), len(way.open_on[gpu])
            pool = positions[number].pool
            if pool not in free or score > best[pool]:
                free[pool], best[pool] = number, score
    if not free:
        return
    wait = _waits(way, {use for pool in free for use in way.need[pool]})
    waiting = [(wait[use], number, use) for pool, number in free.items() for use in way.need[pool]]
    waiting.sort(key=itemgetter(0), reverse=True)
    for _, number, use in waiting:
        yield Choice(position=number, use=use)


def _waits(way: Way, uses: Iterable[int]) -> dict[int, tuple[float, int]]:
    """Return how much each use of a position is waited for; the largest goes first.

    Either the service that has most to come before all that goes can go; or the one that frees most
    room for what it takes, soonest. The first brings all services on alike; the second is for
    fleets that are nearly full, where each is brought on alone until something of it can go.
    """
    fleet, manner = way.fleet, way.manner
    goes = _going(way) if manner.room_first else {}
    found = {}
    for number in uses:
        use = fleet.uses[number]
        value = way.urgency(use.service)
        if manner.room_first and use.supply and value > -1.0:
            value = _freed(way, number, goes.get(use.service, ()))
        found[number] = value * manner.weight(use.service), use.supply
    return found


def _going(way: Way) -> dict[int, list[tuple[int, int]]]:
    """Return, by service, the supply and the slots of what goes and is still there."""
    found: dict[int, list[tuple[int, int]]] = {}
    for _, each in way.leaving():
        if each.supply:
            found.setdefault(each.service, []).append((each.supply, each.slots.bit_count()))
    return found


def _freed(way: Way, number: int, goes: Iterable[tuple[int, int]]) -> float:
    """Return the slots that are freed for each that has to be taken before, this use first."""
    fleet = way.fleet
    use = fleet.uses[number]
    slots = fleet.facts(fleet.devices[use.gpu], use.profile).slots.bit_count()
    there = way.slack[use.service]
    best = 0.0
    for supply, freed in goes:
        lack = supply - there
        if lack > 0:
            # as if the rest came by instances of the same kind
            best = max(best, freed / (slots * -(-lack // use.supply)))
    return best


def clear(way: Way) -> Iterator[Choice]:
    """B: iterate over positions whose way can be cleared within the floors, the cheapest first."""
    found = []
    for number, gone in _in_the_way(way):
        if way.can_miss(supplied(each for _, each in gone)):
            found.append((_waste(way, gone) * way.manner.noise(1.0), len(gone), number, gone))
    if not way.manner.is_random and len(found) > 1:
        found.sort(key=itemgetter(0, 1))
    elif found:
        found.sort(key=itemgetter(0))
    for _, _, number, gone in found:
        yield _cleared(way, number, gone)


def _cleared(
    way: Way, number: int, gone: tuple[tuple[int, Item], ...], covers: tuple[Cover, ...] = ()
) -> Choice:
    if number < 0:
        return Choice(covers, gone)
    entry = way.entries[number]
    if entry is not None and entry.is_restart:
        return Choice(covers, (), number)
    return Choice(covers, gone, number)


def _in_the_way(way: Way) -> Iterator[tuple[int, tuple[tuple[int, Item], ...]]]:
    """Iterate over positions and what has to go first; -1 for a GPU that has to be emptied."""
    positions = way.fleet.positions
    is_full = False
    for number, entry in way.entries.items():
        if entry is None:
            continue
        gpu = positions[number].gpu
        if entry.blockers:
            if gpu in way.busy and not entry.is_restart:
                continue
            yield number, tuple((gpu, each) for each in entry.blockers)
        else:
            is_full = is_full or (gpu not in way.busy and not way.can_take(gpu))
    if is_full:
        for gpu, card in enumerate(way.cards):
            if card.items and gpu not in way.busy and all(each.goes for each in card.items):
                yield -1, tuple((gpu, each) for each in card.items)


def _waste(way: Way, gone: Sequence[tuple[int, Item]]) -> float:
    return sum(each.supply * way.fleet.weight[each.service] for _, each in gone if each.supply)


def cover(way: Way) -> Iterator[Choice]:
    """C: iterate over positions whose way can be cleared once something covers for it."""
    found = []
    for number, gone in _in_the_way(way):
        lacks = [
            (service, amount - way.spared(service))
            for service, amount in supplied(each for _, each in gone)
            if amount > way.spared(service)
        ]
        price = sum(lack * way.fleet.weight[service] for service, lack in lacks)
        found.append((price * way.manner.noise(1.0), number, gone, lacks))
    found.sort(key=itemgetter(0))
    ready = []
    for price, number, gone, lacks in found[:_TRIED]:
        covers = _covers(way, number, gone, lacks)
        if covers is not None:
            taken = sum(_slots(way, cover).bit_count() for cover in covers)
            cost = taken / max(1, _unlocked(way, number, gone)) * way.manner.noise(1.0)
            ready.append((cost, price, _cleared(way, number, gone, covers)))
    ready.sort(key=itemgetter(0, 1))
    for _, _, choice in ready:
        yield choice


def _slots(way: Way, cover: Cover) -> int:
    return way.fleet.facts(way.fleet.cards[cover.gpu].gpu, cover.instance.profile).slots


def _unlocked(way: Way, number: int, gone: tuple[tuple[int, Item], ...]) -> int:
    """Count the slots of the positions that nothing else is in the way of."""
    gpu, slots = gone[0][0], 0
    items = [each for _, each in gone]
    for other in way.open_on.get(gpu, ()):
        entry = way.entries[other]
        if other == number or (entry is not None and all(e in items for e in entry.blockers)):
            slots |= way.fleet.positions[other].slots
    return slots.bit_count() if number >= 0 else way.fleet.cards[gpu].gpu.memory_slices


def _covers(
    way: Way, number: int, gone: tuple[tuple[int, Item], ...], lacks: Sequence[tuple[int, int]]
) -> tuple[Cover, ...] | None:
    fleet, trial = way.fleet, way.copy()
    shut: dict[int, int] = {}
    if number >= 0:
        position = fleet.positions[number]
        shut[position.gpu] = position.slots
    else:
        shut[gone[0][0]] = -1
    covers: list[Cover] = []
    for service, lack in lacks:
        while lack > 0:
            found = _room(trial, service, lack, shut)
            if found is None:
                return None
            cover, supply = found
            trial.cover(*cover)
            covers.append(cover)
            lack -= supply
    return tuple(covers)


def _room(way: Way, service: int, lack: int, shut: dict[int, int]) -> tuple[Cover, int] | None:
    """Find the best room for a temporary instance of a service.

    One that covers most for its slots, then out of the way of what comes, then on the fullest GPU.
    """
    fleet = way.fleet
    best: tuple[tuple[float, ...], Cover, int] | None = None
    for gpu, card in enumerate(way.cards):
        closed = shut.get(gpu, 0)
        if closed < 0 or (fleet.ends[gpu].mode is not card.mode and card.items):
            continue
        waiting = 0
        for number in way.open_on.get(gpu, ()):
            waiting |= fleet.positions[number].slots
        for cover, use, slots in rooms(way, gpu, fleet.covers[service], closed):
            score = (
                min(use.supply, lack) / slots.bit_count() * way.manner.noise(0.3),
                -(slots & waiting).bit_count(),
                card.slots.bit_count(),
            )
            if best is None or score > best[0]:
                best = score, cover, use.supply
    return None if best is None else (best[1], best[2])


def rooms(
    way: Way, gpu: int, uses: Iterable[int], closed: int = 0
) -> Iterator[tuple[Cover, Use, int]]:
    """Iterate over temporary instances that a GPU has room for beside closed slots."""
    fleet, card, device = way.fleet, way.cards[gpu], way.fleet.cards[gpu].gpu
    if card.mode is not Mode.MIG or not way.can_take(gpu) or is_blind(card):
        return
    for use in (fleet.uses[number] for number in uses):
        if use.gpu == device.key and use.profile in fleet.allowed[gpu]:
            own = fleet.facts(device, use.profile).slots
            for start in device.profile(use.profile).starts:
                slots = own << start
                if not slots & (card.slots | closed) and fleet.fits(gpu, card, use.profile, slots):
                    yield Cover(gpu, Instance(use.profile, start, use.work)), use, slots


def is_blind(card: Card) -> bool:
    """Whether starts on a GPU are not known."""
    return any(each.instance.start is None for each in card.items)


def drop(way: Way) -> Iterator[Choice]:
    """D: iterate over what the floors can miss, the largest for its supply first."""
    found = []
    for gpu, item in way.leaving():
        if not item.supply or item.supply <= way.spared(item.service):
            gain = item.slots.bit_count() / (0.01 + _waste(way, ((gpu, item),)))
            found.append((gain * way.manner.noise(1.0), gpu, item))
    found.sort(key=itemgetter(0), reverse=True)
    for _, gpu, item in found:
        yield Choice(goes=((gpu, item),))
