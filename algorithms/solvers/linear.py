"""A thin layer over GLOP: linear programs in floating-point numbers that can be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .integer import AFTER_THE_END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cms.plugin.algorithm import Budget

#: A vertex is wanted as the simplex method leaves it: what presolving took out and put back need
#: not be one.
_WAYS = (
    "use_preprocessing: false use_dual_simplex: true",
    "use_preprocessing: false use_dual_simplex: false",
)


class Answer(NamedTuple):
    """What a linear program ended with: an optimal vertex, as far as floats can tell.

    Attributes
    ----------
    values : list of float
    duals : list of float
        One a row.
    value : float
    basic : list of bool
        Whether each variable is basic.
    slack : list of bool
        Whether what each row has beyond its least is basic.
    """

    values: list[float]
    duals: list[float]
    value: float
    basic: list[bool]
    slack: list[bool]


class LinearProgram:
    """Minimise a linear objective over variables >= 0.

    Examples
    --------
    >>> program = LinearProgram()
    >>> x, y = program.variable(1.0), program.variable(2.0)
    >>> row = program.at_least([(x, 1.0), (y, 4.0)], 2.0)
    >>> program.solve(None).value
    1.0
    >>> program.set_least(row, 8.0)
    >>> program.close(y, True)
    >>> program.solve(None).values
    [8.0, 0.0]
    """

    def __init__(self) -> None:
        from ortools.linear_solver import pywraplp

        self._solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self._infinity = self._solver.infinity()
        self._variables: list[Any] = []
        self._rows: list[Any] = []
        self._objective = self._solver.Objective()
        self._objective.SetMinimization()

    def variable(self, cost: float) -> int:
        """Add a variable; returns its number."""
        variable = self._solver.NumVar(0.0, self._infinity, "")
        if cost:
            self._objective.SetCoefficient(variable, cost)
        self._variables.append(variable)
        return len(self._variables) - 1

    def at_least(self, terms: Iterable[tuple[int, float]], least: float) -> int:
        """Add a row; returns its number."""
        row = self._solver.RowConstraint(least, self._infinity, "")
        for variable, coefficient in terms:
            row.SetCoefficient(self._variables[variable], coefficient)
        self._rows.append(row)
        return len(self._rows) - 1

    def set_least(self, row: int, least: float) -> None:
        """Change what a row is to reach."""
        self._rows[row].SetBounds(least, self._infinity)

    def close(self, variable: int, closed: bool) -> None:
        """Hold a variable at 0, or let it go."""
        self._variables[variable].SetBounds(0.0, 0.0 if closed else self._infinity)

    def solve(self, budget: Budget | None) -> Answer | None:
        """Solve; None if GLOP comes to no end, which proves nothing, or if stopped.

        A program that has no solution, one whose numbers are too far apart for floats, and one that
        the clock has ended are not told apart: whoever needs to know asks exact numbers.
        """
        for way in _WAYS:
            if budget is not None and budget.stopped:
                return None
            if self._solved(way, budget) == self._solver.OPTIMAL:
                return Answer(
                    [variable.solution_value() for variable in self._variables],
                    [row.dual_value() for row in self._rows],
                    self._objective.Value(),
                    [v.basis_status() == self._solver.BASIC for v in self._variables],
                    [row.basis_status() == self._solver.BASIC for row in self._rows],
                )
        return None

    def _solved(self, way: str, budget: Budget | None) -> int:
        solver = self._solver
        if not solver.SetSolverSpecificParametersAsString(way):
            raise AssertionError(f"GLOP does not know one of the parameters {way!r}")
        if budget is None:
            return int(solver.Solve())
        left = budget.remaining()
        if left != float("inf"):
            # Stopping is `on_stop`'s: a solver that ends before would pass for one that failed.
            solver.SetTimeLimit(int((left + AFTER_THE_END) * 1000))
        with budget.on_stop(solver.InterruptSolve):
            return int(solver.Solve())
