"""What every job takes where no table of options is kept, and the schedule made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cms.problem.problem import Problem
from cms.shards.counts import with_own
from cms.shards.schedule import ShardedSchedule, busy_machines

from .choices import Choices, schedule_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from cms.problem.parts import Configuration
    from cms.schedule.schedule import Schedule
    from cms.shards.counts import Coded

    from .sharded_jobs import AnyJobs, Option, ShardedJobs


class Taken(NamedTuple):
    """What every job takes: :class:`Choices` of jobs that are not listed.

    ``own`` takes the place of what ``counts`` say of some jobs; the choice of those in ``out`` is
    left open, and ``total`` is what all others take.
    """

    jobs: ShardedJobs
    counts: tuple[Coded, ...]
    total: list[int]
    own: Mapping[int, Option]
    out: frozenset[int] = frozenset()

    def load(self) -> list[int]:
        """Return how many blocks of each type all jobs take together, exactly."""
        return list(self.total)

    def without(self, kinds: NDArray[np.int64]) -> Taken:
        """Leave some jobs out."""
        gone = [kind for kind in kinds.tolist() if kind not in self.out]
        total = list(self.total)
        for kind in gone:
            number, shard = self.jobs.in_shards.place(kind)
            codes, options = self.counts[number]
            option = self.own.get(kind) or options[codes[kind - shard.first]].tolist()
            total = [a - b for a, b in zip(total, option, strict=True)]
        return self._replace(total=total, out=self.out | set(gone))

    def joined(self, other: Choices) -> Taken:
        """Let jobs that were left out take what is said."""
        columns = zip(other.kinds.tolist(), other.options.tolist(), strict=True)
        chosen = {kind: tuple(option) for kind, option in columns}
        total = [a + b for a, b in zip(self.total, other.load(), strict=True)]
        own = {**self.own, **chosen}
        return self._replace(own=own, total=total, out=self.out - chosen.keys())

    def schedule(
        self, jobs: AnyJobs, machines: Mapping[Configuration, int]
    ) -> Schedule | ShardedSchedule:
        """Build the schedule with these machines; the machines that stay idle are left out."""
        if self.out:
            raise AssertionError(f"{len(self.out)} jobs are left out of a schedule")
        del jobs  # its own
        problem = self.jobs.problem
        counts = with_own(self.counts, self.own, self.jobs.in_shards.shards)
        if not isinstance(problem, Problem):
            busy = busy_machines(machines, problem.blocks, self.total)
            return ShardedSchedule(busy, counts)
        none = np.zeros((0, len(problem.blocks)), dtype=np.int8)
        table = np.concatenate([none, *(part.table() for part in counts)])
        return schedule_of(problem, np.arange(len(table)), table, machines)


#: Which option every job takes.
AnyChoices: TypeAlias = Choices | Taken
