"""The process in which tasks run: ``python -m bench.worker``, started by ``bench.processes``.

It reads a task a line from standard input and answers with lines of JSON: a stage as it begins, a
row at the end.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from dataclasses import replace
from typing import Any

from .environment import provider
from .row import RunRow
from .runs import Stage, perform
from .task import Task


def main() -> None:
    """Answer task after task until the input ends."""
    # Solvers print what they like; nothing of it may get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    me = os.getpid()
    tasks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(tasks,), name="bench-tasks", daemon=True).start()

    def say(message: dict[str, Any]) -> None:
        if os.getpid() != me:
            os._exit(0)  # a child that an algorithm forked and that came back: one answer is enough
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def tell(stage: Stage, facts: dict[str, Any]) -> None:
        say({"stage": stage.value, "facts": facts})

    say({"ready": True})
    while True:
        order = tasks.get()
        before = set(threading.enumerate())
        row: RunRow = perform(Task.from_json(order["task"]), order["threads"], tell)
        row = replace(row, versions={**row.versions, **provider(row.kind, row.algorithm)})
        # An algorithm that did not stop in time may still compute: the next run must not share
        # the machine with it.
        busy = any(thread.is_alive() for thread in set(threading.enumerate()) - before)
        say({"row": row.to_line(), "busy": busy})


def _read(tasks: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        tasks.put(json.loads(line))
    # Nobody waits for an answer any more, nor for what an algorithm has started.
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
