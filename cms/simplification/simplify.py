"""The tidier of the schedules that cost the same: a second stage after the proof.

First fewer *layouts*, which are a configuration and what its blocks are given to: each job keeps
its blocks. Then more even head-room: in a step all machines of one group give one block to the job
of the least share of its demand from another job, perhaps in exchange for one in another group,
wherever no share falls to the least one. Idle blocks stay idle.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from ..checker.kinds import check
from ..errors import InvalidOption
from ..problem.machine_problem import MachineProblem
from ..problem.parts import Block, Configuration
from ..problem.problem import Problem
from ..schedule.contents import Content
from ..schedule.schedule import MachineGroup, Schedule
from ..shards.problem import ShardedProblem
from ..solving.solution import Solution
from ..values.frozen import FrozenMap

#: Divisions of what is left, and steps that are weighed, after which each stage is given up: some
#: tenths of a second.
MAX_DIVISIONS, MAX_STEPS = 600_000, 20_000

#: One or two blocks that change hands: in which group, which block, from whom, to whom.
_Step: TypeAlias = tuple[tuple[int, int, int, int], ...]


def simplify_schedule(problem: MachineProblem, solution: Solution) -> Solution:
    """Prefer few different machines, then even head-room, among schedules of the same cost.

    The solution that is returned is the same but for its schedule: as many machines of each
    configuration in no more groups, and the least share of a demand that is met no lower. Both
    stages are heuristics that end after a fixed effort, counted in steps, not seconds: some tenths
    of a second at most. Schedules of many thousand entries, or in shards, are returned as they are.
    :func:`cms.find_growth` says with a proof how much all demands can grow together.

    Raises
    ------
    InvalidOption
        If the solution is of another problem.

    References
    ----------
    Fewest layouts are fewest patterns in cutting stock, which is hard (McDiarmid, Discrete Applied
    Mathematics 98, 1999); to repeat a pattern as often as possible is the heuristic of Haessler,
    Operations Research 23, 1975.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}),
    ...     jobs=[Job("x", 5, {"half": 1}), Job("y", 5, {"half": 1})],
    ... )
    >>> solution = solve(problem)
    >>> tidier = simplify_schedule(problem, solution)
    >>> len(solution.schedule.groups), len(tidier.schedule.groups), tidier.proof.value
    (3, 1, 'checked')
    """
    if solution.problem_sha256 != problem.sha256:
        raise InvalidOption("solution is of another problem; give the answer to this one")
    if solution.cost is None or isinstance(problem, ShardedProblem):
        return solution
    schedule = merge_layouts(solution.schedule)
    if isinstance(problem, Problem):
        schedule = even_shares(problem, schedule)
    if schedule is solution.schedule:
        return solution
    if faults := check(problem, schedule):
        raise AssertionError(f"a checked schedule does not hold when it is tidied: {faults[0]}")
    if schedule.cost(problem) != solution.cost:
        raise AssertionError("a schedule costs something else when it is tidied")
    return replace(solution, schedule=schedule)


def merge_layouts(schedule: Schedule, *, effort: int = MAX_DIVISIONS) -> Schedule:
    """Regroup a schedule into fewer layouts, if they are found: the most frequent one first."""
    if len(schedule.groups) > effort // 400:  # to read them all would take as long
        return schedule
    blocks = _Blocks(schedule, effort)
    there = {shape: count for shape, count in blocks.machines.items() if count}
    order = {shape: at for at, shape in enumerate(there)}
    times = dict(there)  # how often a layout of each configuration can be repeated, at most
    found: list[MachineGroup] = []
    while there:
        if len(found) + len(there) >= len(schedule.groups):
            return schedule
        for shape, count in there.items():
            times[shape] = blocks.most_repeats(shape, min(times[shape], count))
            if blocks.effort < 0:
                return schedule
        shape = max(there, key=lambda shape: times[shape])
        found.append(MachineGroup(shape, blocks.take(shape, times[shape]), times[shape]))
        there[shape] -= times[shape]
        if not there[shape]:
            del there[shape]
    return Schedule(sorted(found, key=lambda group: (order[group.configuration], -group.count)))


class _Blocks:
    """A schedule's machines of each configuration, and what each type of block is given to."""

    def __init__(self, schedule: Schedule, effort: int) -> None:
        self.effort = effort
        self.machines = Counter[Configuration]()
        #: What is left of each type of block: of contents, and None for idle ones.
        self._left: defaultdict[Block, Counter[Content | None]] = defaultdict(Counter)
        for group in schedule.groups:
            self.machines[group.configuration] += group.count
            idle = Counter(group.configuration.blocks)
            for (block, content), count in group.assignment.items():
                self._left[block][content] += count * group.count
                idle[block] -= count
            for block, count in idle.items():
                self._left[block][None] += count * group.count

    def most_repeats(self, shape: Configuration, most: int) -> int:
        """Return how many machines of a configuration can be alike, up to a maximum."""
        if self._can_repeat(shape, most):
            return most
        low, high = 1, most  # one machine can always be filled: blocks are never short
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._can_repeat(shape, middle) else (low, middle)
        return low

    def _can_repeat(self, shape: Configuration, times: int) -> bool:
        for block, count in shape.blocks.items():
            self.effort -= len(self._left[block])
            if sum(there // times for there in self._left[block].values()) < count:
                return False
        return True

    def take(self, shape: Configuration, times: int) -> dict[tuple[Block, Content], int]:
        """Fill machines alike, before all with what is then used up, and with few contents."""
        given: dict[tuple[Block, Content], int] = {}
        for block, room in shape.blocks.items():
            left, rest = self._left[block], room

            def rank(content: Content | None, left: Any = left, room: int = room) -> Any:
                often, over = divmod(left[content], times)
                return over != 0 or often > room, -often, content is None

            for content in sorted(left, key=rank):
                here = min(rest, left[content] // times)
                left[content] -= here * times
                if not left[content]:
                    del left[content]
                if here and content is not None:
                    given[block, content] = here
                rest -= here
        return given


def even_shares(problem: Problem, schedule: Schedule, *, effort: int = MAX_STEPS) -> Schedule:
    """Lift the least share of the jobs with the machines that are there; none with rules."""
    size = len(schedule.columns.entry_count) + len(schedule.groups)
    if size * len(problem.blocks) > effort or problem.n_jobs > effort or problem.rows.ruled:
        return schedule
    rows = [problem.rows.row(j) for j in range(problem.n_jobs)]
    wanting = [j for j, row in enumerate(rows) if row.demand]
    groups = list(schedule.groups)
    #: Of each group: by block and job, how many on one machine.
    given = [Counter[tuple[int, int]]() for _ in groups]
    got = Counter[int]()
    for group, own in zip(groups, given, strict=True):
        for (name, its_job), count in group.assignment.items():
            block, job = problem.block_index[name], problem.job_index(its_job)
            own[block, job] = count
            got[job] += count * group.count * rows[job].supply[block]

    def share(job: int, more: int = 0) -> Fraction:
        return Fraction(got[job] + more, rows[job].demand)

    def steps(to: int) -> Iterator[_Step]:
        """Iterate over the blocks that a job could be given, and those it could give for them."""
        mine = [(at, block) for at, own in enumerate(given) for block, job in own if job == to]
        for at, own in enumerate(given):
            for block, of in own:
                if of != to and rows[to].supply[block]:
                    first = at, block, of, to
                    yield (first,)
                    for other, its_block in mine:
                        if rows[of].supply[its_block]:
                            yield first, (other, its_block, to, of)

    def changes(step: _Step) -> Counter[int]:
        found = Counter[int]()
        for at, block, of, to in step:
            found[to] += groups[at].count * rows[to].supply[block]
            found[of] -= groups[at].count * rows[of].supply[block]
        return found

    changed = False
    while wanting:
        neediest = min(wanting, key=share)
        best, least = None, share(neediest)
        for step in steps(neediest):
            effort -= 1
            if effort < 0:
                break
            more = changes(step).items()
            reached = min(share(job, amount) for job, amount in more if rows[job].demand)
            if reached > least:
                best, least = step, reached
        if best is None or effort < 0:
            break
        got.update(changes(best))
        for at, block, of, to in best:
            given[at][block, to] += 1
            given[at][block, of] -= 1
            given[at] = +given[at]
        changed = True
    if not changed:
        return schedule
    blocks, names = problem.blocks, problem.job_names
    counts = Counter[tuple[Configuration, FrozenMap[tuple[Block, str], int]]]()
    for group, own in zip(groups, given, strict=True):
        named = {(blocks[block], names[job]): count for (block, job), count in sorted(own.items())}
        counts[group.configuration, FrozenMap(named)] += group.count
    return Schedule(MachineGroup(*layout, count) for layout, count in counts.items())
