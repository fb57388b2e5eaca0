"""A run of an algorithm through :func:`cms.solve`, rechecked afterwards."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.environment import forget_peak, peak_memory, resident_memory
from bench.row import Outcome
from bench.task import Task
from cms.files import number_to_json, write_problem, write_solution
from cms.solving.recheck import faults_of
from cms.solving.solution import Incumbent, Solution
from cms.solving.solve import solve
from proofs_checks.checker import check_solution, parse_document

from .stage import Facts, Stage, Tell, refused
from .warming import warm_up

if TYPE_CHECKING:
    from cms.plugin.guarantee import GuaranteeVerdict
    from cms.problem.problem import Problem
    from cms.shards.problem import ShardedProblem
    from cms.time_sharing.problem import TimeSharedProblem

#: Jobs up to which the independent checker, plain on purpose, rechecks an answer.
INDEPENDENTLY = 2_000


def solved(
    task: Task,
    problem: Problem | ShardedProblem,
    threads: int,
    options: Mapping[str, Any] | None = None,
) -> Solution:
    """Solve a problem as a task says; with other options where the task's are not the method's."""
    return solve(
        problem, task.method, options=task.options if options is None else options,
        time_limit=task.time_limit, seed=task.seed, threads=threads,
    )  # fmt: skip


def run_algorithm(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Solve an instance; the seconds are ``solution.seconds``, exact checks included."""
    if task.warm_up:
        warm_up(task.method, task.options, threads)
    solution, cpu = solve_measured(task, problem, threads, tell)
    return {**rechecked(problem, solution), "measurements": {"cpu_seconds": cpu}}


def solve_measured(
    task: Task, problem: Problem | ShardedProblem, threads: int, tell: Tell
) -> tuple[Solution, float]:
    """Solve a problem; return the seconds of processor time as well, and tell all else."""
    tell(Stage.RUNNING, {"threads": threads, "memory_before": resident_memory()})
    forget_peak()
    worked = time.process_time()
    solution = solved(task, problem, threads)
    cpu, peak = time.process_time() - worked, peak_memory()
    tell(Stage.CHECKING, {"seconds": solution.seconds, "peak_memory": peak})
    return solution, cpu


def rechecked(problem: Problem, solution: Solution) -> Facts:
    """Recheck a solution, and say what it is: the fields of a row."""
    started = time.perf_counter()
    checker, faults = recheck(problem, solution)
    check_seconds = time.perf_counter() - started
    return judged({**described(solution), "check_seconds": check_seconds}, checker, faults)


def described(solution: Solution) -> Facts:
    """Say what a solution is: fields of a row."""
    return {
        "status": solution.status.value, "proof": solution.proof.value,
        "stop_reason": solution.stop_reason.value, "cost": solution.cost,
        "lower_bound": solution.lower_bound, "claimed_bound": solution.claimed_bound,
        "gap": solution.gap, "passes": passes(line.source for line in solution.history),
        "guarantee": _promise(solution.guarantee), "history_length": len(solution.history),
        "history": tuple(_entry(line) for line in solution.history),
    }  # fmt: skip


def judged(found: Facts, checker: str, faults: Sequence[str]) -> Facts:
    """Say whether a checker accepts a solution."""
    if faults:
        why = f"the {checker} checker refuses the solution: {'; '.join(faults[:3])}"
        return refused(found, why)
    return {**found, "outcome": Outcome.ANSWERED, "checker": checker}


def recheck(problem: Problem | TimeSharedProblem, solution: Solution) -> tuple[str, list[str]]:
    """Recheck a solution: from files by the independent checker, in large problems by ``cms``."""
    if problem.n_jobs <= INDEPENDENTLY:
        written = partial(write_problem, problem), partial(write_solution, solution)
        return "independent", from_files(check_solution, *written)
    return "cms", [str(fault) for fault in faults_of(problem, solution)]


def from_files(check: Callable[..., list[str]], *written: Callable[[Path], object]) -> list[str]:
    """Check documents that were written to files and read again."""
    documents = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "document.json")
        for write in written:
            write(path)
            documents.append(parse_document(path.read_text("utf-8")))
    return check(*documents)


def passes(sources: Iterable[str]) -> int | None:
    """Read how many passes of pricing a run took from the sources of its history.

    Passes after the last certificate that raised the bound are not told there.
    """
    told = [int(number) for s in sources for number in re.findall(r"(\d+) pass(?:es)?\b", s)]
    return max(told, default=None)


def _promise(verdict: GuaranteeVerdict | None) -> dict[str, str]:
    if verdict is None:
        return {}
    promised = verdict.guarantee
    return {
        "factor": str(promised.factor),
        "additive": str(promised.additive),
        "against": promised.against.value,
        "theorem": promised.theorem,
        "verdict": verdict.verdict.value,
    }


def _entry(line: Incumbent) -> tuple[Any, ...]:
    cost = None if line.cost is None else number_to_json(line.cost)
    return line.seconds, cost, number_to_json(line.lower_bound), line.source
