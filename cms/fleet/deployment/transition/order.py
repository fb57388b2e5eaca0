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
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ....errors import AlgorithmError
from ..checking import check_gpu
from ..instance import Instance, Mode
from ..model import Deployment, FleetGpu
from .model import Action, Floor, What

__all__ = ["most_in_use", "ordered", "repartitions", "temporaries", "with_waits"]

_Place = tuple[str, int]


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
    return with_waits(actions, waits)


def with_waits(actions: Sequence[Action], waits: Sequence[set[int]]) -> tuple[Action, ...]:
    """Return actions that wait for what is given, where it does not follow from the rest."""
    return tuple(
        replace(action, after=tuple(sorted(needed)))
        for action, needed in zip(actions, _reduced(waits), strict=True)
    )


def most_in_use(start: Deployment, actions: Sequence[Action]) -> int:
    """Return how many GPUs are in use at most, if each action has ended before the next begins."""
    held = {(card.node, card.index): len(card.instances) for card in start.gpus()}
    most = used = sum(count > 0 for count in held.values())
    for action in actions:
        before = held[action.gpu]
        # what removes and adds at once has the GPU all the time
        held[action.gpu] = before - len(action.removes) + len(action.adds)
        used += (held[action.gpu] > 0) - (before > 0)
        most = max(most, used)
    return most


def temporaries(start: Deployment, actions: Sequence[Action]) -> tuple[set[int], set[int]]:
    """Return the actions whose additions go again or that remove such, and those not to tell.

    Which of equal ones goes cannot be told.
    """
    adders: dict[tuple[_Place, Instance], list[int]] = {}
    for card, instance in start.instances():
        adders.setdefault(((card.node, card.index), instance), []).append(-1)
    temporary: set[int] = set()
    unsure: set[int] = set()
    for at, action in enumerate(actions):
        for each in action.removes:
            there = adders.get((action.gpu, each), [])
            if len(there) > 1:
                unsure.update((at, *there))
            adder = there.pop() if there else -1
            if adder >= 0:
                temporary.update((at, adder))
        for each in action.adds:
            adders.setdefault((action.gpu, each), []).append(at)
    return temporary, unsure


def repartitions(action: Action) -> bool:
    """Whether an action has its GPU for itself."""
    return action.what in (What.REPARTITION, What.SWITCH) or action.mode is not None


def _for_floors(
    start: Deployment, actions: Sequence[Action], floors: Mapping[str, Floor], waits: list[set[int]]
) -> None:
    for service, floor in floors.items():
        if floor.rps <= 0:
            continue
        here = [(at, a) for at, a in enumerate(actions) if service in a.services]
        adders = [(at, rps) for at, a in here if (rps := a.added_rps(service))]
        guaranteed, used = start.capacity(service), 0
        for at, action in here:
            removed = action.removed_rps(service)
            if not removed:
                continue
            guaranteed -= removed
            while guaranteed < floor.rps:
                if used == len(adders) or adders[used][0] >= at:
                    raise AlgorithmError(
                        "transition",
                        f"action {at} ({action}) takes {service} below its floor of {floor}",
                    )
                guaranteed += adders[used][1]
                used += 1
            surplus = guaranteed - floor.rps
            for before, rps in reversed(adders[:used]):  # the last ones end last
                if rps <= surplus:
                    surplus -= rps
                else:
                    waits[at].add(before)


def _for_layouts(start: Deployment, actions: Sequence[Action], waits: list[set[int]]) -> None:
    cards = {(card.node, card.index): card for card in start.gpus()}
    earlier: dict[_Place, list[int]] = {}
    for at, action in enumerate(actions):
        card = cards[action.gpu]
        before = earlier.setdefault(action.gpu, [])
        if action.adds or repartitions(action):
            waits[at].update(_needed(card, actions, before, at))
        # an instance goes only after it has come
        waits[at].update(b for b in before if set(actions[b].adds) & set(action.removes))
        before.append(at)


def _needed(
    card: FleetGpu, actions: Sequence[Action], before: Sequence[int], at: int
) -> Iterable[int]:
    """Return the earlier actions on a GPU that have to end before something is added to it."""
    action = actions[at]
    if repartitions(action):
        return before
    repartitioned = [number for number, b in enumerate(before) if repartitions(actions[b])]
    if repartitioned:  # which waits for all before it
        until = repartitioned[-1] + 1
        for b in before[:until]:
            left = list(card.instances)
            for each in actions[b].removes:
                _take(left, each, b)
            card = card.with_instances((*left, *actions[b].adds), actions[b].mode)
        return [before[until - 1], *_needed(card, actions, before[until:], at)]
    slots = {slot for each in action.adds for slot in _slots(card, each)}
    overlapping = [
        b for b in before if any(slots & _slots(card, each) for each in actions[b].removes)
    ]
    most = _most(card, actions, before, overlapping, action)
    if not check_gpu(replace(card, instances=tuple(most))):
        return overlapping
    every = [b for b in before if actions[b].removes]
    most = _most(card, actions, before, every, action)
    for violation in check_gpu(replace(card, instances=tuple(most))):
        raise AlgorithmError("transition", f"action {at} ({action}): {violation}")
    return every


def _most(
    card: FleetGpu,
    actions: Sequence[Action],
    before: Sequence[int],
    ended: Collection[int],
    action: Action,
) -> list[Instance]:
    """Return all that can be on a GPU while an action is under way, after some have ended.

    The place of a restart is taken once, ended or not.
    """
    there = list(card.instances)
    for b in before:
        there += actions[b].adds
    for b in before:
        if b in ended or actions[b].what is What.RESTART:
            for each in actions[b].removes:
                _take(there, each, b)
    there += [each for each in action.adds if each not in action.removes]
    # in a restart the place is taken once
    for one in action.removes:
        if any((one.profile, one.start) == (new.profile, new.start) for new in action.adds):
            there.remove(one)
    return there


def _take(there: list[Instance], instance: Instance, at: int) -> None:
    if instance not in there:
        raise AlgorithmError("transition", f"action {at} removes {instance}, which is not there")
    there.remove(instance)


def _slots(card: FleetGpu, instance: Instance) -> set[int]:
    if instance.start is None or card.mode is not Mode.MIG:
        return set()
    return set(range(instance.start, instance.start + card.gpu.profile(instance.profile).memory))


def _for_gpus(
    start: Deployment, actions: Sequence[Action], most: int, waits: list[set[int]]
) -> None:
    held = {(card.node, card.index): list(card.instances) for card in start.gpus()}
    guaranteed, used = sum(bool(instances) for instances in held.values()), 0
    emptied: list[tuple[int, ...]] = []
    on_gpu: dict[_Place, list[int]] = {}
    asked: dict[_Place, int] = {}
    for at, action in enumerate(actions):
        own = held[action.gpu]
        was_empty = not own
        for each in action.removes:
            _take(own, each, at)
        own.extend(action.adds)
        on_gpu.setdefault(action.gpu, []).append(at)
        if was_empty and action.adds:
            guaranteed += 1
            while guaranteed > most:
                if used == len(emptied):
                    raise AlgorithmError(
                        "transition", f"action {at} ({action}) uses more than {most} GPUs"
                    )
                guaranteed -= 1
                used += 1
            asked[action.gpu] = used
        if action.adds:
            for ended in emptied[: asked.get(action.gpu, 0)]:
                waits[at].update(ended)
        if not was_empty and not own:
            emptied.append(tuple(on_gpu[action.gpu]))
            asked[action.gpu] = 0


def _reduced(waits: Sequence[set[int]]) -> list[set[int]]:
    """Leave out waits that follow from others."""
    closed: list[int] = []
    found = []
    for needed in waits:
        bits, kept = 0, set()
        for before in sorted(needed, reverse=True):
            if not bits >> before & 1:
                kept.add(before)
                bits |= closed[before] | 1 << before
        closed.append(bits)
        found.append(kept)
    return found
