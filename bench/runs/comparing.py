"""A small problem against a yardstick: both alternate, many times, and medians are compared."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.peers import PEERS, CompactProgram
from bench.row import Outcome
from bench.task import Task

from .solving import solved
from .stage import Facts, Stage, Tell
from .warming import warm_up

if TYPE_CHECKING:
    from cms.problem.problem import Problem


def run_warm(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Compare ``solve`` in a running process with one call of ``scipy.optimize.linprog``.

    The yardstick solves the linear relaxation of the same problem's compact program, with its
    default method.
    """
    from scipy.optimize import linprog

    if task.warm_up:
        warm_up(task.method, task.options, threads)
    program = PEERS["highs_lp_simplex"].prepare(CompactProgram.of(problem))
    program["A_ub"] = program["A_ub"].toarray()  # what one writes for a program of this size
    solutions = []

    def ours() -> None:
        solutions.append(solved(task, problem, threads))

    def yardstick() -> None:
        linprog(**program)

    ours()
    yardstick()  # once each, not measured
    tell(Stage.RUNNING, {"threads": threads})
    facts = _alternate(ours, yardstick, task.repetitions)
    last = solutions[-1]
    found = {"status": last.status.value, "proof": last.proof.value, "cost": last.cost}
    return {**facts, **found, "lower_bound": last.lower_bound, "gap": last.gap}


def run_cold(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Compare ``cms plan --published NAME`` in a fresh process with importing numpy and scipy.

    NAME is that of a registered scenario, the task's source.
    """
    plan = [sys.executable, "-P", "-m", "cms", "plan", "--published", task.source.family]
    imports = [sys.executable, "-P", "-c", "import numpy, scipy.optimize"]

    def ours() -> None:
        _run([*plan, "--method", task.method])

    def yardstick() -> None:
        _run(imports)

    ours()
    yardstick()  # once each, so that the files are in memory
    tell(Stage.RUNNING, {})
    return _alternate(ours, yardstick, task.repetitions)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _alternate(ours: Callable[[], None], yardstick: Callable[[], None], repetitions: int) -> Facts:
    times: dict[str, list[float]] = {"ours": [], "yardstick": []}
    for _ in range(repetitions):
        for name, run in (("ours", ours), ("yardstick", yardstick)):
            started = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - started)
    middle = {name: median(values) for name, values in times.items()}
    measured: dict[str, Any] = {**times, "ratio": middle["ours"] / middle["yardstick"]}
    return {"outcome": Outcome.ANSWERED, "seconds": middle["ours"], "measurements": measured}
