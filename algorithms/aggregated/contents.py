"""LP_agg where machines have too many contents to be listed: these join as prices ask for them.

Which content is worth most at given prices is a packing knapsack (theory 6.8). Prices in floats
find most of the contents; those of the exact vertex say whether one is lacking, so that the vertex
is that of the program over all contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem

from ..prices.region import Region, configuration_of
from .program import Aggregated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration

    from ..tables.integers import Tables
    from .program import Vertex


def solved(tables: Tables, budget: Budget | None) -> tuple[Tables, Vertex]:
    """Solve LP_agg over all contents of machines; return the tables with those that joined, too.

    Raises
    ------
    Stopped
    UnsupportedProblem
        If it cannot be told whether a content is lacking.

    Examples
    --------
    >>> from cms import Job, Problem, SizeBoundedConfigurations
    >>> from algorithms.tables.integers import Tables
    >>> names = [f"t{i}" for i in range(30)]
    >>> shares = SizeBoundedConfigurations({b: 100 + i for i, b in enumerate(names)}, 1000)
    >>> jobs = [Job(b, 100, {b: 1}) for b in names]
    >>> tables = Tables.of(Problem(configurations=shares, jobs=jobs))
    >>> enough, vertex = solved(tables, None)
    >>> tables.vast, enough.c > tables.c, float(round(vertex.value, 2))
    (('machine',), True, 343.5)
    """
    program = Aggregated(tables, budget)
    lacking = _Lacking(tables)
    while tables.vast:
        prices = program.rough_prices(budget)
        if prices is None or not program.join(lacking.at(prices)):
            break
    while True:
        vertex = program.solve(budget)
        if not program.join(lacking.at(vertex.prices)):
            if lacking.undecided:
                raise UnsupportedProblem(
                    "the search for the most valuable content of a machine comes to no end: sizes "
                    "are too far apart for a table of all capacities; use auto or price_and_branch"
                )
            return program.tables, vertex


class _Lacking:
    """Finds contents of vast sets that are worth more than their machines cost."""

    def __init__(self, tables: Tables) -> None:
        self._problem = tables.problem
        self._region = Region(tables.problem, proper=False)
        self._read = len(self._region.rows)
        types = enumerate(self._problem.machine_types)
        self._vast = [at for at, machine in types if machine.name in tables.vast]
        #: Whether the last prices may have left one out.
        self.undecided = False

    def at(self, prices: Sequence[Fraction]) -> list[Configuration]:
        """Return contents that prices ask for."""
        if not self._vast:
            return []
        region = self._region
        worth = region.worth(prices)
        self.undecided = any(worth[at] > region.costs[at] for at in self._vast)
        rows, self._read = region.rows[self._read :], len(region.rows)
        vast = [row for row in rows if row.machine in self._vast and any(row.counts)]
        return [configuration_of(self._problem, row) for row in vast]
