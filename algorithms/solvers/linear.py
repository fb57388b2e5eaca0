"""Thin layers over GLOP and SCIP: programs in floating-point numbers that can be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cms.plugin.algorithm import Budget

INFINITY = float("inf")
#: Seconds after the end of the budget at which a solver ends by itself. It is stopped before: one
#: that ended by itself just before the clock would pass for one that had come to its end.
AFTER_THE_END = 1.0
#: Numbers of very different sizes can keep the simplex method going round for ever.
ITERATIONS = "max_number_of_iterations: 20000"
#: GLOP's parameters, tried in this order. A vertex is wanted as the simplex method leaves it: what
#: presolving took out and put back need not be one.
VERTEX = (
    "use_preprocessing: false use_dual_simplex: true",
    "use_preprocessing: false use_dual_simplex: false",
)


class Answer(NamedTuple):
    """An optimal solution of a linear program, as far as floats can tell; a dual value a row."""

    values: list[float]
    duals: list[float]
    value: float


class _Program:
    """A program that OR-tools holds: variables and rows, by number."""

    def __init__(self, solver: str, *, maximise: bool = False) -> None:
        # Importing it takes a tenth of a second: runs may be stopped sooner than it takes to
        # import larger libraries.
        from ortools.linear_solver import pywraplp

        self._wrapper = pywraplp
        self._solver: Any = pywraplp.Solver.CreateSolver(solver)
        self._variables: list[Any] = []
        self._rows: list[Any] = []
        self._objective = self._solver.Objective()
        self._objective.SetOptimizationDirection(maximise)

    def variable(
        self, cost: float = 0.0, low: float = 0.0, high: float = INFINITY, *, whole: bool = False
    ) -> int:
        """Add a variable; returns its number."""
        variable = self._solver.Var(low, high, whole, "")
        if cost:
            self._objective.SetCoefficient(variable, cost)
        self._variables.append(variable)
        return len(self._variables) - 1

    def row(
        self, terms: Iterable[tuple[int, float]], *, low: float = -INFINITY, high: float = INFINITY
    ) -> int:
        """Add a row between bounds; returns its number."""
        row = self._solver.RowConstraint(low, high, "")
        for variable, coefficient in terms:
            row.SetCoefficient(self._variables[variable], coefficient)
        self._rows.append(row)
        return len(self._rows) - 1

    def _run(self, budget: Budget | None, settings: str, *arguments: Any) -> int:
        """Solve with a solver's own settings; return its status."""
        solver = self._solver
        # The last text set is the only one that counts.
        if not solver.SetSolverSpecificParametersAsString(settings):
            raise AssertionError(f"the solver does not know one of the parameters {settings!r}")
        if budget is None:
            return int(solver.Solve(*arguments))
        left = budget.remaining()
        if left != INFINITY:
            # Stopping is `on_stop`'s: a solver that ends before would pass for one that failed.
            solver.SetTimeLimit(int((left + AFTER_THE_END) * 1000))
        with budget.on_stop(solver.InterruptSolve):
            return int(solver.Solve(*arguments))

    def _values(self) -> list[float]:
        return [variable.solution_value() for variable in self._variables]


class LinearProgram(_Program):
    """Minimise, or maximise, a linear objective over variables with bounds.

    Examples
    --------
    >>> program = LinearProgram()
    >>> x, y = program.variable(1.0), program.variable(2.0)
    >>> row = program.row([(x, 1.0), (y, 4.0)], low=2.0)
    >>> program.solve(None).value
    1.0
    >>> program.set_low(row, 8.0)
    >>> program.close(y, True)
    >>> program.solve(None).values
    [8.0, 0.0]
    """

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

    def solve(self, budget: Budget | None, ways: Iterable[str] = VERTEX) -> Answer | None:
        """Solve, by GLOP's parameters in this order; None, which proves nothing, if it fails."""
        for way in ways:
            if budget is not None and budget.stopped:
                return None
            if self._run(budget, way) == self._solver.OPTIMAL:
                duals = [row.dual_value() for row in self._rows]
                return Answer(self._values(), duals, self._objective.Value())
        return None


class MixedProgram(_Program):
    """Minimise a linear objective over variables of which some are whole numbers, with SCIP."""

    def __init__(self) -> None:
        super().__init__("SCIP")

    def search(
        self, budget: Budget, *, nodes: int, cuts: bool = True
    ) -> tuple[list[float] | None, bool]:
        """Look for a good solution; whether SCIP came to an end proves nothing."""
        if budget.remaining() <= 0:
            return None, False
        settings = (
            f"limits/nodes = {nodes}\nrandomization/randomseedshift = {budget.seed % 2**30}\n"
            # Ctrl-C is for the driver; SCIP would take it for itself and the run would go on.
            "misc/catchctrlc = FALSE\n"
        )
        if not cuts:
            settings += "separating/maxroundsroot = 1\nseparating/maxrounds = 0\n"
        parameters = self._wrapper.MPSolverParameters()
        # Ask for the optimum itself: a gap of 1e-4 is a machine in ten thousand.
        parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
        status, solver = self._run(budget, settings, parameters), self._solver
        ended = status in (solver.OPTIMAL, solver.INFEASIBLE)
        return self._values() if status in (solver.OPTIMAL, solver.FEASIBLE) else None, ended
