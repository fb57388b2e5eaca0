"""Jobs of which no table of options is kept: priced, and looked at again, shard by shard.

What jobs buy at a price vector is a pure function of their rows, so it need not be kept: where a
fractional schedule mixes several passes, the few groups of jobs that it splits are priced once
more. All that a search remembers of a pass are its prices and what each group bought.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from cms.knapsack.pricing import price_histogram, price_jobs
from cms.problem.problem import Problem
from cms.running.stopping import Stopped, never
from cms.shards.engine import Here
from cms.shards.problem import ShardedProblem

from . import jobs as jobs_module
from .jobs import Jobs, Pass, grid_bits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.rows import Row
    from cms.shards.counts import Counts
    from cms.shards.shard import Loaded

#: Jobs that are priced together. What compiled code does with a row may depend on how many others
#: there are that it cannot take; so all who price a range of jobs do so in the same pieces.
PIECE = 2**16
#: The last jobs of a pool that are told with their options: as many as may be left to a program.
LAST = 12


class Pool(NamedTuple):
    """Jobs of one group that are undecided between options which differ in the same way.

    Attributes
    ----------
    differences : tuple of tuples of k ints
        Between each pass's option and the first pass's; of the first one zeros.
    amount : int
        How many jobs.
    last : list of (kind, options)
        The last ones, in their order, with the option of each pass.
    """

    group: int
    differences: tuple[tuple[int, ...], ...]
    amount: int
    last: list[tuple[int, list[list[int]]]]


class Pools(NamedTuple):
    """All pools of a mixture of passes, and how many of their jobs each shard has.

    Attributes
    ----------
    pools : list of Pool
        By group, then by differences.
    """

    pools: list[Pool]
    members: Mapping[int, Mapping[tuple[int, tuple[tuple[int, ...], ...]], int]]


class ShardedJobs:
    """The jobs of a problem as prices see them, each of them a kind of its own.

    Parameters
    ----------
    problem : Problem or ShardedProblem
        Reduced.
    threads : int, optional
        For a problem in memory; an engine has its own.

    Attributes
    ----------
    grid_bits : int
        As of :class:`Jobs`.
    longest : int
        Bits of the longest demand.

    Examples
    --------
    >>> import cms
    >>> problem = cms.Problem.from_arrays(
    ...     demands=[7, 5, 3], supply=[[4, 2], [1, 3], [2, 2]], configurations=[[1, 1]]
    ... )
    >>> jobs = ShardedJobs(problem)
    >>> found = jobs.price([2, 1], np.array([0, 2]))
    >>> found.total, found.loads
    (8, [[2, 2], [0, 2]])
    """

    repeated = False
    listed = False
    #: There are no options to be weighed.
    weights: NDArray[np.int64] = np.ones(0, dtype=np.int64)

    def __init__(
        self,
        problem: Problem | ShardedProblem,
        stopped: Callable[[], bool] = never,
        threads: int | None = None,
    ) -> None:
        self.problem, self._stopped = problem, stopped
        self.in_shards = (
            ShardedProblem.of(problem, engine=Here(threads))
            if isinstance(problem, Problem)
            else problem
        )
        histogram, self.longest = np.zeros(64, dtype=np.int64), 0
        found = self.in_shards.map(_sizes, what="looking at the jobs", stopped=stopped)
        for bits, longest in found.values():
            histogram += bits
            self.longest = max(self.longest, longest)
        self.grid_bits = grid_bits_of(len(self), histogram.tolist())
        self._pools: dict[Any, Pools] = {}

    def __len__(self) -> int:
        return self.in_shards.n_jobs

    def row(self, kind: int) -> Row:
        """Return the demand and supply of a job."""
        return self.in_shards.row(kind)

    def weight(self, kind: int) -> int:
        """Return 1: every job is a kind of its own."""
        del kind
        return 1

    def without(self, apart: Collection[int]) -> NDArray[np.int64]:
        """Return no weights: there are no options to be weighed."""
        if apart:
            raise AssertionError("jobs in shards have no branches of their own")
        return self.weights

    def price(
        self,
        prices: Sequence[int],
        starts: NDArray[np.int64],
        *,
        apart: Collection[int] = (),
        threads: int = 1,
        stopped: Callable[[], bool] = never,
    ) -> Pass | None:
        """Let every job buy its cheapest option; None if stopped.

        See :meth:`Jobs.price`. The options themselves are not kept.
        """
        del threads  # the engine has its own
        self.without(apart)
        total = 0
        loads = [[0] * len(prices) for _ in starts]
        bounds = starts.tolist()
        try:
            found = self.in_shards.map(
                _priced, lambda number: (list(prices), bounds), what="pricing", stopped=stopped
            )
        except Stopped:
            return None
        for part, groups in found.values():
            total += part
            for group, load in groups:
                loads[group] = [a + b for a, b in zip(loads[group], load, strict=True)]
        return Pass(total, loads, None)

    def pools(
        self,
        starts: NDArray[np.int64],
        vectors: Mapping[int, Sequence[Sequence[int]]],
    ) -> Pools:
        """Find the jobs that are undecided between passes.

        Parameters
        ----------
        starts : ndarray of int64
            The first job of each group.
        vectors : Mapping[int, sequence of price vectors]
            Of each group that takes a share of several passes.

        Raises
        ------
        Stopped
        """
        bounds = starts.tolist()
        mixed = {group: [list(prices) for prices in many] for group, many in vectors.items()}
        key = repr((bounds, sorted(mixed.items())))
        if key not in self._pools:
            only = dict.fromkeys(self._shards_of(starts, mixed))
            found = self.in_shards.map(
                _undecided,
                lambda number: (bounds, sorted(mixed.items())),
                what="rounding",
                only=only,
                stopped=self._stopped,
            )
            self._pools = {key: _merged(found)}  # those of earlier mixtures are not asked for again
        return self._pools[key]

    def taken(self, kinds: Sequence[int], rule: Counts) -> dict[int, tuple[int, ...]]:
        """Return what some jobs take under a rule.

        Raises
        ------
        Stopped
        """
        mine: dict[int, list[int]] = {}
        for kind in sorted(kinds):
            number, shard = self.in_shards.place(kind)
            mine.setdefault(number, []).append(kind - shard.first)
        shards = self.in_shards.shards
        found = self.in_shards.map(
            _taken,
            lambda number: (rule.cut(number, shards[number]), mine[number]),
            what="freeing jobs",
            only=dict.fromkeys(mine),
            stopped=self._stopped,
        )
        return {
            shards[number].first + j: tuple(option)
            for number, options in found.items()
            for j, option in zip(mine[number], options, strict=True)
        }

    def _shards_of(self, starts: NDArray[np.int64], groups: Collection[int]) -> Iterator[int]:
        """Iterate over the shards that have jobs of some groups."""
        ends = np.append(starts[1:], len(self))
        for number, shard in enumerate(self.in_shards.shards):
            last = shard.first + shard.n_jobs
            if any(starts[group] < last and ends[group] > shard.first for group in groups):
                yield number


#: The door to jobs, whether or not there is a table of their options.
AnyJobs: TypeAlias = Jobs | ShardedJobs


def jobs_of(
    problem: Problem | ShardedProblem, stopped: Callable[[], bool], threads: int
) -> AnyJobs:
    """Return the jobs of a reduced problem: with a table of options, or, if that is long, without.

    Where most jobs are like others, the table is much shorter than there are jobs.
    """
    if isinstance(problem, Problem):
        jobs = Jobs(problem, stopped)
        if len(jobs) <= max(jobs_module.MOST_LISTED, problem.n_jobs // 2):
            return jobs
    return ShardedJobs(problem, stopped, threads)


def listed(jobs: AnyJobs) -> Jobs:
    """Return jobs with a table of options, which all of these have where trees branch."""
    if not isinstance(jobs, Jobs):
        raise AssertionError("these jobs have no table of options")
    return jobs


def pieces(
    first: int, n: int, bounds: Sequence[int], groups: Collection[int] | None = None
) -> Iterator[tuple[int, int, int]]:
    """Iterate over (group, begin, end) of the pieces in which a shard's jobs are priced.

    Parameters
    ----------
    first, n : int
        The shard's first job, and how many it has.
    bounds : sequence of int
        The first job of each group.
    groups : collection of int, optional
        Those of interest.

    Examples
    --------
    >>> list(pieces(10, 5, [0, 12, 13]))
    [(0, 0, 2), (1, 2, 3), (2, 3, 5)]
    """
    end = first + n
    for group, begin in enumerate(bounds):
        after = bounds[group + 1] if group + 1 < len(bounds) else end
        low, high = max(begin, first), min(after, end)
        if groups is not None and group not in groups:
            continue
        for start in range(low, high, PIECE):
            yield group, start - first, min(start + PIECE, high) - first


# -- what is asked of a shard ----------------------------------------------------------------------


def _sizes(loaded: Loaded) -> tuple[list[int], int]:
    """Return a histogram of the bits that prices may have, and the bits of the longest demand."""
    rows = loaded.rows
    longest = max(int(rows.demands.max(initial=0)), *(row.demand for row in rows.wide.values()), 0)
    return price_histogram(rows), longest.bit_length()


def _priced(
    loaded: Loaded, prices: list[int], bounds: list[int]
) -> tuple[int, list[tuple[int, list[int]]]] | None:
    """Return what the jobs pay, and what those of each group buy."""
    total, groups = 0, dict[int, list[int]]()
    rows = loaded.rows
    for group, begin, end in pieces(loaded.first, len(rows), bounds):
        found = price_jobs(
            rows.part(begin, end), prices, threads=loaded.threads, stopped=loaded.stopped
        )
        if found is None:
            return None
        total += found.total
        load = groups.get(group, [0] * len(prices))
        groups[group] = [a + b for a, b in zip(load, found.load, strict=True)]
    return total, sorted(groups.items())


def options_of(loaded: Loaded, prices: Sequence[int], begin: int, end: int) -> NDArray[Any] | None:
    """Return the options that the jobs of a piece buy, shape (jobs, k); None if stopped."""
    found = price_jobs(
        loaded.rows.part(begin, end),
        prices,
        want_options=True,
        threads=loaded.threads,
        stopped=loaded.stopped,
    )
    return None if found is None else found.options


def differing(
    loaded: Loaded, vectors: Sequence[Sequence[int]], begin: int, end: int
) -> Mixed | None:
    """Find the jobs of a piece that buy different options at several prices; None if stopped."""
    found = [options_of(loaded, prices, begin, end) for prices in vectors]
    stack = [options for options in found if options is not None]
    if len(stack) < len(found):
        return None
    table = np.stack(stack, axis=1)
    apart = table - table[:, :1]
    undecided = np.flatnonzero(apart.any(axis=(1, 2)))
    flat = apart[undecided].reshape(len(undecided), -1)
    if flat.dtype.kind == "O":
        number: dict[tuple[int, ...], int] = {}
        pool = np.array(
            [number.setdefault(tuple(row), len(number)) for row in flat.tolist()], dtype=np.int64
        )
        distinct = list(number)
    else:
        rows, pool = np.unique(flat, axis=0, return_inverse=True)
        pool, distinct = pool.ravel(), [tuple(row) for row in rows.tolist()]
    k = table.shape[2]
    keys = [tuple(row[at : at + k] for at in range(0, len(row), k)) for row in distinct]
    return Mixed(table, undecided, pool, keys)


class Mixed(NamedTuple):
    """What the jobs of a piece buy at several prices.

    Attributes
    ----------
    undecided : ndarray of int64
        The jobs whose options differ.
    pool : ndarray of int64
        For each of these, how its options differ: an index of ``differences``.
    """

    options: NDArray[Any]
    undecided: NDArray[np.int64]
    pool: NDArray[np.int64]
    differences: list[tuple[tuple[int, ...], ...]]


def _undecided(
    loaded: Loaded, bounds: list[int], mixed: list[tuple[int, list[list[int]]]]
) -> list[Any] | None:
    """Return [group, differences, jobs, the last ones with their options] for each pool."""
    vectors = dict(mixed)
    found: dict[tuple[int, tuple[tuple[int, ...], ...]], list[Any]] = {}
    for group, begin, end in pieces(loaded.first, len(loaded.rows), bounds, vectors):
        piece = differing(loaded, vectors[group], begin, end)
        if piece is None:
            return None
        order = np.argsort(piece.pool, kind="stable")
        ends = np.cumsum(np.bincount(piece.pool, minlength=len(piece.differences)))
        for at, differences in enumerate(piece.differences):
            mine = piece.undecided[order[(ends[at - 1] if at else 0) : ends[at]]]
            entry = found.setdefault((group, differences), [0, []])
            entry[0] += len(mine)
            last = [
                (loaded.first + begin + j, piece.options[j].tolist()) for j in mine[-LAST:].tolist()
            ]
            entry[1] = [*entry[1], *last][-LAST:]
    return [[group, diff, *entry] for (group, diff), entry in sorted(found.items())]


def _merged(found: Mapping[int, list[Any]]) -> Pools:
    pools: dict[tuple[int, tuple[tuple[int, ...], ...]], list[Any]] = {}
    members: dict[int, dict[tuple[int, tuple[tuple[int, ...], ...]], int]] = {}
    for number, part in sorted(found.items()):
        members[number] = {}
        for group, differences, amount, last in part:
            key = group, tuple(tuple(row) for row in differences)
            members[number][key] = amount
            entry = pools.setdefault(key, [0, []])
            entry[0] += amount
            entry[1] = [*entry[1], *((kind, options) for kind, options in last)][-LAST:]
    return Pools([Pool(*key, *entry) for key, entry in sorted(pools.items())], members)


def _taken(loaded: Loaded, cut: Any, jobs: list[int]) -> list[list[int]]:
    """Return what some jobs of a shard take."""
    found: list[list[int]] = cut.of_some(loaded, np.array(jobs)).tolist()
    return found
