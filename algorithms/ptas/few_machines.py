"""The exact part of the PTAS, where machines are few: the optimum by one of two ways.

*By dynamic programming* over numbers of blocks, of all types but the last. One table says how many
of the last the jobs need at least, given how many of the others they may use; another how many
machines of a given cost have at most, given how many of the others they must have. The optimum is
the least cost at which the second reaches the first. *Or by the compact program* (theory 1.2).
"""

from __future__ import annotations

from contextlib import closing
from heapq import heappop, heappush
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np

from cms.errors import UnsupportedProblem
from cms.values.numbers import common_step

from ..integer_problem import blocks_and_costs, demands_of, listed, schedule_of
from ..solvers.integer import Outcome, Program, TooLarge, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.problem.problem import Problem
    from cms.schedule.schedule import Schedule

    Table = NDArray[np.int64]

#: Maximal multisets of a size-bounded set that are listed one by one.
MAX_SHAPES = 20_000
#: Blocks along the axes of the tables, and blocks of the last type.
Option = tuple[tuple[int, ...], int]
#: Cells of all tables of a kind, those of the jobs and those of the costs: 128 MiB each.
MAX_CELLS = 2**24
#: Cells that are gone through, a few seconds' work, and passes over tables, however small.
MAX_WORK, MAX_PASSES = 2**29, 2**18
#: Combinations of blocks that are looked at for being minimal options, a second's work.
MAX_LEAVES = 2**19
#: The last type's blocks stay far below what a cell can hold.
MAX_LAST = 2**40
#: No number of blocks suffices; there is no such fleet.
_NEVER, _NONE = 2**61, -(2**61)


class Fleet:
    """A reduced problem without limits, with all its configurations listed.

    ``steps`` are costs in multiples of ``step``, which is 0 if all machines are free. More blocks
    of a type than are ``useful`` never help.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.shapes = listed(problem, MAX_SHAPES).shapes
        self.counts, costs = blocks_and_costs(problem, self.shapes)
        self.step = common_step(costs)
        self.steps = [int(cost / self.step) if cost else 0 for cost in costs]
        self.demands = demands_of(problem)
        self.useful = [sum(d.enough[i] for d in self.demands) for i in range(len(problem.blocks))]

    def schedule(self, machines: Sequence[int], given: Sequence[Sequence[int]]) -> Schedule:
        """Build a schedule of machines of each shape, and blocks of each type for each job."""
        opened = dict(zip(self.shapes, machines, strict=True))
        return schedule_of(self.problem, opened, given).without_idle_machines()


class DynamicProgram:
    """The search for a schedule that costs at least ``lowest`` and less than ``highest``.

    Every job can be served. Raises UnsupportedProblem if the tables would be too large.
    """

    solver = "dynamic program"

    def __init__(self, fleet: Fleet, lowest: Fraction, highest: Fraction) -> None:
        self._fleet = fleet
        # The costs of interest, in steps.
        self._least = ceil(lowest / fleet.step)
        self._most = ceil(highest / fleet.step) - 1
        self._every = [*zip(fleet.steps, fleet.counts, strict=True)]
        # The types that machines of no cost have.
        free = [counts for steps, counts in self._every if not steps]
        self._free = {i for counts in free for i, n in enumerate(counts) if n}
        k = len(fleet.useful)
        self._caps = [self._cap(i) for i in range(k)]
        # The type of the largest range needs no axis of its own, nor do types that are not used. An
        # axis of length 1 is there in any case, so that a table is never without one.
        self._last = max(range(k), key=self._caps.__getitem__)
        self._axes = [i for i in range(k) if i != self._last and self._caps[i]]
        self._shape = (1, *(self._caps[i] + 1 for i in self._axes))
        cells, n, c = prod(self._shape), fleet.problem.n_jobs, len(fleet.shapes)
        self._require((n + 1) * cells <= MAX_CELLS and self._caps[self._last] <= MAX_LAST)
        self._costs = self._list_costs(min(MAX_CELLS // cells, MAX_PASSES // c))
        self._leaves = 0
        known: dict[tuple[int, tuple[int, ...]], list[Option]] = {}
        self._options: list[list[Option]] = []
        passes = len(self._costs) * c
        for demand in fleet.demands:
            key = demand.demand, demand.supply
            if key not in known:
                known[key] = list(self._list_options(*key))
            self._options.append(known[key])
            passes += len(known[key])
            self._require(passes <= MAX_PASSES and passes * cells <= MAX_WORK)

    def _require(self, fits: bool) -> None:
        if not fits:
            size = " x ".join(map(str, self._shape[1:])) or "1"
            raise UnsupportedProblem(
                f"the tables of the dynamic program, {size} cells for each job and each cost of a "
                f"fleet, would be too large: it takes {MAX_CELLS} cells of each kind"
            )

    def _cap(self, block: int) -> int:
        """Return how many blocks of a type are useful, and can be had at the costs of interest."""
        fleet = self._fleet
        if block in self._free:
            return fleet.useful[block]
        had = (held[block] * max(0, self._most) // steps for steps, held in self._every if steps)
        return min(fleet.useful[block], max(had, default=0))

    def _list_costs(self, most: int) -> list[int]:
        """List the costs (in steps) that fleets of paid machines have, if they are so few."""
        paid = sorted({steps for steps in self._fleet.steps if steps})
        costs: list[int] = []
        waiting, seen = [0], {0}
        while waiting:
            self._require(len(costs) < most)
            costs.append(cost := heappop(waiting))
            for more in (cost + steps for steps in paid):
                if more <= self._most and more not in seen:
                    seen.add(more)
                    heappush(waiting, more)
        return costs

    def _list_options(self, demand: int, supply: tuple[int, ...]) -> Iterator[Option]:
        """Yield the minimal options of a job: with a block less its demand is not met."""
        counts = [0] * len(self._axes)
        last = supply[self._last]

        def descend(at: int, left: int) -> Iterator[Option]:
            if left > 0 and at < len(counts):
                f = supply[self._axes[at]]
                most = min(self._caps[self._axes[at]], -(-left // f)) if f else 0
                for number in range(most + 1):
                    counts[at] = number
                    yield from descend(at + 1, left - number * f)
                counts[at] = 0
                return
            self._leaves += 1
            self._require(self._leaves <= MAX_LEAVES)
            number = -(-left // last) if left > 0 and last else 0
            left -= number * last
            taken = zip(counts, self._axes, strict=True)
            minimal = left <= 0 and all(left + supply[i] > 0 for n, i in taken if n)
            if minimal and number <= self._caps[self._last]:
                yield (0, *counts), number

        yield from descend(0, demand)

    def run(self, budget: Budget) -> Iterator[Schedule | None]:
        """Yield the cheapest schedule, if there is any, and None at last; nothing if stopped."""
        needs = [np.zeros(self._shape, dtype=np.int64)]
        for options in self._options:
            needs.append(self._add_job(needs[-1], options, budget))
        tables: dict[int, Table] = {}
        for cost in self._costs:
            tables[cost] = self._tabulate(tables, cost, budget)
            if budget.stopped:
                return
            hits = np.flatnonzero(needs[-1] <= tables[cost])
            if cost >= self._least and len(hits):
                cell = tuple(int(at) for at in np.unravel_index(int(hits[0]), self._shape))
                machines = self._machines(tables, cost, cell)
                yield self._fleet.schedule(machines, self._given(needs, cell))
                break
        yield None

    def _add_job(self, before: Table, options: list[Option], budget: Budget) -> Table:
        """Tabulate the least blocks of the last type with one more job."""
        after = np.full(self._shape, _NEVER, dtype=np.int64)
        for option, last in options:
            if budget.stopped:
                break
            to = after[tuple(slice(n, None) for n in option)]
            of = tuple(slice(0, size - n) for n, size in zip(option, self._shape, strict=True))
            np.minimum(to, before[of] + last, out=to)
        return after

    def _tabulate(self, tables: dict[int, Table], cost: int, budget: Budget) -> Table:
        """Tabulate the most blocks of the last type that machines of a cost have."""
        table = np.full(self._shape, _NONE, dtype=np.int64)
        free, caps, last = self._free, self._caps, self._last
        if not cost:  # machines that cost nothing have all that is useful of their types
            ends = (slice(0, caps[i] * (i in free) + 1) for i in self._axes)
            table[slice(None), *ends] = caps[last] if last in free else 0
        for steps, counts in self._every:
            if steps and cost - steps in tables and not budget.stopped:
                added = list(map(min, counts, caps))
                less = [np.maximum(np.arange(caps[i] + 1) - added[i], 0) for i in self._axes]
                moved = tables[cost - steps][np.ix_(np.zeros(1, dtype=np.int64), *less)]
                np.maximum(table, np.minimum(moved + added[last], caps[last]), out=table)
        return table

    def _machines(self, tables: dict[int, Table], cost: int, cell: tuple[int, ...]) -> list[int]:
        """Read off which machines have what a cell says."""
        cap = self._caps[self._last]
        machines = [
            0 if steps else max(-(-self._caps[i] // n) for i, n in enumerate(counts) if n)
            for steps, counts in self._every
        ]
        while cost:
            for at, (steps, counts) in enumerate(self._every):
                if not steps or cost - steps not in tables:
                    continue
                pairs = zip(cell[1:], self._axes, strict=True)
                less = (0, *(max(0, had - counts[i]) for had, i in pairs))
                before = int(tables[cost - steps][less])
                had = min(before + min(counts[self._last], cap), cap)
                if before >= 0 and had == tables[cost][cell]:
                    machines[at] += 1
                    cost, cell = cost - steps, less
                    break
            else:
                raise AssertionError("a cell of the table comes from no other")
        return machines

    def _given(self, needs: list[Table], cell: tuple[int, ...]) -> list[list[int]]:
        """Read off which option each job takes."""
        n = len(self._options)
        given = [[0] * len(self._caps) for _ in range(n)]
        for j in reversed(range(n)):
            for option, last in self._options[j]:
                less = tuple(at - less for at, less in zip(cell, option, strict=True))
                if min(less) >= 0 and needs[j][less] + last == needs[j + 1][cell]:
                    break
            else:
                raise AssertionError("a cell of the table comes from no other")
            for i, number in zip((self._last, *self._axes), (last, *option[1:]), strict=True):
                given[j][i] = number
            cell = less
        return given


class CompactProgram:
    """The same search by an integer program; UnsupportedProblem if numbers leave its range."""

    solver = "CP-SAT"

    def __init__(self, fleet: Fleet, lowest: Fraction, highest: Fraction) -> None:
        self._fleet, self._program = fleet, (program := Program())
        least, most = ceil(lowest / fleet.step), ceil(highest / fleet.step) - 1
        everything = sum(fleet.useful)
        try:
            # Machines that cost as much as the known schedule by themselves do not take part.
            self._machines = [
                program.variable(min(everything, max(0, most // steps)) if steps else everything)
                for steps in fleet.steps
            ]
            self._blocks = [[program.variable(n) for n in job.enough] for job in fleet.demands]
            for job, blocks in zip(fleet.demands, self._blocks, strict=True):
                program.at_least(terms_of(zip(blocks, job.supply, strict=True)), job.demand)
            for i, held in enumerate(zip(*fleet.counts, strict=True)):
                taken = ((blocks[i], -1) for blocks in self._blocks)
                pairs = zip(self._machines, held, strict=True)
                program.at_least(terms_of([*pairs, *taken]), 0)
            costs = terms_of(zip(self._machines, fleet.steps, strict=True))
            self._program.at_least(costs, least)
            self._program.at_most(costs, most)
            self._program.minimise(costs)
        except TooLarge:
            raise UnsupportedProblem(
                "demands, or costs in their common step, would be numbers beyond 2**60 in the "
                "integer program"
            ) from None

    def run(self, budget: Budget) -> Iterator[Schedule | None]:
        """Yield better and better schedules, and None at last if there are no better ones."""
        with closing(self._program.improvements(budget)) as items:
            for item in items:
                if not isinstance(item, Outcome):
                    given = [[item[y] for y in blocks] for blocks in self._blocks]
                    yield self._fleet.schedule([item[x] for x in self._machines], given)
                elif item.status in ("optimal", "infeasible"):
                    yield None
