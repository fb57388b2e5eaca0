"""Small integer and linear programs, which a clock, an event and Ctrl-C can end.

The only module of ``cms`` that speaks to OR-tools. SCIP finds whole numbers and can be stopped;
GLOP finds prices. Neither is believed: what they find is checked exactly. What they claim is proved
by prices (`Program.prove`) or called a solver's word.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import AlgorithmError
from ...running.interrupt import Watchdog

_INFINITY = math.inf
#: Denominators that prices are rounded to; of those that prove as much, the first counts.
DENOMINATORS = (1, 2, 4, 6, 8, 60, 1000, 10**6)


@dataclass
class Limits:
    """When to stop: seconds from now on, None for no end, and an event."""

    seconds: float | None = None
    cancel: threading.Event | None = None
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + (_INFINITY if self.seconds is None else self.seconds)

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
        self.choices: set[int] = set()  # rows by number, of each of which `choose` says more

    def copy(self) -> Program:
        """Return the same program, to which rows can be added."""
        other = Program()
        other.highs, other.rows, other.choices = [*self.highs], [*self.rows], {*self.choices}
        return other

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

    def choose(self, variables: Iterable[int], most: int) -> None:
        """Add a row: `most` choices of one of some variables, each in no other such row."""
        self.choices.add(len(self.rows))
        self.at_most(dict.fromkeys(variables, 1), most)

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
        solver, variables, _ = self._load("SCIP", terms)
        # Ctrl-C is Python's; SCIP would take it for itself and the run would go on.
        settings = "misc/catchctrlc = FALSE\n" + (
            "" if nodes is None else f"limits/nodes = {nodes}\n"
        )
        if not solver.SetSolverSpecificParametersAsString(settings):
            raise AlgorithmError("place", f"SCIP does not know one of {settings!r}")
        known = None if hint is None else list(hint)
        if known is not None:
            solver.SetHint(variables, known)
        status = _run(solver, limits)
        if status in (solver.OPTIMAL, solver.FEASIBLE):
            values = [round(variable.solution_value()) for variable in variables]
            if self._holds(values):
                return Found(values, status == solver.OPTIMAL)
        return Found(known, status == solver.INFEASIBLE and known is None)

    def improve(
        self,
        values: list[int],
        free: set[int],
        terms: Mapping[int, int],
        limits: Limits,
        nodes: int,
    ) -> list[int]:
        """Improve a solution by some of its variables, all others as they are."""
        part, order = Program(), sorted(free)
        at = {v: part.variable(self.highs[v]) for v in order}
        for row in self.rows:
            if own := {at[v]: n for v, n in row.terms.items() if v in at}:
                rest = sum(n * values[v] for v, n in row.terms.items() if v not in at)
                part.between(own, row.low - rest, row.high - rest)
        worth = {at[v]: n for v, n in terms.items() if v in at}
        found = part.maximise(worth, limits, [values[v] for v in order], nodes).values or ()
        new = dict(zip(order, found, strict=False))
        return [new.get(v, value) for v, value in enumerate(values)]

    def find_prices(
        self, terms: Mapping[int, int], limits: Limits, rows: int | None = None
    ) -> list[float] | None:
        """Return a price for each of the first `rows` of the relaxation; None if time is up."""
        solver, _, made = self._load("GLOP", terms, rows)
        has_ended = _run(solver, limits) == solver.OPTIMAL
        return [row.dual_value() for row in made] if has_ended else None

    def _load(
        self, name: str, terms: Mapping[int, int], rows: int | None = None
    ) -> tuple[Any, list[Any], list[Any]]:
        """Return the program as a solver holds it: the solver, its variables and its rows."""
        from ortools.linear_solver import pywraplp

        solver: Any = pywraplp.Solver.CreateSolver(name)
        make = solver.IntVar if name == "SCIP" else solver.NumVar
        variables = [make(0.0, float(high), "") for high in self.highs]
        made = []
        for row in self.rows[:rows]:
            made.append(solver.RowConstraint(row.low, row.high, ""))
            for at, factor in row.terms.items():
                made[-1].SetCoefficient(variables[at], float(factor))
        objective = solver.Objective()
        for at, factor in terms.items():
            objective.SetCoefficient(variables[at], float(factor))
        objective.SetMaximization()
        return solver, variables, made

    def bound(self, terms: Mapping[int, int], prices: Sequence[int], unit: int = 1) -> int:
        """Return what the terms never exceed, whatever the prices of rows are, exactly.

        Prices and what is returned are in parts of a `unit`. Lagrange's bound: rows are paid for, a
        variable takes what is best for it between its bounds, and of each choice the best variable
        is taken. A price of a side that a row does not have counts for nothing, and that of a
        choice is found.
        """
        total, left = 0, [0] * len(self.highs)
        for v, n in terms.items():
            left[v] = n * unit
        for at, price in enumerate(prices):
            row = self.rows[at]
            side = row.high if price > 0 else row.low
            if price and at not in self.choices and not math.isinf(side):
                total += price * int(side)
                for v, n in row.terms.items():
                    left[v] -= price * n
        for at in self.choices:
            row = self.rows[at]
            total += int(row.high) * max(0, max((left[v] for v in row.terms), default=0))
            for v in row.terms:
                left[v] = 0
        return total + sum(n * high for n, high in zip(left, self.highs, strict=True) if n > 0)

    def prove(
        self, terms: Mapping[int, int], limits: Limits, goal: int, rows: int | None = None
    ) -> int | None:
        """Return the least bound that prices of the first `rows` prove; one at `goal` is enough."""
        best: int | None = None
        for unit, prices in self.round_prices(terms, limits, rows):
            bound = self.bound(terms, prices, unit) // unit
            best = bound if best is None else min(best, bound)
            if best <= goal:
                break
        return best

    def round_prices(
        self, terms: Mapping[int, int], limits: Limits, rows: int | None = None
    ) -> Iterator[tuple[int, list[int]]]:
        """Find prices and yield them in parts of several units; nothing if time is up."""
        duals = self.find_prices(terms, limits, rows)
        for unit in DENOMINATORS if duals is not None else ():
            yield unit, [round(dual * unit) for dual in duals or ()]

    def is_infeasible(self, limits: Limits) -> bool:
        """Whether prices of rows prove that no values satisfy all of them."""
        elastic, lacks = Program(), {}
        elastic.highs, elastic.choices = [*self.highs], self.choices
        for at, row in enumerate(self.rows):
            terms = dict(row.terms)
            for side, sign in ((row.low, 1), (row.high, -1)):
                if at not in self.choices and not math.isinf(side):
                    reach = sum(abs(n) * self.highs[v] for v, n in row.terms.items())
                    lack = elastic.variable(abs(int(side)) + reach)
                    terms[lack], lacks[lack] = sign, -1
            elastic.between(terms, row.low, row.high)
        rounded = elastic.round_prices(lacks, limits)
        return any(self.bound({}, prices, unit) < 0 for unit, prices in rounded)

    def _holds(self, values: list[int]) -> bool:
        """Whether values keep all bounds and rows, exactly."""
        if any(not 0 <= value <= high for value, high in zip(values, self.highs, strict=True)):
            return False
        return all(
            row.low <= sum(factor * values[at] for at, factor in row.terms.items()) <= row.high
            for row in self.rows
        )


def _run(solver: Any, limits: Limits) -> int:
    """Solve until the limits are over, or Ctrl-C is pressed."""
    from ortools.linear_solver import pywraplp

    if limits.over:
        return int(solver.NOT_SOLVED)
    parameters = pywraplp.MPSolverParameters()
    parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, 0.0)
    with Watchdog(lambda: limits.left, solver.InterruptSolve):
        return int(solver.Solve(parameters))


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
