"""Which option each job takes, in arrays, and the schedule made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cms.problem.problem import Problem
from cms.schedule.schedule import Schedule
from cms.shards.counts import table_of, with_own
from cms.shards.schedule import ShardedSchedule, busy_machines

from .jobs import Jobs, group_totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from cms.problem.machine_problem import MachineProblem
    from cms.problem.parts import Configuration
    from cms.shards.counts import Coded

    from .sharded_jobs import ShardedJobs


class Choices(NamedTuple):
    """``counts[r]`` jobs of kind ``kinds[r]`` take the option ``options[r]`` (rows by kind)."""

    kinds: NDArray[np.int64]
    options: NDArray[Any]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[Choices]) -> Choices:
        """Put several kinds' choices in order."""
        kinds, options, counts = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(kinds, kind="stable")
        return cls(kinds[order], options[order], counts[order])

    def load(self) -> list[int]:
        """Return how many blocks of each type all jobs take together, exactly."""
        return group_totals(self.options, self.counts, [0])[0]

    def without(self, kinds: NDArray[np.int64]) -> Choices:
        """Leave some kinds out."""
        stay = ~np.isin(self.kinds, kinds)
        return Choices(self.kinds[stay], self.options[stay], self.counts[stay])

    def joined(self, other: Choices) -> Choices:
        """Add the choices of other kinds."""
        return Choices.of([self, other])

    def schedule(self, jobs: Jobs, machines: Mapping[Configuration, int]) -> Schedule:
        """Build the schedule with these machines; the machines that stay idle are left out."""
        taken = np.repeat(self.options, self.counts, axis=0)
        return schedule_of(jobs.problem, jobs.by_kind, taken, machines)


def choices_of(rows: list[tuple[int, tuple[int, ...], int]], n_blocks: int) -> Choices:
    """Build choices from (kind, option, count) rows, in any order."""
    rows = sorted((kind, option, count) for kind, option, count in rows if count)
    kinds = np.array([kind for kind, _, _ in rows], dtype=np.int64)
    options = table_of([option for _, option, _ in rows], n_blocks)
    return Choices(kinds, options, np.array([count for _, _, count in rows], dtype=np.int64))


def schedule_of(
    problem: MachineProblem,
    jobs: NDArray[np.int64],
    taken: NDArray[Any],
    machines: Mapping[Configuration, int],
) -> Schedule:
    """Build the schedule in which each job takes the blocks of its row; no machine stays idle."""
    at, blocks = np.nonzero(taken)
    amounts = taken[at, blocks]
    if amounts.dtype.kind == "i":
        amounts = amounts.astype(np.int64)
    given = jobs[at], blocks, amounts
    return Schedule.from_counts(problem, machines, given).without_idle_machines()


class Taken(NamedTuple):
    """What every job takes, by shards, and in all; those that are `out` take nothing so far."""

    jobs: ShardedJobs
    counts: tuple[Coded, ...]
    total: list[int]
    out: frozenset[int] = frozenset()

    @classmethod
    def of(cls, jobs: ShardedJobs, counts: Sequence[Coded]) -> Taken:
        """Add up what the jobs of all shards take."""
        total = [0] * len(jobs.problem.blocks)
        for part in counts:
            times = np.bincount(part.codes, minlength=len(part.options))
            mine = group_totals(part.options, times, [0])[0]
            total = [a + b for a, b in zip(total, mine, strict=True)]
        return cls(jobs, tuple(counts), total)

    def load(self) -> list[int]:
        """Return how many blocks of each type all jobs take together, exactly."""
        return list(self.total)

    def without(self, kinds: NDArray[np.int64]) -> Taken:
        """Leave some jobs out."""
        total, gone = self.total, set(kinds.tolist()) - self.out
        for kind in gone:
            number, shard = self.jobs.in_shards.place(kind)
            codes, options = self.counts[number]
            option = options[codes[kind - shard.first]].tolist()
            total = [a - b for a, b in zip(total, option, strict=True)]
        return self._replace(total=total, out=self.out | gone)

    def joined(self, other: Choices) -> Taken:
        """Let jobs that were left out take what is said."""
        chosen = dict(zip(other.kinds.tolist(), other.options.tolist(), strict=True))
        total = [a + b for a, b in zip(self.total, other.load(), strict=True)]
        counts = with_own(self.counts, chosen, self.jobs.in_shards.shards)
        return self._replace(counts=counts, total=total, out=self.out - chosen.keys())

    def schedule(self, jobs: Jobs, machines: Mapping[Configuration, int]) -> Any:
        """Build the schedule with these machines; the machines that stay idle are left out."""
        problem = jobs.problem
        if not isinstance(problem, Problem):
            busy = busy_machines(machines, problem.blocks, self.total)
            return ShardedSchedule(busy, self.counts)
        table = np.concatenate([part.table() for part in self.counts])
        return schedule_of(problem, np.arange(len(table)), table, machines)


#: Which option every job takes.
AnyChoices: TypeAlias = Choices | Taken
