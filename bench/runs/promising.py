"""A plan by a queueing rule, and how many of its latency limits hold under several streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.plans import serving_of
from bench.task import Task
from cms.fleet.serving import Plan
from cms.fleet.simulation import Gamma, Poisson, simulate
from cms.fleet.simulation.statistics import Verdict
from cms.infeasibility.shortage import find_growth, with_schedule

from .solving import rechecked, solved
from .stage import Facts, Stage, Tell

if TYPE_CHECKING:
    from cms.problem.problem import Problem
    from cms.solving.solution import Solution

#: What a plan's services get, each with its name in the rows.
CONDITIONS: dict[str, dict[str, Any]] = {
    "random": {"arrivals": Poisson(), "routing": "weighted_random"},
    "shortest": {"arrivals": Poisson(), "routing": "shortest_queue"},
    "gamma_random": {"arrivals": Gamma(4), "routing": "weighted_random"},
    "gamma_shortest": {"arrivals": Gamma(4), "routing": "shortest_queue"},
    "more": {"arrivals": Poisson(), "routing": "shortest_queue", "rate": "1.1"},
    "equal": {"arrivals": Poisson(), "routing": "equal_random"},
}
_GROWTH_SECONDS = 20


def run_promise(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Plan, with most growth if ``options["growth"]``, and replay ``options["requests"]`` each.

    The measurements have, for each of :data:`CONDITIONS`, the services whose late share was within
    what is tolerated, those of which that is sure (the verdict), and the largest 99th percentile as
    a share of its limit.
    """
    tell(Stage.RUNNING, {"threads": threads})
    solution = solved(task, problem, threads, {})
    measured: dict[str, Any] = {"services": float(problem.n_jobs)}
    if task.options["growth"]:
        solution, measured["growth"] = _grown(problem, solution, threads)
    tell(Stage.CHECKING, {"seconds": solution.seconds})
    plan = Plan(serving_of(task.source.family, **task.source.arguments), solution)
    for name, how in CONDITIONS.items():
        requests = task.options["requests"]
        found = simulate(plan, **how, requests=requests, seed=task.seed, threads=threads)
        measured[name] = [
            float(sum(each.late_share <= each.tolerated for each in found.services)),
            float(found.count(Verdict.MET)),
            max(float(each.p99_share or 0) for each in found.services),
        ]
    return {**rechecked(problem, solution), "measurements": measured}


def _grown(problem: Problem, solution: Solution, threads: int) -> tuple[Solution, float | None]:
    """Let all rates grow alike on the solution's machines; return by what factor."""
    found = find_growth(
        problem,
        solution.schedule,
        certificate=solution.certificate,
        time_limit=_GROWTH_SECONDS,
        threads=threads,
    )
    share = None if found.share is None else float(found.share)
    return with_schedule(problem, solution, found.schedule), share
