"""Where new instances start on a GPU in use."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..hardware import Gpu
    from .spots import Places


@lru_cache(65536)
def starts_beside(
    gpu: Gpu, counts: tuple[tuple[str, int], ...], around: Places, there: Places, idle: Places
) -> tuple[Places, Places]:
    """Choose the starts of new instances on a GPU in use, and say which idle instances stay.

    Most of them where an instance is, then most idle ones left, then the longest run of free
    slices, then the first in order. `around` must stay, what is `there` may be used again or go,
    and of that `idle` may stay as well.
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
