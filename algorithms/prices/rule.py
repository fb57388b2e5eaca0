"""A rule: which option every job takes, in a few kilobytes, and the choices that it makes.

Every group of jobs takes what it buys at one price vector. Where a fractional schedule mixes
several, the jobs whose options differ in the same way are a pool, in the order of the jobs: so many
of its first take the first pass's option, so many the second's, and so on. A few single jobs have
options of their own. What a rule means for a job depends on the jobs and not on how they are cut
into shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cms.problem.problem import Problem
from cms.running.stopping import Stopped, look
from cms.schedule.schedule import Schedule
from cms.shards.engine import Here, Work
from cms.shards.schedule import ShardedSchedule, busy_machines
from cms.shards.shard import Loaded, narrowest

from .choices import Choices
from .sharded_jobs import differing, options_of, pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.parts import Configuration
    from cms.shards.shard import Shard

    from .sharded_jobs import AnyJobs, ShardedJobs

#: A group, and how the options of its passes differ from the first one's.
PoolKey = tuple[int, tuple[tuple[int, ...], ...]]
Option = tuple[int, ...]


class Rule(NamedTuple):
    """Which option every job takes.

    Attributes
    ----------
    bounds : tuple of int
        The first job of each group.
    vectors : tuple of tuples of price vectors
        What each group mixes: one vector, or several.
    splits : Mapping of PoolKey to tuple of int
        Of each pool, the place after the last job that takes each pass's option.
    before : Mapping of shard to {PoolKey: int}
        How many jobs of a pool are in earlier shards.
    own : Mapping of int to option
        Jobs that take what is said here.
    """

    bounds: tuple[int, ...]
    vectors: tuple[tuple[tuple[int, ...], ...], ...]
    splits: Mapping[PoolKey, tuple[int, ...]]
    before: Mapping[int, Mapping[PoolKey, int]]
    own: Mapping[int, Option]

    def cut(self, number: int, shard: Shard) -> RuleCut:
        """Return what a shard needs of it."""
        first, end = shard.first, shard.first + shard.n_jobs
        parts = []
        for group, begin in enumerate(self.bounds):
            after = self.bounds[group + 1] if group + 1 < len(self.bounds) else end
            if begin < end and after > first:
                parts.append((group, begin, after, self.vectors[group]))
        mine = {group for group, _, _, _ in parts}
        return RuleCut(
            tuple(parts),
            {key: ends for key, ends in self.splits.items() if key[0] in mine},
            dict(self.before.get(number, {})),
            {kind - first: option for kind, option in self.own.items() if first <= kind < end},
        )


class RuleCut(NamedTuple):
    """A rule for the jobs of one shard, counted from its first.

    Attributes
    ----------
    parts : tuple of (group, first job, job after the last, price vectors)
        Jobs counted over the whole problem.
    """

    parts: tuple[tuple[int, int, int, tuple[tuple[int, ...], ...]], ...]
    splits: Mapping[PoolKey, tuple[int, ...]]
    before: Mapping[PoolKey, int]
    own: Mapping[int, Option]

    def of(self, loaded: Loaded) -> NDArray[Any]:
        """Return the blocks of each type for each job."""
        found = [counts for _, _, counts in self._pieces(loaded, None)]
        k = loaded.rows.n_blocks
        table = np.concatenate(found) if found else np.zeros((0, k), dtype=np.int8)
        return self._with_own(table)

    def of_some(self, loaded: Loaded, jobs: NDArray[np.int64]) -> NDArray[Any]:
        """Return the same of some jobs alone, in rising order."""
        found: list[NDArray[Any]] = [np.zeros((0, loaded.rows.n_blocks), dtype=np.int8)]
        for begin, end, counts in self._pieces(loaded, jobs):
            found.append(counts[jobs[(begin <= jobs) & (jobs < end)] - begin])
        table = np.concatenate(found)
        places = {int(j): at for at, j in enumerate(jobs)}
        here = {places[j]: option for j, option in self.own.items() if j in places}
        return self._replace(own=here)._with_own(table)

    def _with_own(self, table: NDArray[Any]) -> NDArray[Any]:
        """Put in what single jobs take."""
        if not self.own:
            return table
        largest = max(max(option, default=0) for option in self.own.values())
        kind = np.dtype(object) if largest >= 2**63 else np.min_scalar_type(-largest - 1)
        table = table.astype(np.promote_types(table.dtype, kind))
        for j, option in self.own.items():
            table[j] = option
        return table

    def _pieces(
        self, loaded: Loaded, jobs: NDArray[np.int64] | None
    ) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield (begin, end, counts) of the pieces; with jobs only of those that matter for them.

        Of a group that mixes passes all pieces matter up to the last with such a job: places in
        pools are counted from the first on.
        """
        first, n = loaded.first, len(loaded.rows)
        bounds = [begin for _, begin, _, _ in self.parts]
        places = dict(self.before)
        for at, begin, end in pieces(first, n, bounds):
            group, _, after, vectors = self.parts[at]
            look(loaded.stopped)
            if jobs is not None:
                last = end if len(vectors) == 1 else min(after - first, n)
                if not ((begin <= jobs) & (jobs < last)).any():
                    continue
            if len(vectors) == 1:
                options = options_of(loaded, vectors[0], begin, end)
                if options is None:
                    raise Stopped
                yield begin, end, _narrow(options)
                continue
            piece = differing(loaded, vectors, begin, end)
            if piece is None:
                raise Stopped
            which = np.zeros(end - begin, dtype=np.int64)
            order = np.argsort(piece.pool, kind="stable")
            ends = np.cumsum(np.bincount(piece.pool, minlength=len(piece.differences)))
            for number, differences in enumerate(piece.differences):
                key = group, differences
                members = piece.undecided[order[(ends[number - 1] if number else 0) : ends[number]]]
                start = places.get(key, 0)
                places[key] = start + len(members)
                # Beyond the last split are jobs with options of their own.
                option = np.searchsorted(
                    self.splits[key], np.arange(start, start + len(members)), side="right"
                )
                which[members] = np.minimum(option, len(vectors) - 1)
            yield begin, end, _narrow(piece.options[np.arange(end - begin), which])


def _narrow(options: NDArray[Any]) -> NDArray[Any]:
    return options if options.dtype.kind == "O" else narrowest(options)


class Ruled(NamedTuple):
    """The choices of a rule, and what they come to: what :class:`Choices` are where none is listed.

    Attributes
    ----------
    total : list of k ints
        What all jobs take that are not ``out``.
    out : frozenset of int
        Jobs whose choice is left open.
    """

    jobs: ShardedJobs
    rule: Rule
    total: list[int]
    out: frozenset[int] = frozenset()

    def load(self) -> list[int]:
        """Return how many blocks of each type all jobs take together, exactly."""
        return list(self.total)

    def without(self, kinds: NDArray[np.int64]) -> Ruled:
        """Leave some jobs out."""
        gone = [kind for kind in kinds.tolist() if kind not in self.out]
        total = list(self.total)
        for option in self.jobs.taken(gone, self.rule).values():
            total = [a - b for a, b in zip(total, option, strict=True)]
        return self._replace(total=total, out=self.out | set(gone))

    def joined(self, other: Choices) -> Ruled:
        """Let jobs that were left out take what is said."""
        columns = zip(other.kinds.tolist(), other.options.tolist(), strict=True)
        chosen = {kind: tuple(option) for kind, option in columns}
        total = [a + b for a, b in zip(self.total, other.load(), strict=True)]
        rule = self.rule._replace(own={**self.rule.own, **chosen})
        return self._replace(rule=rule, total=total, out=self.out - chosen.keys())

    def schedule(
        self, jobs: AnyJobs, machines: Mapping[Configuration, int]
    ) -> Schedule | ShardedSchedule:
        """Build the schedule with these machines; the machines that stay idle are left out."""
        if self.out:
            raise AssertionError(f"{len(self.out)} jobs are left out of a schedule")
        del jobs  # its own
        problem = self.jobs.problem
        if not isinstance(problem, Problem):
            busy = busy_machines(machines, problem.blocks, self.total)
            return ShardedSchedule(busy, self.rule)
        shards = self.jobs.in_shards.shards
        work = Work(
            _counted,
            dict(enumerate(shards)),
            lambda number: (self.rule.cut(number, shards[number]),),
            "building the schedule",
        )
        none = np.zeros((0, len(problem.blocks)), dtype=np.int8)
        table = np.concatenate([none, *(counts for _, counts in Here().map(work))])
        at, blocks = np.nonzero(table)
        given = at, blocks, table[at, blocks]
        if given[2].dtype.kind == "i":
            given = at, blocks, given[2].astype(np.int64)
        return Schedule.from_counts(problem, machines, given).without_idle_machines()


def _counted(loaded: Loaded, cut: RuleCut) -> NDArray[Any]:
    return cut.of(loaded)


#: Which option every job takes.
AnyChoices: TypeAlias = Choices | Ruled
