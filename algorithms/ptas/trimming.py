"""What a rounded schedule can do without: blocks that jobs do not need, then machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cms.schedule import machine_cost

if TYPE_CHECKING:
    from cms.model import Configuration
    from cms.problem import Problem


def trimmed(
    problem: Problem, machines: dict[Configuration, int], given: dict[tuple[str, str], int]
) -> tuple[dict[Configuration, int], dict[tuple[str, str], int]]:
    """Give up superfluous blocks and machines, the best blocks and the dearest machines first.

    Parameters
    ----------
    problem : Problem
    machines : dict
        How many there are of each configuration; they have the blocks given.
    given : dict
        Blocks by (block, job); they serve the jobs.

    Returns
    -------
    machines, given : dicts
        Of the same kind.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> shape = Configuration({"a": 1})
    >>> problem = Problem(configurations=shape, jobs=[Job("x", 5, {"a": 2})])
    >>> trimmed(problem, {shape: 5}, {("a", "x"): 4})
    ({Configuration(a): 3}, {('a', 'x'): 3})
    """
    kept: dict[tuple[str, str], int] = {}
    spare = {
        block: sum(n * shape.blocks.get(block, 0) for shape, n in machines.items())
        for block in problem.blocks
    }
    for j, name in enumerate(problem.job_names):
        row = problem.rows.row(j)
        mine = [
            (f, block, given[block, name])
            for f, block in zip(row.supply, problem.blocks, strict=True)
            if (block, name) in given
        ]
        beyond = sum(f * n for f, _, n in mine) - row.demand
        for f, block, n in sorted(mine, key=lambda entry: -entry[0]):
            fewer = min(n, beyond // f) if f else n
            beyond -= fewer * f
            if n > fewer:
                kept[block, name] = n - fewer
                spare[block] -= n - fewer
    left = dict(machines)
    for shape in sorted(machines, key=lambda shape: -machine_cost(problem, shape)):
        idle = min([left[shape], *(spare[block] // n for block, n in shape.blocks.items())])
        left[shape] -= idle
        for block, n in shape.blocks.items():
            spare[block] -= idle * n
    return {shape: n for shape, n in left.items() if n}, kept
