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
from math import floor, fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..solvers.floats import near_table
from .exact import Arrays, Exact
from .proposal import Proposals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..tables.integers import Tables
    from .exact import Found
    from .pseudoforest import Edge
    from .serving import Column

#: Between which sizes floats are numbers as others.
_LEAST, _MOST = 1e-90, 1e90
#: Prices in whole numbers up to this; and what of a sum of floats may be wrong, at most.
_GRID, _LAST = 2.0**40, Fraction(1, 10**13)
#: Numbers below this are kept in int64.
_FITS = 2**62


class Bought(NamedTuple):
    """An optimal vertex, and its prices.

    Attributes
    ----------
    amounts : list of Fractions
        Of every column.
    blocks : dict
        ``{(block type, job): blocks}``: a pseudoforest.
    prices : list of k Fractions
        Of the blocks: no column is worth more than it costs, and the value is what the jobs pay at
        these prices for their cheapest blocks in parts, less the worth of the blocks held.
    value : Fraction
    """

    amounts: list[Fraction]
    blocks: dict[Edge, Fraction]
    prices: list[Fraction]
    value: Fraction


class Purchase:
    """Buy columns, in parts, so that all jobs are served in parts, at least cost.

    Parameters
    ----------
    tables : Tables
    columns : sequence of Column
        Every block type that serves a job is in some column.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.aggregated.serving import Column
    >>> from algorithms.tables.integers import Tables
    >>> shapes = [Configuration({"3g": 2}), Configuration({"1g": 7})]
    >>> jobs = [Job("bert", 10, {"3g": 4, "1g": 1})]
    >>> tables = Tables.of(Problem(configurations=shapes, jobs=jobs))
    >>> columns = [Column(*pair) for pair in zip(tables.costs, tables.counts)]
    >>> Purchase(tables, columns).solve([0, 0], (), None).value
    Fraction(5, 4)
    """

    def __init__(self, tables: Tables, columns: Sequence[Column]) -> None:
        self._all = tables
        self._members = _equal(tables)
        first = [members[0] for members in self._members]
        self._tables = replace(
            tables,
            demands=[tables.demands[mine[0]] * len(mine) for mine in self._members],
            supply=[tables.supply[j] for j in first],
        )
        self._columns: list[Column] = []
        dearest = max((column.cost for column in columns), default=Fraction(1)) or Fraction(1)
        self._proposals = Proposals(self._tables, dearest)
        for column in columns:
            self.add(column)
        size = self._tables.n, tables.k
        floats = near_table(self._tables.supply).reshape(size)
        supply = _array(self._tables.supply).reshape(size)
        self._arrays = Arrays(_array(self._tables.demands), supply, floats)
        demands = near_table([self._tables.demands])[0]
        self._sound = max(demands.max(initial=0.0), floats.max(initial=0.0)) < _MOST
        self._has = floats > 0
        self._asked = np.where(self._has, demands[:, None] / np.where(self._has, floats, 1.0), 0.0)

    def add(self, column: Column) -> None:
        """Offer one more column."""
        self._columns.append(column)
        self._proposals.add(column)

    def solve(
        self, held: Sequence[int], closed: Collection[int], budget: Budget | None
    ) -> Bought | None:
        """Solve; None if stopped.

        Parameters
        ----------
        held : sequence of k ints
            Blocks that are there already.
        closed : collection of int
            Columns that are not to be bought; no job may be without a block type that is in some
            other column.
        budget : Budget or None
        """
        hint = self._proposals.propose(held, closed, budget)
        exact = Exact(self._tables, self._arrays, self._columns, held, closed)
        found = exact.solve(hint, budget)
        if found is None:
            return None
        return Bought(found.amounts, dict(self._lined_up(found)), found.prices, found.value)

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

        Returns
        -------
        prices, worth
            No job pays less than its part of the worth, as exact numbers; or None.
        """
        counted = self.rough_prices(held, budget)
        if counted is None or not self._sound:
            return None
        asked = np.where(self._has, self._asked * counted, np.inf).min(axis=1)
        # Floor: every number is right but for a few units of the last place, and so is the sum.
        worth = Fraction(fsum(asked.tolist())) * (1 - _LAST)
        prices = [Fraction(int(number)) for number in counted]
        there = sum((p * x for p, x in zip(prices, held, strict=True)), Fraction(0))
        return (prices, Fraction(floor(worth))) if floor(worth) > there else None

    def _lined_up(self, found: Found) -> Iterator[tuple[Edge, Fraction]]:
        """Yield the blocks of all jobs: equal ones take what there is for them in turn."""
        for j, members in enumerate(self._members):
            demand, row = Fraction(self._all.demands[members[0]]), self._tables.supply[j]
            shares = found.shares.get(j)
            if shares is None:
                i = int(found.main[j])
                yield from (((i, job), demand / row[i]) for job in members)
                continue
            if len(members) == 1:
                yield from (((i, members[0]), amount) for i, amount in shares if amount)
                continue
            left = [(i, amount * row[i]) for i, amount in shares if amount]
            for job in members:
                missing = demand
                while missing and left:
                    i, amount = left[0]
                    taken = min(missing, amount)
                    yield (i, job), taken / row[i]
                    missing -= taken
                    if taken == amount:
                        left.pop(0)
                    else:
                        left[0] = i, amount - taken


def _equal(tables: Tables) -> list[list[int]]:
    """List the jobs by demand and supply: equal ones together, in the order of the first."""
    members: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for j, (demand, row) in enumerate(zip(tables.demands, tables.supply, strict=True)):
        members.setdefault((demand, tuple(row)), []).append(j)
    return list(members.values())


def _array(numbers: Sequence[Any]) -> NDArray[Any]:
    """Return whole numbers as int64 where these hold them, and as ints otherwise."""
    try:
        found = np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=object)
    return found if int(found.max(initial=0)) < _FITS else found.astype(object)
