"""Runs the tasks of a suite that have no row yet, over any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, as_completed
from typing import Protocol

from .processes import run_task
from .results import Results
from .row import Outcome, Row
from .task import Task


class Executor(Protocol):
    """What runs functions elsewhere: ``concurrent.futures.Executor``, or a cluster's client."""

    def submit(
        self, function: Callable[[Task, int], Row], task: Task, threads: int, /
    ) -> Future[Row]:
        """Promise the function's value."""
        ...


def missing(tasks: Iterable[Task], results: Results) -> list[Task]:
    """Return the tasks without a row, each once.

    Parameters
    ----------
    tasks : iterable of Task
    results : Results
    """
    done = {row.key for row in results.rows}
    left: dict[str, Task] = {}
    for task in tasks:
        if task.key not in done:
            left.setdefault(task.key, task)
    return list(left.values())


def execute(
    tasks: Iterable[Task],
    results: Results,
    executor: Executor,
    *,
    threads: int,
    on_row: Callable[[Row], object],
) -> None:
    """Run tasks; a row is kept as soon as it is there.

    Parameters
    ----------
    tasks : iterable of Task
    results : Results
        Where the rows go.
    executor : Executor
        Each task starts or borrows a process of its own, so threads will do.
    threads : int
        For an algorithm's own use.
    on_row : callable
        Called with every new row.
    """
    waiting = {executor.submit(run_task, task, threads): task for task in tasks}
    try:
        for future in as_completed(waiting):
            fault = future.exception()
            if fault is None:
                row = future.result()
            else:  # a cluster that lost the task again and again, say: it must not vanish
                error = f"the executor has no answer: {type(fault).__name__}: {fault}"
                row = Row.of(waiting[future], outcome=Outcome.FAILED, error=error)
            results.add(row)
            on_row(row)
    finally:
        for future in waiting:
            future.cancel()
