"""Whether counts or placed instances fit a GPU, by trying, over the stand-ins' own table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tests.fleet.stand_ins.placement import MODELS, Profile, trouble

Layout = tuple[tuple[str, int], ...]


@cache
def profiles(model: str) -> dict[str, Profile]:
    """The profiles of a model by name."""
    return {profile.name: profile for profile in MODELS[model].profiles}


def fault(model: str, layout: Layout) -> str:
    """Why a GPU of this model cannot be cut like this; empty if it can."""
    for name, _ in layout:
        if name not in profiles(model):
            return f"{model} has no profile {name}"
    return trouble(MODELS[model], [(profiles(model)[name], start) for name, start in layout])


def place(model: str, counts: Mapping[str, int]) -> Layout | None:
    """The first layout with these counts, larger profiles first; None if there is none."""
    return _place(model, tuple(sorted((n, c) for n, c in counts.items() if c)))


@cache
def _place(model: str, counts: tuple[tuple[str, int], ...]) -> Layout | None:
    known = profiles(model)
    if any(name not in known or count > known[name].most for name, count in counts):
        return None
    larger = sorted(counts, key=lambda item: (-known[item[0]].size, item[0]))
    names = [name for name, count in larger for _ in range(count)]

    def grow(layout: Layout) -> Layout | None:
        if len(layout) == len(names):
            return layout
        name = names[len(layout)]
        # Instances of one profile are alike: their starts grow.
        least = layout[-1][1] + 1 if layout and layout[-1][0] == name else 0
        for start in (start for start in known[name].starts if start >= least):
            longer = (*layout, (name, start))
            if not fault(model, longer) and (found := grow(longer)) is not None:
                return found
        return None

    return grow(())


def counts_of(layout: Layout) -> dict[str, int]:
    """How many instances of each profile a layout has."""
    names = [name for name, _ in layout]
    return {name: names.count(name) for name in sorted(set(names))}
