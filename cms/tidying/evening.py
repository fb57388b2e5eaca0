"""Head-room more even, with no more layouts: blocks change hands where that lifts the least.

A job's *share* is what its blocks give over its demand. In a step all machines of one group give
one block to the job of the least share from another job, perhaps in exchange for one in another
group, wherever no share falls to the least one. So shares rise in their order, from the least on,
until no such step is left; there may be better schedules. Idle blocks stay idle: nothing is started
for the sake of head-room alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from ..problem.parts import Block
from ..problem.problem import Problem
from ..schedule.schedule import MachineGroup, Schedule

#: Steps that are weighed against each other, after which what was reached is taken.
EFFORT = 20_000
#: One or two blocks that change hands: in which group, which block, from whom, to whom.
_Step: TypeAlias = tuple[tuple[int, int, int, int], ...]


def evened(problem: Problem, schedule: Schedule, *, effort: int = EFFORT) -> Schedule:
    """Lift the least share of the jobs with the machines that are there."""
    size = len(schedule.columns.entry_count) + len(schedule.groups)
    if size * len(problem.blocks) > effort or problem.n_jobs > effort:
        return schedule
    state = _State(problem, schedule)
    left = effort
    changed = False
    while (job := state.neediest()) is not None:
        best, least = None, state.share(job)
        for step in state.steps(job):
            left -= 1
            if left < 0:
                break
            reached = state.after(step)
            if reached > least:
                best, least = step, reached
        if best is None or left < 0:
            break
        state.take(best)
        changed = True
    return state.schedule() if changed else schedule


def least_share(problem: Problem, schedule: Schedule) -> Fraction | None:
    """Return the least of what the jobs get over what they demand; None if none demands any."""
    state = _State(problem, schedule)
    job = state.neediest()
    return None if job is None else state.share(job)


class _State:
    """A schedule's groups, and what each job gets from them."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._problem = problem
        self._rows = [problem.rows.row(j) for j in range(problem.n_jobs)]
        self._groups = list(schedule.groups)
        index = problem.block_index
        #: Of each group: by block and job, how many on one machine.
        self._given: list[Counter[tuple[int, int]]] = []
        self._got = [0] * problem.n_jobs
        for group in self._groups:
            own = Counter[tuple[int, int]]()
            for (block, job), count in group.assignment.items():
                at, j = index[block], problem.job_index(job)
                own[at, j] = count
                self._got[j] += count * group.count * self._rows[j].supply[at]
            self._given.append(own)

    def share(self, job: int) -> Fraction:
        return Fraction(self._got[job], self._rows[job].demand)

    def neediest(self) -> int | None:
        wanting = [j for j, row in enumerate(self._rows) if row.demand]
        return min(wanting, key=self.share, default=None)

    def steps(self, to: int) -> Iterator[_Step]:
        """Iterate over the blocks that a job could be given, and those it could give for them."""
        gives = self._rows[to].supply
        own = [
            (group, block)
            for group, given in enumerate(self._given)
            for block, job in given
            if job == to
        ]
        for group, given in enumerate(self._given):
            for block, of in given:
                if of == to or not gives[block]:
                    continue
                first = group, block, of, to
                yield (first,)
                for other, its_block in own:
                    if self._rows[of].supply[its_block]:
                        yield first, (other, its_block, to, of)

    def after(self, step: _Step) -> Fraction:
        """Return the lesser share, after a step, of the two whom it concerns."""
        return min(
            Fraction(self._got[job] + more, self._rows[job].demand)
            for job, more in self._changes(step).items()
            if self._rows[job].demand
        )

    def _changes(self, step: _Step) -> Counter[int]:
        found = Counter[int]()
        for group, block, of, to in step:
            count = self._groups[group].count
            found[to] += count * self._rows[to].supply[block]
            found[of] -= count * self._rows[of].supply[block]
        return found

    def take(self, step: _Step) -> None:
        for job, more in self._changes(step).items():
            self._got[job] += more
        for group, block, of, to in step:
            own = self._given[group]
            own[block, of] -= 1
            if not own[block, of]:
                del own[block, of]
            own[block, to] += 1

    def schedule(self) -> Schedule:
        """Return the groups as they are now; equal ones are one."""
        blocks, names = self._problem.blocks, self._problem.job_names
        merged: dict[object, MachineGroup] = {}
        for group, own in zip(self._groups, self._given, strict=True):
            given: dict[tuple[Block, str], int] = {
                (blocks[block], names[job]): count for (block, job), count in sorted(own.items())
            }
            key = group.configuration, frozenset(given.items())
            count = group.count + (merged[key].count if key in merged else 0)
            merged[key] = MachineGroup(group.configuration, given, count)
        return Schedule(merged.values())
