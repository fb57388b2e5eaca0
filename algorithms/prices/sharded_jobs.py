"""Jobs of which no table of options is kept: priced, and given options, shard by shard.

All that a search remembers of a pass are its prices and what each group bought. Where a fractional
schedule is rounded, one more pass says what each job takes, as a small integer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.knapsack.pricing import price_histogram, price_jobs
from cms.problem.problem import Problem
from cms.running.stopping import Stopped, never
from cms.shards.counts import Coded
from cms.shards.engine import Here
from cms.shards.problem import ShardedProblem

from .jobs import Jobs, Pass, grid_bits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.knapsack.pricing import Pricing
    from cms.problem.row import Row
    from cms.shards.engine import Loaded

#: Jobs that are priced together where their options are asked for, which take memory.
PIECE = 2**16


class ShardedJobs(Jobs):
    """The jobs of a problem as prices see them, each of them a kind of its own."""

    listed = False
    ruled: frozenset[int] = frozenset()

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
        self.weights = np.broadcast_to(np.int64(1), self.in_shards.n_jobs)
        histogram, self.longest = self._recalled(self._sizes, stopped)
        self.grid_bits = grid_bits_of(len(self), histogram)

    def row(self, kind: int) -> Row:
        """Return the demand and supply of a job."""
        return self.in_shards.row(kind)

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
        assert not apart, "jobs in shards have no branches of their own"
        try:
            total, loads = self._recalled(self._priced, stopped, list(prices), starts.tolist())
        except Stopped:
            return None
        return Pass(total, loads, None)

    def _recalled(self, ask: Callable[..., Any], stopped: Callable[[], bool], *asked: Any) -> Any:
        """Return what a pass over all jobs found, perhaps in an earlier run."""
        key = [ask.__name__, list(self.problem.blocks), *asked]
        return self.in_shards.recall(key, lambda: ask(stopped, *asked))

    def _sizes(self, stopped: Callable[[], bool]) -> tuple[list[int], int]:
        found = self.in_shards.map(_sizes, what="looking at the jobs", stopped=stopped)
        histograms, longest = zip([[0] * 64, 0], *found, strict=True)
        return [sum(bits) for bits in zip(*histograms, strict=True)], max(longest)

    def _priced(
        self, stopped: Callable[[], bool], prices: list[int], bounds: list[int]
    ) -> tuple[int, list[list[int]]]:
        total, loads = 0, [[0] * len(prices) for _ in bounds]
        asked = bounds, [[prices]] * len(bounds), False
        for pieces in self.in_shards.map(_bought, *asked, what="pricing", stopped=stopped):
            for group, _, [found] in pieces:
                total += found.total
                loads[group] = [a + b for a, b in zip(loads[group], found.load, strict=True)]
        return total, loads

    def bought(
        self, starts: NDArray[np.int64], vectors: Sequence[Sequence[Sequence[int]]]
    ) -> Iterator[list[tuple[int, int, list[Coded]]]]:
        """Yield for each shard (group, first job, what all buy in each pass) of its pieces.

        Each group has the price vectors of the passes that it takes shares of.
        """
        asked = starts.tolist(), [[list(prices) for prices in many] for many in vectors], True
        return self.in_shards.map(_bought, *asked, what="rounding", stopped=self._stopped)


def _sizes(loaded: Loaded) -> tuple[list[int], int]:
    """Return a histogram of the bits that prices may have, and the bits of the longest demand."""
    rows = loaded.rows
    longest = max(int(rows.demands.max(initial=0)), *(row.demand for row in rows.wide.values()), 0)
    return price_histogram(rows), longest.bit_length()


def _bought(
    loaded: Loaded, bounds: list[int], vectors: list[list[list[int]]], listed: bool
) -> list[tuple[int, int, list[Any]]] | None:
    """Return (group, first job, what the jobs buy at each price vector) of each piece."""
    pieces = []
    end = loaded.first + len(loaded.rows)
    for group, (low, high) in enumerate(pairwise([*bounds, end])):
        for first in range(max(low, loaded.first), min(high, end), PIECE):
            last = min(first + PIECE, high, end)
            rows = loaded.rows.part(first - loaded.first, last - loaded.first)
            passes: list[Coded | Pricing] = []
            for prices in vectors[group]:
                found = price_jobs(
                    rows,
                    prices,
                    want_options=listed,
                    threads=loaded.threads,
                    stopped=loaded.stopped,
                )
                if found is None:
                    return None
                passes.append(found if found.options is None else Coded.of_table(found.options))
            pieces.append((group, first, passes))
    return pieces
