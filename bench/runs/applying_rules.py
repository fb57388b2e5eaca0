"""A run of a rule of thumb; its schedule is checked before it counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.environment import forget_peak, peak_memory, resident_memory
from bench.row import Outcome
from bench.rules import RULES
from bench.task import Task
from cms.check import check
from cms.errors import UnsupportedProblem
from cms.solution import Proof, Status

from .stage import Facts, Stage, Tell

if TYPE_CHECKING:
    from cms.problem import Problem


def run_rule(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Make a schedule by a rule; the check is not in its seconds.

    Parameters
    ----------
    task : Task
        Its method is the name of a rule.
    problem : Problem
    threads : int
        Not used: a rule has one.
    tell : callable
        Called at the beginning of each stage.

    Returns
    -------
    dict
        Fields of the row.
    """
    rule = RULES[task.method]
    tell(Stage.RUNNING, {"memory_before": resident_memory()})
    forget_peak()
    started = time.perf_counter()
    try:
        schedule = rule.schedule(problem)
    except UnsupportedProblem as reason:
        return {"outcome": Outcome.UNSUPPORTED, "error": str(reason)}
    tell(
        Stage.CHECKING,
        {"seconds": time.perf_counter() - started, "peak_memory": peak_memory()},
    )
    started = time.perf_counter()
    violations = check(problem, schedule)
    found: Facts = {
        "check_seconds": time.perf_counter() - started,
        "status": Status.FEASIBLE.value,
        "proof": Proof.NONE.value,
        "cost": schedule.cost(problem),
    }
    if violations:
        error = f"its schedule is not valid: {violations[0]}"
        return {**found, "outcome": Outcome.FAILED, "error": error}
    return {**found, "outcome": Outcome.ANSWERED, "checker": "cms"}
