"""Where the instances of a plan's GPU start, for pictures and fleets alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import InvalidSchedule

if TYPE_CHECKING:
    from ..hardware import Gpu, Layout, Placement
    from .plan import GpuGroup, Instances


def layout_of(gpu: Gpu, counts: Mapping[str, int]) -> Layout:
    """Choose the starts of instances that are alone on a GPU.

    Parameters
    ----------
    gpu : Gpu
    counts : Mapping[str, int]
        How many of each profile.

    Returns
    -------
    Layout
        The first of `Gpu.layouts_of`, in the order of starts.

    Raises
    ------
    InvalidSchedule
        If they have no place, with the reason.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> print(*layout_of(gpu("a100-80gb"), {"3g.40gb": 1, "2g.20gb": 2}))
    2g.20gb@0 2g.20gb@2 3g.40gb@4
    """
    layout = gpu.place(counts)
    if layout is None:
        raise InvalidSchedule(f"instances that have no place: {gpu.why_not(counts)}")
    return layout


def placed_instances(gpu: Gpu, group: GpuGroup) -> tuple[tuple[Placement, Instances], ...]:
    """Place the instances of one of a plan's GPUs that are cut alike.

    Parameters
    ----------
    gpu : Gpu
    group : GpuGroup
        Its instances are of this GPU, cut up by MIG.

    Returns
    -------
    tuple of (Placement, Instances)
        One for each instance, in the order of starts. Of one profile, those that are first in the
        group start first.

    Raises
    ------
    InvalidSchedule
        If they have no place.

    Examples
    --------
    >>> from cms import Configuration
    >>> from cms.fleet import gpu
    >>> from cms.fleet.serving import GpuGroup, Instances
    >>> instances = Instances("b", "1g.6gb", 1), Instances("c", "2g.12gb", 1)
    >>> group = GpuGroup("a30-24gb", Configuration({"b": 1, "c": 1}), instances, count=4)
    >>> for placement, instances in placed_instances(gpu("a30-24gb"), group):
    ...     print(placement, instances.block)
    2g.12gb@0 c
    1g.6gb@2 b
    """
    waiting: dict[str, list[Instances]] = {}
    for instances in group.instances:
        own = waiting.setdefault(gpu.profile(instances.profile).name, [])
        own.extend([instances] * instances.count)
    counts = {profile: len(own) for profile, own in waiting.items()}
    return tuple((place, waiting[place.profile].pop(0)) for place in layout_of(gpu, counts))
