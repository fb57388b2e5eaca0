"""Transitions on two or three small GPUs that are only cut as a whole, by trying everything.

A GPU is a multiset of profiles, each with a service or none. What an instance does may change in
place; else a GPU is cut anew, and meanwhile nothing on it counts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

from cms.fleet import Gpu

#: Profile and service (empty: it idles), sorted.
Content = tuple[tuple[str, str], ...]


def contents(card: Gpu, things: frozenset[tuple[str, str]]) -> list[Content]:
    """All that can be on a GPU, of some profiles with some services."""
    profiles = sorted({profile for profile, _ in things})
    can: dict[str, list[str]] = {name: [""] for name in profiles}
    for profile, service in sorted(things):
        can[profile].append(service)
    found: set[Content] = {()}
    for size in range(1, card.compute_slices + 1):
        for names in combinations_with_replacement(profiles, size):
            if card.place(Counter(names)) is not None:
                for doing in product(*(can[name] for name in names)):
                    found.add(tuple(sorted(zip(names, doing, strict=True))))
    return sorted(found)


def is_reachable(
    card: Gpu,
    start: Sequence[Content],
    wanted: Mapping[tuple[str, str], int],
    supply: Mapping[tuple[str, str], Fraction],
    floors: Mapping[str, Fraction],
    most_gpus: int,
    used_at_end: int,
) -> bool:
    """Whether some sequence leads to what is wanted, on at most so many GPUs at a time."""
    every = contents(card, frozenset(supply))

    def stands(held: Counter[tuple[str, str]]) -> bool:
        has: Counter[str] = Counter()
        for thing, n in held.items():
            if thing[1]:
                has[thing[1]] += n * supply[thing]  # type: ignore[assignment]
        return all(has[name] >= floor for name, floor in floors.items())

    begin = tuple(sorted((*start, *[()] * (most_gpus - len(start)))))
    seen, queue = {begin}, deque([begin])
    while queue:
        state = queue.popleft()
        here = Counter(thing for content in state for thing in content)
        works = Counter({thing: n for thing, n in here.items() if thing[1]})
        if works == Counter(wanted) and sum(map(bool, state)) <= used_at_end:
            return True
        after = []
        for at, content in enumerate(state):
            rest = (*state[:at], *state[at + 1 :])
            if stands(here - Counter(content)):
                after += [(*rest, other) for other in every]
            for number, thing in enumerate(content):
                if stands(here - Counter([thing])):
                    left = (*content[:number], *content[number + 1 :])
                    after += [
                        (*rest, tuple(sorted((*left, other))))
                        for other in [(thing[0], ""), *supply]
                        if other[0] == thing[0]
                    ]
        for each in after:
            found = tuple(sorted(each))
            if found not in seen:
                seen.add(found)
                queue.append(found)
    return False
