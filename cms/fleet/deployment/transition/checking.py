"""Whether a transition does what it says: replayed, and in the worst of all parallel executions.

Reads the actions alone; how they were found, and how their waits were made, does not matter here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

from ....schedule.faults import Violation
from ....values.numbers import shown
from ...hardware import MPS_CLIENTS, Profile
from ...serving.operating_point import mps_share
from ..checking import check_deployment, check_gpu, unable_to_run
from ..instance import Instance, Mode, State, Work
from ..model import Deployment, FleetGpu, driver_branch
from ..recounting import beyond_limits
from ..turns import turn_faults
from .kept import count_kept, kept_faults
from .model import Action, Transition, What, most_gpus, slots_of
from .moments import every_moment, predecessors, when, worst_moment
from .necessity import spare_fault
from .replay import temporaries

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
    stands, which may be too large. What no action can do is said alone.
    """
    if faults := [*_waits(transition)]:
        return tuple(faults)
    done = _Replay(transition)
    if done.faults:
        return tuple(done.faults)
    faults += _end(done)
    if any(fault.kind == "profile" for fault in faults):
        return tuple(faults)  # no layout is known of it
    for look in (_floors, _removed_early, _crowded, _gpus):
        faults += look(done)
    faults += [*_said(transition), *kept_faults(transition)]
    spare = transition.spare
    if not faults and spare.proof is not None and (why := spare_fault(transition, spare.proof)):
        has = f"a proof that {spare.least} spare GPUs are needed: {why}"
        faults.append(_OF_ALL("spare", has=has, needs="one that holds"))
    return tuple(faults)


def _waits(transition: Transition) -> Iterator[Violation]:
    """What waits must be earlier; what runs must be able to be as it is, and may be too little."""
    for at, action in enumerate(transition.actions):
        wrong = [before for before in action.after if not 0 <= before < at]
        if wrong:
            yield Violation("wait", f"action {at}", f"a wait for {wrong[0]}", f"0 to {at - 1}")
        elif any(one >= other for one, other in pairwise(action.after)):
            has = f"waits for {', '.join(map(str, action.after))}"
            yield Violation("wait", f"action {at}", has, "each once, in ascending order")
    for fault in check_deployment(transition.start):
        if fault.kind != "capacity":
            yield fault._replace(where=f"in the start, {fault.where}")


class _Replay:
    """The actions one by one: each must find what it removes, and touch nothing of another's."""

    def __init__(self, of: Transition) -> None:
        self.of, self.faults, self.ended = of, list[Violation](), predecessors(of.actions)
        self.cards = {(card.node, card.index): card for card in of.start.gpus()}
        self.held = {place: Counter(card.instances) for place, card in self.cards.items()}
        self.on_gpu: dict[_Place, list[int]] = {place: [] for place in self.cards}
        #: By GPU, from one action that has it for itself to the next: as it is, and what moves.
        self.stretches: dict[_Place, list[tuple[FleetGpu, list[int]]]] = {
            place: [(_idle(card, card.instances), [])] for place, card in self.cards.items()
        }
        sides = of.start, of.target
        self._services = {each.name: each for side in sides for each in side.services}.values()
        nodes = (node for side in reversed(sides) for node in side.nodes)
        self._drivers = {node.name: node.driver for node in nodes if node.driver is not None}
        for at, action in enumerate(of.actions):
            wrong = partial(Violation, "action", f"action {at} ({action})")
            if action.gpu in self.held:
                self.faults += self._do(at, action, wrong)
            else:
                self.faults.append(wrong(f"no GPU {action.name}", "a GPU of the start"))

    def _do(
        self, at: int, action: Action, wrong: Callable[[str, str], Violation]
    ) -> Iterator[Violation]:
        place, there = action.gpu, self.held[action.gpu]
        every, shape = (*action.removes, *action.adds), (len(action.removes), len(action.adds))
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
        card = self.cards[place] = replace(
            self.cards[place], mode=action.mode or self.cards[place].mode, instances=action.adds
        )
        yield from unable_to_run(self._drivers.get(card.node), card, self._services)
        earlier, stretches = self.on_gpu[place], self.stretches[place]
        if action.has_its_gpu:
            full = card.with_instances((+there).elements())
            stretches.append((_idle(card, full.instances), []))
            yield from turn_faults(full, self._services)
        elif action.what is not What.RESTART:  # whatever works there: a restart keeps its place
            stretches[-1][1].append(at)
        changed = stretches[-1][0] if action.has_its_gpu else _idle(card, action.adds)
        for fault in check_gpu(changed):
            has = f"{fault.has} {when(self.of.actions, (at,))}"
            yield Violation("layout", fault.where, has, fault.needs)
        # of what came before a repartition, the repartition itself has waited
        last = [b for b in earlier if self.of.actions[b].has_its_gpu][-1:]
        for b in earlier if action.has_its_gpu else last:
            if not self.ended[at] >> b & 1:
                has = f"a GPU repartitioned beside another action, {b}"
                yield Violation("wait", f"action {at} ({action})", has, f"a wait for {b}")
                break
        earlier.append(at)


def unlike_gpus(start: Deployment, target: Deployment) -> Iterator[tuple[str, str, str]]:
    """Iterate over what is known of GPUs on both sides and differs: its name, before, after."""
    old, new = ({card.name: card for card in side.gpus()} for side in (start, target))
    drivers = [
        {node.name: node.driver and str(driver_branch(node.driver)) for node in side.nodes}
        for side in (start, target)
    ]
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        if one is None or other is None:
            was, becomes = ("missing" if c is None else c.gpu.key for c in (one, other))
            yield f"GPU {name}", was, becomes
            continue
        for what, had, has in (
            (f"GPU {name}", one.gpu.key, other.gpu.key),
            (f"GPU {name}", one.uuid, other.uuid),
            (f"the driver of node {one.node!r}", drivers[0][one.node], drivers[1][one.node]),
        ):
            if None not in (had, has) and had != has:
                yield what, str(had), str(has)


def _idle(card: FleetGpu, instances: Iterable[Instance]) -> FleetGpu:
    """Return a GPU with these instances, which do nothing: only their places count."""
    bare = (Instance(each.profile, each.start) for each in instances)
    return replace(card, instances=tuple(bare))


def _end(done: _Replay) -> Iterator[Violation]:
    target = done.of.target
    for what, was, becomes in unlike_gpus(done.of.start, target):
        yield Violation("end", what, f"{was} in the start, {becomes} in the target", "one of both")
    for card in target.gpus():
        place = card.node, card.index
        if place in done.held:
            has = Counter(map(_alike, done.held[place].elements()))
            needs = Counter(map(_alike, card.instances))
            if has != needs or (done.cards[place].mode is not card.mode and needs):
                there = ", ".join(map(str, (has - needs).elements())) or "all but something"
                lacks = ", ".join(map(str, (needs - has).elements())) or "no more"
                yield Violation("end", card.name, there, lacks)
    yield from check_deployment(target)


def _alike(instance: Instance) -> Instance:
    """Leave out what only a driver can know, and what time alone brings about."""
    state = State.RUNNING if instance.state is State.STARTING else instance.state
    return replace(instance, gpu_instance=None, uuid=None, is_guessed=False, state=state)


def _floors(done: _Replay) -> Iterator[Violation]:
    floors, actions = done.of.floors, done.of.actions
    for service, least, moment in _list_lowest(done.of, floors, done.ended):
        if least < floors[service].rps:
            has = f"{shown(least)} requests/s {when(actions, moment)}"
            yield Violation("floor", f"service {service}", has, f"at least {floors[service]}")


def _list_lowest(
    transition: Transition, services: Iterable[str], ended: Sequence[int]
) -> Iterator[tuple[str, Fraction, tuple[int, ...]]]:
    moves: dict[str, list[tuple[int, Action]]] = {}
    for at, action in enumerate(transition.actions):
        for service in action.services:
            moves.setdefault(service, []).append((at, action))
    for service in services:
        own = moves.get(service, ())
        removed = {at: action.removed_rps(service) for at, action in own}
        lost, moment = worst_moment(
            ended, removed, {at: action.added_rps(service) for at, action in own}
        )
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
    ((_, least, _),) = _list_lowest(transition, [service], predecessors(transition.actions))
    return least


def _removed_early(done: _Replay) -> Iterator[Violation]:
    """No more of what is equal may go than was there and has come for certain."""
    actions, there = done.of.actions, {c.name: c.instances for c in done.of.start.gpus()}
    for place, own in done.on_gpu.items():
        name = done.cards[place].name
        for each in {each for at in own for each in actions[at].adds}:
            gone, come = (
                {at: n for at in own if (n := getattr(actions[at], part).count(each))}
                for part in ("removes", "adds")
            )
            more, moment = worst_moment(done.ended, gone, come)
            if more > there[name].count(each):
                has = f"{each} removed before it is there {when(actions, moment)}"
                yield Violation("wait", name, has, "a wait for what adds it")


def _crowded(done: _Replay) -> Iterator[Violation]:
    """What can be on a GPU at once must be legal, from one repartition to the next."""
    actions, ended = done.of.actions, done.ended
    for card, moving in (one for own in done.stretches.values() for one in own):
        adding = [at for at in moving if actions[at].adds]
        unknown = sum(each.start is None for each in card.instances)
        for at in adding if card.mode is Mode.MIG else ():
            earlier = [actions[b].removes for b in moving if ended[at] >> b & 1]
            gone = sum(each.start is None for removes in earlier for each in removes)
            if gone < unknown or any(each.start is None for each in actions[at].adds):
                has = "an instance added beside one whose start is not known"
                yield Violation("start", f"action {at} ({actions[at]})", has, "known starts")
        for what, most, weight in _list_sums(card) if adding else ():
            adds, takes = (
                {at: n for at in moving if (n := sum(map(weight, getattr(actions[at], part))))}
                for part in ("adds", "removes")
            )
            more, moment = worst_moment(ended, adds, takes)
            if (total := sum(map(weight, card.instances)) + more) > most:
                has = f"{total} {what} {when(actions, moment)}"
                yield Violation("layout", card.name, has, f"at most {most}")


def _list_sums(card: FleetGpu) -> list[tuple[str, int, Callable[[Instance], int]]]:
    """List what a GPU limits: in words, the most of it, and what an instance counts for."""
    gpu, profile = card.gpu, card.gpu.profile
    if card.mode is not Mode.MIG:
        turns = {(e.start, e.profile) for e in card.instances if e.start is not None}
        left = 100 - sum(mps_share(profile) or 0 for _, profile in turns)
        return [
            ("instances", MPS_CLIENTS if card.mode is Mode.MPS else 1, lambda each: 1),
            ("% in shares", left, lambda e: (mps_share(e.profile) or 0) * (e.start is None)),
        ]

    def takes(slot: int, each: Instance) -> int:
        return slots_of(gpu, each.profile, each.start) >> slot & 1

    def is_called(own: Profile, each: Instance) -> int:
        return profile(each.profile) is own

    return [
        *((f"instances on memory slice {at}", 1, partial(takes, at))
          for at in range(gpu.memory_slices)),
        *((f"x {own.name}", own.max, partial(is_called, own)) for own in gpu.profiles),
        ("compute slices in use", gpu.compute_slices, lambda each: profile(each.profile).compute),
        ("memory slices in use", gpu.memory_slices, lambda each: profile(each.profile).memory),
        ("instances with media engines", 1, lambda each: profile(each.profile).has_media_engines),
    ]  # fmt: skip


def _gpus(done: _Replay) -> Iterator[Violation]:
    """Say how many GPUs are in use at most; of too many moments, the theorem's number."""
    held = Counter((card.node, card.index) for card, _ in done.of.start.instances())
    most, alone = _used_by_spans(done, held)
    moments = []
    for begun, over in (most > alone and every_moment(done.ended, _MOMENTS)) or ():
        there = held.copy()
        for at, action in enumerate(done.of.actions):
            there[action.gpu] += len(action.adds) * (begun >> at & 1)
            there[action.gpu] -= len(action.removes) * (over >> at & 1)
        moments.append(sum(count > 0 for count in there.values()))
    used = max(moments, default=most)
    may = most_gpus(done.of.start, done.of.target) + done.of.spare.count
    if used > may:
        yield _OF_ALL("gpus", has=f"{used} GPUs in use at once", needs=f"at most {may}")
    elif used < may:
        yield _OF_ALL("spare", has=f"{used} GPUs in use at most", needs=f"{may}, as it says")


def _used_by_spans(done: _Replay, first: Mapping[_Place, int]) -> tuple[int, int]:
    """Return how many GPUs are in use at most, in any execution and one action after the other.

    A GPU is in use in spans: from an action that adds to it while it is empty, in the sequence,
    until it is empty again. Whatever adds in the last span that has begun must have waited for
    enough earlier spans to end.
    """
    held, own, over = Counter(first), Counter[_Place](), list[int]()
    most = alone = begun = len(held)
    #: Of the span that a GPU is in: spans begun up to it, and those that ended before it.
    spans: dict[_Place, tuple[int, int]] = {}
    for at, action in enumerate(done.of.actions):
        place, before = action.gpu, held[action.gpu]
        own[place] |= 1 << at
        held[place] += len(action.adds) - len(action.removes)
        if action.adds:
            if not before:
                begun += 1
                spans[place] = begun, len(over)
            if place in spans:
                count, known = spans[place]
                most = max(most, count - sum(done.ended[at] & s == s for s in over[:known]))
        if before and not held[place]:
            over.append(own[place])
            spans.pop(place, None)
        alone = max(alone, begun - len(over))
    return most, alone


def coming(transition: Transition) -> Iterator[Work | None]:
    """Iterate over the work that an action brings, and that the target has."""
    yield from (each.work for _, each in transition.target.instances())
    yield from (each.work for action in transition.actions for each in action.adds)


def _said(transition: Transition) -> Iterator[Violation]:
    """What counts under the old limits alone may go, and not come; and what it says of itself."""
    start, target = transition.start, transition.target
    services = {service.name: service for service in (*start.services, *target.services)}
    for work in beyond_limits(coming(transition), services, target.rule or start.rule):
        has = f"{work}, which comes or is in the target"
        yield Violation("limit", f"service {work.service}", has, "work within its new limit")
    kept, says = count_kept(start, transition.actions), transition.kept
    if kept != says.count:
        yield _OF_ALL("kept", has=f"{kept} instances kept", needs=f"{says.count}, as it says")
    if says.most < kept:
        has = f"{kept} instances kept, above its bound"
        yield _OF_ALL("kept", has=has, needs=f"at most {says.most}")
    spare = transition.spare
    claims = bool(spare.least), bool(spare.reason), spare.proof is not None
    if spare.least > spare.count or len({*claims}) > 1:
        has = f"{spare.count} spare GPUs, {spare.least} of them needed"
        yield _OF_ALL("spare", has=has, needs="a reason and a proof of as many or fewer")
    free = [{c.name for c in side.free_gpus()} for side in (start, target)]
    lent = sorted(free[0] & free[1] & {action.name for action in transition.actions if action.adds})
    if sorted(spare.borrowed) != lent:
        has = f"{', '.join(sorted(spare.borrowed)) or 'nothing'} borrowed"
        yield _OF_ALL("spare", has=has, needs=", ".join(lent) or "nothing")
    temporary, unsure = temporaries(start, transition.actions)
    for at, action in enumerate(transition.actions):
        if action.is_temporary != (at in temporary) and at not in unsure:
            has = f"is_temporary is {action.is_temporary}"
            yield Violation("temporary", f"action {at} ({action})", has, "what the actions do")
