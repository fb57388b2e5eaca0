"""A thin layer over SCIP: programs of which some variables are whole numbers, others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .integer import AFTER_THE_END

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cms.plugin.algorithm import Budget

_INFINITY = float("inf")


class MixedProgram:
    """Minimise a linear objective over variables >= 0, some of them whole.

    Examples
    --------
    >>> from cms import Problem
    >>> from cms.solving.driver import RunBudget
    >>> from cms.solving.ledger import Ledger
    >>> ledger = Ledger(
    ...     Problem(configurations=[], jobs=[]), "demo", trusted=True, clock=lambda: 0.0
    ... )
    >>> budget = RunBudget(ledger, seed=0, threads=1, started=0.0, seconds=float("inf"))
    >>> program = MixedProgram()
    >>> x, y = program.variable(1.0, whole=True), program.variable(2.0)
    >>> program.row([(x, 2.0), (y, 2.0)], low=3.0)
    >>> program.row([(x, 1.0)], high=1.0)
    >>> program.search(budget, nodes=10)
    [1.0, 0.5]
    """

    def __init__(self) -> None:
        from ortools.linear_solver import pywraplp

        self._wrapper = pywraplp
        self._solver: Any = pywraplp.Solver.CreateSolver("SCIP")
        self._variables: list[Any] = []
        self._objective = self._solver.Objective()
        self._objective.SetMinimization()

    def variable(self, cost: float = 0.0, high: float = _INFINITY, *, whole: bool = False) -> int:
        """Add a variable; returns its number."""
        variable = self._solver.Var(0.0, high, whole, "")
        if cost:
            self._objective.SetCoefficient(variable, cost)
        self._variables.append(variable)
        return len(self._variables) - 1

    def row(
        self,
        terms: Iterable[tuple[int, float]],
        *,
        low: float = -_INFINITY,
        high: float = _INFINITY,
    ) -> None:
        """Add a row between bounds."""
        row = self._solver.RowConstraint(low, high, "")
        for variable, coefficient in terms:
            row.SetCoefficient(self._variables[variable], coefficient)

    def search(self, budget: Budget, *, nodes: int) -> list[float] | None:
        """Look for a good solution; there may be none, and that proves nothing.

        ``nodes`` limits the work, so that runs stay reproducible.
        """
        left = budget.remaining()
        if left <= 0:
            return None
        solver = self._solver
        settings = (
            f"limits/nodes = {nodes}\nrandomization/randomseedshift = {budget.seed % 2**30}\n"
            # Ctrl-C is for the driver; SCIP would take it for itself and the run would go on.
            "misc/catchctrlc = FALSE\n"
        )
        if not solver.SetSolverSpecificParametersAsString(settings):
            raise AssertionError(f"SCIP does not know one of the parameters {settings!r}")
        if left != _INFINITY:
            solver.SetTimeLimit(int((left + AFTER_THE_END) * 1000))
        parameters = self._wrapper.MPSolverParameters()
        parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
        with budget.on_stop(solver.InterruptSolve):
            status = solver.Solve(parameters)
        if status not in (solver.OPTIMAL, solver.FEASIBLE):
            return None
        return [variable.solution_value() for variable in self._variables]
