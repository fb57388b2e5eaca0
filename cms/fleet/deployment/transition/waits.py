"""Which actions must have ended before another begins, so that any parallel execution is safe.

Theorem. Take a sequence of actions in which, whenever one is under way and all before it have
ended, every floor holds, every layout is legal and no more GPUs are in use than may be. Let

1. an action that removes capacity of a service wait for as many of the first actions that add to
   that service as its floor needs, when all removals up to this one have begun, but for those that
   are not needed beside the others;
2. an action that adds to a GPU wait for all earlier actions on that GPU whose removals it needs:
   those in its slots, and where sums or maxima would be exceeded, all; and a repartition or a
   switch, which has its GPU for itself, wait for all earlier actions there, and all later ones for
   it;
3. an action that takes a GPU into use, and all that add to the GPU before it is empty again, wait
   for as many of the first GPUs to become empty as the number of GPUs in use needs.

Then every execution that respects these waits, however long actions take and however many run at
once, keeps every floor at every moment, every layout legal, and uses no more GPUs.

Proof. Floors: at any moment let d be the last, in the sequence, of the actions that have begun and
remove capacity of a service. All that have begun and remove are among those up to d, and those that
d waits for have ended; so capacity is at least what rule 1 asked for. Layouts: let c be the last,
in the sequence, of the actions that have begun and add to a GPU. What is there is part of what the
sequence has there while c is under way, but for removals that c waits for; and parts of legal
layouts are legal. GPUs in use: as for floors, with the last action that takes one into use. ∎

A sequence is made shorter in time by putting what removes capacity where it begins, and what adds
where it ends, in a schedule of the waits that hold: the new sequence is as safe as the old one. A
deletion then waits for the creations that end first, not for those that the old sequence had first.
The old schedule still respects all waits, so that a new one can only be shorter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....errors import AlgorithmError
from ....schedule.faults import Violation
from ..checking import check_gpu
from ..instance import Instance
from ..model import Deployment, FleetGpu
from .durations import Durations, Timed
from .model import Action, Floor, What, all_slots
from .replay import list_changes, list_uses, most_in_use

_Place = tuple[str, int]
_ROUNDS = 6


def ordered(
    start: Deployment,
    actions: Sequence[Action],
    floors: Mapping[str, Floor],
    most_gpus: int | None = None,
) -> tuple[Action, ...]:
    """Return the actions of a safe sequence with what each must wait for, and no more.

    What they say of `after` is replaced; a sequence that is not safe is refused.
    """
    waits: list[set[int]] = [set() for _ in actions]
    _for_floors(start, actions, floors, waits)
    _for_layouts(start, actions, waits)
    if most_gpus is not None:
        _for_gpus(start, actions, most_gpus, waits)
    return _with_waits(actions, waits)


def _with_waits(actions: Sequence[Action], waits: Sequence[set[int]]) -> tuple[Action, ...]:
    """Return actions that wait for what is given, where it does not follow from the rest."""
    closed: list[int] = []
    found = []
    for action, needed in zip(actions, waits, strict=True):
        bits, after = 0, list[int]()
        for before in sorted(needed, reverse=True):
            if not bits >> before & 1:
                after.append(before)
                bits |= closed[before] | 1 << before
        closed.append(bits)
        found.append(replace(action, after=tuple(reversed(after))))
    return tuple(found)


def _for_floors(
    start: Deployment, actions: Sequence[Action], floors: Mapping[str, Floor], waits: list[set[int]]
) -> None:
    changes = list_changes(actions)
    for service, floor in floors.items():
        if floor.rps <= 0:
            continue
        removed, added = changes[service]
        adders, guaranteed, used = list(added.items()), start.capacity(service), 0
        for at, rps in removed.items():
            guaranteed -= rps
            while guaranteed < floor.rps:
                if used == len(adders) or adders[used][0] >= at:
                    what = f"{actions[at]}) takes {service} below its floor of {floor}"
                    raise AlgorithmError("transition", f"action {at} ({what}")
                guaranteed += adders[used][1]
                used += 1
            surplus = guaranteed - floor.rps
            for before, more in reversed(adders[:used]):  # the last ones end last
                if more <= surplus:
                    surplus -= more
                else:
                    waits[at].add(before)


def _for_layouts(start: Deployment, actions: Sequence[Action], waits: list[set[int]]) -> None:
    cards = {(card.node, card.index): card for card in start.gpus()}  # after the last repartition
    last: dict[_Place, int] = {}
    since: dict[_Place, list[int]] = {}
    for at, action in enumerate(actions):
        gpu, before = action.gpu, since.setdefault(action.gpu, [])
        card, every = cards[gpu], [*before, at]
        if gpu in last and (action.adds or action.has_its_gpu):
            waits[at].add(last[gpu])
        if action.has_its_gpu:
            waits[at].update(before)
            cards[gpu] = card.with_instances(_list_most(card, actions, every, every), action.mode)
            last[gpu], since[gpu] = at, []
            continue
        if action.adds:
            removers = [b for b in before if actions[b].removes]
            comes = all_slots(card.gpu, action.adds)
            in_place = [b for b in removers if comes & all_slots(card.gpu, actions[b].removes)]
            faults: tuple[Violation, ...] = ()
            for ended in (in_place, removers):  # those in its slots; all for sums and maxima
                most = tuple(_list_most(card, actions, every, ended))
                if not (faults := check_gpu(replace(card, instances=most))):
                    waits[at].update(ended)
                    break
            else:
                raise AlgorithmError("transition", f"action {at} ({action}): {faults[0]}")
        # an instance goes only after it has come
        own = (*(b for b in (last.get(gpu),) if b is not None), *before)
        waits[at].update(b for b in own if set(actions[b].adds) & set(action.removes))
        before.append(at)


def _list_most(
    card: FleetGpu, actions: Sequence[Action], every: Sequence[int], ended: Collection[int]
) -> list[Instance]:
    """List all that can be on a GPU with these actions begun and some of them ended."""
    there = [*card.instances, *(each for at in every for each in actions[at].adds)]
    for at in every:
        if at in ended or actions[at].what is What.RESTART:  # its place is taken once
            for each in actions[at].removes:
                if each not in there:
                    what = f"action {at} removes {each}, which is not there"
                    raise AlgorithmError("transition", what)
                there.remove(each)
    return there


def _for_gpus(
    start: Deployment, actions: Sequence[Action], most: int, waits: list[set[int]]
) -> None:
    uses = list_uses(start, actions)
    over = sorted(uses, key=lambda use: use.end)
    for needed, use in enumerate(uses, 1 - most):
        if use.begin >= 0 and needed > 0:
            if over[needed - 1].end > use.begin:
                what = f"{actions[use.begin]}) uses more than {most} GPUs"
                raise AlgorithmError("transition", f"action {use.begin} ({what}")
            every = {at for one in over[:needed] for at in one.members}
            for at in use.adders:
                waits[at] |= every


# --- the same actions in less time ----------------------------------------------------------------


class ShortOrder(NamedTuple):
    """A sequence with its waits."""

    milliseconds: int
    actions: tuple[Action, ...]
    gpus: int  # in use at some moment of it, and no more at any moment of any execution


def find_short_order(
    start: Deployment,
    actions: Sequence[Action],
    floors: Mapping[str, Floor],
    most_gpus: int,
    durations: Durations,
    max_parallel: int | None = None,
) -> ShortOrder:
    """Find a sequence that takes less time; if it uses fewer GPUs, it has to stay with those."""

    def order(sequence: Sequence[Action]) -> tuple[tuple[Action, ...], Timed]:
        done = ordered(start, sequence, floors, most_gpus)
        return done, Timed.of(start, done, durations, max_parallel)

    best, timed = order(actions)
    for _ in range(_ROUNDS):
        ranks = [
            begin + (0 if each.removes else takes)
            for each, begin, takes in zip(best, timed.begin, timed.takes, strict=True)
        ]
        again, then = order([best[at] for at in sorted(range(len(best)), key=ranks.__getitem__)])
        if then.end >= timed.end:
            break
        best, timed = again, then
    used = most_in_use(list_uses(start, best))
    if used < most_gpus:
        return find_short_order(start, best, floors, used, durations, max_parallel)
    return ShortOrder(timed.end, best, used)


def order_groups(
    start: Deployment,
    actions: Sequence[Action],
    groups: Sequence[int],
    floors: Mapping[str, Floor],
    durations: Durations,
    max_parallel: int | None = None,
) -> ShortOrder:
    """Have the actions of a group wait for the same; a node that is drained is apart from others.

    `groups`: By action, 0 where it happens alone. The sequence stays as it is.
    """
    used = most_in_use(list_uses(start, actions))
    done = ordered(start, actions, floors, used)
    alone = [
        {*a.after, *(b for b in range(at) if groups[b] != groups[at] and done[b].node == a.node)}
        for at, a in enumerate(done)
    ]  # what comes before on a node that is drained for one of them: it stops all
    waits: dict[int, set[int]] = {}
    for at, group in enumerate(groups):
        waits.setdefault(group, set()).update(alone[at])
    # a node begins once all that any of its GPUs waits for has ended
    together = [
        {before for before in waits[group] if groups[before] != group} if group else alone[at]
        for at, group in enumerate(groups)
    ]
    done = _with_waits(done, together)
    return ShortOrder(Timed.of(start, done, durations, max_parallel, by_node=True).end, done, used)
