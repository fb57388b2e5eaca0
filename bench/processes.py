"""Runs tasks, each in a process below this one that can be ended at any time."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from cms.solving.driver import available_cores

from .environment import provider, versions
from .row import Outcome, RunRow
from .runs.stage import Stage
from .task import Task
from .timeouts import START, find_timeout, timed_out_row

#: Seconds between two looks at whether a silent process lives, and for its last words to arrive.
_LOOK, _LAST_WORDS = 0.25, 2.0
#: Bytes of what a process said to its error stream that are looked at when it has died.
_SAID = 10_000
#: Tasks after which a process is replaced, so that nothing can pile up.
_TASKS = 500


def run_task(task: Task, threads: int) -> RunRow:
    """Run a task in a process of its own, or in one that is idle, and return its row."""
    worker = (None if task.fresh else _take_idle()) or Worker()
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
    while _take_idle() is not None:
        pass
    for worker in list(_alive):
        worker.end()


class Worker:
    """A process that runs tasks one after another.

    It leads a process group: what an algorithm starts is ended with it, unless it leaves the group
    on purpose; nobody waits for such a descendant, even if it holds the pipe open.
    """

    def __init__(
        self,
        python: str = sys.executable,
        tree: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._done = 0
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._mark = 0  # where in `_errors` the present task begins
        # In a session of its own, so that Ctrl-C in the terminal is for this process alone, and
        # all that it starts can be ended at once.
        self._process = subprocess.Popen(
            [python, "-P", "-m", "bench.worker"], cwd=tree, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
            errors="replace", start_new_session=True,
        )  # fmt: skip
        _alive.add(self)
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, name="bench-listener", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        # Closed here: a close elsewhere would wait for the line being read.
        with self._process.stdout as answers:
            for line in answers:
                self._messages.put(_message(line))
        self._messages.put(None)

    def run(self, task: Task, threads: int) -> tuple[RunRow, bool]:
        """Run a task; return its row, and whether the process can take another."""
        known: dict[str, Any] = {
            "versions": {**versions(), **provider(task.kind, task.method)},
            "cores": available_cores(),
        }
        self._done += 1
        began, limit = time.monotonic(), START + find_timeout(task, Stage.PREPARING)
        stage = Stage.PREPARING
        self._mark = os.fstat(self._errors.fileno()).st_size
        self._send({"task": task.to_json(), "threads": threads})
        while True:
            left = began + limit - time.monotonic()
            try:
                message = self._messages.get(timeout=max(0.0, min(left, _LOOK)))
            except queue.Empty:
                if self._is_dead():
                    # A child of it may hold the pipe open: then the end is never heard of.
                    self._listener.join(_LAST_WORDS)
                    self._messages.put(None)
                elif left <= _LOOK:
                    return timed_out_row(task, stage, limit, known), False
                continue
            if message is None:
                return RunRow.of(task, outcome=Outcome.FAILED, error=self._death(), **known), False
            try:
                if "row" in message:
                    row = RunRow.from_line(message["row"])
                    if row.key != task.key:
                        raise ValueError("it is another task's row")
                    return row, not message["busy"] and self._done < _TASKS
                if "stage" in message:
                    facts, now = dict(message["facts"]), Stage(message["stage"])
                    known.update(facts)
                    if now != stage:
                        stage, began, limit = now, time.monotonic(), find_timeout(task, now)
                elif "ready" not in message:
                    raise ValueError("it is none of ours")
            except (KeyError, TypeError, ValueError):
                error = f"the process answered what is no answer: {str(message)[:200]}"
                return RunRow.of(task, outcome=Outcome.FAILED, error=error, **known), False

    def _is_dead(self) -> bool:
        """Whether the process has ended; what it has started is then ended as well."""
        if self._process.returncode is not None:
            return True
        if self._process.poll() is None:
            return False
        self._end_group()
        return True

    def _end_group(self) -> None:
        with suppress(ProcessLookupError):  # nothing of it is left
            os.killpg(self._process.pid, signal.SIGKILL)

    def _send(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has died: the listener says so next
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def _death(self) -> str:
        try:
            code = self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            return "the process closed the pipe to this one, and lives"
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        if code == -9:
            how += " (perhaps out of memory)"
        # Read where it stands: the position in the file is the process's as well.
        file = self._errors.fileno()
        start = max(self._mark, os.fstat(file).st_size - _SAID)
        lines = os.pread(file, _SAID, start).decode(errors="replace").strip().splitlines()
        return f"the process {how}" + (f": {lines[-1]}" if lines else "")

    def end(self) -> None:
        """End the process and what it has started, whatever they do."""
        if not self._is_dead():  # the number of one that is gone may be another's by now
            self._end_group()
            self._process.wait()
        self._listener.join(_LAST_WORDS)
        for stream in (self._process.stdin, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):  # an order that nobody will read
                    stream.close()
        _alive.discard(self)


def _message(line: str) -> dict[str, Any]:
    """Read what the process says; a line that is no message is told as one."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    return message if isinstance(message, dict) else {"no message": line.strip()}


def _take_idle() -> Worker | None:
    with suppress(queue.Empty):
        return _idle.get_nowait()
    return None


_alive: set[Worker] = set()
#: Processes that wait for a task.
_idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
