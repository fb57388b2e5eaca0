"""A thin layer over GLOP and SCIP: linear programs, some variables whole, that can be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cms.algorithm import Budget

#: A vertex is wanted as the simplex method leaves it: what presolving took out and put back need
#: not be one.
_VERTEX = "use_preprocessing: false use_dual_simplex: true"
_OTHERWISE = "use_preprocessing: false use_dual_simplex: false"


class Answer(NamedTuple):
    """What a linear program ended with.

    Attributes
    ----------
    values : list of float
    duals : list of float
        One a row; of no meaning where some variables are whole.
    value, bound : float
        Of the solution, and the solver's word on what no solution is below.
    optimal : bool
    """

    values: list[float]
    duals: list[float]
    value: float
    bound: float
    optimal: bool


class LinearProgram:
    """Minimise a linear objective over variables >= 0.

    Parameters
    ----------
    whole : bool, default False
        Whether some variables are integers: SCIP then, and GLOP otherwise, which ends at a vertex.

    Examples
    --------
    >>> program = LinearProgram()
    >>> x, y = program.variable(1.0), program.variable(2.0)
    >>> program.at_least([(x, 1.0), (y, 4.0)], 2.0)
    >>> program.solve(None).value
    1.0
    """

    def __init__(self, *, whole: bool = False) -> None:
        from ortools.linear_solver import pywraplp

        self._solver: Any = pywraplp.Solver.CreateSolver("SCIP" if whole else "GLOP")
        self._whole = whole
        self._infinity = self._solver.infinity()
        self._variables: list[Any] = []
        self._rows: list[Any] = []
        self._objective = self._solver.Objective()
        self._objective.SetMinimization()

    def variable(self, cost: float, *, whole: bool = False, low: float = 0.0) -> int:
        """Add a variable; returns its number."""
        make = self._solver.IntVar if whole else self._solver.NumVar
        variable = make(low, self._infinity, "")
        if cost:
            self._objective.SetCoefficient(variable, cost)
        self._variables.append(variable)
        return len(self._variables) - 1

    def at_least(self, terms: Iterable[tuple[int, float]], least: float) -> None:
        """Add a row."""
        self._row(terms, least, self._infinity)

    def at_most(self, terms: Iterable[tuple[int, float]], most: float) -> None:
        """Add a row."""
        self._row(terms, -self._infinity, most)

    def _row(self, terms: Iterable[tuple[int, float]], least: float, most: float) -> None:
        row = self._solver.RowConstraint(least, most, "")
        for variable, coefficient in terms:
            row.SetCoefficient(self._variables[variable], coefficient)
        self._rows.append(row)

    def set_bounds(self, variable: int, low: float, high: float | None) -> None:
        """Change a variable's bounds; None means none above."""
        self._variables[variable].SetBounds(low, self._infinity if high is None else high)

    def solve(self, budget: Budget | None) -> Answer | None:
        """Solve; None if there is no solution, or none in time."""
        if budget is not None and budget.stopped:
            return None
        for way in (None,) if self._whole else (_VERTEX, _OTHERWISE):
            status = self._solved(way, budget)
            found = status == self._solver.OPTIMAL
            if found or (self._whole and status == self._solver.FEASIBLE):
                duals = [] if self._whole else [row.dual_value() for row in self._rows]
                value = self._objective.Value()
                return Answer(
                    [variable.solution_value() for variable in self._variables],
                    duals,
                    value,
                    self._objective.BestBound() if self._whole else value,
                    found,
                )
            if status == self._solver.INFEASIBLE or (budget is not None and budget.stopped):
                return None
        return None

    def _solved(self, way: str | None, budget: Budget | None) -> int:
        from ortools.linear_solver import pywraplp

        solver = self._solver
        settings = way or (
            # Ctrl-C is for the driver; SCIP would take it for itself.
            "misc/catchctrlc = FALSE\n"
        )
        if not solver.SetSolverSpecificParametersAsString(settings):
            raise AssertionError(f"the solver does not know one of the parameters {settings!r}")
        parameters = pywraplp.MPSolverParameters()
        if self._whole:
            parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
        if budget is None:
            return int(solver.Solve(parameters))
        left = budget.remaining()
        if left != float("inf"):
            solver.SetTimeLimit(max(1, int(left * 1000)))
        with budget.on_stop(solver.InterruptSolve):
            return int(solver.Solve(parameters))
