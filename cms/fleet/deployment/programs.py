"""Small integer and linear programs, which a clock, an event and Ctrl-C can end.

The only module of ``cms`` that speaks to OR-tools. Whole numbers are by SCIP, which can be stopped;
prices by GLOP. Neither is believed: what they find is checked, what they claim is proved by
:mod:`~cms.fleet.deployment.keeping_bound` or called a solver's word.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import AlgorithmError
from ...running.interrupt import Watchdog

__all__ = ["Found", "Limits", "Program", "Row", "best_transport"]

_INFINITY = math.inf


@dataclass
class Limits:
    """When to stop: seconds from now on, and an event."""

    seconds: float = _INFINITY
    cancel: threading.Event | None = None
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """The seconds left, 0 once cancelled."""
        if self.cancel is not None and self.cancel.is_set():
            return 0.0
        return max(0.0, self._until - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether to stop now."""
        return self.left <= 0


class Row(NamedTuple):
    """``low <= sum of coefficient * variable <= high``."""

    terms: dict[int, int]
    low: float
    high: float


class Found(NamedTuple):
    """What a program ended with."""

    values: list[int] | None  # of the best solution
    ended: bool  # the solver says that there is none better, or none at all


class Program:
    """Whole variables >= 0 with upper bounds, and rows between bounds, all coefficients whole.

    Examples
    --------
    >>> program = Program()
    >>> x, y = program.variable(10), program.variable(10)
    >>> program.at_most({x: 3, y: 2}, 12)
    >>> program.at_most({x: 1, y: 4}, 14)
    >>> program.maximise({x: 1, y: 1}, Limits()).values
    [2, 3]
    """

    def __init__(self) -> None:
        self.highs: list[int] = []
        self.rows: list[Row] = []

    def variable(self, high: int) -> int:
        """Add a variable; returns its number."""
        self.highs.append(high)
        return len(self.highs) - 1

    def at_least(self, terms: Mapping[int, int], low: int) -> None:
        """Add a row."""
        self.rows.append(Row(dict(terms), low, _INFINITY))

    def at_most(self, terms: Mapping[int, int], high: int) -> None:
        """Add a row."""
        self.rows.append(Row(dict(terms), -_INFINITY, high))

    def equal(self, terms: Mapping[int, int], value: int) -> None:
        """Add a row."""
        self.rows.append(Row(dict(terms), value, value))

    def between(self, terms: Mapping[int, int], low: float, high: float) -> None:
        """Add a row with both bounds, either of which may be infinite."""
        self.rows.append(Row(dict(terms), low, high))

    def maximise(
        self,
        terms: Mapping[int, int],
        limits: Limits,
        hint: Iterable[int] | None = None,
        nodes: int | None = None,
    ) -> Found:
        """Look for the best whole numbers, from a known solution (`hint`) and over few `nodes`."""
        model = _Model("SCIP", self, terms, nodes)
        if hint is not None:
            hint = list(hint)
            model.solver.SetHint(model.variables, hint)
        status = model.run(limits)
        if status in (model.solver.OPTIMAL, model.solver.FEASIBLE):
            values = [round(variable.solution_value()) for variable in model.variables]
            if self._holds(values):
                return Found(values, status == model.solver.OPTIMAL)
        known = None if hint is None else list(hint)
        return Found(known, status == model.solver.INFEASIBLE and known is None)

    def prices(self, terms: Mapping[int, int], limits: Limits) -> list[float] | None:
        """Return a price for each row of the relaxation; None if it comes to no end."""
        model = _Model("GLOP", self, terms)
        if model.run(limits) != model.solver.OPTIMAL:
            return None
        return [row.dual_value() for row in model.rows]

    def _holds(self, values: list[int]) -> bool:
        """Whether values keep all bounds and rows, exactly."""
        if any(not 0 <= value <= high for value, high in zip(values, self.highs, strict=True)):
            return False
        return all(
            row.low <= sum(factor * values[at] for at, factor in row.terms.items()) <= row.high
            for row in self.rows
        )


class _Model:
    """A program as a solver holds it."""

    def __init__(
        self, name: str, program: Program, terms: Mapping[int, int], nodes: int | None = None
    ) -> None:
        from ortools.linear_solver import pywraplp

        self.solver: Any = pywraplp.Solver.CreateSolver(name)
        make = self.solver.IntVar if name == "SCIP" else self.solver.NumVar
        self.variables = [make(0.0, float(high), "") for high in program.highs]
        self.rows = []
        for row in program.rows:
            made = self.solver.RowConstraint(row.low, row.high, "")
            for at, factor in row.terms.items():
                made.SetCoefficient(self.variables[at], float(factor))
            self.rows.append(made)
        objective = self.solver.Objective()
        for at, factor in terms.items():
            objective.SetCoefficient(self.variables[at], float(factor))
        objective.SetMaximization()
        if name == "SCIP":
            # Ctrl-C is Python's; SCIP would take it for itself and the run would go on.
            settings = "misc/catchctrlc = FALSE\n"
            if nodes is not None:
                settings += f"limits/nodes = {nodes}\n"
            if not self.solver.SetSolverSpecificParametersAsString(settings):
                raise AlgorithmError("place", f"SCIP does not know one of {settings!r}")

    def run(self, limits: Limits) -> int:
        """Solve until the limits are over, or Ctrl-C is pressed."""
        if limits.over:
            return int(self.solver.NOT_SOLVED)
        from ortools.linear_solver import pywraplp

        parameters = pywraplp.MPSolverParameters()
        parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
        with Watchdog(lambda: limits.left, self.solver.InterruptSolve):
            return int(self.solver.Solve(parameters))


def best_transport(
    supplies: Sequence[int], demands: Sequence[int], worth: Mapping[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """Carry as much as possible from supplies to demands, and of that what is worth most.

    `worth` has that of one unit for each pair between which there is a way. Returns amounts.
    """
    from ortools.graph.python import min_cost_flow

    graph = min_cost_flow.SimpleMinCostFlow()
    first = len(supplies)
    source, sink = first + len(demands), first + len(demands) + 1
    arc = graph.add_arc_with_capacity_and_unit_cost
    for at, amount in enumerate(supplies):
        arc(source, at, amount, 0)
    for at, amount in enumerate(demands):
        arc(first + at, sink, amount, 0)
    arcs = {
        arc(i, first + j, min(supplies[i], demands[j]), -value): (i, j)
        for (i, j), value in worth.items()
    }
    graph.set_node_supply(source, sum(demands))
    graph.set_node_supply(sink, -sum(demands))
    status = graph.solve_max_flow_with_min_cost()
    if status != graph.OPTIMAL:
        raise AlgorithmError("place", f"a transport ended with status {status}")
    return {pair: amount for at, pair in arcs.items() if (amount := graph.flow(at))}
