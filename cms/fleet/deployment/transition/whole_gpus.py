"""Transitions by tools that can only cut whole GPUs anew: mig-parted, the GPU Operator, Slurm.

An instance goes on only where its GPU is to have as many instances of each profile as it has; there
only pods change. Any other GPU is emptied and cut anew. The GPU Operator and Slurm change a node at
once, and drain it for that: all that works on the node stops meanwhile, and none of it is kept.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from ....errors import CmsError
from ....solving.solution import Proof
from ...placement import PlacementConstraints, PlacementInfeasible, place, placement_constraints
from ...placement.program import Limits
from ..instance import Instance, StartSource
from ..model import Deployment, FleetGpu
from ..wanted import DesiredState
from .arriving import Impossible, arrived, checked
from .asking import Asked
from .durations import Durations
from .kept import in_common
from .model import Action, Kept, Spare, Transition, What, most_gpus
from .necessity import find_frozen
from .order import ordered, with_waits
from .shortening import Shortened, shortened
from .sides import goes_on
from .whole_gpus_goal import Goal, as_it_stays
from .whole_gpus_rules import walk
from .whole_gpus_way import Way

__all__ = ["PartitioningTool", "saved_by_parts", "transition_of_whole_gpus"]

#: Sequences to choose from.
_WANTED = 4


class PartitioningTool(StrEnum):
    """What cuts GPUs anew."""

    NVIDIA_SMI = "nvidia-smi"  # parts of a GPU: see `transition`
    MIG_PARTED = "mig-parted"  # whole GPUs
    GPU_OPERATOR = "gpu-operator"  # whole GPUs, all of a node at once, after a drain
    SLURM = "slurm"  # the same

    @property
    def drains_nodes(self) -> bool:
        """Whether all of a node stops when one of its GPUs is cut anew."""
        return self in (PartitioningTool.GPU_OPERATOR, PartitioningTool.SLURM)


def transition_of_whole_gpus(asked: Asked, tool: PartitioningTool) -> Transition | Impossible:
    """Plan the way from what runs to what is wanted, GPUs being cut anew as a whole.

    Work that begins or ends on an instance that stays is a restart of it, from idling or to idling.
    A GPU on which nothing of ours works any more is cleared, and so is free, where nothing else has
    to stop for that (`as_it_stays` with `clears`).

    `Spare.least` and `Kept.most` hold for all tools; how many stay at most where GPUs are cut as a
    whole is what :func:`~cms.fleet.placement.place` proves with ``whole_gpus=True``.
    """
    limits, by_node = asked.limits, tool.drains_nodes
    ends = asked.ends(whole_gpus=True)
    if isinstance(ends, Impossible):
        return ends
    start, is_late, places = ends.start, ends.is_late, ends.kept.places
    target = as_it_stays(start, ends.target, by_node=by_node, clears=not places)
    floors = asked.floors_between(start, target)
    if isinstance(floors, Impossible):
        return floors
    goal = Goal(start, target, floors, is_late, by_node)
    goals = [[goal]]
    if is_late and by_node:  # what the target has as it is cut stays, if there is a way at all
        goals = [[goal, Goal(start, target, floors, False, by_node)], [replace(goal, is_wide=True)]]
    before = most_gpus(start, target)
    free = len(goal.cards) - before
    most = asked.most_spare(free)
    tried = ((each, n) for some in goals for n in range(most + 1) for each in some)
    for own, count in tried:
        ways = _ways(own, before + count, asked.seed, asked.restarts, limits)
        if ways:
            best = min(
                (_in_order(own, way, asked.durations, asked.max_parallel) for way in ways),
                key=lambda each: (each.gpus, each.milliseconds, len(each.actions)),
            )
            return _answer(own, best.actions, max(0, best.gpus - before), limits, places=places)
        if limits.over:
            raise CmsError("no transition was found in time; expected a longer time limit")
    nothing = Transition(start, target, floors, (), Spare(most), ends.kept)
    if proved := find_frozen(nothing, most, limits):
        return Impossible((proved[1],), Proof.CHECKED, proved[0])
    reasons = [f"none was found with {most} spare GPU{'s' * (most != 1)}"]
    if tool.drains_nodes:
        reasons.append(f"{tool} drains a node to cut any GPU of it; mig-parted stops less at once")
    if most == free:
        reasons.append("the fleet has no more; lower floors would help most")
    return Impossible(tuple(reasons), Proof.NONE)


def _ways(goal: Goal, most: int, seed: int, restarts: int, limits: Limits) -> list[Way]:
    rng = random.Random(seed)
    found: list[Way] = []
    for attempt in range(1 + restarts):
        if len(found) == _WANTED or (attempt and limits.over):
            break
        way = walk(Way(goal, most), rng if attempt else None, limits)
        if way.is_done:
            found.append(way)
    return found


def _in_order(goal: Goal, way: Way, durations: Durations, max_parallel: int | None) -> Shortened:
    """Return the actions with their waits; where nodes change as a whole, in no better sequence."""
    if not any(way.groups):
        return shortened(goal.start, way.actions, goal.floors, way.peak, durations, max_parallel)
    actions = ordered(goal.start, way.actions, goal.floors, way.peak)
    turns = way.groups
    waits: dict[int, set[int]] = {}
    apart = [_apart(actions, turns, at) for at in range(len(actions))]
    for at, turn in enumerate(turns):
        waits.setdefault(turn, set()).update(actions[at].after, apart[at])
    # a node begins once all that any of its GPUs waits for has ended
    together = [
        {before for before in waits[turn] if turns[before] != turn}
        if turn
        else {*actions[at].after, *apart[at]}
        for at, turn in enumerate(turns)
    ]
    return Shortened(0, with_waits(actions, together), way.peak)


def _apart(actions: Sequence[Action], turns: Sequence[int], at: int) -> Iterator[int]:
    """Iterate over what comes before on a node that is drained for one of them: it stops all."""
    for before in range(at):
        is_drained = turns[at] or turns[before]
        if is_drained and turns[at] != turns[before] and actions[at].node == actions[before].node:
            yield before


def _answer(
    goal: Goal, actions: Sequence[Action], spare: int, limits: Limits, *, places: bool
) -> Transition:
    target, stays = arrived(goal.start, goal.target, actions)
    cut = {action.gpu for action in actions if action.what is What.REPARTITION}
    seen = {
        (card.node, card.index): replace(card, start_source=StartSource.OBSERVED)
        for card in target.gpus()
        if (card.node, card.index) in cut
    }
    target = target.with_gpus(seen)
    kept = Kept(stays, in_common(goal.start, target, places=places), Proof.CHECKED, places=places)
    return checked(goal.start, target, goal.floors, actions, spare, kept, limits)


def saved_by_parts(
    transition: Transition,
    to: DesiredState | Deployment,
    wishes: PlacementConstraints | None = None,
) -> tuple[tuple[FleetGpu, Instance], ...]:
    """Return instances that only a tool that cuts parts of a GPU would keep.

    `transition`: By a tool that cuts whole GPUs. `to`: What it was planned for. `wishes`: As in
    `place`.

    Returns
    -------
    tuple of (FleetGpu, Instance)
        GPUs of the start with instances that stop in the transition, and that `place` would keep
        if parts of GPUs could be cut; empty if it keeps no more of them.
    """
    start = transition.start
    if isinstance(to, DesiredState):
        placed = place(
            to, start, constraints=placement_constraints(to.services) if wishes is None else wishes
        )
        to = start if isinstance(placed, PlacementInfeasible) else placed.deployment
    gone: Counter[tuple[tuple[str, int], Instance]] = Counter(
        (action.gpu, each) for action in transition.actions for each in action.removes
    )
    ends = {(card.node, card.index): card for card in to.gpus()}
    found = []
    for card in start.gpus():
        left = list(ends[card.node, card.index].instances)
        for each in card.instances:
            then = next((other for other in left if goes_on(each, other)), None)
            if then is not None:
                left.remove(then)
                if (
                    each.is_managed
                    and each.work is not None
                    and gone[(card.node, card.index), each]
                ):
                    found.append((card, each))
    return tuple(found)
