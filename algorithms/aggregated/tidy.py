"""Clean-up of schedules as counts: superfluous blocks and machines go, blocks are handed out anew.

Nothing here makes a schedule dearer, so that every guarantee survives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cms.plugin.algorithm import Named

from ..integer_problem import look_at
from ..solvers.integer import Program, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem

    from ..integer_problem import Counts, Tables

#: Variables of the program that hands out blocks anew, and blocks of a type: beyond this nothing is
#: tried, for larger programs take seconds, and CP-SAT does not keep to its limits where numbers are
#: huge.
_MOST_EDGES, _MOST_BLOCKS = 3_000, 100_000
#: CP-SAT's deterministic time (about seconds) for each; how many are tried, and how many of these
#: may end undecided.
_EFFORT, _MOST_TRIES, _MOST_UNDECIDED = 0.2, 40, 3


def without_waste(tables: Tables, machines: Sequence[int], given: NDArray[Any]) -> Counts:
    """Take back blocks that jobs can do without, rarest first, then machines, dearest first."""
    machines, given = list(machines), given.copy()
    spare = np.maximum(0, (given * tables.supply).sum(axis=1) - tables.demands)
    most = [max((row[i] for row in tables.counts), default=0) for i in range(tables.k)]
    for i in sorted(range(tables.k), key=most.__getitem__):
        gives = tables.supply[:, i]
        less = np.minimum(given[:, i], spare // np.maximum(1, gives))
        spare -= less * gives
        given[:, i] = np.where(gives > 0, given[:, i] - less, 0)
    idle = [had - int(x) for had, x in zip(tables.held(machines), given.sum(axis=0), strict=True)]
    order = sorted(range(tables.c), key=lambda at: (-tables.costs[at], sum(tables.counts[at]), at))
    for at in order:
        row = tables.counts[at]
        less = min([machines[at], *(idle[i] // row[i] for i in range(tables.k) if row[i])])
        if less > 0:
            machines[at] -= less
            idle = [left - less * number for left, number in zip(idle, row, strict=True)]
    return machines, given


def with_fewer_machines(tables: Tables, counts: Counts, least: Fraction, budget: Budget) -> Counts:
    """Take machines away as long as the blocks of the others can be handed out to serve all jobs.

    Whether they can is a small integer program over the blocks, with the machines fixed (theory
    2.2, 3); where it is too large nothing is tried, nor below ``least``, a bound on the cost.
    """
    machines, given = list(counts[0]), counts[1]
    edges = int((tables.supply > 0).sum())
    if edges > _MOST_EDGES or max(tables.held(machines), default=0) > _MOST_BLOCKS:
        return machines, given
    tries = undecided = 0
    for at in sorted(range(tables.c), key=lambda at: (-tables.costs[at], at)):
        price = tables.costs[at]
        room = tables.cost(machines) - least
        if not price or room < price:
            continue
        step = min(machines[at], room // price)
        while step and tries < _MOST_TRIES and undecided < _MOST_UNDECIDED and not budget.stopped:
            tries += 1
            fewer = [*machines]
            fewer[at] -= step
            decided, found = handed_out(tables, fewer, budget)
            if found is None:
                undecided += not decided
                step //= 2
                continue
            machines, given = without_waste(tables, fewer, found)
            step = min(machines[at], (tables.cost(machines) - least) // price)
    return machines, given


class Answers:
    """Makes schedules of a run's counts, tidied up unless ``plain``, and keeps the best."""

    def __init__(
        self, reduction: PresolvedProblem, tables: Tables, budget: Budget, *, plain: bool
    ) -> None:
        self._reduction, self._tables = reduction, tables
        self._budget, self._plain = budget, plain
        self.best: Counts | None = None

    def named(self, counts: Counts, part: str) -> Named:
        """Make the schedule that a part of the run found. Raises Stopped."""
        tables = self._tables
        look_at(self._budget)
        machines, given = counts if self._plain else without_waste(tables, *counts)
        if self.best is None or tables.cost(machines) < tables.cost(self.best[0]):
            self.best = machines, given
        look_at(self._budget)
        return Named(tables.schedule(self._reduction, machines, given), part)

    def fewer(self) -> Iterator[Named]:
        """Try to do with fewer machines than the best schedule has."""
        tables, budget = self._tables, self._budget
        if self._plain or self.best is None or budget.stopped:
            return
        counts = with_fewer_machines(tables, self.best, budget.lower_bound, budget)
        if tables.cost(counts[0]) < tables.cost(self.best[0]):
            yield Named(tables.schedule(self._reduction, *counts), "blocks handed out anew")


def handed_out(
    tables: Tables, machines: Sequence[int], budget: Budget
) -> tuple[bool, NDArray[Any] | None]:
    """Hand out machines' blocks to serve all jobs; whether CP-SAT decided, and how."""
    held = tables.held(machines)
    program = Program()
    types: list[dict[int, int]] = [{} for _ in held]
    edges: dict[tuple[int, int], int] = {}
    try:
        pairs = zip(tables.demands.tolist(), tables.supply.tolist(), strict=True)
        for j, (demand, row) in enumerate(pairs):
            mine, reach = {}, 0
            for i, gives in enumerate(row):
                most = min(held[i], -(-demand // gives)) if gives else 0
                if most:
                    edges[j, i] = variable = program.variable(most)
                    mine[variable], types[i][variable] = gives, 1
                    reach += most * gives
            if reach < demand:
                return True, None
            program.at_least(mine, demand)
        for terms, number in zip(types, held, strict=True):
            program.at_most(terms, number)
    except TooLarge:
        return False, None
    outcome = program.solve(budget, effort=_EFFORT)
    if outcome.values is None:
        return outcome.status == "infeasible", None
    given = np.zeros_like(tables.supply)
    for edge, variable in edges.items():
        given[edge] = outcome.values[variable]
    return True, given
