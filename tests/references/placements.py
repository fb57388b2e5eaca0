"""Every way to place a promise on two or three GPUs: the best of them, by trying all.

Written from the rules alone: layouts are all sets of placed instances that the profiles' own
numbers allow, and shares under MPS all that sum to at most 100 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from operator import add

from cms.fleet import Gpu
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    StartSource,
    State,
)
from cms.fleet.hardware import Placement
from tests.references import layouts

#: Kept, at places where an instance was, minus GPUs touched.
Score = tuple[int, int, int]
Number = Fraction | int
Placed = tuple[tuple[Kind, int], ...]


@cache
def every_layout(card: Gpu, profiles: frozenset[str]) -> tuple[tuple[Placement, ...], ...]:
    """Every set of placed instances of some profiles that the rules allow."""
    return tuple(tuple(sorted(each)) for each in layouts.every_layout(card, sorted(profiles)))


def _goes_on(each: Instance) -> bool:
    return (
        each.is_managed and each.work is not None and each.state in (State.RUNNING, State.STARTING)
    )


def contents(
    card: FleetGpu, node: FleetNode, wanted: DesiredState, *, whole: bool = False
) -> dict[Placed, Score]:
    """All that one GPU could hold, each with the best it can be reached with.

    ``whole``: GPUs that are cut stay as they are cut, or are cut anew and keep nothing.
    """
    kinds = [kind for kind in wanted.counts if kind.gpu == card.gpu.key]
    works = [each for each in card.instances if each.is_managed and each.work is not None]
    found: dict[Placed, Score] = {(): (0, 0, -bool(works))}

    def put(held: list[tuple[Instance | None, Kind]]) -> None:
        placed = Counter(kind for _, kind in held)
        if any(n > wanted.counts[kind] for kind, n in placed.items()):
            return
        kept = [
            before
            for before, kind in held
            if before is not None
            and _goes_on(before)
            and (before.profile, before.work) == (kind.profile, kind.work)
        ]
        there = sum(before is not None and before.is_whole for before, _ in held)
        touched = len(kept) < len(held) or len(kept) < len(works)
        key = tuple(sorted(placed.items(), key=lambda item: item[0].order))
        score = len(kept), there, -touched
        found[key] = max(found.get(key, score), score)

    is_cut = (
        card.mode is Mode.MIG
        and bool(card.instances)
        and (whole or card.start_source is StartSource.UNKNOWN)
    )
    if is_cut:
        own = [each for each in card.instances if each.is_managed and each.is_whole]
        same = [[None, *(k for k in kinds if k.profile == each.profile)] for each in own]
        for chosen in product(*same):
            put([(e, k) for e, k in zip(own, chosen, strict=True) if k is not None])
        if card.foreign or _in_doubt(card, node):
            return found
        card = replace(card, instances=())
    for held in _ways(card, node, kinds):
        if held:
            put(held)
    return found


def _ways(
    card: FleetGpu, node: FleetNode, kinds: list[Kind]
) -> Iterator[list[tuple[Instance | None, Kind]]]:
    pinned = [(each.profile, each.start) for each in card.foreign]
    known = {profile.name: profile for profile in card.gpu.profiles}
    cut = {k.profile for k in kinds if k.profile in known and node.offers(known[k.profile])}
    held = _in_doubt(card, node)
    fixed = [(each.profile, each.start) for each in held]
    if card.mode is Mode.WHOLE or not (pinned or fixed):
        before = next((e for e in card.instances if card.mode is Mode.WHOLE), None)
        alone = [kind for kind in kinds if kind.profile == WHOLE and not pinned]
        yield from ([(before, kind)] for kind in alone)
    if card.mode is Mode.MIG or not (pinned or fixed):
        own = {
            (each.profile, each.start): each
            for each in card.instances
            if each.is_managed and card.mode is Mode.MIG
        }
        for layout in every_layout(card.gpu, frozenset({*cut, *(n for n, _ in (*pinned, *fixed))})):
            if not {*pinned, *fixed} <= {*layout}:
                continue
            open_ = [place for place in layout if place not in pinned]
            choices = [
                [kind for kind in kinds if kind.profile == place[0]] + [None] * (place in fixed)
                for place in open_
            ]
            for chosen in product(*choices):
                both = zip(open_, chosen, strict=True)
                yield [(own.get(place), kind) for place, kind in both if kind is not None]
    if card.mode is Mode.MPS or not (pinned or fixed):
        clients = [each for each in card.instances if each.is_managed and card.mode is Mode.MPS]
        room = 100 - sum(_share(name) for name, _ in pinned if card.mode is Mode.MPS)
        yield from _clients([kind for kind in kinds if _share(kind.profile)], clients, room)


def _in_doubt(card: FleetGpu, node: FleetNode) -> list[Instance]:
    """What is ours on a GPU, and may be another's: it stays."""
    doubted = {e.profile for c in node.gpus for e in c.instances if e.is_guessed and e.owner}
    return [e for e in card.instances if e.is_managed and e.is_guessed and e.profile in doubted]


def _clients(
    kinds: list[Kind], clients: list[Instance], room: int
) -> Iterator[list[tuple[Instance | None, Kind]]]:
    yield []
    for number, kind in enumerate(kinds):
        if (share := _share(kind.profile)) > room:
            continue
        same = [each for each in clients if each.profile == kind.profile]
        for before in [*same, None]:
            rest = list(clients)
            if before is not None:
                rest.remove(before)
            for more in _clients(kinds[number:], rest, room - share):
                yield [(before, kind), *more]


def _share(profile: str) -> int:
    return int(profile.removeprefix("mps:")) if profile.startswith("mps:") else 0


def price_of(card: FleetGpu, node: FleetNode, wanted: DesiredState) -> tuple[Fraction, int]:
    """What using a GPU costs, in money and GPUs: nothing beside what is foreign, or may be."""
    if card.foreign or _in_doubt(card, node):
        return Fraction(0), 0
    return wanted.prices.get(card.gpu.key, Fraction(1)), 1


def best_placement(
    fleet: Deployment, wanted: DesiredState, *, whole: bool = False
) -> tuple[Number, ...] | None:
    """The best there is: minus cost, minus GPUs, then kept, reused, minus touched, minus nodes.

    None if there is no placement at all.
    """
    Worth = tuple[Number, ...]
    States = dict[tuple[Placed, tuple[tuple[str, int], ...], frozenset[str]], Worth]
    states: States = {((), (), frozenset()): (0, 0, 0, 0, 0)}
    for node in fleet.nodes:
        for card in node.gpus:
            options = contents(card, node, wanted, whole=whole)
            price, gpu = price_of(card, node, wanted)
            after: States = {}
            for (placed, used, nodes), score in states.items():
                for content, own in options.items():
                    total = Counter(dict(placed)) + Counter(dict(content))
                    if any(n > wanted.counts[kind] for kind, n in total.items()):
                        continue
                    count = Counter(dict(used))
                    count[card.gpu.key] += bool(content)
                    if any(count[key] > cap for key, cap in wanted.max_gpus.items()):
                        continue
                    key = (
                        tuple(sorted(total.items(), key=lambda item: item[0].order)),
                        tuple(sorted((+count).items())),
                        nodes | ({node.name} if content else set()),
                    )
                    adds: Worth = (-price * bool(content), -gpu * bool(content), *own)
                    value = tuple(map(add, score, adds))
                    after[key] = max(after.get(key, value), value)
            states = after
    everything = tuple(sorted(wanted.counts.items(), key=lambda item: item[0].order))
    return max(
        (
            (*score, -len(nodes))
            for (placed, _, nodes), score in states.items()
            if placed == everything
        ),
        default=None,
    )


def worth(before: Deployment, after: Deployment, wanted: DesiredState) -> tuple[Number, ...]:
    """What `best_placement` says of one, read off both deployments."""
    kept = there = touched = gpus = 0
    cost = Fraction(0)
    nodes = set()
    for old, new in zip(before.gpus(), after.gpus(), strict=True):
        works = [each for each in new.instances if each.is_managed and each.work is not None]
        if works:
            price, gpu = price_of(old, before.node(old.node), wanted)
            cost, gpus = cost + price, gpus + gpu
            nodes.add(new.node)
        rest = [each for each in old.instances if each.is_managed] if old.mode is new.mode else []
        same = 0
        for each in list(works):
            place = (each.profile, each.start, each.work)
            for other in rest:
                if _goes_on(other) and (other.profile, other.start, other.work) == place:
                    rest.remove(other)
                    works.remove(each)
                    same += 1
                    break
        kept += same
        there += same
        touched += bool(works) or any(other.work is not None for other in rest)
        for each in works:
            for other in rest:
                if (other.profile, other.start) == (each.profile, each.start) and other.is_whole:
                    rest.remove(other)
                    there += 1
                    break
    return -cost, -gpus, kept, there, -touched, -len(nodes)
