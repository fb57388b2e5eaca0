"""By which rules a transition goes on where whole GPUs are cut anew.

In this order, until all is as it is to be:

A. what is wanted and takes nothing away: work on instances that idle, contents on empty GPUs;
B. what the floors can miss, the smallest waste first: other work in place, a GPU cut anew;
C. what they can miss once something covers for it: instances that idle, or that do something else
   that can be missed, and whole free GPUs;
D. what is not wanted any more goes.

What a place gets is decided when it is free: what waits most. What a GPU gets, too.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from ...placement.program import Limits
from ..instance import Instance, Mode
from .whole_gpus_goal import Thing, Turn, Use
from .whole_gpus_way import Way

__all__ = ["walk"]

#: Changes for which covers are looked for at once: the cheapest ones.
_TRIED = 12

_Random = random.Random | None


class Change(NamedTuple):
    """Something that can be done, and what stops for it."""

    do: Callable[[Way], None]  # done to a state
    gone: tuple[Thing, ...]
    shut: frozenset[int]  # the GPUs on which it happens
    fills: int = 0  # GPUs in use after it beyond those before


def walk(way: Way, rng: _Random, limits: Limits) -> Way:
    """Go by the rules until all is done or nothing goes on."""
    while not limits.over and not way.is_done:
        if not (_free(way, rng) or _missed(way, rng) or _covered(way, rng) or _leave(way)):
            break
    return way


def _noise(rng: _Random, by: float) -> float:
    return 1.0 if rng is None else 1.0 + by * rng.random()


def _free(way: Way, rng: _Random) -> bool:
    """A: what takes nothing away."""
    first: dict[int, tuple[int, int]] = {}
    for gpu, at, thing in way.places():
        if thing.pool >= 0 and not thing.supply:
            first.setdefault(thing.pool, (gpu, at))
    found = [
        (way.urgency(use.service) * _noise(rng, 0.5), use.supply, gpu, at, use)
        for pool, (gpu, at) in first.items()
        for use in way.need[pool]
    ]
    if found:
        *_, gpu, at, use = max(found, key=itemgetter(0, 1))
        way.work(gpu, at, use, stays=True)
        return True
    for change in _whole(way, rng, is_empty=True):
        if way.in_use + change.fills <= way.most:
            change.do(way)
            return True
    return False


def _whole(way: Way, rng: _Random, *, is_empty: bool) -> Iterator[Change]:
    """Iterate over changes of whole GPUs and nodes, on which something works or nothing does."""
    contents = sorted((-way.waits(number) * _noise(rng, 0.5), number) for number in way.contents)
    for _, content in contents:
        _, _, _, where, home = way.goal.contents[content]
        for gpu in sorted(where, key=lambda gpu: (gpu != home, gpu)):
            held = way.held[gpu]
            if (gpu in way.singles or not held) and _idles(held) is is_empty:
                yield Change(
                    partial(Way.cut, gpu=gpu, content=content), held, frozenset((gpu,)), not held
                )
    for turn in way.goal.turns:
        if turn in way.turns and _idles(gone := _stopped(way, turn)) is is_empty:
            fills = _fills(way, turn, rng) if turn.is_loose else {}
            if fills is not None:
                filled = _filled(way, turn, fills)
                yield Change(
                    partial(Way.turn, turn=turn, fills=fills), gone, frozenset(turn.gpus), filled
                )
    for gpu in way.shared:
        gone = tuple(thing for thing in way.held[gpu] if not thing.stays)
        if _idles(gone) is is_empty:
            yield Change(partial(Way.share, gpu=gpu), gone, frozenset((gpu,)), not way.held[gpu])


def _fills(way: Way, turn: Turn, rng: _Random) -> dict[object, int] | None:
    """Say how many contents a node takes: the most it can, or at random; None: it can wait."""
    fills: dict[object, int] = {}
    can = way.fills(turn)
    spare = way.most - way.in_use
    for kind, range_ in can.items():
        most = range_[-1]
        if rng is not None and rng.random() < 0.5:
            most = rng.choice(range_)
        here = [gpu for gpu, _ in turn.contents if way.goal.kind(gpu) == kind]
        in_use = sum(bool(way.held[gpu]) for gpu in here)
        fills[kind] = max(range_[0], min(most, in_use + spare))
        spare -= max(0, fills[kind] - in_use)
    waits = any(fills.values()) or not any(way.loose.get(kind) for kind in can)
    return fills if waits else None


def _filled(way: Way, turn: Turn, fills: Mapping[object, int]) -> int:
    """How many GPUs come into use: those that are not are filled last."""
    if not turn.is_loose:
        return sum(c >= 0 and not way.held[gpu] for gpu, c in turn.contents)
    used = Counter(way.goal.kind(gpu) for gpu, _ in turn.contents if way.held[gpu])
    return sum(max(0, n - used[kind]) for kind, n in fills.items())


def _stopped(way: Way, turn: Turn) -> tuple[Thing, ...]:
    return tuple(chain.from_iterable(way.held[gpu] for gpu in turn.gpus))


def _idles(things: Iterable[Thing]) -> bool:
    return not any(thing.supply for thing in things)


def _missed(way: Way, rng: _Random) -> bool:
    """B: what can be missed."""
    found = []
    for change in chain(_in_place(way), _whole(way, rng, is_empty=False)):
        if way.in_use + change.fills <= way.most and way.can_miss(change.gone):
            found.append((_waste(way, change.gone) * _noise(rng, 1.0), change))
    if not found:
        return False
    min(found, key=itemgetter(0))[1].do(way)
    return True


def _in_place(way: Way) -> Iterator[Change]:
    for gpu, at, thing in way.places():
        if thing.pool >= 0 and thing.supply:
            do = partial(Way.work, gpu=gpu, at=at, use=way.best(thing.pool), stays=True)
            yield Change(do, (thing,), frozenset((gpu,)))


def _waste(way: Way, gone: Iterable[Thing]) -> float:
    weight = way.goal.weight
    return sum(each.supply * weight[each.service] for each in gone if each.supply)


def _covered(way: Way, rng: _Random) -> bool:
    """C: what can be missed once it is covered."""
    found = []
    whole = list(_whole(way, rng, is_empty=False))
    # covers of a node take whole nodes: first for what needs them
    in_place = () if way.goal.by_node and whole else _in_place(way)
    for number, change in enumerate(chain(in_place, whole)):
        if way.in_use + change.fills <= way.most:
            weight = way.goal.weight
            lacks = way.lacks(change.gone)
            price = sum(n * weight[service] for service, n in lacks.items())
            found.append((price * _noise(rng, 1.0), number, change))
    found.sort(key=itemgetter(0, 1))
    best: tuple[float, Way] | None = None
    for _, _, change in found[:_TRIED]:
        trial = way.copy()
        if _cover(trial, change, rng):
            cost = (len(trial.actions) - len(way.actions)) * _noise(rng, 0.5)
            change.do(trial)
            if best is None or cost < best[0]:
                best = cost, trial
    if best is None:
        return False
    way.__dict__.update(best[1].__dict__)
    return True


def _cover(way: Way, change: Change, rng: _Random) -> bool:
    way.lending = ""
    while lacks := way.lacks(change.gone):
        service, lack = max(lacks.items(), key=lambda each: each[1])
        if not (_instance(way, service, lack, change, rng) or _free_gpu(way, lacks, change.fills)):
            return False
    return True


def _instance(way: Way, service: int, lack: int, change: Change, rng: _Random) -> bool:
    """Have an instance that can be missed supply a service: idle ones first."""
    best: tuple[tuple[float, ...], int, int, Use] | None = None
    needs = {thing.service for thing in change.gone if thing.supply}
    busy = (
        each for each in way.places()
        if each[2].supply and each[2].service not in needs and way.can_miss((each[2],))
    )  # fmt: skip
    for gpu, at, thing in chain(way.idle(), busy):
        if gpu in change.shut:
            continue
        card = way.goal.cards[gpu].gpu
        for use in way.goal.covers.get((card.key, thing.instance.profile), ()):
            if use.service == service:
                part = min(use.supply, lack) / card.profile(thing.instance.profile).memory
                score = (not thing.supply, thing.pool < 0, part * _noise(rng, 0.3))
                if best is None or score > best[0]:
                    best = score, gpu, at, use
    if best is None:
        return False
    way.work(*best[1:], stays=False)
    return True


def _free_gpu(way: Way, lacks: dict[int, int], fills: int) -> bool:
    """Cut an empty GPU for most of what is lacking."""
    if way.in_use + fills >= way.most:
        return False
    best: tuple[float, int, tuple[Instance, ...]] | None = None
    tried: set[tuple[str, frozenset[str]]] = set()
    kept = {*way.goal.shared, *way.waiting()}
    if way.goal.loose:  # what comes there later clears them
        kept = {*way.goal.shared, *chain.from_iterable(
            turn.gpus for turn in way.turns if not turn.is_loose
        )}  # fmt: skip
    nodes = {way.goal.cards[gpu].node for gpu, held in enumerate(way.held) if held}
    for gpu, held in enumerate(way.held):
        card = way.goal.cards[gpu]
        if held or gpu in kept or card.mode is not Mode.MIG:
            continue
        if way.goal.by_node and card.node in nodes - {way.lending}:  # it would be drained
            continue
        profiles = frozenset(
            name for key, name in way.goal.covers
            if key == card.gpu.key and way.goal.can_cut(gpu, {name})
        )  # fmt: skip
        if not profiles or (card.gpu.key, profiles) in tried:
            continue
        tried.add((card.gpu.key, profiles))
        for layout in card.gpu.maximal_layouts_around((), tuple(sorted(profiles))):
            worth, instances = _lent(way, card.gpu.key, layout, lacks)
            if worth and (best is None or worth > best[0]):
                best = worth, gpu, instances
    if best is None:
        return False
    way.lend(*best[1:])
    return True


def _lent(
    way: Way, key: str, layout: Iterable[tuple[str, int]], lacks: dict[int, int]
) -> tuple[float, tuple[Instance, ...]]:
    """Say what the places of a layout are to do to cover most of what is lacking, and how much."""
    left, weight = dict(lacks), way.goal.weight
    worth, instances = 0.0, list[Instance]()
    for profile, start in sorted(layout, key=lambda place: (place[0], place[1]), reverse=True):
        gains = [
            (min(use.supply, left[use.service]) * weight[use.service], use.supply, use)
            for use in way.goal.covers.get((key, profile), ())
            if left.get(use.service, 0) > 0
        ]
        if gains:
            gain, _, use = max(gains, key=itemgetter(0, 1))
            worth += gain
            left[use.service] -= use.supply
            instances.append(Instance(profile, start, use.work))
    return worth, tuple(instances)


def _leave(way: Way) -> bool:
    """D: stop or clear what can be missed and nothing is to come in place of."""
    nodes: dict[object, list[int]] = {}
    for gpu in sorted(way.singles):
        nodes.setdefault(way.goal.cards[gpu].node if way.goal.by_node else gpu, []).append(gpu)
    for gpus in nodes.values():
        if way.can_miss(chain.from_iterable(way.held[gpu] for gpu in gpus)):
            way.clear(gpus)
            return True
    if way.contents or way.turns or way.shared:
        return False
    for gpu, at, thing in way.places():
        if thing.pool < 0 and way.can_miss((thing,)):
            way.work(gpu, at, way.goal.use(None), stays=True)
            return True
    return False
