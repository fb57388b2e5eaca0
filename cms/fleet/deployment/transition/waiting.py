"""Who waits most: which of the instances that are to come goes to a free position.

Either the service that has most to come before all that goes can go; or the one that frees most
room for what it takes, soonest. The first brings all services on alike; the second is for fleets
that are nearly full, where each is brought on alone until something of it can go.
"""

from __future__ import annotations

from collections.abc import Iterable

from .way import Way

__all__ = ["waits"]


def waits(way: Way, uses: Iterable[int]) -> dict[int, tuple[float, int]]:
    """Return how much each use of a position is waited for; the largest goes first."""
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
