"""A thin layer over GLOP: linear programs in floating-point numbers that can be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .integer import AFTER_THE_END
from .wrapped import INFINITY, WrappedProgram

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cms.plugin.algorithm import Budget

#: Numbers of very different sizes can keep the simplex method going round for ever.
ITERATIONS = "max_number_of_iterations: 20000"
#: GLOP's parameters, tried in this order. A vertex is wanted as the simplex method leaves it: what
#: presolving took out and put back need not be one.
VERTEX = (
    "use_preprocessing: false use_dual_simplex: true",
    "use_preprocessing: false use_dual_simplex: false",
)


class Answer(NamedTuple):
    """What a linear program ended with: an optimal solution, as far as floats can tell."""

    values: list[float]
    duals: list[float]
    value: float


class LinearProgram(WrappedProgram):
    """Minimise, or maximise, a linear objective over variables with bounds."""

    def __init__(self, *, maximise: bool = False) -> None:
        super().__init__("GLOP", maximise=maximise)

    def column(self, cost: float, terms: Iterable[tuple[int, float]]) -> int:
        """Add a variable >= 0 to rows that are there; returns its number."""
        number = self.variable(cost)
        for row, coefficient in terms:
            self._rows[row].SetCoefficient(self._variables[number], coefficient)
        return number

    def set_high(self, row: int, high: float) -> None:
        """Change what a row may not exceed."""
        self._rows[row].SetUb(high)

    def set_low(self, row: int, low: float) -> None:
        """Change what a row is to reach."""
        self._rows[row].SetLb(low)

    def close(self, variable: int, closed: bool) -> None:
        """Hold a variable at 0, or let it go."""
        self._variables[variable].SetBounds(0.0, 0.0 if closed else INFINITY)

    def equation(self, row: int) -> tuple[list[float], float]:
        """Return a row as an equation: its coefficients, and its upper bound or else its lower."""
        found = self._rows[row]
        high = found.ub()
        coefficients = [found.GetCoefficient(variable) for variable in self._variables]
        return coefficients, high if high < INFINITY else found.lb()

    def solve(self, budget: Budget | None, ways: Iterable[str] = VERTEX) -> Answer | None:
        """Solve; None if GLOP comes to no end, which proves nothing, or if stopped.

        A program that has no solution, one whose numbers are too far apart for floats, and one that
        the clock has ended are not told apart: whoever needs to know asks exact numbers.
        """
        for way in ways:
            if budget is not None and budget.stopped:
                return None
            if self._solved(way, budget) == self._solver.OPTIMAL:
                return Answer(
                    [variable.solution_value() for variable in self._variables],
                    [row.dual_value() for row in self._rows],
                    self._objective.Value(),
                )
        return None

    def _solved(self, way: str, budget: Budget | None) -> int:
        solver = self._solver
        # The last text set is the only one that counts.
        if not solver.SetSolverSpecificParametersAsString(way):
            raise AssertionError(f"GLOP does not know one of the parameters {way!r}")
        if budget is None:
            return int(solver.Solve())
        left = budget.remaining()
        if left != INFINITY:
            # Stopping is `on_stop`'s: a solver that ends before would pass for one that failed.
            solver.SetTimeLimit(int((left + AFTER_THE_END) * 1000))
        with budget.on_stop(solver.InterruptSolve):
            return int(solver.Solve())
