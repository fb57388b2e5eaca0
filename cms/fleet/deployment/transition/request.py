"""What a transition is asked for, and what is refused before the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from ....errors import InvalidProblem
from ....solving.solution import Proof
from ....values.numbers import Number, shown
from ...placement import PlacementConstraints, PlacementInfeasible, place, placement_constraints
from ...placement.program import Limits
from ..checking import check_deployment
from ..difference import with_fixed
from ..model import Deployment
from ..recounting import recounted, with_known_curves
from ..wanted import DesiredState
from .floors import floors_of
from .kept import in_common
from .model import Floor, Kept
from .outcome import Impossible
from .whole_gpus import PartitioningTool, align_target

__all__ = ["TransitionEnds", "find_ends", "find_floors"]


@dataclass(frozen=True)
class TransitionEnds:
    """Between what a transition is searched: supplies counted alike, and the target placed."""

    start: Deployment
    target: Deployment
    kept: Kept
    is_late: bool  # whether what an opening gets is decided when it is free


def find_ends(
    start: Deployment,
    to: DesiredState | Deployment,
    tool: PartitioningTool,
    limits: Limits,
    wishes: PlacementConstraints | None = None,
    *,
    as_grouped: bool = False,
) -> TransitionEnds | Impossible:
    """Count supplies by the target's rule, and place what is wanted as the tool can."""
    is_whole, to = tool is not PartitioningTool.NVIDIA_SMI, with_known_curves(to, start)
    if isinstance(to, Deployment):
        to = with_fixed(to, start)
        _require_possible(start, to)
        works = [each.work for _, each in to.instances() if each.work is not None]
        start = recounted(start.with_uuids_of(to), to.services, to.rule, works)
        same = in_common(start, to, places=True)
        target = align_target(start, to, clears=False) if is_whole else to
        return TransitionEnds(start, target, Kept(same, same, Proof.CHECKED, places=True), False)
    start = recounted(start, to.services, to.rule, [kind.work for kind in to.counts])
    wishes = placement_constraints(to.services) if wishes is None else wishes
    placed = place(
        to, start, constraints=wishes, as_grouped=as_grouped, whole_gpus=is_whole,
        time_limit=None if limits.seconds == inf else limits.left, cancel=limits.cancel,
    )  # fmt: skip
    if isinstance(placed, PlacementInfeasible):
        return Impossible(placed.reasons, placed.proof)
    kept, target = Kept(placed.kept, placed.most_kept, placed.proof), placed.deployment
    if is_whole:
        target = align_target(start, target, clears=not tool.drains_nodes)
    return TransitionEnds(start, target, kept, not (wishes or as_grouped))


def find_floors(
    ends: TransitionEnds, share: Number, shares: Mapping[str, Number] | None
) -> Mapping[str, Floor] | Impossible:
    """Return what services keep; impossible where the target gives less."""
    found = floors_of(ends.start, ends.target, share, shares)
    for name, each in found.items():
        if each.rps and (has := ends.target.capacity(name)) < each.rps:
            reason = f"{name} is to keep {each}, and has {shown(has)} requests/s in the end"
            return Impossible((reason,), Proof.CHECKED)
    if ends.kept.places:
        # what it asks for is what floors and the end are held against
        for fault in check_deployment(ends.target):
            raise InvalidProblem(
                f"the target gives less than it asks for: {fault}; expected instances that do, "
                "or a lower rate there"
            )
    return found


def _require_possible(start: Deployment, target: Deployment) -> None:
    """A target that is to be reached as it stands is of the same GPUs."""
    for what, side in (("start", start), ("target", target)):
        for fault in check_deployment(side):
            if fault.kind != "capacity":
                raise InvalidProblem(f"the {what} cannot be as it is written: {fault}")
    old, new = ({card.name: card for card in side.gpus()} for side in (start, target))
    if alone := sorted(old.keys() ^ new.keys()):
        has, lacks = ("start", "target") if alone[0] in old else ("target", "start")
        more = f" (and {len(alone) - 1} more)" if len(alone) > 1 else ""
        raise InvalidProblem(
            f"GPU {alone[0]} is in the {has} and not in the {lacks}{more}; expected the same GPUs "
            "on both sides, those that stay empty as well"
        )
    for name in old:
        one, other = old[name], new[name]
        for was, becomes in ((one.gpu.key, other.gpu.key), (one.uuid, other.uuid)):
            if None not in (was, becomes) and was != becomes:
                raise InvalidProblem(
                    f"GPU {name} is {was} in the start and {becomes} in the target; expected the "
                    "same GPUs"
                )
    drivers = {node.name: node.driver for node in target.nodes}
    for node in start.nodes:
        if None not in (node.driver, drivers[node.name]) and node.driver != drivers[node.name]:
            raise InvalidProblem(
                f"node {node.name!r} has driver {node.driver} in the start and "
                f"{drivers[node.name]} in the target; expected the same one"
            )
