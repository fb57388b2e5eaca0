"""The exact part of the PTAS: the optimum by dynamic programming, where block counts are small.

Two tables over numbers of blocks, of all types but the last: how many blocks of the last type the
jobs need at least, if they may use so many of the others; and how many of the last type machines of
a given cost have at most, if they must have so many of the others. The optimum is the least cost at
which the second table reaches the first somewhere. (The theory runs through all numbers of machines
instead, in the order of cost; the second table does so at the price of one pass a cost.)
"""

from __future__ import annotations

from fractions import Fraction
from heapq import heappop, heappush
from math import ceil, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem
from cms.reduction.reduction import reduce
from cms.schedule.schedule import Schedule

from .fleet import Fleet, FleetFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

    Table = NDArray[np.int64]

#: Blocks along the axes of the tables, and blocks of the last type.
Option = tuple[tuple[int, ...], int]
#: Cells of all tables of a kind, those of the jobs and those of the costs: 128 MiB each.
MOST_CELLS = 2**24
#: Cells that are gone through, a few seconds' work, and passes over tables, however small.
MOST_WORK, MOST_PASSES = 2**29, 2**18
#: Combinations of blocks that are looked at for being minimal options, a second's work.
MOST_LEAVES = 2**19
#: The last type's blocks stay far below what a cell can hold.
_MOST_LAST = 2**40
#: How the cost that :func:`optimum` searches up to grows.
_GROWTH = Fraction(3, 2)
#: No so many blocks suffice; there is no such fleet.
_NEVER, _NONE = 2**61, -(2**61)


class Searched(NamedTuple):
    """Whether the search came to its end, and the cheapest schedule below the cost asked for."""

    finished: bool
    found: FleetFound | None


class Optimum(NamedTuple):
    """The least cost of a schedule, and one that costs so much; None and an empty one for none."""

    cost: Fraction | None
    schedule: Schedule


def optimum(problem: Problem, budget: Budget | None = None) -> Optimum | None:
    """Find a cheapest schedule by dynamic programming alone: an oracle for small block counts.

    Neither prices nor linear programs are used, nor a solver.

    Parameters
    ----------
    problem : Problem
        Without limits on machine types.
    budget : Budget, optional
        By default the search takes the time it needs.

    Returns
    -------
    Optimum, or None if the budget was stopped

    Raises
    ------
    UnsupportedProblem
        If a machine type has a limit or the tables would be too large.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> problem = Problem(
    ...     configurations=[Configuration({"a": 2}), Configuration({"a": 1, "b": 1})],
    ...     jobs=[Job("x", 7, {"a": 2, "b": 3}), Job("y", 4, {"b": 2})],
    ... )
    >>> optimum(problem).cost
    Fraction(3, 1)
    """
    if any(machine.limit is not None for machine in problem.machine_types):
        raise UnsupportedProblem("the dynamic program knows no limits on machine types")
    reduction = reduce(problem)
    fleet = Fleet(reduction.problem)
    if not all(any(demand.supply) for demand in fleet.demands):
        return Optimum(None, Schedule())
    apart = fleet.apart()
    # Fleets a little larger each time: the tables are not much larger than the optimum needs.
    first = 2 * fleet.step * min((steps for steps in fleet.steps if steps), default=0)
    limit = Fraction(0)
    found: FleetFound | None = None
    while found is None and limit < apart.cost:
        limit = min(apart.cost, max(first, limit * _GROWTH))
        program = DynamicProgram(fleet, limit)
        if program.too_large is not None:
            raise UnsupportedProblem(program.too_large)
        searched = program.run(Fraction(0), lambda: budget is not None and budget.stopped)
        if not searched.finished:
            return None
        found = searched.found
    best = found or apart
    return Optimum(best.cost, reduction.restore(fleet.schedule(best)))


class DynamicProgram:
    """The search for a schedule that costs less than a known one.

    Parameters
    ----------
    fleet : Fleet
        Of a problem in which every job can be served.
    highest : Fraction
        Cost of the known schedule.

    Attributes
    ----------
    too_large : str or None
        Why the tables would be too large.
    """

    def __init__(self, fleet: Fleet, highest: Fraction) -> None:
        self._fleet = fleet
        # Of the costs that are of interest, the highest, in steps.
        self._most = ceil(highest / fleet.step) - 1 if fleet.step else -1
        k = len(fleet.useful)
        self._free = [steps == 0 for steps in fleet.steps]
        self._caps = [self._cap(i) for i in range(k)]
        # The type of the largest range needs no axis of its own, nor do types that are not used. An
        # axis of length 1 is there in any case, so that a table is never without one.
        self._last = max(range(k), key=self._caps.__getitem__) if k else 0
        self._axes = [i for i in range(k) if i != self._last and self._caps[i]]
        self._shape = (1, *(self._caps[i] + 1 for i in self._axes))
        self._options: list[list[Option]] = []
        self._values: list[int] = []
        self.too_large = self._measured()

    def _cap(self, block: int) -> int:
        """Return how many blocks of a type are useful, and can be had at the costs of interest."""
        fleet = self._fleet
        shapes = zip(fleet.steps, fleet.counts, strict=True)
        counts = [(steps, held[block]) for steps, held in shapes if held[block]]
        if any(steps == 0 for steps, _ in counts):
            return fleet.useful[block]
        had = max((n * max(0, self._most) // steps for steps, n in counts), default=0)
        return min(fleet.useful[block], had)

    def _measured(self) -> str | None:
        """Work out how large everything is, and list the jobs' options; say what is too large."""
        fleet, n, cells = self._fleet, self._fleet.problem.n_jobs, prod(self._shape)
        if self._most < 0 or not n:
            return None
        if (n + 1) * cells > MOST_CELLS or self._caps[self._last] > _MOST_LAST:
            size = str(cells) if cells <= MOST_CELLS else f"more than {MOST_CELLS}"
            return (
                f"the tables of the dynamic program have {size} cells for each of {n} jobs; it "
                f"takes {MOST_CELLS} cells in all, of 2**40 blocks at most"
            )
        most = min(MOST_CELLS // cells, MOST_PASSES // max(1, len(fleet.shapes)))
        if not self._reached(most):
            return (
                f"fleets can have more than {most} different costs, and the dynamic program has "
                f"{cells} cells for each of them and {len(fleet.shapes)} configurations; it takes "
                f"{MOST_CELLS} cells in all, and {MOST_PASSES} passes over them"
            )
        passes, leaves = len(self._values) * len(fleet.shapes), 0
        known: dict[tuple[int, tuple[int, ...]], list[Option]] = {}
        for demand in fleet.demands:
            key = demand.demand, demand.supply
            if key not in known:
                known[key] = []
                for option in self._options_of(*key):
                    leaves += 1
                    if leaves > MOST_LEAVES:
                        return f"the jobs have more than {MOST_LEAVES} combinations of blocks"
                    if option is not None:
                        known[key].append(option)
            self._options.append(known[key])
            passes += len(known[key])
            if passes > MOST_PASSES or passes * cells > MOST_WORK:
                return (
                    f"the dynamic program goes {passes} times or more through {cells} cells; it "
                    f"takes {MOST_PASSES} passes, and {MOST_WORK} cells in all of them"
                )
        return None

    def _reached(self, most: int) -> bool:
        """Find the costs (in steps) that fleets of paid machines have; say if they are so few.

        They are sums of the machines' costs, of no more machines than there are useful blocks: few
        of all multiples of a step where the costs have no short common denominator.
        """
        paid = sorted({steps for steps in self._fleet.steps if steps})
        useful = sum(self._caps)
        waiting, machines = [0], {0: 0}  # the fewest machines of each cost
        while waiting:
            if len(self._values) == most:
                return False
            value = heappop(waiting)
            self._values.append(value)
            for steps in paid:
                more = value + steps
                if more > self._most or machines[value] == useful:
                    break
                if more not in machines:
                    heappush(waiting, more)
                machines[more] = min(machines.get(more, useful), machines[value] + 1)
        return True

    def _options_of(self, demand: int, supply: Sequence[int]) -> Iterator[Option | None]:
        """Yield the minimal options of a job, and None for every other leaf of the search."""
        counts = [0] * len(self._axes)
        last = supply[self._last]

        def leaf(left: int) -> Option | None:
            number = 0
            if left > 0:
                if not last:
                    return None
                number = -(-left // last)
                left -= number * last
            # Minimal: with a block less of any type the demand is not met.
            taken = zip(counts, self._axes, strict=True)
            minimal = all(left + supply[i] > 0 for n, i in taken if n)
            return ((0, *counts), number) if minimal and number <= self._caps[self._last] else None

        def descend(at: int, left: int) -> Iterator[Option | None]:
            if left <= 0 or at == len(counts):
                yield leaf(left)
                return
            f = supply[self._axes[at]]
            most = min(self._caps[self._axes[at]], -(-left // f)) if f else 0
            for number in range(most + 1):
                counts[at] = number
                yield from descend(at + 1, left - number * f)
            counts[at] = 0

        yield from descend(0, demand)

    def run(self, lowest: Fraction, stopped: Callable[[], bool]) -> Searched:
        """Search all costs from a lower bound on.

        Parameters
        ----------
        lowest : Fraction
            No schedule costs less.
        stopped : callable
            Asked at every pass.
        """
        if self._most < 0:
            return Searched(True, None)
        needs = self._needs(stopped)
        if needs is None:
            return Searched(False, None)
        start = ceil(lowest / self._fleet.step)
        tables: dict[int, Table] = {}
        for value in self._values:
            table = self._had(tables, value, stopped)
            if table is None:
                return Searched(False, None)
            tables[value] = table
            if value < start:
                continue
            hits = np.flatnonzero(needs[-1] <= table)
            if len(hits):
                cell = tuple(int(at) for at in np.unravel_index(int(hits[0]), self._shape))
                found = self._fleet.found(
                    self._machines(tables, value, cell), self._given(needs, cell)
                )
                return Searched(True, found)
        return Searched(True, None)

    def _needs(self, stopped: Callable[[], bool]) -> list[Table] | None:
        """Tabulate the least blocks of the last type: of no job, of the first, of two ..."""
        tables = [np.zeros(self._shape, dtype=np.int64)]
        for options in self._options:
            before, after = tables[-1], np.full(self._shape, _NEVER, dtype=np.int64)
            for option, last in options:
                if stopped():
                    return None
                to = after[tuple(slice(n, None) for n in option)]
                of = tuple(slice(0, size - n) for n, size in zip(option, self._shape, strict=True))
                np.minimum(to, before[of] + last, out=to)
            tables.append(after)
        return tables

    def _had(
        self, tables: dict[int, Table], value: int, stopped: Callable[[], bool]
    ) -> Table | None:
        """Tabulate the most blocks of the last type that machines of a cost have."""
        table = self._for_free() if value == 0 else np.full(self._shape, _NONE, dtype=np.int64)
        for c, steps in enumerate(self._fleet.steps):
            if stopped():
                return None
            if steps and value - steps in tables:
                np.maximum(table, self._with(tables[value - steps], c), out=table)
        return table

    def _for_free(self) -> Table:
        """Tabulate what machines that cost nothing have: all that is useful of their types."""
        table = np.full(self._shape, _NONE, dtype=np.int64)
        free = self._freely_had()
        ends = (slice(None), *(slice(0, self._caps[i] * (i in free) + 1) for i in self._axes))
        table[ends] = self._caps[self._last] if self._last in free else 0
        return table

    def _freely_had(self) -> set[int]:
        """Return the types that machines of no cost have."""
        shapes = zip(self._free, self._fleet.counts, strict=True)
        return {i for free, counts in shapes if free for i, n in enumerate(counts) if n}

    def _with(self, before: Table, c: int) -> Table:
        """Add a machine of a configuration to fleets."""
        counts = self._fleet.counts[c]
        caps = self._caps
        less = [np.maximum(np.arange(caps[i] + 1) - min(counts[i], caps[i]), 0) for i in self._axes]
        moved: Table = before[np.ix_(np.zeros(1, dtype=np.int64), *less)]
        cap = caps[self._last]
        return np.minimum(moved + min(counts[self._last], cap), cap)

    def _machines(
        self, tables: dict[int, Table], value: int, cell: tuple[int, ...]
    ) -> dict[Configuration, int]:
        """Read off which machines have what a cell says; as many steps as there are machines."""
        fleet, cap = self._fleet, self._caps[self._last]
        machines: dict[Configuration, int] = {}
        while value:
            wanted = int(tables[value][cell])
            for c, steps in enumerate(fleet.steps):
                counts = fleet.counts[c]
                if not steps or value - steps not in tables:
                    continue
                less = (
                    0,
                    *(max(0, at - counts[i]) for at, i in zip(cell[1:], self._axes, strict=True)),
                )
                before = int(tables[value - steps][less])
                if before >= 0 and min(before + min(counts[self._last], cap), cap) == wanted:
                    break
            else:
                raise AssertionError("a cell of the table comes from no other")
            machines[fleet.shapes[c]] = machines.get(fleet.shapes[c], 0) + 1
            value, cell = value - steps, less
        for shape, counts, free in zip(fleet.shapes, fleet.counts, self._free, strict=True):
            if free:
                machines[shape] = max(-(-self._caps[i] // n) for i, n in enumerate(counts) if n)
        return machines

    def _given(self, needs: list[Table], cell: tuple[int, ...]) -> dict[tuple[str, str], int]:
        """Read off which option each job takes."""
        problem = self._fleet.problem
        given: dict[tuple[str, str], int] = {}
        for j in reversed(range(problem.n_jobs)):
            wanted = int(needs[j + 1][cell])
            for option, last in self._options[j]:
                less = tuple(at - n for at, n in zip(cell, option, strict=True))
                if min(less) >= 0 and int(needs[j][less]) + last == wanted:
                    break
            else:
                raise AssertionError("a cell of the table comes from no other")
            for i, n in zip((self._last, *self._axes), (last, *option[1:]), strict=True):
                if n:
                    given[problem.blocks[i], problem.job_names[j]] = n
            cell = less
        return given
