"""Tiny problems without limits, with their optima, and solutions of LP_DW held to their rows."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from algorithms.prices.vertex import BasicSolution, rounded, solve_dantzig_wolfe
from cms import Problem, Schedule
from cms.reduction.reduction import Reduction
from tests.algorithms.branch_and_price.parts import Unlimited
from tests.families import FAMILIES, instance
from tests.oracle import optimum


class Case(NamedTuple):
    """A problem that has a schedule, its name and the least cost of one."""

    name: str
    problem: Problem
    best: Fraction


@cache
def cases(family: str, number: int) -> tuple[Case, ...]:
    """The problems of a family that have no limits but a schedule, among the first so many."""
    found = []
    for at in range(number):
        problem = instance(family, at)
        if all(machine.limit is None for machine in problem.machine_types):
            best = optimum(problem)
            if best is not None:
                found.append(Case(f"instance({family!r}, {at})", problem, best))
    return tuple(found)


def every_case(number: int) -> Iterator[Case]:
    """So many problems of every family, less those with limits or without a schedule."""
    for family in FAMILIES:
        yield from cases(family, number)


def solved(problem: Problem) -> BasicSolution:
    """LP_DW of a reduced problem."""
    solution = solve_dantzig_wolfe(problem, Unlimited())
    assert solution is not None
    return solution


def value(solution: BasicSolution) -> Fraction:
    """What the fractional machines cost."""
    problem = solution.problem
    return sum(
        (problem.machine_type(shape.machine).cost * x for shape, x in solution.machines.items()),
        Fraction(0),
    )


def split(solution: BasicSolution) -> int:
    """How many jobs have several options."""
    return sum(len(options) > 1 for options in solution.options)


def refuse_faults(solution: BasicSolution) -> None:
    """The numbers must satisfy every row of the linear program, exactly."""
    problem = solution.problem
    load = [Fraction(0)] * len(problem.blocks)
    assert len(solution.options) == problem.n_jobs
    for j, options in enumerate(solution.options):
        row = problem.rows.row(j)
        assert sum((weight for _, weight in options), Fraction(0)) == 1
        assert len({option for option, _ in options}) == len(options)
        for option, weight in options:
            assert weight > 0
            assert sum(f * n for f, n in zip(row.supply, option, strict=True)) >= row.demand
            load = [a + weight * n for a, n in zip(load, option, strict=True)]
    assert all(x > 0 for x in solution.machines.values())
    for i, block in enumerate(problem.blocks):
        held = sum(
            (x * shape.blocks.get(block, 0) for shape, x in solution.machines.items()), Fraction(0)
        )
        assert held >= load[i]


def restored(reduction: Reduction, solution: BasicSolution) -> Fraction:
    """What the prices prove of the original problem, by the package's own check."""
    assert solution.leaf.bound(reduction.problem) == solution.bound
    return reduction.restore_prices(solution.leaf, solution.bound).bound(reduction.original)


def built(solution: BasicSolution, reduction: Reduction) -> Schedule:
    """The schedule that a solution rounds to, for the original problem."""
    return reduction.restore(Schedule.from_counts(solution.problem, *rounded(solution)))
