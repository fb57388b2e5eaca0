"""A problem in a folder: packed, solved out of core, written, and rechecked from the folders."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.chunks import pack_elsewhere
from bench.task import Task
from cms.files import open_problem, write_solution
from cms.knapsack.pricing import common_denominator, price_jobs
from cms.shards.engine import Here
from proofs_checks.streaming import check_folders

from .solving import described, judged, solve_measured
from .stage import Facts, Stage, Tell, sizes
from .warming import warm_up

if TYPE_CHECKING:
    from cms.shards.engine import Loaded
    from cms.shards.problem import ShardedProblem
    from cms.solving.solution import Solution


def run_shards(task: Task, threads: int, tell: Tell) -> Facts:
    """Solve the problem of a task's source out of core; its jobs are never all in this process.

    The seconds, and the peak of the memory, are those of the solve alone. The measurements:
    seconds of processor time of the solve (``cpu_seconds``); of packing, writing, the second
    checker and one bare pass over the jobs (``pack_``, ``write_``, ``check_``, ``pass_``
    ``cpu_seconds``); and the number of ``shards``.
    """
    with tempfile.TemporaryDirectory(prefix="bench-shards-") as place:
        folder, plan = Path(place, "fleet"), Path(place, "plan")
        started = time.perf_counter()
        packing = pack_elsewhere(task.source, folder)
        problem = open_problem(folder, engine=Here(threads))
        facts: Facts = {
            "make_seconds": time.perf_counter() - started,
            "instance_sha256": problem.stated_sha256(),
            **sizes(problem),
        }
        tell(Stage.PREPARING, facts)
        if task.warm_up:
            warm_up(task.method, task.options, threads)
        solution, cpu = solve_measured(task, problem, threads, tell)
        _, writing = _cpu_seconds(lambda: write_solution(solution, plan))
        started = time.perf_counter()
        faults, checking = _cpu_seconds(lambda: check_folders(folder, plan))
        check_seconds = time.perf_counter() - started
        _, one_pass = _cpu_seconds(lambda: _bare_pass(problem, solution))
    measured = {
        "cpu_seconds": cpu,
        "pack_cpu_seconds": packing,
        "write_cpu_seconds": writing,
        "check_cpu_seconds": checking,
        "pass_cpu_seconds": one_pass,
        "shards": len(problem.shards),
    }
    found = {**described(solution), "check_seconds": check_seconds, "measurements": measured}
    return facts | judged(found, "independent", faults)


def _cpu_seconds(do: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    done = do()
    return done, time.process_time() - started


def _bare_pass(problem: ShardedProblem, solution: Solution) -> None:
    """Read every job once, and price it once, at the prices that the bound rests on."""
    leaf = next(solution.certificate.leaves())
    prices, _ = common_denominator([leaf.prices.get(b, Fraction(0)) for b in problem.blocks])
    list(problem.map(_priced, prices, what="a bare pass"))


def _priced(loaded: Loaded, prices: list[int]) -> None:
    price_jobs(loaded.rows, prices, threads=loaded.threads)
