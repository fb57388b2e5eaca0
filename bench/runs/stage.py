"""How a run tells the process above it where it stands: each part has a limit of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from bench.environment import forget_peak, peak_memory, resident_memory
from bench.row import Outcome
from bench.task import Task
from cms.fleet.colocation.problem import ColocationProblem
from cms.problem.machine_problem import MachineProblem
from cms.problem.problem import Problem

_Made = TypeVar("_Made")


class Stage(StrEnum):
    """Instance and models are made; the clock runs; the answer is rechecked."""

    PREPARING = "preparing"
    RUNNING = "running"
    CHECKING = "checking"


#: Called with a stage as it begins and with facts for the row that are known by then.
Tell: TypeAlias = Callable[[Stage, dict[str, Any]], None]

#: Fields of a row.
Facts: TypeAlias = dict[str, Any]

#: What is done for a task: of the problem, with so many threads for an algorithm, telling each
#: stage as it begins; the rest of the row is returned.
Run: TypeAlias = Callable[[Task, Problem, int, Tell], Facts]


def sizes(problem: MachineProblem | ColocationProblem) -> Facts:
    """Return the sizes that a row keeps; of sharing there are only GPUs, in the place of jobs."""
    if isinstance(problem, ColocationProblem):
        return {"n": sum(each.count for each in problem.online)}
    return {
        "n": problem.n_jobs,
        "blocks": len(problem.blocks),
        "configurations": len(problem.configurations),
        "machine_types": len(problem.machine_types),
    }


def refused(found: Facts, error: str) -> Facts:
    """Return the facts of a run whose answer does not hold."""
    return {**found, "outcome": Outcome.FAILED, "error": error}


def timed(make: Callable[[], _Made], tell: Tell, **facts: Any) -> _Made:
    """Make a schedule, an answer or a certificate: the only part that is in the seconds."""
    tell(Stage.RUNNING, {**facts, "memory_before": resident_memory()})
    forget_peak()
    started = time.perf_counter()
    made = make()
    seconds = time.perf_counter() - started
    tell(Stage.CHECKING, {"seconds": seconds, "peak_memory": peak_memory()})
    return made
