"""Machines and blocks in parts, in rationals: floats propose who takes part, exact numbers decide.

Most jobs are served by one block type alone. Such a job is a number of blocks that is wanted; the
program that is left has a row a block type and one for each job that is split, and few columns. It
is solved in rationals; the prices found then say, in integers, which columns it lacks. These are
added until there are none. So the answer is an optimal vertex to the last digit, however far the
numbers are apart, and what a floating-point solver said decides how long it takes, nothing else.

Equal jobs are solved as one job with the sum of their demands; its blocks are then handed out to
them in turn.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, fsum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..tables.integers import least_pay, look_at
from .exact import Exact
from .proposal import Proposals

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..tables.integers import Tables
    from .exact import Found
    from .proposal import Column

#: Between which sizes floats are numbers as others.
_LEAST, _MOST = 1e-90, 1e90
#: Prices in whole numbers up to this; and what of a sum of floats may be wrong, at most.
_GRID, _LAST = 2.0**40, Fraction(1, 10**13)


class Blocks(NamedTuple):
    """Blocks in parts that serve all jobs, along a pseudoforest.

    ``main`` is each job's block type, -1 for those split between several; ``shares`` are the
    blocks of these, ``{job: {block type: blocks}}``.
    """

    main: NDArray[np.int64]
    shares: dict[int, dict[int, Fraction]]


class Bought(NamedTuple):
    """An optimal vertex, and its prices.

    No column is worth more than it costs at the blocks' prices, and the value is what the jobs pay
    at these for their cheapest blocks in parts, less the worth of the blocks held.
    """

    amounts: list[Fraction]
    blocks: Blocks
    prices: list[Fraction]
    value: Fraction


class Purchase:
    """Buy columns, in parts, so that all jobs are served in parts, at least cost.

    Every block type that serves a job is in some column.
    """

    def __init__(
        self, tables: Tables, columns: Sequence[Column], budget: Budget | None = None
    ) -> None:
        look_at(budget)
        self._order, self._starts, self._sizes = _equal(tables, budget)
        first = self._order[self._starts]
        self._demands = tables.demands
        self._tables = replace(
            tables, demands=tables.demands[first] * self._sizes, supply=tables.supply[first]
        )
        look_at(budget)
        self._alone = self._tables.alone
        look_at(budget)
        self._columns: list[Column] = []
        dearest = max((column.cost for column in columns), default=Fraction(1)) or Fraction(1)
        self._proposals = Proposals(self._tables.k, self._alone, dearest)
        for column in columns:
            self.add(column)

    def add(self, column: Column) -> None:
        """Offer one more column."""
        self._columns.append(column)
        self._proposals.add(column)

    def solve(self, held: Sequence[int], closed: Collection[int], budget: Budget | None) -> Bought:
        """Solve, with so many blocks of each type there already and some columns not to be bought.

        No job may be without a block type that is in a column not closed. Raises Stopped.
        """
        hint = self._proposals.propose(held, closed, budget)
        look_at(budget)
        exact = Exact(self._tables, self._alone, self._columns, held, closed)
        found = exact.solve(hint, budget)
        look_at(budget)
        return Bought(found.amounts, self._lined_up(found), found.prices, found.value)

    def rough_prices(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> NDArray[np.float64] | None:
        """Return about the best prices as whole numbers, up to a factor; None if floats fail."""
        found = self._proposals.prices(held, budget)
        if found is None:
            return None
        return np.asarray(np.rint(found / max(found.max(initial=0.0), _LEAST) * _GRID))

    def refuted(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> tuple[list[Fraction], Fraction] | None:
        """Find prices at which the jobs pay more than blocks held are worth, if floats find some.

        Returns the prices and that worth: no job pays less than its part of it, in exact numbers.
        """
        counted = self.rough_prices(held, budget)
        largest = self._alone.max(where=self._alone < np.inf, initial=0.0)
        if counted is None or largest >= _MOST:
            return None
        # Floor: every number is right but for a few units of the last place, and so is the sum.
        total = fsum(least_pay(self._alone, counted.tolist()).tolist())
        worth = floor(Fraction(total) * (1 - _LAST))
        prices = [Fraction(int(number)) for number in counted]
        there = sum((p * x for p, x in zip(prices, held, strict=True)), Fraction(0))
        return (prices, Fraction(worth)) if worth > there else None

    def _lined_up(self, found: Found) -> Blocks:
        """Return the blocks of all jobs: equal ones take what there is for them in turn."""
        main = np.empty(len(self._order), dtype=np.int64)
        blocks = Blocks(main, {})
        group = np.repeat(np.argsort(self._starts), self._sizes[np.argsort(self._starts)])
        main[self._order] = found.main[group]
        for j, shares in found.shares.items():
            start, size = int(self._starts[j]), int(self._sizes[j])
            members = self._order[start : start + size]
            main[members] = -1
            demand, end = int(self._demands[members[0]]), Fraction(0)
            for i, amount in shares:
                gives = int(self._tables.supply[j, i])
                # Members are intervals of length 1; block types have them one after the other.
                begin, end = end, min(Fraction(size), end + amount * gives / demand)
                main[members[ceil(begin) : max(ceil(begin), floor(end))]] = i
                for at in {floor(begin), floor(end)}:
                    part = min(end, Fraction(at + 1)) - max(begin, Fraction(at))
                    if 0 < part < 1:
                        own = blocks.shares.setdefault(int(members[at]), {})
                        own[i] = part * demand / gives
        return blocks


def _equal(
    tables: Tables, budget: Budget | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Group equal jobs: all jobs in order, where each group starts there, and its size.

    Groups come in the order of their first jobs.
    """
    columns = [tables.demands, *tables.supply.T]
    if tables.supply.dtype == object:
        keys = np.array([hash(row) for row in zip(*columns, strict=True)], dtype=np.int64)
    else:
        # Sums that wrap around: unequal jobs may have equal ones, and then are merely apart.
        factors = np.random.default_rng(0).integers(1, 2**62, len(columns)) * 2 + 1
        keys = np.zeros(tables.n, dtype=np.int64)
        for column, factor in zip(columns, factors, strict=True):
            keys += column * factor
    look_at(budget)
    order = np.argsort(keys, kind="stable")
    new = np.ones(tables.n, dtype=bool)
    new[1:] = False
    for column in columns:
        look_at(budget)
        new[1:] |= column[order[1:]] != column[order[:-1]]
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=tables.n)
    first = np.argsort(order[starts])
    return order, starts[first], sizes[first]
