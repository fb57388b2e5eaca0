"""In which order: a sequence of actions in which every floor holds, on as few GPUs as allowed.

What a position gets is decided when it is free: what waits most. In this order:

A. a free position is filled;
B. what stands in a position's way is deleted, where the floors can miss it, and the position
   filled;
C. temporary instances cover what the floors would miss, in any room there is; then as in B;
D. something that goes is deleted, to make room;
E. that was it: another beginning, at random, and where few GPUs are left a search over all
   choices of A to D.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import ceil, inf
from typing import NamedTuple

from ...placement.program import Limits
from .durations import Durations
from .manner import Manner
from .model import Action, What
from .rules import Choice, choices, clear, cover, do, drop, fill, rest, rooms
from .state import Fleet
from .way import Way

__all__ = ["sequences"]

#: The search over all choices: the most GPUs that are not done, and the most states times
#: GPUs of the fleet.
_FEW_GPUS, _STATES = 6, 6000
#: Maximum number of sequences to choose from.
_WANTED = 6
#: Maximum number of beginnings that differ a little from the quickest one; fewer where they times
#: the square of the number of positions exceed a limit.
_CHANGES, _ENOUGH = 60, 150_000
#: Maximum number of additional actions for less time.
_MORE_ACTIONS = 2


class _Done(NamedTuple):
    actions: tuple[Action, ...]
    end: float
    manner: Manner


def sequences(
    fleet: Fleet,
    most: int,
    *,
    seed: int = 0,
    restarts: int = 12,
    durations: Durations | None = None,
    limits: Limits,
) -> list[tuple[Action, ...]]:
    """Find sequences of actions that keep the floors; of small fleets several, to choose from.

    That none was found does not say that there is none.
    """
    durations = durations or Durations()
    rng = random.Random(seed)
    begin = Way(fleet, most)
    nearly: Way | None = None
    found: list[_Done] = []
    for attempt in range(1 + restarts):
        if attempt and limits.over:
            break
        manner = Manner(
            rng.randrange(2**32) if attempt > 1 else None,
            room_first=attempt % 4 != 0,
            side_by_side=attempt % 2 == 0,
        )
        way, end = _in_time(begin.copy(manner), durations, limits)
        if not way.is_done and not found:
            way, few = _one_by_one(begin.copy(manner.again()), limits)
            nearly, end = nearly or few, inf
        if way.is_done:
            found.append(_Done(without_needless(fleet, way.actions), end, manner))
            if len(found) * len(fleet.positions) ** 2 >= _ENOUGH:
                break
    if not found and nearly is not None:
        last = _searched(nearly.copy(Manner()), limits)
        if last is not None:
            found.append(_Done(without_needless(fleet, last.actions), inf, Manner()))
    if found:
        _improve(begin, found, rng, durations, limits)
    fewest = min((len(each.actions) for each in found), default=0) + _MORE_ACTIONS
    few_actions = [each for each in found if len(each.actions) <= fewest]
    few_actions.sort(key=lambda each: (each.end, len(each.actions)))
    return [each.actions for each in few_actions[:_WANTED]]


def _improve(
    begin: Way, found: list[_Done], rng: random.Random, durations: Durations, limits: Limits
) -> None:
    """Go again in manners that differ a little from the best; what arrives is added."""
    fleet = begin.fleet
    fewest = min(len(each.actions) for each in found)

    def cost(done: _Done) -> tuple[int, float, int]:
        more = max(0, len(done.actions) - fewest - _MORE_ACTIONS)
        return more, done.end, len(done.actions)

    best = min(found, key=cost)
    tries = _ENOUGH // (1 + len(fleet.positions) ** 2) - len(found)
    for _ in range(min(_CHANGES, tries) if fleet.positions else 0):
        if limits.over:
            break
        manner = best.manner.changed(len(fleet.services), rng)
        way, end = _in_time(begin.copy(manner), durations, limits)
        if way.is_done:
            done = _Done(without_needless(fleet, way.actions), end, manner)
            found.append(done)
            if cost(done) <= cost(best):
                best = done


def _in_time(way: Way, durations: Durations, limits: Limits) -> tuple[Way, float]:
    """Go by the rules as time goes by: what can begin now begins now, side by side.

    Covers are looked for, and what goes is dropped for room, only when nothing is under way. What
    is returned is done, or nothing goes on; beside it, when the last action ends.
    """
    now, done = 0, 0
    free_at: dict[int, int] = {}
    due: list[tuple[int, int, int, int]] = []
    while not limits.over:
        choice = next(_now(way), None)
        if choice is None and not due:
            reserved: set[int] = set()
            for found in cover(way) if way.entries else ():
                services = _taken(way, found)
                if reserved.isdisjoint(services) and _is_still_good(way, found):
                    reserved |= services
                    do(way, Choice(found.covers))
                    done = _begun(way, done, now, durations, free_at, due)
                    if not way.manner.side_by_side:
                        break
            if not due:
                choice = next(drop(way), None)
                if choice is None:
                    break
        if choice is not None:
            do(way, choice)
            done = _begun(way, done, now, durations, free_at, due)
            continue
        now = due[0][0]
        while due and due[0][0] == now:
            _, service, supply, gpu = heappop(due)
            if service >= 0:
                way.withheld[service] -= supply
            if gpu in way.busy and free_at[gpu] <= now:
                way.busy.discard(gpu)
    return way, now


def _now(way: Way) -> Iterator[Choice]:
    if not way.entries:
        yield from rest(way)
        return
    yield from fill(way)
    for choice in clear(way):
        # what a position gets is decided when it is free
        yield choice._replace(position=-1) if choice.goes else choice


def _begun(
    way: Way,
    done: int,
    now: int,
    durations: Durations,
    free_at: dict[int, int],
    due: list[tuple[int, int, int, int]],
) -> int:
    """Note when the latest actions end; returns how many there are now."""
    fleet = way.fleet
    for action in way.actions[done:]:
        gpu = fleet.number[action.gpu]
        begin = now if action.what is What.RESTART else max(now, free_at.get(gpu, 0))
        end = begin + ceil(1000 * durations.of(action))
        if action.what is not What.RESTART:
            free_at[gpu] = end
            way.busy.add(gpu)
        for each in action.adds or (None,):
            service, supply = -1, 0
            if each is not None:
                service, supply = fleet.counted(each.work)
            if service >= 0:
                way.withheld[service] += supply
            heappush(due, (end, service, supply, gpu))
    return len(way.actions)


def _taken(way: Way, choice: Choice) -> set[int]:
    found = {each.service for _, each in choice.goes if each.supply}
    if choice.position >= 0:
        entry = way.entries[choice.position]
        found |= {service for service, _ in entry.needs} if entry is not None else set()
    return found


def _is_still_good(way: Way, choice: Choice) -> bool:
    """Whether there is room for all covers, after others have been made."""
    trial = way.copy()
    fleet = way.fleet
    for gpu, instance in choice.covers:
        slots = fleet.slots(fleet.cards[gpu].gpu, instance)
        if not trial.can_take(gpu) or not fleet.fits(
            gpu, trial.cards[gpu], instance.profile, slots
        ):
            return False
        trial.cover(gpu, instance)
    return True


def _one_by_one(way: Way, limits: Limits) -> tuple[Way, Way | None]:
    """Go by the rules, each action ended before the next begins; also where few GPUs were left."""
    few, steps = None, 0
    while not limits.over:
        if few is None and steps % 8 == 0 and _left(way) <= _FEW_GPUS:
            few = way.copy()
        steps += 1
        choice = next(choices(way), None)
        if choice is None:
            break
        do(way, choice)
    return way, few


def _left(way: Way) -> int:
    gpus = {way.fleet.positions[number].gpu for number in way.entries}
    return len(gpus | {gpu for gpu, _ in way.leaving()})


def _searched(begin: Way, limits: Limits) -> Way | None:
    """E: go back on choices, depth first, until all is done or enough states were seen."""
    seen = {_key(begin)}
    stack = [(begin, _every(begin))]
    while stack:
        way, choices = stack[-1]
        if way.is_done:
            return way
        choice = next(choices, None)
        if choice is None:
            stack.pop()
            continue
        after = way.copy()
        do(after, choice)
        key = _key(after)
        if key in seen:
            continue
        if len(seen) * len(way.cards) >= _STATES or limits.over:
            return None
        seen.add(key)
        stack.append((after, _every(after)))
    return None


def _key(way: Way) -> object:
    return tuple(
        frozenset((e.instance.profile, e.instance.start, e.instance.work, e.goes) for e in c.items)
        for c in way.cards
    )


def _every(way: Way) -> Iterator[Choice]:
    """Iterate over all choices, also those that the rules would not make."""
    yield from choices(way)
    positions = way.fleet.positions
    for number, entry in way.entries.items():
        if entry is None:
            continue
        gpu = positions[number].gpu
        for use in way.need[positions[number].pool]:
            if entry.blockers and way.can_miss(entry.needs):
                yield Choice((), (), number, use)
            elif not entry.blockers and way.can_take(gpu):
                yield Choice(position=number, use=use)
    for gpu, item in way.leaving():
        if item.is_temporary and item.supply <= way.spared(item.service):
            yield Choice(goes=((gpu, item),))
    for gpu in range(len(way.cards)):
        for covers in way.fleet.covers:
            for found, *_ in rooms(way, gpu, covers):
                yield Choice((found,))


def without_needless(fleet: Fleet, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Leave out temporary instances without which every floor holds as well."""
    done = list(actions)
    at = len(done) - 1
    while at >= 0:
        action = done[at]
        if action.is_temporary and action.what is What.CREATE:
            (instance,) = action.adds
            end = next(
                b
                for b in range(at + 1, len(done))
                if done[b].gpu == action.gpu and instance in done[b].removes
            )
            fewer = [*done[:at], *done[at + 1 : end], *_without(done[end]), *done[end + 1 :]]
            service = instance.work.service if instance.work else ""
            if _holds(fleet, fewer, service):
                done = fewer
        at -= 1
    return tuple(done)


def _without(action: Action) -> tuple[Action, ...]:
    if not action.adds:
        return ()
    return (replace(action, what=What.CREATE, removes=(), is_temporary=False),)


def _holds(fleet: Fleet, actions: Sequence[Action], service: str) -> bool:
    floor = fleet.floors.get(service)
    if floor is None or floor.rps <= 0:
        return True
    capacity = fleet.start.capacity(service)
    for action in actions:
        if (gone := action.removed_rps(service)) and (capacity := capacity - gone) < floor.rps:
            return False
        capacity += action.added_rps(service)
    return True
