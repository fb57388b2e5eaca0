"""A problem whose jobs are in shards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..certificate.leaf_proofs import Paid, paid
from ..errors import InvalidProblem
from ..knapsack.pricing import price_jobs
from ..problem.digest import LEAF, digest, leaf_digests
from ..problem.machine_problem import MachineProblem
from ..problem.problem import Problem
from ..problem.rows import Rows
from ..running.stopping import Stopped, never
from ..values.names import NumberedNames
from .engine import SHARD, Engine, Here, Loaded, MemoryShard, Narrowed, Shard, Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem.rows import Row

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

    __slots__ = ("engine", "head", "recall", "shards")
    head: Problem
    shards: tuple[Shard, ...]
    engine: Engine
    recall: Recall

    def __init__(
        self,
        head: Problem,
        shards: Sequence[Shard],
        engine: Engine | None = None,
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
        self._fill_machines(
            head.blocks, head.configurations, head.machine_types, NumberedNames("j", n)
        )
        object.__setattr__(self, "head", head)
        object.__setattr__(self, "shards", tuple(shards))
        object.__setattr__(self, "engine", Here() if engine is None else engine)
        object.__setattr__(self, "recall", recall)

    @classmethod
    def of(
        cls, problem: Problem, *, size: int = SHARD, engine: Engine | None = None
    ) -> ShardedProblem:
        """Cut a problem in memory into shards of `size` jobs, which get other names."""
        rows, n = problem.rows, problem.n_jobs
        shards = [
            MemoryShard(rows, at, min(size, n - at), f"the shard of job {at}")
            for at in range(0, n, size)
        ]
        return cls(problem.replace(rows=rows.part(0, 0), job_names=()), shards, engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardedProblem, (self.head, self.shards)

    def map(
        self,
        function: Callable[..., Any],
        arguments: Callable[[int], Sequence[Any]] = lambda number: (),
        *,
        what: str,
        stopped: Callable[[], bool] = never,
    ) -> Iterator[Any]:
        """Yield what a function returns for each shard, in their order; see :class:`Work`."""
        waiting: dict[int, Any] = {}
        at = 0
        work = Work(function, self.shards, arguments, what, stopped)
        for number, found in self.engine.map(work):
            waiting[number] = found
            while at in waiting:
                yield waiting.pop(at)
                at += 1

    def load(self) -> Problem:
        """Return the same problem in memory: jobs of a problem that fits."""
        parts = [shard.rows(shard.read()) for shard in self.shards]
        rows = Rows.joined(parts, len(self.blocks))
        machines = self.blocks, self.configurations, self.machine_types
        return Problem._rebuild(*machines, self.job_names, rows)

    def narrowed(self, head: Problem, columns: Sequence[int]) -> ShardedProblem:
        """Return the problem of another head, with some of the blocks; supply is cut at the demand.

        `columns` are the head's blocks among the blocks of this problem.
        """
        shards = [
            Narrowed(each, tuple(columns), each.first, each.n_jobs, each.name)
            for each in self.shards
        ]
        found = ShardedProblem(head, shards, self.engine, self.recall)
        if "facts" in self._cache:
            found._cache["facts"] = self._cache["facts"].narrowed(columns)
        return found

    def place(self, job: int) -> tuple[int, Shard]:
        """Return the shard of a job, and its number."""
        number = bisect_right(self.shards, job, key=lambda shard: shard.first) - 1
        return number, self.shards[number]

    def row(self, job: int) -> Row:
        """Return a single job's row."""
        _, shard = self.place(job)
        return shard.row(job - shard.first)

    def serving_blocks(self, stopped: Callable[[], bool] = never) -> NDArray[np.bool_]:
        """Return which blocks serve some job that has a demand, one entry a block."""
        return np.array(self._facts(stopped).serving, dtype=np.bool_)

    @property
    def wants_anything(self) -> bool:
        """Whether some job has a demand."""
        return self._facts(never).wants

    def all_servable(self, blocks: Sequence[int]) -> bool:
        """Whether every job wants nothing, or gets something from one of these blocks."""
        if self._facts(never).lost or len(set(blocks)) == len(self.blocks):
            return not self._facts(never).lost
        asked = list(blocks)
        return all(list(self.map(_servable, lambda at: (asked,), what="looking at the jobs")))

    def useful_blocks(self) -> tuple[int, ...]:
        """Return how many blocks of each type all jobs could need."""
        return tuple(self._facts(never).useful)

    def _facts(self, stopped: Callable[[], bool]) -> _Facts:
        """Return what one look at all jobs says, at the first question."""
        if "facts" not in self._cache:
            parts = list(self.map(_looked_at, what="looking at the jobs", stopped=stopped))
            k = range(len(self.blocks))
            self._cache["facts"] = _Facts(
                [any(part.serving[i] for part in parts) for i in k],
                [sum(part.useful[i] for part in parts) for i in k],
                wants=any(part.wants for part in parts),
                lost=any(part.lost for part in parts),
            )
        facts: _Facts = self._cache["facts"]
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
        blocks, leaves = list(self.blocks), list[bytes]()
        found = self.map(_leaves, lambda at: (blocks, self.n_jobs), what="computing the hash")
        for shard, part in zip(self.shards, found, strict=True):
            leaves += (mine := [bytes.fromhex(leaf) for leaf in part])
            if shard.leaves is not None and list(shard.leaves) != mine:
                raise InvalidProblem(
                    f"{shard.name} has other jobs than its leaves' hashes say; pack it again"
                )
        return digest(self, leaves)


# -- what is asked of a shard ----------------------------------------------------------------------


class _Facts(NamedTuple):
    """What a look at jobs says: which blocks serve some and how many; if some want, or are lost."""

    serving: list[bool]
    useful: list[int]
    wants: bool
    lost: bool

    def narrowed(self, columns: Sequence[int]) -> _Facts:
        """Return the same of some of the blocks."""
        serving = [self.serving[i] for i in columns]
        return self._replace(serving=serving, useful=[self.useful[i] for i in columns])


def _looked_at(loaded: Loaded) -> _Facts:
    rows = loaded.rows
    names = tuple(f"b{i}" for i in range(rows.n_blocks))
    alone = Problem._rebuild(names, (), (), (), rows)
    serving, useful = alone.serving_blocks().tolist(), list(alone.useful_blocks())
    lost = not rows.servable(range(rows.n_blocks)).all()
    return _Facts(serving, useful, wants=bool(rows.wants.any()), lost=lost)


def _servable(loaded: Loaded, blocks: list[int]) -> bool:
    return bool(loaded.rows.servable(blocks).all())


@paid.register
def _(
    problem: ShardedProblem,
    prices: Sequence[int],
    special: Mapping[int, Sequence[int]],
    stopped: Callable[[], bool] | None,
    undisturbed: int,
) -> Paid | None:
    del undisturbed  # a shard is soon through
    total, lost = 0, False

    def own(number: int) -> tuple[list[int], dict[int, list[int]]]:
        """The prices of a shard, jobs counted from its first one."""
        shard = problem.shards[number]
        mine = range(shard.first, shard.first + shard.n_jobs)
        return list(prices), {j - shard.first: list(special[j]) for j in special if j in mine}

    try:
        watched = never if stopped is None else stopped
        for part, unservable in problem.map(_paid, own, what="checking the bound", stopped=watched):
            total, lost = total + part, lost or unservable
    except Stopped:
        return None
    return Paid(total, lost)


def _paid(
    loaded: Loaded, prices: list[int], special: dict[int, list[int]]
) -> tuple[int, bool] | None:
    found = price_jobs(
        loaded.rows, prices, special=special, threads=loaded.threads, stopped=loaded.stopped
    )
    return None if found is None else (found.total, bool(found.unservable))


def _leaves(loaded: Loaded, blocks: list[str], n_jobs: int) -> list[str]:
    names = NumberedNames("j", n_jobs)
    return [leaf.hex() for leaf in leaf_digests(names, loaded.rows, blocks, loaded.first)]
