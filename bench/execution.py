"""Runs the tasks of a suite that have no row yet, over any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, as_completed

from .processes import run_task
from .results import Results, ResultsError
from .row import RunRow
from .task import Task

#: Seconds without an answer after which an executor is asked whether it lives.
_LOOK = 15.0
_GONE = "the cluster is gone; --resume goes on"


def missing(tasks: Iterable[Task], results: Results) -> list[Task]:
    """Return the tasks without a row, each once."""
    done = {row.key for row in results.rows}
    return list({task.key: task for task in tasks if task.key not in done}.values())


def execute(
    tasks: Iterable[Task],
    results: Results,
    executor: Executor,
    *,
    threads: int,
    on_row: Callable[[RunRow], object],
    lives: Callable[[], bool] = lambda: True,
) -> list[BaseException]:
    """Run tasks; a row is kept as soon as it is there. Return why some tasks have none.

    The executor could not run those (a cluster that lost one again and again, say). That says
    nothing of the method, so it is no row. ``lives`` is asked while no answer comes.
    """
    lost: list[BaseException] = []
    waiting = [executor.submit(run_task, task, threads) for task in tasks]
    try:
        for future in _answered(waiting, lives):
            try:
                fault = future.exception()
            except CancelledError:  # nobody here cancels: the scheduler is no more
                raise ResultsError(_GONE) from None
            if fault is not None:
                lost.append(fault)
                continue
            row = future.result()
            results.add(row)
            on_row(row)
    finally:
        for future in waiting:
            future.cancel()
    return lost


def _answered(
    futures: Iterable[Future[RunRow]], lives: Callable[[], bool]
) -> Iterator[Future[RunRow]]:
    """Yield futures as they complete; a cluster that is gone may leave some that never do."""
    left = set(futures)
    while left:
        try:
            for future in as_completed(set(left), timeout=_LOOK):
                left.remove(future)
                yield future
        except TimeoutError:
            if not lives():
                raise ResultsError(_GONE) from None
