"""Theorem B: a basic solution of LP_DW rounds to a schedule that costs little more (theory 4).

With k block types and p configurations in use, at most k - p jobs are split between options. Those
take their mean, rounded up; the machines are rounded up; and of each type at most k - p - 1 blocks
are missing then, for which machines are added. None of that needs the solution to be optimal: what
the schedule costs more is counted from what the fractional machines cost.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from .exact_master import cheapest_holder
from .region import Region, configuration_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

    from .vertex import BasicSolution, Option


def additive_cost(problem: Problem) -> Fraction:
    """Return what the rounding costs more than a basic solution at most (Theorem B).

    It is less, unless all costs are 0.
    """
    region, k = Region(problem), len(problem.blocks)
    costs = [region.costs[region.rows[cheapest_holder(region, i)].machine] for i in range(k)]
    repair = sum(costs, Fraction(0))
    return max(
        (p * region.dearest + max(0, k - p - 1) * repair for p in range(1, k + 1)),
        default=Fraction(0),
    )


def rounded(
    solution: BasicSolution,
) -> tuple[dict[Configuration, int], dict[tuple[str, str], int]]:
    """Round a basic solution of LP_DW to machines, and to blocks by (block, job).

    They serve the jobs and there are enough of them, whatever the solution's numbers are.
    """
    problem = solution.problem
    given: dict[tuple[str, str], int] = {}
    load = [0] * len(problem.blocks)
    for name, options in zip(problem.job_names, solution.options, strict=True):
        for i, blocks in enumerate(taken(options)):
            if blocks:
                given[problem.blocks[i], name] = blocks
                load[i] += blocks
    machines = {shape: ceil(number) for shape, number in solution.machines.items()}
    return with_missing(problem, machines, load), given


def taken(options: Sequence[tuple[Option, Fraction]]) -> Option:
    """Return the blocks of a job: its option, or the mean of several rounded up."""
    columns = zip(*([weight * n for n in option] for option, weight in options), strict=True)
    return tuple(ceil(sum(column)) for column in columns)


def with_missing(
    problem: Problem, machines: dict[Configuration, int], load: Sequence[int]
) -> dict[Configuration, int]:
    """Add machines until there are so many blocks: of each type those that hold it most cheaply."""
    region, enough = Region(problem), dict(machines)
    for i, need in enumerate(load):
        block = problem.blocks[i]
        missing = need - sum(n * shape.blocks.get(block, 0) for shape, n in enough.items())
        if missing > 0:
            row = region.rows[cheapest_holder(region, i)]
            holder = configuration_of(problem, row)
            enough[holder] = enough.get(holder, 0) + machines_for(missing, row.counts[i])
    return enough


def machines_for(missing: int, blocks: int) -> int:
    """Return how many machines with so many blocks have the missing ones."""
    return -(-missing // blocks)
