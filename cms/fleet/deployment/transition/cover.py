"""What covers for instances that the floors would miss, before they go.

Temporary instances in any room there is. By tools that repartition whole GPUs: instances that idle,
or that do something else that can be missed, and empty GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from ..instance import Instance, Mode, State
from .goal import TrackedInstance, Use, sum_supplies
from .search_state import Cover, SearchState

__all__ = ["Cover", "Gone", "Needs", "find_covers", "list_rooms"]

#: What goes, each with its GPU.
Gone = tuple[tuple[int, TrackedInstance], ...]
#: What the floors must be able to miss, by service.
Needs = Sequence[tuple[int, int]]


def find_covers(
    state: SearchState, number: int, gone: Gone, lacks: Needs
) -> tuple[Cover, ...] | None:
    """Find covers for what services lack as something goes for an opening."""
    goal, trial = state.goal, state.copy()
    shut: dict[int, int] = {gpu: -1 for gpu, _ in gone}
    if number >= 0:
        opening = goal.openings[number]
        trial.most -= state.new_in_use(number)
        if opening.instance is not None:
            shut = {opening.gpus[0]: opening.slots}
    needed = {service for service, _ in sum_supplies(each for _, each in gone)}
    covers: list[Cover] = []
    left = dict(lacks)
    while left:
        service = next(iter(left))
        if goal.cuts_parts:
            cover = _find_room(trial, service, left[service], shut)
        else:
            cover = _find_instance(trial, service, left[service], shut, gone, needed)
            cover = cover or _find_empty_batch(trial, left)
        if cover is None:
            return None
        trial.cover(cover)
        covers.append(cover)
        for gpu, each in cover.places:
            new = goal.track(gpu, each, goes=True)
            if new.service in left:
                left[new.service] -= new.supply
                if left[new.service] <= 0:
                    del left[new.service]
    return tuple(covers)


def _find_room(state: SearchState, service: int, lack: int, shut: dict[int, int]) -> Cover | None:
    """Find the best room for a temporary instance of a service.

    One that covers most for its slots, then out of the way of what comes, then on the fullest GPU.
    """
    goal = state.goal
    best: tuple[tuple[float, ...], Cover] | None = None
    for gpu, card in enumerate(state.gpus):
        closed = shut.get(gpu, 0)
        if closed < 0 or (goal.ends[gpu].mode is not card.mode and card.held):
            continue
        waiting = 0
        for number in state.open_on.get(gpu, ()):
            waiting |= goal.openings[number].slots
        for cover, use, slots in list_rooms(state, gpu, goal.covers[service], closed):
            score = (
                min(use.supply, lack) / slots.bit_count() * state.settings.noise(0.3),
                -(slots & waiting).bit_count(),
                card.slots.bit_count(),
            )
            if best is None or score > best[0]:
                best = score, cover
    return None if best is None else best[1]


def list_rooms(
    state: SearchState, gpu: int, uses: Iterable[int], closed: int = 0
) -> Iterator[tuple[Cover, Use, int]]:
    """Iterate over temporary instances that a GPU has room for beside closed slots."""
    goal, card, device = state.goal, state.gpus[gpu], state.goal.cards[gpu].gpu
    is_blind = any(each.instance.start is None for each in card.held)
    if card.mode is not Mode.MIG or not state.can_take(gpu) or is_blind:
        return
    for use in (goal.uses[number] for number in uses):
        if use.gpu == device.key and use.profile in goal.allowed[gpu]:
            for start in device.profile(use.profile).starts:
                slots = use.slots << start
                if not slots & (card.slots | closed) and goal.fits(gpu, card, use.profile, slots):
                    yield Cover(((gpu, Instance(use.profile, start, use.work)),)), use, slots


def _find_instance(
    state: SearchState, service: int, lack: int, shut: dict[int, int], gone: Gone,
    needed: set[int],
) -> Cover | None:  # fmt: skip
    """Have an instance that can be missed supply a service: idle ones first."""
    goal, best = state.goal, None
    uses: dict[tuple[str, str], list[Use]] = {}
    for use in (goal.uses[number] for number in goal.covers[service]):
        uses.setdefault((use.gpu, use.profile), []).append(use)
    for gpu, card in enumerate(state.gpus):
        if card.mode is not Mode.MIG or shut.get(gpu, 0) < 0 or gpu in state.busy:
            continue
        key, is_cut = goal.cards[gpu].gpu.key, state.find_batch(gpu) >= 0
        wanted = [goal.openings[number].slots for number in state.open_on.get(gpu, ())]
        for each in card.held:
            own = each.instance
            if not own.is_managed or own.state is not State.RUNNING or (gpu, each) in gone:
                continue
            if own.work is not None and (
                is_cut or not each.goes or not each.supply or each.service in needed
                or each.supply > state.spared(each.service)
            ):  # fmt: skip
                continue
            for use in uses.get((key, own.profile), ()):
                part = min(use.supply, lack) / use.slots.bit_count()
                free = not any(slots & each.slots for slots in wanted)
                score = own.work is None, free, part * state.settings.noise(0.3)
                if best is None or score > best[0]:
                    instance = Instance(own.profile, own.start, use.work)
                    best = score, Cover(((gpu, instance),), each)
    return None if best is None else best[1]


def _find_empty_batch(state: SearchState, lacks: dict[int, int]) -> Cover | None:
    """Repartition an empty GPU, or an empty node's, for most of what is lacking."""
    goal, tried = state.goal, set[object]()
    best: tuple[float, Cover] | None = None
    for gpus in goal.batches:
        is_used = any(state.gpus[n].held or state.gpus[n].mode is not Mode.MIG for n in gpus)
        key = tuple((goal.cards[n].gpu.key, goal.allowed[n]) for n in gpus)
        if is_used or key in tried or not state.busy.isdisjoint(gpus):
            continue
        tried.add(key)
        left, worth, places = dict(lacks), 0.0, list[tuple[int, Instance]]()
        for gpu in gpus[: max(0, state.most - state.in_use)]:
            gain, instances = _fill_with_covers(state, gpu, left)
            worth += gain
            places += [(gpu, each) for each in instances]
            for each in instances:
                service, supply = goal.count(each.work)
                left[service] -= supply
            left = {service: lack for service, lack in left.items() if lack > 0}
        if worth and (best is None or worth > best[0]):
            best = worth, Cover(tuple(places))
    return None if best is None else best[1]


def _fill_with_covers(
    state: SearchState, gpu: int, lacks: dict[int, int]
) -> tuple[float, list[Instance]]:
    """Say what a GPU is to have to cover most of what is lacking, and how much that is."""
    goal = state.goal
    device = goal.cards[gpu].gpu
    uses: dict[str, list[Use]] = {}
    for use in (goal.uses[number] for service in lacks for number in goal.covers[service]):
        if use.gpu == device.key and use.profile in goal.allowed[gpu]:
            uses.setdefault(use.profile, []).append(use)
    best: tuple[float, list[Instance]] = 0.0, []
    for layout in device.maximal_layouts_around((), tuple(sorted(uses))) if uses else ():
        left, worth, instances = dict(lacks), 0.0, list[Instance]()
        for profile, start in sorted(layout, key=lambda place: tuple(place), reverse=True):
            gains = [
                (min(use.supply, left[use.service]) * goal.weight[use.service], use.supply, use)
                for use in uses.get(profile, ())
                if left[use.service] > 0
            ]
            if gains:
                gain, _, use = max(gains, key=itemgetter(0, 1))
                worth += gain
                left[use.service] -= use.supply
                instances.append(Instance(profile, start, use.work))
        if worth > best[0]:
            best = worth, instances
    return best
