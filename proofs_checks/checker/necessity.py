"""Why fewer spare GPUs will not do: points that never stop, and points that never begin.

Said of sequences that create or delete one instance at a time, with no more GPUs in use than a
number, all floors kept after each. Every transition is one: its actions in the order of the file, a
restart or a repartition passing through the state without what it removes and without what it adds.
Of each GPU only those instances of ours count that run or start, at a point that has a floor to
keep or is wanted; all else can be deleted first, and what starts counts as if it ran already.

Consider the first moment at which the removal of an instance of X or the creation of one of Y
begins. X is in its place, nothing of Y is there, and the floors hold without the one that is being
removed or created, which has its slots all the same. Count slices, of memory or of compute. The
instances beside X that give each service what it lacks, without Y, and the one that is created have
no fewer than the cheapest such instances; and no more than the room beside X. If that is
impossible, X stays and Y never comes. So nothing is reached that lacks some of X or has some of Y.
What is wanted is the target as it stands, or all its instances, wherever they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from fractions import Fraction

from .ground import Ground, ground_of
from .knapsacks import cheapest_option
from .reading import ZERO, Fault, show
from .room import dearest, shape
from .transition import Frozen, Transition

_Points = AbstractSet[str]


def necessity_faults(of: Transition, proof: Frozen, most: int) -> list[str]:
    """Say why a proof that no more than ``most`` GPUs in use will not do, is none."""
    try:
        ground = ground_of(of)
    except Fault as fault:
        return [str(fault)]
    held = Counter(point for site in ground.sites for *_, point in site.held)
    stays, never = set(proof.stays), set(proof.never)
    for point in sorted(stays):
        if not held[point] or not ground.kinds[point].supply:
            return [f"{show(point)} does not run at the start for a service with a floor"]
    for point in sorted(never):
        if point not in ground.kinds or held[point]:
            return [f"{show(point)} runs at the start, or is not considered"]
    owed = dict(ground.floors)
    for point in stays:
        owed[ground.kinds[point].service] -= held[point] * ground.kinds[point].supply
    faults = []
    for point in sorted(stays | never):
        units = ("memory", "compute")
        if not any(_is_too_much(ground, owed, point, stays, never, most, unit) for unit in units):
            what = "begin" if point in never else "stop"
            faults.append(f"that {show(point)} can never {what} does not follow")
    if proof.of_target:
        gone = {point for site in ground.sites for *_, point in site.held - site.wanted}
    else:
        gone = {point for point, n in held.items() if n > ground.wanted[point]}
    if not (gone & stays or any(ground.wanted[point] for point in never)):
        faults.append("the target has all that stays, and nothing that never begins")
    return faults


def _is_too_much(
    ground: Ground,
    owed: dict[str, Fraction],
    point: str,
    stays: _Points,
    never: _Points,
    most: int,
    unit: str,
) -> bool:
    """Whether there is too little room for what is needed as one of a point stops or begins."""
    needs, own = dict(owed), ground.kinds[point]
    if point not in never:
        needs[own.service] += own.supply
    slices: dict[tuple[str, str], Fraction] = {}
    for site in ground.sites:
        for name, profile in site.card.device.profiles.items():
            slices[site.card.device.key, name] = Fraction(getattr(profile, unit))
    able = {
        name
        for name, kind in ground.kinds.items()
        if kind.supply and name not in never and needs[kind.service] > 0
    }
    needed = slices[own.device, own.profile] if point in never else ZERO
    for service, need in needs.items():
        if need > 0:
            kinds = [k for n, k in ground.kinds.items() if n in able and k.service == service]
            least = cheapest_option(
                [slices[kind.device, kind.profile] for kind in kinds],
                [kind.supply for kind in kinds],
                need,
            )
            if least is None:
                return True
            needed += least
    able |= never & {point}
    used, empty = list[Fraction](), list[Fraction]()
    amounts: dict[object, Fraction] = {}
    for site in ground.sites:
        there = site.foreign | {(profile, at) for profile, at, name in site.held if name in stays}
        key = site.card.device.key
        profiles = frozenset(ground.kinds[name].profile for name in site.able & able)
        if (key, there, profiles) not in amounts:
            worth = {name: slices[key, name] for name in profiles}
            room = dearest(shape(site.card.device, profiles), there, worth)
            amounts[key, there, profiles] = room
        (used if there else empty).append(amounts[key, there, profiles])
    free = max(0, most - len(used))
    return needed > sum(used, ZERO) + sum(sorted(empty, reverse=True)[:free], ZERO)
