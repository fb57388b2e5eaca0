"""The aggregated linear program LP_agg, over machines and blocks given (theory 1.4), and rounding.

Both it and the program over blocks alone, for given machines, are solved in rationals, so that what
is rounded, what is told of its cost and whether machines do is right to the last digit.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named
from cms.plugin.guarantee import Guarantee

from ..integer_problem import look_at
from ..prices.region import Region, configuration_of
from ..solvers.floats import recognised
from .proposal import Column
from .pseudoforest import round_pseudoforest
from .purchase import Purchase, Vertex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.presolver.presolve import PresolvedProblem
    from cms.problem.parts import Configuration

    from ..integer_problem import Counts, Tables
    from .pseudoforest import Edge
    from .purchase import Blocks

#: Prices are rounded down to multiples of 1 / _GRID, and of the smallest price over _DIGITS.
_GRID, _DIGITS = 2**40, 2**32


class Aggregated:
    """The aggregated linear program of a problem without limits on machines, solved exactly."""

    def __init__(self, tables: Tables, budget: Budget | None = None) -> None:
        self.tables = tables
        pairs = zip(tables.costs, tables.counts, strict=True)
        self.purchase = Purchase(tables, [Column(cost, row) for cost, row in pairs], budget)

    def join(self, shapes: Iterable[Configuration]) -> bool:
        """Let further configurations take part; whether there is a new one."""
        before = self.tables.c
        self.tables = tables = self.tables.joined(shapes)
        for at in range(before, tables.c):
            self.purchase.add(Column(tables.costs[at], tables.counts[at]))
        return tables.c > before

    def solve(
        self,
        budget: Budget | None,
        there: Collection[int] = (),
        absent: Collection[int] = (),
    ) -> Vertex:
        """Solve with some configurations used at least once, and some not at all. Raises Stopped.

        Those present must have a block for every job.
        """
        tables = self.tables
        once = [int(at in there) for at in range(tables.c)]
        bought = self.purchase.solve(tables.held(once), absent, budget)
        machines = [x + one for x, one in zip(bought.machines, once, strict=True)]
        return bought._replace(machines=machines, value=bought.value + tables.cost(once))

    def beside(self, machines: Sequence[int], budget: Budget | None) -> Vertex:
        """Solve over blocks where machines are given and others cost. Raises Stopped.

        The given ones do if blocks can be cut where the others cost nothing.
        """
        return self.purchase.solve(self.tables.held(machines), (), budget)


def solved(tables: Tables, budget: Budget | None) -> tuple[Tables, Vertex]:
    """Solve LP_agg over all contents of machines; return the tables with those that joined, too.

    Which content of a vast set is worth most at given prices is a packing knapsack (theory 6.8).
    Prices in floats find most of the contents; those of the exact vertex say whether one is
    lacking. Raises Stopped, and UnsupportedProblem if that cannot be told.
    """
    program = Aggregated(tables, budget)
    if not tables.vast:
        return tables, program.solve(budget)
    problem, region = tables.problem, Region(tables.problem, proper=False)
    vast = [at for at, machine in enumerate(problem.machine_types) if machine.name in tables.vast]
    read, undecided = len(region.rows), True

    def joined(prices: Sequence[Fraction]) -> bool:
        """Whether contents of vast sets join that are worth more than their machines cost."""
        nonlocal read, undecided
        worth = region.worth(prices)
        undecided = any(worth[at] > region.costs[at] for at in vast)
        rows, read = region.rows[read:], len(region.rows)
        asked = [row for row in rows if row.machine in vast and any(row.counts)]
        return program.join(configuration_of(problem, row) for row in asked)

    while True:
        rough = program.purchase.rough_prices([0] * program.tables.k, budget)
        if rough is None or not joined(rough):
            break
    while True:
        vertex = program.solve(budget)
        if not joined(vertex.prices):
            break
    if undecided:
        raise UnsupportedProblem(
            "the search for the most valuable content of a machine comes to no end: sizes "
            "are too far apart for a table of all capacities; use auto or branch_and_price"
        )
    return program.tables, vertex


def certificate(
    reduction: PresolvedProblem, prices: Sequence[Fraction], part: str = "dual prices"
) -> Named | None:
    """Turn a program's dual values into block prices that prove a bound.

    The duals w_j of LP_agg give the prices max_j w_j f'_ij, at which the jobs' cheapest options are
    worth at least what the program is (theory 6.1). The claim is
    about the original problem; None if the prices are all 0.
    """
    problem = reduction.problem
    region = Region(problem)
    if not any(prices):
        return None
    counted = [price / region.unit for price in prices]
    found = recognised(counted)
    # A block of little price may be the only one that a job can have, and be had by the million.
    smallest = min(price for price in counted if price)
    grid = max(_GRID, ceil(_DIGITS / smallest))
    numbers, denominator = found or ([int(price * grid) for price in counted], grid)
    _, vector = region.fitted([region.unit * number / denominator for number in numbers], [])
    leaf = region.leaf(vector)
    worth = leaf.bound(problem) if reduction.lost else Fraction(0)
    return Named(reduction.restore_prices(leaf, worth), part)


def doubled(vertex: Vertex, tables: Tables, budget: Budget | None = None) -> Counts:
    """Round a vertex by T-2: ``(1 + phi) LP_agg + p`` machines (theory 1.6)."""
    return rounded(tables, [(1 + tables.phi) * x for x in vertex.machines], vertex.blocks, budget)


def one_block_each(vertex: Vertex, tables: Tables, budget: Budget | None = None) -> Counts:
    """Round a vertex by T-add: ``LP_agg + p + n`` machines (theory 1.6). Raises Stopped."""
    opened = list(map(ceil, vertex.machines))
    return repaired(tables, opened, _whole(tables, vertex.blocks, 0, budget), budget)


def guarantee_of_doubled(tables: Tables) -> Guarantee:
    """State T-2: ``(1 + phi) LP_agg``, and one machine for each of p configurations."""
    return Guarantee(1 + tables.phi, tables.dearest(tables.p), "LP_AGG", "T-2, theory 1.6")


def guarantee_of_one_block_each(tables: Tables) -> Guarantee:
    """State T-add: ``LP_agg``, p machines, and for each job the dearest that a block can need."""
    held = [i for i in range(tables.k) if any(row[i] for row in tables.counts)]
    each = max((tables.costs[tables.cheapest_with(i)] for i in held), default=Fraction(0))
    term = tables.dearest(tables.p) + tables.n * each
    return Guarantee(1, term, "LP_AGG", "T-add, theory 1.6")


def rounded(
    tables: Tables, machines: Sequence[Fraction], blocks: Blocks, budget: Budget | None = None
) -> Counts:
    """Open machines, rounded up, and hand out one block a job more than is needed, rounded.

    The machines are at least ``1 + phi`` times those whose blocks are handed out. So by the lemma
    no type is given away twice, and every job keeps what it needs.
    """
    return list(map(ceil, machines)), _whole(tables, blocks, 1, budget)


def _whole(tables: Tables, blocks: Blocks, more: int, budget: Budget | None) -> NDArray[Any]:
    """Round fractional blocks up; each job has ``more`` of its largest blocks than it needs."""
    given = np.zeros_like(tables.supply)
    edges: dict[Edge, Fraction] = {}
    for j, shares in blocks.shares.items():
        largest = max(int(tables.supply[j, i]) for i in shares)
        factor = 1 + more * Fraction(largest, int(tables.demands[j]))
        edges |= {(i, j): amount * factor for i, amount in shares.items()}
    for i in range(tables.k):
        look_at(budget)
        jobs = np.flatnonzero(blocks.main == i)
        demands, supply = tables.demands[jobs], tables.supply[jobs, i]
        given[jobs, i] = demands // supply + more
        # Those with one type lose a part of a block each, but for one that its type rounds up.
        ragged = jobs[demands % supply > 0]
        if len(ragged):
            last = int(ragged[-1])
            edges[i, last] = Fraction(int(tables.demands[last]), int(tables.supply[last, i])) + more
    for (i, j), number in round_pseudoforest(edges).items():
        given[j, i] = number
    return given


def repaired(
    tables: Tables, machines: Sequence[int], given: NDArray[Any], budget: Budget | None = None
) -> Counts:
    """Give every job what it lacks, from idle blocks, then new machines. Raises Stopped."""
    machines, given, supply = list(machines), given.copy(), tables.supply
    idle = [had - int(x) for had, x in zip(tables.held(machines), given.sum(axis=0), strict=True)]
    lack = tables.demands - (given * supply).sum(axis=1)
    # Large blocks first: they finish a job soonest.
    order = np.argsort(-supply, axis=1, kind="stable")
    for rank in range(tables.k if max(idle, default=0) > 0 else 0):
        look_at(budget)
        waiting = np.flatnonzero(lack > 0)
        preferred = order[waiting, rank]
        for i in range(tables.k):
            jobs = waiting[preferred == i]
            jobs = jobs[supply[jobs, i] > 0]
            if idle[i] > 0 and len(jobs):
                wanted = -(-lack[jobs] // supply[jobs, i])
                before = np.cumsum(wanted) - wanted
                number = np.clip(min(idle[i], int(wanted.sum())) - before, 0, wanted)
                given[jobs, i] += number
                lack[jobs] -= number * supply[jobs, i]
                idle[i] -= int(number.sum())
    look_at(budget)
    jobs = np.flatnonzero(lack > 0)
    best = order[jobs, 0] if tables.k else jobs
    number = -(-lack[jobs] // supply[jobs, best])
    given[jobs, best] += number
    for i in range(tables.k):
        missing = int(number[best == i].sum()) - min(0, idle[i])
        if missing:
            at = tables.cheapest_with(i)
            machines[at] += -(-missing // tables.counts[at][i])
    return machines, given
