"""What each GPU of a node holds, as far as counts for the node as a whole tell it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice

from ....errors import CmsError
from ....values.frozen import FrozenMap
from ...hardware import Gpu
from ..instance import WHOLE
from .facts import GpuFacts, NodeCounts, Statement, fault_at

#: How many instances of each profile a GPU holds; of :data:`WHOLE` one, if it is not cut.
Content = FrozenMap[str, int]
#: No node has more.
MOST_GPUS = 128
_VARIANT = re.compile(r"[+-].*")


def base_of(profile: str) -> str:
    """Return a profile without what marks its media engines: ``1g.10gb`` of ``1g.10gb+me``."""
    return _VARIANT.sub("", profile)


def describe_profile(profile: str) -> str:
    """Return what messages call it: its resource, or of a part the profile alone."""
    return "nvidia.com/gpu" if profile == WHOLE else profile


def possible_contents(
    card: Gpu, number: int, totals: Mapping[str, int], *, some_empty: bool
) -> list[tuple[Content, ...]]:
    """Return two ways, if there are, in which `number` equal GPUs can hold these together.

    Which GPU is which does not matter. GPUs that are not cut count as :data:`WHOLE`; some may be
    cut into nothing.
    """
    wanted = Counter[str]()
    for name, n in totals.items():
        wanted[name if name == WHOLE else card.profile(name).name] += n
    sizes = {WHOLE: (card.memory_slices, card.compute_slices)}
    sizes |= {each.name: (each.memory, each.compute) for each in card.profiles}
    names = sorted(wanted, key=lambda name: (-sizes[name][0], name))
    parts = [name for name in names if name != WHOLE]

    def columns(held: Mapping[str, int]) -> tuple[int, ...]:
        """Count by profile, then memory and compute slices."""
        slices = (sum(n * sizes[name][which] for name, n in held.items()) for which in (0, 1))
        return (*(held.get(name, 0) for name in names), *slices)

    held: list[Mapping[str, int]] = [{}] * some_empty + [{WHOLE: 1}] * (WHOLE in wanted)
    kinds = sorted(
        {*map(columns, (*held, *(card.multisets(parts) if parts else ())))}, reverse=True
    )
    most = [max(column) for column in zip(*kinds, strict=True)]

    @cache
    def fill(first: int, left: int, rest: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        if left == 0 or any(n > left * high for n, high in zip(rest, most, strict=True)):
            return () if any(rest) or left else ((),)
        found: list[tuple[int, ...]] = []
        biggest = next((at for at, n in enumerate(rest) if n), None)
        for at in range(first, len(kinds)):
            after = tuple(n - own for n, own in zip(rest, kinds[at], strict=True))
            if min(after) < 0:
                continue
            # no later kind has one of the biggest that are left either
            if len(found) > 1 or (biggest is not None and not kinds[at][biggest]):
                break
            found += [(at, *more) for more in fill(at, left - 1, after)]
        return tuple(found[:2])

    return [
        tuple(
            FrozenMap({n: c for n, c in zip(names, kinds[at], strict=False) if c}) for at in found
        )
        for found in fill(0, number, columns(wanted))
    ]


def find_contents(
    card: Gpu, counted: NodeCounts, told: Sequence[Content], allocatable: Mapping[str, int]
) -> tuple[list[tuple[Content, ...]], tuple[str, ...]]:
    """Find what the GPUs hold of which nothing else tells, and which counts are stale.

    `told` are the contents of the node's other GPUs. Returns no answer, the only one there is, or
    two of several. Where counts are more than the GPUs can hold, those of ``nvidia.com/gpu`` and
    those of which none can be given away are dropped as stale.
    """
    totals, known = +Counter(counted.totals), counted.number
    try:
        names = {name if name == WHOLE else card.profile(name).name: name for name in totals}
    except CmsError as fault:
        raise fault_at(counted.where, str(fault)) from None
    for name, n in (pair for content in told for pair in content.items()):
        totals[names.get(name) or names.get(base_of(name), name)] -= n
    totals = +totals
    gone = tuple(name for name in totals if name != WHOLE and not allocatable.get(name))
    for stale in dict.fromkeys(((), (WHOLE,) * (WHOLE in totals), gone, (*gone, WHOLE))):
        left = {name: n for name, n in totals.items() if name not in stale}
        numbers = range(1, min(sum(left.values()), MOST_GPUS) + 1)
        ways = (
            way
            for number in (numbers if known is None else [known - len(told)])
            if left and number > 0
            for way in possible_contents(card, number, left, some_empty=known is not None)
        )
        found = list(islice(ways, 2))
        if WHOLE in stale and found and not all(found[0]):
            # GPUs that hold nothing may as well be some of those that are counted
            found = [found[0], tuple(each or FrozenMap({WHOLE: 1}) for each in found[0])]
        if found:
            return found, tuple(sorted(stale))
    return [], ()


def facts_of_contents(
    contents: Sequence[Content], indices: Sequence[int], where: str
) -> tuple[GpuFacts, ...]:
    """Say of GPUs what they hold; if not all hold the same, each may hold what another does."""
    on, off = Statement("on", where), Statement("off", where)
    alike = GpuFacts(0, where, is_guessed=len({*contents}) > 1)
    return tuple(
        replace(alike, index=at, mig=off) if WHOLE in each else
        replace(alike, index=at, mig=on, counts=each)
        for at, each in zip(indices, contents, strict=True)
    )  # fmt: skip
