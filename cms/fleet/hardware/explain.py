"""Why a multiset of instances cannot be placed, in words a person can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

from .enumeration import Counts, Table, first_layouts
from .profile import Placement, Profile

#: Instances with their starts.
Placed: TypeAlias = Sequence[tuple[Profile, int]]


def fault(gpu: str, table: Table, placed: Placed) -> str:
    """Say which rule some instances placed on a whole GPU break; nothing if they are a layout.

    The rules are read off the profiles here, not asked of the enumeration.
    """
    for profile, start in placed:
        if start not in profile.starts:
            return f"{profile.name} starts at {_or(profile.starts)}, not at {start}"
        if start + profile.memory > table.memory_slices:
            return f"{profile.name}@{start} ends beyond the {table.memory_slices} memory slices"
    for (one, at), (two, other) in combinations(placed, 2):
        if max(at, other) < min(at + one.memory, other + two.memory):
            return f"{one.name}@{at} and {two.name}@{other} share memory slices"
    for profile, count in Counter(profile for profile, _ in placed).items():
        if count > profile.max:
            return f"{count} x {profile.name}: at most {profile.max}"
    if sum(profile.has_media_engines for profile, _ in placed) > 1:
        return "at most one instance with media engines (+me)"
    needed = sum(profile.compute for profile, _ in placed)
    if needed > table.compute_slices:
        return f"its instances take {needed} compute slices, {gpu} has {table.compute_slices}"
    return ""


def reason(
    gpu: str, profiles: tuple[Profile, ...], table: Table, counts: Counts, there: Placed = ()
) -> str:
    """Say why a multiset, at least one of each of these profiles, cannot be placed beside `there`.

    `table` is what the other instances leave of the GPU. The answer is every sum that is exceeded;
    where none is, the smallest part of the multiset for which no starts work, with the starts its
    profiles have.
    """
    wanted = tuple(zip(profiles, counts, strict=True))
    own = Counter(profile for profile, _ in there)
    reasons = [
        f"{_list([(profile, count)])}: at most {profile.max} on one {gpu}"
        + (f", which has {own[profile]}" if own[profile] else "")
        for profile, count in wanted
        if count + own[profile] > profile.max
    ]
    media = [(profile, count) for profile, count in wanted if profile.has_media_engines]
    holding = [place for place in there if place[0].has_media_engines]
    kinds = {profile for profile, _ in (*media, *holding)}
    if media and sum(count for _, count in media) + len(holding) > 1 and len(kinds) > 1:
        reasons.append(
            f"{_list(media)}: at most one instance with media engines (+me) on one {gpu}"
            + (f", which has {_places(holding)}" if holding else "")
        )
    taken = sum(profile.memory for profile, _ in there)
    for what, total, sizes in (
        ("compute", table.compute_slices, [profile.compute for profile in profiles]),
        ("memory", table.memory_slices - taken, [profile.memory for profile in profiles]),
    ):
        needed = sum(count * size for count, size in zip(counts, sizes, strict=True))
        if needed > total:
            terms = " + ".join(f"{n} x {size}" for n, size in zip(counts, sizes, strict=True))
            verb = "takes" if sum(counts) == 1 else "take"
            reasons.append(
                f"{_list(wanted)} {verb} {needed} {what} slices ({terms}), "
                f"{gpu} has {total}{_beside(there)}"
            )
    if reasons:
        return "; ".join(reasons)
    placeable = first_layouts(table)
    for i in range(len(counts)):
        while counts[i]:
            fewer = (*counts[:i], counts[i] - 1, *counts[i + 1 :])
            if not any(fewer) or fewer in placeable:
                break
            counts = fewer
    stuck = [(p, count) for p, count in zip(profiles, counts, strict=True) if count]
    rules = "; ".join(
        f"{profile.name} takes {profile.memory} of the {table.memory_slices} memory slices of "
        f"{gpu} and starts at {_or(profile.starts)}"
        for profile, _ in stuck
    )
    return (
        f"the slices would suffice, but no starts work for {_list(stuck)}{_beside(there)}: {rules}"
    )


def _list(wanted: Iterable[tuple[Profile, int]]) -> str:
    return " + ".join(
        f"{count} x {profile.name}" if count > 1 else profile.name for profile, count in wanted
    )


def _places(there: Placed) -> str:
    return ", ".join(str(Placement(profile.name, start)) for profile, start in there)


def _beside(there: Placed) -> str:
    return f" beside {_places(there)}" if there else ""


def _or(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else f"{last} only"
