"""What is free on GPUs in use: slices, the largest instance that fits, what fragmentation costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ..hardware import Gpu, Layout, Profile
from .instance import Mode, StartSource
from .model import FleetGpu, FleetNode


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on a GPU, in slices."""

    memory: int
    compute: int
    largest: str | None  # profile of which one more instance fits


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What is lost because free slices of a node do not lie together."""

    profile: str
    together: int  # instances that fit if the free slices were moved together
    fitting: int  # instances that fit where the slices are

    @property
    def cost(self) -> int:
        """Instances that are lost."""
        return self.together - self.fitting


def room_of(card: FleetGpu) -> Room | None:
    """Return what is free on a GPU; None if it is not cut by MIG or its starts are not known."""
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
    sizes = {name: gpu.profile(name) for name in gpu.base_profiles}
    return sorted(sizes, key=lambda name: (-sizes[name].memory, -sizes[name].compute))


@lru_cache(maxsize=16384)
def _fitting(gpu: Gpu, layout: Layout, profile: str) -> int:
    most = gpu.profile(profile).max if gpu.room(layout, profile) else 0
    while most and gpu.place({profile: most}, around=layout) is None:
        most -= 1
    return most


def fragmentation(node: FleetNode) -> tuple[Fragmentation, ...]:
    """Say which instances a node lacks because its free slices lie apart, the largest first.

    Only GPUs cut by MIG whose starts are known count; those of one type are taken together.
    """
    known = [card for card in node.gpus if room_of(card) is not None]
    found: list[Fragmentation] = []
    for gpu in sorted({card.gpu for card in known}, key=lambda gpu: gpu.key):
        layouts = [card.layout for card in known if card.gpu.key == gpu.key]
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
