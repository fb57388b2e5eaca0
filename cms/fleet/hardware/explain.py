"""Why a multiset of instances cannot be placed, in words a person can act on."""

from __future__ import annotations

from collections.abc import Iterable

from .enumeration import Counts, Table, first_layouts
from .profile import Profile


def reason(gpu: str, profiles: tuple[Profile, ...], table: Table, counts: Counts) -> str:
    """Say why a multiset that cannot be placed cannot be placed.

    Parameters
    ----------
    gpu : str
        What to call the GPU.
    profiles : tuple of Profile
        Those of the multiset alone.
    table : Table
        Theirs.
    counts : Counts
        At least one of every profile.

    Returns
    -------
    str
        Every sum that is exceeded; where none is, the smallest part of the multiset for which no
        starts work, with the starts its profiles have.
    """
    wanted = tuple(zip(profiles, counts, strict=True))
    reasons = [
        f"{count} x {profile.name}: at most {profile.max} on one {gpu}"
        for profile, count in wanted
        if count > profile.max
    ]
    media = [(profile, count) for profile, count in wanted if profile.has_media_engines]
    if sum(count for _, count in media) > 1 and len(media) > 1:
        reasons.append(
            f"{_list(media)}: at most one instance with media engines (+me) on one {gpu}"
        )
    for what, total, sizes in (
        ("compute", table.compute_slices, [profile.compute for profile in profiles]),
        ("memory", table.memory_slices, [profile.memory for profile in profiles]),
    ):
        needed = sum(count * size for count, size in zip(counts, sizes, strict=True))
        if needed > total:
            terms = " + ".join(f"{n} x {size}" for n, size in zip(counts, sizes, strict=True))
            verb = "takes" if sum(counts) == 1 else "take"
            reasons.append(
                f"{_list(wanted)} {verb} {needed} {what} slices ({terms}), {gpu} has {total}"
            )
    return "; ".join(reasons) if reasons else _starts(gpu, profiles, table, counts)


def _starts(gpu: str, profiles: tuple[Profile, ...], table: Table, counts: Counts) -> str:
    """The case in which all sums are in order and yet no starts work."""
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
    return f"the slices would suffice, but no starts work for {_list(stuck)}: {rules}"


def _list(wanted: Iterable[tuple[Profile, int]]) -> str:
    return " + ".join(
        f"{count} x {profile.name}" if count > 1 else profile.name for profile, count in wanted
    )


def _or(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else f"{last} only"
