"""LP* over some configurations, and the search for those that it lacks (theory 1.4)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.errors import UnsupportedProblem

from ..solvers.floats import near, near_table
from ..solvers.linear import VERTEX, LinearProgram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

    from ..aggregated.pseudoforest import Edge
    from ..solvers.linear import Answer
    from .paid import Paid

#: So many configurations join at a time, ...
_AT_A_TIME = 16
#: ... unless they are worth their cost but for this part.
_NEARLY = 1e-6
#: What is there is a solution, with columns to be brought in: the primal simplex method goes on.
_PRIMAL_FIRST = VERTEX[::-1]
#: In the place of infinity, where the product with 0 counts.
_HUGE = 1e300
#: Shares below this are the solver's noise.
_NOTHING = 1e-12
#: Edges by which it would cost so many units to serve a job are left out of LP*: it costs no more
#: than a unit, so that they carry no more than a part k / _FAR of a job's demand.
_FAR = 10**8


class LpStarSolution(NamedTuple):
    """A solution of LP*: its machines are just enough for its shares.

    Attributes
    ----------
    value : Fraction
    machines : dict
        ``{configuration: machines}``.
    shares : dict
        ``{configuration: {(block type, job): part of the job's demand}}``.
    """

    value: Fraction
    machines: dict[int, Fraction]
    shares: dict[int, dict[Edge, float]]


class LpStar:
    """LP* over some configurations, with the search for others that it lacks.

    At given duals w of the jobs a configuration is lacking if its machine, filled in parts, is
    worth more than it costs, where job j pays ``w_j`` for all it wants. With prices u of blocks
    that worth is at most ``u . a_C + sum (w_j - h_j(u))^+``, h_j(u) being what j's cheapest blocks
    in parts cost; and at the filling's own duals it is just that. So few machines are filled.

    Parameters
    ----------
    paid : Paid
    """

    def __init__(self, paid: Paid) -> None:
        self._paid = paid
        self._program = LinearProgram()
        self._serving = {j: self._program.row([], low=1.0) for j in paid.jobs}
        self._rows = len(paid.jobs)
        self._shares: dict[int, dict[Edge, int]] = {}
        self._needs: dict[int, dict[Edge, float]] = {}
        self._scale: dict[int, float] = {}
        self._suffices: dict[int, dict[int, int]] = {}
        tables = paid.tables
        self._counts = near_table(paid.counts)
        self._costs = np.array([near(cost / (paid.unit or 1)) for cost in tables.costs])
        self._parts = np.array(
            [
                [near(Fraction(tables.demands[j], f)) if f else np.inf for f in tables.supply[j]]
                for j in paid.jobs
            ]
        ).reshape(len(paid.jobs), tables.k)
        #: Prices of blocks at which machines were filled.
        self._prices: list[NDArray[np.float64]] = []

    def add(self, c: int) -> None:
        """Let machines of a configuration take part."""
        paid, program = self._paid, self._program
        cost = float(paid.tables.costs[c] / paid.unit)
        x = program.variable(1.0)
        mine = self._needed(c)
        by_type: dict[int, list[tuple[int, float]]] = {}
        by_job: dict[int, list[tuple[int, float]]] = {}
        shares = self._shares[c] = {}
        for (i, j), need in mine.items():
            # No coefficient is above 1.
            size = max(1.0, need)
            v = shares[i, j] = program.column(0.0, [(self._serving[j], 1.0 / size)])
            self._scale[v] = size
            by_type.setdefault(i, []).append((v, -need / size))
            by_job.setdefault(j, []).append((v, -cost / size))
        self._suffices[c] = {
            i: program.row([*terms, (x, 1.0)], low=0.0) for i, terms in by_type.items()
        }
        for terms in by_job.values():
            program.row([*terms, (x, 1.0)], low=0.0)

    def _needed(self, c: int) -> dict[Edge, float]:
        if c not in self._needs:
            self._needs[c] = _needs(self._paid, c)
        return self._needs[c]

    def solve(self, budget: Budget | None) -> Answer | None:
        """Solve over the configurations that take part; None if stopped."""
        answer = self._program.solve(budget, _PRIMAL_FIRST)
        if answer is None and not (budget is not None and budget.stopped):
            raise UnsupportedProblem(
                "the linear solver comes to no end of LP*, which has a solution (every job by "
                'itself): its numbers are too far apart for floats; take variant = "units" or '
                '"inflated"'
            )
        return answer

    def missing(self, answer: Answer, budget: Budget | None) -> list[int] | None:
        """List configurations worth more than they cost, as far as it matters; None if stopped."""
        paid = self._paid
        worth = {j: max(0.0, answer.duals[row]) for j, row in self._serving.items()}
        pays = np.array([worth[j] for j in paid.jobs])
        others = np.array([c for c in paid.shapes if c not in self._shares], dtype=np.int64)
        costs = self._costs[others] * (1.0 + _NEARLY)
        above = np.full(len(others), np.inf)
        for prices in (self._own_prices(answer), *self._prices):
            above = np.minimum(above, self._above(prices, pays, others))
        found: list[tuple[float, int]] = []
        while len(found) < _AT_A_TIME:
            doubtful = above > costs
            if not doubtful.any():
                break
            if budget is not None and budget.stopped:
                return None
            at = int(np.where(doubtful, above / costs, -np.inf).argmax())
            c = int(others[at])
            filled = _filled(paid, c, self._needed(c), worth, self._costs[c], budget)
            if filled is None:
                return None
            value, prices = filled
            self._prices.append(prices)
            above = np.minimum(above, self._above(prices, pays, others))
            above[at] = -np.inf
            if value > costs[at]:
                found.append((value, c))
        return [c for _, c in found]

    def _own_prices(self, answer: Answer) -> NDArray[np.float64]:
        """Return what blocks are worth at the duals, on the machine where they are worth most."""
        prices = np.zeros(self._paid.tables.k)
        for c, rows in self._suffices.items():
            for i, row in rows.items():
                worth = max(0.0, answer.duals[row]) * self._costs[c] / self._counts[c, i]
                prices[i] = max(prices[i], worth)
        return prices

    def _above(
        self, prices: NDArray[np.float64], pays: NDArray[np.float64], shapes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Bound from above what machines are worth, by prices of blocks."""
        asked = np.where(np.isfinite(self._parts), self._parts, _HUGE) * prices
        asked = np.where(np.isfinite(self._parts), asked, np.inf).min(axis=1)
        bound: NDArray[np.float64] = self._counts[shapes] @ prices
        return bound + float(np.maximum(0.0, pays - asked).sum())

    def read(self, answer: Answer) -> LpStarSolution:
        """Return the solution: exactly the whole of every job, and machines that do for it."""
        paid, tables = self._paid, self._paid.tables
        values = {v: max(0.0, answer.values[v]) / size for v, size in self._scale.items()}
        total = dict.fromkeys(paid.jobs, 0.0)
        for mine in self._shares.values():
            for (_, j), v in mine.items():
                total[j] += values[v]
        found: dict[int, dict[Edge, float]] = {}
        machines: dict[int, Fraction] = {}
        for c, mine in sorted(self._shares.items()):
            parts = {edge: values[v] / total[edge[1]] for edge, v in mine.items()}
            parts = {edge: part for edge, part in parts.items() if part > _NOTHING}
            if parts:
                found[c] = parts
                machines[c] = _paid_for(paid, c, parts, self._needs[c]) * paid.unit
                machines[c] /= tables.costs[c]
        value = sum((x * tables.costs[c] for c, x in machines.items()), Fraction(0))
        return LpStarSolution(value, machines, found)


def _filled(
    paid: Paid,
    c: int,
    needs: dict[Edge, float],
    worth: dict[int, float],
    cost: float,
    budget: Budget | None,
) -> tuple[float, NDArray[np.float64]] | None:
    """Fill one machine in parts; return its worth, and what its blocks are worth. None if stopped.

    The shares of jobs are the variables; a type's blocks suffice for ``needs / cost`` of them.
    """
    program = LinearProgram(maximise=True)
    shares = {edge: program.variable(worth[edge[1]]) for edge in needs if worth[edge[1]] > 0}
    by_type: dict[int, list[tuple[int, float]]] = {}
    by_job: dict[int, list[tuple[int, float]]] = {}
    for (i, j), v in shares.items():
        by_type.setdefault(i, []).append((v, needs[i, j] / cost))
        by_job.setdefault(j, []).append((v, 1.0))
    rows = {i: program.row(terms, high=1.0) for i, terms in by_type.items()}
    for terms in by_job.values():
        program.row(terms, high=1.0)
    answer = program.solve(budget)
    if answer is None:
        # Floats come to no end: let it take part, it may be worth it.
        stopped = budget is not None and budget.stopped
        return None if stopped else (np.inf, np.zeros(paid.tables.k))
    prices = np.zeros(paid.tables.k)
    for i, row in rows.items():
        prices[i] = max(0.0, answer.duals[row]) / near(Fraction(paid.counts[c][i]))
    return answer.value, prices


def _needs(paid: Paid, c: int) -> dict[Edge, float]:
    """What it costs to serve jobs wholly by a type's blocks of a configuration, in units."""
    tables = paid.tables
    needs = {}
    for j in paid.jobs:
        for i, f in enumerate(tables.supply[j]):
            count = paid.counts[c][i]
            if f and count:
                need = tables.costs[c] * tables.demands[j] / (paid.unit * f * count)
                if need <= _FAR:
                    needs[i, j] = float(need)
    return needs


def _paid_for(paid: Paid, c: int, parts: dict[Edge, float], needs: dict[Edge, float]) -> Fraction:
    """What machines of a configuration cost that are enough for parts of jobs, in units."""
    cost = float(paid.tables.costs[c] / paid.unit)
    of_type: dict[int, float] = {}
    of_job: dict[int, float] = {}
    for (i, j), part in parts.items():
        of_type[i] = of_type.get(i, 0.0) + needs[i, j] * part
        of_job[j] = of_job.get(j, 0.0) + cost * part
    # A hair more than floats say.
    return Fraction(max(*of_type.values(), *of_job.values())) * (1 + Fraction(1, 10**12))
