"""A problem whose jobs are in shards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..certificate.certificate import price_all
from ..errors import InvalidProblem
from ..knapsack.pricing import price_jobs
from ..problem.digest import LEAF, digest, leaf_digests
from ..problem.machine_problem import MachineProblem
from ..problem.problem import Problem
from ..problem.rows import Rows
from ..running.stopping import Stopped, never
from ..values.names import NumberedNames
from .engine import SHARD, Engine, Here, Loaded, MemoryShard, Shard, Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.row import Row

#: What says, or works out, what a pass over all jobs finds.
Recall: TypeAlias = Callable[[Sequence[Any], Callable[[], Any]], Any]


class ShardedProblem(MachineProblem):
    """A problem whose jobs need not fit into memory; immutable, hashable.

    It has the machines of a :class:`cms.Problem`, while its jobs, called ``j0``, ``j1``, and so on,
    are in shards that an engine goes through. Every number of it is exact, and found shard by
    shard: sums over shards are sums over jobs, however these are cut, whoever works them out and
    however often. :func:`cms.open_problem` opens those of a folder.

    Parameters
    ----------
    head : Problem
        Machines, configurations and blocks; without jobs.
    shards : sequence of Shard
        Consecutive jobs from the first on.
    engine : Engine, optional
        By default this process.
    columns : tuple of int, optional
        Where the head's blocks stand among those of the shards; supply is then cut at the demand.
    recall : callable, optional
        Called with what a pass over all jobs is asked, in plain JSON, and a function that works it
        out; by default it does so. A journal knows the answers that it has heard.

    Examples
    --------
    >>> import cms
    >>> problem = cms.Problem.from_arrays(
    ...     demands=[7, 5, 3], supply=[[4, 2], [1, 3], [2, 2]], configurations=[[1, 1]]
    ... )
    >>> sharded = ShardedProblem.of(problem, size=2)
    >>> sharded.n_jobs, len(sharded.shards), sharded == problem
    (3, 2, True)
    """

    __slots__ = ("columns", "engine", "head", "recall", "shards")
    head: Problem
    shards: tuple[Shard, ...]
    engine: Engine
    columns: tuple[int, ...] | None
    recall: Recall

    def __init__(
        self,
        head: Problem,
        shards: Sequence[Shard],
        engine: Engine | None = None,
        columns: tuple[int, ...] | None = None,
        recall: Recall = lambda asked, work_out: work_out(),
    ) -> None:
        if head.n_jobs:
            raise InvalidProblem(f"the head has {head.n_jobs} jobs; expected none")
        n = 0
        for shard in shards:
            if shard.first != n:
                raise InvalidProblem(
                    f"{shard.name} begins with job {shard.first}; expected job {n}, the next one"
                )
            n += shard.n_jobs
        self._fill_machines(*head.machine_parts, NumberedNames("j", n))
        object.__setattr__(self, "head", head)
        object.__setattr__(self, "shards", tuple(shards))
        object.__setattr__(self, "engine", engine or Here())
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "recall", recall)

    @classmethod
    def of(
        cls, problem: Problem, *, size: int = SHARD, engine: Engine | None = None
    ) -> ShardedProblem:
        """Cut a problem in memory into shards of `size` jobs, which get other names."""
        rows, n = problem.rows, problem.n_jobs
        if rows.ruled:
            raise InvalidProblem("a job has replicas or equal routing, which shards do not hold")
        shards = [
            MemoryShard(at, min(size, n - at), f"the shard of job {at}", None, rows)
            for at in range(0, n, size)
        ]
        return cls(problem.replace(rows=rows.part(0, 0), job_names=()), shards, engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardedProblem, (self.head, self.shards, None, self.columns)

    def map(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        what: str,
        own: Sequence[Any] | None = None,
        stopped: Callable[[], bool] = never,
    ) -> Iterator[Any]:
        """Yield what a function returns for each shard, in their order; see :class:`Work`.

        It gets the same arguments everywhere, and then the one of its `own` if there are any.
        """
        one_by_one = [
            arguments if own is None else (*arguments, each) for each in own or self.shards
        ]
        work = Work(function, self.shards, one_by_one, what, stopped, self.columns)
        waiting: dict[int, Any] = {}
        at = 0
        for number, found in self.engine.map(work):
            waiting[number] = found
            while at in waiting:
                yield waiting.pop(at)
                at += 1

    def load(self) -> Problem:
        """Return the same problem in memory: jobs of a problem that fits."""
        parts = [shard.rows(shard.read(), self.columns) for shard in self.shards]
        rows = Rows.joined(parts, len(self.blocks))
        return Problem._rebuild(*self.machine_parts, self.job_names, rows)

    def narrowed(self, head: Problem, columns: Sequence[int]) -> ShardedProblem:
        """Return the problem of another head, with some of the blocks; supply is cut at the demand.

        `columns` are the head's blocks among the blocks of this problem.
        """
        mine = range(len(self.blocks)) if self.columns is None else self.columns
        within = tuple(mine[i] for i in columns)
        found = ShardedProblem(head, self.shards, self.engine, within, self.recall)
        if "facts" in self.__dict__:
            useful, servable = self.__dict__["facts"]
            found.__dict__["facts"] = [useful[i] for i in columns], servable
        return found

    def place(self, job: int) -> tuple[int, Shard]:
        """Return the shard of a job, and its number."""
        number = bisect_right(self.shards, job, key=lambda shard: shard.first) - 1
        return number, self.shards[number]

    def row(self, job: int) -> Row:
        """Return a single job's row."""
        _, shard = self.place(job)
        row = shard.row(job - shard.first)
        if self.columns is None:
            return row
        return row._replace(supply=tuple(min(row.supply[i], row.demand) for i in self.columns))

    def serving_blocks(self, stopped: Callable[[], bool] = never) -> NDArray[np.bool_]:
        """Return which blocks serve some job that has a demand, one entry a block."""
        return np.array(self._facts(stopped)[0]) > 0

    @property
    def wants_anything(self) -> bool:
        """Whether some job has a demand."""
        useful, servable = self._facts()
        return any(useful) or not servable

    def all_servable(self, blocks: Sequence[int]) -> bool:
        """Whether every job wants nothing, or gets something from one of these blocks."""
        _, servable = self._facts()
        if servable and len(set(blocks)) < len(self.blocks):
            return all(self.map(_servable, list(blocks), what="looking at the jobs"))
        return servable

    def useful_blocks(self) -> tuple[int, ...]:
        """Return how many blocks of each type all jobs could need."""
        return tuple(self._facts()[0])

    def _facts(self, stopped: Callable[[], bool] = never) -> tuple[list[int], bool]:
        """Return what one look at all jobs says, at the first question: see :func:`_looked_at`."""
        if "facts" not in self.__dict__:
            parts = self.map(_looked_at, what="looking at the jobs", stopped=stopped)
            useful, servable = zip(([0] * len(self.blocks), True), *parts, strict=True)
            sums = [sum(each) for each in zip(*useful, strict=True)]
            self.__dict__["facts"] = sums, all(servable)
        facts: tuple[list[int], bool] = self.__dict__["facts"]
        return facts

    def one_job_a_block(self) -> ShardedProblem:
        """Return this problem: every block serves one job."""
        return self

    def stated_sha256(self) -> str:
        """Return the SHA-256 that whoever wrote the shards states; nothing is read."""
        leaves: list[bytes] = []
        for shard in self.shards:
            if shard.leaves is None:
                raise InvalidProblem(f"{shard.name} has no leaves stated")
            leaves += shard.leaves
        return digest(self, leaves)

    def compute_sha256(self) -> str:
        """Compute ``sha256`` from all jobs; see ``docs/reference/files.md``."""
        if any(shard.first % LEAF for shard in self.shards):
            return self.load().compute_sha256()  # only tests have such small shards
        leaves: list[bytes] = []
        found = self.map(_leaves, list(self.blocks), self.n_jobs, what="computing the hash")
        for shard, mine in zip(self.shards, found, strict=True):
            leaves += mine
            if shard.leaves is not None and self.columns is None and list(shard.leaves) != mine:
                raise InvalidProblem(
                    f"{shard.name} has other jobs than its leaves' hashes say; pack it again"
                )
        return digest(self, leaves)


def _looked_at(loaded: Loaded) -> tuple[list[int], bool]:
    """Return how many blocks of each type the jobs could need, and whether each job has some."""
    every = range(loaded.rows.n_blocks)
    alone = Problem._rebuild(tuple(f"b{i}" for i in every), (), (), (), (), loaded.rows)
    return list(alone.useful_blocks()), _servable(loaded, every)


def _servable(loaded: Loaded, blocks: Sequence[int]) -> bool:
    return bool(loaded.rows.servable(blocks).all())


@price_all.register
def _(
    problem: ShardedProblem,
    prices: Sequence[int],
    special: Mapping[int, Sequence[int]],
    stopped: Callable[[], bool] | None,
    undisturbed: int,
) -> tuple[int, bool] | None:
    del undisturbed  # a shard is soon through
    own = [
        {j - each.first: list(special[j]) for j in special if 0 <= j - each.first < each.n_jobs}
        for each in problem.shards
    ]
    asked: Any = {"own": own, "what": "checking the bound", "stopped": stopped or never}
    try:
        parts = list(problem.map(_paid, list(prices), **asked))
    except Stopped:
        return None
    return sum(total for total, _ in parts), any(unservable for _, unservable in parts)


def _paid(
    loaded: Loaded, prices: list[int], special: dict[int, list[int]]
) -> tuple[int, bool] | None:
    found = price_jobs(
        loaded.rows, prices, special=special, threads=loaded.threads, stopped=loaded.stopped
    )
    return None if found is None else (found.total, bool(found.unservable))


def _leaves(loaded: Loaded, blocks: list[str], n_jobs: int) -> list[bytes]:
    return [*leaf_digests(NumberedNames("j", n_jobs), loaded.rows, blocks, loaded.first)]
