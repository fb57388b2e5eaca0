"""A co-location plan, rechecked from files; and a day of shared GPUs by one policy."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from functools import partial
from typing import Any

from bench.environment import forget_peak, peak_memory, resident_memory
from bench.row import Outcome
from bench.task import Task
from cms.fleet.colocation import (
    ColocationProblem,
    ColocationSolution,
    colocate,
    colocation_faults,
    write_colocation_problem,
    write_colocation_solution,
)
from cms.fleet.colocation.problem import FULL_WEIGHT
from cms.fleet.simulation.colocation_loop import LineWeights, Terms, colocation_day
from instances.families.colocation import made_up_pairs, slowdowns
from proofs_checks.checker import check_colocation

from .solving import from_files, judged
from .stage import Facts, Stage, Tell, timed

#: Pairs of classes up to which the independent checker, plain on purpose, rechecks an answer.
INDEPENDENTLY = 400_000
#: How far the scheduler's pairs are from the true ones: a predictor's error on unseen pairs.
_ERROR = 0.04


def run_share(task: Task, problem: Any, threads: int, tell: Tell) -> Facts:
    """Match the GPUs by the task's method; cost and bounds are those of the value, turned round."""
    assert isinstance(problem, ColocationProblem)
    tell(Stage.RUNNING, {"threads": threads, "memory_before": resident_memory()})
    forget_peak()
    worked = sum(os.times()[:4])  # of this process and of those that it has waited for
    solution = colocate(
        problem, task.method, options=dict(task.options), time_limit=task.time_limit,
        seed=task.seed, threads=threads,
    )  # fmt: skip
    peak, worked = peak_memory(), sum(os.times()[:4]) - worked
    tell(Stage.CHECKING, {"seconds": solution.seconds, "peak_memory": peak})
    started = time.perf_counter()
    checker, faults = _rechecked(problem, solution)
    gpus = sum(each.count for each in problem.online)
    facts: Facts = {
        "check_seconds": time.perf_counter() - started,
        "checker": checker,
        "status": solution.status.value,
        "proof": solution.proof.value,
        "stop_reason": solution.stop_reason.value,
        "cost": Fraction(problem.most - solution.value),
        "lower_bound": Fraction(problem.most - solution.upper_bound),
        "gap": Fraction(solution.gap),
        "history_length": len(solution.history),
        "measurements": {
            "value": solution.value / FULL_WEIGHT,
            "upper_bound": solution.upper_bound / FULL_WEIGHT,
            "cpu_seconds": worked,
            "placed": float(solution.plan.placed),
            "throughput_a_gpu": solution.value / FULL_WEIGHT / gpus if gpus else 0.0,
            "slowdown": _slowdown(problem, solution, int(task.source.arguments["seed"])),
        },
    }
    return judged(facts, checker, faults)


def _slowdown(problem: ColocationProblem, solution: ColocationSolution, seed: int) -> float:
    """Return the mean slowdown of the online side over all GPUs."""
    table = slowdowns(problem.shares, len(problem.offline), seed)
    gpus = sum(each.count for each in problem.online)
    more = sum(
        count * (table[problem.online_index[online], problem.offline_index[offline]] - 1)
        for online, offline, count in solution.plan
    )
    return float(1 + more / gpus) if gpus else 1.0


def _rechecked(problem: ColocationProblem, solution: ColocationSolution) -> tuple[str, list[str]]:
    if problem.weights.size > INDEPENDENTLY:
        return "cms", [str(fault) for fault in colocation_faults(problem, solution)]
    write = partial(write_colocation_problem, problem)
    written = write, partial(write_colocation_solution, problem, solution)
    return "independent", from_files(check_colocation, *written)


def run_shared_day(task: Task, problem: Any, threads: int, tell: Tell) -> Facts:
    """Play the policy of the task's name, with the monitor or without it."""
    assert isinstance(problem, ColocationProblem)
    seed = int(task.source.arguments["seed"])
    truth = made_up_pairs(seed)
    pairs = made_up_pairs(seed, error=_ERROR)
    seen = LineWeights(pairs, problem.margin, problem.lowest_share)
    terms = Terms(
        hours=int(task.options["hours"]), job_hours=12, sample=2,
        protection=bool(task.options["protection"]),
    )  # fmt: skip
    play = partial(colocation_day, problem, truth, sees=seen, terms=terms, seed=seed)
    worked = time.process_time()
    played = timed(lambda: play(policies=[task.method]), tell, threads=1).policies[0]
    jobs, cpu = played.jobs, time.process_time() - worked
    measured = {
        "cpu_seconds": cpu,
        "throughput_a_gpu": float(played.oversold_gpu),
        "mean_slowdown": float(played.mean_slowdown),
        "p99_slowdown": float(played.p99_slowdown),
        "over_share": float(played.over_share),
        "evictions": float(played.evictions),
        "completion_h": float(jobs.mean_completion_minutes or 0) / 60,
        "largest_wait_h": float(jobs.largest_wait_minutes or 0) / 60,
    }
    return {"outcome": Outcome.ANSWERED, "measurements": measured}
