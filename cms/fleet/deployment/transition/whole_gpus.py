"""Tools that repartition whole GPUs: mig-parted, the GPU Operator, Slurm.

An instance is kept only where its GPU is to have as many instances of each profile as it has; there
only pods change. Any other GPU is emptied and repartitioned. The GPU Operator and Slurm change a
node at once, and drain it for that: all that works on the node stops meanwhile, and none of it is
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ....errors import InvalidProblem
from ...placement import PlacementConstraints, PlacementInfeasible, place, placement_constraints
from ..checking import has_our_work
from ..difference import pair_off
from ..instance import Instance, Mode, State
from ..model import Deployment, FleetGpu
from ..wanted import DesiredState

if TYPE_CHECKING:
    from .model import Transition


class PartitioningTool(StrEnum):
    """What repartitions GPUs."""

    NVIDIA_SMI = "nvidia-smi"  # parts of a GPU: see `transition`
    MIG_PARTED = "mig-parted"  # whole GPUs
    GPU_OPERATOR = "gpu-operator"  # whole GPUs, all of a node at once, after a drain
    SLURM = "slurm"  # the same

    @property
    def drains_nodes(self) -> bool:
        """Whether all of a node stops when one of its GPUs is repartitioned."""
        return self in (PartitioningTool.GPU_OPERATOR, PartitioningTool.SLURM)


def is_kept(now: Instance, then: Instance) -> bool:
    """Whether nothing has to happen to an instance."""
    if (now.profile, now.start, now.work, now.owner) != (
        then.profile, then.start, then.work, then.owner,
    ):  # fmt: skip
        return False
    return now.state is then.state or {now.state, then.state} == {State.STARTING, State.RUNNING}


def has_equal_counts(card: FleetGpu, end: FleetGpu) -> bool:
    """Whether a tool that counts instances leaves a GPU alone."""
    here, there = (Counter((e.profile, e.is_whole) for e in side.instances) for side in (card, end))
    return card.mode is end.mode is Mode.MIG and here == there and bool(here)


def align_target(start: Deployment, target: Deployment, *, clears: bool) -> Deployment:
    """Return a target as a tool that repartitions whole GPUs reaches it.

    What is wanted of a GPU that stays as it is cut is wanted of the instances that are there.
    `clears`: Whether a GPU on which nothing of ours works any more is cleared, and so is free.
    """
    cards: dict[tuple[str, int], FleetGpu] = {}
    others = {(card.node, card.index): card for card in target.gpus()}
    for card in start.gpus():
        end = others[card.node, card.index]
        held = (*card.foreign, *start.in_doubt(card))
        if has_equal_counts(card, end):
            end = replace(end, instances=_align(card, end), start_source=card.start_source)
            if clears and not held and has_our_work(card) and not has_our_work(end):
                end = card.with_instances(())
        elif card.mode is Mode.MIG or card.mode is not end.mode:
            for each in held:
                raise foreign_error(card, each, "would be cut anew")
        cards[card.node, card.index] = end
    return target.with_gpus(cards)


def _align(card: FleetGpu, end: FleetGpu) -> tuple[Instance, ...]:
    """Say what each instance is to do, as few of them as can be something else."""
    # what is there already; work at another place, which is kept where it is; what else is alike
    rules: tuple[Callable[[Instance, Instance], bool], ...] = (
        is_kept,
        lambda now, then: is_kept(replace(now, start=None), replace(then, start=None)),
        lambda now, then: (
            (now.profile, now.is_whole, now.owner, then.owner)
            == (then.profile, then.is_whole, None, None)
        ),
    )
    left, right = [*card.instances], [*end.instances]
    pairs = [pair for fits in rules for pair in pair_off(left, right, fits)]
    for each in left:
        raise foreign_error(card, each, "would be cut anew")
    return tuple(replace(now, work=then.work, state=then.state) for now, then in pairs)


def foreign_error(card: FleetGpu, instance: Instance, why: str) -> InvalidProblem:
    """Refuse to stop what is, or may be, foreign."""
    whose = "not ours" if not instance.is_managed else "perhaps another's"
    return InvalidProblem(
        f"{card.name} has {instance}, which is {whose}, and {why} as a whole; expected it to stay "
        "as it is cut (--tool nvidia-smi cuts parts of a GPU), or --reclaim"
    )


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
    gone = Counter((action.name, each) for action in transition.actions for each in action.removes)
    ends = {card.name: card for card in to.gpus()}
    return tuple(
        (card, each)
        for card in start.gpus()
        for each, _ in pair_off([*card.instances], [*ends[card.name].instances], is_kept)
        if each.is_managed and each.work is not None and gone[card.name, each]
    )
