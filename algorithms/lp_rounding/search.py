"""Machines that would do if blocks could be cut: the searches behind the roundings of theory 3."""

from __future__ import annotations

import heapq
import itertools
from fractions import Fraction
from math import ceil, comb
from typing import TYPE_CHECKING

from cms.running.stopping import Stopped

from ..aggregated.program import Aggregated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.plugin.algorithm import Budget

    from ..aggregated.program import Vertex
    from ..tables.integers import Tables


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
    """List the machine vectors that cost at least and at most so much, the cheapest first."""
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
    """Bound how many machine vectors cost at most so much: binomial(U + c, c)."""
    cheapest = min((cost for cost in tables.costs if cost), default=Fraction(1))
    largest = ceil(most / cheapest)
    return comb(largest + tables.c, tables.c)
