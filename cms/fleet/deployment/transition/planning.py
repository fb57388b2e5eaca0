"""From what runs to what is wanted: a transition on the fewest spare GPUs that were found to do."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Literal

from ....errors import CmsError, InvalidOption
from ....solving.solution import Proof
from ....values.numbers import Number, shown
from ...placement import PlacementConstraints
from ...placement.program import Limits
from ..difference import with_fixed
from ..instance import State
from ..model import Deployment
from ..wanted import DesiredState
from .arriving import Impossible, arrived, checked
from .asking import Asked, Ends
from .durations import Durations
from .kept import proved_kept
from .model import Action, Floor, Spare, Transition, most_gpus
from .necessity import find_frozen
from .ordering import sequences
from .shortening import shortened
from .state import Fleet
from .whole_gpus import PartitioningTool, transition_of_whole_gpus

__all__ = ["transition"]

#: Maximum number of additional actions for less time.
_MORE_ACTIONS = 2
#: Where it is impossible, these shares of the floors are tried, each from a number of beginnings.
_LOWER, _TRIES = tuple(Fraction(tenths, 10) for tenths in (9, 8, 7, 5)), 3
#: Up to this number of GPUs what could stay is given up, one instance at a time, before another GPU
#: is borrowed: 4 of 1,000 drawn pairs of A30s need one less for that.
_FEW_GPUS = 4


def transition(
    start: Deployment,
    to: DesiredState | Deployment,
    *,
    floor: Number = 1,
    floors: Mapping[str, Number] | None = None,
    spare: int | Literal["auto"] = "auto",
    as_grouped: bool = False,
    wishes: PlacementConstraints | None = None,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    seed: int = 0,
    restarts: int | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
    tool: PartitioningTool | str = PartitioningTool.NVIDIA_SMI,
) -> Transition | Impossible:
    """Plan the way from what runs to what is wanted, above all floors at every moment.

    `start`: What runs now. `to`: What is wanted: then it is chosen here what lies where, so that
    most of what runs is kept, and what a place gets is decided when it is free. Or a target that is
    to be reached as it stands. `floor`: What each service keeps, as a share of the smaller of its
    old and its new rate; see :func:`floors_of`. Default 1. `floors`: Shares of single services.
    `spare`: Maximum number of GPUs borrowed beyond the larger of the numbers before and after;
    "auto" takes as few as are found to do. `Transition.spare` says how many are proved to be
    needed. `as_grouped`: Whether GPUs are to hold what the plan's groups have. Default False.
    `wishes`: As in `place`. `durations`: What the order is made short for. `max_parallel`: Maximum
    number of actions at once. `seed`: Of what is random. `restarts`: Beginnings at random, for each
    number of spare GPUs; without one, 12, or 24 where whole GPUs are cut. `time_limit`: Seconds.
    `tool`: What cuts the GPUs: parts of one, or whole ones (``mig-parted``; ``gpu-operator`` and
    ``slurm``, which drain the node), where most of what stays is what they can leave alone: see
    :mod:`~cms.fleet.deployment.transition.whole_gpus`. Default "nvidia-smi".

    Returns
    -------
    Transition or Impossible
        What is impossible on the GPUs that may be used is proved so, or was only not found. A
        transition has passed `check_transition`. Its `start` has supplies counted by the target's
        rule and limits.

    InvalidOption if there is no such tool, or `spare` is negative. InvalidProblem if the start or
    the target cannot be as it is written, they are not of the same GPUs, or something that is not
    ours would have to go or stop.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, desired_state
    >>> from cms.fleet.placement import place
    >>> from cms.fleet.deployment.transition import check_transition
    >>> def wanted(name):
    ...     serving = load_instance(name).build_problem()
    ...     return desired_state(Plan(serving, solve(serving.problem)))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(8))
    >>> now = place(wanted("S1"), Deployment((FleetNode("a", cards),))).deployment
    >>> found = transition(now, wanted("S2"))
    >>> found.spare.count, check_transition(found)
    (0, ())
    """
    if tool not in (*PartitioningTool,):
        known = ", ".join(PartitioningTool)
        raise InvalidOption(f"the tool is {tool!r}; expected one of {known}")
    if isinstance(to, Deployment):
        to = with_fixed(to, start)
    tool = PartitioningTool(tool)
    is_whole = tool is not PartitioningTool.NVIDIA_SMI
    asked = Asked(
        start, to, floor, floors, spare, as_grouped, wishes, durations or Durations(),
        max_parallel, seed, (24 if is_whole else 12) if restarts is None else restarts,
        Limits(inf if time_limit is None else time_limit, cancel),
    )  # fmt: skip
    return transition_of_whole_gpus(asked, tool) if is_whole else _of_parts(asked)


def _of_parts(asked: Asked) -> Transition | Impossible:
    limits, seed = asked.limits, asked.seed
    goal = asked.ends(whole_gpus=False)
    if isinstance(goal, Impossible):
        return goal
    floors = asked.floors_between(goal.start, goal.target)
    if isinstance(floors, Impossible):
        return floors
    fleet = Fleet(goal.start, goal.target, floors, goal.is_late)
    before = most_gpus(goal.start, goal.target)
    free = len(fleet.cards) - before
    most = asked.most_spare(free)
    for count in range(most + 1):
        found = _look(fleet, before + count, asked)
        if found:
            fewest = min(map(len, found))
            done = [
                shortened(
                    goal.start, each, floors, before + count, asked.durations, asked.max_parallel
                )
                for each in found
                if len(each) <= fewest + _MORE_ACTIONS
            ]
            best = min(done, key=lambda each: (each.milliseconds, len(each.actions)))
            target, kept = arrived(goal.start, goal.target, best.actions)
            stays = goal.kept
            if stays.places:
                stays = replace(stays, count=kept)
            else:
                bound = stays.most, stays.proof
                stays = proved_kept(goal.start, target, kept, bound, limits)
            spare = best.gpus - before
            return checked(goal.start, target, floors, best.actions, spare, stays, limits)
        if limits.over:
            raise CmsError("no transition was found in time; expected a longer time limit")
    nothing = Transition(goal.start, goal.target, floors, (), Spare(most), goal.kept)
    if proved := find_frozen(nothing, most, limits):
        would_do = _what_would_do(goal, floors, before + most, seed, limits)
        return Impossible((proved[1], would_do), Proof.CHECKED, proved[0])
    reasons = [f"none was found with {most} spare GPU{'s' * (most != 1)}"]
    if most == free:
        reasons.append("the fleet has no more; lower floors would help most")
    states = [each.state for _, each in goal.start.instances() if each.work is not None]
    if begins := states.count(State.STARTING):
        what = "1 instance is" if begins == 1 else f"{begins} instances are"
        reasons.append(f"{what} still starting, and counted only once running: observe again then")
    return Impossible(tuple(reasons), Proof.NONE)


def _look(fleet: Fleet, most: int, asked: Asked) -> list[tuple[Action, ...]]:
    """Look for sequences; on few GPUs also for those that start again what could stay."""

    def look(there: Fleet) -> list[tuple[Action, ...]]:
        return sequences(
            there, most, seed=asked.seed, restarts=asked.restarts, durations=asked.durations,
            limits=asked.limits,
        )  # fmt: skip

    found = look(fleet)
    if found or most > _FEW_GPUS:
        return found
    others = (
        replace(fleet, given_up=(card, each))
        for card, each in fleet.start.instances()
        if each.is_managed and each.state is State.RUNNING
    )
    return [way for o in others if len(o.positions) > len(fleet.positions) for way in look(o)]


def _what_would_do(
    goal: Ends, asked: Mapping[str, Floor], most: int, seed: int, limits: Limits
) -> str:
    for lower in _LOWER:
        if limits.over:
            break
        floors = {name: replace(each, rps=each.rps * lower) for name, each in asked.items()}
        fleet = Fleet(goal.start, goal.target, floors, goal.is_late)
        if sequences(fleet, most, seed=seed, restarts=_TRIES, limits=limits):
            return f"with {shown(lower * 100)} % of the floors there is one"
    return "lower floors or more GPUs are needed"
