"""Machines that would do if blocks could be cut: the searches behind the roundings of theory 3.

MILP_c, machines whole and blocks in parts (1.4), is solved by cuts: CP-SAT finds the cheapest
machines that keep them; the exact program over blocks says whether they do, or makes a new one.
"""

from __future__ import annotations

import heapq
import itertools
from fractions import Fraction
from math import ceil, comb, floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator
from cms.running.stopping import Stopped
from cms.values.numbers import common_step

from ..aggregated.program import Aggregated, repaired
from ..solvers.integer import LARGEST, Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget

    from ..aggregated.purchase import Vertex
    from ..integer_problem import Tables

#: How far from machines in parts that do to whole ones cuts are looked for.
_BETWEEN = (Fraction(3, 10), Fraction(1))


def cheapest_support(tables: Tables, budget: Budget) -> Vertex:
    """Solve the aggregated program with every configuration used at least once, or not at all.

    This is the least over the 2^c supports (theory 3, Theorem A''), found by branching: a
    configuration used less than once is left out, or has to be there. A branch whose program costs
    no less than the best found is cut off. All numbers are exact: not used means exactly 0. Stopped
    it returns the best so far, or raises Stopped.
    """
    program = Aggregated(tables, budget)
    # (lower bound, number, must, must not)
    waiting: list[tuple[Fraction, int, frozenset[int], frozenset[int]]] = [
        (Fraction(0), 0, frozenset(), frozenset())
    ]
    best: Vertex | None = None
    number = itertools.count(1)
    while waiting and not (budget.stopped and best):
        bound, _, there, absent = heapq.heappop(waiting)
        if best is not None and bound >= best.value:
            break
        if not tables.served_by([int(at not in absent) for at in range(tables.c)]):
            continue
        try:
            vertex = program.solve(budget, there, absent)
        except Stopped:
            if best is None:
                raise
            break
        if best is not None and vertex.value >= best.value:
            continue
        part = [(abs(x - Fraction(1, 2)), at) for at, x in enumerate(vertex.machines) if 0 < x < 1]
        if not part:
            best = vertex
            continue
        _, at = min(part)
        for must, must_not in ((there | {at}, absent), (there, absent | {at})):
            heapq.heappush(waiting, (vertex.value, next(number), must, must_not))
    assert best is not None
    return best


def vectors(tables: Tables, least: Fraction, most: Fraction) -> Iterator[list[int]]:
    """List the machine vectors of a cost within two limits, the cheapest first."""
    start = (Fraction(0), (0,) * tables.c)
    waiting, seen = [start], {start[1]}
    while waiting:
        cost, vector = heapq.heappop(waiting)
        if cost >= least:
            yield list(vector)
        for at, price in enumerate(tables.costs):
            after = (*vector[:at], vector[at] + 1, *vector[at + 1 :])
            if cost + price <= most and price and after not in seen:
                seen.add(after)
                heapq.heappush(waiting, (cost + price, after))


def number_of_vectors(tables: Tables, most: Fraction) -> int:
    """Bound how many machine vectors are within a cost: binomial(U + c, c)."""
    cheapest = min((cost for cost in tables.costs if cost), default=Fraction(1))
    largest = ceil(most / cheapest)
    return comb(largest + tables.c, tables.c)


class Cut(NamedTuple):
    """Machines that do have a least worth at certain prices: ``values`` a configuration."""

    values: list[int]
    least: int

    def keeps(self, machines: Sequence[int]) -> bool:
        """Whether given machines may do."""
        return sum(v * x for v, x in zip(self.values, machines, strict=True)) >= self.least


def cut_by_vertex(vertex: Vertex, tables: Tables, machines: Sequence[int]) -> Cut:
    """Return what a vertex says of all machines that do, beside given ones that did not."""
    held = tables.held(machines)
    pairs = zip(vertex.prices, held, strict=True)
    worth = vertex.value + sum((p * x for p, x in pairs), Fraction(0))
    return cut_by(vertex.prices, worth, tables)


def cut_by(prices: Sequence[Fraction], worth: Fraction, tables: Tables) -> Cut:
    """Return what prices say of all machines that do, where jobs pay ``worth`` at them."""
    counted, _ = common_denominator([*prices, worth])
    *numbers, least = counted
    values = [sum(p * a for p, a in zip(numbers, row, strict=True) if a) for row in tables.counts]
    # One machine worth more does as well as one worth just that.
    return Cut([min(value, least) for value in values], least)


def limit_on_cost(tables: Tables) -> Fraction:
    """Return what serving every job by its best blocks alone costs: whole machines cost no more."""
    return tables.cost(repaired(tables, [0] * tables.c, np.zeros_like(tables.supply))[0])


def in_reach(tables: Tables) -> bool:
    """Whether CP-SAT's integers can hold the costs of all machines that may be needed."""
    step = common_step(tables.costs)
    return not step or (tables.c + 1) * limit_on_cost(tables) <= step * (LARGEST // 4)


def cheapest_whole(
    tables: Tables, vertex: Vertex, most: Fraction, budget: Budget
) -> tuple[list[int], Vertex]:
    """Solve MILP_c for tables in reach, where machines that cost ``most`` do. Raises Stopped.

    Returns the machines, and the blocks and free machines beside them.
    """
    program = Aggregated(tables, budget)
    search = _Search(tables, most)
    search.add(cut_by(vertex.prices, vertex.value, tables))
    while True:
        machines = search.cheapest(budget)
        # What cuts off a point between them and machines in parts that do cuts them off as well,
        # and says more of others near there.
        for part in _BETWEEN:
            pairs = zip(machines, vertex.machines, strict=True)
            between = tables.held([part * x + (1 - part) * y for x, y in pairs])
            refuted = program.purchase.refuted(between, budget)
            if refuted is not None:
                cut = cut_by(*refuted, tables)
                if not cut.keeps(machines) and not search.add(cut).keeps(machines):
                    break
        else:
            found = program.beside(machines, budget)
            if not found.value:
                return machines, found
            if search.add(cut_by_vertex(found, tables, machines)).keeps(machines):
                search.excluded.append(machines)


class _Search:
    """The cheapest machines that keep all cuts.

    Machines that cost nothing are none of its business: no cut gives them a worth.
    """

    def __init__(self, tables: Tables, most: Fraction) -> None:
        self._step = common_step(tables.costs)
        self._costs = tables.costs
        self._highs = {
            at: floor(most / cost) for at, cost in enumerate(tables.costs) if 0 < cost <= most
        }
        self._cuts: list[Cut] = []
        #: Machines that do not do, nor do fewer; only where a cut had to be made weaker.
        self.excluded: list[list[int]] = []

    def add(self, cut: Cut) -> Cut:
        """Make machines keep a cut; where its numbers are too large, one that is a bit weaker."""
        reach = sum(cut.values[at] * max(1, high) for at, high in self._highs.items())
        if max(reach, cut.least) > LARGEST // 4:
            scale = max(reach, cut.least) // (LARGEST // 8)
            values = [-(-value // scale) for value in cut.values]
            cut = Cut(values, cut.least // scale)
        self._cuts.append(cut)
        return cut

    def cheapest(self, budget: Budget) -> list[int]:
        """Find them. Raises Stopped."""
        machines = [0] * len(self._costs)
        program = Program()
        number = {at: program.variable(high) for at, high in self._highs.items()}
        for cut in self._cuts:
            terms = {x: cut.values[at] for at, x in number.items() if cut.values[at]}
            program.at_least(terms, cut.least)
        for few in self.excluded:
            more = {}
            for at, x in number.items():
                if few[at] < self._highs[at]:
                    more[at] = program.variable(1)
                    program.at_least({x: 1, more[at]: -few[at] - 1}, 0)
            program.at_least(dict.fromkeys(more.values(), 1), 1)
        program.minimise({x: int(self._costs[at] / self._step) for at, x in number.items()})
        outcome = program.solve(budget)
        if outcome.status == "infeasible":
            raise AssertionError("no machines keep the cuts, though some that do are known")
        if outcome.status != "optimal" or outcome.values is None:
            raise Stopped
        for at, x in number.items():
            machines[at] = outcome.values[x]
        return machines
