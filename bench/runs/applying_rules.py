"""A run of a rule of thumb or of a bound; what it says is checked before it counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.row import Outcome
from bench.rules import BOUNDS, RULES
from bench.task import Task
from cms.checker.kinds import check
from cms.solving.solution import Proof, Status

from .stage import Facts, Tell, refused, timed

if TYPE_CHECKING:
    from cms.problem.problem import Problem


def run_rule(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Make a schedule by a rule, the task's method; the check is not in its seconds."""
    rule = RULES[task.method]
    schedule = timed(lambda: rule.schedule(problem), tell)
    started = time.perf_counter()
    violations = check(problem, schedule)
    found: Facts = {
        "check_seconds": time.perf_counter() - started,
        "status": Status.FEASIBLE.value,
        "proof": Proof.NONE.value,
        "cost": schedule.cost(problem),
    }
    if violations:
        return refused(found, f"its schedule is not valid: {violations[0]}")
    return {**found, "outcome": Outcome.ANSWERED, "checker": "cms"}


def run_bound(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Make the certificate of a bound, the task's method, and compute exactly what it proves.

    The row has a lower bound, not rounded, and no cost.
    """
    bound = BOUNDS[task.method]
    certificate = timed(lambda: bound.certificate(problem), tell)
    started = time.perf_counter()
    proved = certificate.bound(problem)
    return {
        "check_seconds": time.perf_counter() - started,
        "status": Status.NO_SCHEDULE.value,
        "proof": Proof.NONE.value,
        "lower_bound": proved,
        "outcome": Outcome.ANSWERED,
        "checker": "cms",
    }
