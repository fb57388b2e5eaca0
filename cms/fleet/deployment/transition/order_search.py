"""Search for a sequence of actions in which every floor holds, on as few GPUs as allowed.

What comes to an opening is decided when it is free: what waits most. In this order:

A. a free opening is filled;
B. what blocks an opening goes, where the floors can miss it, and the opening is filled;
C. temporary instances cover what the floors would miss; then as in B. Processes that are to come to
   a GPU in use come to an empty one instead;
D. something that goes is deleted, to make room;
E. otherwise: another beginning, at random, and where few GPUs are left a search over all choices of
   A to D.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import ceil, inf
from typing import NamedTuple

from ....errors import AlgorithmError
from ...placement.program import Limits
from .durations import Durations, Timed, find_least
from .goal import TransitionGoal
from .model import Action, What
from .replay import temporaries
from .search_rule import (
    Choice,
    apply_choice,
    clear_openings,
    cover_openings,
    drop_instances,
    fill_openings,
    list_choices,
    list_rooms,
    remove_rest,
)
from .search_state import SearchSettings, SearchState
from .waits import ordered

#: The search over all choices: the most GPUs that are not done, and the most states times
#: GPUs of the fleet; of switches, which are cheap, all GPUs and so many states.
_FEW_GPUS, _STATES, _SWITCH_STATES = 6, 6000, 5000
#: Maximum number of sequences to choose from.
_WANTED = 6
#: Maximum number of beginnings that differ a little from the quickest one; fewer where they times
#: the square of the number of openings exceed a limit, and none where nothing can be quicker.
_CHANGES, _ENOUGH = 60, 150_000
#: Maximum number of additional actions for less time.
_MORE_ACTIONS = 2


class Sequenced(NamedTuple):
    """A sequence that was found."""

    actions: tuple[Action, ...]
    groups: tuple[int, ...]  # by action: the number of what happens at once, 0 where alone
    end: float  # in milliseconds, as the search counts
    settings: SearchSettings


@dataclass(frozen=True)
class SearchOptions:
    """How much is searched, and what for."""

    limits: Limits
    durations: Durations = field(default_factory=Durations)
    max_parallel: int | None = None
    seed: int = 0
    restarts: int = 12  # beginnings at random


def find_sequences(goal: TransitionGoal, most: int, options: SearchOptions) -> list[Sequenced]:
    """Find sequences of actions that keep the floors; of small fleets several, to choose from.

    That none was found does not say that there is none.
    """
    limits, rng, begin = options.limits, random.Random(options.seed), SearchState(goal, most)
    found: list[Sequenced] = []
    few: SearchState | None = None
    size = 1 + len(goal.openings) ** 2

    def note(state: SearchState | None, end: float = inf) -> Sequenced | None:
        if state is None or not state.is_done:
            return None
        every = tuple(state.actions)
        actions = omit_needless(goal, every) if goal.cuts_parts else every
        groups = tuple(state.groups[: len(actions)])  # where any are left out, all are alone
        found.append(Sequenced(actions, groups, end, state.settings))
        return found[-1]

    def look(settings: SearchSettings) -> Sequenced | None:
        return note(*_search_in_time(begin.copy(settings), options.durations, limits))

    for attempt in range(1 + options.restarts):
        if (attempt and limits.over) or len(found) * size >= _ENOUGH:
            break
        settings = SearchSettings(
            rng.randrange(2**32) if attempt > 1 else None,
            room_first=attempt % 4 != 0,
            side_by_side=attempt % 2 == 0,
        )
        if not look(settings) and not found:
            state, some = _search_one_by_one(begin.copy(replace(settings)), limits)
            few = few or some
            note(state)
    if not found and (few is None or not note(_search_all(few.copy(SearchSettings()), limits))):
        return []
    fewest = min(len(each.actions) for each in found)

    def cost(one: Sequenced) -> tuple[int, float, int]:
        more = max(0, len(one.actions) - fewest - _MORE_ACTIONS)
        return more, one.end, len(one.actions)

    best = min(found, key=cost)
    timed = Timed.of(goal.start, best.actions, options.durations, options.max_parallel)
    least = find_least(goal.start, best.actions, goal.floors, timed)
    is_least = best.end <= least and not any(temporaries(goal.start, best.actions))
    for _ in range(0 if is_least else min(_CHANGES, _ENOUGH // size - len(found))):
        if limits.over:
            break
        one = look(best.settings.vary(len(goal.services), rng))
        if one is not None and cost(one) <= cost(best):
            best = one
    few_actions = min(len(each.actions) for each in found) + _MORE_ACTIONS
    found = [each for each in found if len(each.actions) <= few_actions]
    return sorted(found, key=lambda each: (each.end, len(each.actions)))[:_WANTED]


def _search_in_time(
    state: SearchState, durations: Durations, limits: Limits
) -> tuple[SearchState, float]:
    """Go by the rules as time goes by: what can begin now begins now, side by side.

    Covers are looked for, and what goes is dropped for room, only when nothing is under way. What
    is returned is done, or nothing goes on; beside it, when the last action ends.
    """
    goal, now, most = state.goal, 0, _limit_actions(state)
    free_at: dict[int, int] = {}
    due: list[tuple[int, int, int, int]] = []

    def begin(choice: Choice) -> None:
        done = len(state.actions)
        apply_choice(state, choice)
        for action, group in zip(state.actions[done:], state.groups[done:], strict=True):
            gpu = goal.number[action.gpu]
            is_beside = action.what is What.RESTART and not group
            first = now if is_beside or group else max(now, free_at.get(gpu, 0))
            end = first + ceil(1000 * durations.of(action))
            if not is_beside:
                free_at[gpu] = max(end, free_at.get(gpu, 0))
                if gpu not in state.busy:
                    state.busy.add(gpu)
                    state.in_use += not state.gpus[gpu].held  # until it is empty
            for work in [each.work for each in action.adds] or [None]:
                service, supply = goal.count(work)
                if service >= 0:
                    state.withheld[service] += supply
                heappush(due, (end, service, supply, gpu))

    while not limits.over and len(state.actions) <= most:
        while state.blockages and (choice := next(fill_openings(state), None)) is not None:
            begin(choice)
        for choice in clear_openings(state) if state.blockages else ():
            # what comes to an opening is decided when it is free
            begin(choice._replace(opening=-1) if choice.gone else choice)
        for choice in remove_rest(state) if not state.blockages else ():
            begin(choice)
        for choice in cover_openings(state) if state.blockages and not due else ():
            begin(Choice(choice.covers))
            if not state.settings.side_by_side or goal.tool is None:
                break
        if not due:
            drop = next(drop_instances(state), None)
            if drop is None:
                break
            begin(drop)
            continue
        now = due[0][0]
        while due and due[0][0] == now:
            _, service, supply, gpu = heappop(due)
            if service >= 0:
                state.withheld[service] -= supply
            if gpu in state.busy and free_at[gpu] <= now:
                state.busy.discard(gpu)
                state.in_use -= not state.gpus[gpu].held
    return state, now


def _search_one_by_one(
    state: SearchState, limits: Limits
) -> tuple[SearchState, SearchState | None]:
    """Go by the rules, each action ended before the next begins; also where few GPUs were left."""
    few, steps, most = None, 0, _limit_actions(state)
    while not limits.over and steps <= most:
        is_few = state.goal.tool is None or (steps % 8 == 0 and _count_left(state) <= _FEW_GPUS)
        if few is None and is_few:
            few = state.copy()
        steps += 1
        choice = next(list_choices(state), None)
        if choice is None:
            break
        apply_choice(state, choice)
    return state, few


def _count_left(state: SearchState) -> int:
    gpus = {gpu for number in state.blockages for gpu in state.goal.openings[number].gpus}
    return len(gpus | {gpu for gpu, _ in state.leaving()})


def _limit_actions(state: SearchState) -> int:
    """Return a number of actions after which a search goes in circles."""
    return 100 + 20 * (len(state.goal.openings) + sum(len(each.held) for each in state.gpus))


def _search_all(begin: SearchState, limits: Limits) -> SearchState | None:
    """E: go back on choices, depth first, until all is done or enough states were seen."""
    seen = {_key(begin)}
    stack = [(begin, _list_every(begin))]
    most = _SWITCH_STATES if begin.goal.tool is None else _STATES // len(begin.gpus)
    while stack:
        state, choices = stack[-1]
        if state.is_done:
            return state
        choice = next(choices, None)
        if choice is None:
            stack.pop()
            continue
        after = state.copy()
        apply_choice(after, choice)
        key = _key(after)
        if key in seen:
            continue
        if len(seen) >= most or limits.over:
            return None
        seen.add(key)
        stack.append((after, _list_every(after)))
    return None


def _key(state: SearchState) -> object:
    return tuple(
        frozenset((e.instance.profile, e.instance.start, e.instance.work, e.goes) for e in g.held)
        for g in state.gpus
    )


def _list_every(state: SearchState) -> Iterator[Choice]:
    """Iterate over all choices, also those that the rules would not make."""
    yield from list_choices(state)
    for number, blockage in state.blockages.items():
        opening = state.goal.openings[number]
        if blockage is None or opening.instance is None:
            continue
        is_free = not blockage.gone and state.can_take(opening.gpus[0])
        if is_free or (blockage.gone and state.can_miss(blockage.needs)):
            yield from (Choice(opening=number, use=use) for use in state.need[opening.pool])
    for gpu in range(len(state.gpus)) if state.goal.cuts_parts else ():
        for covers in state.goal.covers:
            for found, *_ in list_rooms(state, gpu, covers):
                yield Choice((found,))


def omit_needless(goal: TransitionGoal, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Leave out temporary instances without which every floor holds as well."""
    done = list(actions)
    for at in sorted(temporaries(goal.start, actions)[0], reverse=True):
        if done[at].what is not What.CREATE:
            continue
        (instance,), gpu = done[at].adds, done[at].gpu
        later = range(at + 1, len(done))
        end = next(b for b in later if done[b].gpu == gpu and instance in done[b].removes)
        left = [replace(done[end], what=What.CREATE, removes=())] if done[end].adds else []
        fewer = [*done[:at], *done[at + 1 : end], *left, *done[end + 1 :]]
        with suppress(AlgorithmError):
            ordered(goal.start, fewer, goal.floors)
            done = fewer
    return tuple(done)
