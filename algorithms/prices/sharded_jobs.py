"""Jobs of which no table of options is kept: priced, and given options, shard by shard.

What jobs buy at a price vector is a pure function of their rows, so it need not be kept: all that a
search remembers of a pass are its prices and what each group bought. Where a fractional schedule is
rounded, one more pass says what each job takes, as a small integer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from math import floor
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cms.knapsack.pricing import price_histogram, price_jobs
from cms.problem.problem import Problem
from cms.running.stopping import Stopped, never
from cms.shards.counts import Coded, with_own
from cms.shards.engine import Here
from cms.shards.problem import ShardedProblem

from .jobs import Jobs, Pass, grid_bits_of

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from cms.problem.rows import Row
    from cms.shards.engine import Loaded

#: Jobs that are priced together where their options are asked for, which take memory.
PIECE = 2**16
Option: TypeAlias = tuple[int, ...]


class Pool(NamedTuple):
    """Jobs of one group that are undecided between options which differ in the same way.

    ``differences`` are those between each pass's option and the first's, ``weights`` the passes',
    ``given`` says how many jobs take each pass's option. The jobs ``left``, fewer than passes, with
    their option in each pass, take none: the mixture gives them fractions.
    """

    differences: tuple[Option, ...]
    weights: Sequence[Fraction]
    given: list[int]
    left: list[tuple[int, list[Option]]]

    @property
    def amount(self) -> int:
        """How many jobs there are."""
        return sum(self.given) + len(self.left)


class Dealt(NamedTuple):
    """What jobs take, and in all; without those that are `left` in their pools."""

    counts: tuple[Coded, ...]
    total: list[int]
    pools: list[Pool]
    left: frozenset[int]


class ShardedJobs:
    """The jobs of a problem as prices see them, each of them a kind of its own."""

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
        found = self.in_shards.map(_sizes, what="looking at the jobs", kept=True, stopped=stopped)
        for bits, longest in found:
            histogram += bits
            self.longest = max(self.longest, longest)
        self.grid_bits = grid_bits_of(len(self), histogram.tolist())

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
        """Let every job buy its cheapest option; see :meth:`Jobs.price`. None is kept."""
        del threads  # the engine has its own
        self.without(apart)
        total = 0
        loads = [[0] * len(prices) for _ in starts]
        bounds = starts.tolist()
        try:
            for part, groups in self.in_shards.map(
                _priced,
                lambda number: (list(prices), bounds),
                what="pricing",
                kept=True,
                stopped=stopped,
            ):
                total += part
                for group, load in groups:
                    loads[group] = [a + b for a, b in zip(loads[group], load, strict=True)]
        except Stopped:
            return None
        return Pass(total, loads, None)

    def take(
        self,
        starts: NDArray[np.int64],
        vectors: Sequence[Sequence[Sequence[int]]],
        weights: Sequence[Sequence[Fraction]],
    ) -> Dealt:
        """Let every job take what it buys; of each pool as many as the weights' whole parts say.

        Each group has the price vectors and weights of the passes that it takes shares of. The
        pools are by group, then by differences; the jobs that are left in them take nothing.
        """
        bounds, k = starts.tolist(), len(self.problem.blocks)
        found = self.in_shards.map(
            _bought,
            lambda number: (bounds, [[list(prices) for prices in many] for many in vectors]),
            what="rounding",
            stopped=self._stopped,
        )
        dealer = _Dealer(weights, k)
        parts = []
        for shard, bought in zip(self.in_shards.shards, found, strict=True):
            dealt = [
                dealer.deal(group, shard.first + begin, passes) for group, begin, passes in bought
            ]
            parts.append(Coded.joined(dealt, k))
        total = dealer.change
        for part in parts:
            times = np.bincount(part.codes, minlength=len(part.options)).tolist()
            for many, option in zip(times, part.options.tolist(), strict=True):
                total = [a + many * b for a, b in zip(total, option, strict=True)]
        counts = with_own(parts, dealer.own, self.in_shards.shards)
        pools = [pool for _, pool in sorted(dealer.pools.items())]
        out = frozenset(job for pool in pools for job, _ in pool.left)
        return Dealt(counts, total, pools, out)


class _Dealer:
    """Lets jobs in their order take what passes say: of n in a pool so many, rounded down."""

    def __init__(self, weights: Sequence[Sequence[Fraction]], n_blocks: int) -> None:
        self._weights, self._n_blocks = weights, n_blocks
        self.pools: dict[tuple[int, tuple[Option, ...]], Pool] = {}
        #: Jobs that were left, and then took something after all.
        self.own: dict[int, Option] = {}
        #: What is taken beyond what the jobs' parts say.
        self.change = [0] * n_blocks

    def deal(self, group: int, first: int, passes: Sequence[Coded]) -> Coded:
        """Return what each of some jobs takes; one that is left, what it buys in the first pass."""
        if len(passes) == 1:
            return passes[0]
        whole = Coded.joined(passes, self._n_blocks)
        codes, options = (
            whole.codes.reshape(len(passes), -1),
            list(map(tuple, whole.options.tolist())),
        )
        chosen = codes[0].copy()
        undecided = np.flatnonzero((codes != codes[0]).any(axis=0))
        which, rows = Coded.of_table(codes[:, undecided].T)
        keys = [
            tuple(_difference(options[code], options[row[0]]) for code in row)
            for row in rows.tolist()
        ]
        number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        pool_of = np.array([number[key] for key in keys], dtype=np.int64)[which]
        for key, at in number.items():
            members = undecided[pool_of == at]
            pool = self.pools.setdefault(
                (group, key), Pool(key, self._weights[group], [0] * len(passes), [])
            )
            amount = pool.amount + len(members)
            given = [floor(weight * amount) for weight in pool.weights]
            more = np.repeat(np.arange(len(passes)), np.subtract(given, pool.given))
            left = pool.left[len(more) :]
            for (job, mine), at_pass in zip(pool.left, more.tolist(), strict=False):
                self.own[job] = mine[at_pass]
                self._add(mine[at_pass])
            more = more[len(pool.left) :]
            chosen[members[: len(more)]] = codes[more, members[: len(more)]]
            for member in members[len(more) :].tolist():
                mine = [options[code] for code in codes[:, member].tolist()]
                left.append((first + member, mine))
                self._add(mine[0], -1)
            self.pools[group, key] = pool._replace(given=given, left=left)
        return Coded(chosen, whole.options)

    def _add(self, option: Option, times: int = 1) -> None:
        self.change = [a + times * b for a, b in zip(self.change, option, strict=True)]


def _difference(one: Option, other: Option) -> Option:
    return tuple(a - b for a, b in zip(one, other, strict=True))


#: The door to jobs, whether or not there is a table of their options.
AnyJobs: TypeAlias = Jobs | ShardedJobs


def pieces(first: int, n: int, bounds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Iterate over (group, begin, end) of the pieces in which a shard's jobs are priced."""
    end = first + n
    for group, begin in enumerate(bounds):
        after = bounds[group + 1] if group + 1 < len(bounds) else end
        low, high = max(begin, first), min(after, end)
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


def _bought(
    loaded: Loaded, bounds: list[int], vectors: list[list[list[int]]]
) -> list[tuple[int, int, list[Coded]]] | None:
    """Return [group, first job, what the jobs buy at each price vector] for each piece."""
    pieces_of = []
    for group, begin, end in pieces(loaded.first, len(loaded.rows), bounds):
        passes = []
        for prices in vectors[group]:
            found = price_jobs(
                loaded.rows.part(begin, end),
                prices,
                want_options=True,
                threads=loaded.threads,
                stopped=loaded.stopped,
            )
            if found is None or found.options is None:
                return None
            passes.append(Coded.of_table(found.options))
        pieces_of.append((group, begin, passes))
    return pieces_of
