"""From one plan whose services share GPUs in time to the next: what is loaded stays in use.

A GPU under MPS holds processes: one for each share and service. Which batches they run, in which
cycle and with whom they take turns may change at any moment. A share of another size, or a service
that the share does not have yet, is a new process. It is prepared beside those that serve, where
it idles (MPS limits what runs, not what is loaded), and takes over at the end of a cycle: a
`switch` (see `Action`). So each GPU changes once, at once, and all that is to be decided is which
GPU becomes what, and in which order.

*Which becomes what*: contents are carried to GPUs so that as few processes as possible are
prepared, and of these assignments as many GPUs as possible keep all; a transport problem, exact for
the contents as they are.

*In which order*: a service loses on one GPU what it gains on another, so every floor asks for some
order. All orders are tried, the most promising first, up to a limit. Where there is none, contents
go to GPUs that are empty instead, with as few of these beyond the larger of before and after as are
found to do. With enough there always is one: everything new beside everything old.

References
----------
S. Choi et al., USENIX ATC '22 (arXiv:2109.01611): new partitions are prepared in the background
while the old ones serve. Rebuilt from its description.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from ....errors import UnsupportedProblem
from ....solving.solution import Proof
from ...placement.program import best_transport
from ...serving.plan import Plan
from ..contents import Content, contents_of
from ..instance import Instance, Mode
from ..model import Deployment, FleetGpu
from ..turns import takes_turns
from .arriving import Impossible, checked
from .floors import floors_of
from .kept import in_common
from .model import Action, Floor, Kept, Transition, What, most_gpus
from .order import most_in_use, ordered

__all__ = ["Ground", "assigned", "reorganise"]

_Place: TypeAlias = "tuple[str, int]"
_Held: TypeAlias = "tuple[Instance, ...]"
_Fleet: TypeAlias = "Mapping[_Place, _Held]"

#: Maximum number of states looked at for each number of spare GPUs.
_STATES = 5_000


def reorganise(
    now: Deployment, plan: Plan, *, most_spare: int | None = None
) -> Transition | Impossible:
    """Find the way from what runs to a plan whose services share GPUs in time.

    Every service keeps the smaller of its old and its new rate at every moment; what a request
    that waits while a GPU switches finds is not promised: its turn may come a cycle later.

    `now`: Of shares that services take turns in, or empty GPUs. What is another's stays where it
    is, and nothing is put beside it. No switch starts MPS: empty GPUs without it stay empty.
    `most_spare`: Maximum number of GPUs beyond the larger of before and after; by default all empty
    ones.

    Returns
    -------
    Transition or Impossible
        A transition has passed `check_transition`. Which GPU has which of the plan's contents at
        its end is decided on the way.

    UnsupportedProblem if what runs is ours and is none of shares that services take turns in; or as
    `contents_of`.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet import OperatingPoint, Service, build_problem, get_gpu
    >>> from cms.fleet.deployment import FleetNode
    >>> points = [OperatingPoint("bert", "a100-80gb", "mps:60", 1, b, 100 * b, 10) for b in (4, 8)]
    >>> def plan(rate):
    ...     services = [Service("chat", "bert", rate, 60), Service("search", "bert", 100, 60)]
    ...     serving = build_problem(services, points, sharing="time")
    ...     return Plan(serving, solve(serving.problem, method="mix_first_fit"))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb"), Mode.MPS) for index in range(2))
    >>> fleet = Deployment((FleetNode("a", cards),))
    >>> first = reorganise(fleet, plan(150))
    >>> [len(action.prepared) for action in first.actions]
    [2]
    >>> [len(action.prepared) for action in reorganise(first.target, plan(500)).actions]
    [1]
    """
    ground = assigned(now, contents_of(plan))
    if isinstance(ground, Impossible):
        return ground
    target = replace(now, services=plan.serving.services, rule=None, plan=None)
    floors = floors_of(now, target)
    used = len(now.used_gpus())
    foreign = used - sum(bool(held) for held in ground.before.values())
    most = max(used, foreign + sum(ground.contents.values()))
    empty = sum(card.is_empty for card in ground.cards.values())
    room = empty + used if most_spare is None else most + most_spare
    search = _Search(ground, floors, now)
    for allowed in range(most, max(most, room) + 1):
        steps = search.steps(allowed - foreign)
        if steps is not None:
            return _checked(now, target, ground, floors, steps)
    what = f"{room} GPUs" if most_spare is None else f"{most_spare} spare GPUs"
    return Impossible((f"no order of switches keeps the floors on {what}",), Proof.NONE)


@dataclass(frozen=True)
class Ground:
    """The GPUs that may be used, what is on them, and what is to be on which of them."""

    cards: Mapping[_Place, FleetGpu]  # by node and index
    before: _Fleet  # the instances on each of them
    after: _Fleet
    contents: Mapping[Content, int]  # see `contents_of`


def assigned(now: Deployment, contents: Mapping[Content, int]) -> Ground | Impossible:
    """Say which GPU is to have what, so that as few processes as possible are prepared."""
    free = [card for card in now.gpus() if not card.foreign]
    cards = {(c.node, c.index): c for c in free if c.mode is Mode.MPS or not c.is_empty}
    for card in cards.values():
        for each in card.instances:
            if not takes_turns(card, each):
                raise UnsupportedProblem(
                    f"{card.name} has {each.place}, which is no share that services take turns in; "
                    "expected GPUs that are empty or were shared in time"
                )
    before = {place: card.instances for place, card in cards.items()}
    olds: dict[Content, list[_Place]] = {}
    for place, card in cards.items():
        olds.setdefault((card.gpu.key, card.instances), []).append(place)
    sides = list(olds), list(contents)
    worth = {
        (i, j): _worth(old, new)
        for i, old in enumerate(sides[0])
        for j, new in enumerate(sides[1])
        if old[0] == new[0]
    }
    carried = best_transport([len(places) for places in olds.values()], [*contents.values()], worth)
    if sum(carried.values()) < sum(contents.values()):
        need, have = sum(contents.values()), len(cards)
        why = f"GPUs that the plan takes: {need}; that are there for it: {have}"
        if more := len(free) - have:
            why += f", and {more} empty and not under MPS, which no switch changes"
        return Impossible((why,), Proof.CHECKED)
    after: dict[_Place, _Held] = dict.fromkeys(cards, ())
    left = {at: list(olds[old]) for at, old in enumerate(sides[0])}
    for (i, j), number in sorted(carried.items()):
        for _ in range(number):
            after[left[i].pop(0)] = sides[1][j][1]
    return Ground(cards, before, after, contents)


def _worth(old: Content, new: Content) -> int:
    """What is loaded and stays in use, then whether nothing changes at all."""
    shared = _processes(old[1]) & _processes(new[1])
    return 2 * shared.total() + (old[1] == new[1])


def _processes(held: Sequence[Instance]) -> Counter[tuple[str, str]]:
    return Counter((each.profile, each.work.service) for each in held if each.work is not None)


class _Step(NamedTuple):
    place: _Place
    held: _Held


class _Search:
    def __init__(self, ground: Ground, floors: Mapping[str, Floor], now: Deployment) -> None:
        self._ground = ground
        self._floors = {name: floor.rps for name, floor in floors.items() if floor.rps > 0}
        self._first = {name: now.capacity(name) for name in self._floors}
        self._rates: dict[_Held, dict[str, Fraction]] = {}

    def steps(self, most: int) -> list[_Step] | None:
        """Return steps that keep the floors within a number of GPUs in use; None if none is found.

        Depth first, each state once: what is pending, and what is there meanwhile.
        """
        before, after = self._ground.before, self._ground.after
        pending = {place: after[place] for place, held in before.items() if held != after[place]}
        held = {place: own for place, own in before.items() if own}
        seen = {self._key(pending, held)}
        path: list[_Step] = []
        stack = [(pending, held, self._moves(pending, held, most))]
        while stack[-1][0]:
            if len(seen) > _STATES:
                return None
            move = next(stack[-1][2], None)
            if move is None:
                stack.pop()
                if not path:
                    return None
                path.pop()
                continue
            step, then = move
            held = {**stack[-1][1], step.place: step.held}
            held = {place: own for place, own in held.items() if own}
            if (key := self._key(then, held)) not in seen:
                seen.add(key)
                path.append(step)
                stack.append((then, held, self._moves(then, held, most)))
        return path

    @staticmethod
    def _key(pending: _Fleet, held: _Fleet) -> frozenset[tuple[_Place, _Held, _Held]]:
        return frozenset((place, held.get(place, ()), to) for place, to in pending.items())

    def _moves(
        self, pending: _Fleet, held: _Fleet, most: int
    ) -> Iterator[tuple[_Step, dict[_Place, _Held]]]:
        """Steps that keep the floors, those that lose least first; then ways round."""
        found, has = [], self._capacities(held)
        for place, to in pending.items():
            lost = self._lost(held.get(place, ()), to)
            if all(has[name] - gone >= self._floors[name] for name, gone in lost.items()):
                share = sum(gone / self._floors[name] for name, gone in lost.items())
                if place in held or len(held) < most:
                    found.append((share, place, to))
        for _, place, to in sorted(found, key=lambda each: each[:2]):
            yield _Step(place, to), {at: own for at, own in pending.items() if at != place}
        if len(held) < most:
            yield from self._ways_round(pending, held)

    def _ways_round(
        self, pending: _Fleet, held: _Fleet
    ) -> Iterator[tuple[_Step, dict[_Place, _Held]]]:
        """What is to come on a GPU in use comes on an empty one instead."""
        cards = self._ground.cards
        empty = [place for place in cards if place not in held and place not in pending]
        for place, to in sorted(pending.items()):
            key = cards[place].gpu.key
            to_be = next((each for each in empty if cards[each].gpu.key == key), None)
            if to and place in held and to_be is not None:
                yield _Step(to_be, to), {**pending, place: ()}

    def _lost(self, old: _Held, new: _Held) -> dict[str, Fraction]:
        before, after = self._rates_of(old), self._rates_of(new)
        return {
            name: rate - after.get(name, 0)
            for name, rate in before.items()
            if rate > after.get(name, 0)
        }

    def _capacities(self, held: _Fleet) -> dict[str, Fraction]:
        has = dict(self._first)
        for place, old in self._ground.before.items():
            new = held.get(place, ())
            if new != old:
                for sign, own in ((-1, old), (1, new)):
                    for name, rate in self._rates_of(own).items():
                        has[name] += sign * rate
        return has

    def _rates_of(self, held: _Held) -> dict[str, Fraction]:
        if held not in self._rates:
            rates: dict[str, Fraction] = {}
            for each in held:
                if each.work is not None and each.work.service in self._floors:
                    name = each.work.service
                    rates[name] = rates.get(name, Fraction(0)) + each.supply_rps
            self._rates[held] = rates
        return self._rates[held]


def _checked(
    now: Deployment,
    target: Deployment,
    ground: Ground,
    floors: Mapping[str, Floor],
    steps: Sequence[_Step],
) -> Transition:
    actions, held = [], dict(ground.before)
    for place, to in steps:
        gone, come = Counter(held[place]), Counter(to)
        removes, adds = (tuple(part.elements()) for part in (gone - come, come - gone))
        held[place] = to
        actions.append(Action(What.SWITCH, *place, removes, adds))
    cards = {
        place: ground.cards[place].with_instances(own, Mode.MPS if own else None)
        for place, own in held.items()
        if own != ground.before[place]
    }
    target = target.with_gpus(cards)
    most = max(most_in_use(now, actions), most_gpus(now, target))
    same = in_common(now, target)
    removed = Counter((action.gpu, each) for action in actions for each in action.removes)
    kept = sum(bool(each.is_managed and each.work) for _, each in now.instances()) - removed.total()
    spare = most - most_gpus(now, target)
    return checked(
        now, target, floors, ordered(now, actions, floors, most), spare,
        Kept(kept, max(kept, same), Proof.CHECKED),
    )  # fmt: skip
