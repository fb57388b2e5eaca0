"""The rules by which the search goes on: what can be done next, the best first.

See :mod:`~cms.fleet.deployment.transition.sequence_search` for A to D.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple, TypeVar

from ..instance import Mode
from .cover import Cover, Gone, Needs, find_covers
from .goal import Blockage, sum_supplies
from .search_state import SearchState

__all__ = [
    "Choice", "apply_choice", "clear_openings", "cover_openings", "drop_instances", "fill_openings",
    "list_choices", "remove_rest",
]  # fmt: skip

T = TypeVar("T")

#: Openings for which covers are looked for at once: the cheapest ones.
_TRIED = 24
#: Where something is random, the share of empty GPUs that are left for covers.
_WAITS = 0.5


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
    if not state.blockages:
        yield from remove_rest(state)
        return
    for rule in (fill_openings, clear_openings, cover_openings, drop_instances):
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
    goal, rng = state.goal, state.settings.rng
    #: Of openings that are alike, the best, by their pools.
    best: dict[tuple[int, ...], tuple[tuple[bool, int], int]] = {}
    for number, blockage in state.blockages.items():
        if blockage is None or (blockage.gone and not _only_idles(blockage)):
            continue
        opening, score = goal.openings[number], (False, 0)
        gpu = opening.gpus[0]
        if opening.batch >= 0:
            if rng is not None and rng.random() < _WAITS:
                continue
            can = state.busy.isdisjoint(opening.gpus) and state.share_out(opening.batch) is not None
            pools = goal.list_pools(opening.batch)
        elif opening.switched is not None:
            if not blockage.needs and state.can_take(gpu):
                yield Choice(opening=number)
            continue
        else:
            can, pools = state.can_take(gpu), (opening.pool,)
            score = bool(state.gpus[gpu].held), len(state.open_on[gpu])
        if can and (pools not in best or score > best[pools][0]):
            best[pools] = score, number
    uses = {pools: [u for p in pools if p >= 0 for u in state.need[p]] for pools in best}
    rank = _rank_uses(state, {use for own in uses.values() for use in own})
    waiting: list[tuple[tuple[float, int], int, int | None]] = []
    for pools, (_, number) in best.items():
        if len(goal.openings[number].gpus) == 1:
            waiting += [(rank[use], number, use) for use in uses[pools]]
        else:
            waiting.append((max(rank[use] for use in uses[pools]), number, None))
    for _, number, use in sorted(waiting, key=itemgetter(0), reverse=True):
        yield Choice(opening=number, use=use)


def _only_idles(blockage: Blockage) -> bool:
    """Whether an instance that does nothing takes up work in place."""
    return blockage.is_restart and not blockage.needs and not blockage.gone[0][1].goes


def _rank_uses(state: SearchState, uses: Iterable[int]) -> dict[int, tuple[float, int]]:
    """Return how much each use or layout is waited for; the largest comes first.

    Either the service that has most to come before all that goes can go; or the one that frees most
    room for what it takes, soonest. The first brings all services on alike; the second is for
    fleets that are nearly full, where each is brought on alone until something of it can go.
    """
    goal, settings = state.goal, state.settings
    goes = _going(state) if settings.room_first else {}
    found = {}
    for number in uses:
        if number < 0:
            found[number] = state.layout_urgency(number) * settings.noise(0.5), 0
            continue
        use = goal.uses[number]
        value = state.urgency(use.service)
        if settings.room_first and use.supply and value > -1.0:
            value = _freed(state, number, goes.get(use.service, ()))
        found[number] = value * settings.weight(use.service), use.supply
    return found


def _going(state: SearchState) -> dict[int, list[tuple[int, int]]]:
    """Return, by service, the supply and the slots of what goes and is still there."""
    found: dict[int, list[tuple[int, int]]] = {}
    for _, each in state.leaving():
        if each.supply:
            found.setdefault(each.service, []).append((each.supply, each.slots.bit_count()))
    return found


def _freed(state: SearchState, number: int, goes: Iterable[tuple[int, int]]) -> float:
    """Return the slots that are freed for each that has to be taken before, this use first."""
    goal = state.goal
    use = goal.uses[number]
    there = state.slack[use.service]
    best = 0.0
    for supply, freed in goes:
        lack = supply - there
        if lack > 0:
            # as if the rest came by instances of the same kind
            best = max(best, freed / (use.slots.bit_count() * -(-lack // use.supply)))
    return best


def clear_openings(state: SearchState) -> Iterator[Choice]:
    """B: iterate over openings that can be cleared within the floors, the cheapest first."""
    found = [one for one in _list_blocked(state) if state.can_miss(one[2])]
    found.sort(key=lambda one: len(one[1]))
    scored = ((_waste(state, gone, needs), (number, gone)) for number, gone, needs in found)
    for number, gone in _in_order(state, scored):
        yield _clear(state, number, gone)


def _clear(state: SearchState, number: int, gone: Gone, covers: tuple[Cover, ...] = ()) -> Choice:
    if number < 0:
        return Choice(covers, gone)
    blockage = state.blockages[number]
    return Choice(covers, () if blockage is not None and blockage.is_at_once else gone, number)


def _list_blocked(state: SearchState) -> Iterator[tuple[int, Gone, Needs]]:
    """Iterate over openings and what has to go first; -1 for a GPU that has to be emptied."""
    openings, is_full = state.goal.openings, False
    for number, blockage in state.blockages.items():
        if blockage is None:
            continue
        opening = openings[number]
        if blockage.gone or blockage.needs:
            if not blockage.is_restart and not state.busy.isdisjoint(opening.gpus):
                continue
            if opening.batch < 0 or state.share_out(opening.batch) is not None:
                yield number, blockage.gone, blockage.needs
        else:
            gpu = opening.gpus[0]
            is_full = is_full or (gpu not in state.busy and not state.can_take(gpu))
    if is_full:
        for gone in _list_emptied(state):
            yield -1, gone, sum_supplies(each for _, each in gone)


def _list_emptied(state: SearchState) -> Iterator[Gone]:
    """Iterate over GPUs, or batches, on which all goes."""
    goal = state.goal
    for gpu, card in enumerate(state.gpus):
        is_ready = goal.cuts_parts and gpu not in state.busy
        if card.held and is_ready and all(each.goes for each in card.held):
            yield tuple((gpu, each) for each in card.held)
    if goal.is_whole:
        for gone in state.leaving_at_once():
            is_busy = any(gpu in state.busy for gpu, _ in gone)
            if state.find_batch(gone[0][0]) >= 0 and not is_busy:
                yield gone


def _waste(state: SearchState, gone: Gone, needs: Needs) -> float:
    weight = state.goal.weight
    if state.goal.tool is None:  # what a switch brings back at once is not lost
        return sum(amount * weight[service] for service, amount in needs)
    return sum(each.supply * weight[each.service] for _, each in gone if each.supply)


def cover_openings(state: SearchState) -> Iterator[Choice]:
    """C: iterate over openings that can be cleared once something covers for what goes."""
    if state.goal.tool is None:
        yield from _move_processes(state)
        return
    prices: list[tuple[float, tuple[int, Gone, Needs]]] = []
    for number, gone, needs in _list_blocked(state):
        lacks = [(s, lack) for s, amount in needs if (lack := amount - state.spared(s)) > 0]
        price = sum(lack * state.goal.weight[service] for service, lack in lacks)
        prices.append((price, (number, gone, lacks)))
    ready = []
    for number, gone, lacks in _in_order(state, prices)[:_TRIED]:
        covers = find_covers(state, number, gone, lacks)
        if covers is not None:
            taken = sum(_slots_taken(state, cover) for cover in covers)
            cost = taken / max(1, _unlocked(state, number, gone))
            ready.append((cost, _clear(state, number, gone, covers)))
    yield from _in_order(state, ready)


def _move_processes(state: SearchState) -> Iterator[Choice]:
    """Have what is to come to a GPU in use come to an empty one instead."""
    goal = state.goal
    if state.in_use >= state.most:
        return
    empty = [
        n for n, each in enumerate(state.gpus)
        if not each.held and not state.open_on.get(n) and each.mode is Mode.MPS
    ]  # fmt: skip
    for number in state.blockages:
        (home,) = goal.openings[number].gpus
        to_be = goal.ends[home].instances
        key = goal.cards[home].gpu.key
        other = next((n for n in empty if goal.cards[n].gpu.key == key), None)
        if to_be and other is not None and state.gpus[home].held and number not in state.moved:
            yield Choice((Cover(tuple((other, each) for each in to_be), opening=number),))


def _slots_taken(state: SearchState, cover: Cover) -> int:
    if cover.old is not None and not cover.old.supply:
        return 1
    goal = state.goal
    return sum(
        goal.slots(goal.cards[gpu].gpu, each.profile).bit_count() for gpu, each in cover.places
    )


def _unlocked(state: SearchState, number: int, gone: Gone) -> int:
    """Count the slots of the openings that nothing else is in the way of."""
    goal, slots = state.goal, 0
    opening = goal.openings[number]
    if number < 0 or opening.instance is None:
        return sum(goal.cards[gpu].gpu.memory_slices for gpu in {gpu for gpu, _ in gone})
    for other in state.open_on.get(gone[0][0], ()):
        blockage = state.blockages[other]
        if other == number or (blockage is not None and all(e in gone for e in blockage.gone)):
            slots |= goal.openings[other].slots
    return slots.bit_count()


def drop_instances(state: SearchState) -> Iterator[Choice]:
    """D: iterate over what the floors can miss, the largest for its supply first."""
    found = []
    for choice in remove_rest(state):
        slots = sum(each.slots.bit_count() for _, each in choice.gone)
        found.append((-slots / (0.01 + _waste(state, choice.gone, ())), choice))
    yield from _in_order(state, found)
