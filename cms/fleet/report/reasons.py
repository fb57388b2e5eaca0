"""Why something is impossible, in the words of the people who asked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...model import Block, Configuration, MachineType
from ...problem import Problem
from .words import count, decimal, printable

if TYPE_CHECKING:
    from ..serving import Plan

MOST_REASONS = 20
_SECONDS_TO_EXPLAIN = 2.0  # a person waits for this; a short sentence is better than a long wait


def reasons(plan: Plan) -> tuple[str, ...]:
    """Say why an infeasible plan is infeasible.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    tuple of str
        One sentence for each service that nothing can serve within its limit; if there is none,
        the GPUs are too few, and one sentence says so, with the number that is proved to be needed
        where there is one type of GPU. Empty if the plan is not infeasible.
    """
    if plan.solution.status != "infeasible":
        return ()
    if found := list(plan.serving.unservable.values()):
        return _some(found, "more service")
    problem = plan.serving.problem
    allowed = f"the {_limits(problem)} allowed"
    needed = _needed(problem)
    at_least = f"at least {count(needed, 'GPU')}, " if needed is not None else ""
    return (
        f"the services need {at_least}more than {allowed}: allow more (--max-gpus), lower the "
        "rates or relax the latency limits",
    )


def _needed(problem: Problem) -> int | None:
    """Machines that are proved to be needed; None if that does not explain the infeasibility."""
    from ...solve import solve

    if len(problem.machine_types) > 1 or not problem.machine_types[0].cost:
        return None
    (machine,) = problem.machine_types
    unlimited = Problem(
        configurations=problem.configurations,
        jobs=problem.jobs,
        machine_types=[MachineType(machine.name, machine.cost)],
    )
    bound = solve(unlimited, time_limit=_SECONDS_TO_EXPLAIN).lower_bound
    needed = math.ceil(bound / machine.cost)
    return needed if machine.limit is not None and needed > machine.limit else None


def impossible_jobs(problem: Problem) -> tuple[str, ...]:
    """Say why an infeasible problem is infeasible: the jobs no block can serve, or the limits.

    Examples
    --------
    >>> from cms.model import Job
    >>> from cms.problem import Problem
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 1, {})])
    >>> impossible_jobs(problem)
    ("job 'j': no block supplies any of its demand",)
    """
    rows = problem.rows
    there = np.array([_exists(problem, block) for block in problem.blocks], dtype=bool)
    lost = np.flatnonzero((rows.demands > 0) & ~(rows.supplies[:, there] > 0).any(axis=1)).tolist()
    for j, row in rows.wide.items():
        if row.demand and not any(f for f, real in zip(row.supply, there, strict=True) if real):
            lost.append(j)
    if lost:
        names = (problem.job_names[j] for j in sorted(lost))
        return _some(
            [f"job {name!r}: no block supplies any of its demand" for name in names], "more job"
        )
    return (f"the machines do not suffice: there are only {_limits(problem)}",)


def _some(sentences: list[str], rest: str) -> tuple[str, ...]:
    if len(sentences) <= MOST_REASONS:
        return tuple(sentences)
    more = count(len(sentences) - MOST_REASONS, rest)
    return (*sentences[:MOST_REASONS], f"... and {more}")


def _limits(problem: Problem) -> str:
    return " and ".join(
        f"{decimal(machine.limit)} x {printable(machine.name)}"
        for machine in problem.machine_types
        if machine.limit is not None
    )


def _exists(problem: Problem, block: Block) -> bool:
    """Whether any machine can have such a block."""
    return any(
        block in shape.blocks
        if isinstance(shape, Configuration)
        else block in shape.sizes and shape.largest_count(block) > 0
        for shape in problem.configurations
    )
