"""How many machines of each configuration hold given blocks, roughly."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from ..solvers.floats import near
from .shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Limits on machines that are so many times larger than all blocks needed do not matter.
_NEVER_BINDS = 10**9
_ITERATIONS = "max_number_of_iterations: 20000"


def covering(shapes: Shapes, load: Sequence[int]) -> list[Fraction] | None:
    """Return cheapest fractional numbers of machines; None if the limits do not allow any.

    Parameters
    ----------
    shapes : Shapes
    load : sequence of k ints
        Blocks of each type needed.
    """
    from ortools.linear_solver import pywraplp

    scale = max(1, *load) if load else 1
    solver = pywraplp.Solver.CreateSolver("GLOP")
    infinity = solver.infinity()
    x = [solver.NumVar(0, infinity, "") for _ in range(len(shapes))]
    for i, need in enumerate(load):
        row = solver.RowConstraint(near(need, scale), infinity, "")
        for variable, counts in zip(x, shapes.counts, strict=True):
            if counts[i]:
                row.SetCoefficient(variable, near(counts[i]))
    for limit, mine in shapes.limited:
        if limit // scale > _NEVER_BINDS:
            continue
        row = solver.RowConstraint(-infinity, near(limit, scale), "")
        for c in mine:
            row.SetCoefficient(x[c], 1)
    objective = solver.Objective()
    dearest = max(shapes.costs, default=Fraction(0)) or Fraction(1)
    for variable, cost in zip(x, shapes.costs, strict=True):
        objective.SetCoefficient(variable, near(cost / dearest))
    objective.SetMinimization()
    # Numbers of very different sizes can keep the simplex method going round for ever.
    if not solver.SetSolverSpecificParametersAsString(_ITERATIONS):
        raise AssertionError(f"GLOP does not know the parameter {_ITERATIONS!r}")
    if solver.Solve() != solver.OPTIMAL:
        return None
    return [Fraction(max(0.0, variable.solution_value())) * scale for variable in x]


def filled(
    shapes: Shapes, load: Sequence[int], around: Sequence[Fraction] | None
) -> tuple[int, ...] | None:
    """Return enough machines, in integers of any size; None if that breaks a limit.

    For numbers that no integer program can take: fractional machines rounded down, then block by
    block the machines that hold what is missing most cheaply.

    Parameters
    ----------
    shapes : Shapes
    load : sequence of k ints
    around : sequence of numbers, optional
        Fractional machines.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> problem = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 10**40, {"a": 1})])
    >>> filled(Shapes(problem, ()), [10**40], None) == (5 * 10**39,)
    True
    """
    machines = [floor(x) for x in around] if around is not None else [0] * len(shapes)
    for limit, mine in shapes.limited:
        # Of very large numbers a float may be some machines too many.
        over = sum(machines[c] for c in mine) - limit
        for c in mine:
            less = max(0, min(over, machines[c]))
            machines[c] -= less
            over -= less
    for i, need in enumerate(load):
        pairs = zip(machines, shapes.counts, strict=True)
        left = need - sum(number * counts[i] for number, counts in pairs)
        holders = [c for c, counts in enumerate(shapes.counts) if counts[i]]
        if left <= 0 or not holders:
            continue
        # The cheapest for all that is missing first, as far as the limits go.
        for c in sorted(holders, key=lambda c: shapes.costs[c] * -(-left // shapes.counts[c][i])):
            more = -(-left // shapes.counts[c][i])
            room = _room(shapes, machines, c)
            more = more if room is None else min(more, room)
            machines[c] += more
            left -= more * shapes.counts[c][i]
            if left <= 0:
                break
    for i, need in enumerate(load):
        if sum(n * counts[i] for n, counts in zip(machines, shapes.counts, strict=True)) < need:
            return None
    if any(sum(machines[c] for c in mine) > limit for limit, mine in shapes.limited):
        return None
    return tuple(machines)


def _room(shapes: Shapes, machines: Sequence[int], c: int) -> int | None:
    """Return how many more machines of a configuration its type allows; None for any number."""
    for limit, mine in shapes.limited:
        if c in mine:
            return max(0, limit - sum(machines[other] for other in mine))
    return None
