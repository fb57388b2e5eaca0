"""Who takes part in a purchase, as floats say: jobs in groups, each group's loads as columns.

At given prices every job takes the block type that serves it most cheaply; what a group of jobs
takes together is a column of a linear program with a row a block type and one a group, whose dual
values are the next prices. Groups that share different columns out are split, until only single
jobs are. So the program stays small however many jobs there are, and a pass over them is a few
operations on arrays. In a small problem every job is a group with all its block types.

Nothing here is taken on trust: it says where an exact program begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..solvers.floats import near, near_table
from ..solvers.linear import LinearProgram
from ..tables.integers import look_at

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..solvers.linear import Answer

#: Relative values up to this are taken for 0 in a proposal.
_NOTHING = 1e-9
#: Jobs per block type whose second-best column joins the first program: the closest ties.
_TIED = 2
#: Most shares (block type, job) for which all of them are columns from the start.
_FEW_SHARES = 4_000
#: Groups at the start, and those into which one is split.
_GROUPS, _SPLIT = 64, 16
#: Most groups and types of one program, before a new one begins; groups of one job a type in it.
_MOST_ROWS, _NEAREST = 400, 4
#: Passes over the jobs, and rounds of splitting, after which the exact program takes over.
_MOST_PASSES, _MOST_ROUNDS = 400, 12
#: No divisor is smaller.
_TINY = 1e-200


class Column(NamedTuple):
    """What can be bought, in parts: its cost, and its blocks of each type."""

    cost: Fraction
    counts: Sequence[int]


@dataclass
class Serving:
    """Which block types serve each job: its main one, -1 where none is known, and several."""

    main: NDArray[np.int64]
    more: dict[int, set[int]] = field(default_factory=dict)

    def add(self, job: int, block: int) -> None:
        """Let a block type serve a job as well."""
        main = int(self.main[job])
        if main < 0:
            self.main[job] = block
        elif main != block:
            self.more.setdefault(job, {main}).add(block)


class Hint(NamedTuple):
    """Columns that are bought and block types that serve each job, or nearly tie."""

    columns: set[int]
    types: Serving


class _Load(NamedTuple):
    """What a group takes: its variable, each member's block type, and which types these are."""

    variable: int
    served: NDArray[Any]
    types: NDArray[Any]


@dataclass
class _Group:
    """Jobs that take part together: their numbers, their row, and the loads known."""

    members: NDArray[np.int64]
    row: int
    loads: list[_Load]
    seen: set[bytes]


class Proposals:
    """The program in floats, solved again and again for other blocks held.

    ``alone`` are the blocks of each of k types that serve each job alone, some finite; costs are
    counted in a ``unit``.
    """

    def __init__(self, k: int, alone: NDArray[np.float64], unit: Fraction) -> None:
        self._n, self._k, self._unit = len(alone), k, unit
        self._has = np.isfinite(alone)
        self._small = int(self._has.sum()) <= _FEW_SHARES
        # Parts of what all jobs need; unless they are few, of what a group of them needs.
        needed = float(alone.min(axis=1).sum()) if self._n else 0.0
        scale = max(1.0, needed / (1 if self._small else _GROUPS))
        self._scale = Fraction(scale)
        self._parts = np.where(self._has, alone, 0.0) / scale
        self._costs: list[float] = []
        self._counts: list[NDArray[np.float64]] = []
        self._empty()
        self._group_of = np.zeros(self._n, dtype=np.int64)
        self._prices: NDArray[np.float64] | None = None
        self._usable, self._held = np.ones(k, dtype=bool), np.zeros(k)

    def add(self, column: Column) -> None:
        """Add something that can be bought."""
        self._costs.append(near(column.cost / self._unit))
        self._counts.append(near_table([column.counts])[0])
        self._buy(len(self._costs) - 1)

    def _buy(self, at: int) -> None:
        counts = self._counts[at]
        terms = [(int(i), float(counts[i])) for i in counts.nonzero()[0]]
        self._variables.append(self._program.column(self._costs[at], terms))

    def _empty(self) -> None:
        """Begin a program without groups."""
        self._program = LinearProgram()
        self._rows = self._k
        for _ in range(self._rows):
            self._program.row([], low=0.0)
        self._variables: list[int] = []
        for at in range(len(self._costs)):
            self._buy(at)
        self._groups: list[_Group] = []

    def propose(self, held: Sequence[int], closed: Collection[int], budget: Budget | None) -> Hint:
        """Say which columns are bought and which block types serve each job."""
        nothing = Hint(set(), Serving(np.full(self._n, -1)))
        rough = self._begun([near(number / self._scale) for number in held], closed, budget)
        for _ in range(_MOST_ROUNDS):
            look_at(budget)
            answer = self._priced(rough, budget)
            if answer is None:
                return nothing
            if not self._split(answer):
                break
        else:
            answer = self._program.solve(budget)
            if answer is None:
                return nothing
        return self._read(answer, [at for at in range(len(self._costs)) if at not in closed])

    def prices(
        self, held: Sequence[Fraction | int], budget: Budget | None
    ) -> NDArray[np.float64] | None:
        """Return about the best prices, in units of cost; None if the program failed."""
        rough = self._begun([near(number / self._scale) for number in held], (), budget)
        return None if self._priced(rough, budget) is None else self._prices

    def _begun(
        self, held: Sequence[float], closed: Collection[int], budget: Budget | None
    ) -> NDArray[np.float64]:
        """Prepare the program for other blocks held and columns closed; return rough prices."""
        if self._rows > _MOST_ROWS and not self._small:
            self._empty()
        program = self._program
        self._held = np.array(held)
        for i, number in enumerate(held):
            program.set_low(i, -number)
        for at, x in enumerate(self._variables):
            program.close(x, at in closed)
        opened = [at for at in range(len(self._variables)) if at not in closed]
        self._usable = usable = np.zeros(self._k, dtype=bool)
        for at in opened:
            usable |= self._counts[at] > 0
        rough = self._rough(opened)
        look_at(budget)
        if not self._groups:
            self._start(rough)
        look_at(budget)
        for group in self._groups:
            for load in group.loads:
                program.close(load.variable, not usable[load.types].all())
        prices = rough if self._prices is None else self._prices
        self._pass(np.where(usable, prices, np.inf), rough, None)
        return rough

    def _rough(self, opened: Sequence[int]) -> NDArray[np.float64]:
        """Price every block as if the machine that it fills most cheaply were full of it."""
        prices = np.full(self._k, np.inf)
        for at in opened:
            counts = self._counts[at]
            there = counts > 0
            prices[there] = np.minimum(prices[there], self._costs[at] / counts[there])
        prices = np.where(self._usable, prices, 0.0)
        # Blocks that cost nothing are counted all the same.
        least = 1e-9 * max(1e-9, float(prices.max(initial=0.0)))
        return np.asarray(np.maximum(prices, least), dtype=np.float64)

    def _start(self, rough: NDArray[np.float64]) -> None:
        """Divide the jobs into groups that prefer the same block types by about as much."""
        if self._small:
            parts = [np.array([j]) for j in range(self._n)]
        else:
            prices = rough if self._prices is None else np.maximum(self._prices, _NOTHING * rough)
            worth = np.where(self._has & self._usable, self._parts * prices, np.inf)
            first = worth.argmin(axis=1)
            least = worth[np.arange(self._n), first]
            worth[np.arange(self._n), first] = np.inf
            second = worth.argmin(axis=1)
            # Where there is no second type the gap is nothing.
            gap = least / np.maximum(_TINY, worth[np.arange(self._n), second])
            parts = []
            if self._prices is not None:
                # Those that nearly tie at the last prices will share themselves out.
                near_ties = np.argsort(-gap, kind="stable")[: _NEAREST * self._k]
                parts = [np.array([j]) for j in near_ties.tolist()]
                gap[near_ties] = np.nan
            order = np.lexsort((gap, second, first))
            order = order[~np.isnan(gap[order])]
            parts += [part for part in np.array_split(order, _GROUPS) if len(part)]
        self._groups = [self._group(np.sort(part)) for part in parts]
        self._number()
        if self._small:
            for j, group in enumerate(self._groups):
                for i in self._has[j].nonzero()[0]:
                    self._load(group, np.array([i]))

    def _group(self, members: NDArray[np.int64]) -> _Group:
        group = _Group(members, self._rows, [], set())
        self._program.row([], low=1.0)
        self._rows += 1
        return group

    def _number(self) -> None:
        for at, group in enumerate(self._groups):
            self._group_of[group.members] = at

    def _load(self, group: _Group, served: NDArray[np.int64]) -> bool:
        """Let a group's members be served by given types; False if that is known already."""
        served = served.astype(np.int16)
        key = served.tobytes()
        if key in group.seen:
            return False
        group.seen.add(key)
        parts = self._parts[group.members, served]
        sums = np.bincount(served, weights=parts, minlength=self._k)
        types = np.unique(served)
        terms = [(int(i), -float(sums[i])) for i in types]
        variable = self._program.column(0.0, [*terms, (group.row, 1.0)])
        if not self._usable[types].all():
            self._program.close(variable, True)
        group.loads.append(_Load(variable, served, types))
        return True

    def _pass(
        self,
        prices: NDArray[np.float64],
        rough: NDArray[np.float64],
        paid: NDArray[np.float64] | None,
    ) -> tuple[bool, float]:
        """Let every job take its cheapest type; whether a load is new, and what all would pay.

        Parameters
        ----------
        prices : ndarray of k floats
            Infinite for types that cannot be had.
        rough : ndarray of k floats
            Between types that cost nothing these decide.
        paid : ndarray of floats, optional
            What each group pays so far: only loads that are cheaper join.
        """
        finite = np.isfinite(prices)
        top = float(prices[finite].max(initial=0.0))
        asked = np.where(prices > 1e-12 * top, prices, 1e-12 * max(top, 1e-12) * rough)
        asked = np.where(finite, asked, 0.0)
        worth = np.where(self._has & finite, self._parts * asked, np.inf)
        best = worth.argmin(axis=1)
        mine = self._parts[np.arange(self._n), best] * np.where(finite, prices, 0.0)[best]
        sums = np.bincount(self._group_of, weights=mine, minlength=len(self._groups))
        new = False
        for at, group in enumerate(self._groups):
            if paid is None or sums[at] < paid[at] - _NOTHING * abs(paid[at]):
                new |= self._load(group, best[group.members])
        return new, float(sums.sum())

    def _priced(self, rough: NDArray[np.float64], budget: Budget | None) -> Answer | None:
        """Add loads until the prices ask for none; None if the program failed, or if stopped."""
        centre, highest = self._prices, -np.inf
        for number in range(_MOST_PASSES):
            look_at(budget)
            answer = self._program.solve(budget)
            if answer is None:
                return None
            duals = np.array(answer.duals)
            self._prices = prices = np.maximum(0.0, duals[: self._k])
            if self._small:
                return answer
            paid = duals[[group.row for group in self._groups]]
            # Every second pass goes halfway at first, which tames the oscillation.
            halfway = [] if centre is None or not number % 2 else [(prices + centre) / 2]
            new = False
            for tried in (*halfway, prices):
                new, value = self._pass(np.where(self._usable, tried, np.inf), rough, paid)
                value -= float(tried @ self._held)
                if value > highest:
                    centre, highest = tried, value
                if new:
                    break
            if not new:
                return answer
        return None

    def _taken(self, answer: Answer, group: _Group) -> list[_Load]:
        return [load for load in group.loads if answer.values[load.variable] > _NOTHING]

    def _split(self, answer: Answer) -> bool:
        """Split groups that share several loads out; whether there was any."""
        kept: list[_Group] = []
        split = False
        for group in self._groups:
            taken = self._taken(answer, group)
            parts = self._divided(group, taken) if len(group.members) > 1 else []
            if len(parts) < 2:
                kept.append(group)
                continue
            split = True
            self._program.set_low(group.row, 0.0)
            for load in group.loads:
                self._program.close(load.variable, True)
            for part in parts:
                finer = self._group(group.members[part])
                for load in group.loads:
                    self._load(finer, load.served[part])
                kept.append(finer)
        if split:
            self._groups = kept
            self._number()
        return split

    def _divided(self, group: _Group, taken: list[_Load]) -> list[NDArray[np.int64]]:
        """Divide a group's members: those on whom its loads agree, and others who are alike."""
        if len(taken) < 2:
            return []
        served = np.stack([load.served for load in taken])
        agree = (served == served[0]).all(axis=0)
        parts = [agree.nonzero()[0]] if agree.any() else []
        others = (~agree).nonzero()[0]
        # Of two types that tie the first is dearer for jobs further on.
        jobs = group.members[others]
        one = served[0, others]
        other = served[(served[:, others] != one).argmax(axis=0), others]
        ratio = self._parts[jobs, one] / np.maximum(_TINY, self._parts[jobs, other])
        order = others[np.lexsort((ratio, other, one))]
        parts += np.array_split(order, min(len(order), _SPLIT))
        return [np.sort(part) for part in parts]

    def _read(self, answer: Answer, opened: Sequence[int]) -> Hint:
        values = answer.values
        bought = {at for at in opened if values[self._variables[at]] > _NOTHING}
        prices = np.array(answer.duals[: self._k])
        types = Serving(np.full(self._n, -1))
        for group in self._groups:
            taken = self._taken(answer, group)
            if taken:
                largest = max(taken, key=lambda load: values[load.variable])
                types.main[group.members] = largest.served
                for load in taken:
                    if load is not largest:
                        for at in (load.served != largest.served).nonzero()[0].tolist():
                            types.add(int(group.members[at]), int(load.served[at]))
        self._tie(types, prices)
        worth = []
        for at in opened:
            if at not in bought:
                left = self._costs[at] - float(self._counts[at] @ prices)
                if left <= _NOTHING:
                    worth.append((left, at))
        bought.update(at for _, at in sorted(worth)[: self._k])
        return Hint(bought, types)

    def _tie(self, types: Serving, prices: NDArray[np.float64]) -> None:
        """Let take part of the shares that nearly tie those nearest."""
        known = types.main >= 0
        rows = np.arange(self._n)
        worth = np.where(self._has, self._parts * np.maximum(0.0, prices), np.inf)
        paid = np.where(known, worth[rows, np.maximum(0, types.main)], -np.inf)
        tied = (worth <= (paid * (1 + _NOTHING))[:, None]) & known[:, None]
        tied[rows, np.maximum(0, types.main)] = False
        over = worth - paid[:, None]
        for i in range(self._k):
            jobs = tied[:, i].nonzero()[0]
            left = _TIED
            for j in jobs[np.argsort(over[jobs, i], kind="stable")].tolist():
                if left and i not in types.more.get(j, ()):
                    types.add(j, i)
                    left -= 1
