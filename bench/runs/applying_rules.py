"""A run of a rule of thumb or of a bound; what it says is checked before it counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from bench.environment import forget_peak, peak_memory, resident_memory
from bench.row import Outcome
from bench.rules import BOUNDS, RULES
from bench.task import Task
from cms.errors import UnsupportedProblem
from cms.referee.check import check
from cms.solving.solution import Proof, Status

from .stage import Facts, Stage, Tell

if TYPE_CHECKING:
    from cms.problem.problem import Problem

_Made = TypeVar("_Made")


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
    try:
        schedule = _timed(RULES[task.method].schedule, problem, tell)
    except UnsupportedProblem as reason:
        return {"outcome": Outcome.UNSUPPORTED, "error": str(reason)}
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


def run_bound(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Make a bound's certificate, and compute in exact arithmetic what it proves.

    Parameters
    ----------
    task : Task
        Its method is the name of a bound.
    problem : Problem
    threads : int
        Not used: a bound has one.
    tell : callable
        Called at the beginning of each stage.

    Returns
    -------
    dict
        Fields of the row: a lower bound, not rounded, and no cost.

    Raises
    ------
    InvalidCertificate
        If the certificate does not hold.
    """
    try:
        certificate = _timed(BOUNDS[task.method].certificate, problem, tell)
    except UnsupportedProblem as reason:
        return {"outcome": Outcome.UNSUPPORTED, "error": str(reason)}
    started = time.perf_counter()
    bound = certificate.bound(problem)
    return {
        "check_seconds": time.perf_counter() - started,
        "status": Status.NO_SCHEDULE.value,
        "proof": Proof.NONE.value,
        "lower_bound": bound,
        "outcome": Outcome.ANSWERED,
        "checker": "cms",
    }


def _timed(make: Callable[[Problem], _Made], problem: Problem, tell: Tell) -> _Made:
    """Make a schedule or a certificate, the only part that is in the seconds."""
    tell(Stage.RUNNING, {"memory_before": resident_memory()})
    forget_peak()
    started = time.perf_counter()
    made = make(problem)
    tell(
        Stage.CHECKING,
        {"seconds": time.perf_counter() - started, "peak_memory": peak_memory()},
    )
    return made
