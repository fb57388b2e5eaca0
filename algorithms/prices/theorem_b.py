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

    Parameters
    ----------
    problem : Problem
        As it is rounded, i.e. reduced.

    Returns
    -------
    Fraction
        The largest of p times the dearest machine, and k - p - 1 times the cheapest machines of all
        types, over the p that are possible; with k block types and machines of cost 1 that is
        max(k, (k - 1)^2).

    Examples
    --------
    >>> from cms import Configuration, MachineType, Problem
    >>> shapes = [
    ...     Configuration({"a": 1, "b": 1, "c": 1}, "small"),
    ...     Configuration({"c": 9}, "large"),
    ... ]
    >>> types = [MachineType("small", 2), MachineType("large", 3)]
    >>> additive_cost(Problem(configurations=shapes, machine_types=types))
    Fraction(9, 1)
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
    """Round a basic solution of LP_DW.

    Returns
    -------
    machines : dict
        How many machines of each configuration.
    given : dict
        Blocks by (block, job), as :meth:`cms.Schedule.from_counts` takes them. They serve the jobs
        and there are enough of them, whatever the solution's numbers are.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.prices.vertex import solve_dantzig_wolfe
    >>> problem = Problem(
    ...     configurations=Configuration({"a": 2}),
    ...     jobs=[Job("x", 5, {"a": 1}), Job("y", 2, {"a": 1})],
    ... )
    >>> solution = solve_dantzig_wolfe(problem, SimpleNamespace(threads=1, stopped=False))
    >>> rounded(solution)
    ({Configuration(2 x a on machine): 4}, {('a', 'x'): 5, ('a', 'y'): 2})
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
    """Return the blocks of a job: its option, or the mean of several rounded up.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> taken([((3, 0), half), ((0, 1), half)])
    (2, 1)
    """
    if len(options) == 1:
        return options[0][0]
    columns = zip(*(option for option, _ in options), strict=True)
    weights = [weight for _, weight in options]
    return tuple(
        ceil(sum((w * n for w, n in zip(weights, column, strict=True)), Fraction(0)))
        for column in columns
    )


def with_missing(
    problem: Problem, machines: dict[Configuration, int], load: Sequence[int]
) -> dict[Configuration, int]:
    """Add machines until there are so many blocks: for each type those that hold it most cheaply.

    Parameters
    ----------
    load : sequence of k ints
        Blocks that jobs take.

    Examples
    --------
    >>> from cms import Configuration, Problem
    >>> shapes = [Configuration({"a": 1}), Configuration({"a": 3, "b": 1})]
    >>> problem = Problem(configurations=shapes)
    >>> with_missing(problem, {problem.configurations[0]: 2}, [9, 1])
    {Configuration(a on machine): 2, Configuration(3 x a + b on machine): 3}
    """
    region = Region(problem)
    enough = dict(machines)
    for i, need in enumerate(load):
        block = problem.blocks[i]
        missing = need - sum(n * shape.blocks.get(block, 0) for shape, n in enough.items())
        if missing <= 0:
            continue
        row = region.rows[cheapest_holder(region, i)]
        holder = configuration_of(problem, row)
        enough[holder] = enough.get(holder, 0) + machines_for(missing, row.counts[i])
    return enough


def machines_for(missing: int, blocks: int) -> int:
    """Return how many machines with so many blocks have the missing ones.

    Examples
    --------
    >>> machines_for(7, 3)
    3
    """
    return -(-missing // blocks)
