"""Search for a sequence of actions in which every floor holds, on as few GPUs as allowed.

What comes to an opening is decided when it is free: what waits most. In this order:

A. a free opening is filled;
B. what blocks an opening goes, where the floors can miss it, and the opening is filled;
C. temporary instances cover what the floors would miss; then as in B. Processes that are to come to
   a GPU in use come to an empty one instead;
D. something that goes is deleted, to make room;
E. otherwise: another beginning, at random, and at last a search over all choices of A to D.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
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
    remove_rest,
)
from .search_state import SearchSettings, SearchState
from .waits import ordered

#: The search over all choices: the most states times the square of the number of GPUs, beside two
#: for each opening with so many GPUs in all; of switches, which are cheap, the most states.
_STATES, _COPIES, _SWITCH_STATES = 30_000, 2_000_000, 5000
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
    size = 1 + len(goal.openings) ** 2

    def note(state: SearchState, end: float) -> Sequenced | None:
        if not state.is_done:
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
        seed = rng.randrange(2**32) if attempt > 1 else None
        look(SearchSettings(seed, room_first=attempt % 4 != 0, side_by_side=attempt % 2 == 0))
    if not found and not note(_search_all(begin, limits), inf):
        return []
    fewest = min(len(each.actions) for each in found)

    def cost(one: Sequenced) -> tuple[int, float, int]:
        return max(0, len(one.actions) - fewest - _MORE_ACTIONS), one.end, len(one.actions)

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
    goal, now = state.goal, 0
    # a longer order only returns to states it has visited
    most = 100 + 20 * (len(goal.openings) + sum(len(each.held) for each in state.gpus))
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


def _search_all(begin: SearchState, limits: Limits) -> SearchState:
    """E: go back on choices, depth first, until all is done or enough states were seen."""
    seen = {_key(begin)}
    stack = [(begin, list_choices(begin))]
    n, openings = len(begin.gpus), len(begin.goal.openings)
    most = min(2 * openings, _COPIES // n) + _STATES // n**2
    most = _SWITCH_STATES if begin.goal.tool is None else most
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
            break
        seen.add(key)
        stack.append((after, list_choices(after)))
    return begin


def _key(state: SearchState) -> int:
    return hash(tuple(  # a state of 3,000 GPUs takes a megabyte
        frozenset((e.instance.profile, e.instance.start, e.instance.work, e.goes) for e in g.held)
        for g in state.gpus
    ))  # fmt: skip


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
