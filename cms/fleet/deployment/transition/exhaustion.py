"""All states that can be reached within the floors: a proof that more spare GPUs are needed.

A state is what is on each GPU, up to the order of GPUs that are equal: of one type, with the same
instances of others, and able to run the same. From a state to the next one instance is created or
deleted. Where the set is closed and what is wanted is not in it, there is no transition; where it
is in it, the way there is one. The search is bounded by a number of states, never by a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import lcm
from typing import NamedTuple

from ..programs import Limits
from .ground import Ground, Place, Site
from .model import Exhausted

__all__ = ["Found", "Step", "exhausted_fault", "reached"]

#: States that are looked at, and GPUs in use where it is worth trying.
STATES, GPUS = 20_000, 4

Content = frozenset[Place]
#: The number of what is on each GPU, equal ones sorted.
State = tuple[int, ...]


class Step(NamedTuple):
    """An instance that comes to a GPU (by its place in `Ground.sites`), or goes."""

    site: int
    place: Place
    comes: bool


class Found(NamedTuple):
    """What a search ended with.

    Attributes
    ----------
    states : tuple of int
        How many states were reached by so many steps and no fewer.
    steps : tuple of Step or None
        The way to what is wanted; None if it is in none of them.
    """

    states: tuple[int, ...]
    steps: tuple[Step, ...] | None


@dataclass
class _Contents:
    """All that was seen on GPUs that are equal, numbered."""

    site: Site
    numbers: dict[Content, int] = field(default_factory=dict)
    listed: list[Content] = field(default_factory=list)
    near: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def number(self, content: Content) -> int:
        """Return the number of a content; nothing is 0."""
        if content not in self.numbers:
            self.numbers[content] = len(self.listed)
            self.listed.append(content)
        return self.numbers[content]


class _Search:
    def __init__(self, ground: Ground, most: int, *, places: bool) -> None:
        self.ground, self.most, self.places = ground, most, places
        self.services = {name: at for at, name in enumerate(ground.floors)}
        supplies = [use.supply for use in ground.uses]
        owed = [floor - ground.base.get(name, 0) for name, floor in ground.floors.items()]
        scale = lcm(*(each.denominator for each in (*supplies, *owed)))
        self.supply = [int(each * scale) for each in supplies]
        self.service = [self.services.get(use.work.service, 0) for use in ground.uses]
        self.floor = [int(each * scale) for each in owed] or [0]
        alike: dict[object, list[int]] = {}
        for at, site in enumerate(ground.sites):
            end = site.wanted if places else None
            alike.setdefault((site.gpu.key, site.uses, site.foreign, end), []).append(at)
        self.groups = list(alike.values())
        self.kinds = [_Contents(ground.sites[group[0]]) for group in self.groups]
        self.group_of = [g for g, group in enumerate(self.groups) for _ in group]
        for kind in self.kinds:
            kind.number(frozenset())

    def state(self, contents: Iterable[Content]) -> State:
        held = list(contents)
        return tuple(
            number
            for kind, group in zip(self.kinds, self.groups, strict=True)
            for number in sorted(kind.number(held[at]) for at in group)
        )

    def near(self, group: int, number: int) -> list[tuple[int, int, int]]:
        """List the contents one step away, with the service and what it loses."""
        kind = self.kinds[group]
        found = kind.near.get(number)
        if found is None:
            found = kind.near[number] = []
            here = kind.listed[number]
            for place in sorted(here):
                lost = self.supply[place.use]
                found.append((kind.number(here - {place}), self.service[place.use], lost))
            for place in _can_come(self.ground, kind.site, here):
                found.append((kind.number(here | {place}), 0, 0))
        return found

    def is_goal(self, state: State) -> bool:
        contents = [self.kinds[g].listed[n] for g, n in zip(self.group_of, state, strict=True)]
        if self.places:
            ends = (self.kinds[g].site.wanted for g in self.group_of)
            return all(c == end for c, end in zip(contents, ends, strict=True))
        if sum(map(len, contents)) != sum(self.ground.wanted.values()):
            return False
        used = Counter(
            self.kinds[g].site.gpu.key
            for g, content in zip(self.group_of, contents, strict=True)
            if content or self.kinds[g].site.foreign
        )
        if any(n > self.ground.gpus.get(key, 0) for key, n in used.items()):
            return False
        return Counter(p.use for content in contents for p in content) == self.ground.wanted

    def after(self, state: State) -> Iterator[State]:
        slack = [-floor for floor in self.floor]
        used = 0
        for group, number in zip(self.group_of, state, strict=True):
            kind = self.kinds[group]
            used += bool(number or kind.site.foreign)
            for place in kind.listed[number]:
                slack[self.service[place.use]] += self.supply[place.use]
        first = 0
        for group, members in enumerate(self.groups):
            last = first + len(members)
            own = state[first:last]
            is_free = bool(self.kinds[group].site.foreign) or used < self.most
            for at, number in enumerate(own):
                if at and own[at - 1] == number:
                    continue
                if not number and not is_free:
                    continue
                rest = (*own[:at], *own[at + 1 :])
                for other, service, lost in self.near(group, number):
                    if not lost or lost <= slack[service]:
                        yield (*state[:first], *sorted((*rest, other)), *state[last:])
            first = last

    def steps(self, way: list[State]) -> tuple[Step, ...]:
        """Name the GPUs: of equal ones that have what changes, the first."""
        now = [site.held for site in self.ground.sites]
        found = []
        for before, after in pairwise(way):
            first = 0
            for kind, group in zip(self.kinds, self.groups, strict=True):
                last = first + len(group)
                gone = Counter(before[first:last]) - Counter(after[first:last])
                come = Counter(after[first:last]) - Counter(before[first:last])
                first = last
                for old, new in zip(gone, come, strict=True):
                    at = next(each for each in group if now[each] == kind.listed[old])
                    changed = kind.listed[new] ^ kind.listed[old]
                    found += [Step(at, p, comes=p in kind.listed[new]) for p in changed]
                    now[at] = kind.listed[new]
        return tuple(found)


def _can_come(ground: Ground, site: Site, here: Content) -> Iterator[Place]:
    layout = [*site.foreign, *((each.profile, each.start) for each in here)]
    starts: dict[str, tuple[int, ...]] = {}
    for use in site.uses:
        profile = ground.uses[use].profile
        if profile not in starts:
            starts[profile] = site.gpu.room(layout, profile)
        for start in starts[profile]:
            yield Place(profile, start, use)


def reached(
    ground: Ground,
    most: int,
    *,
    places: bool,
    states: int = STATES,
    limits: Limits | None = None,
) -> Found | None:
    """Walk through all states within the floors, the nearest first, until one is what is wanted.

    Parameters
    ----------
    ground : Ground
    most : int
        So many GPUs may be in use at once.
    places : bool
        Whether the target is to be reached as it stands.
    states : int
        At most so many are looked at.
    limits : Limits, optional

    Returns
    -------
    Found or None
        None if there are more states.
    """
    search = _Search(ground, most, places=places)
    first = search.state(site.held for site in ground.sites)
    came: dict[State, State | None] = {first: None}
    layer, counts = [first], []
    while layer:
        counts.append(len(layer))
        for state in layer:
            if search.is_goal(state):
                way: list[State] = []
                at: State | None = state
                while at is not None:
                    way.append(at)
                    at = came[at]
                return Found(tuple(counts), search.steps(way[::-1]))
        following = []
        for state in layer:
            if limits is not None and limits.over:
                return None
            for other in search.after(state):
                if other not in came:
                    came[other] = state
                    following.append(other)
            if len(came) > states:
                return None
        layer = following
    return Found(tuple(counts), None)


def exhausted_fault(ground: Ground, most: int, proof: Exhausted) -> str:
    """Say why a proof does not hold; nothing if it does: the search is repeated."""
    said = sum(proof.states)
    if said > STATES:
        return f"it is of {said} states, more than the {STATES} that are looked at again"
    found = reached(ground, most, places=proof.places, states=said)
    if found is None:
        return f"there are more than {said} states"
    if found.steps is not None:
        return f"the target is reached in {len(found.steps)} steps"
    if found.states != proof.states:
        return f"there are {sum(found.states)} states, not {said}, or they lie otherwise"
    return ""
