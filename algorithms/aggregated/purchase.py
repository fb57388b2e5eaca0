"""Machines and blocks in parts, in rationals: floats propose who takes part, exact numbers decide.

Most jobs are served by one block type alone. Such a job is a number of blocks that is wanted; the
program that is left has a row a block type and one for each job that is split, and few columns. It
is solved in rationals; the prices found then say, in integers, which columns it lacks. These are
added until there are none. So the answer is an optimal vertex to the last digit, however far the
numbers are apart, and what a floating-point solver said decides how long it takes, nothing else.

Equal jobs are one job of so many times the demand; in the end they line up for its blocks.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.knapsack.pricing import common_denominator

from ..solvers.equations import solved
from ..solvers.floats import near, near_table
from ..solvers.simplex import cheapest
from .proposal import Basis, Hint, Proposals, Serving
from .sums import total_of_quotients

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..tables.integers import Tables
    from .pseudoforest import Edge

#: With no more block types the exact program takes milliseconds from scratch; where optima tie it
#: then ends at machines of which clean-up mostly leaves fewer than of the floats' own.
_FEW_TYPES = 12
#: What floats in a comparison may be wrong by, and between which sizes they are numbers as others.
_WRONG, _LEAST, _MOST = 1e-9, 1e-90, 1e90
#: Prices in whole numbers up to this; and what of a sum of floats may be wrong, at most.
_GRID, _LAST = 2.0**40, Fraction(1, 10**13)
#: Numbers below this are kept in int64.
_FITS = 2**62


class Column(NamedTuple):
    """What can be bought, in parts: its cost, and its blocks of each type."""

    cost: Fraction
    counts: Sequence[int]


class Bought(NamedTuple):
    """An optimal vertex, and its prices.

    Attributes
    ----------
    amounts : list of Fractions
        Of every column.
    edges : list of (block type, job)
        Who serves whom: a pseudoforest.
    prices : list of k Fractions
        Of the blocks: no column is worth more than it costs, and the value is what the jobs pay at
        these prices for their cheapest blocks in parts, less the worth of the blocks held.
    value : Fraction
    """

    amounts: list[Fraction]
    edges: list[Edge]
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
        self.demands = _array(self._tables.demands)
        self.supply = _array(self._tables.supply).reshape(self._tables.n, tables.k)
        self.floats = near_table(self._tables.supply).reshape(self._tables.n, tables.k)
        demands = near_table([self._tables.demands])[0]
        self._sound = max(demands.max(initial=0.0), self.floats.max(initial=0.0)) < _MOST
        there = self.floats > 0
        self._asked = np.where(there, demands[:, None] / np.where(there, self.floats, 1.0), 0.0)

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
        found = _Exact(self, held, closed).solve(budget)
        if found is None:
            return None
        edges = list(self._lined_up(found))
        return Bought(found.amounts, edges, found.prices, found.value)

    def refuted(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> tuple[list[Fraction], Fraction] | None:
        """Find prices at which the jobs pay more than blocks held are worth, if floats find some.

        Returns
        -------
        prices, worth
            No job pays less than its part of the worth, as exact numbers; or None.
        """
        found = self._proposals.prices(held, budget)
        if found is None or not self._sound:
            return None
        counted = np.rint(found / max(found.max(initial=0.0), _LEAST) * _GRID)
        asked = np.where(self.floats > 0, self._asked * counted, np.inf).min(axis=1)
        # Floor: every number is right but for a few units of the last place, and so is the sum.
        worth = Fraction(fsum(asked.tolist())) * (1 - _LAST)
        prices = [Fraction(int(number)) for number in counted]
        there = sum((p * x for p, x in zip(prices, held, strict=True)), Fraction(0))
        return (prices, Fraction(floor(worth))) if floor(worth) > there else None

    def _lined_up(self, found: _Found) -> Iterator[Edge]:
        """Yield the edges of all jobs: equal ones take what there is for them in turn."""
        for j, members in enumerate(self._members):
            shares = found.shares.get(j)
            if shares is None:
                i = int(found.main[j])
                yield from ((i, job) for job in members)
                continue
            if len(members) == 1:
                yield from ((i, members[0]) for i, amount in shares if amount)
                continue
            demand = Fraction(self._all.demands[members[0]])
            row = self._tables.supply[j]
            left = [(i, amount * row[i]) for i, amount in shares if amount]
            for job in members:
                missing = demand
                while missing and left:
                    i, amount = left[0]
                    yield i, job
                    taken = min(missing, amount)
                    missing -= taken
                    if taken == amount:
                        left.pop(0)
                    else:
                        left[0] = i, amount - taken

    # What the exact part needs.

    @property
    def tables(self) -> Tables:
        """The problem, equal jobs being one."""
        return self._tables

    @property
    def columns(self) -> Sequence[Column]:
        """What can be bought."""
        return self._columns

    def proposal(self, held: Sequence[int], closed: Collection[int], budget: Budget | None) -> Hint:
        """Say in floats which columns are bought and which block types serve each job."""
        return self._proposals.propose(held, closed, budget)


class _Found(NamedTuple):
    """A vertex: blocks of jobs that are split, the block types of the others."""

    amounts: list[Fraction]
    shares: dict[int, list[tuple[int, Fraction]]]
    main: NDArray[np.int64]
    prices: list[Fraction]
    value: Fraction


class _Exact:
    """One program in rationals; columns and jobs' block types join it as its prices ask for them.

    Parameters
    ----------
    purchase : Purchase
    held, closed
        As :meth:`Purchase.solve` has them.
    """

    def __init__(self, purchase: Purchase, held: Sequence[int], closed: Collection[int]) -> None:
        self._purchase, self._held, self._closed = purchase, held, closed
        self._tables, self._columns = purchase.tables, purchase.columns
        self._open = [at for at in range(len(self._columns)) if at not in closed]
        k = self._tables.k
        # The cheapest way to a block of each type; None if there is none.
        self._cheapest: list[int | None] = [
            min(
                (at for at in self._open if self._columns[at].counts[i]),
                key=lambda at: (Fraction(self._columns[at].cost, self._columns[at].counts[i]), at),
                default=None,
            )
            for i in range(k)
        ]
        self._usable = [at is not None for at in self._cheapest]
        # What jobs want of each type, if everybody takes the main one; of these jobs.
        self._wanted: tuple[NDArray[np.int64], list[Fraction]] | None = None

    def solve(self, budget: Budget | None) -> _Found | None:
        active, types, basis = self._purchase.proposal(self._held, self._closed, budget)
        if basis is not None and self._tables.k > _FEW_TYPES:
            worked_out = self._worked_out(basis)
            if worked_out is not None and not self._joined(*worked_out, set(), basis.types, 1):
                return worked_out[0]
        active.update(at for at in self._cheapest if at is not None)
        self._complete(types)
        rounds = 0
        while True:
            if budget is not None and budget.stopped:
                return None
            found = self._restricted(sorted(active), types, budget)
            if found is None:
                return None
            bought, paid = found
            if not self._joined(bought, paid, active, types, 2**rounds):
                return bought
            rounds += 1

    def _complete(self, types: Serving) -> None:
        """Give every job a block type that can be had, and none that cannot."""
        usable = np.array(self._usable)
        for j, mine in list(types.more.items()):
            mine.intersection_update(usable.nonzero()[0].tolist())
            types.main[j] = min(mine, default=-1)
            if len(mine) < 2:
                del types.more[j]
        known = types.main >= 0
        known[known] = usable[types.main[known]]
        for j in (~known).nonzero()[0].tolist():
            types.main[j] = self._plainest(j)

    def _plainest(self, j: int) -> int:
        """Return the block type that serves a job most cheaply if nothing else is bought."""

        def cost(i: int) -> Fraction:
            column = self._columns[self._cheapest[i] or 0]
            return Fraction(column.cost, column.counts[i] * row[i])

        row = self._tables.supply[j]
        return min((i for i, f in enumerate(row) if f and self._usable[i]), key=cost)

    def _parts(self, types: Serving) -> tuple[list[Edge], list[Fraction]]:
        """Return the edges of jobs with several block types, and blocks still wanted.

        The last are what the other jobs want of each type beyond the blocks there are.
        """
        tables = self._tables
        wanted = self._mainly(types.main)
        pairs: list[Edge] = []
        for j in sorted(types.more):
            i = int(types.main[j])
            wanted[i] -= Fraction(tables.demands[j], tables.supply[j][i])
            pairs += [(i, j) for i in sorted(types.more[j])]
        least = [blocks - there for blocks, there in zip(wanted, self._held, strict=True)]
        return pairs, least

    def _mainly(self, main: NDArray[np.int64]) -> list[Fraction]:
        """Return how many blocks of each type are wanted if every job takes its main one."""
        if self._wanted is None or not np.array_equal(self._wanted[0], main):
            demands, supply = self._purchase.demands, self._purchase.supply
            sums = []
            for i in range(self._tables.k):
                jobs = (main == i).nonzero()[0]
                sums.append(total_of_quotients(demands[jobs], supply[jobs, i]))
            self._wanted = main.copy(), sums
        return list(self._wanted[1])

    def _worked_out(self, basis: Basis) -> tuple[_Found, dict[int, Fraction]] | None:
        """Work a basis out; None if it is none, or none of a solution with prices >= 0."""
        tables, k = self._tables, self._tables.k
        if (basis.types.main < 0).any():
            return None
        pairs, least = self._parts(basis.types)
        split = list(dict.fromkeys(j for _, j in pairs))
        row_of = {j: k + r for r, j in enumerate(split)}
        columns: list[dict[int, int | Fraction]] = [
            dict(filled(self._columns[at].counts)) for at in basis.columns
        ]
        columns += [{i: -1, row_of[j]: tables.supply[j][i]} for i, j in pairs]
        columns += [{i: -1} for i in basis.spare]
        if len(columns) != k + len(split) or any(at in self._closed for at in basis.columns):
            return None
        rows: list[dict[int, int | Fraction]] = [{} for _ in columns]
        for at, column in enumerate(columns):
            for r, a in column.items():
                rows[r][at] = a
        right, unit = common_denominator([*least, *(Fraction(tables.demands[j]) for j in split)])
        values = solved(rows, right)
        if values is None or min(values, default=0) < 0:
            return None
        costs = [self._columns[at].cost for at in basis.columns]
        prices = solved(columns, costs + [Fraction(0)] * (len(columns) - len(costs)))
        if prices is None or min(prices, default=0) < 0:
            return None
        values = [value / unit for value in values]
        found = self._found(basis.columns, pairs, values, basis.types, prices[:k])
        return found, dict(zip(split, prices[k:], strict=True))

    def _restricted(
        self, active: Sequence[int], types: Serving, budget: Budget | None
    ) -> tuple[_Found, dict[int, Fraction]] | None:
        """Solve over the columns and block types that take part; with what split jobs pay a unit.

        Returns
        -------
        _Found, and a dict from job to Fraction; None if stopped
        """
        tables, k = self._tables, self._tables.k
        pairs, least = self._parts(types)
        split = list(dict.fromkeys(j for _, j in pairs))
        row_of = {j: k + r for r, j in enumerate(split)}
        size = len(active) + len(pairs)
        rows = [[0] * size for _ in range(k + len(split))]
        for at, column in enumerate(active):
            for i, count in filled(self._columns[column].counts):
                rows[i][at] = count
        for at, (i, j) in enumerate(pairs, start=len(active)):
            rows[i][at] = -1
            rows[row_of[j]][at] = tables.supply[j][i]
        costs = [self._columns[at].cost for at in active] + [Fraction(0)] * len(pairs)
        # Whole numbers on the right: with many jobs their common denominator is long.
        right, unit = common_denominator([*least, *(Fraction(tables.demands[j]) for j in split)])
        stopped = (lambda: False) if budget is None else (lambda: budget.stopped)
        basic = cheapest(costs, rows, right, stopped)
        if basic is None:
            return None
        values = [value / unit for value in basic.values]
        found = self._found(active, pairs, values, types, basic.prices[:k])
        return found, dict(zip(split, basic.prices[k:], strict=True))

    def _found(
        self,
        columns: Sequence[int],
        pairs: Sequence[Edge],
        values: Sequence[Fraction],
        types: Serving,
        prices: list[Fraction],
    ) -> _Found:
        """Name the values of columns and pairs."""
        amounts = [Fraction(0)] * len(self._columns)
        cost = Fraction(0)
        for at, value in zip(columns, values, strict=False):
            amounts[at] = value
            cost += self._columns[at].cost * value
        shares: dict[int, list[tuple[int, Fraction]]] = {}
        for (i, j), value in zip(pairs, values[len(columns) :], strict=False):
            shares.setdefault(j, []).append((i, value))
        return _Found(amounts, shares, types.main, prices, cost)

    def _joined(
        self,
        found: _Found,
        paid: dict[int, Fraction],
        active: set[int],
        types: Serving,
        most: int,
    ) -> bool:
        """Let join what the prices find missing; whether anything was.

        Of the jobs that a block type would serve more cheaply those that would pay most for it
        join, and of the columns worth more than they cost those worth most.
        """
        tables = self._tables
        prices, denominator = common_denominator(found.prices)
        wish: list[list[tuple[Fraction, int]]] = [[] for _ in range(tables.k)]
        for j in (*self._doubtful(found.prices, types.main, paid), *paid):
            if j in paid:
                over, under = paid[j].numerator * denominator, paid[j].denominator
            else:
                i = int(types.main[j])
                over, under = prices[i], tables.supply[j][i]
            for i, f in enumerate(tables.supply[j]):
                if f and over * f > prices[i] * under and self._usable[i]:
                    wish[i].append((Fraction(over * f, under), j))
        joined = False
        for i, jobs in enumerate(wish):
            for _, j in sorted(jobs, key=lambda pair: (-pair[0], pair[1]))[:most]:
                types.add(j, i)
                joined = True
        above = []
        for at in self._open:
            column = self._columns[at]
            worth = sum(p * a for p, a in zip(prices, column.counts, strict=True) if a)
            beyond = worth - column.cost * denominator
            if beyond > 0:
                above.append((beyond / column.cost if column.cost else Fraction(worth), at))
        for _, at in sorted(above, key=lambda pair: (-pair[0], pair[1]))[: most * tables.k]:
            active.add(at)
            joined = True
        return joined

    def _doubtful(
        self, prices: Sequence[Fraction], main: NDArray[np.int64], split: Collection[int]
    ) -> list[int]:
        """List jobs with one type of which floats do not say for certain that it is the best."""
        asked = np.array([near(price) for price in prices])
        supply = self._purchase.floats
        sure = supply.max(initial=0.0) < _MOST and all(
            not price or _LEAST < number < _MOST
            for price, number in zip(prices, asked.tolist(), strict=True)
        )
        doubtful = np.ones(len(main), dtype=bool)
        if sure:
            rows = np.arange(len(main))
            mine, gives = asked[main], supply[rows, main]
            better = asked * gives[:, None] <= (mine * (1 + _WRONG))[:, None] * supply
            better[rows, main] = False
            # Who pays nothing pays for no other type.
            doubtful = (better & (supply > 0)).any(axis=1) & (mine > 0)
        doubtful[list(split)] = False
        return [int(j) for j in doubtful.nonzero()[0]]


def filled(row: Sequence[int]) -> list[tuple[int, int]]:
    """List the numbers of a row that are not 0, with their places.

    Examples
    --------
    >>> filled([2, 0, 1])
    [(0, 2), (2, 1)]
    """
    return [(at, number) for at, number in enumerate(row) if number]


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
