"""The rules by which the search goes on: what can be done next, the best first.

See :mod:`~cms.fleet.deployment.transition.order_search` for A to D.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple, TypeVar

from ..instance import Instance, Mode, State
from .goal import Pool, TrackedInstance, Use, sum_supplies
from .model import slots_of
from .search_state import Cover, SearchState

T = TypeVar("T")
#: A cover with how good it is.
Scored = tuple[tuple[float, ...], Cover]
#: What goes, each with its GPU.
Gone = tuple[tuple[int, TrackedInstance], ...]
#: What the floors must be able to miss, by service.
Needs = Mapping[int, int]
#: Openings for which covers are looked for at once: the cheapest ones.
_TRIED = 24


class Choice(NamedTuple):
    """What is done next: covers come, something goes, and an opening (-1: none) is filled."""

    covers: tuple[Cover, ...] = ()
    gone: Gone = ()
    opening: int = -1
    use: int | None = None


def apply_choice(state: SearchState, choice: Choice) -> None:
    """Do what was chosen."""
    for cover in choice.covers:
        state.cover(cover)
    if choice.gone:
        state.remove(choice.gone)
    if choice.opening >= 0:
        use, opening = choice.use, state.goal.openings[choice.opening]
        if use is None and opening.instance is not None:  # what waits most
            use = max(_rank_uses(state, state.need[opening.pool]).items(), key=itemgetter(1))[0]
        state.fill(choice.opening, use)


def list_choices(state: SearchState) -> Iterator[Choice]:
    """Iterate over what can be done next, the best by the rules first."""
    rules = fill_openings, clear_openings, cover_openings, drop_instances
    for rule in rules if state.blockages else (remove_rest,):
        yield from rule(state)


def remove_rest(state: SearchState) -> Iterator[Choice]:
    """Once all is there: iterate over what goes and can be missed."""
    for gone in state.leaving_at_once():
        is_busy = any(gpu in state.busy for gpu, _ in gone)
        if not is_busy and state.can_miss(sum_supplies(each for _, each in gone)):
            yield Choice(gone=gone)


def _in_order(state: SearchState, scored: Iterable[tuple[float, T]]) -> list[T]:
    """Return things by their scores, the least first, and nearly so where something is random."""
    noise = state.settings.noise
    ranks = [(score * noise(1.0), thing) for score, thing in scored]
    return [thing for _, thing in sorted(ranks, key=itemgetter(0))]


def fill_openings(state: SearchState) -> Iterator[Choice]:
    """A: iterate over free openings and what is wanted there, what waits most first."""
    goal = state.goal
    #: Of openings that are alike, the best, by their pools.
    best: dict[tuple[Pool, ...], tuple[tuple[bool, int], int]] = {}
    for number in sorted(state.free):
        opening = goal.openings[number]
        gpu, score = opening.gpus[0], (False, 0)
        pools: tuple[Pool, ...] = (opening.pool,)
        if opening.batch >= 0:
            can = state.busy.isdisjoint(opening.gpus) and state.share_out(opening.batch) is not None
            pools = goal.pools[opening.batch]
        elif can := state.can_take(gpu):
            if opening.switched is not None:
                yield Choice(opening=number)
                continue
            score = bool(state.gpus[gpu].held), len(state.open_on[gpu])
        if can and (pools not in best or score > best[pools][0]):
            best[pools] = score, number
    uses = {pools: [use for pool in pools for use in state.need.get(pool, ())] for pools in best}
    rank = _rank_uses(state, {use for own in uses.values() for use in own})
    waiting: list[tuple[tuple[float, int], int, int | None]] = []
    for pools, (_, number) in best.items():
        if len(goal.openings[number].gpus) == 1:
            waiting += [(rank[use], number, use) for use in uses[pools]]
        else:
            waiting.append((max(rank[use] for use in uses[pools]), number, None))
    for _, number, use in sorted(waiting, key=itemgetter(0), reverse=True):
        yield Choice(opening=number, use=use)


def _rank_uses(state: SearchState, uses: Iterable[int]) -> dict[int, tuple[float, int]]:
    """Return how much each use or layout is waited for; the largest comes first.

    Either the service that has most to come before all that goes can go; or the one that frees most
    room for what it takes, soonest. The first brings all services on alike; the second is for
    fleets that are nearly full, where each is brought on alone until something of it can go.
    """
    goal, settings = state.goal, state.settings
    found = {}
    for number in uses:
        if number < 0:
            found[number] = state.layout_urgency(number) * settings.noise(0.5), 0
            continue
        use = goal.uses[number]
        value = state.urgency(use.service)
        if settings.room_first and use.supply and value > -1.0:
            # slots freed for each taken before, as if what lacks came by instances of this kind
            size, there = use.slots.bit_count(), state.slack[use.service]
            value = max(
                (
                    freed / (size * -(-(supply - there) // use.supply))
                    for supply, freed in state.going[use.service]
                    if supply > there
                ),
                default=0.0,
            )
        found[number] = value * settings.weight(use.service), use.supply
    return found


def clear_openings(state: SearchState) -> Iterator[Choice]:
    """B: iterate over openings that can be cleared within the floors, the cheapest first.

    Those that can no longer be cleared once others have been are left out.
    """
    found = [one for one in _list_blocked(state) if state.can_miss(one[2])]
    found.sort(key=lambda one: len(one[1]))
    for number, gone, needs in _in_order(state, ((_weigh(state, one[2]), one) for one in found)):
        is_there = all(each in state.gpus[gpu].held for gpu, each in gone)
        if is_there and state.can_miss(needs) and _can_begin(state, number):
            yield _clear(state, number, gone)


def _can_begin(state: SearchState, number: int) -> bool:
    """Whether what is in the way of an opening can go now."""
    opening, blockage = state.goal.openings[number], state.blockages.get(number)
    if blockage is None or not (blockage.is_restart or state.busy.isdisjoint(opening.gpus)):
        return False
    return opening.batch < 0 or state.share_out(opening.batch) is not None


def _clear(state: SearchState, number: int, gone: Gone, covers: tuple[Cover, ...] = ()) -> Choice:
    blockage = state.blockages.get(number)
    # what is in the very place, or on all of the GPUs, goes as something comes
    is_at_once = blockage is not None and (
        blockage.is_restart or state.goal.openings[number].instance is None
    )
    return Choice(covers, () if is_at_once else gone, number)


def _list_blocked(state: SearchState) -> Iterator[tuple[int, Gone, Needs]]:
    """Iterate over openings and what has to go first."""
    for number, blockage in state.blockages.items():
        if blockage is not None and (blockage.gone or blockage.needs) and _can_begin(state, number):
            yield number, blockage.gone, blockage.needs


def _weigh(state: SearchState, needs: Needs) -> float:
    """Return what goes or lacks as shares of the floors."""
    return sum(amount * state.goal.weight[service] for service, amount in needs.items())


def cover_openings(state: SearchState) -> Iterator[Choice]:
    """C: iterate over openings that can be cleared once something covers for what goes.

    Once covers have come, with covers that there still is room for.
    """
    if state.goal.tool is None:
        yield from _move_processes(state)
        return
    prices: list[tuple[float, tuple[int, Gone, Needs]]] = []
    for number, gone, needs in _list_blocked(state):
        lacks = {s: lack for s, amount in needs.items() if (lack := amount - state.spared(s)) > 0}
        prices.append((_weigh(state, lacks), (number, gone, lacks)))
    ready = []
    for number, gone, lacking in _in_order(state, prices)[:_TRIED]:
        covers = find_covers(state, number, gone, lacking)
        if covers is not None:
            taken = sum(
                1 if cover.old is not None and not cover.old.supply
                else slots_of(state.goal.cards[gpu].gpu, each.profile).bit_count()
                for cover in covers for gpu, each in cover.places
            )  # fmt: skip
            ready.append((taken, (number, gone, lacking, covers)))
    done = len(state.actions)
    for number, gone, lacking, covers in _in_order(state, ready):
        again = covers if len(state.actions) == done else find_covers(state, number, gone, lacking)
        if again is not None:
            yield _clear(state, number, gone, again)


def _move_processes(state: SearchState) -> Iterator[Choice]:
    """Have what is to come to a GPU in use come to an empty one instead."""
    goal = state.goal
    empty = [
        n for n, each in enumerate(state.gpus)
        if not each.held and not state.open_on.get(n) and each.mode is Mode.MPS
    ]  # fmt: skip
    for number in state.blockages if state.in_use < state.most else ():
        (home,) = goal.openings[number].gpus
        to_be = goal.ends[home].instances
        key = goal.cards[home].gpu.key
        other = next((n for n in empty if goal.cards[n].gpu.key == key), None)
        if to_be and other is not None and state.gpus[home].held and number not in state.moved:
            yield Choice((Cover(tuple((other, each) for each in to_be), opening=number),))


def drop_instances(state: SearchState) -> Iterator[Choice]:
    """D: iterate over what the floors can miss, the largest for its supply first."""
    found = []
    for choice in remove_rest(state):
        slots = sum(each.slots.bit_count() for _, each in choice.gone)
        waste = _weigh(state, sum_supplies(each for _, each in choice.gone))
        found.append((-slots / (0.01 + waste), choice))
    yield from _in_order(state, found)


def find_covers(
    state: SearchState, number: int, gone: Gone, lacks: Needs
) -> tuple[Cover, ...] | None:
    """Find covers for what services lack as something goes for an opening, before it goes.

    Temporary instances in any room there is. By tools that repartition whole GPUs: instances that
    idle, or that do something else that can be missed, and empty GPUs.
    """
    goal, trial = state.goal, state.copy()
    shut: dict[int, int] = {gpu: -1 for gpu, _ in gone}
    opening = goal.openings[number]
    if opening.batch >= 0:  # GPUs that come into use as it is filled
        taken = sum((state.share_out(opening.batch) or {}).values())
        used = sum(bool(state.gpus[gpu].held) for gpu in goal.batches[opening.batch])
        trial.most -= max(0, taken - used)
    if opening.instance is not None:
        shut = {opening.gpus[0]: opening.slots}
    needed = sum_supplies(each for _, each in gone).keys()
    covers: list[Cover] = []
    while lacks:
        service = next(iter(lacks))
        if goal.cuts_parts:
            found = _list_best_rooms(trial, service, lacks[service], shut)
        else:
            found = _list_instances(trial, service, lacks[service], shut, gone, needed)
        best = max(found, key=itemgetter(0), default=None)
        if best is None and not goal.cuts_parts:
            best = max(_list_empty_batches(trial, lacks), key=itemgetter(0), default=None)
        if best is None:
            return None
        trial.cover(best[1])
        covers.append(best[1])
        lacks = goal.subtract(lacks, (each for _, each in best[1].places))
    return tuple(covers)


def _list_best_rooms(
    state: SearchState, service: int, lack: int, shut: Mapping[int, int]
) -> Iterator[Scored]:
    """Iterate over rooms for temporary instances of a service.

    Best is what covers most for its slots, then on the fullest GPU.
    """
    goal = state.goal
    for gpu, card in enumerate(state.gpus):
        closed = shut.get(gpu, 0)
        if closed < 0 or (goal.ends[gpu].mode is not card.mode and card.held):
            continue
        is_blind = any(each.instance.start is None for each in card.held)
        if card.mode is not Mode.MIG or not state.can_take(gpu) or is_blind:
            continue
        device = goal.cards[gpu].gpu
        for use in (goal.uses[number] for number in goal.covers[service]):
            known = use.gpu == device.key and use.profile in goal.allowed[gpu]
            for start in device.profile(use.profile).starts if known else ():
                slots = use.slots << start
                if not slots & (card.slots | closed) and goal.fits(gpu, card, use.profile, slots):
                    part = min(use.supply, lack) / slots.bit_count() * state.settings.noise(0.3)
                    place = gpu, Instance(use.profile, start, use.work)
                    yield (part, card.slots.bit_count()), Cover((place,))


def _list_instances(
    state: SearchState, service: int, lack: int, shut: Mapping[int, int], gone: Gone,
    needed: Container[int],
) -> Iterator[Scored]:  # fmt: skip
    """Iterate over instances that can be missed and could supply a service: idle ones are best."""
    goal = state.goal
    uses: dict[tuple[str, str], list[Use]] = {}
    for use in (goal.uses[number] for number in goal.covers[service]):
        uses.setdefault((use.gpu, use.profile), []).append(use)
    for gpu, card in enumerate(state.gpus):
        if card.mode is not Mode.MIG or shut.get(gpu, 0) < 0 or gpu in state.busy:
            continue
        key, is_cut = goal.cards[gpu].gpu.key, state.find_batch(gpu) >= 0
        for each in card.held:
            own = each.instance
            if own.work is not None and (
                is_cut or not each.goes or not each.supply or each.service in needed
                or each.supply > state.spared(each.service)
            ):  # fmt: skip
                continue
            if not own.is_managed or own.state is not State.RUNNING or (gpu, each) in gone:
                continue
            for use in uses.get((key, own.profile), ()):
                part = min(use.supply, lack) / use.slots.bit_count() * state.settings.noise(0.3)
                wanted = (goal.openings[number].slots for number in state.open_on.get(gpu, ()))
                free = not any(slots & each.slots for slots in wanted)
                instance = Instance(own.profile, own.start, use.work)
                yield (own.work is None, free, part), Cover(((gpu, instance),), each)


def _list_empty_batches(state: SearchState, lacks: Needs) -> Iterator[Scored]:
    """Iterate over empty GPUs, or empty nodes', to be repartitioned for most of what is lacking."""
    goal, tried = state.goal, set[object]()
    for gpus in goal.batches:
        if any(state.gpus[n].held or state.gpus[n].mode is not Mode.MIG for n in gpus):
            continue
        key = tuple((goal.cards[n].gpu.key, goal.allowed[n]) for n in gpus)
        if key in tried or not state.busy.isdisjoint(gpus):
            continue
        tried.add(key)
        left, worth, places = lacks, 0.0, list[tuple[int, Instance]]()
        for gpu in gpus[: max(0, state.most - state.in_use)]:
            gain, instances = max(_list_layouts(state, gpu, left), key=itemgetter(0))
            worth += gain
            places += [(gpu, each) for each in instances]
            left = goal.subtract(left, instances)
        if worth:
            yield (worth,), Cover(tuple(places))


def _list_layouts(
    state: SearchState, gpu: int, lacks: Needs
) -> Iterator[tuple[float, list[Instance]]]:
    """Iterate over what a GPU could have of what is lacking, with how much that covers."""
    goal, device = state.goal, state.goal.cards[gpu].gpu
    uses: dict[str, list[Use]] = {}
    for use in (goal.uses[number] for service in lacks for number in goal.covers[service]):
        if use.gpu == device.key and use.profile in goal.allowed[gpu]:
            uses.setdefault(use.profile, []).append(use)
    yield 0.0, []
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
        yield worth, instances
