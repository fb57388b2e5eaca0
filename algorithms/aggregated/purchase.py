"""Machines and blocks in parts, in rationals: floats propose who takes part, exact numbers decide.

Most jobs are served by one block type alone. Such a job is a number of blocks that is wanted; the
program that is left has a row a block type and one for each job that is split, and few columns. It
is solved in rationals; the prices found then say, in integers, which columns it lacks. These are
added until there are none. So the answer is an optimal vertex to the last digit, however far the
numbers are apart, and what a floating-point solver said decides how long it takes, nothing else.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from cms.knapsack.pricing import common_denominator

from ..solvers.equations import solved
from ..solvers.floats import near
from ..solvers.linear import LinearProgram
from ..solvers.simplex import cheapest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cms.plugin.algorithm import Budget

    from ..tables.integers import Tables
    from .pseudoforest import Edge

#: A float this near 0, in parts of the whole, is taken for 0 in a proposal.
_NOTHING = 1e-9
#: Columns that nearly tie take part from the start: so many jobs a block type.
_TIED = 2
#: With no more block types the exact program takes milliseconds from scratch; where optima tie it
#: then ends at machines of which clean-up mostly leaves fewer than of the floats' own.
_FEW_TYPES = 12


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


class Hint(NamedTuple):
    """What a floating-point solver says.

    Attributes
    ----------
    columns : set of int
        Columns that are bought, or nearly tie.
    types : list of n sets of int
        Block types that serve each job, or nearly tie.
    basis : Basis or None
    """

    columns: set[int]
    types: list[set[int]]
    basis: Basis | None


class Basis(NamedTuple):
    """Basic columns, each job's basic block types, and the types of which more is there."""

    columns: list[int]
    types: list[set[int]]
    spare: list[int]


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
        self._tables, self._columns = tables, columns
        self._unit = max((column.cost for column in columns), default=Fraction(1)) or Fraction(1)
        needed = [
            min((Fraction(d, f) for f in row if f), default=Fraction(0))
            for d, row in zip(tables.demands, tables.supply, strict=True)
        ]
        self._scale = max(Fraction(1), total(needed))
        self._program = program = LinearProgram()
        self._variables = [program.variable(near(column.cost / self._unit)) for column in columns]
        self._shares: dict[Edge, int] = {}
        gives: list[list[tuple[int, float]]] = [[] for _ in range(tables.k)]
        for j, (d, row) in enumerate(zip(tables.demands, tables.supply, strict=True)):
            mine = []
            for i, f in enumerate(row):
                if f:
                    share = self._shares[i, j] = program.variable(0.0)
                    gives[i].append((share, -near(Fraction(d, f) / self._scale)))
                    mine.append((share, 1.0))
            program.row(mine, low=1.0)
        for i, terms in enumerate(gives):
            terms += [
                (x, near(Fraction(column.counts[i])))
                for x, column in zip(self._variables, columns, strict=True)
                if column.counts[i]
            ]
            program.row(terms, low=0.0)

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
        return _Exact(self, held, closed).solve(budget)

    # What the exact part needs.

    @property
    def tables(self) -> Tables:
        """The problem."""
        return self._tables

    @property
    def columns(self) -> Sequence[Column]:
        """What can be bought."""
        return self._columns

    def proposal(self, held: Sequence[int], closed: Collection[int], budget: Budget | None) -> Hint:
        """Say in floats which columns are bought and which block types serve each job."""
        tables, program = self._tables, self._program
        for i, number in enumerate(held):
            program.set_low(tables.n + i, -near(number / self._scale))
        for at, x in enumerate(self._variables):
            program.close(x, at in closed)
        answer = program.solve(budget)
        types: list[set[int]] = [set() for _ in range(tables.n)]
        if answer is None:
            return Hint(set(), types, None)
        bought = {at for at, x in enumerate(self._variables) if answer.values[x] > _NOTHING}
        ties: list[list[tuple[float, int]]] = [[] for _ in range(tables.k)]
        for (i, j), share in self._shares.items():
            if answer.values[share] > _NOTHING:
                types[j].add(i)
            else:
                paid, asked = answer.duals[j], answer.duals[tables.n + i]
                part = near(Fraction(tables.demands[j], tables.supply[j][i]) / self._scale)
                if asked * part <= paid * (1 + _NOTHING):
                    ties[i].append((asked * part - paid, j))
        for i, jobs in enumerate(ties):
            for _, j in sorted(jobs)[:_TIED]:
                if types[j]:
                    types[j].add(i)
        worth = []
        for at, column in enumerate(self._columns):
            if at not in closed and at not in bought:
                value = sum(
                    price * near(Fraction(count))
                    for price, count in zip(answer.duals[tables.n :], column.counts, strict=True)
                    if count
                )
                worth.append((near(column.cost / self._unit) - value, at))
        bought.update(at for left, at in sorted(worth)[: tables.k] if left <= _NOTHING)
        return Hint(bought, types, self._basis())

    def _basis(self) -> Basis | None:
        tables = self._tables
        basic, slack = self._program.basis()
        types: list[set[int]] = [set() for _ in range(tables.n)]
        for (i, j), share in self._shares.items():
            if basic[share]:
                types[j].add(i)
        if any(slack[: tables.n]) or not all(types):
            return None  # someone is served for nothing
        columns = [at for at, x in enumerate(self._variables) if basic[x]]
        return Basis(columns, types, [i for i in range(tables.k) if slack[tables.n + i]])


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

    def solve(self, budget: Budget | None) -> Bought | None:
        active, types, basis = self._purchase.proposal(self._held, self._closed, budget)
        if basis is not None and self._tables.k > _FEW_TYPES:
            worked_out = self._worked_out(basis)
            if worked_out is not None and not self._joined(*worked_out, set(), basis.types, 1):
                return worked_out[0]
        active.update(at for at in self._cheapest if at is not None)
        for j, mine in enumerate(types):
            mine.intersection_update(i for i, usable in enumerate(self._usable) if usable)
            if not mine:
                mine.add(self._plainest(j))
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

    def _plainest(self, j: int) -> int:
        """Return the block type that serves a job most cheaply if nothing else is bought."""

        def cost(i: int) -> Fraction:
            column = self._columns[self._cheapest[i] or 0]
            return Fraction(column.cost, column.counts[i] * row[i])

        row = self._tables.supply[j]
        return min((i for i, f in enumerate(row) if f and self._usable[i]), key=cost)

    def _parts(self, types: Sequence[set[int]]) -> tuple[list[Edge], list[Edge], list[Fraction]]:
        """Return the edges of jobs with one block type, those of others, and blocks still wanted.

        The last are what the former jobs want of each type beyond the blocks there are.
        """
        tables = self._tables
        wanted: list[list[Fraction]] = [[] for _ in range(tables.k)]
        single: list[Edge] = []
        pairs: list[Edge] = []
        for j, mine in enumerate(types):
            if len(mine) == 1:
                (i,) = mine
                wanted[i].append(Fraction(tables.demands[j], tables.supply[j][i]))
                single.append((i, j))
            else:
                pairs += [(i, j) for i in sorted(mine)]
        least = [total(parts) - there for parts, there in zip(wanted, self._held, strict=True)]
        return single, pairs, least

    def _worked_out(self, basis: Basis) -> tuple[Bought, dict[int, Fraction]] | None:
        """Work a basis out; None if it is none, or none of a solution with prices >= 0."""
        tables, k = self._tables, self._tables.k
        single, pairs, least = self._parts(basis.types)
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
        values = solved(rows, [*least, *(tables.demands[j] for j in split)])
        if values is None or min(values, default=0) < 0:
            return None
        costs = [self._columns[at].cost for at in basis.columns]
        prices = solved(columns, costs + [Fraction(0)] * (len(columns) - len(costs)))
        if prices is None or min(prices, default=0) < 0:
            return None
        amounts = [Fraction(0)] * len(self._columns)
        for at, value in zip(basis.columns, values, strict=False):
            amounts[at] = value
        served = zip(pairs, values[len(costs) :], strict=False)
        edges = single + [edge for edge, value in served if value]
        cost = sum((c * x for c, x in zip(costs, values, strict=False)), Fraction(0))
        return Bought(amounts, edges, prices[:k], cost), dict(zip(split, prices[k:], strict=True))

    def _restricted(
        self, active: Sequence[int], types: Sequence[set[int]], budget: Budget | None
    ) -> tuple[Bought, dict[int, Fraction]] | None:
        """Solve over the columns and block types that take part; with what split jobs pay a unit.

        Returns
        -------
        Bought, and a dict from job to Fraction; None if stopped
        """
        tables, k = self._tables, self._tables.k
        single, pairs, least = self._parts(types)
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
        basic = cheapest(
            costs,
            rows,
            [*least, *(tables.demands[j] for j in split)],
            (lambda: False) if budget is None else (lambda: budget.stopped),
        )
        if basic is None:
            return None
        amounts = [Fraction(0)] * len(self._columns)
        for at, value in zip(active, basic.values, strict=False):
            amounts[at] = value
        served = zip(pairs, basic.values[len(active) :], strict=True)
        edges = single + [edge for edge, value in served if value]
        bought = Bought(amounts, edges, basic.prices[:k], basic.cost)
        return bought, dict(zip(split, basic.prices[k:], strict=True))

    def _joined(
        self,
        bought: Bought,
        paid: dict[int, Fraction],
        active: set[int],
        types: Sequence[set[int]],
        most: int,
    ) -> bool:
        """Let join what the prices find missing; whether anything was.

        Of the jobs that a block type would serve more cheaply those that would pay most for it
        join, and of the columns worth more than they cost those worth most.
        """
        tables = self._tables
        prices, denominator = common_denominator(bought.prices)
        wish: list[list[tuple[Fraction, int]]] = [[] for _ in range(tables.k)]
        for j, mine in enumerate(types):
            if j in paid:
                over, under = paid[j].numerator * denominator, paid[j].denominator
            else:
                (i,) = mine
                over, under = prices[i], tables.supply[j][i]
            for i, f in enumerate(tables.supply[j]):
                if f and over * f > prices[i] * under and self._usable[i]:
                    wish[i].append((Fraction(over * f, under), j))
        joined = False
        for i, jobs in enumerate(wish):
            for _, j in sorted(jobs, key=lambda pair: (-pair[0], pair[1]))[:most]:
                types[j].add(i)
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


def filled(row: Sequence[int]) -> list[tuple[int, int]]:
    """List the numbers of a row that are not 0, with their places.

    Examples
    --------
    >>> filled([2, 0, 1])
    [(0, 2), (2, 1)]
    """
    return [(at, number) for at, number in enumerate(row) if number]


def total(parts: Sequence[Fraction]) -> Fraction:
    """Add up fractions, those of one denominator first, and then in pairs.

    Examples
    --------
    >>> total([Fraction(1, 2), Fraction(1, 3), Fraction(1, 2)])
    Fraction(4, 3)
    """
    numerators: dict[int, int] = {}
    for part in parts:
        under = part.denominator
        numerators[under] = numerators.get(under, 0) + part.numerator
    sums = [Fraction(over, under) for under, over in sorted(numerators.items())]
    while len(sums) > 1:
        sums = [sum(sums[at : at + 2], Fraction(0)) for at in range(0, len(sums), 2)]
    return sums[0] if sums else Fraction(0)
