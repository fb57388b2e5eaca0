"""Who takes part in a purchase, as floats say: it is where an exact program begins.

At given prices every job takes the block type that serves it most cheaply; what a group of jobs
takes together is a column of a linear program with a row a block type and one a group, whose dual
values are the next prices. So the program stays small however many jobs there are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..integer_problem import look_at
from ..solvers.floats import near, near_table
from ..solvers.linear import LinearProgram

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..solvers.linear import Answer

#: Relative values up to this are taken for 0 in a proposal.
_NOTHING = 1e-9
#: How many groups of jobs; with no more pairs of block type and job than this, each job is a group.
_GROUPS, _FEW_SHARES = 64, 4_000
#: Passes over the jobs, after which the exact program takes over.
_MOST_PASSES = 400
#: No divisor is smaller.
_TINY = 1e-200


class Column(NamedTuple):
    """What can be bought, in parts: its cost, and its blocks of each type."""

    cost: Fraction
    counts: Sequence[int]


class Hint(NamedTuple):
    """Columns that are bought, a block type for each job, and several of jobs that are split."""

    columns: set[int]
    main: NDArray[np.int64]
    more: dict[int, set[int]]


class _Group(NamedTuple):
    """Jobs that take part together, their row, and a variable for each choice of types known."""

    members: NDArray[np.int64]
    row: int
    loads: dict[bytes, int]


class Proposals:
    """The program in floats, solved again and again for other blocks held; costs in a ``unit``."""

    def __init__(self, k: int, alone: NDArray[np.float64], unit: Fraction) -> None:
        self._n, self._k, self._unit = len(alone), k, unit
        self._rows = np.arange(self._n)
        self._has = np.isfinite(alone)
        # Parts of what a group needs.
        needed = float(alone.min(axis=1).sum()) if self._n else 0.0
        scale = max(1.0, needed / _GROUPS)
        self._scale = Fraction(scale)
        self._parts = np.where(self._has, alone, 0.0) / scale
        self._costs: list[float] = []
        self._counts: list[NDArray[np.float64]] = []
        self._variables: list[int] = []
        self._program = LinearProgram()
        for _ in range(k):
            self._program.row([], low=0.0)
        self._groups: list[_Group] = []
        self._group_of = np.zeros(self._n, dtype=np.int64)
        self._prices: NDArray[np.float64] | None = None
        # What a block costs roughly, if it can be had.
        self._rough = np.zeros(k)
        self._usable = np.ones(k, dtype=bool)

    def add(self, column: Column) -> None:
        """Add something that can be bought."""
        counts = near_table([column.counts])[0]
        self._costs.append(near(column.cost / self._unit))
        self._counts.append(counts)
        terms = [(int(i), float(counts[i])) for i in counts.nonzero()[0]]
        self._variables.append(self._program.column(self._costs[-1], terms))

    def propose(self, held: Sequence[int], closed: Collection[int], budget: Budget | None) -> Hint:
        """Say which columns are bought and which block types serve the jobs. Raises Stopped."""
        self._begin(held, closed, budget)
        answer = self._priced(budget)
        hint = Hint(set(), self._cheapest(self._rough), {})
        if answer is None:
            return hint
        values = np.array(answer.values)
        for at, variable in enumerate(self._variables):
            if at not in closed and values[variable] > _NOTHING:
                hint.columns.add(at)
        for members, _, loads in self._groups:
            weights = values[[*loads.values()]]
            taken = weights > _NOTHING
            if taken.any():
                served = np.stack([np.frombuffer(load, np.int16) for load in loads])[taken]
                ends = np.cumsum(weights[taken]) / weights[taken].sum()
                self._share_out(hint, members, served, ends)
        return hint

    def priced_types(self) -> list[int]:
        """List the block types whose price is above 0."""
        return [] if self._prices is None else np.flatnonzero(self._prices > _NOTHING).tolist()

    def prices(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> NDArray[np.float64] | None:
        """Return about the best prices, in units of cost; None if the program failed."""
        self._begin(held, (), budget)
        answer = self._priced(budget)
        return None if answer is None else self._prices

    def _begin(
        self, held: Sequence[Fraction | int], closed: Collection[int], budget: Budget | None
    ) -> None:
        """Prepare the program for other blocks held and columns closed; give all jobs a load."""
        program = self._program
        for i, number in enumerate(held):
            program.set_low(i, -near(number / self._scale))
        # A block costs roughly what it does on the machine that it fills most cheaply.
        rough = np.full(self._k, np.inf)
        for at, x in enumerate(self._variables):
            program.close(x, at in closed)
            if at not in closed:
                there = self._counts[at] > 0
                rough[there] = np.minimum(rough[there], self._costs[at] / self._counts[at][there])
        self._usable = usable = np.isfinite(rough)
        rough[~usable] = 0.0
        # Blocks that cost nothing are counted all the same.
        least = 1e-9 * max(1e-9, float(rough.max(initial=0.0)))
        self._rough = rough = np.maximum(rough, least)
        look_at(budget)
        if not self._groups:
            self._start(rough)
        look_at(budget)
        for group in self._groups:
            for served, variable in group.loads.items():
                program.close(variable, not usable[np.frombuffer(served, np.int16)].all())
        self._pass(rough if self._prices is None else self._prices, None)

    def _start(self, rough: NDArray[np.float64]) -> None:
        """Divide the jobs into groups that prefer the same block types by about as much."""
        worth = self._worth(rough)
        first = worth.argmin(axis=1)
        least = worth[self._rows, first]
        worth[self._rows, first] = np.inf
        second = worth.argmin(axis=1)
        # Where there is no second type the gap is nothing.
        gap = least / np.maximum(_TINY, worth[self._rows, second])
        few = int(self._has.sum()) <= _FEW_SHARES
        groups = max(_GROUPS, self._n) if few else _GROUPS
        for members in np.array_split(np.lexsort((gap, second, first)), groups):
            if len(members):
                self._group_of[members] = len(self._groups)
                row = self._k + len(self._groups)
                self._groups.append(_Group(np.sort(members), row, {}))
                self._program.row([], low=1.0)
        for i in range(self._k if few else 0):
            self._pass(np.where(np.arange(self._k) == i, 0.0, rough), None)

    def _worth(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(self._has & self._usable, self._parts * prices, np.inf)

    def _cheapest(self, prices: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(self._worth(prices).argmin(axis=1))

    def _pass(self, prices: NDArray[np.float64], paid: NDArray[np.float64] | None) -> bool:
        """Let every job take its cheapest type; whether a load, cheaper than paid, is new."""
        best = self._cheapest(prices)
        parts = self._parts[self._rows, best]
        sums = np.bincount(self._group_of, parts * prices[best], minlength=len(self._groups))
        new = False
        for at, (members, row, loads) in enumerate(self._groups):
            if paid is not None and sums[at] >= paid[at] - _NOTHING * abs(paid[at]):
                continue
            served = best[members].astype(np.int16)
            if (key := served.tobytes()) not in loads:
                load = np.bincount(served, parts[members], minlength=self._k)
                terms = [(int(i), -float(load[i])) for i in np.unique(served)]
                loads[key] = self._program.column(0.0, [*terms, (row, 1.0)])
                new = True
        return new

    def _priced(self, budget: Budget | None) -> Answer | None:
        """Add loads until the prices ask for none; None if the program failed. Raises Stopped."""
        for _ in range(_MOST_PASSES):
            answer = self._program.solve(budget)
            look_at(budget)
            if answer is None:
                return None
            duals = np.array(answer.duals)
            self._prices = prices = np.maximum(0.0, duals[: self._k])
            if not self._pass(prices, duals[self._k :]):
                return answer
        return None

    def _share_out(
        self,
        hint: Hint,
        members: NDArray[np.int64],
        served: NDArray[np.int16],
        ends: NDArray[np.float64],
    ) -> None:
        """Give each load its part of a group's members; those between two parts have both types."""
        hint.main[members] = served[0]
        differ = np.flatnonzero((served != served[0]).any(axis=0))
        ways, way_of = np.unique(served[:, differ], axis=1, return_inverse=True)
        for number, way in enumerate(ways.T.tolist()):
            jobs = members[differ[way_of == number]]
            # Those that want the first type most come first.
            one, last = self._parts[jobs, way[0]], self._parts[jobs, way[-1]]
            order = np.argsort(one / np.maximum(_TINY, last), kind="stable")
            jobs, reach = jobs[order], np.cumsum(one[order])
            middle = (reach - one[order] / 2) / max(_TINY, reach[-1])
            hint.main[jobs] = np.array(way)[np.searchsorted(ends[:-1], middle)]
            for before, after, end in zip(way, way[1:], ends.tolist(), strict=False):
                at = min(int(np.searchsorted(reach, end * reach[-1])), len(jobs) - 1)
                types = {int(hint.main[jobs[at]]), before, after}
                if len(types) > 1:
                    hint.more.setdefault(int(jobs[at]), set()).update(types)
