"""Fewer different machines for the same blocks of every job: the most repeated layout first.

A *layout* is a configuration and what its blocks are given to; a schedule has a group of machines
for each. How many machines take each configuration and how many blocks each content gets stay as
they are, so that the cost, and what every job gets, stay too. To find the fewest layouts is hard
(pattern minimisation in cutting stock); this looks for few, and promises nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from ..problem.parts import Block, Configuration
from ..schedule.contents import Content
from ..schedule.schedule import MachineGroup, Schedule

#: Divisions of what is left, after which the search is given up: some tenths of a second.
EFFORT = 600_000

#: What is left of each type of block: of contents, and None for idle ones.
_Left: TypeAlias = dict[Block, Counter[Content | None]]
_Worth: TypeAlias = Callable[[Configuration, int, int], int]
#: How good it is to repeat a configuration so often, of so many machines: each is tried.
_WORTHS: tuple[_Worth, ...] = (
    lambda shape, times, there: times,
    lambda shape, times, there: times * sum(shape.blocks.values()),
    lambda shape, times, there: times * 1000 // there,
)


class _TooLong(Exception):
    """The effort was spent, or there are as many layouts as are known to do."""


def fewer_layouts(schedule: Schedule, *, effort: int = EFFORT) -> Schedule:
    """Regroup a schedule so that it has fewer different machines, if that is found."""
    best = len(schedule.groups)
    budget = _Budget(effort)
    found: list[MachineGroup] | None = None
    if best > effort // 400:  # to read them all would take as long
        return schedule
    machines, left = _totals(schedule)
    for worth in _WORTHS:
        try:
            found = _search(machines, left, worth, best, budget)
            best = len(found)
        except _TooLong:
            if budget.left < 0:
                break
    if found is None:
        return schedule
    order = {shape: at for at, shape in enumerate(machines)}
    return Schedule(sorted(found, key=lambda group: (order[group.configuration], -group.count)))


class _Budget:
    """Effort that is left."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, effort: int) -> None:
        self.left -= effort
        if self.left < 0:
            raise _TooLong


def _totals(schedule: Schedule) -> tuple[dict[Configuration, int], _Left]:
    machines = Counter[Configuration]()
    left: defaultdict[Block, Counter[Content | None]] = defaultdict(Counter)
    for group in schedule.groups:
        machines[group.configuration] += group.count
        idle = dict(group.configuration.blocks)
        for (block, content), count in group.assignment.items():
            left[block][content] += count * group.count
            idle[block] -= count
        for block, count in idle.items():
            left[block][None] += count * group.count
    return {shape: count for shape, count in machines.items() if count}, dict(left)


def _search(
    machines: Mapping[Configuration, int], left: _Left, worth: _Worth, fewest: int, budget: _Budget
) -> list[MachineGroup]:
    """Take the layout that is worth most, again and again; fewer than ``fewest`` of them."""
    there = dict(machines)
    left = {block: own.copy() for block, own in left.items()}
    times = dict(there)  # how often a layout of each configuration can be repeated, at most
    found: list[MachineGroup] = []
    while there:
        if len(found) + len(there) >= fewest:
            raise _TooLong
        for shape, count in there.items():
            times[shape] = _most(shape, min(times[shape], count), left, budget)
        shape = max(there, key=lambda shape: worth(shape, times[shape], there[shape]))
        often = times[shape]
        taken = dict(_taken(shape, often, left))
        for (block, content), count in taken.items():
            rest = left[block].pop(content) - count * often
            if rest:
                left[block][content] = rest
        given = {
            (block, content): count
            for (block, content), count in taken.items()
            if content is not None
        }
        found.append(MachineGroup(shape, given, often))
        there[shape] -= often
        if not there[shape]:
            del there[shape]
    return found


def _most(shape: Configuration, most: int, left: _Left, budget: _Budget) -> int:
    """Return how many machines of a configuration can be alike, of at most so many."""

    def possible(times: int) -> bool:
        for block, count in shape.blocks.items():
            budget.spend(len(left[block]))
            if sum(there // times for there in left[block].values()) < count:
                return False
        return True

    if possible(most):
        return most
    low, high = 1, most  # one machine can always be filled: blocks are never short
    while high - low > 1:
        middle = (low + high) // 2
        if possible(middle):
            low = middle
        else:
            high = middle
    return low


def _taken(
    shape: Configuration, often: int, left: _Left
) -> Iterator[tuple[tuple[Block, Content | None], int]]:
    """Fill one machine, before all with what is then used up, and with few different contents."""
    for block, room in shape.blocks.items():
        rest = room
        for content, count in sorted(
            left[block].items(),
            key=lambda entry: (
                entry[1] % often != 0 or entry[1] // often > room,
                -(entry[1] // often),
                entry[0] is None,
            ),
        ):
            here = min(rest, count // often)
            if here:
                yield (block, content), here
                rest -= here
