"""Search for a sequence of actions in which every floor holds, on as few GPUs as allowed.

What comes to an opening is decided when it is free: what waits most. In this order:

A. a free opening is filled;
B. what blocks an opening goes, where the floors can miss it, and the opening is filled;
C. temporary instances cover what the floors would miss; then as in B. Processes that are to come to
   a GPU in use come to an empty one instead;
D. something that goes is deleted, to make room;
E. otherwise: another beginning, at random; of switches all orders, up to a number of states.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from math import ceil, inf
from operator import attrgetter
from typing import NamedTuple

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
    remove_rest,
)
from .search_state import SearchSettings, SearchState

#: Maximum number of states of the search over all orders of switches.
_STATES = 5000
#: Maximum number of sequences to choose from.
_WANTED = 6
#: The number of beginnings by the rules alone; those at random are left out where nothing can be
#: quicker: of 60 drawn changes none came out otherwise for that.
_RULES = 2
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
    size = 1 + len(goal.openings) ** 2

    def note(state: SearchState, end: float) -> Sequenced | None:
        if not state.is_done:
            return None
        found.append(Sequenced(tuple(state.actions), tuple(state.groups), end, state.settings))
        return found[-1]

    def look(settings: SearchSettings) -> Sequenced | None:
        return note(*_search_in_time(begin.copy(settings), options.durations, limits))

    def is_least(one: Sequenced) -> bool:
        timed = Timed.of(goal.start, one.actions, options.durations, options.max_parallel)
        least = find_least(goal.start, one.actions, goal.floors, timed)
        return one.end <= least and not any(temporaries(goal.start, one.actions))

    for attempt in range(1 + options.restarts):
        if (attempt and limits.over) or len(found) * size >= _ENOUGH:
            break
        if attempt == _RULES and found and is_least(min(found, key=attrgetter("end"))):
            break
        settings = SearchSettings(
            rng.randrange(2**32) if attempt >= _RULES else None,
            room_first=attempt % 4 != 0,
            side_by_side=attempt % 2 == 0,
        )
        look(settings)
    if not found and goal.tool is None and (last := _search_all(begin, limits)) is not None:
        note(last, inf)
    if not found:
        return []
    fewest = min(len(each.actions) for each in found)

    def cost(one: Sequenced) -> tuple[int, float, int]:
        more = max(0, len(one.actions) - fewest - _MORE_ACTIONS)
        return more, one.end, len(one.actions)

    best = min(found, key=cost)
    for _ in range(0 if is_least(best) else min(_CHANGES, _ENOUGH // size - len(found))):
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
    now = done = 0
    # beyond so many actions it goes in circles
    most = 100 + 20 * (len(state.goal.openings) + sum(len(each.held) for each in state.gpus))
    free_at: dict[int, int] = {}
    due: list[tuple[int, int, int, int]] = []

    def begin(choice: Choice) -> None:
        nonlocal done
        apply_choice(state, choice)
        done = _begin_actions(state, done, now, durations, free_at, due)

    while not limits.over and done <= most:
        while state.blockages and (choice := next(fill_openings(state), None)) is not None:
            begin(choice)
        for choice in clear_openings(state) if state.blockages else ():
            begin(choice)
        for choice in remove_rest(state) if not state.blockages else ():
            begin(choice)
        for choice in cover_openings(state) if state.blockages and not due else ():
            begin(choice)
            if not state.settings.side_by_side or state.goal.tool is None:
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


def _begin_actions(
    state: SearchState,
    done: int,
    now: int,
    durations: Durations,
    free_at: dict[int, int],
    due: list[tuple[int, int, int, int]],
) -> int:
    """Note when the latest actions end; returns how many there are now."""
    goal = state.goal
    for action, group in zip(state.actions[done:], state.groups[done:], strict=True):
        gpu = goal.number[action.gpu]
        is_beside = action.what is What.RESTART and not group
        begin = now if is_beside or group else max(now, free_at.get(gpu, 0))
        end = begin + ceil(1000 * durations.of(action))
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
    return len(state.actions)


def _search_all(begin: SearchState, limits: Limits) -> SearchState | None:
    """E: go back on choices, depth first, until all is done or enough states were seen."""

    def list_choices(state: SearchState) -> Iterator[Choice]:
        rules = fill_openings, clear_openings, cover_openings
        return chain.from_iterable(rule(state) for rule in rules)

    seen = {_key(begin)}
    stack = [(begin, list_choices(begin))]
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
        if (key := _key(after)) in seen:
            continue
        if len(seen) >= _STATES or limits.over:
            return None
        seen.add(key)
        stack.append((after, list_choices(after)))
    return None


def _key(state: SearchState) -> object:
    return tuple(
        frozenset((e.instance.profile, e.instance.start, e.instance.work, e.goes) for e in g.held)
        for g in state.gpus
    )
