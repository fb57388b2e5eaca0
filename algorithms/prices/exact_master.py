"""The master of a price search in exact rationals, for few jobs whose numbers floats do not hold.

Prices of 10^-80 of a machine beside others of a quarter of one are nothing to a floating-point
solver: it stops far from the best prices, and where it stops it cannot tell. The same program with
a dozen rows is small enough to be solved exactly, as the linear program over options.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ..solvers.simplex import cheapest
from .master import Proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .master import Cut
    from .region import Region

#: Rows of the program: block types, groups of jobs and limits. With more it takes seconds.
MOST_ROWS = 40


class ExactMaster:
    """Take so much of each pass, and machines, that all jobs are served: as cheaply as possible.

    Its dual solution are prices, as those of :class:`Master`, which it takes the place of.

    Parameters
    ----------
    region : Region
        Without branches.
    n_groups : int
    stopped : callable

    Attributes
    ----------
    weights, machines, extra
        As those of :class:`Master`.
    """

    def __init__(self, region: Region, n_groups: int, stopped: Callable[[], bool]) -> None:
        self._region, self._n_groups, self._stopped = region, n_groups, stopped
        self._cuts: list[tuple[int, Cut]] = []
        self._prices: list[Fraction] = []
        self.weights: list[Fraction] = []
        self.machines: list[Fraction] = []
        self.extra: dict[tuple[int, int], float] = {}

    @staticmethod
    def fits(region: Region, n_groups: int) -> bool:
        """Whether the program is small enough, and has no branches."""
        rows = len(region.blocks) + n_groups + sum(limit is not None for limit in region.limits)
        return not region.path and not region.free_machines and rows <= MOST_ROWS

    def add(self, group: int, cut: Cut) -> None:
        """Add what a group buys in a pass."""
        self._cuts.append((group, cut))

    def solve(self) -> Proposal | None:
        """Return the best prices as far as the cuts tell; None if limits forbid, or if stopped."""
        region, machines = self._region, self._region.rows
        rows: list[Sequence[int]] = []
        for i in range(len(region.blocks)):
            rows.append(
                [row.counts[i] for row in machines] + [-cut.load[i] for _, cut in self._cuts]
            )
        for group in range(self._n_groups):
            rows.append([0] * len(machines) + [int(g == group) for g, _ in self._cuts])
        least = [0] * len(region.blocks) + [1] * self._n_groups
        for m, limit in enumerate(region.limits):
            if limit is not None:
                mine = [-int(row.machine == m) for row in machines]
                rows.append(mine + [0] * len(self._cuts))
                least.append(-limit)
        costs = [region.costs[row.machine] for row in machines]
        try:
            found = cheapest(
                [*costs, *(Fraction(0) for _ in self._cuts)], rows, least, self._stopped
            )
        except ValueError:
            return None  # so far no passes fit the limits
        if found is None:
            return None
        self.machines = found.values[: len(machines)]
        self.weights = found.values[len(machines) :]
        self._prices = found.prices[: len(region.blocks)]
        return Proposal(self._prices, [], found.cost)

    def vertex(self) -> list[Fraction]:
        """Return the last solve's prices."""
        return self._prices
