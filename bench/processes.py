"""Runs tasks, each in a process below this one that can be ended at any time.

:func:`run_task` is all an executor needs: it takes plain values and returns a row, so the executor
may be a pool of threads here or a cluster's client elsewhere.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any

from .environment import cores, versions
from .row import Outcome, Row
from .runs.stage import Stage
from .task import Kind, Task

#: Seconds a process has to start, to make an instance and warm up, and to recheck an answer.
_START, _PREPARE, _CHECK = 60.0, 1_200.0, 3_600.0
#: Tasks after which a process is replaced, so that nothing can pile up.
_TASKS = 500
#: Kinds of tasks whose methods do not look at the clock as `solve` does.
_TOLD = (Kind.PEER, Kind.RULE)


def run_task(task: Task, threads: int) -> Row:
    """Run a task in a process of its own, or in one that is idle, and return its row.

    Parameters
    ----------
    task : Task
    threads : int
        For an algorithm's own use.

    Returns
    -------
    Row
        Always: a process that dies, or must be ended, leaves a row that says so.
    """
    worker = None if task.fresh else _idle.take()
    worker = worker or Worker()
    reuse = False
    try:
        row, reuse = worker.run(task, threads)
        return row
    finally:
        if reuse and not task.fresh:
            _idle.put(worker)
        else:
            worker.end()


def end_all() -> None:
    """End every process, busy or idle: their runs give no rows."""
    _idle.clear()
    for worker in list(_alive):
        worker.end()


class Worker:
    """A process that runs tasks one after another."""

    def __init__(self) -> None:
        self._done = 0
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        # In a session of its own, so that Ctrl-C in the terminal is for this process alone.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        _alive.add(self)
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="bench-listener", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._messages.put(json.loads(line))
        self._messages.put(None)

    def run(self, task: Task, threads: int) -> tuple[Row, bool]:
        """Run a task; return its row, and whether the process can take another."""
        known: dict[str, Any] = {"versions": versions(), "cores": cores()}
        self._done += 1
        began, limit = time.monotonic(), _START + _PREPARE
        stage = Stage.PREPARING
        self._send({"task": task.to_json(), "threads": threads})
        while True:
            try:
                message = self._messages.get(timeout=max(0.0, began + limit - time.monotonic()))
            except queue.Empty:
                return _overdue(task, stage, limit, known), False
            if message is None:
                return Row.of(task, outcome=Outcome.FAILED, error=self._death(), **known), False
            if "row" in message:
                again = not message["busy"] and self._done < _TASKS
                return Row.from_line(message["row"]), again
            if "stage" in message:
                known.update(message["facts"])
                if message["stage"] != stage:
                    stage = Stage(message["stage"])
                    began, limit = time.monotonic(), _seconds(task, stage)

    def _send(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it has died: the listener says so next

    def _death(self) -> str:
        code = self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        if code == -9:
            how += " (perhaps out of memory)"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"the process {how}" + (f": {lines[-1]}" if lines else "")

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                _close(stream)
        _alive.discard(self)


def _close(stream: IO[Any]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return  # an order that nobody will read


def _seconds(task: Task, stage: Stage) -> float:
    """How long a stage may take before the process is ended."""
    if stage is Stage.CHECKING:
        return _CHECK
    if stage is Stage.PREPARING:
        return _PREPARE
    if task.kind in _TOLD:
        # It was told the limit itself; a moment for one that looks at the clock rarely.
        return 1.1 * task.time_limit + 2
    # `solve` answers within its limit, a grace and an exact check; far beyond that it hangs.
    return task.repetitions * (2 * task.time_limit + 60)


def _overdue(task: Task, stage: Stage, limit: float, known: dict[str, Any]) -> Row:
    if stage is Stage.RUNNING and task.kind in _TOLD:
        return Row.of(task, outcome=Outcome.OUT_OF_TIME, **known)
    error = f"it was ended after {limit:.0f} s of {stage.value}"
    return Row.of(task, outcome=Outcome.FAILED, error=error, **known)


class _Idle:
    """Processes that wait for a task."""

    def __init__(self) -> None:
        self._workers: queue.SimpleQueue[Worker] = queue.SimpleQueue()

    def take(self) -> Worker | None:
        try:
            return self._workers.get_nowait()
        except queue.Empty:
            return None

    def put(self, worker: Worker) -> None:
        self._workers.put(worker)

    def clear(self) -> None:
        while (worker := self.take()) is not None:
            worker.end()


_alive: set[Worker] = set()
_idle = _Idle()
