"""Schedules of problems in shards: machines, and how many blocks each job gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checker.kinds import JobChecker
from ..problem.parts import Configuration
from ..schedule.faults import Violation, machine_faults
from ..schedule.schedule import Excerpt, MachineGroup, Schedule, machine_cost
from ..values.frozen import FrozenMap
from ..values.numbers import shown
from .counts import Coded, Counts, served
from .engine import Loaded

if TYPE_CHECKING:
    from .problem import ShardedProblem

_NO_MACHINES: Mapping[Configuration, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class ShardedSchedule:
    """Machines, and counts of blocks for the jobs of a :class:`ShardedProblem`; immutable.

    Machines lined up by configuration, whose blocks of each type are handed out in the order of the
    jobs, are a schedule if and only if there are enough of them and every job gets what it needs
    (theory 1.2): which block serves which job need not be written down. :meth:`load` does so.

    Parameters
    ----------
    machines : Mapping[Configuration, int]
        How many of each configuration, in the order in which their blocks are handed out.
    counts : tuple of counts, optional
        How many blocks of each type every job gets, by shard; none if no job gets anything.
    """

    _machines: tuple[tuple[Configuration, int], ...]
    counts: Counts

    def __init__(
        self, machines: Mapping[Configuration, int] = _NO_MACHINES, counts: Counts = ()
    ) -> None:
        object.__setattr__(self, "_machines", tuple(machines.items()))
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(cls, schedule: Schedule, problem: ShardedProblem) -> ShardedSchedule:
        """Drop from a schedule in memory which block serves which job; jobs are the problem's."""
        columns = schedule.columns
        group = np.repeat(np.arange(len(columns.group_count)), np.diff(columns.entry_start))
        given = columns.entry_count.astype(object) * columns.group_count[group]
        table = np.zeros((problem.n_jobs, len(problem.blocks)), dtype=object)
        blocks = np.array([problem.block_index[block] for block in columns.blocks], dtype=np.int64)
        jobs = np.array([problem.job_index(job) for job in columns.contents], dtype=np.int64)
        np.add.at(table, (jobs[columns.entry_content], blocks[columns.entry_block]), given)
        if not table.size or table.max() < 2**63:
            table = table.astype(np.int64)
        rows = (table[shard.first : shard.first + shard.n_jobs] for shard in problem.shards)
        return cls(schedule.machines, tuple(map(Coded.of_table, rows)))

    @property
    def machines(self) -> dict[Configuration, int]:
        """How many machines take each configuration, in the order of their blocks."""
        return dict(self._machines)

    @property
    def machine_count(self) -> int:
        """Number of machines."""
        return sum(count for _, count in self._machines)

    def cost(self, problem: ShardedProblem) -> Fraction:
        """Return the cost of all machines."""
        costs = (machine_cost(problem, shape) * n for shape, n in self.machines.items())
        return sum(costs, Fraction(0))

    def excerpt(self, most: int) -> Excerpt:
        """Return the first machines as rows of a table, for a printed solution."""
        items = list(self.machines.items())
        rows = [(shown(n), str(shape)) for shape, n in items[:most]]
        more = len(items) - len(rows)
        rest = f"... and {more} more configurations" if more else ""
        return Excerpt(("machines", "configuration"), rows, rest)

    def load(self, problem: ShardedProblem) -> Schedule:
        """Return the schedule with the job of each block, for jobs that fit into memory."""
        if not self.counts:
            return Schedule([MachineGroup(c, FrozenMap(), n) for c, n in self.machines.items()])
        parts = []
        for number, (shard, cut) in enumerate(zip(problem.shards, self.counts, strict=True)):
            parts.append(cut.table(Loaded(number, shard.first, shard.rows(shard.read()))))
        table = np.concatenate(parts)
        jobs, blocks = np.nonzero(table)
        return Schedule.from_counts(problem, self.machines, (jobs, blocks, table[jobs, blocks]))

    def __repr__(self) -> str:
        return f"ShardedSchedule({self.machine_count} machines)"


def busy_machines(
    machines: Mapping[Configuration, int], blocks: Sequence[str], load: Sequence[int]
) -> dict[Configuration, int]:
    """Return how many machines of each configuration serve a job at such a load."""
    left = dict(zip(blocks, load, strict=True))
    found = {}
    for shape, number in machines.items():
        used = 0
        for block, each in shape.blocks.items():
            used = max(used, -(-min(left.get(block, 0), each * number) // each))
            left[block] = max(0, left.get(block, 0) - each * number)
        if used:
            found[shape] = used
    return found


class ShardedChecker(JobChecker):
    """Judges what is claimed about a :class:`ShardedProblem`, shard by shard."""

    schedules: Any = ShardedSchedule
    problem: Any

    def faults(self, schedule: Any) -> Iterator[Violation]:
        """Iterate over what is wrong with a schedule in shards, in exact arithmetic."""
        problem, machines, counts = self.problem, schedule.machines, schedule.counts
        groups = (MachineGroup(shape, FrozenMap(), n) for shape, n in machines.items())
        yield from machine_faults(problem, Schedule(groups).columns)
        shards, k = problem.shards, len(problem.blocks)
        if counts and len(counts) != len(shards):
            has, needs = f"counts of {len(counts)} shards", f"those of the {len(shards)} there are"
            yield Violation("blocks", "the schedule", has, needs)
            return
        nothing = np.zeros((1, k), dtype=np.int64)
        cuts = counts or [Coded(np.zeros(each.n_jobs, dtype=np.int8), nothing) for each in shards]
        load = [0] * k
        for given, faults in problem.map(served, own=cuts, what="checking the schedule"):
            yield from (Violation("demand", *fault) for fault in faults)
            load = [a + b for a, b in zip(load, given, strict=True)]
        for block, given in zip(problem.blocks, load, strict=True):
            have = sum(shape.blocks.get(block, 0) * n for shape, n in machines.items())
            if given > have:
                has = f"{shown(given)} blocks {block!r} given to jobs"
                needs = f"at most the {shown(have)} of its machines"
                yield Violation("blocks", "the schedule", has, needs)
