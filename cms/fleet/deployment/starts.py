"""Where the instances of a plan's GPU start: decided here, for pictures and fleets alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import InvalidSchedule

if TYPE_CHECKING:
    from ..hardware import Gpu, Layout, Placement
    from ..serving import GpuGroup, Instances
    from .spots import Places


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


@lru_cache(65536)
def starts_beside(
    gpu: Gpu, counts: tuple[tuple[str, int], ...], around: Places, there: Places, idle: Places
) -> tuple[Places, Places]:
    """Choose the starts of new instances on a GPU in use, and say which idle instances stay.

    Most of them where an instance is, then most idle ones left, then the longest run of free
    slices, then the first in order.

    Parameters
    ----------
    gpu : Gpu
    counts : tuple of (str, int)
        How many new ones of each profile.
    around : Places
        What must stay.
    there : Places
        What may be used again or go.
    idle : Places
        What of that may stay as well.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> a100, kept = gpu("a100-80gb"), (("1g.10gb", 5),)
    >>> starts_beside(a100, (("1g.10gb", 1),), kept, (), ())
    ((('1g.10gb', 6),), ())
    """
    best: tuple[tuple[int, int, int], Places, Places] | None = None
    for layout in gpu.layouts_of(dict(counts), around=around):
        reused = sum(place in there for place in layout)
        held = [*around, *layout]
        stay = []
        for place in idle:
            if place not in layout and gpu.is_layout([*held, place]):
                held.append(place)
                stay.append(place)
        score = reused, len(stay), _free_run(gpu, held)
        if best is None or score > best[0]:
            best = score, tuple((p.profile, p.start) for p in layout), tuple(stay)
    if best is None:
        raise AssertionError(f"no starts for {dict(counts)} beside {around} on {gpu.key}")
    return best[1], best[2]


def _free_run(gpu: Gpu, held: Iterable[tuple[str, int]]) -> int:
    taken = {
        slot
        for profile, start in held
        for slot in range(start, start + gpu.profile(profile).memory)
    }
    longest = run = 0
    for slot in range(gpu.memory_slices):
        run = 0 if slot in taken else run + 1
        longest = max(longest, run)
    return longest
