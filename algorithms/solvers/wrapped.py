"""What linear programs and those with whole numbers share: variables and rows, by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["INFINITY", "WrappedProgram"]

INFINITY = float("inf")


class WrappedProgram:
    """A program that OR-tools holds; who solves it, and how, is for the classes made of this."""

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
        self,
        terms: Iterable[tuple[int, float]],
        *,
        low: float = -INFINITY,
        high: float = INFINITY,
    ) -> int:
        """Add a row between bounds; returns its number."""
        row = self._solver.RowConstraint(low, high, "")
        for variable, coefficient in terms:
            row.SetCoefficient(self._variables[variable], coefficient)
        self._rows.append(row)
        return len(self._rows) - 1
