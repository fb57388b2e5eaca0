"""After how long a run is ended that does not end by itself, and the row that it leaves."""

from __future__ import annotations

from typing import Any

from .row import Outcome, RunRow
from .runs.stage import Stage
from .task import Kind, Task

#: Seconds a process has to start, to make an instance and warm up, and to recheck an answer.
START, _PREPARE, _CHECK = 60.0, 1_200.0, 3_600.0
#: Seconds that each job of a folder may take beside, to be drawn and packed, or to be rechecked.
_A_JOB = 5e-4
#: Kinds of tasks whose methods do not look at the clock as `solve` does.
_TOLD = (Kind.PEER, Kind.RULE, Kind.BOUND)


def find_timeout(task: Task, stage: Stage) -> float:
    """Return how many seconds a stage may take before its process is ended."""
    more = _A_JOB * task.source.arguments["n"] if task.kind is Kind.SHARDS else 0.0
    if stage is Stage.CHECKING:
        return _CHECK + more
    if stage is Stage.PREPARING:
        return _PREPARE + more
    if task.kind in _TOLD:  # a moment for one that looks at the clock rarely
        return 1.1 * task.time_limit + 2
    return task.repetitions * (2 * task.time_limit + 60)  # `solve` hangs, far beyond its limit


def timed_out_row(task: Task, stage: Stage, limit: float, known: dict[str, Any]) -> RunRow:
    """Return the row of a run that was ended."""
    if stage is Stage.RUNNING and task.kind in _TOLD:
        return RunRow.of(task, outcome=Outcome.OUT_OF_TIME, **known)
    error = f"it was ended after {limit:.0f} s of {stage.value}"
    return RunRow.of(task, outcome=Outcome.FAILED, error=error, **known)
