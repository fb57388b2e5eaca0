"""The linear program over the mixes and machines in sight: columns join as prices bring them up.

Cheapest machines whose blocks hold the mixes, and mixes that serve every job: each job's shares of
its demand sum to 1 at least, and for some numbers t its rounded ones, ``ceil(t share)``, to
``ceil(t)`` (Chvatal-Gomory cuts of the job's row). The dual values are block prices and, of each
job, a price function. Floating-point numbers all of it, so hints.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..solvers.floats import near
from ..solvers.linear import ITERATIONS, LinearProgram
from .columns import Prices, Step

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget

    from ..prices.limits import Room
    from ..prices.region import Region
    from .columns import Column, Columns

#: GLOP's parameters, tried in this order.
_WAYS = (
    f"{ITERATIONS} use_dual_simplex: false use_preprocessing: false",
    f"{ITERATIONS} use_dual_simplex: true use_preprocessing: false",
    f"{ITERATIONS} use_dual_simplex: false use_preprocessing: true",
)
#: A row of steps is broken where its left side falls short by more than this.
_BROKEN = 1e-4
#: Steps that join at a time.
_MOST_STEPS = 40
#: Mixes of which there are fewer count as none; denominators of steps.
_IN_USE, _SHORT = 1e-9, 10**6
#: Steps of every job: a hair more than 0, 1, 2, ... Of all times that round up to the same number
#: the least counts a mix least, so that no other cut of it says more.
_HAIR, _WHOLE = Fraction(1, 10**5), 12
_ONE = Fraction(1)


class Left(NamedTuple):
    """What is left when some machines are there.

    ``parts`` are those of demands that are not served, in (0, 1]; ``room`` is there for machines.
    """

    parts: dict[int, Fraction]
    room: Room


class Point(NamedTuple):
    """An optimal solution: machines of each row of the region, mixes of each column, duals.

    ``value``, the prices of ``blocks``, what jobs pay and the multipliers of ``branches`` are in
    the region's unit; with free machines the value is the parts of demands that are not served.
    ``steps`` has the heights of all steps that are not 0.
    """

    value: float
    machines: list[float]
    mixes: list[float]
    blocks: list[float]
    prices: Prices
    steps: dict[Step, float]
    branches: list[float]


class Master:
    """Minimise the cost of fractional machines that serve what is left, by default all.

    Not to serve a demand at all costs ``penalty``, in the region's unit; by default every demand is
    to be served. With free machines the sum of the parts of demands not served is minimised.
    """

    def __init__(
        self,
        columns: Columns,
        region: Region,
        left: Left | None = None,
        penalty: float | None = None,
    ) -> None:
        self._columns, self._region = columns, region
        if region.free_machines:
            penalty = 1.0
        left = left or Left(dict.fromkeys(columns.jobs, _ONE), region.room)
        self._parts = left.parts
        self._program = program = LinearProgram()
        self._held = [program.row((), low=0.0) for _ in region.blocks]
        self._limits = [
            program.row((), high=near(most, limit.size))
            for most, limit in zip(left.room.left, region.limits, strict=True)
        ]
        self._served = {job: program.row((), low=1.0) for job in left.parts}
        self._branches = [program.row((), low=c.sign * c.value) for c in region.path]
        #: The cuts that are there, with their rows.
        self.steps: dict[Step, int] = {}
        self._machines: list[int] = []
        self._mixes: list[int] = []
        self._unserved = {
            job: program.column(penalty, [(row, 1.0)])
            for job, row in self._served.items()
            if penalty is not None
        }

    def _grow(self) -> None:
        """Take in what has come in sight."""
        region, program = self._region, self._program
        for row in region.rows[len(self._machines) :]:
            terms = [(self._held[i], float(n)) for i, n in enumerate(row.counts) if n]
            for at, n in region.room.counting(row.machine):
                terms.append((self._limits[at], near(n, region.limits[at].size)))
            terms += [(self._branches[at], float(n)) for at, n in region.row_terms(row)]
            cost = near(region.costs[row.machine] / region.unit)
            self._machines.append(program.column(cost, terms))
        known = len(self._mixes)
        if known == len(self._columns):
            return
        counted = [(row, self._columns.counted(step)) for step, row in self.steps.items()]
        for number, column in enumerate(self._columns.listed[known:], known):
            terms = self._terms(column)
            terms += [(row, float(counts[number])) for row, counts in counted if counts[number]]
            self._mixes.append(program.column(0.0, terms))

    def _terms(self, column: Column) -> list[tuple[int, float]]:
        """Return a mix's coefficients in all rows but those of cuts."""
        region, parts = self._region, self._parts
        terms = [(self._held[column.block], -1.0)]
        for job, share in column.shares:
            part = parts.get(job)
            if part is not None:
                of_part = share if part == 1 else min(_ONE, share / part)
                terms.append((self._served[job], near(of_part)))
            terms += [
                (self._branches[at], float(region.path[at].sign))
                for at, i, j in region.job_terms
                if (i, j) == (column.block, job)
            ]
        return terms

    def add_steps(self, steps: list[Step]) -> None:
        """Let cuts join."""
        for step in steps:
            pairs = zip(self._mixes, self._columns.counted(step), strict=False)
            terms = [(variable, float(count)) for variable, count in pairs if count]
            if step.job in self._unserved:
                terms.append((self._unserved[step.job], float(ceil(step.times))))
            self.steps[step] = self._program.row(terms, low=float(ceil(step.times)))

    def paid(self, point: Point) -> float:
        """Return what the jobs pay for their demands, in the region's unit."""
        heights = sum(height * ceil(step.times) for step, height in point.steps.items())
        return float(point.prices.slopes.sum()) + heights

    def solve(self, budget: Budget | None) -> Point | None:
        """Return an optimal solution; None if it failed or was stopped."""
        self._grow()
        answer = self._program.solve(budget, _WAYS)
        if answer is None:
            return None
        slopes = np.zeros(len(self._columns.problem.jobs))
        for job, row in self._served.items():
            slopes[job] = max(0.0, answer.duals[row])
        heights = {
            step: answer.duals[row] for step, row in self.steps.items() if answer.duals[row] > 1e-9
        }
        steps: dict[int, list[tuple[float, float]]] = {}
        for step, height in heights.items():
            steps.setdefault(step.job, []).append((near(step.times), height))
        return Point(
            answer.value,
            [answer.values[variable] for variable in self._machines],
            [answer.values[variable] for variable in self._mixes],
            [max(0.0, answer.duals[row]) for row in self._held],
            Prices(slopes, steps),
            heights,
            [max(0.0, answer.duals[row]) for row in self._branches],
        )


class Cuts:
    """Finds the steps that a fractional solution breaks, over columns with each job alone."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        times = {job: {k + _HAIR for k in range(_WHOLE)} for job in columns.jobs}
        for column in columns.listed:
            if len(column.shares) == 1:
                ((job, share),) = column.shares
                times[job] |= {_short(k / share) for k in range(1, 4)}
        self._steps = [Step(job, each) for job, own in times.items() for each in sorted(own)]

    def broken(self, point: Point) -> list[Step]:
        """Return the steps that are broken most."""
        used: dict[int, list[tuple[float, Fraction]]] = {}
        for amount, column in zip(point.mixes, self._columns.listed, strict=False):
            if amount > _IN_USE:
                for job, share in column.shares:
                    used.setdefault(job, []).append((amount, share))
        # Steps that count some share in use as a whole number, and no more than it is.
        fitting = (
            Step(job, _short(k / share))
            for job, terms in used.items()
            for share in sorted({share for _, share in terms})
            for k in (1, 2)
        )
        found: dict[Step, float] = {}
        for step in (*self._steps, *fitting):
            terms = used.get(step.job, ())
            have = sum(amount * step.count(share) for amount, share in terms)
            need = ceil(step.times)
            if have < need * (1 - _BROKEN):
                found[step] = have / need
        return sorted(found, key=lambda step: (found[step], step))[:_MOST_STEPS]


def _short(times: Fraction) -> Fraction:
    """Round a long fraction down: a share that it counts as a whole number it counts alike."""
    return times if times.denominator <= _SHORT else Fraction(int(times * _SHORT), _SHORT)
