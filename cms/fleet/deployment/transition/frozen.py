"""What can never stop and what can never begin: a proof that more spare GPUs are needed.

Theorem. Let X be kinds of work that run at the start, Y kinds that do not, and let

1. for each of X: with all instances of X in their places and one of this kind supplying nothing, no
   filling of the room beside them, with nothing of Y and on no more GPUs than may be in use, keeps
   all floors;
2. for each of Y: with all instances of X in their places and one of this kind anywhere, supplying
   nothing, no such filling of the room beside them keeps all floors.

Then no instance of X is ever removed, and none of Y is ever created.

Proof. Consider the first moment at which the removal of one of X or the creation of one of Y
begins. All of X is in its place, and nothing of Y is there. What is being removed supplies nothing
from now on, what is being created supplies nothing yet, and both have their slots; and every floor
holds. So what else is there is such a filling, and there is none. ∎

If the promise cannot be kept with X in its place and without Y, there is no transition. All
instances of a kind of work are alike in 1, since the room is the same for all. The largest X and Y
are found by leaving out, one after the other, what cannot be shown of all that is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import NamedTuple, TypeVar

from ....values.frozen import FrozenMap
from ..programs import Limits
from .covering import Covering, Give, Prices, Room, room_of
from .ground import Ground, Site
from .model import Fixed, Frozen

__all__ = ["Case", "find_frozen", "frozen_fault", "missing"]

K = TypeVar("K")

#: Columns of linear programs that are solved in one search.
_EFFORT = 100_000
#: In the place of a service: room for the first instance of what is to begin.
ROOM = ""


class Case(NamedTuple):
    """Something that is to stop or to begin.

    Attributes
    ----------
    use : int
    begins : bool
    stays, never : frozenset of int
        X and Y.
    """

    use: int
    begins: bool
    stays: frozenset[int]
    never: frozenset[int]


# --- what has to be impossible --------------------------------------------------------------------


def _beside(site: Site, stays: Collection[int]) -> tuple[tuple[str, int], ...]:
    own = tuple((each.profile, each.start) for each in site.held if each.use in stays)
    return (*site.foreign, *own)


def _rooms(ground: Ground, stays: Collection[int], uses: Iterable[int]) -> list[Room]:
    able = set(uses)
    found = []
    for site in ground.sites:
        held = _beside(site, stays)
        profiles = {ground.uses[at].profile for at in site.uses if at in able}
        found.append(room_of(site.gpu, held, profiles, None if held else site.gpu.key))
    return found


def missing(ground: Ground, most: int, case: Case) -> Covering | None:
    """Return what the room has to give as something stops or begins; None if nothing is missing."""
    needs = {name: floor - ground.base.get(name, 0) for name, floor in ground.floors.items()}
    held = ground.held()
    for each in case.stays:
        needs[ground.uses[each].work.service] -= held[each] * ground.uses[each].supply
    if case.begins:
        needs[ROOM] = Fraction(1)
    else:
        needs[ground.uses[case.use].work.service] += ground.uses[case.use].supply
    names = [name for name, need in needs.items() if need > 0]
    if not names:
        return None
    row = {name: at for at, name in enumerate(names)}
    best: dict[tuple[str, str], dict[int, Fraction]] = {}
    able = [case.use] if case.begins else []
    for number, (work, gpu, profile, supply) in enumerate(ground.uses):
        if work.service in row and supply and number not in case.never:
            able.append(number)
            own, at = best.setdefault((gpu, profile), {}), row[work.service]
            own[at] = max(own.get(at, Fraction(0)), supply)
    if case.begins:
        _, gpu, profile, _ = ground.uses[case.use]
        best.setdefault((gpu, profile), {})[row[ROOM]] = Fraction(1)
    gives = {block: [Give(*pair) for pair in own.items()] for block, own in best.items()}
    rooms = _rooms(ground, case.stays, able)
    in_use = sum(room.group is None for room in rooms)
    rooms = [room if room.group is None else room._replace(group="") for room in rooms]
    free = {"": max(0, most - in_use)}
    return Covering(tuple(needs[name] for name in names), gives, Counter(rooms), free)


def _end(ground: Ground, stays: Collection[int], never: Collection[int]) -> Covering | None:
    """What the room has to give in the end; None if counting alone says that it cannot."""
    held = ground.held()
    if any(held[use] > ground.wanted.get(use, 0) for use in stays):
        return None
    if any(ground.wanted.get(use, 0) for use in never):
        return None
    blocks: Counter[tuple[str, str]] = Counter()
    for use, n in ground.wanted.items():
        blocks[ground.uses[use].gpu, ground.uses[use].profile] += n - held[use] * (use in stays)
    names = sorted(block for block, n in blocks.items() if n)
    rooms = _rooms(ground, stays, ground.wanted)
    in_use = Counter(room.gpu for room in rooms if room.group is None)
    most = {room.gpu: ground.gpus.get(room.gpu, 0) - in_use[room.gpu] for room in rooms}
    if min(most.values(), default=0) < 0:
        return None
    gives = {block: [Give(at, Fraction(1))] for at, block in enumerate(names)}
    needs = tuple(Fraction(blocks[name]) for name in names)
    return Covering(needs, gives, Counter(rooms), most)


def _is_out_of_place(ground: Ground, stays: Collection[int], never: Collection[int]) -> bool:
    """Whether something that stays is not where the target has it, or it has what never begins."""
    return any(ground.wanted.get(use, 0) for use in never) or any(
        each.use in stays and each not in site.wanted for site in ground.sites for each in site.held
    )


# --- the check ------------------------------------------------------------------------------------


def frozen_fault(ground: Ground, most: int, proof: Frozen) -> str:
    """Say why a proof does not hold; nothing if it does.

    Parameters
    ----------
    ground : Ground
    most : int
        So many GPUs may be in use at once.
    proof : Frozen
    """
    number = {use.work: at for at, use in enumerate(ground.uses)}
    held = ground.held()
    stays = frozenset(number[work] for work, _ in proof.stays if work in number)
    never = frozenset(number[work] for work, _ in proof.never if work in number)
    if len(stays) < len(proof.stays) or not all(held[u] and ground.uses[u].supply for u in stays):
        return "what stays is there twice, has no floor, or does not run at the start"
    if len(never) < len(proof.never) or any(held[use] for use in never):
        return "what never begins is there twice, or at the start"
    for fixed, begins in ((proof.stays, False), (proof.never, True)):
        for work, prices in fixed:
            missed = missing(ground, most, Case(number[work], begins, stays, never))
            if missed is None:
                return f"{work} can stop without anything in its place"
            if not _holds(missed, prices):
                return f"that {work} can never {'begin' if begins else 'stop'} is not proved"
    if proof.places:
        wrong = _is_out_of_place(ground, stays, never)
        return "" if wrong else "the target has all that stays, and nothing that never begins"
    end = _end(ground, stays, never)
    if end is None or _holds(end, proof.end):
        return ""
    return "that the rest has no room is not proved"


def _holds(covering: Covering, prices: Prices | None) -> bool:
    """Whether it is proved that the room cannot give what is needed."""
    if prices is None:
        return bool(covering.is_too_much_by_trying())
    return covering.is_too_much(prices)


# --- the search -----------------------------------------------------------------------------------


def _refusal(covering: Covering, limits: Limits) -> tuple[bool, Prices | None]:
    """Return whether it is proved that the room cannot give what is needed, and prices for that."""
    prices = covering.prices(limits)
    if prices is None:
        return bool(covering.is_too_much_by_trying()), None
    return True, FrozenMap(prices)


def find_frozen(ground: Ground, most: int, limits: Limits, *, places: bool) -> Frozen | None:
    """Look for what can never stop or begin and is in the way of what is wanted.

    Parameters
    ----------
    ground : Ground
    most : int
        So many GPUs may be in use at once.
    limits : Limits
    places : bool
        Whether the target is to be reached as it stands.
    """
    held = ground.held()
    stays = {use for use in held if ground.uses[use].supply}
    never = {use for use in range(len(ground.uses)) if not held[use]}
    goes = {each.use for site in ground.sites for each in site.held - site.wanted}
    # what goes first: where all that stays is in its place in the target, there is no proof
    order = sorted(never) + sorted(stays, key=lambda use: (use not in goes, use))
    proved: dict[int, Prices | None] = {}
    left, at = _EFFORT, 0
    while at < len(order):
        use = order[at]
        at += 1
        if use not in stays and use not in never:
            continue
        if not (stays & goes or never) or left < 0 or limits.over:
            return None
        case = Case(use, use in never, frozenset(stays), frozenset(never))
        missed = missing(ground, most, case)
        if missed is not None:
            if proved.get(use) is not None and _holds(missed, proved[use]):
                continue
            left -= missed.size
            holds, prices = _refusal(missed, limits)
            if holds:
                proved[use] = prices
                continue
        stays.discard(use)
        never.discard(use)
        at = 0
    if not stays and not never:
        return None
    fixed = [
        tuple(Fixed(ground.uses[use].work, proved[use]) for use in sorted(part))
        for part in (stays, never)
    ]
    found = Frozen(fixed[0], fixed[1], places=places)
    if places:
        return found if _is_out_of_place(ground, stays, never) else None
    end = _end(ground, stays, never)
    if end is None:
        return found
    holds, last = _refusal(end, limits)
    if not holds:
        return None
    return Frozen(found.stays, found.never, last)
