"""Which instances can be on one GPU, from the rules alone: the oracles of the enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from cms.fleet.hardware import Gpu, Layout, Placement, Profile

_MEDIA = {"me", "me.all"}


def is_valid(device: Gpu, chosen: Iterable[Placement]) -> bool:
    """Whether these places of the empty GPU can all be taken at once."""
    placed = [(device.profile(name), start) for name, start in chosen]
    slices = [s for profile, start in placed for s in range(start, start + profile.memory)]
    counts = Counter(profile.name for profile, _ in placed)
    return (
        len(slices) == len(set(slices))
        and all(count <= device.profile(name).max for name, count in counts.items())
        and sum(profile.compute for profile, _ in placed) <= device.compute_slices
        and sum(bool(_MEDIA & set(profile.attributes)) for profile, _ in placed) <= 1
    )


def every_layout(device: Gpu, names: Iterable[str]) -> list[frozenset[Placement]]:
    """Every layout, the empty one first: all subsets of all places are tried."""
    profiles = [device.profile(name) for name in names]
    places = [Placement(p.name, start) for p in profiles for start in p.starts]
    masks = [((1 << p.memory) - 1) << start for p in profiles for start in p.starts]
    found = []
    for size in range(len(places) + 1):
        for chosen in itertools.combinations(range(len(places)), size):
            # a sum of masks has as many bits as they have only if none overlap; asked first: quick
            own = [masks[i] for i in chosen]
            if sum(own).bit_count() == sum(mask.bit_count() for mask in own):
                layout = frozenset(places[i] for i in chosen)
                if is_valid(device, layout):
                    found.append(layout)
        if size and not any(len(layout) == size for layout in found):
            break  # what is larger holds one of this size
    return found


def fits(device: Gpu, counts: Mapping[str, int], around: Iterable[Placement] = ()) -> bool:
    """Decide by plain backtracking over free slices, from the rules alone."""
    profiles = [p for p in device.profiles for _ in range(counts.get(p.name, 0))]
    there = [(device.profile(name), start) for name, start in around]
    both = [*profiles, *(p for p, _ in there)]
    if any(both.count(p) > p.max for p in profiles):
        return False
    if sum(p.compute for p in both) > device.compute_slices:
        return False
    if sum(p.memory for p in both) > device.memory_slices:
        return False
    if profiles and sum(bool(_MEDIA & set(p.attributes)) for p in both) > 1:
        return False

    def rest(left: list[Profile], free: frozenset[int]) -> bool:
        if not left:
            return True
        for start in left[0].starts:
            slices = set(range(start, start + left[0].memory))
            if slices <= free and rest(left[1:], free - slices):
                return True
        return False

    taken = {s for p, start in there for s in range(start, start + p.memory)}
    return rest(profiles, frozenset(range(device.memory_slices)) - taken)


def assert_valid(device: Gpu, layout: Layout) -> None:
    for place in layout:
        profile = device.profile(place.profile)
        assert place.start in profile.starts
        assert place.start + profile.memory <= device.memory_slices
    assert is_valid(device, layout)


@st.composite
def small_cards(draw: st.DrawFn) -> Gpu:
    """Cards that nobody has built: any sizes, starts and maxima on a few slices."""
    compute_slices, memory_slices = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    profiles = []
    for index in range(draw(st.integers(1, 3))):
        memory = draw(st.integers(1, memory_slices))
        starts = draw(
            st.sets(st.integers(0, memory_slices - memory), min_size=1, max_size=3).map(sorted)
        )
        profiles.append(
            Profile(
                name=f"p{index}",
                family=f"{index}g",
                id=index,
                compute=draw(st.integers(1, compute_slices)),
                memory=memory,
                starts=tuple(starts),
                max=draw(st.integers(1, 3)),
                attributes=draw(st.sampled_from([(), ("me",), ("me.all",), ("gfx",)])),
            )
        )
    return Gpu("card", (), (), "none", compute_slices, memory_slices, None, tuple(profiles), (), 1)
