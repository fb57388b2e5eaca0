"""Passes over the jobs: what they buy at exact prices, what that proves, and the cuts it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cms.knapsack.pricing import cheapest_bundle
from cms.plugin.algorithm import Named
from cms.values.arrays import narrowest

from .region import PricePoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem

    from .jobs import Jobs
    from .region import Region


class Passes:
    """Passes over the jobs of a problem, possibly below branches.

    Groups are ranges of kinds; ``starts`` has the first kind of each. Of every pass ``options``
    keeps what a job of each kind bought, (kinds, k); where there is no such table, ``vectors`` the
    prices. ``own_options`` are those of jobs with branches of their own.
    """

    def __init__(
        self, jobs: Jobs, budget: Budget, starts: NDArray[np.int64], region: Region
    ) -> None:
        self.jobs, self._budget, self.region = jobs, budget, region
        self.starts = starts
        self.weights = jobs.without(self.region.own_priced)
        self.passes = 0
        self.options: list[NDArray[Any]] = []
        self.vectors: list[tuple[int, ...]] = []
        self.own_options: list[list[tuple[int, ...]]] = []

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.starts)

    def kinds_of_group(self, group: int) -> slice:
        """Return the kinds of a group."""
        end = self.starts[group + 1] if group + 1 < self.n_groups else len(self.jobs)
        return slice(int(self.starts[group]), int(end))

    def evaluate(
        self, numbers: Sequence[int], denominator: int
    ) -> tuple[PricePoint, list[list[int]]] | None:
        """Price all jobs at prices, then multipliers, in the region's unit; None if stopped."""
        jobs, region, budget = self.jobs, self.region, self._budget
        k = len(region.blocks)
        prices, multipliers = list(numbers[:k]), list(numbers[k:])
        # Multipliers that rounding left so high that a job would be paid for a block are lowered.
        for at, i, job in region.job_terms:
            if region.path[at].sign > 0:
                own = region.prices_of_job(job, prices, multipliers)[i]
                multipliers[at] = max(0, multipliers[at] + min(0, own))
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
        else:
            self.options.append(narrowest(bought.options))
        total = bought.total
        own_options = []
        for job in region.own_priced:
            row = jobs.problem.rows.row(job)
            vector = region.prices_of_job(job, prices, multipliers)
            found = cheapest_bundle(vector, row)
            if found is None:
                raise AssertionError("a job that no block serves has a branch of its own")
            total += found.value
            own_options.append(found.option)
        self.own_options.append(own_options)
        size = region.unit / denominator
        sized = [[size * x for x in part] for part in (prices, multipliers)]
        scale, fitted = region.fitted(*sized)
        point = PricePoint(fitted, scale * size * total + region.constant(fitted))
        if point.bound <= 0 < total and any(fitted.limit_prices):
            # The limits ate up all the worth: less of it is more.
            scale, fitted = region.fitted(*sized, no_limit_prices=True)
            point = PricePoint(fitted, scale * size * total + region.constant(fitted))
        return point, bought.loads


def certificate(reduction: PresolvedProblem, search: Passes, point: PricePoint) -> Named:
    """Name the prices that a search without branches on machines came to."""
    worth = point.bound - search.region.constant(point.vector)
    prices = reduction.restore_prices(search.region.leaf(point.vector), worth)
    what = "ray" if search.region.free_machines else "block prices"
    return Named(prices, f"{what}, {search.passes} pass{'' if search.passes == 1 else 'es'}")
