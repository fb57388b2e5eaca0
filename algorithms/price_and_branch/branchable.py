"""The reduction for certificates with branches."""

from __future__ import annotations

import numpy as np

from cms.problem.problem import Problem
from cms.reduction.reduction import Reduction, held_blocks, let_stand_in
from cms.reduction.replacement import NOTHING_REPLACED, replaced
from cms.running.stopping import never


def branchable(problem: Problem, *, fewer: bool = False) -> Reduction:
    """Leave out what cannot matter below any branch.

    Below a branch on machines or blocks a configuration that another beats may be worth more than
    that one; so all of them stay as the user gave them, each once, and every certificate of the
    smaller problem holds for the original after :meth:`Reduction.restore_prices`. What goes are
    jobs without demand, supply beyond it, and blocks that serve no job or that no machine can have.

    Parameters
    ----------
    problem : Problem
    fewer : bool, default False
        Whether blocks go that smaller ones replace, too: then certificates may branch on machines
        of a type, and on nothing else.

    Returns
    -------
    Reduction
        Its problem's configurations may have blocks that the problem itself does not have.

    Examples
    --------
    >>> from cms import Configuration, Job
    >>> given = Problem(
    ...     configurations=[Configuration({"3g": 1}), Configuration({"3g": 1, "1g": 2})],
    ...     jobs=[Job("bert", 10, {"3g": 60}), Job("idle", 0, {"1g": 5})],
    ... )
    >>> small = branchable(given).problem
    >>> small.blocks, list(small.job_names), len(small.configurations)
    (('3g',), ['bert'], 2)
    """
    jobs = np.flatnonzero(problem.rows.wants)
    rows = problem.rows.select(jobs, range(len(problem.blocks)), cut=True)
    held = set(held_blocks(problem.configurations))
    useful: list[int] = np.flatnonzero(problem.serving_blocks()).tolist()
    kept = [i for i in useful if problem.blocks[i] in held]
    replacement = replaced(problem, kept, never) if fewer else NOTHING_REPLACED
    kept = [i for i in kept if i not in replacement.gone]
    small = Problem._rebuild(
        tuple(problem.blocks[i] for i in kept),
        tuple(dict.fromkeys(problem.configurations)),
        problem.machine_types,
        tuple(problem.job_names[j] for j in jobs.tolist()),
        rows.select(np.arange(len(jobs)), kept),
    )
    lost = tuple(problem.blocks[i] for i in useful if problem.blocks[i] not in held)
    reduction = Reduction(problem, small, lost, (), replacement)
    let_stand_in(reduction, small)
    return reduction
