"""Whether a transition does what it says: replayed, and in the worst of all parallel executions.

Reads the actions alone; how they were found, and how their waits were made, does not matter here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

from ....schedule.faults import Violation
from ....values.numbers import shown
from ...hardware import MPS_CLIENTS
from ...serving.operating_point import mps_share
from ..checking import check_deployment
from ..instance import Instance, State, Work
from ..model import driver_branch
from ..recounting import beyond_limits
from .model import Transition, What, most_gpus
from .moments import bits_of, every_moment, layout_faults, predecessors, when, worst_moment
from .necessity import kept_faults, spare_fault
from .replay import count_kept, temporaries

#: What `check_transition` goes through.
RECHECKED = (
    "every action can be done where it stands, and touches nothing of another's",
    "the target is reached, and legal",
    "in every execution that respects the waits all floors hold",
    "all layouts are legal",
    "and no more GPUs are in use than said",
    "the instances kept, counted",
)

_Place = tuple[str, int]
#: Maximum number of moments looked at one by one.
_MOMENTS = 4096
#: How many instances an action removes and adds.
_SHAPES = {What.CREATE: (0, 1), What.DELETE: (1, 0), What.RESTART: (1, 1)}
_OF_ALL = partial(Violation, where="the transition")


def check_transition(transition: Transition) -> tuple[Violation, ...]:
    """Say all that is wrong with a transition, exactly.

    Returns
    -------
    tuple of Violation
        Empty if it is valid: every action can be done, none touches what is another's, the target
        is reached and legal, and in every execution that respects the waits, floors hold, layouts
        are legal and no more GPUs are in use than said. Nothing comes that the limits do not admit.
        The kinds are "action", "wait", "end", "floor", "limit", "layout", "gpus", "kept", "spare",
        "temporary" and those of `check_deployment`.

    Notes
    -----
    Floors and layouts: each sum at the worst moment that the waits allow, in whatever sequence the
    actions are written (:mod:`cms.fleet.deployment.transition.moments`). GPUs in use: as many as
    the theorem of :mod:`cms.fleet.deployment.transition.waits` allows, or, where the actions one
    after the other use fewer, moment by moment; of more than 4,096 moments the theorem's number
    stands, which may be too large.
    """
    for look in (_waits, _start, _actions):
        if found := tuple(look(transition)):
            return found
    faults = [*_end(transition)]
    if any(fault.kind == "profile" for fault in faults):
        return tuple(faults)  # no layout is known of it
    for look in (_floors, layout_faults, _gpus, _limits, _kept, kept_faults, _said):
        faults += look(transition)
    return tuple(faults or _necessity(transition))


def _waits(transition: Transition) -> Iterator[Violation]:
    for at, action in enumerate(transition.actions):
        wrong = [before for before in action.after if not 0 <= before < at]
        if wrong:
            yield Violation("wait", f"action {at}", f"a wait for {wrong[0]}", f"0 to {at - 1}")
        elif any(one >= other for one, other in pairwise(action.after)):
            has = f"waits for {', '.join(map(str, action.after))}"
            yield Violation("wait", f"action {at}", has, "each once, in ascending order")


def _start(transition: Transition) -> Iterator[Violation]:
    """What runs may be too little, but it must be able to be as it is written."""
    for fault in check_deployment(transition.start):
        if fault.kind != "capacity":
            yield fault._replace(where=f"in the start, {fault.where}")


def _actions(transition: Transition) -> Iterator[Violation]:
    """Do them one by one: each must find what it removes, and touch nothing of another's."""
    held = {(c.node, c.index): Counter(c.instances) for c in transition.start.gpus()}
    for at, action in enumerate(transition.actions):
        wrong = partial(Violation, "action", f"action {at} ({action})")
        if action.gpu not in held:
            yield wrong(f"no GPU {action.name}", "a GPU of the start")
            continue
        there, shape = held[action.gpu], (len(action.removes), len(action.adds))
        if _SHAPES.get(action.what, shape) != shape:
            yield wrong(f"{shape[0]} instances removed and {shape[1]} added", "what its kind does")
        if action.what is What.RESTART and shape == (1, 1):
            (old,), (new,) = action.removes, action.adds
            if (old.profile, old.start) != (new.profile, new.start):
                yield wrong(f"{old.place} as {new.place}", "one place")
        if action.what is What.REPARTITION:
            if Counter(action.removes) != there:
                yield wrong("instances left out", "all that is on the GPU")
        elif action.mode is not None:
            yield wrong("a change of mode", "a repartition for that")
        every = (*action.removes, *action.adds)
        if action.what is What.SWITCH:
            if not every or any(not mps_share(e.profile) or e.start is None for e in every):
                yield wrong("a switch of other things", "shares with their starts")
            if (clients := there.total() + len(action.prepared)) > MPS_CLIENTS:
                has = f"{clients} clients under MPS while it is prepared"
                yield wrong(has, f"at most {MPS_CLIENTS}")
        elif any(mps_share(each.profile) and each.start is not None for each in every):
            yield wrong("turns in a share changed", "a switch for that")
        for each in action.removes:
            if each.owner is not None:
                yield wrong(f"{each} removed", "instances of ours")
            if not there[each]:
                yield wrong(f"no {each}", "what it removes")
            there[each] -= 1
        for each in action.adds:
            if each.owner is not None or each.state is not State.RUNNING:
                yield wrong(f"{each} added", "running instances of ours")
            there[each] += 1


def _end(transition: Transition) -> Iterator[Violation]:
    sides = transition.start, transition.target
    start, target = ({(card.node, card.index): card for card in side.gpus()} for side in sides)
    drivers = [{n.name: n.driver and driver_branch(n.driver) for n in side.nodes} for side in sides]
    held = {place: Counter(card.instances) for place, card in start.items()}
    modes = {place: card.mode for place, card in start.items()}
    for action in transition.actions:
        held[action.gpu].subtract(action.removes)
        held[action.gpu].update(action.adds)
        modes[action.gpu] = action.mode or modes[action.gpu]
    for place in sorted({*start, *target}):
        wrong = partial(Violation, "end", f"{place[0]}/{place[1]}")
        if place not in target or place not in start:
            yield wrong("a GPU on one side only", "the same GPUs")
            continue
        old, new = start[place], target[place]
        known = {side[place[0]] for side in drivers} - {None}
        if old.gpu.key != new.gpu.key or len(known) > 1:
            yield wrong(f"{old.gpu.key} or its driver changed", "the same GPUs")
        if None not in (old.uuid, new.uuid) and old.uuid != new.uuid:
            yield wrong(f"{new.uuid}", f"{old.uuid}")
        has, needs = (Counter(map(_alike, e)) for e in (held[place].elements(), new.instances))
        if has != needs or (modes[place] is not new.mode and needs):
            there = ", ".join(map(str, (has - needs).elements())) or "all but something"
            yield wrong(there, ", ".join(map(str, (needs - has).elements())) or "no more")
    yield from check_deployment(transition.target)


def _alike(instance: Instance) -> Instance:
    """Leave out what only a driver can know, and what time alone brings about."""
    state = State.RUNNING if instance.state is State.STARTING else instance.state
    return replace(instance, gpu_instance=None, uuid=None, is_guessed=False, state=state)


def _floors(transition: Transition) -> Iterator[Violation]:
    floors = transition.floors
    for service, least, moment in _list_lowest(transition, floors):
        if least < floors[service].rps:
            has = f"{shown(least)} requests/s {when(transition.actions, moment)}"
            yield Violation("floor", f"service {service}", has, f"at least {floors[service]}")


def _list_lowest(
    transition: Transition, services: Iterable[str]
) -> Iterator[tuple[str, Fraction, tuple[int, ...]]]:
    removed, added = (defaultdict[str, dict[int, Fraction]](dict) for _ in range(2))
    for at, action in enumerate(transition.actions):
        for service in action.services:
            removed[service][at] = action.removed_rps(service)
            added[service][at] = action.added_rps(service)
    ended = predecessors(transition.actions)
    for service in services:
        lost, moment = worst_moment(ended, removed[service], added[service])
        yield service, transition.start.capacity(service) - lost, moment


def lowest_capacity(transition: Transition, service: str) -> Fraction:
    """Return what a service has at least, at any moment of any execution, in items per second.

    What the check holds against the floor: in no execution that respects the waits is it less, and
    in one of them it is as little.

    Examples
    --------
    >>> from cms.fleet.deployment import Deployment
    >>> from cms.fleet.deployment.transition import transition
    >>> lowest_capacity(transition(Deployment(()), Deployment(())), "chat")
    Fraction(0, 1)
    """
    ((_, least, _),) = _list_lowest(transition, [service])
    return least


def coming(transition: Transition) -> Iterator[Work | None]:
    """Iterate over the work that an action brings, and that the target has."""
    yield from (each.work for _, each in transition.target.instances())
    yield from (each.work for action in transition.actions for each in action.adds)


def _limits(transition: Transition) -> Iterator[Violation]:
    """What counts under the old limits alone may go, and not come."""
    start, target = transition.start, transition.target
    services = {service.name: service for service in (*start.services, *target.services)}
    for work in beyond_limits(coming(transition), services, target.rule or start.rule):
        has = f"{work}, which comes or is in the target"
        yield Violation("limit", f"service {work.service}", has, "work within its new limit")


def _gpus(transition: Transition) -> Iterator[Violation]:
    most = most_gpus(transition.start, transition.target) + transition.spare.count
    used = _used_at_once(transition)
    if used > most:
        yield _OF_ALL("gpus", has=f"{used} GPUs in use at once", needs=f"at most {most}")
    elif used < most:
        yield _OF_ALL("spare", has=f"{used} GPUs in use at most", needs=f"{most}, as it says")


def _used_at_once(transition: Transition) -> int:
    """Return the most GPUs in use; of too many moments, the theorem's number."""
    start, actions = transition.start, transition.actions
    ended = predecessors(actions)
    most, alone = _used_by_spans(transition, ended)
    moments = None if most == alone else every_moment(ended, _MOMENTS)
    if moments is None:
        return most
    held = {(card.node, card.index): len(card.instances) for card in start.gpus()}

    def used(begun: int, over: int) -> int:
        there = held.copy()
        for at in bits_of(begun):
            there[actions[at].gpu] += len(actions[at].adds)
        for at in bits_of(over):
            there[actions[at].gpu] -= len(actions[at].removes)
        return sum(count > 0 for count in there.values())

    return max(used(begun, over) for begun, over in moments)


def _used_by_spans(transition: Transition, ended: Sequence[int]) -> tuple[int, int]:
    """Return how many GPUs are in use at most, in any execution and one action after the other.

    A GPU is in use in spans: from an action that adds to it while it is empty, in the sequence,
    until it is empty again. Whatever adds in the last span that has begun must have waited for
    enough earlier spans to end.
    """
    held = {(card.node, card.index): len(card.instances) for card in transition.start.gpus()}
    most = alone = begun = sum(count > 0 for count in held.values())
    own: dict[_Place, int] = dict.fromkeys(held, 0)
    over: list[int] = []
    #: Of the span that a GPU is in: spans begun up to it, and those that ended before it.
    spans: dict[_Place, tuple[int, int]] = {}
    for at, action in enumerate(transition.actions):
        place, before = action.gpu, held[action.gpu]
        own[place] |= 1 << at
        held[place] += len(action.adds) - len(action.removes)
        if action.adds:
            if not before:
                begun += 1
                spans[place] = begun, len(over)
            if place in spans:
                count, known = spans[place]
                most = max(most, count - sum(ended[at] & s == s for s in over[:known]))
        if before and not held[place]:
            over.append(own[place])
            spans.pop(place, None)
        alone = max(alone, begun - len(over))
    return most, alone


def _kept(transition: Transition) -> Iterator[Violation]:
    kept, says = count_kept(transition.start, transition.actions), transition.kept
    if kept != says.count:
        yield _OF_ALL("kept", has=f"{kept} instances kept", needs=f"{says.count}, as it says")
    if says.most < kept:
        has = f"{kept} instances kept, above its bound"
        yield _OF_ALL("kept", has=has, needs=f"at most {says.most}")


def _necessity(transition: Transition) -> Iterator[Violation]:
    """Look over the proof that fewer spare GPUs will not do, of a transition without faults."""
    spare = transition.spare
    if spare.proof is not None and (fault := spare_fault(transition, spare.proof)):
        has = f"a proof that {spare.least} spare GPUs are needed: {fault}"
        yield _OF_ALL("spare", has=has, needs="one that holds")


def _said(transition: Transition) -> Iterator[Violation]:
    spare = transition.spare
    claims = bool(spare.least), bool(spare.reason), spare.proof is not None
    if spare.least > spare.count or len({*claims}) > 1:
        has = f"{spare.count} spare GPUs, {spare.least} of them needed"
        yield _OF_ALL("spare", has=has, needs="a reason and a proof of as many or fewer")
    free = [{c.name for c in side.free_gpus()} for side in (transition.start, transition.target)]
    lent = sorted(free[0] & free[1] & {action.name for action in transition.actions if action.adds})
    if sorted(spare.borrowed) != lent:
        has = f"{', '.join(sorted(spare.borrowed)) or 'nothing'} borrowed"
        yield _OF_ALL("spare", has=has, needs=", ".join(lent) or "nothing")
    temporary, unsure = temporaries(transition.start, transition.actions)
    for at, action in enumerate(transition.actions):
        if action.is_temporary != (at in temporary) and at not in unsure:
            has = f"is_temporary is {action.is_temporary}"
            yield Violation("temporary", f"action {at} ({action})", has, "what the actions do")
