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
from ..solvers.linear import INFINITY, ITERATIONS, LinearProgram
from .columns import Step, Turn
from .knapsack import Prices

if TYPE_CHECKING:
    from cms.certificate.conditions import Condition
    from cms.plugin.algorithm import Budget

    from ..prices.region import Region
    from ..solvers.linear import Answer
    from .columns import Columns

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
_ONE = Fraction(1)
_HAIR, _WHOLE = Fraction(1, 10**5), 12


class Left(NamedTuple):
    """What is left when some machines are there.

    Attributes
    ----------
    parts : dict of job to Fraction
        Of each job that is not served: which part of its demand is left, in (0, 1].
    machines : list of int
        The machines of each type that are there.
    """

    parts: dict[int, Fraction]
    machines: list[int]


class Point(NamedTuple):
    """An optimal solution of the program.

    Attributes
    ----------
    value : float
        In the region's unit; with free machines the parts of demands that are not served.
    machines : list of float
        Of each row of the region.
    mixes : list of float
        Of each column.
    blocks : array of k floats
        Block prices, in the region's unit.
    prices : Prices
        Of the jobs, likewise.
    steps : dict of Step to float
        The heights of all steps that are not 0.
    branches : list of float
        The multipliers of the region's branches.
    """

    value: float
    machines: list[float]
    mixes: list[float]
    blocks: list[float]
    prices: Prices
    steps: dict[Step, float]
    branches: list[float] = []  # noqa: RUF012


class Master:
    """Minimise the cost of fractional machines that serve all jobs.

    Parameters
    ----------
    columns : Columns
    region : Region
        With free machines what is minimised is the sum of the parts of demands that are not served.
    left : Left, optional
        What is left to serve; by default all.
    penalty : float, optional
        What it costs, in the region's unit, to serve a demand not at all: then there is a solution
        whatever the branches say. By default every demand is to be served.

    Examples
    --------
    >>> from cms import Configuration, TimeSharedJob, TimeSharedProblem
    >>> from algorithms.mixes.columns import Columns
    >>> from algorithms.prices.region import Region
    >>> jobs = [TimeSharedJob(name, 2, 20, {"a": [(8, 4)]}) for name in "xy"]
    >>> problem = TimeSharedProblem(configurations=Configuration({"a": 2}), jobs=jobs)
    >>> columns = Columns(problem)
    >>> columns.add_alone()
    >>> master = Master(columns, Region(problem))
    >>> master.solve(None).value
    1.0
    """

    def __init__(
        self,
        columns: Columns,
        region: Region,
        left: Left | None = None,
        penalty: float | None = None,
    ) -> None:
        self._columns = columns
        if region.free_machines:
            penalty = 1.0
        self._left = left or Left(dict.fromkeys(columns.jobs, Fraction(1)), [0] * len(region.names))
        #: Whether some jobs are served in part.
        self._part = any(part != 1 for part in self._left.parts.values())
        self._program = program = LinearProgram()
        self._unit = region.unit
        self._held = [program.row((), low=0.0) for _ in region.blocks]
        self._limits = {
            m: program.row((), high=near(limit - self._left.machines[m]))
            for m, limit in enumerate(region.limits)
            if limit is not None
        }
        self._served = {job: program.row((), low=1.0) for job in self._left.parts}
        self._steps: dict[Step, int] = {}
        self._machines: list[int] = []
        self._mixes: list[int] = []
        #: A row for each side of a branch that there ever was, in the order of ``_known``.
        self._branches: list[int] = []
        self._unserved = {
            job: program.column(penalty, [(row, 1.0)])
            for job, row in self._served.items()
            if penalty is not None
        }
        self._known, self._turns = region.below(()), list[Turn]()
        self.move(region)

    def move(self, region: Region) -> None:
        """Go on below other branches, with the columns and cuts that are there.

        Parameters
        ----------
        region : Region
            But for its branches and rows like the one before.
        """
        self._region = region
        sides = {(c.quantity, c.sign): at for at, c in enumerate(self._known.path)}
        new = [c for c in region.path if (c.quantity, c.sign) not in sides]
        if new:
            self._add_branches(list({(c.quantity, c.sign): c for c in new}.values()))
            sides = {(c.quantity, c.sign): at for at, c in enumerate(self._known.path)}
        lows = [-INFINITY] * len(self._branches)
        #: Of each branch above, its row, where no other on the same side asks for more.
        self._above: list[int | None] = [None] * len(region.path)
        said: dict[int, int] = {}
        for number, condition in enumerate(region.path):
            at, low = sides[condition.quantity, condition.sign], condition.sign * condition.value
            if low > lows[at]:
                lows[at] = low
                said[at] = number
        for at, number in said.items():
            self._above[number] = self._branches[at]
        for row, least in zip(self._branches, lows, strict=True):
            self._program.set_low(row, least)

    def _add_branches(self, new: list[Condition]) -> None:
        """Add rows for further branches, which count what is there; none is asked for."""
        first = len(self._branches)
        self._known = self._known.below([*self._known.path, *new])
        self._turns = self._columns.turns(self._known)
        terms: dict[int, list[tuple[int, float]]] = {first + at: [] for at in range(len(new))}
        for variable, row in zip(self._machines, self._region.rows, strict=False):
            for at, n in self._known.row_terms(row):
                if at >= first:
                    terms[at].append((variable, float(n)))
        for variable, column in zip(self._mixes, self._columns.listed, strict=False):
            for turn in self._turns:
                if turn.branch >= first and self._columns.takes(column, turn):
                    terms[turn.branch].append((variable, float(turn.sign)))
        self._branches += [self._program.row(own) for own in terms.values()]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The cuts that are there."""
        return tuple(self._steps)

    def _grow(self) -> None:
        """Take in what has come in sight."""
        region, program = self._region, self._program
        for row in region.rows[len(self._machines) :]:
            terms = [(self._held[i], float(n)) for i, n in enumerate(row.counts) if n]
            if row.machine in self._limits:
                terms.append((self._limits[row.machine], 1.0))
            terms += [(self._branches[at], float(n)) for at, n in self._known.row_terms(row)]
            cost = near(region.costs[row.machine] / self._unit)
            self._machines.append(program.column(cost, terms))
        if len(self._mixes) == len(self._columns):
            return
        counted = [(row, self._columns.counted(step)) for step, row in self._steps.items()]
        parts = self._left.parts
        for number, column in enumerate(self._columns.listed):
            if number < len(self._mixes):
                continue
            terms = [(self._held[column.block], -1.0)]
            terms += [
                (self._served[job], near(min(_ONE, share / parts[job] if self._part else share)))
                for job, share in column.shares
                if job in parts
            ]
            terms += [(row, float(counts[number])) for row, counts in counted if counts[number]]
            terms += [
                (self._branches[turn.branch], float(turn.sign))
                for turn in self._turns
                if self._columns.takes(column, turn)
            ]
            self._mixes.append(program.column(0.0, terms))

    def add_steps(self, steps: list[Step]) -> None:
        """Let cuts join."""
        for step in steps:
            if step in self._steps:
                continue
            pairs = zip(self._mixes, self._columns.counted(step), strict=False)
            terms = [(variable, float(count)) for variable, count in pairs if count]
            if step.job in self._unserved:
                terms.append((self._unserved[step.job], float(ceil(step.times))))
            self._steps[step] = self._program.row(terms, low=float(ceil(step.times)))

    def paid(self, point: Point) -> float:
        """Return what the jobs pay for their demands, in the region's unit."""
        heights = sum(height * ceil(step.times) for step, height in point.steps.items())
        return float(point.prices.slopes.sum()) + heights

    def solve(self, budget: Budget | None) -> Point | None:
        """Return an optimal solution; None if it failed or was stopped."""
        self._grow()
        answer = self._program.solve(budget, _WAYS)
        return None if answer is None else self._point(answer)

    def _point(self, answer: Answer) -> Point:
        slopes = np.zeros(len(self._columns.problem.jobs))
        for job, row in self._served.items():
            slopes[job] = max(0.0, answer.duals[row])
        heights = {
            step: answer.duals[row] for step, row in self._steps.items() if answer.duals[row] > 1e-9
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
            [0.0 if row is None else max(0.0, answer.duals[row]) for row in self._above],
        )


class Cuts:
    """Finds the steps that a fractional solution breaks.

    Parameters
    ----------
    columns : Columns
        With each job alone on each block that can serve it.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        alone: dict[int, set[Fraction]] = {}
        for column in columns.listed:
            if len(column.shares) == 1:
                ((job, share),) = column.shares
                alone.setdefault(job, set()).add(share)
        self._steps = [
            Step(job, times)
            for job in columns.jobs
            for times in sorted(
                {k + _HAIR for k in range(_WHOLE)}
                | {_short(k / share) for share in alone.get(job, ()) for k in range(1, 4)}
            )
        ]

    def broken(self, point: Point) -> list[Step]:
        """Return the steps that are broken most."""
        used: dict[int, list[tuple[float, Fraction]]] = {}
        for amount, column in zip(point.mixes, self._columns.listed, strict=False):
            if amount > _IN_USE:
                for job, share in column.shares:
                    used.setdefault(job, []).append((amount, share))
        found: dict[Step, float] = {}
        for step in (*self._steps, *_fitting(used)):
            terms = used.get(step.job, ())
            have = sum(amount * step.count(share) for amount, share in terms)
            need = ceil(step.times)
            if have < need * (1 - _BROKEN):
                found[step] = have / need
        return sorted(found, key=lambda step: (found[step], step))[:_MOST_STEPS]


def _fitting(used: dict[int, list[tuple[float, Fraction]]]) -> list[Step]:
    """Return steps that count some share in use as a whole number, and no more than it is."""
    return [
        Step(job, _short(k / share))
        for job, terms in used.items()
        for share in sorted({share for _, share in terms})
        for k in (1, 2)
    ]


def _short(times: Fraction) -> Fraction:
    """Round a long fraction down: a share that it counts as a whole number it counts alike."""
    return times if times.denominator <= _SHORT else Fraction(int(times * _SHORT), _SHORT)
