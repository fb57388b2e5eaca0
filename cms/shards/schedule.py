"""Schedules of problems in shards: machines, and how many blocks each job gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidSchedule
from ..problem.parts import Configuration
from ..schedule.faults import Violation, machine_faults
from ..schedule.schedule import Excerpt, MachineGroup, Schedule, machine_cost
from ..values.frozen import FrozenMap
from ..values.numbers import shown
from .counts import Coded, Counts, CountsInMemory, Served, served
from .shard import Loaded

if TYPE_CHECKING:
    from .counts import Cut
    from .problem import ShardedProblem

_NO_MACHINES: Mapping[Configuration, int] = MappingProxyType({})


class ShardedSchedule:
    """Machines, and counts of blocks for the jobs of a :class:`ShardedProblem`; immutable.

    Parameters
    ----------
    machines : Mapping[Configuration, int]
        How many there are of each configuration, in the order in which their blocks are handed out.
    counts : Counts, optional
        How many blocks of each type every job gets; None for no jobs at all.

    Notes
    -----
    Machines lined up by configuration, whose blocks of each type are handed out in the order of the
    jobs, are a schedule if and only if there are enough of them and every job gets what it needs
    (theory 1.2): who serves whom need not be written down. :meth:`load` does so.

    Examples
    --------
    >>> import cms
    >>> from cms.shards.problem import ShardedProblem
    >>> small = cms.Problem.from_arrays(demands=[7, 5], supply=[[4], [5]], configurations=[[2]])
    >>> problem = ShardedProblem.of(small)
    >>> schedule = ShardedSchedule.of(cms.solve(small).schedule, problem)
    >>> schedule.machine_count, cms.check(problem, schedule), schedule.load(problem).machine_count
    (2, (), 2)
    """

    __slots__ = ("_machines", "counts")
    _machines: tuple[tuple[Configuration, int], ...]
    counts: Counts | None

    def __init__(
        self, machines: Mapping[Configuration, int] = _NO_MACHINES, counts: Counts | None = None
    ) -> None:
        object.__setattr__(self, "_machines", tuple(machines.items()))
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(cls, schedule: Schedule, problem: ShardedProblem) -> ShardedSchedule:
        """Leave out of a schedule in memory who serves whom; its jobs are the problem's."""
        columns = schedule.columns
        group = np.repeat(np.arange(len(columns.group_count)), np.diff(columns.entry_start))
        given = columns.entry_count.astype(object) * columns.group_count[group]
        table = np.zeros((problem.n_jobs, len(problem.blocks)), dtype=object)
        blocks = np.array([problem.block_index[block] for block in columns.blocks], dtype=np.int64)
        jobs = np.array([problem.job_index(job) for job in columns.contents], dtype=np.int64)
        np.add.at(table, (jobs[columns.entry_content], blocks[columns.entry_block]), given)
        if not table.size or table.max() < 2**63:
            table = table.astype(np.int64)
        return cls(schedule.machines, CountsInMemory.of_table(table, problem.shards))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a ShardedSchedule is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a ShardedSchedule is immutable: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardedSchedule, (self.machines, self.counts)

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
        """Return the schedule with who serves whom, for jobs that fit into memory."""
        if self.counts is None or not problem.shards:
            return Schedule([MachineGroup(c, FrozenMap(), n) for c, n in self.machines.items()])
        parts = []
        for number, shard in enumerate(problem.shards):
            loaded = Loaded(number, shard.first, shard.rows(shard.read()))
            parts.append(self.counts.cut(number, shard).of(loaded))
        table = np.concatenate(parts)
        jobs, blocks = np.nonzero(table)
        return Schedule.from_counts(problem, self.machines, (jobs, blocks, table[jobs, blocks]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShardedSchedule):
            return NotImplemented
        return self is other or (self._machines, self.counts) == (other._machines, other.counts)

    def __hash__(self) -> int:
        return hash(self.machine_count)

    def __repr__(self) -> str:
        return f"ShardedSchedule({self.machine_count} machines)"


def busy_machines(
    machines: Mapping[Configuration, int], blocks: Sequence[str], load: Sequence[int]
) -> dict[Configuration, int]:
    """Return how many machines of each configuration serve somebody, if so many blocks are given.

    Examples
    --------
    >>> pair, both = Configuration({"a": 2}), Configuration({"a": 1, "b": 1})
    >>> busy_machines({pair: 3, both: 4}, "ab", [5, 2]) == {pair: 3, both: 2}
    True
    """
    left = dict(zip(blocks, load, strict=True))
    found = {}
    for shape, number in machines.items():
        used = 0
        for block, each in shape.blocks.items():
            mine = min(max(left.get(block, 0), 0), each * number)
            used = max(used, -(-mine // each))
        for block, each in shape.blocks.items():
            if block in left:
                left[block] -= each * number
        if used:
            found[shape] = used
    return found


def sharded_faults(problem: ShardedProblem, schedule: ShardedSchedule) -> Iterator[Violation]:
    """Iterate over what is wrong with a schedule in shards, in exact arithmetic."""
    groups = (MachineGroup(shape, FrozenMap(), n) for shape, n in schedule.machines.items())
    yield from machine_faults(problem, Schedule(groups).columns)
    shards, counts = problem.shards, schedule.counts
    load = [0] * len(problem.blocks)
    if counts is not None and counts.n_shards > len(shards):
        has, needs = f"counts of {counts.n_shards} shards", f"those of the {len(shards)} there are"
        yield Violation("blocks", "the schedule", has, needs)
        return
    nothing = np.zeros((1, len(load)), dtype=np.int64)
    try:
        cuts = [
            Coded(np.zeros(shard.n_jobs, dtype=np.int8), nothing)
            if counts is None
            else counts.cut(number, shard)
            for number, shard in enumerate(shards)
        ]
    except InvalidSchedule as fault:
        yield Violation("blocks", "the schedule", str(fault), "counts of all shards")
        return
    found = problem.map(_served, lambda number: (cuts[number],), what="checking the schedule")
    for part in found.values():
        for where, has, needs in part.faults:
            yield Violation("demand", where, has, needs)
        load = [a + b for a, b in zip(load, part.load, strict=True)]
    for block, given in zip(problem.blocks, load, strict=True):
        have = sum(shape.blocks.get(block, 0) * n for shape, n in schedule.machines.items())
        if given > have:
            yield Violation(
                "blocks",
                "the schedule",
                f"{shown(given)} blocks {block!r} given to jobs",
                f"at most the {shown(have)} of its machines",
            )


def _served(loaded: Loaded, cut: Cut) -> Served:
    return served(loaded, cut.of(loaded))
