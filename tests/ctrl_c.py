"""Ctrl-C for real: SIGINT at random moments to processes with a solver at work inside.

``python -m tests.ctrl_c --moments 200`` prints a table, one line for each kind of solver; with
``--method NAME`` the solver inside is an installed algorithm on a hard problem. Each kind
is an algorithm that has found a schedule and then works on something that takes for ever, stopped
in the way its solver can be stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cms.solving.driver
from cms.plugin.algorithm import Budget, Claim
from cms.problem.problem import Problem
from cms.referee.check import check
from cms.solving.solution import Incumbent, StopReason
from cms.solving.solve import solve
from cms.testing.edge_problems import CROWDS
from tests.plugins import OneByOne
from tests.scripted import blocks

ROOT = Path(__file__).resolve().parent.parent
#: Seconds from the signal to the end of the process that a person takes for "at once".
PATIENCE = 1.0
#: Seconds after which an answer that has not come never will: a failure on the slowest machine.
NEVER = 600.0


def market_split(rows: int = 6, columns: int = 60) -> tuple[Any, Any]:
    """A 0-1 system A x = b that no solver decides within hours, however small it looks."""
    matrix = np.random.default_rng(1).integers(0, 100, (rows, columns))
    return matrix, matrix.sum(axis=1) // 2


# --- solvers at work ------------------------------------------------------------------------------


def work_cp_sat(budget: Budget) -> None:
    from ortools.sat.python import cp_model

    matrix, right = market_split()
    model = cp_model.CpModel()
    x = [model.new_bool_var(f"x{i}") for i in range(matrix.shape[1])]
    for row, value in zip(matrix.tolist(), right.tolist(), strict=True):
        model.add(sum(a * b for a, b in zip(row, x, strict=True)) == value)
    solver = cp_model.CpSolver()
    # with its default, CP-SAT in a thread aborts the process on SIGINT
    solver.parameters.catch_sigint_signal = False
    solver.parameters.num_workers = 2
    with budget.on_stop(solver.stop_search):
        if not budget.stopped:  # CP-SAT would miss a stop that came while it was imported
            solver.solve(model)


def work_gscip(budget: Budget) -> None:
    from ortools.math_opt.python import mathopt
    from ortools.util.python.solve_interrupter import SolveInterrupter

    matrix, right = market_split()
    model = mathopt.Model()
    x = [model.add_binary_variable() for _ in range(matrix.shape[1])]
    for row, value in zip(matrix.tolist(), right.tolist(), strict=True):
        terms = sum(a * b for a, b in zip(row, x, strict=True))
        model.add_linear_constraint(terms == value)
    interrupter = SolveInterrupter()
    with budget.on_stop(interrupter.interrupt):
        mathopt.solve(model, mathopt.SolverType.GSCIP, interrupter=interrupter)


def work_highs(budget: Budget) -> None:
    """HiGHS cannot be stopped: slices short enough for the grace."""
    _highs_in_slices(budget, 0.3)


def work_highs_in_long_slices(budget: Budget) -> None:
    """Slices of a second outlast the grace, so that the thread is left behind."""
    _highs_in_slices(budget, 1.0)


def _highs_in_slices(budget: Budget, seconds: float) -> None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    matrix, right = market_split()
    while not budget.stopped:
        milp(
            np.zeros(matrix.shape[1]),
            integrality=np.ones(matrix.shape[1]),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, right, right),
            options={"time_limit": seconds},
        )


def work_numba(budget: Budget) -> None:
    import numba

    @numba.njit(nogil=True)
    def chunk(seed: int) -> int:
        state = seed
        for _ in range(10_000_000):
            state = (state * state + 12345) % 2147483647
        return state

    state = 1
    while not budget.stopped:
        state = chunk(state)


def work_python(budget: Budget) -> None:
    state = 1
    while not budget.stopped:
        state = (state * state + 12345) % 2147483647


def work_deaf(budget: Budget) -> None:
    """Never looks up: is left behind."""
    state = 1
    while True:
        state = (state * state + 12345) % 2147483647


KINDS: dict[str, Callable[[Budget], None]] = {
    "cp_sat": work_cp_sat,
    "gscip": work_gscip,
    "highs": work_highs,
    "highs_long": work_highs_in_long_slices,
    "numba": work_numba,
    "python": work_python,
    "deaf": work_deaf,
}
#: Those that do not end within the grace.
LEFT_BEHIND = ("highs_long", "deaf")


class AtWork(OneByOne):
    """Finds a schedule, then sets its solver to work."""

    name = "at_work"

    def __init__(self, kind: str) -> None:
        self.work = KINDS[kind]

    def run(self, problem: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
        yield from super().run(problem, options, budget)
        self.work(budget)


# --- the process that is interrupted --------------------------------------------------------------


def interrupted(kind: str, method: str | None) -> int:
    """Solve, logging improvements, and say in JSON what came out; the exit status of the CLI."""
    # a shell that started us in the background may have told us to ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def log(line: Incumbent) -> None:
        print(f"{line.seconds:.2f} {line.cost} {line.lower_bound}", flush=True)

    if method is None:
        problem = blocks(8)
        solution = solve(problem, AtWork(kind), time_limit=None, on_improvement=log)
    else:
        problem = CROWDS[0].make()  # takes hours to prove optimal
        solution = solve(problem, method, time_limit=None, on_improvement=log)
    faults = () if solution.cost is None else check(problem, solution.schedule)
    verdict = {
        "status": solution.status,
        "stop_reason": solution.stop_reason,
        "valid": not faults,
        "bound_holds": solution.certificate.bound(problem) <= solution.lower_bound,
    }
    print(json.dumps(verdict), flush=True)
    return 130 if solution.stop_reason is StopReason.INTERRUPTED else 0


# --- the one that interrupts ----------------------------------------------------------------------


@dataclass(frozen=True)
class Press:
    """What came of one Ctrl-C: seconds from the signal to the answer, and to the exit."""

    kind: str
    moment: float
    answer: float
    exit: float
    exit_status: int
    verdict: dict[str, Any]
    errors: str

    @property
    def answered(self) -> bool:
        """Whether a checked answer came, with the exit status of an interruption."""
        return (
            self.exit_status == 130
            and self.verdict.get("status") in ("optimal", "feasible", "no_schedule")
            and self.verdict.get("stop_reason") == "interrupted"
            and self.verdict.get("valid") is True
            and self.verdict.get("bound_holds") is True
        )

    @property
    def at_once(self) -> bool:
        """Whether that took no longer than a person waits gladly, on a machine with nothing to do.

        Solvers that can be stopped may not delay the exit either. Tests do not ask it: the command
        does.
        """
        last = self.answer if self.kind in LEFT_BEHIND else self.exit
        return last <= PATIENCE


def press(kind: str, moment: float, method: str | None = None, again: float | None = None) -> Press:
    """Start a process, press Ctrl-C so many seconds after its first log line.

    Perhaps ``again`` and again, so many seconds apart, until it ends: then its grace has no end.
    """
    command = [sys.executable, "-m", "tests.ctrl_c", "--child", kind]
    if method is not None:
        command += ["--method", method]
    if again is not None:
        command.append("--patient")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        while again is not None and process.poll() is None:
            time.sleep(again)
            process.send_signal(signal.SIGINT)
        killer = threading.Timer(NEVER, process.kill)
        killer.start()
        verdict, answer = {}, math.inf
        for line in process.stdout:
            if line.startswith("{"):
                verdict, answer = json.loads(line), time.monotonic() - begun
        status = process.wait()
        ended = time.monotonic() - begun
        killer.cancel()
        errors = process.stderr.read().strip()
    return Press(method or kind, moment, answer, ended, status, verdict, errors)


def table(kinds: list[str], moments: int, seed: int, method: str | None) -> list[Press]:
    """Print the table; return all presses."""
    random_moments = random.Random(seed)
    print("seconds from the signal to the            answer             exit")
    print("solver        answered  at once      median   worst   median   worst")
    pressed: list[Press] = []
    for kind in kinds:
        presses = [press(kind, 2.0 * random_moments.random(), method) for _ in range(moments)]
        answers = sorted(one.answer for one in presses)
        exits = sorted(one.exit for one in presses)
        bad, middle = [one for one in presses if not one.answered], moments // 2
        good, soon = f"{moments - len(bad)} of {moments}", sum(one.at_once for one in presses)
        print(
            f"{method or kind:<12} {good:>10} {soon:>7}     {answers[middle]:>8.2f}"
            f"{answers[-1]:>8.2f} {exits[middle]:>8.2f}{exits[-1]:>8.2f}",
            flush=True,
        )
        for one in bad:
            print(f"    {one}")
        pressed += presses
    return pressed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--method", help="an installed algorithm instead")
    parser.add_argument("--child", choices=list(KINDS), help=argparse.SUPPRESS)
    parser.add_argument("--patient", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.patient:
        cms.solving.driver.GRACE_SECONDS = NEVER
    if given.child:
        return interrupted(given.child, given.method)
    kinds = ["python"] if given.method else given.kinds
    presses = table(kinds, given.moments, given.seed, given.method)
    return 0 if all(one.answered and one.at_once for one in presses) else 1


if __name__ == "__main__":
    sys.exit(main())
