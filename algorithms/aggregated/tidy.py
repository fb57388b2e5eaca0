"""Clean-up of schedules as counts: superfluous blocks and machines go, blocks are handed out anew.

Nothing here makes a schedule dearer, so that every guarantee survives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cms.plugin.algorithm import Named

from ..solvers.integer import Program, Settings, TooLarge
from ..tables.integers import schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from cms.plugin.algorithm import Budget
    from cms.reduction.reduction import Reduction

    from ..tables.integers import Tables
    from .program import Counts
    from .pseudoforest import Edge

#: Variables of the program that hands out blocks anew, and blocks of a type: beyond this nothing is
#: tried, for larger programs take seconds, and CP-SAT does not keep to its limits where numbers are
#: huge.
_MOST_EDGES, _MOST_BLOCKS = 3_000, 100_000
#: CP-SAT's deterministic time (about seconds) for each; how many are tried, and how many of these
#: may end undecided.
_EFFORT, _MOST_TRIES, _MOST_UNDECIDED = 0.2, 40, 3


def without_waste(tables: Tables, machines: Sequence[int], given: Mapping[Edge, int]) -> Counts:
    """Take back blocks that jobs can do without, then machines (reverse delete).

    Blocks of which machines have few are taken back first; the dearest machines go first.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}), jobs=[Job("bert", 1, {"half": 1})]
    ... )
    >>> without_waste(Tables.of(problem), [3], {(0, 0): 4})
    ([1], {(0, 0): 1})
    """
    machines, blocks = list(machines), dict(given)
    spare = [-demand for demand in tables.demands]
    for (i, j), number in blocks.items():
        spare[j] += number * tables.supply[j][i]
    most = [max((row[i] for row in tables.counts), default=0) for i in range(tables.k)]
    for i, j in sorted(blocks, key=lambda edge: (most[edge[0]], edge)):
        gives = tables.supply[j][i]
        less = blocks[i, j] if not gives else min(blocks[i, j], max(0, spare[j]) // gives)
        blocks[i, j] -= less
        spare[j] -= less * gives
    idle = tables.held(machines)
    for (i, _), number in blocks.items():
        idle[i] -= number
    order = sorted(range(tables.c), key=lambda at: (-tables.costs[at], sum(tables.counts[at]), at))
    for at in order:
        row = tables.counts[at]
        less = min([machines[at], *(idle[i] // row[i] for i in range(tables.k) if row[i])])
        if less > 0:
            machines[at] -= less
            idle = [left - less * number for left, number in zip(idle, row, strict=True)]
    return machines, {edge: number for edge, number in blocks.items() if number}


def with_fewer_machines(tables: Tables, counts: Counts, least: Fraction, budget: Budget) -> Counts:
    """Take machines away as long as the blocks of the others can be handed out to serve all jobs.

    Whether they can is a small integer program over the blocks, with the machines fixed (theory
    2.2, 3); where it is too large nothing is tried.

    Parameters
    ----------
    tables : Tables
    counts : machines and blocks given
    least : Fraction
        A lower bound on the cost: nothing is tried below.
    budget : Budget

    Returns
    -------
    machines, given
    """
    machines, given = list(counts[0]), counts[1]
    edges = sum(1 for row in tables.supply for f in row if f)
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
            outcome = handed_out(tables, fewer, budget)
            if outcome.given is None:
                undecided += not outcome.decided
                step //= 2
                continue
            machines, given = without_waste(tables, fewer, outcome.given)
            step = min(machines[at], (tables.cost(machines) - least) // price)
    return machines, given


class Answers:
    """Makes schedules of the user's problem of a run's counts, tidied up, and keeps the best.

    Parameters
    ----------
    reduction : Reduction
    tables : Tables
        Of the reduced problem.
    plain : bool
        Whether counts are left as they are.
    """

    def __init__(self, reduction: Reduction, tables: Tables, *, plain: bool) -> None:
        self._reduction, self._tables, self._plain = reduction, tables, plain
        self.best: Counts | None = None

    def named(self, counts: Counts, part: str) -> Named:
        """Make the schedule that a part of the run found."""
        tables = self._tables
        machines, given = counts if self._plain else without_waste(tables, *counts)
        if self.best is None or tables.cost(machines) < tables.cost(self.best[0]):
            self.best = machines, given
        return Named(schedule(self._reduction, tables, machines, given), part)

    def fewer(self, budget: Budget) -> Iterator[Named]:
        """Try to do with fewer machines than the best schedule has."""
        if self._plain or self.best is None or budget.stopped:
            return
        tables = self._tables
        counts = with_fewer_machines(tables, self.best, budget.lower_bound, budget)
        if tables.cost(counts[0]) < tables.cost(self.best[0]):
            yield Named(schedule(self._reduction, tables, *counts), "blocks handed out anew")


class HandedOut(NamedTuple):
    """Blocks given to jobs; None if it is decided that the machines do not do, or undecided."""

    given: dict[Edge, int] | None
    decided: bool


def handed_out(tables: Tables, machines: Sequence[int], budget: Budget) -> HandedOut:
    """Hand out the blocks of given machines so that all jobs are served.

    It is left undecided if CP-SAT does not find out within its effort, or cannot hold the numbers.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from cms.solving.driver import RunBudget
    >>> from cms.solving.ledger import Ledger
    >>> from algorithms.tables.integers import Tables
    >>> problem = Problem(
    ...     configurations=Configuration({"half": 2}), jobs=[Job("bert", 2, {"half": 1})]
    ... )
    >>> ledger = Ledger(problem, "demo", trusted=True, clock=lambda: 0.0)
    >>> budget = RunBudget(ledger, seed=0, threads=1, end=float("inf"))
    >>> handed_out(Tables.of(problem), [1], budget)
    HandedOut(given={(0, 0): 2}, decided=True)
    """
    held = tables.held(machines)
    program = Program()
    edges: dict[Edge, int] = {}
    try:
        for j, (demand, row) in enumerate(zip(tables.demands, tables.supply, strict=True)):
            mine, reach = {}, 0
            for i, gives in enumerate(row):
                most = min(held[i], -(-demand // gives)) if gives else 0
                if most:
                    edges[i, j] = program.variable(most)
                    mine[edges[i, j]] = gives
                    reach += most * gives
            if reach < demand:
                return HandedOut(None, True)
            program.at_least(mine, demand)
        for i, number in enumerate(held):
            program.at_most({v: 1 for (type_, _), v in edges.items() if type_ == i}, number)
    except TooLarge:
        return HandedOut(None, False)
    outcome = program.solve(budget, Settings(), effort=_EFFORT)
    if outcome.values is None:
        return HandedOut(None, outcome.status == "infeasible")
    given = {edge: outcome.values[v] for edge, v in edges.items() if outcome.values[v]}
    return HandedOut(given, True)
