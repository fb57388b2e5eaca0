"""Machines and blocks in parts, in rationals: floats propose the support, exact numbers decide.

Most jobs are served by one block type alone. Such a job is a number of blocks that is wanted; the
program that is left has a row a block type and one for each job that is split, and few columns. It
is solved in rationals; the prices found then say, in integers, which columns it lacks, until there
are none. So what a floating-point solver said decides how long it takes, nothing else. Equal jobs
are one job with the sum of their demands; its blocks are then handed out to them in turn.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, fsum, gcd
from operator import lt, mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem
from cms.knapsack.kinds import kinds
from cms.knapsack.pricing import common_denominator
from cms.running.stopping import Stopped, look, never

from ..integer_problem import least_pay, look_at
from ..solvers.floats import near
from ..solvers.simplex import Program, solved
from .proposal import Proposals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..integer_problem import Tables
    from .proposal import Column, Hint

#: What floats in a comparison may be wrong by, and between which sizes they are numbers as others.
_WRONG, _LEAST, _MOST = 1e-9, 1e-90, 1e90
#: Prices in whole numbers up to this; and what of a sum of floats may be wrong, at most.
_GRID, _LAST = 2.0**40, Fraction(1, 10**13)
#: Binary digits of a denominator, beyond which a sum takes longer than anybody may wait.
_MOST_BITS = 2**20
#: Jobs compared, and fractions added, in rationals between two looks at the clock.
_AT_ONCE = 1_000


class Blocks(NamedTuple):
    """Blocks in parts: each job's only type, or -1 for split ones, and the blocks of these."""

    main: NDArray[np.int64]
    shares: dict[int, dict[int, Fraction]]


class Vertex(NamedTuple):
    """An optimal vertex: how many machines (or what the columns are) are bought, and blocks.

    At the prices no column is worth more than it costs.
    """

    machines: list[Fraction]
    blocks: Blocks
    value: Fraction
    prices: list[Fraction]


class Purchase:
    """Buy columns, which have all types that serve, in parts, so that all jobs are served."""

    def __init__(
        self, tables: Tables, columns: Sequence[Column], budget: Budget | None = None
    ) -> None:
        look_at(budget)
        stopped = never if budget is None else lambda: budget.stopped
        _, self._sizes, kind_of = kinds(tables.problem.rows, stopped)
        # The jobs, equal ones together.
        self._order = np.argsort(kind_of, kind="stable")
        self._starts = np.cumsum(self._sizes) - self._sizes
        first = self._order[self._starts]
        self._demands = tables.demands
        self._tables = replace(
            tables, demands=tables.demands[first] * self._sizes, supply=tables.supply[first]
        )
        look_at(budget)
        self._alone = self._tables.alone
        look_at(budget)
        self._columns: list[Column] = []
        # What a block of each type costs on each column that has it, the cheapest first.
        self._ways: list[list[tuple[Fraction, int]]] = [[] for _ in range(tables.k)]
        dearest = max((column.cost for column in columns), default=Fraction(1)) or Fraction(1)
        self._proposals = Proposals(self._tables.k, self._alone, dearest)
        for column in columns:
            self.add(column)

    def add(self, column: Column) -> None:
        """Offer one more column."""
        for way, count in zip(self._ways, column.counts, strict=True):
            if count:
                insort(way, (column.cost / count, len(self._columns)))
        self._columns.append(column)
        self._proposals.add(column)

    def solve(self, held: Sequence[int], closed: Collection[int], budget: Budget | None) -> Vertex:
        """Solve with blocks held and columns closed, none of which a job needs. Raises Stopped."""
        hint = self._proposals.propose(held, closed, budget)
        look_at(budget)
        stopped = never if budget is None else lambda: budget.stopped
        found = self._exact(hint, held, closed, stopped)
        look_at(budget)
        return found._replace(blocks=self._lined_up(found.blocks))

    def _exact(
        self,
        hint: Hint,
        held: Sequence[int],
        closed: Collection[int],
        stopped: Callable[[], bool],
    ) -> Vertex:
        """Solve in rationals, beginning with what floats propose. Raises Stopped."""
        tables, (columns, main, more) = self._tables, hint
        # The cheapest way to a block of each type, if there is one.
        ways = [next((at for _, at in way if at not in closed), None) for way in self._ways]
        self._usable = np.array([at is not None for at in ways], dtype=bool)
        # What is lacking of each type if every job takes the main one.
        lacking = []
        for i, there in enumerate(held):
            jobs = (main == i).nonzero()[0]
            wanted = total_of_quotients(tables.demands[jobs], tables.supply[jobs, i], stopped)
            lacking.append(wanted - there)
        at_once = None if more else self._vertex(sorted(columns), main, lacking, stopped)
        if at_once and not self._joined(at_once.prices, hint, closed, len(lacking), stopped):
            return at_once
        columns.update(at for at in ways if at is not None)
        # Whole numbers on the right: with many jobs their common denominator is long.
        least, unit = common_denominator(lacking)
        program = Program(least)
        # By variable, a column or a (job, block type) that the job may take instead: how many it
        # counts. And the row that limits what a job takes.
        known: dict[int | tuple[int, int], int] = {}
        row_of: dict[int, int] = {}
        most = 1
        while True:
            for at in sorted(columns - known.keys()):
                column = self._columns[at]
                program.add(column.cost, {i: n for i, n in enumerate(column.counts) if n})
                known[at] = 1
            for j in sorted(more):
                row, first = tables.supply[j].tolist(), int(main[j])
                for i in sorted(more[j] - {first}):
                    if (j, i) not in known:
                        if j not in row_of:
                            row_of[j] = program.add_row(-int(tables.demands[j]) * unit)
                        blocks = row[first] // gcd(row[first], row[i])
                        gained = row[i] * blocks
                        counts = {i: -blocks, first: gained // row[first], row_of[j]: -gained}
                        program.add(Fraction(0), counts)
                        known[j, i] = blocks
            basic = program.solve(stopped)
            if basic is None:
                raise Stopped
            prices = basic.prices[: tables.k]
            if not self._joined(prices, hint, closed, most, stopped):
                break
            most *= 2
        machines, shares = [Fraction(0)] * len(self._columns), dict[int, dict[int, Fraction]]()
        for (what, blocks), value in zip(known.items(), basic.values, strict=True):
            if isinstance(what, int):
                machines[what] = value / unit
            else:
                shares.setdefault(what[0], {})[what[1]] = value * blocks / unit
        for j, mine in shares.items():
            row, left = tables.supply[j].tolist(), int(tables.demands[j])
            mine[int(main[j])] = (left - sum(row[i] * x for i, x in mine.items())) / row[main[j]]
            # How blocks round depends on this order.
            shares[j] = dict(sorted(mine.items()))
        return Vertex(machines, Blocks(main, shares), basic.cost / unit, prices)

    def _vertex(
        self,
        columns: Sequence[int],
        main: NDArray[np.int64],
        lacking: Sequence[Fraction],
        stopped: Callable[[], bool],
    ) -> Vertex | None:
        """Solve for these columns and the rows of priced types; None if that is no vertex."""
        k, priced = len(lacking), self._proposals.priced_types()
        if not columns or len(columns) != len(priced):
            return None
        costs, counts = zip(*(self._columns[at] for at in columns), strict=True)
        nothing = [Fraction(0)] * k
        rows = [{at: count[i] for at, count in enumerate(counts)} for i in priced]
        some = solved(rows, [lacking[i] for i in priced], nothing[: len(columns)], stopped)
        own = [{i: count[i] for i in priced} for count in counts]
        prices = solved(own, costs, nothing, stopped)
        if some is None or prices is None or min(*some, *prices) < 0:
            return None
        held = (sum(map(mul, some, each)) for each in zip(*counts, strict=True))
        if any(map(lt, held, lacking)):
            return None
        bought = dict(zip(columns, some, strict=True))
        machines = [bought.get(at, Fraction(0)) for at in range(len(self._columns))]
        return Vertex(machines, Blocks(main, {}), sum(map(mul, some, costs), Fraction(0)), prices)

    def _joined(
        self,
        found: Sequence[Fraction],
        hint: Hint,
        closed: Collection[int],
        most: int,
        stopped: Callable[[], bool],
    ) -> bool:
        """Let join whom the prices find missing, those that gain most; whether anybody was."""
        tables, (columns, main, more) = self._tables, hint
        prices, denominator = common_denominator(found)
        wish: list[list[tuple[Fraction, int]]] = [[] for _ in range(tables.k)]
        for number, j in enumerate((*self._doubtful(found, main, more), *more)):
            if not number % _AT_ONCE:
                look(stopped)
            row = tables.supply[j].tolist()
            first = int(main[j])
            if j in more:
                first = min((Fraction(prices[i], row[i]), i) for i in more[j])[1]
            for i, f in enumerate(row):
                if f and prices[first] * f > prices[i] * row[first] and self._usable[i]:
                    wish[i].append((Fraction(prices[first] * f, row[first]), j))
        joined = False
        for i, jobs in enumerate(wish):
            for _, j in sorted(jobs, key=lambda pair: (-pair[0], pair[1]))[:most]:
                more.setdefault(j, {int(main[j])}).add(i)
                joined = True
        above = []
        for at, column in enumerate(self._columns):
            if at in closed:
                continue
            worth = sum(p * a for p, a in zip(prices, column.counts, strict=True) if a)
            beyond = worth - column.cost * denominator
            if beyond > 0:
                above.append((beyond / column.cost if column.cost else Fraction(worth), at))
        for _, at in sorted(above, key=lambda pair: (-pair[0], pair[1]))[: most * tables.k]:
            columns.add(at)
            joined = True
        return joined

    def _doubtful(
        self, prices: Sequence[Fraction], main: NDArray[np.int64], split: Collection[int]
    ) -> list[int]:
        """List jobs with one type of which floats do not say for certain that it is the best."""
        asked = np.array([near(price) for price in prices])
        alone, there = self._alone, (self._alone < np.inf) & self._usable
        doubtful = np.ones(len(main), dtype=bool)
        if alone.max(where=there, initial=0.0) < _MOST and all(
            not price or _LEAST < number < _MOST
            for price, number in zip(prices, asked.tolist(), strict=True)
        ):
            rows = np.arange(len(main))
            pays = np.where(there, np.where(there, alone, 0.0) * asked, np.inf)
            mine = pays[rows, main]
            pays[rows, main] = np.inf
            # Who pays nothing pays for no other type.
            doubtful = (pays.min(axis=1, initial=np.inf) <= mine * (1 + _WRONG)) & (mine > 0)
        doubtful[list(split)] = False
        return [int(j) for j in doubtful.nonzero()[0]]

    def rough_prices(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> list[Fraction] | None:
        """Return about the best prices as whole numbers, up to a factor; None if floats fail."""
        found = self._proposals.prices(held, budget)
        if found is None:
            return None
        counted = np.rint(found / max(found.max(initial=0.0), _LEAST) * _GRID)
        return [Fraction(int(number)) for number in counted]

    def refuted(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> tuple[list[Fraction], Fraction] | None:
        """Find prices at which jobs pay more than blocks held are worth, and that pay or less."""
        prices = self.rough_prices(held, budget)
        largest = self._alone.max(where=self._alone < np.inf, initial=0.0)
        if prices is None or largest >= _MOST:
            return None
        # Floor: every number is right but for a few units of the last place, and so is the sum.
        total = fsum(least_pay(self._alone, [float(price) for price in prices]).tolist())
        worth = floor(Fraction(total) * (1 - _LAST))
        there = sum((p * x for p, x in zip(prices, held, strict=True)), Fraction(0))
        return (prices, Fraction(worth)) if worth > there else None

    def _lined_up(self, found: Blocks) -> Blocks:
        """Return the blocks of all jobs: equal ones take what there is for them in turn."""
        main = np.empty(len(self._order), dtype=np.int64)
        blocks = Blocks(main, {})
        main[self._order] = np.repeat(found.main, self._sizes)
        for j, shares in found.shares.items():
            start, size = int(self._starts[j]), int(self._sizes[j])
            members = self._order[start : start + size]
            main[members] = -1
            demand, end = int(self._demands[members[0]]), Fraction(0)
            for i, amount in shares.items():
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


def total_of_quotients(
    over: NDArray[Any], under: NDArray[Any], stopped: Callable[[], bool] = never
) -> Fraction:
    """Add up quotients of whole numbers; UnsupportedProblem if the denominator is too long."""
    common = np.gcd(over, under)
    over, (denominators, places) = over // common, np.unique(under // common, return_inverse=True)
    sums = np.zeros(len(denominators), dtype=over.dtype)
    np.add.at(sums, places, over)
    left = [Fraction(*pair) for pair in zip(sums.tolist(), denominators.tolist(), strict=True)]
    while len(left) > 1:
        look(stopped)
        if left[0].denominator.bit_length() > _MOST_BITS // 2:
            raise UnsupportedProblem(
                "the numbers of blocks that jobs need have no common denominator that can be "
                "written down; use auto or branch_and_price"
            )
        pairs = []
        for number, at in enumerate(range(0, len(left), 2)):
            if not number % _AT_ONCE:
                look(stopped)
            pairs.append(sum(left[at : at + 2], Fraction(0)))
        left = pairs
    return left[0] if left else Fraction(0)
