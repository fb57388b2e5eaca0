"""Why something is impossible, and what would do, in the words of the people who asked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...problem.problem import Problem
from ...shortages.shortage import unservable_lines
from ...shortages.variants import without_unservable_jobs
from ...time_sharing.problem import TimeSharedProblem
from ...values.words import count, decimal, printable, short

if TYPE_CHECKING:
    from ...problem.machine_problem import MachineProblem
    from ...shortages.shortage import Shortage
    from ...solving.solution import Solution
    from ...time_sharing.model import TimeSharedJob
    from ..serving import Plan

MOST_REASONS = 20


def plan_reasons(plan: Plan, shortage: Shortage | None = None) -> tuple[str, ...]:
    """Say why an infeasible plan is infeasible, and what would do.

    Parameters
    ----------
    plan : Plan
    shortage : Shortage, optional
        What would do, if that was looked for.

    Returns
    -------
    tuple of str
        One sentence for each service that nothing can serve within its limit; if there is none,
        the GPUs are too few, and one sentence says which. Another one says what would do. Empty if
        the plan is not infeasible.
    """
    if plan.answer.status != "infeasible":
        return ()
    reasons = [*plan.serving.unservable.values()]
    if (more := len(reasons) - MOST_REASONS) > 0:
        reasons[MOST_REASONS:] = [f"... and {count(more, 'more service')}"]
    if not reasons:
        too_few = _too_few(plan.serving.problem, plan.answer, "GPU")
        ways = "allow more (--max-gpus), lower the rates or relax the latency limits"
        reasons = [f"{too_few}; {ways}"]
    return (*reasons, *_remedy(shortage, "GPU", "rate"))


def solution_reasons(
    problem: MachineProblem, solution: Solution, shortage: Shortage | None = None
) -> tuple[str, ...]:
    """Say why an infeasible problem is infeasible, and what would do.

    Parameters
    ----------
    problem : MachineProblem
    solution : Solution
        Of this problem.
    shortage : Shortage, optional
        What would do, if that was looked for.

    Returns
    -------
    tuple of str
        One sentence for each job that no machine can serve, or one about the limits; another one
        says what would do. Empty if the problem is not infeasible.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("j", 1, {})])
    >>> solution_reasons(problem, solve(problem))
    ("job 'j': no block supplies any of its demand",)
    """
    if solution.status != "infeasible":
        return ()
    if isinstance(problem, TimeSharedProblem):
        _, lost = without_unservable_jobs(problem.unshared())
        reasons = [*unservable_lines({name: blocks for name, blocks in lost.items() if blocks})]
        reasons += [_too_slow(problem.job(name)) for name, blocks in lost.items() if not blocks]
    elif isinstance(problem, Problem):
        reasons = unservable_lines(without_unservable_jobs(problem)[1])
    else:
        reasons = []
    reasons = reasons or [_too_few(problem, solution, "machine")]
    return (*map(printable, reasons), *_remedy(shortage, "machine", "demand"))


def _too_slow(job: TimeSharedJob) -> str:
    """Say which point of a job without an admissible one comes nearest, and what it needs."""
    points = [(2 * point.length, block) for block, own in job.points.items() for point in own]
    if not points:
        return f"job {job.name!r}: no batch of it was measured on any block"
    needed, block = min(points)
    return (
        f"job {job.name!r}: no batch keeps its latency limit {short(job.limit, math.floor)}, "
        f"even alone; the quickest, on {block}, needs {short(needed, math.ceil)}"
    )


def _remedy(shortage: Shortage | None, machine: str, demand: str) -> Iterable[str]:
    return () if shortage is None else (printable(shortage.remedy(machine, demand)),)


def _too_few(problem: MachineProblem, solution: Solution, machine: str) -> str:
    """Name the limits that the proof blames, and those that it shows to be without blame.

    A proof that puts no price on a limit holds whatever that limit is.
    """
    limited = [machine for machine in problem.machine_types if machine.limit is not None]
    blamed = limited
    if solution.proof == "checked":
        leaves = list(solution.certificate.leaves())
        blamed = [m for m in limited if any(leaf.limit_prices.get(m.name) for leaf in leaves)]
    there = " and ".join(f"{decimal(m.limit or 0)} x {printable(m.name)}" for m in blamed)
    sentence = f"the {machine}s do not suffice: there are only {there}"
    if others := [printable(m.name) for m in limited if m not in blamed]:
        sentence += f" (more {' or '.join(others)} alone would not help)"
    return sentence
