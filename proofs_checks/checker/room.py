"""What a GPU can hold beside what is there: found by trying one instance more, again and again.

The rules are those of :mod:`~proofs_checks.checker.fleet`, in the document's devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from .devices import Device, Profile
from .fleet import Card
from .reading import ZERO


class Shape(NamedTuple):
    """A GPU for which an amount of room is asked: its rules, and the profiles that may be added."""

    memory: int
    compute: int
    known: tuple[Profile, ...]
    added: tuple[str, ...]


Held = frozenset[tuple[str, int]]  # profiles and starts


def shape(device: Device, added: frozenset[str]) -> Shape:
    """Return the shape of a device for adding instances of these profiles."""
    known = {profile.name: profile for profile in device.profiles.values()}
    ordered = tuple(known[name] for name in sorted(known))
    return Shape(device.memory, device.compute, ordered, tuple(sorted(added)))


def offered(card: Card, profile: str) -> bool:
    """Whether the driver of a GPU's node offers a profile."""
    since = card.device.profiles[profile].since
    return since is None or card.driver is None or card.driver >= since


@cache
def more(of: Shape, held: Held) -> tuple[tuple[str, int], ...]:
    """List the instances of which one can come beside what is there: profile and start."""
    known = {profile.name: profile for profile in of.known}
    there = [known[name] for name, _ in held]
    taken = {slot for name, start in held for slot in range(start, start + known[name].memory)}
    compute = of.compute - sum(profile.compute for profile in there)
    memory = of.memory - sum(profile.memory for profile in there)
    count = Counter(profile.name for profile in there)
    media = any(profile.media for profile in there)
    found = []
    for name in of.added:
        own = known[name]
        if own.compute > compute or own.memory > memory or count[name] >= own.most:
            continue
        if own.media and media:
            continue
        for start in sorted(own.starts):
            slots = range(start, start + own.memory)
            if slots.stop <= of.memory and taken.isdisjoint(slots):
                found.append((name, start))
    return tuple(found)


@cache
def layouts(of: Shape, held: Held) -> frozenset[Held]:
    """List all that can be there, what is held with it, until nothing more fits."""
    found = set()
    seen = {held}
    border = [held]
    while border:
        here = border.pop()
        come = more(of, here)
        if not come:
            found.add(here)
        for each in come:
            after = here | {each}
            if after not in seen:
                seen.add(after)
                border.append(after)
    return frozenset(found)


@cache
def fillings(of: Shape, held: Held) -> frozenset[tuple[tuple[str, int], ...]]:
    """List the numbers of instances of each profile that can be added at once, until none fits."""
    before = Counter(name for name, _ in held)
    every = (Counter(name for name, _ in here) - before for here in layouts(of, held))
    return frozenset(tuple(sorted(added.items())) for added in every)


def dearest(of: Shape, held: Held, worth: Mapping[str, Fraction]) -> Fraction:
    """The most that instances can be worth that are added at once; none is worth less than 0."""
    return max(
        sum((worth.get(name, ZERO) * n for name, n in filling), ZERO)
        for filling in fillings(of, held)
    )
