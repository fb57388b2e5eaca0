"""What can be on each GPU at once, at the worst moment that the waits of a transition allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ....schedule.faults import Violation
from ...serving.operating_point import mps_share
from ..checking import check_gpu, unable_to_run
from ..instance import Instance, Mode
from ..model import FleetGpu
from ..turns import turn_faults
from .model import Action, Transition, What
from .moments import predecessors, worst_moment
from .order import repartitions

__all__ = ["layout_faults", "when"]

#: Of the actions that make a moment the worst, the last ones are named.
_MOST_NAMED = 3


def when(actions: Sequence[Action], moment: Sequence[int]) -> str:
    """Say when a moment is: with which actions under way."""
    if not moment:
        return "at the start"
    words = [f"action {at} ({actions[at]})" for at in moment[-_MOST_NAMED:]]
    more = len(moment) - len(words)
    return f"while {', '.join(words)}{f' and {more} more' * (more > 0)} can be under way"


def layout_faults(transition: Transition) -> Iterator[Violation]:
    """Say what cannot be on a GPU at some moment, or cannot be done there."""
    actions = transition.actions
    ended = predecessors(actions)
    on_gpu: dict[tuple[str, int], list[int]] = {}
    for at, action in enumerate(actions):
        before = on_gpu.setdefault(action.gpu, [])
        # of what came before a repartition, the repartition itself has waited
        alone = (
            before if repartitions(action) else [b for b in before if repartitions(actions[b])][-1:]
        )
        missing = [b for b in alone if not ended[at] >> b & 1]
        if missing:
            has = f"a GPU repartitioned beside another action, {missing[0]}"
            yield Violation("wait", f"action {at} ({action})", has, f"a wait for {missing[0]}")
        before.append(at)
    for card in transition.start.gpus():
        own = on_gpu.get((card.node, card.index), [])
        yield from _removed_early(card, actions, ended, own)
        yield from _crowded(card, actions, ended, own)
        yield from _come_in_vain(transition, card, own)


def _come_in_vain(
    transition: Transition, card: FleetGpu, own: Sequence[int]
) -> Iterator[Violation]:
    """New instances are offered by the driver, run their work, and wait for a repartition."""
    sides = transition.start, transition.target
    services = {service.name: service for side in sides for service in side.services}.values()
    known = [node.driver for side in sides for node in side.nodes if node.name == card.node]
    driver = next((each for each in known if each is not None), None)
    there = Counter(card.instances)
    for at in own:
        action = transition.actions[at]
        card = replace(card, mode=action.mode or card.mode, instances=action.adds)
        there.update(action.adds)
        there.subtract(action.removes)
        yield from unable_to_run(driver, card, services)
        if repartitions(action):
            yield from turn_faults(card.with_instances((+there).elements()), services)


def _removed_early(
    card: FleetGpu, actions: Sequence[Action], ended: Sequence[int], own: Sequence[int]
) -> Iterator[Violation]:
    """No more of what is equal may go than was there and has come for certain."""
    for each in {each for at in own for each in actions[at].adds}:
        gone, come = (
            {at: n for at in own if (n := getattr(actions[at], part).count(each))}
            for part in ("removes", "adds")
        )
        more, moment = worst_moment(actions, ended, gone, come)
        if more > card.instances.count(each):
            has = f"{each} removed before it is there {when(actions, moment)}"
            yield Violation("wait", card.name, has, "a wait for what adds it")


def _crowded(
    card: FleetGpu, actions: Sequence[Action], ended: Sequence[int], own: Sequence[int]
) -> Iterator[Violation]:
    """What can be on a GPU at once must be legal, from one repartition to the next."""
    # whatever works there: a restart keeps its place
    there = Counter(map(_bare, card.instances))
    moving: list[int] = []
    for at in own:
        action = actions[at]
        if repartitions(action):
            yield from _at_once(card, there, actions, ended, moving)
            for b in (*moving, at):
                there.update(map(_bare, actions[b].adds))
                there.subtract(map(_bare, actions[b].removes))
            card, moving = replace(card, mode=action.mode or card.mode), []
            yield from _illegal(card, there, actions, (at,))
        elif action.what is not What.RESTART:
            moving.append(at)
    yield from _at_once(card, there, actions, ended, moving)


def _bare(instance: Instance) -> Instance:
    return Instance(instance.profile, instance.start)


def _illegal(
    card: FleetGpu, there: Counter[Instance], actions: Sequence[Action], moment: Sequence[int]
) -> list[Violation]:
    found = check_gpu(replace(card, instances=tuple((+there).elements())))
    words = when(actions, moment)
    return [Violation("layout", each.where, f"{each.has} {words}", each.needs) for each in found]


def _at_once(
    card: FleetGpu,
    there: Counter[Instance],
    actions: Sequence[Action],
    ended: Sequence[int],
    moving: Sequence[int],
) -> Iterator[Violation]:
    """Say what is illegal at the worst moment of the first rule that is broken."""
    adding = [at for at in moving if actions[at].adds]
    unknown = sum(n for each, n in there.items() if each.start is None)
    for at in adding if card.mode is Mode.MIG else ():
        earlier = [actions[b].removes for b in moving if ended[at] >> b & 1]
        gone = sum(each.start is None for removes in earlier for each in removes)
        if gone < unknown or any(each.start is None for each in actions[at].adds):
            has = "an instance added beside one whose start is not known"
            yield Violation("start", f"action {at} ({actions[at]})", has, "known starts")
    alone = [(at, Counter(map(_bare, actions[at].adds))) for at in adding]
    wrong = [each for at, added in alone for each in _illegal(card, added, actions, (at,))]
    yield from dict.fromkeys(wrong)
    for weight in () if wrong or not adding else _weights(card):
        adds, takes = (
            {at: n for at in moving if (n := sum(map(weight, getattr(actions[at], part))))}
            for part in ("adds", "removes")
        )
        more, moment = worst_moment(actions, ended, adds, takes)
        if more > 0:
            begun = sum(1 << at for at in moment)
            over = 0
            for at in moment:
                over |= ended[at]
            full = there.copy()
            for at in moving:
                full.update(map(_bare, actions[at].adds if (begun | over) >> at & 1 else ()))
                full.subtract(map(_bare, actions[at].removes if over >> at & 1 else ()))
            if found := _illegal(card, full, actions, moment):
                yield from found
                return


def _weights(card: FleetGpu) -> Iterator[Callable[[Instance], int]]:
    if card.mode is not Mode.MIG:
        yield lambda each: 1
        yield lambda each: (mps_share(each.profile) or 0) if each.start is None else 0
        return
    profile = card.gpu.profile

    def takes(slot: int, each: Instance) -> int:
        return int(each.start is not None and 0 <= slot - each.start < profile(each.profile).memory)

    def is_called(name: str, each: Instance) -> int:
        return int(profile(each.profile).name == name)

    yield from (partial(takes, slot) for slot in range(card.gpu.memory_slices))
    yield from (partial(is_called, each.name) for each in card.gpu.profiles)
    yield lambda each: profile(each.profile).compute
    yield lambda each: profile(each.profile).memory
    yield lambda each: int(profile(each.profile).has_media_engines)
