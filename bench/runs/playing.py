"""A policy of planning again, played on a day of a fleet."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING

from bench.days import scene_of
from bench.row import Outcome
from bench.task import Task
from cms.fleet.replanner import FORECASTS, compare

from .stage import Facts, Stage, Tell

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: What rows keep of what was played; the document of `Compared` has it exactly.
_KEPT = (
    "gpu_hours", "change_gpu_hours", "replans", "starts", "temporary_starts", "worst_spare_gpus",
    "longest_transition_s", "shortage_s", "best_gpu_hours", "distance",
)  # fmt: skip


def run_day(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Play the policy of the task's name; every change is a transition that was checked."""
    scene = scene_of(task.source.family, **task.source.arguments, time_limit=task.time_limit)
    tell(Stage.RUNNING, {"threads": threads})
    started = time.perf_counter()
    (found,) = compare(scene, FORECASTS["daily"], (task.method,))
    seconds = time.perf_counter() - started
    own, played = found.to_json(), found.played
    return {
        "outcome": Outcome.ANSWERED,
        "seconds": seconds,
        "measurements": {
            **{name: float(Fraction(own[name])) for name in _KEPT},
            "refused": float(len(played.refused)),
            "plans": float(scene.planner.asked),
            "peak_gpus": float(max(gpus for _, gpus in played.steps)),
        },
    }
