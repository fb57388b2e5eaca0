"""From what runs to a plan, by a checked transition; the one place that decides how."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ..deployment import Deployment, desired_state
from ..deployment.checking import has_our_work
from ..deployment.transition import (
    Durations,
    Impossible,
    Schedule,
    Transition,
    reorganise,
    schedule,
    transition,
)
from ..deployment.wanted import DesiredState
from ..placement import PlacementInfeasible, place, place_plan
from ..placement.program import Limits
from ..serving.plan import Plan
from ..serving.time_sharing import SharedServing


@dataclass(frozen=True)
class Change:
    """A way from what runs to a plan: a checked transition, and when each action is done."""

    transition: Transition
    schedule: Schedule

    @property
    def starts(self) -> int:
        """How many instances, or shares that services take in turn, start and do not go again."""
        return sum(len(a.prepared) for a in self.transition.actions if not a.is_temporary)

    @property
    def temporary(self) -> int:
        """How many instances start that go again."""
        return sum(len(a.prepared) for a in self.transition.actions if a.is_temporary)

    @property
    def seconds(self) -> Fraction:
        """How long it takes, by assumed durations."""
        return self.schedule.makespan_s


def change_to(
    now: Deployment,
    plan: Plan,
    *,
    regrouped: bool = False,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> Change | Impossible:
    """Find the way from what runs to a plan on as few GPUs, so that most of what runs is kept.

    Of all plans that cost least that is the nearest (`cms.fleet.placement.place_plan`), unless no
    way to it is found. Every service keeps the smaller of its old and its new rate at every moment.
    A plan whose services share GPUs in time stays as it was made. If `regrouped` it has to be this
    plan, of which only is chosen anew which instances share a GPU. There are at most `max_parallel`
    actions at once; the time limit is in seconds.
    """
    if isinstance(plan.serving, SharedServing):
        reorganised = reorganise(now, plan)
        if isinstance(reorganised, Impossible):
            return reorganised
        return Change(reorganised, schedule(reorganised, durations, max_parallel))
    limits = Limits(inf if time_limit is None else time_limit, cancel)

    def way(to: DesiredState) -> Transition | Impossible:
        left = None if time_limit is None else limits.left
        return transition(
            now, to, durations=durations, max_parallel=max_parallel, seed=seed, time_limit=left,
            cancel=cancel,
        )  # fmt: skip

    found: Transition | Impossible | None = None
    if not regrouped:
        half = None if time_limit is None else time_limit / 2  # what is left is for the way
        near = place_plan(plan, now, time_limit=half, cancel=cancel, seed=seed)
        if isinstance(near, PlacementInfeasible):
            return Impossible(near.reasons, near.proof)
        found = way(near.wanted)
    if found is None or isinstance(found, Impossible):
        found = way(desired_state(plan))
    if isinstance(found, Impossible):
        return found
    return Change(found, schedule(found, durations, max_parallel))


def place_first(fleet: Deployment, plan: Plan) -> Deployment | PlacementInfeasible | Impossible:
    """Put a plan on empty GPUs."""
    if isinstance(plan.serving, SharedServing):
        found = reorganise(fleet, plan)
        return found if isinstance(found, Impossible) else found.target
    placed = place(desired_state(plan), fleet)
    return placed if isinstance(placed, PlacementInfeasible) else placed.deployment


def count_gpus(deployment: Deployment) -> int:
    """Count the GPUs with managed work."""
    return sum(map(has_our_work, deployment.gpus()))
