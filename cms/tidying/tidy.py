"""The tidier of the schedules that cost the same: a second stage after the proof.

A *layout* is a configuration and what its blocks are given to; a schedule has a group of machines
for each. How many machines take each configuration and how many blocks each content gets stay as
they are, so that the cost, and what every job gets, stay too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from ..errors import InvalidOption
from ..problem.machine_problem import MachineProblem
from ..problem.parts import Block, Configuration
from ..problem.problem import Problem
from ..referee.kinds import check
from ..schedule.contents import Content
from ..schedule.schedule import MachineGroup, Schedule
from ..shards.problem import ShardedProblem
from ..solving.solution import Solution
from .evening import evened

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


def tidy(problem: MachineProblem, solution: Solution) -> Solution:
    """Prefer few different machines, then even head-room, among schedules of the same cost.

    Both stages are heuristics that end after a fixed effort, counted in steps, not seconds: some
    tenths of a second at most. Schedules of many thousand entries, or in shards, are returned as
    they are. :func:`cms.growth` says with a proof how much all demands can grow together.

    Parameters
    ----------
    problem : Problem, TimeSharedProblem or ShardedProblem
    solution : Solution
        Of the problem.

    Returns
    -------
    Solution
        The same but for its schedule: as many machines of each configuration in no more groups; the
        least share of a demand that is met no lower.

    Raises
    ------
    InvalidOption
        If the solution is of another problem.

    References
    ----------
    Fewest layouts are fewest patterns in cutting stock: McDiarmid, "Pattern minimisation in cutting
    stock problems", Discrete Applied Mathematics 98, 1999, shows how hard that is; to repeat a
    pattern as often as possible is the heuristic of Haessler, "Controlling cutting pattern changes
    in one-dimensional trim problems", Operations Research 23, 1975.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}),
    ...     jobs=[Job("x", 5, {"half": 1}), Job("y", 5, {"half": 1})],
    ... )
    >>> solution = solve(problem)
    >>> tidier = tidy(problem, solution)
    >>> len(solution.schedule.groups), len(tidier.schedule.groups), tidier.proof.value
    (3, 1, 'checked')
    """
    if solution.problem_sha256 != problem.sha256:
        raise InvalidOption("solution is of another problem; give the answer to this one")
    if solution.cost is None or isinstance(problem, ShardedProblem):
        return solution
    schedule = fewer_layouts(solution.schedule)
    if isinstance(problem, Problem):
        schedule = evened(problem, schedule)
    if schedule is solution.schedule:
        return solution
    if faults := check(problem, schedule):
        raise AssertionError(f"a checked schedule does not hold when it is tidied: {faults[0]}")
    if schedule.cost(problem) != solution.cost:
        raise AssertionError("a schedule costs something else when it is tidied")
    return replace(solution, schedule=schedule)


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
