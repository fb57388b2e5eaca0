"""Why fewer spare GPUs will not do: what can never stop or begin, or all that can be reached.

Both are said of sequences that create or delete one instance at a time, with no more GPUs in use
than a number, all floors kept after each. Every transition is one: its actions in the order of the
file, a restart or a repartition passing through the state without what it removes and without what
it adds. Of each GPU only those instances of ours count that run or start, at a point that has a
floor to keep or is wanted; all else can be deleted first, and what starts counts as if it ran
already.

**What never stops (X) and never begins (Y).** Consider the first moment at which the removal of an
instance of X or the creation of one of Y begins. X is in its place, nothing of Y is there, and the
floors hold without the one that is being removed or created, which has its slots all the same. So
if no filling of the room beside X does that, with nothing of Y and the others at any points, then X
stays and Y never comes. Prices of instances prove it where all room is worth less than the cheapest
instances that give each service what it lacks, and the one that is created: what fills the room
would have to be worth both.

**All that can be reached.** The search is done again, GPUs that are equal being in any order, and
must meet as many states at each distance as the file says, and not the target.

What is wanted is the target as it stands, or all its instances on no more GPUs of each type.
A proof about tools that only cut whole GPUs is looked at in ``first_repartition.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from .first_repartition import first_repartition_faults
from .ground import Ground, ground_of
from .knapsacks import cheapest_option
from .reachable import exhausted_faults
from .reading import ZERO, Fault, show
from .room import Held, Shape, dearest, fillings, shape
from .transition import Exhausted, FirstCut, Fixed, Frozen, Prices, Transition

#: So many partial fillings are tried.
_TRIALS = 200_000
#: In the place of a service: room for the first instance that begins.
_ROOM = ""


def necessity_faults(of: Transition, proof: Frozen | Exhausted | FirstCut, most: int) -> list[str]:
    """Say why a proof that no more than ``most`` GPUs in use will not do, is none."""
    try:
        if isinstance(proof, FirstCut):
            return first_repartition_faults(of, proof, most)
        ground = ground_of(of)
        if isinstance(proof, Exhausted):
            return exhausted_faults(ground, proof, most)
        return _frozen_faults(ground, proof, most)
    except Fault as fault:
        return [str(fault)]


# --- what never stops and never begins ------------------------------------------------------------


class Space(NamedTuple):
    """Room on a GPU; ``group`` is where it is counted if it is empty."""

    device: str
    shape: Shape
    held: Held
    group: str | None


#: What an instance of a profile of a device can give: an amount of one of some needs.
_Gives = dict[tuple[str, str], dict[str, Fraction]]


def _spaces(ground: Ground, stays: Collection[str], able: Collection[str]) -> Iterator[Space]:
    for site in ground.sites:
        own = {(profile, start) for profile, start, point in site.held if point in stays}
        held = site.foreign | own
        profiles = frozenset(ground.kinds[point].profile for point in site.able & set(able))
        key = site.card.device.key
        yield Space(key, shape(site.card.device, profiles), held, None if held else key)


def _frozen_faults(ground: Ground, proof: Frozen, most: int) -> list[str]:
    at_start = Counter(point for site in ground.sites for *_, point in site.held)
    stays, never = ({each.point for each in part} for part in (proof.stays, proof.never))
    if len(stays) < len(proof.stays) or len(never) < len(proof.never):
        return ["a point is there twice"]
    for point in sorted(stays):
        if not at_start[point] or not ground.kinds[point].supply:
            return [f"{show(point)} does not run at the start for a service with a floor"]
    for point in sorted(never):
        if point not in ground.kinds or at_start[point]:
            return [f"{show(point)} runs at the start, or is not considered"]
    faults = []
    for part, begins in ((proof.stays, False), (proof.never, True)):
        for fixed in part:
            if not _is_refused(ground, fixed, stays, never, at_start, most, begins=begins):
                what = "begin" if begins else "stop"
                faults.append(f"that {show(fixed.point)} can never {what} does not follow")
    return faults or _end_faults(ground, proof, stays, never, at_start)


def _is_refused(
    ground: Ground,
    fixed: Fixed,
    stays: set[str],
    never: set[str],
    at_start: Mapping[str, int],
    most: int,
    *,
    begins: bool,
) -> bool:
    """Whether nothing that can be beside what stays keeps the floors at that moment."""
    needs = dict(ground.floors)
    for point in stays:
        kind = ground.kinds[point]
        needs[kind.service] -= at_start[point] * kind.supply
    own = ground.kinds[fixed.point]
    if begins:
        needs[_ROOM] = Fraction(1)
    else:
        needs[own.service] += own.supply
    needs = {name: need for name, need in needs.items() if need > 0}
    gives: _Gives = {}
    able = {fixed.point} if begins else set()
    for point, kind in ground.kinds.items():
        if kind.supply and kind.service in needs and point not in never:
            able.add(point)
            best = gives.setdefault((kind.device, kind.profile), {})
            best[kind.service] = max(best.get(kind.service, ZERO), kind.supply)
    if begins:
        gives.setdefault((own.device, own.profile), {})[_ROOM] = Fraction(1)
    spaces = list(_spaces(ground, stays, able))
    free = most - sum(space.group is None for space in spaces)
    spaces = [each if each.group is None else each._replace(group="") for each in spaces]
    return bool(needs) and _is_too_much(needs, gives, spaces, {"": max(0, free)}, fixed.prices)


def _end_faults(
    ground: Ground, proof: Frozen, stays: set[str], never: set[str], at_start: Mapping[str, int]
) -> list[str]:
    """Whether the target is out of reach because of what stays and what never comes."""
    if any(ground.wanted[point] for point in never):
        return []
    if proof.of_target:
        moved = [e for s in ground.sites for e in s.held - s.wanted if e[2] in stays]
        return [] if moved else ["the target has all that stays"]
    left = {point: n - at_start[point] * (point in stays) for point, n in ground.wanted.items()}
    if min(left.values(), default=0) < 0 or not stays <= left.keys():
        return []
    needs: dict[str, Fraction] = {}
    gives: _Gives = {}
    for point, n in left.items():
        if n:
            block = ground.kinds[point].device, ground.kinds[point].profile
            name = " ".join(block)
            needs[name] = needs.get(name, ZERO) + n
            gives[block] = {name: Fraction(1)}
    spaces = list(_spaces(ground, stays, left))
    used = Counter(space.device for space in spaces if space.group is None)
    most = {space.device: ground.gpus[space.device] - used[space.device] for space in spaces}
    if min(most.values(), default=0) < 0 or _is_too_much(needs, gives, spaces, most, proof.end):
        return []
    return ["that there is no room for the rest of the target does not follow"]


def _is_too_much(
    needs: Mapping[str, Fraction],
    gives: _Gives,
    spaces: list[Space],
    most: Mapping[str, int],
    prices: Prices | None,
) -> bool:
    """Whether the spaces cannot give all needs: by prices, or by trying everything."""
    if prices is None:
        return _trial(needs, gives, spaces, most)
    asked = ZERO
    for name, need in needs.items():
        able = {block: own[name] for block, own in gives.items() if name in own}
        costs = [prices.get(block, ZERO) for block in able]
        least = cheapest_option(costs, list(able.values()), need)
        if least is None:
            return True  # nothing gives it
        asked += least
    total = ZERO
    empty: dict[str, list[Fraction]] = {group: [] for group in most}
    for space in spaces:
        own = {name: price for (device, name), price in prices.items() if device == space.device}
        value = dearest(space.shape, space.held, own)
        if space.group is None:
            total += value
        else:
            empty[space.group].append(value)
    for group, values in empty.items():
        total += sum(sorted(values, reverse=True)[: most[group]], ZERO)
    return asked > total


def _trial(
    needs: Mapping[str, Fraction], gives: _Gives, spaces: list[Space], most: Mapping[str, int]
) -> bool:
    """Whether no choice of a filling for each space, and of what it is used for, gives all."""
    names = sorted(needs)
    groups = sorted(most)
    left = [_TRIALS]

    @cache
    def options(at: int) -> list[tuple[Fraction, ...]]:
        space = spaces[at]
        found = set()
        for filling in fillings(space.shape, space.held):
            given = {tuple(ZERO for _ in names)}
            for profile, n in filling:
                own = gives.get((space.device, profile), {})
                for _ in range(n if own else 0):
                    given = {
                        tuple(
                            g + own.get(k, ZERO) * (k == name)
                            for k, g in zip(names, v, strict=True)
                        )
                        for v in given
                        for name in own
                    }
                    _spend(left, len(given))
            found |= given
        return sorted(found, reverse=True)

    @cache
    def can(at: int, lacks: tuple[Fraction, ...], free: tuple[int, ...]) -> bool:
        if not any(lacks):
            return True
        if at == len(spaces):
            return False
        group = spaces[at].group
        if group is not None:
            number = groups.index(group)
            if can(at + 1, lacks, free):
                return True
            if not free[number]:
                return False
            free = (*free[:number], free[number] - 1, *free[number + 1 :])
        _spend(left, len(options(at)))
        return any(
            can(at + 1, tuple(max(ZERO, a - b) for a, b in zip(lacks, given, strict=True)), free)
            for given in options(at)
        )

    return not can(0, tuple(needs[name] for name in names), tuple(most[g] for g in groups))


def _spend(left: list[int], amount: int) -> None:
    left[0] -= amount
    if left[0] < 0:
        raise Fault("without prices there is too much to be tried")
