"""The master of a price search in exact rationals: the best prices, and a basic solution."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import TYPE_CHECKING

from cms.knapsack.pricing import common_denominator

from ..solvers.simplex import Program
from .master import Proposal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..solvers.simplex import Basic
    from .master import Cut
    from .region import Region

#: Rows of the program from which on it takes minutes.
MOST_ROWS = 40
#: Machines that join at a time.
_AT_A_TIME = 8


class ExactMaster:
    """The dual of ``Master`` in exact rationals: serve all jobs with passes and machines.

    Floats stop short of prices of 10^-80 of a machine beside others of a quarter of one, and what
    they say of a trillion blocks is no basic solution. At first those passes and machines take part
    that floats say are used; those that its prices find missing join, until there are none.
    """

    def __init__(self, region: Region, n_groups: int, stopped: Callable[[], bool]) -> None:
        self._region, self._stopped = region, stopped
        self._k = len(region.blocks)
        self._loads: list[tuple[int, ...]] = []
        # Each group's cuts; those that it may mix, from the one on that it takes by default; and
        # the machines that take part.
        self._cuts: list[list[int]] = [[] for _ in range(n_groups)]
        self._mixing: list[list[int]] = [[] for _ in range(n_groups)]
        self._rows = sorted({cheapest_holder(region, i) for i in range(self._k)})
        # The program, once solved, and its columns: (None, machine) or (group, cut).
        self._program: Program | None = None
        self._columns: list[tuple[int | None, int]] = []
        # Its rows of limits, by machine type, and of groups that are split.
        limited = [m for m, limit in enumerate(region.limits) if limit is not None]
        self._limits = {m: self._k + at for at, m in enumerate(limited)}
        self._whole: dict[int, int] = {}
        self._prices: list[Fraction] = []
        self.weights: list[Fraction] = []
        self.machines: list[Fraction] = []

    @staticmethod
    def fits(region: Region, n_groups: int) -> bool:
        """Whether the program is small enough with all groups split."""
        rows = len(region.blocks) + n_groups + sum(limit is not None for limit in region.limits)
        return not region.free_machines and rows <= MOST_ROWS

    def add(self, group: int, cut: Cut, weight: float = 0.0) -> None:
        """Add what a group buys in a pass; a positive weight lets it take part from the start."""
        number = len(self._loads)
        self._loads.append(cut)
        self._cuts[group].append(number)
        self.weights.append(Fraction(weight))
        if weight:
            self._mixing[group].append(number)
            self._mixing[group].sort(key=lambda number: -self.weights[number])
            self._program = None  # what it takes by default may be another pass

    def use(self, row: int) -> None:
        """Let a machine take part from the start."""
        self._rows = sorted({*self._rows, row})

    def solve(self) -> Proposal | None:
        """Return the best prices as far as the cuts tell; None if limits forbid, or if stopped."""
        for cuts, mixing in zip(self._cuts, self._mixing, strict=True):
            if not mixing:
                mixing.append(cuts[0])
        while True:
            try:
                found = self._solved()
            except ValueError:
                if self._all_in():
                    return None  # so far no passes fit the limits
                continue
            if found is None:
                return None
            if not self._extended(found.prices[: self._k]):
                return self._read(found)

    def vertex(self) -> list[Fraction]:
        """Return the last solve's prices."""
        return self._prices

    def _solved(self) -> Basic | None:
        """Go on from the last solution with all that takes part by now."""
        # Columns cannot join a program that was not solved to the end.
        program, self._program = self._program or self._empty(), None
        wanted: list[tuple[int | None, int]] = [(None, r) for r in self._rows]
        wanted += [(group, cut) for group, mine in enumerate(self._mixing) for cut in mine[1:]]
        there = {*self._columns}
        for column in wanted:
            if column not in there:
                self._join(program, *column)
        found = program.solve(self._stopped)
        if found is not None:
            self._program = program
        return found

    def _empty(self) -> Program:
        """Return the program without machines, in which all groups take their default pass."""
        self._columns, self._whole = [], {}
        loads = [self._loads[mine[0]] for mine in self._mixing]
        least = [sum(load[i] for load in loads) for i in range(self._k)]
        return Program([*least, *(-limit for limit in self._region.limits if limit is not None)])

    def _join(self, program: Program, group: int | None, number: int) -> None:
        """Let a machine take part, or what a group takes of another pass than by default."""
        self._columns.append((group, number))
        if group is None:
            row = self._region.rows[number]
            counts = {i: count for i, count in enumerate(row.counts) if count}
            if row.machine in self._limits:
                counts[self._limits[row.machine]] = -1
            program.add(self._region.costs[row.machine], counts)
            return
        if group not in self._whole:  # no more than all of it
            self._whole[group] = program.add_row(-1)
        loads = zip(self._loads[self._mixing[group][0]], self._loads[number], strict=True)
        less = {i: a - b for i, (a, b) in enumerate(loads)}
        program.add(Fraction(0), {**less, self._whole[group]: -1})

    def _all_in(self) -> bool:
        """Let all machines and passes take part; say whether they do already."""
        rows = list(range(len(self._region.rows)))
        mixing = [
            [*dict.fromkeys([*m, *cuts])] for m, cuts in zip(self._mixing, self._cuts, strict=True)
        ]
        done = (rows, mixing) == (self._rows, self._mixing)
        self._rows, self._mixing = rows, mixing
        return done

    def _extended(self, prices: Sequence[Fraction]) -> bool:
        """Let what the prices find missing take part; say whether there was anything."""
        region = self._region
        numbers, denominator = common_denominator(prices)
        dear = []
        for r in sorted({*range(len(region.rows))} - {*self._rows}):
            row = region.rows[r]
            beyond = sum(map(mul, numbers, row.counts)) - region.costs[row.machine] * denominator
            if beyond > 0:
                dear.append((-beyond, r))
        self._rows = sorted([*self._rows, *(r for _, r in sorted(dear)[:_AT_A_TIME])])
        missing = bool(dear)
        for cuts, mine in zip(self._cuts, self._mixing, strict=True):
            if len(cuts) > len(mine):
                worth = {cut: sum(map(mul, numbers, self._loads[cut])) for cut in cuts}
                best = min(cuts, key=worth.__getitem__)
                if worth[best] < min(worth[cut] for cut in mine):
                    mine.append(best)
                    missing = True
        return missing

    def _read(self, found: Basic) -> Proposal:
        self.machines = [Fraction(0)] * len(self._region.rows)
        self.weights = [Fraction(0)] * len(self._loads)
        for mine in self._mixing:
            self.weights[mine[0]] = Fraction(1)
        for (group, number), value in zip(self._columns, found.values, strict=True):
            if group is None:
                self.machines[number] = value
            else:
                self.weights[number] += value
                self.weights[self._mixing[group][0]] -= value
        self._prices = found.prices[: self._k]
        return Proposal(self._prices, found.cost)


def cheapest_holder(region: Region, block: int) -> int:
    """Return the row of the cheapest machine that has a block; of equals one with most of them."""
    holders = [r for r, row in enumerate(region.rows) if row.counts[block]]
    return min(
        holders,
        key=lambda r: (region.costs[region.rows[r].machine], -region.rows[r].counts[block]),
    )
