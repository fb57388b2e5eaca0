"""Parallel executions of a transition: that the waits of `ordered` are enough, and not all idle.

**Statement.** Take a sequence of actions on GPUs in which, whenever one is under way and all before
it have ended, every floor holds, every layout is legal and no more GPUs are in use than may be. Let
the actions wait for others as in `cms/fleet/deployment/transition/waits.py`. Then the same is true
at every moment of every execution that respects the waits, however long actions take and however
many run at once. And the largest value of a sum at any moment is the maximum flow of
``checker/waits.py``.

**Machine-checked.** Random sequences on up to three small GPUs, cut by MIG or shared under MPS,
with creations, deletions, restarts, repartitions, changes of mode and temporary instances, then in
another sequence that respects the waits; every moment of every execution, one by one: the floors,
the slots and sums, the GPUs in use, as plainly as they can be written. The flow, and the package's
cut, must give the lowest capacity exactly, and both checkers must say of the document what was
seen, with all waits and with each of them left out.

**On paper.** The proof is in `waits.py`, that of the flow in ``checker/waits.py``. Of a set of
actions that has begun, the worst moment is the one at which only those have ended that must have.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from cms.fleet import Gpu, OperatingPoint, Service, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, Work
from cms.fleet.deployment.transition.checking import check_transition, lowest_capacity
from cms.fleet.deployment.transition.document import transition_to_json
from cms.fleet.deployment.transition.model import Action, Floor, Kept, Spare, Transition, What
from cms.fleet.deployment.transition.waits import ordered
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from cms.values.frozen import FrozenMap

from .checker.executions import lowest_capacities
from .checker.replay import examine_transition
from .checker.transition import read_transition
from .finding import Finding, Tally, require

THEOREM = "Parallel executions"
SERVICES = tuple(Service(name, name, 10, 1000) for name in ("chat", "code"))
_SHARES = (20, 30, 50)


class Moment(NamedTuple):
    """The actions that have begun and those that have ended, by position."""

    begun: frozenset[int]
    ended: frozenset[int]


def work(service: str, device: str, profile: str, batch: int = 4) -> Work:
    """What an instance does for a service: the larger, the more.

    Examples
    --------
    >>> print(work("chat", "a30-24gb", "2g.12gb"))
    chat (1p b4, 14 requests/s)
    """
    size = int(profile[0]) if profile[0].isdigit() else int(profile.removeprefix("mps:")) // 10
    rate = Fraction(7 * size * batch, 4)
    return Work(service, OperatingPoint(service, device, profile, 1, batch, rate, 100), rate)


# --- every moment, one by one ---------------------------------------------------------------------


def moments(actions: Sequence[Action]) -> Iterator[Moment]:
    """Yield every set of begun actions with the fewest that have ended, and with all of them."""
    closed: list[frozenset[int]] = []
    for action in actions:
        closed.append(frozenset(action.after).union(*(closed[b] for b in action.after)))
    found = [frozenset[int]()]
    for at in range(len(actions)):
        found += [begun | {at} for begun in found if closed[at] <= begun]
    for begun in found:
        yield Moment(begun, frozenset().union(*(closed[at] for at in begun)))
        yield Moment(begun, begun)


def held(card: FleetGpu, actions: Sequence[Action], moment: Moment) -> list[Instance] | None:
    """List what has a place on a GPU; None: something is gone that had not come.

    A restart under way has its places once.
    """
    there = list(card.instances)
    for at in sorted(moment.begun):
        action = actions[at]
        if action.gpu == (card.node, card.index):
            ended = at in moment.ended
            if ended or action.what is not What.RESTART:
                there += action.adds
            if ended:
                for each in action.removes:
                    if each not in there:
                        return None
                    there.remove(each)
    return there


def capacity(start: Deployment, actions: Sequence[Action], moment: Moment, name: str) -> Fraction:
    """Sum what runs of a service: all that was there, but for what is being removed."""
    taken = sum((actions[at].removed_rps(name) for at in moment.begun), Fraction(0))
    given = sum((actions[at].added_rps(name) for at in moment.ended), Fraction(0))
    return start.capacity(name) - taken + given


def is_legal(card: Gpu, mode: Mode, there: Sequence[Instance]) -> bool:
    """Whether instances can be on a GPU together, by the words of the user guide."""
    if any(each.profile.startswith("mps:") != (mode is Mode.MPS) for each in there):
        return False
    if mode is Mode.MPS:
        shares = [int(each.profile.removeprefix("mps:")) for each in there]
        return sum(shares) <= 100 and len(shares) <= 48
    slots: list[int] = []
    for each in there:
        profile = card.profile(each.profile)
        if each.start is None or each.start not in profile.starts:
            return False
        slots += range(each.start, each.start + profile.memory)
    profiles = [card.profile(each.profile) for each in there]
    return (
        len(slots) == len(set(slots))
        and sum(p.compute for p in profiles) <= card.compute_slices
        and all(profiles.count(p) <= p.max for p in profiles)
        and sum(p.has_media_engines for p in profiles) <= 1
    )


def breaches(of: Transition) -> Iterator[str]:
    """Name what is wrong at any moment of any execution; nothing if the waits are enough."""
    actions, most = (
        of.actions,
        of.spare.count + max(len(side.used_gpus()) for side in (of.start, of.target)),
    )
    for moment in moments(actions):
        for name, floor in of.floors.items():
            if capacity(of.start, actions, moment, name) < floor.rps:
                yield f"at {moment} {name} is below its floor"
        in_use = 0
        for card in of.start.gpus():
            wrong, count = _on_gpu(card, actions, moment)
            in_use += count > 0
            if wrong:
                yield f"at {moment} {card.name}: {wrong}"
        if in_use > most:
            yield f"at {moment} {in_use} GPUs are in use, at most {most} may be"


def _on_gpu(card: FleetGpu, actions: Sequence[Action], moment: Moment) -> tuple[str, int]:
    """What is wrong on a GPU, and how much is there."""
    own = [at for at in sorted(moment.begun) if actions[at].gpu == (card.node, card.index)]
    repartitions = [at for at in own if actions[at].what is What.REPARTITION]
    going = [each for at in own for each in actions[at].removes]
    for each in going:
        came = [one for at in own if at in moment.ended for one in actions[at].adds]
        if going.count(each) > [*card.instances, *came].count(each):
            return f"{each} is removed before it is there", 0
    for at in repartitions:
        others = {b for b, a in enumerate(actions) if a.gpu == actions[at].gpu and b != at}
        if at not in moment.ended and any(
            (b in moment.begun) != (b in moment.ended) for b in others
        ):
            return "is repartitioned while something else is done", 0
    under_way = [at for at in repartitions if at not in moment.ended]
    if under_way:  # what goes is gone before what comes is there
        before = _on_gpu(card, actions, Moment(moment.begun - set(under_way), moment.ended))
        after = _on_gpu(card, actions, Moment(moment.begun, moment.ended | set(under_way)))
        return before[0] or after[0], max(before[1], after[1])
    mode = next((m for at in reversed(own) if (m := actions[at].mode) is not None), card.mode)
    there = held(card, actions, moment)
    if there is None:
        return "something goes before it has come", 0
    return "" if is_legal(card.gpu, mode, there) else "cannot have all that is there", len(there)


# --- random transitions ---------------------------------------------------------------------------


class _Walk:
    """A random sequence of actions, each legal where it stands."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.cards = [self._card(index) for index in range(rng.randint(1, 3))]
        self.start = self._deployment()
        self.actions: list[Action] = []
        self.most = self.in_use

    def _deployment(self) -> Deployment:
        return Deployment((FleetNode("node-a", tuple(self.cards)),), SERVICES, RULES["half"])

    @property
    def in_use(self) -> int:
        return sum(not card.is_empty for card in self.cards)

    def _card(self, index: int) -> FleetGpu:
        card = get_gpu(self.rng.choice(["a30-24gb", "a30-24gb", "a100-80gb"]))
        mode = self.rng.choice([Mode.MIG, Mode.MIG, Mode.MPS])
        return FleetGpu("node-a", index, card, mode, self._content(card, mode))

    def _content(self, card: Gpu, mode: Mode) -> tuple[Instance, ...]:
        rng = self.rng
        if rng.random() < 0.3:
            return ()
        if mode is Mode.MPS:
            return tuple(self._instance(card, f"mps:{rng.choice(_SHARES)}") for _ in range(2))
        return tuple(self._instance(card, *place) for place in rng.choice(card.layouts())[:4])

    def _instance(self, card: Gpu, profile: str, start: int | None = None) -> Instance:
        rng = self.rng
        if rng.random() < 0.1:
            return Instance(profile, start)
        if rng.random() < 0.05 and not hasattr(self, "start"):
            return Instance(profile, start, owner="pod team-x/a")
        service = rng.choice(SERVICES).name
        return Instance(profile, start, work(service, card.key, profile, rng.choice([4, 8])))

    def step(self) -> None:
        """Do something to a GPU."""
        rng = self.rng
        at = rng.randrange(len(self.cards))
        card = self.cards[at]
        ours = [each for each in card.instances if each.is_managed]
        draw, mode = rng.random(), None
        removes: tuple[Instance, ...] = ()
        adds: tuple[Instance, ...] = ()
        if draw < 0.08 and len(ours) == len(card.instances):
            what, removes = What.REPARTITION, card.instances
            mode = rng.choice([Mode.MIG, Mode.MPS])
            adds = self._content(card.gpu, mode)
            mode = None if mode is card.mode and rng.random() < 0.5 else mode
        elif draw < 0.2 and ours:
            what, removes = What.RESTART, (rng.choice(ours),)
            adds = (self._instance(card.gpu, removes[0].profile, removes[0].start),)
            if adds == removes:
                return
        elif draw < 0.55 and ours:
            what, removes = What.DELETE, (rng.choice(ours),)
        else:
            what, adds = What.CREATE, self._room(card)
            if not adds:
                return
        left = list(card.instances)
        for each in removes:
            left.remove(each)
        self.actions.append(Action(what, card.node, card.index, removes, adds, mode=mode))
        self.most = max(self.most, self.in_use + (card.is_empty and bool(adds)))
        self.cards[at] = card.with_instances([*left, *adds], mode)

    def _room(self, card: FleetGpu) -> tuple[Instance, ...]:
        places: list[tuple[str, int | None]]
        if card.mode is Mode.MPS:
            places = [(f"mps:{share}", None) for share in _SHARES]
        else:
            places = [(p.name, start) for p in card.gpu.profiles for start in p.starts]
        self.rng.shuffle(places)
        for place in places:
            new = self._instance(card.gpu, *place)
            if is_legal(card.gpu, card.mode, [*card.instances, new]):
                return (new,)
        return ()

    def transition(self) -> Transition:
        """Return the sequence with its waits, and what is true of it."""
        start, actions, target = self.start, self.actions, self._deployment()
        rates = {service: target.capacity(service.name) for service in SERVICES}
        stay = [replace(each, rate_rps=rate) for each, rate in rates.items() if rate]
        target = replace(target, services=tuple(stay))
        floors = {}
        for service in SERVICES:
            name = service.name
            lowest = now = start.capacity(name)
            for action in actions:
                lowest = min(lowest, now - action.removed_rps(name))
                now += action.added_rps(name) - action.removed_rps(name)
            share = Fraction(self.rng.choice([5, 5, 4]), 5)
            floors[name] = Floor(lowest * share, "a share of the lowest")
        there: list[tuple[str, Instance, int]] = []
        temporary = set()
        for at, action in enumerate(actions):
            for each in action.removes:
                for one in [one for one in there if one[:2] == (action.name, each)][-1:]:
                    there.remove(one)
                    temporary |= {at, one[2]}
            there += [(action.name, each, at) for each in action.adds]
        actions = [replace(a, is_temporary=at in temporary) for at, a in enumerate(actions)]
        left = Counter((card.name, each) for card, each in start.instances())
        left -= Counter((action.name, each) for action in actions for each in action.removes)
        kept = sum(n for (_, e), n in left.items() if e.is_managed and e.work is not None)
        used = {action.gpu for action in actions if action.adds}
        ends = max(len(start.used_gpus()), len(target.used_gpus()))
        free = {(card.node, card.index) for card in start.free_gpus()} & {
            (card.node, card.index) for card in target.free_gpus()
        }
        return Transition(
            start,
            target,
            FrozenMap(floors),
            ordered(start, actions, floors, self.most),
            Spare(self.most - ends, borrowed=tuple(f"{n}/{i}" for n, i in sorted(free & used))),
            Kept(kept, sum((start.kinds() & target.kinds()).values()), Proof.CHECKED),
        )


def random_transition(rng: random.Random, most: int = 8) -> Transition:
    """Draw a transition of at most so many actions, with the waits that `ordered` finds.

    Examples
    --------
    >>> transition = random_transition(random.Random(1))
    >>> list(breaches(transition))
    []
    """
    walk = _Walk(rng)
    for _ in range(rng.randint(1, most)):
        walk.step()
    return walk.transition()


# --- the check ------------------------------------------------------------------------------------


def without_a_wait(of: Transition) -> Iterator[tuple[int, int, Transition]]:
    """Yield the transition with each of its waits left out, and what it would follow from kept."""
    for at, action in enumerate(of.actions):
        for before in action.after:
            closed = sorted(({*action.after} | {*of.actions[before].after}) - {before})
            fewer = [*of.actions]
            fewer[at] = replace(action, after=tuple(closed))
            yield at, before, replace(of, actions=tuple(fewer))


def rearranged(of: Transition, rng: random.Random, kept: float = 1) -> Transition:
    """Return it with this share of its waits, in another sequence that respects them.

    Examples
    --------
    >>> transition = random_transition(random.Random(3))
    >>> [len(rearranged(transition, random.Random(n)).actions) for n in (1, 2)]
    [7, 7]
    """
    after = [tuple(b for b in action.after if rng.random() < kept) for action in of.actions]
    left, order = [*range(len(after))], list[int]()
    while left:
        order.append(rng.choice([at for at in left if {*after[at]} <= {*order}]))
        left.remove(order[-1])
    place = {old: new for new, old in enumerate(order)}
    actions = [
        replace(of.actions[at], after=tuple(sorted(place[b] for b in after[at]))) for at in order
    ]
    return replace(of, actions=tuple(actions))


def refused(of: Transition) -> tuple[bool, bool]:
    """Whether the package refuses it, and whether the independent checker does.

    Not for what it says of temporary instances: of equal ones that depends on the sequence.
    """
    ours = any(each.kind != "temporary" for each in check_transition(of))
    faults = examine_transition(transition_to_json(of))[0]
    return ours, any("said to be temporary" not in fault for fault in faults)


def require_exact(of: Transition) -> None:
    """Compare the flow, and the package's, with the lowest capacity of all moments."""
    read, _, _ = read_transition(transition_to_json(of))
    every = list(moments(of.actions))
    for name, (low, _) in lowest_capacities(read).items():
        seen = min(capacity(of.start, of.actions, moment, name) for moment in every)
        require(low == seen, f"{name} falls to {seen}, and the flow says {low}")
        ours = lowest_capacity(of, name)
        require(ours == seen, f"{name} falls to {seen}, and the package says {ours}")


def check(*, seed: int = 0, cases: int = 100) -> Finding:
    """Run the machine check.

    Parameters
    ----------
    seed : int, default 0
    cases : int, default 100
        So many transitions.

    Examples
    --------
    >>> check(cases=5).ok
    True
    """
    tally = Tally(
        THEOREM, "every moment of random transitions, with all waits and without each",
        ratio="waits without which a moment is unsafe / all", proved="1",
    )  # fmt: skip
    waits = needed = 0
    for number in range(cases):
        with tally.case(f"transition {number}"):
            of = random_transition(random.Random(f"parallel {seed} {number}"))
            require(not (seen := list(breaches(of))), f"unsafe: {seen[:1]}")
            require(not (faults := examine_transition(transition_to_json(of))[0]), f"{faults[:1]}")
            of = rearranged(of, random.Random(number))
            require_exact(of)
            for at, before, fewer in without_a_wait(of):
                waits += 1
                seen = list(breaches(fewer))
                needed += bool(seen)
                says = refused(fewer)
                words = f"without the wait of {at} for {before}: {seen[:1]}, refused: {says}"
                require({*says} == {bool(seen)}, words)
    if waits:
        tally.seen(Fraction(needed, waits))
    return tally.finding()
