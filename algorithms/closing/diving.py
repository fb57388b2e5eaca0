"""Machines for given blocks, by diving: contents are priced again for what is left after each step.

What cutting stock is about: cover so many blocks of each type with as few machines as possible. The
linear program over contents is solved by column generation; what it has whole machines of is kept,
or else the content it has most of; the program goes on with the blocks that are left, and contents
that fit these are priced again. A dive that does not end well is followed by others that once or
twice took the second best (limited discrepancy search; Sadykov, Vanderbeck, Pessoa, Tahiri, Uchoa
2019, DOI 10.1287/ijoc.2018.0822).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..prices.region import Row
from ..solvers.floats import near
from ..solvers.linear import LinearProgram

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cms.plugin.algorithm import Budget

    from ..prices.region import Region

#: Prices are whole multiples of so small a part of the cheapest machine's cost.
_GRID = 2**30
#: A content must be worth so much more than it costs to be added.
_GAIN = 1e-6
#: Rounds of pricing after each step, and at first.
_ROUNDS, _FIRST_ROUNDS = 12, 400
#: Contents with no block in common that one round looks for in a set, and nodes for each but one.
_CONTENTS, _PATIENCE = 12, 500
#: Dives, and at how many first steps the second best is taken, alone or together with another.
_DIVES, _DEPTH = 40, 12
#: A content of which the program has so large a part is taken with the one it has most of.
_NEARLY = 0.75
#: Larger numbers of machines are beyond what floats can count.
_MOST_MACHINES = 2**40
#: GLOP's parameters, tried in this order.
_WAYS = (
    "max_number_of_iterations: 20000 use_dual_simplex: false use_preprocessing: false",
    "max_number_of_iterations: 20000 use_dual_simplex: true use_preprocessing: true",
)


class Dived(NamedTuple):
    """Machines that hold the blocks, and what they cost."""

    cost: Fraction
    machines: Mapping[Row, int]


class Diver:
    """Dives of one problem; the contents that it comes across are kept.

    Parameters
    ----------
    region : Region
        Of the price search, without branches: its rows are the first contents.
    budget : Budget
    """

    def __init__(self, region: Region, budget: Budget) -> None:
        self._region, self._budget = region, budget
        self._rows: dict[Row, None] = dict.fromkeys(
            Row(row.counts, row.machine, row.shape) for row in region.rows if any(row.counts)
        )

        #: The contents of machines that dives ended with.
        self.used: dict[Row, None] = {}

    def dives(
        self, load: Sequence[int], target: Fraction, below: Fraction | None = None
    ) -> Iterator[Dived]:
        """Yield cheaper and cheaper machines that hold so many blocks of each type.

        Parameters
        ----------
        load : sequence of k ints
        target : Fraction
            It ends with the first that cost no more, or once no more dives seem worth while.
        below : Fraction, optional
            Only machines that cost less are of interest.
        """
        if sum(load) > _MOST_MACHINES:
            return
        for skips in _discrepancies():
            if self._budget.stopped:
                return
            dive = _Dive(self._region, self._rows, load, self._budget)
            found = dive.run(frozenset(skips), below)
            if found is not None:
                below = found.cost
                self.used.update(dict.fromkeys(found.machines))
                yield found
            if dive.least is None or dive.least > target or (below or target + 1) <= target:
                return  # met; or these blocks need more than that, however they are cut


def _discrepancies() -> Iterator[tuple[int, ...]]:
    """Yield at which steps a dive takes the second best: none, each one, each pair."""
    patterns = [(), *((at,) for at in range(_DEPTH)), *combinations(range(_DEPTH), 2)]
    yield from sorted(patterns, key=lambda steps: (len(steps), sum(steps)))[:_DIVES]


class _Dive:
    """One dive: a linear program over contents that loses blocks as machines are kept."""

    def __init__(
        self, region: Region, rows: dict[Row, None], load: Sequence[int], budget: Budget
    ) -> None:
        self._region, self._rows, self._budget = region, rows, budget
        self._left = list(load)
        self._kept: dict[Row, int] = {}
        self._cost = Fraction(0)
        self._room = list(region.limits)
        self._unit = region.unit
        self.least: Fraction | None = None
        self._program = LinearProgram()
        k = len(load)
        # What no machine holds has a price at which any machine is better.
        dear = 100.0 * max(1.0, near(region.dearest / region.unit))
        missing = [self._program.variable(dear) for _ in range(k)]
        self._needs = [
            self._program.row([(missing[i], 1.0)], low=float(load[i])) for i in range(k)
        ]
        self._limits = [
            None if limit is None else self._program.row([], high=float(limit))
            for limit in region.limits
        ]
        self._missing = missing
        # The contents that fit what is left, with their variables; what those of sets hold.
        self._columns: dict[Row, int] = {}
        self._held: list[tuple[int, ...]] = []
        self._sets: list[Row] = []
        self._values: dict[Row, float] = {}
        for row in rows:
            self._add(row)

    def run(self, skips: frozenset[int], below: Fraction | None) -> Dived | None:
        """Dive; None if there is no end, or none that costs less than ``below``."""
        steps = 0
        rounds = _FIRST_ROUNDS
        while any(self._left):
            solved = self._priced(rounds)
            rounds = _ROUNDS
            if solved is None:
                return None
            values, least = solved
            if self.least is None:
                self.least = least
            if below is not None and least >= below:
                return None
            taken = self._whole(values)
            if not taken:
                order = sorted(values, key=lambda row: (-values[row], row.machine, row.counts))
                fitting = [row for row in order if values[row] > 0]
                if not fitting:
                    return None
                if steps in skips:
                    fitting = fitting[1:2] or fitting
                else:
                    fitting = fitting[:1] + [r for r in fitting[1:] if values[r] >= _NEARLY]
                taken = dict.fromkeys(fitting, 1)
                steps += 1
            if not any([self._keep(row, number) for row, number in taken.items()]):
                return None
            self._close_improper()
        return Dived(self._cost, dict(self._kept))

    def _whole(self, values: Mapping[Row, float]) -> dict[Row, int]:
        return {row: floor(x + _GAIN) for row, x in values.items() if x >= 1 - _GAIN}

    def _keep(self, row: Row, number: int) -> bool:
        """Keep machines as far as their blocks are still needed; say whether any was."""
        useful = [-(-left // n) for left, n in zip(self._left, row.counts, strict=True) if n]
        number = min(number, max(useful, default=0))
        room = self._room[row.machine]
        if room is not None:
            number = min(number, room)
            self._room[row.machine] = room - number
            limit = self._limits[row.machine]
            if limit is not None:
                self._program.set_high(limit, float(room - number))
        if number <= 0:
            return False
        self._kept[row] = self._kept.get(row, 0) + number
        self._cost += number * self._region.costs[row.machine]
        for i, n in enumerate(row.counts):
            if n and self._left[i]:
                self._left[i] = max(0, self._left[i] - n * number)
                self._program.set_low(self._needs[i], float(self._left[i]))
        return True

    def _proper(self, row: Row) -> Row:
        """Leave out the blocks of a content that are not needed any more."""
        if row.shape is not None:
            return row
        return row._replace(counts=tuple(map(min, row.counts, self._left)))

    def _add(self, row: Row) -> bool:
        row = self._proper(row)
        if row in self._columns or not any(row.counts):
            return False
        cost = near(self._region.costs[row.machine] / self._unit)
        terms = [(self._needs[i], float(n)) for i, n in enumerate(row.counts) if n]
        limit = self._limits[row.machine]
        if limit is not None:
            terms.append((limit, 1.0))
        self._columns[row] = self._program.column(cost, terms)
        if row.shape is None:
            self._held.append(row.counts)
            self._sets.append(row)
        return True

    def _close_improper(self) -> None:
        """Close contents with blocks that are not needed; those in use go on without these."""
        if not self._sets:
            return
        held = np.array(self._held)
        improper = np.flatnonzero((held > np.array(self._left)).any(axis=1))
        gone = [self._sets[at] for at in improper.tolist()]
        for row in gone:
            self._program.close(self._columns.pop(row), True)
        stay = np.delete(np.arange(len(held)), improper).tolist()
        self._held = [self._held[at] for at in stay]
        self._sets = [self._sets[at] for at in stay]
        for row in gone:
            if row in self._values:
                self._add(row)

    def _priced(self, rounds: int) -> tuple[dict[Row, float], Fraction] | None:
        """Solve the program over all contents that fit; values, and what it costs at least."""
        for number in range(rounds):
            answer = self._program.solve(self._budget, _WAYS)
            if answer is None:
                return None
            prices = [max(0.0, answer.duals[row]) for row in self._needs]
            values = self._values = {
                row: answer.values[column]
                for row, column in self._columns.items()
                if answer.values[column] > _GAIN
            }
            limits = [
                0.0 if row is None else max(0.0, -answer.duals[row]) for row in self._limits
            ]
            added, scale = self._new(prices, limits)
            if number + 1 == rounds or not added:
                break
        if any(answer.values[column] > _GAIN for column in self._missing):
            return None  # limits do not allow it
        least = self._cost + Fraction(answer.value / scale * (1 - 1e-9)) * self._unit
        return values, least

    def _new(self, prices: Sequence[float], limits: Sequence[float]) -> tuple[bool, float]:
        """Price contents; say whether any was added, and how much too high prices are at most."""
        worth = [int(price * _GRID) for price in prices]
        added, scale = False, 1.0
        for bounded in self._region.bounded:
            cost = near(self._region.costs[bounded.machine] / self._unit) + limits[bounded.machine]
            mine = [worth[i] for i in bounded.columns]
            most = [self._left[i] for i in bounded.columns]
            patience = None
            for _ in range(_CONTENTS):
                found = bounded.packing.fullest(mine, most, patience)
                if patience is None and cost:
                    scale = max(scale, found.ceiling / _GRID / cost)
                if found.value <= (cost + _GAIN) * _GRID:
                    break
                row = self._region.row_of(bounded, found.content)
                self._rows[row] = None
                added |= self._add(row)
                most = [n if not c else 0 for n, c in zip(most, found.content, strict=True)]
                patience = _PATIENCE
        return added, scale
