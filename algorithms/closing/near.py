"""Options of a job that are nearly cheapest at given prices."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from cms.knapsack.pricing import cheapest_option, common_denominator

from .options import minimal_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..prices.points import PricePoint
    from ..prices.sharded_jobs import AnyJobs


class NearOptions:
    """The nearly cheapest options of kinds of jobs, made when asked for.

    Parameters
    ----------
    jobs : Jobs or ShardedJobs
    point : PricePoint
    """

    def __init__(self, jobs: AnyJobs, point: PricePoint) -> None:
        self._jobs = jobs
        self.prices, self.denominator = common_denominator(point.vector.prices)

    def all_within(self, kind: int, slack: Fraction, most: int) -> list[tuple[int, ...]] | None:
        """List all minimal options of reduced cost up to the slack; None if there are too many."""
        row = self._jobs.row(kind)
        best = cheapest_option(self.prices, row.supply, row.demand)
        if best is None or not best.exact:
            return None
        reach = best.value + floor(slack * self.denominator)
        return minimal_options(self.prices, row.supply, row.demand, reach, most)

    def some(self, kind: int, slack: Fraction, most: int) -> list[tuple[int, ...]]:
        """List options of reduced cost within the slack; if many, up to less, or part of a tie."""
        row = self._jobs.row(kind)
        best = cheapest_option(self.prices, row.supply, row.demand)
        if best is None:
            return []
        reach, found = floor(slack * self.denominator), None
        while found is None:
            found = minimal_options(
                self.prices,
                row.supply,
                row.demand,
                best.value + reach,
                most,
                # Where prices grow as sizes do, hundreds of options may cost the same.
                partly=reach == 0,
            )
            reach //= 4
        return found or [best.option]

    def price(self, option: Sequence[int]) -> int:
        """Return what an option costs, in parts of one over ``denominator``."""
        return sum(price * n for price, n in zip(self.prices, option, strict=True) if n)
