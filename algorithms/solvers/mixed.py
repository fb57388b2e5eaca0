"""A thin layer over SCIP: programs of which some variables are whole numbers, others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .integer import AFTER_THE_END
from .wrapped import INFINITY, WrappedProgram

if TYPE_CHECKING:
    from cms.plugin.algorithm import Budget


class MixedProgram(WrappedProgram):
    """Minimise a linear objective over variables >= 0, some of them whole.

    Examples
    --------
    >>> from cms import Problem
    >>> from cms.solving.driver import RunBudget
    >>> from cms.solving.ledger import Ledger
    >>> ledger = Ledger(
    ...     Problem(configurations=[], jobs=[]), "demo", trusted=True, clock=lambda: 0.0
    ... )
    >>> budget = RunBudget(ledger, seed=0, threads=1, end=float("inf"))
    >>> program = MixedProgram()
    >>> x, y = program.variable(1.0, whole=True), program.variable(2.0)
    >>> _ = program.row([(x, 2.0), (y, 2.0)], low=3.0)
    >>> _ = program.row([(x, 1.0)], high=1.0)
    >>> program.search(budget, nodes=10)
    [1.0, 0.5]
    """

    def __init__(self) -> None:
        super().__init__("SCIP")

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
        if left != INFINITY:
            solver.SetTimeLimit(int((left + AFTER_THE_END) * 1000))
        parameters = self._wrapper.MPSolverParameters()
        parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
        with budget.on_stop(solver.InterruptSolve):
            status = solver.Solve(parameters)
        if status not in (solver.OPTIMAL, solver.FEASIBLE):
            return None
        return [variable.solution_value() for variable in self._variables]
