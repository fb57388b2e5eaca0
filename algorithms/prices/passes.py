"""Passes over the jobs: what they buy at exact prices, what that proves, and the cuts it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cms.knapsack.pricing import cheapest_option
from cms.plugin.algorithm import Named

from .jobs import listed
from .master import ZERO, Cut
from .region import PricePoint, Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cms.certificate.conditions import Condition
    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction

    from .sharded_jobs import AnyJobs


class Passes:
    """Passes over the jobs of a problem, possibly below branches.

    Groups are ranges of kinds; ``starts`` has the first kind of each. Of every pass ``options``
    keeps what a job of each kind bought, (kinds, k); where there is no such table, ``vectors`` the
    prices and ``loads`` what each group bought.
    """

    def __init__(
        self,
        jobs: AnyJobs,
        budget: Budget,
        path: Sequence[Condition],
        starts: NDArray[np.int64],
        *,
        free_machines: bool = False,
        region: Region | None = None,
    ) -> None:
        self.jobs, self._budget = jobs, budget
        self.region = region or Region(jobs.problem, path, free_machines=free_machines)
        self.starts, self.n_groups = starts, len(starts)
        self.weights = jobs.without(self.region.own_priced)
        self.passes = 0
        self.options: list[NDArray[Any]] = []
        self.vectors: list[tuple[int, ...]] = []
        self.loads: list[list[list[int]]] = []
        # What each job with branches of its own bought.
        self.own_options: list[list[tuple[int, ...]]] = []

    def kinds_of_group(self, group: int) -> slice:
        """Return the kinds of a group (not one of a single job)."""
        end = self.starts[group + 1] if group + 1 < self.n_groups else len(self.jobs)
        return slice(int(self.starts[group]), int(end))

    def evaluate(
        self, numbers: Sequence[int], denominator: int
    ) -> tuple[PricePoint, list[Cut]] | None:
        """Price all jobs at prices (then multipliers) over a denominator; None if stopped.

        The prices count in the region's unit.
        """
        jobs, region, budget = self.jobs, self.region, self._budget
        k = len(region.blocks)
        prices, multipliers = list(numbers[:k]), list(numbers[k:])
        self._pay_nobody(prices, multipliers)
        bought = jobs.price(
            prices,
            self.starts,
            apart=region.own_priced,
            threads=budget.threads,
            stopped=lambda: budget.stopped,
        )
        if bought is None:
            return None
        self.passes += 1
        if bought.options is None:
            self.vectors.append(tuple(prices))
            self.loads.append(bought.loads)
        total = bought.total
        own_options = []
        for job in region.own_priced:
            row = listed(jobs).problem.rows.row(job)
            own = region.prices_of_job(job, prices, multipliers)
            found = cheapest_option(own, row.supply, row.demand)
            if found is None:
                raise AssertionError("a job that no block serves has a branch of its own")
            total += found.value
            own_options.append(found.option)
        cuts = self._remember(bought.options, bought.loads, own_options)
        size = region.unit / denominator
        sized = [[size * x if x else ZERO for x in part] for part in (prices, multipliers)]
        scale, vector = region.fitted(sized[0], sized[1])
        point = PricePoint(vector, scale * size * total + region.constant(vector))
        if point.bound <= 0 < total and any(vector.limit_prices):
            # The limits ate up all the worth: less of it is more.
            scale, vector = region.fitted(sized[0], sized[1], no_limit_prices=True)
            point = PricePoint(vector, scale * size * total + region.constant(vector))
        return point, cuts

    def _known(self, options: NDArray[Any]) -> list[Cut]:
        """Take up a pass of another search; a job of its own takes what its kind takes."""
        jobs, apart = listed(self.jobs), self.region.own_priced
        own = [tuple(options[jobs.kind_of[job]].tolist()) for job in apart]
        return self._remember(options, jobs.loads(options, self.starts, apart), own)

    @property
    def known(self) -> int:
        """How many passes there are to choose from, those of another search included."""
        return len(self.options) or len(self.vectors)

    def _remember(
        self,
        options: NDArray[Any] | None,
        loads: Sequence[Sequence[int]],
        own_options: list[tuple[int, ...]],
    ) -> list[Cut]:
        """Keep what a pass chose and return its cuts."""
        region = self.region
        cuts = [Cut(tuple(load)) for load in loads]
        for job, option in zip(region.own_priced, own_options, strict=True):
            mine = ((at, option[i]) for at, i, j in region.job_terms if j == job)
            cuts.append(Cut(option, tuple(mine)))
        if options is not None:
            self.options.append(shortened(options))
        self.own_options.append(own_options)
        return cuts

    def _pay_nobody(self, prices: Sequence[int], multipliers: list[int]) -> None:
        """Lower multipliers that rounding left so high that a job would be paid for a block."""
        region = self.region
        for at, i, job in region.job_terms:
            if region.path[at].sign > 0:
                own = region.prices_of_job(job, prices, multipliers)[i]
                if own < 0:
                    multipliers[at] = max(0, multipliers[at] + own)


def certificate(reduction: Reduction, search: Passes, point: PricePoint) -> Named:
    """Name the prices that a search without branches on machines came to."""
    worth = point.bound - search.region.constant(point.vector)
    prices = reduction.restore_prices(search.region.leaf(point.vector), worth)
    what = "ray" if search.region.free_machines else "block prices"
    return Named(prices, f"{what}, {search.passes} pass{'' if search.passes == 1 else 'es'}")


def shortened(options: NDArray[Any]) -> NDArray[Any]:
    """Keep options in as few bytes as they need: a search remembers those of every pass."""
    largest = int(options.max(initial=0))
    for kind in (np.int16, np.int32):
        if largest <= np.iinfo(kind).max:
            return options.astype(kind)
    return options
