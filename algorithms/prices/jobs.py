"""The jobs of a problem, as prices see them: what all buy at given prices, and groups that share.

This is the door to the jobs: equal rows count once, with a weight.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack.kinds import kinds
from cms.knapsack.pricing import price_bits, price_histogram, price_jobs
from cms.running.stopping import never

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from cms.problem.problem import Problem
    from cms.problem.row import Row

#: Prices are multiples of 2**-40; from 500 rows on of 2**-b, as small as compiled code takes.
_GRID_BITS, _FINEST_BELOW = 40, 500
#: Up to this number of kinds of jobs each is a group; beyond, there are this many groups.
MOST_SINGLE, GROUPS = 128, 64
#: Of more kinds no table of options is kept: they are worked out again where they matter.
MOST_LISTED = 200_000


class Pass(NamedTuple):
    """What jobs buy at prices: their pay, each group's blocks, and each kind's option, if kept."""

    total: int
    loads: list[list[int]]
    options: NDArray[Any] | None


def grid_bits_of(n: int, histogram: Sequence[int]) -> int:
    """Return the bits of the grid of prices for a number of jobs; see :func:`price_histogram`."""
    if n < _FINEST_BELOW:
        return _GRID_BITS
    return max(10, min(_GRID_BITS, price_bits(histogram) - 1))


class Jobs:
    """Kinds of jobs, i.e. equal rows, with how many there are of each."""

    #: Whether there is a table of the options that all take, as there is where trees branch.
    listed = True
    problem: Any

    def __init__(self, problem: Problem, stopped: Callable[[], bool] = never) -> None:
        self.problem = problem
        self.rows, self.weights, self.kind_of = kinds(problem.rows, stopped)
        # Prices may be multiples of 2**-grid_bits without overflow in compiled pricing.
        self.grid_bits = grid_bits_of(len(self.rows), price_histogram(self.rows))
        #: Kinds with a rule for their bundles: they take whole bundles that prices name, no others.
        self.ruled = self.rows.ruled
        # Bits of the longest demand, if that is more than 63.
        self.longest = max((row.demand for row in self.rows.wide.values()), default=0).bit_length()

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def by_kind(self) -> NDArray[np.int64]:
        """The jobs, those of one kind together."""
        return np.argsort(self.kind_of, kind="stable")

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.weights)

    def members(self, kind: int) -> NDArray[np.int64]:
        """Return the jobs of a kind, in order."""
        end = int(self._ends[kind])
        return self.by_kind[end - self.weight(kind) : end]

    def row(self, kind: int) -> Row:
        """Return the demand and supply of a kind."""
        return self.rows.row(kind)

    def weight(self, kind: int) -> int:
        """Return how many jobs of a kind there are."""
        return int(self.weights[kind])

    def without(self, apart: Collection[int]) -> NDArray[np.int64]:
        """Return the weights of the kinds without some of the jobs."""
        if not apart:
            return self.weights
        weights = self.weights.copy()
        for job in apart:
            weights[self.kind_of[job]] -= 1
        return weights

    def price(
        self,
        prices: Sequence[int],
        starts: NDArray[np.int64],
        *,
        apart: Collection[int] = (),
        threads: int = 1,
        stopped: Callable[[], bool] = never,
    ) -> Pass | None:
        """Let every job buy its cheapest option; None if stopped."""
        found = price_jobs(
            self.rows,
            prices,
            want_options=True,
            weights=self.without(apart),
            threads=threads,
            stopped=stopped,
        )
        if found is None or found.options is None:
            return None
        return Pass(found.total, self.loads(found.options, starts, apart), found.options)

    def loads(
        self, options: NDArray[Any], starts: NDArray[np.int64], apart: Collection[int] = ()
    ) -> list[list[int]]:
        """Add up what each group buys, exactly, if a job of each kind takes its option."""
        return group_totals(options, self.without(apart), starts)


def ranges(n: int, most_single: int = MOST_SINGLE, groups: int = GROUPS) -> NDArray[np.int64]:
    """Return where groups of kinds begin: one for each kind, or ranges where there are many."""
    count = n if n <= most_single else groups
    return np.arange(count, dtype=np.int64) * n // max(1, count)


def group_totals(
    options: NDArray[Any], counts: NDArray[np.int64], starts: Sequence[int] | NDArray[np.int64]
) -> list[list[int]]:
    """Add up ``counts[r] * options[r]`` of each group of rows, without overflow."""
    if not len(options):
        return [[0] * options.shape[1] for _ in starts]
    reach = int(options.max(initial=0)) * int(counts.max(initial=0)) * len(options)
    kind: Any = np.int64 if reach < 2**62 else object
    totals = options.astype(kind, copy=False) * counts.astype(kind, copy=False)[:, None]
    return list(np.add.reduceat(totals, starts, axis=0).tolist())
