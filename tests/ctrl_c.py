"""Ctrl-C for real: SIGINT to processes with a solver at work inside, which this module is."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cms import Budget, Claim, Problem, StopReason, check, solve
from cms.testing.edge_problems import CROWDS
from tests.plugins import OneByOne
from tests.scripted import blocks

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which an answer that has not come never will: a failure on the slowest machine.
NEVER = 300.0
#: ``main``: ``solve`` in the main thread. ``cancel``: in another, with an event that is set without
#: a signal. ``other``: in another, while the main thread is interrupted and sets the event.
#: ``daemon``: as that, but the main thread ends, and nobody waits for an answer.
WAYS = ("main", "cancel", "other", "daemon")


def market_split(rows: int = 6, columns: int = 60) -> tuple[Any, Any]:
    """A 0-1 system A x = b that no solver decides within hours, however small it looks."""
    matrix = np.random.default_rng(1).integers(0, 100, (rows, columns))
    return matrix, matrix.sum(axis=1) // 2


def work_cp_sat(budget: Budget) -> None:
    from algorithms.solvers.integer import Program

    program = Program()
    matrix, right = market_split()
    x = [program.variable(1) for _ in range(matrix.shape[1])]
    for row, value in zip(matrix.tolist(), right.tolist(), strict=True):
        program.equals(dict(zip(x, row, strict=True)), value)
    for _ in program.improvements(budget, workers=2):
        pass


def work_scip(budget: Budget) -> None:
    from algorithms.solvers.linear import MixedProgram

    program = MixedProgram()
    matrix, right = market_split()
    x = [program.variable(0.0, high=1.0, whole=True) for _ in range(matrix.shape[1])]
    for row, value in zip(matrix.tolist(), right.tolist(), strict=True):
        program.row(list(zip(x, row, strict=True)), low=value, high=value)
    program.search(budget, nodes=10**9)


def work_python(budget: Budget) -> None:
    while not budget.stopped:
        pass


KINDS: dict[str, Callable[[Budget], None]] = {
    "cp_sat": work_cp_sat,
    "scip": work_scip,
    "python": work_python,
}


class AtWork(OneByOne):
    """Finds a schedule, then sets its solver to work."""

    name = "at_work"

    def __init__(self, kind: str) -> None:
        self.work = KINDS[kind]

    def run(self, problem: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
        yield from super().run(problem, options, budget)
        self.work(budget)


def answer(kind: str, method: str | None, cancel: threading.Event) -> None:
    """Solve, say that it has begun, and say in JSON what came out."""
    problem = blocks(8) if method is None else CROWDS[0].make()  # takes hours to prove optimal
    solution = solve(
        problem,
        AtWork(kind) if method is None else method,
        time_limit=None,
        cancel=cancel,
        on_improvement=lambda line: print(line.cost, flush=True),
    )
    bound = solution.certificate.bound(problem)
    good = (
        solution.stop_reason is StopReason.INTERRUPTED
        and (solution.cost is None or check(problem, solution.schedule) == ())
        and bound <= solution.lower_bound
    )
    print(json.dumps({"good": good}), flush=True)


def interrupted(way: str, kind: str, method: str | None) -> None:
    """Be the process that is interrupted."""
    # a shell that started us in the background may have told us to ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cancel = threading.Event()
    if way == "main":
        answer(kind, method, cancel)
        return
    done = threading.Event()

    def work() -> None:
        answer(kind, method, cancel)
        done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        if way == "cancel":
            sys.stdin.readline()
            cancel.set()
        # Not join(): CPython 3.11 takes a thread for ended once that is interrupted. In turns: a
        # signal just before a wait begins is not heard until it ends.
        while not done.wait(0.1):
            pass
    except KeyboardInterrupt:
        if way == "daemon":
            raise
        cancel.set()
        done.wait()


class Press(NamedTuple):
    """What came of one Ctrl-C, so many seconds after the first improvement."""

    moment: float
    status: int
    good: bool
    errors: str


def press(way: str, kind: str, moment: float, method: str | None = None) -> Press:
    """Start a process, stop it so many seconds after its first improvement."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.ctrl_c", way, kind]
    command += ["--method", method] if method else []
    with subprocess.Popen(
        command, stdin=-1, stdout=-1, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        time.sleep(moment)
        if way == "cancel":
            process.stdin.write("\n")
            process.stdin.flush()
        else:
            process.send_signal(signal.SIGINT)
        # says on stderr where all its threads are
        killer = threading.Timer(NEVER, process.send_signal, [signal.SIGABRT])
        killer.start()
        found = [json.loads(line) for line in process.stdout if line.startswith("{")]
        status = process.wait()
        killer.cancel()
        errors = process.stderr.read().strip()
    if way == "daemon":
        good = status in (1, -signal.SIGINT) and errors.endswith("KeyboardInterrupt")
    else:
        good = (status, found, errors) == (0, [{"good": True}], "")
    return Press(moment, status, good, errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--method", help="an installed algorithm instead")
    given = parser.parse_args()
    interrupted(given.way, given.kind, given.method)


if __name__ == "__main__":
    main()
