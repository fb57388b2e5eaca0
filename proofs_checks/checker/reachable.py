"""All states that can be reached within the floors, walked through again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .ground import Ground, Placed, Site
from .room import more, shape
from .transition import Exhausted

#: So many states are walked through.
_STATES = 100_000

Content = tuple[Placed, ...]
#: Of each class of equal GPUs what is on them, sorted.
State = tuple[tuple[Content, ...], ...]


def exhausted_faults(ground: Ground, proof: Exhausted, most: int) -> list[str]:
    """Say why it is not so that as many states are reached as said, and never the target."""
    said = sum(proof.states)
    if said > _STATES:
        return [f"{said} states are more than are walked through"]
    classes: dict[object, list[Site]] = {}
    for site in ground.sites:
        key = site.card.device.key, site.able, site.foreign
        end = site.wanted if proof.of_target else None
        classes.setdefault((key, end), []).append(site)
    every = list(classes.values())
    layer = {tuple(tuple(sorted(tuple(sorted(s.held)) for s in own)) for own in every)}
    seen, counts = set(layer), []
    while layer:
        counts.append(len(layer))
        following: set[State] = set()
        for state in layer:
            if _is_wanted(ground, every, state, of_target=proof.of_target):
                return [f"the target is reached by {len(counts) - 1} actions"]
            following.update(each for each in _next(ground, every, state, most))
        layer = following - seen
        seen |= layer
        if len(seen) > said:
            return [f"more than {said} states are reached"]
    if counts != proof.states:
        return [f"{len(seen)} states are reached, not {said}, or not by so many actions"]
    return []


def _is_wanted(ground: Ground, every: list[list[Site]], state: State, *, of_target: bool) -> bool:
    if of_target:
        return all(
            set(content) == sites[0].wanted
            for sites, contents in zip(every, state, strict=True)
            for content in contents
        )
    counts = Counter(point for part in state for content in part for *_, point in content)
    used = Counter(
        sites[0].card.device.key
        for sites, contents in zip(every, state, strict=True)
        for content in contents
        if content or sites[0].foreign
    )
    return counts == ground.wanted and all(n <= ground.gpus[key] for key, n in used.items())


def _next(ground: Ground, every: list[list[Site]], state: State, most: int) -> Iterator[State]:
    """List the states one creation or deletion away that keep the floors."""
    slack = {name: -floor for name, floor in ground.floors.items()}
    used = 0
    for sites, contents in zip(every, state, strict=True):
        used += sum(bool(content or sites[0].foreign) for content in contents)
        for content in contents:
            for *_, point in content:
                if ground.kinds[point].supply:
                    slack[ground.kinds[point].service] += ground.kinds[point].supply
    for number, (sites, contents) in enumerate(zip(every, state, strict=True)):
        for content in set(contents):
            after = []
            for each in content:
                kind = ground.kinds[each[2]]
                if not kind.supply or kind.supply <= slack[kind.service]:
                    after.append(tuple(other for other in content if other != each))
            if content or sites[0].foreign or used < most:
                come = _coming(ground, sites[0], content)
                after += [tuple(sorted((*content, each))) for each in come]
            rest = list(contents)
            rest.remove(content)
            for other in after:
                own = tuple(sorted((*rest, other)))
                yield (*state[:number], own, *state[number + 1 :])


def _coming(ground: Ground, site: Site, content: Content) -> Iterator[Placed]:
    points: dict[str, list[str]] = {}
    for point in site.able:
        points.setdefault(ground.kinds[point].profile, []).append(point)
    held = site.foreign | {(profile, start) for profile, start, _ in content}
    for profile, start in more(shape(site.card.device, frozenset(points)), held):
        for point in points[profile]:
            yield profile, start, point
