"""Where the instances of a plan's GPU start, for pictures and fleets alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import InvalidSchedule

if TYPE_CHECKING:
    from ..hardware import Gpu, Layout, Placement
    from .plan import Instances, PlanGroup


def layout_of(gpu: Gpu, counts: Mapping[str, int]) -> Layout:
    """Choose the starts of so many instances of each profile, alone on a GPU: the first layout.

    InvalidSchedule, with the reason, if they have no place.
    """
    layout = gpu.place(counts)
    if layout is None:
        raise InvalidSchedule(f"instances that have no place: {gpu.why_not(counts)}")
    return layout


def placed_instances(gpu: Gpu, group: PlanGroup) -> tuple[tuple[Placement, Instances], ...]:
    """Place the instances of a GPU that MIG cuts up, one of a plan's group, in the order of starts.

    Of one profile, those that are first in the group start first. InvalidSchedule if they have no
    place.
    """
    waiting: dict[str, list[Instances]] = {}
    for instances in group.instances:
        own = waiting.setdefault(gpu.profile(instances.profile).name, [])
        own.extend([instances] * instances.count)
    counts = {profile: len(own) for profile, own in waiting.items()}
    return tuple((place, waiting[place.profile].pop(0)) for place in layout_of(gpu, counts))
