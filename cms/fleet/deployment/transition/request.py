"""What a transition is asked for, the floors of services, and what is refused before the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ....errors import InvalidOption, InvalidProblem
from ....solving.solution import Proof
from ....values.frozen import FrozenMap
from ....values.numbers import Number, exact, shown
from ...placement import PlacementConstraints, PlacementInfeasible, place, placement_constraints
from ...placement.program import Limits
from ..checking import check_deployment
from ..difference import with_fixed
from ..model import Deployment
from ..recounting import recounted, with_known_curves
from ..wanted import DesiredState
from .kept import in_common
from .model import Floor, Kept
from .outcome import Impossible
from .whole_gpus import PartitioningTool, align_target

__all__ = ["TransitionEnds", "find_ends", "find_floors", "floors_of"]


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
    drivers = [{node.name: node.driver for node in side.nodes} for side in (start, target)]
    for name, card in old.items():
        end = new[name]
        pairs: tuple[tuple[str, str | None, str | None], ...] = (
            (f"GPU {name} is", card.gpu.key, end.gpu.key),
            (f"GPU {name} is", card.uuid, end.uuid),
            (f"node {card.node!r} has driver", drivers[0][card.node], drivers[1][card.node]),
        )
        for what, was, becomes in pairs:
            if None not in (was, becomes) and was != becomes:
                raise InvalidProblem(
                    f"{what} {was} in the start and {becomes} in the target; expected the same"
                )


def floors_of(
    start: Deployment,
    target: Deployment,
    share: Number = 1,
    shares: Mapping[str, Number] | None = None,
) -> FrozenMap[str, Floor]:
    """Return the floor of each service.

    `start`, `target`: With supplies counted alike (`recounted`). `share`: Of the smaller of the old
    and the new rate; 1 is 100 %. Default 1. `shares`: Shares of single services.

    Returns
    -------
    FrozenMap
        ``{service: floor}``. Never above what a service has today. A service that comes or goes
        has nothing to keep; one whose old rate is 0, so not known, keeps the share of what it has
        today.

    InvalidOption if a share is negative, or of a service that is on neither side.

    Examples
    --------
    >>> from cms.fleet import Service
    >>> before = Deployment((), (Service("chat", "m", 200), Service("old", "m", 10)))
    >>> after = Deployment((), (Service("chat", "m", 180),))
    >>> for name, floor in floors_of(before, after, "0.9").items():
    ...     print(name, floor)
    chat 0 requests/s (all it has today, less than 90 % of the smaller of 200 and 180 requests/s)
    old 0 requests/s (the service goes)
    """
    shares = shares or {}
    old = {service.name: service for service in start.services}
    new = {service.name: service for service in target.services}
    names = sorted({*old, *new})
    for name in shares:
        if name not in names:
            raise InvalidOption(
                f"a floor is given for the service {name!r}; expected one of {', '.join(names)}"
            )
    floors = {}
    for name in names:
        own = exact(shares.get(name, share), f"the floor of {name}", error=InvalidOption)
        if name not in new:
            floors[name] = Floor(Fraction(0), "the service goes")
        elif name not in old:
            floors[name] = Floor(Fraction(0), "the service comes")
        else:
            today, rate = start.capacity(name), new[name].rate_rps
            before = old[name].rate_rps or today
            rps = own * min(before, rate)
            note = "" if old[name].rate_rps else ", the first being all it has today"
            what = f"{shown(before)} and {shown(rate)} requests/s{note}"
            reason = f"{shown(own * 100)} % of the smaller of {what}"
            if today < rps:
                rps, reason = today, f"all it has today, less than {reason}"
            floors[name] = Floor(rps, reason)
    return FrozenMap(floors)
