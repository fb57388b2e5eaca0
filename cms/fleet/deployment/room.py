"""What is free on GPUs in use: slices, the largest instance that fits, what fragmentation costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ..hardware import Gpu, Layout, Profile
from .instance import Mode, StartSource
from .model import FleetGpu, FleetNode

__all__ = ["Fragmentation", "Room", "fragmentation", "room_of"]


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on a GPU.

    Parameters
    ----------
    memory, compute : int
        Free slices.
    largest : str or None
        The largest profile of which one more instance fits; None if none does.
    """

    memory: int
    compute: int
    largest: str | None


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What is lost because free slices of a node do not lie together.

    Parameters
    ----------
    profile : str
    together : int
        How many instances the free slices of the node's GPUs would hold if they were moved
        together: whole GPUs, and what is left of one.
    fitting : int
        How many fit where the slices are.
    """

    profile: str
    together: int
    fitting: int

    @property
    def cost(self) -> int:
        """Instances that are lost."""
        return self.together - self.fitting


def room_of(card: FleetGpu) -> Room | None:
    """Return what is free on a GPU; None if it is not cut by MIG or its starts are not known.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import Instance
    >>> held = Instance("1g.10gb", 0), Instance("3g.40gb", 4)
    >>> room_of(FleetGpu("a", 0, get_gpu("a100-80gb"), instances=held))
    Room(memory=3, compute=3, largest='2g.20gb')
    """
    if card.mode is not Mode.MIG or card.start_source is StartSource.UNKNOWN:
        return None
    return _room(card.gpu, card.layout)


@lru_cache(maxsize=4096)
def _room(gpu: Gpu, layout: Layout) -> Room:
    taken = [gpu.profile(place.profile) for place in layout]
    memory = gpu.memory_slices - sum(each.memory for each in taken)
    compute = gpu.compute_slices - sum(each.compute for each in taken)
    fits = (name for name in _largest_first(gpu) if gpu.room(layout, name))
    return Room(memory, compute, next(fits, None))


def _largest_first(gpu: Gpu) -> list[str]:
    def size(name: str) -> tuple[int, int]:
        profile = gpu.profile(name)
        return -profile.memory, -profile.compute

    return sorted(gpu.base_profiles, key=size)


@lru_cache(maxsize=16384)
def _fitting(gpu: Gpu, layout: Layout, profile: str) -> int:
    most = gpu.profile(profile).max if gpu.room(layout, profile) else 0
    while most and gpu.place({profile: most}, around=layout) is None:
        most -= 1
    return most


def fragmentation(node: FleetNode) -> tuple[Fragmentation, ...]:
    """Say which instances a node lacks because its free slices lie apart.

    Only GPUs cut by MIG whose starts are known count; those of one type are taken together.

    Returns
    -------
    tuple of Fragmentation
        The profiles of which something is lost, the largest first.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import Instance
    >>> held = Instance("1g.10gb", 1), Instance("1g.10gb", 5)
    >>> cards = [FleetGpu("a", index, get_gpu("a100-80gb"), instances=held) for index in range(2)]
    >>> for lost in fragmentation(FleetNode("a", tuple(cards))):
    ...     print(lost.cost, lost)
    1 Fragmentation(profile='7g.80gb', together=1, fitting=0)
    1 Fragmentation(profile='4g.40gb', together=1, fitting=0)
    3 Fragmentation(profile='3g.40gb', together=3, fitting=0)
    2 Fragmentation(profile='2g.20gb', together=4, fitting=2)
    """
    by_type: dict[str, list[FleetGpu]] = {}
    for card in node.gpus:
        if room_of(card) is not None:
            by_type.setdefault(card.gpu.key, []).append(card)
    found: list[Fragmentation] = []
    for _, cards in sorted(by_type.items()):
        gpu, layouts = cards[0].gpu, [card.layout for card in cards]
        for name in _largest_first(gpu):
            together = _together(gpu, [_room(gpu, layout) for layout in layouts], gpu.profile(name))
            fitting = sum(_fitting(gpu, layout, name) for layout in layouts)
            if together > fitting:
                found.append(Fragmentation(name, together, fitting))
    return tuple(found)


def _together(gpu: Gpu, rooms: Iterable[Room], profile: Profile) -> int:
    free = list(rooms)
    memory, compute = sum(each.memory for each in free), sum(each.compute for each in free)
    whole = min(memory // gpu.memory_slices, compute // gpu.compute_slices)
    memory -= whole * gpu.memory_slices
    compute -= whole * gpu.compute_slices
    part = min(memory // profile.memory, compute // profile.compute if profile.compute else memory)
    return whole * profile.max + min(part, profile.max)
