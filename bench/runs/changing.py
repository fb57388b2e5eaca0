"""A transition by one of several methods, checked twice, with what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.changes import Change, change_of
from bench.row import Outcome
from bench.task import Task
from cms.fleet.deployment.transition import (
    Impossible,
    Transition,
    check_transition,
    exchange_and_compact,
    schedule,
    transition,
)
from cms.fleet.deployment.transition.document import transition_to_json
from cms.fleet.placement import PlacementResult, place_plan
from proofs_checks.checker.replay import examine_transition

from .stage import Facts, Stage, Tell

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: So much of the time goes into looking for the nearest plan.
_LOOKING = 0.5
#: The transition, and the nearest plan where one was looked for.
_Found: TypeAlias = tuple[Transition | Impossible, PlacementResult | None]
_Method: TypeAlias = Callable[[Change, float], _Found]


def _nearest(change: Change, seconds: float) -> _Found:
    assert change.wanted.plan is not None
    found = place_plan(change.wanted.plan, change.now, time_limit=_LOOKING * seconds)
    if not isinstance(found, PlacementResult):
        return Impossible(found.reasons, found.proof), None
    return transition(change.now, found.wanted, time_limit=(1 - _LOOKING) * seconds), found


#: How a transition is planned.
METHODS: Mapping[str, _Method] = {
    "ours": lambda change, s: (transition(*change, time_limit=s), None),
    "as-grouped": lambda change, s: (transition(*change, as_grouped=True, time_limit=s), None),
    "exchange_and_compact": lambda change, _: (exchange_and_compact(*change), None),
    "nearest": _nearest,
}


def run_change(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Plan the transition by the task's method, in one thread, and have both checkers look at it.

    The measurements: GPUs before and after, instances wanted and how many of them run already (the
    trivial bound on what can be kept); spare GPUs and the least proved, instances kept and the most
    proved; actions, temporary instances, seconds of its schedule and their lower bound; seconds of
    processor time. The row's proof is that of the most kept: by any transition to this promise, or,
    of the nearest plan, by any plan on as few GPUs.
    """
    change = change_of(task.source.family, **task.source.arguments)
    tell(Stage.RUNNING, {"threads": 1})
    started, worked = time.perf_counter(), time.process_time()
    found, near = METHODS[task.method](change, task.time_limit)
    cpu, seconds = time.process_time() - worked, time.perf_counter() - started
    tell(Stage.CHECKING, {"seconds": seconds})
    if isinstance(found, Impossible):
        # a fleet with half its GPUs to spare has a transition
        return {"outcome": Outcome.UNSUPPORTED, "error": str(found)}
    started = time.perf_counter()
    faults = [*check_transition(found), *examine_transition(transition_to_json(found))[0]]
    facts: Facts = {
        "check_seconds": time.perf_counter() - started,
        "checker": "independent",
        "proof": found.kept.proof.value if near is None else near.proof.value,
        "measurements": {
            **_figures(change, found, near),
            "cpu_seconds": cpu,
            "faults": len(faults),
        },
    }
    if faults:
        return {**facts, "outcome": Outcome.FAILED, "error": "; ".join(map(str, faults[:3]))}
    return {**facts, "outcome": Outcome.ANSWERED}


def _figures(change: Change, found: Transition, near: PlacementResult | None) -> dict[str, Any]:
    plan = schedule(found)
    wanted = change.wanted if near is None else near.wanted
    return {
        "gpus": [len(found.start.used_gpus()), len(found.target.used_gpus())],
        "instances": sum(wanted.counts.values()),
        "running": sum(
            min(n, found.start.kinds().get(kind, 0)) for kind, n in change.wanted.counts.items()
        ),
        "spare": found.spare.count,
        "least_spare": found.spare.least,
        "kept": found.kept.count,
        "most_kept": found.kept.most if near is None else near.most_kept,
        "actions": len(found.actions),
        "temporaries": sum(a.is_temporary and bool(a.adds) for a in found.actions),
        "makespan_s": float(plan.makespan_s),
        "least_makespan_s": float(plan.least_s),
    }
