"""Why fewer spare GPUs will not do: work that can never stop or begin.

Theorem. Let X be work that runs at the start, Y work that does not, and for each of X and Y let
instances have weights, none below 0, such that any filling of the room beside all instances of X,
on no more GPUs than may be in use, weighs less than the lightest instances without Y that give
every service what it lacks of its floor

1. (of X) as one of this work supplies nothing, or
2. (of Y) together with one of this work.

Then no instance of X is ever removed, and none of Y is ever created.

Proof. Consider the first moment at which the removal of one of X or the creation of one of Y
begins. All of X is in its place, and nothing of Y is there. What is being removed supplies nothing
from now on, what is being created supplies nothing yet, and both have their slots; and every floor
holds. So what else is there is such a filling, and weighs enough. ∎

Every transition is such a sequence of removals and creations, action by action. Only instances
that run or start are considered, of work that has a floor to keep or is wanted: all others may
always be deleted first, and what starts counts as if it ran. Weights are slices, of memory or of
compute. The largest X and Y are found by leaving out, again and again, what cannot be shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache, lru_cache, partial
from math import lcm
from typing import NamedTuple

from ....knapsack.pricing import cheapest_option
from ....values.words import count
from ...hardware import Gpu
from ...placement.gpu_group import layouts_around
from ...placement.program import Limits
from ..instance import Instance, Kind, State
from .kept import has_starts
from .model import Frozen, Spare, Transition, most_gpus

_RUNS = (State.RUNNING, State.STARTING)
_Kinds = AbstractSet[int]
_Places = tuple[tuple[str, int], ...]


class _Site(NamedTuple):
    """A GPU; instances of ours are ``(profile, start, number of the kind)``."""

    gpu: str
    offered: frozenset[str]
    foreign: _Places
    held: frozenset[tuple[str, int, int]]
    wanted: frozenset[tuple[str, int, int]]


class _Question:
    """Whether a transition's target can be reached with a number of spare GPUs.

    Instances do what they do on either side, or in its actions.
    """

    def __init__(self, of: Transition, spare: int) -> None:
        self.most = most_gpus(of.start, of.target) + spare
        cards = list(zip(of.start.gpus(), of.target.gpus(), strict=True))
        there = {old.name: old.gpu for old, _ in cards}
        wanted = Counter(kind for _, new in cards for kind, _ in _ours(new.gpu, new.instances))
        moved = [*((old.gpu, old.instances) for old, _ in cards)]
        moved += ((there[each.name], each.adds) for each in of.actions)
        named = wanted.keys() | {kind for gpu, own in moved for kind, _ in _ours(gpu, own)}
        owed = {name: floor.rps for name, floor in of.floors.items() if floor.rps > 0}
        self.kinds = sorted(
            (k for k in named if wanted[k] or (k.work.service in owed and k.work.supply_rps)),
            key=lambda kind: (*kind.order, kind.work.supply_rps),
        )
        number = {kind: at for at, kind in enumerate(self.kinds)}
        self.wanted = Counter({number[kind]: n for kind, n in wanted.items()})
        supplies = [k.work.supply_rps * (k.work.service in owed) for k in self.kinds]
        for work in (each.work for old, _ in cards for each in old.foreign if each.state in _RUNS):
            if work is not None and work.service in owed:
                owed[work.service] -= work.supply_rps
        scale = lcm(*(rps.denominator for rps in (*owed.values(), *supplies)))
        #: By unit, what an instance of each kind is weighed by.
        self.weights = {
            unit: [getattr(of.start.devices[k.gpu].profile(k.profile), unit) for k in self.kinds]
            for unit in ("memory", "compute")
        }
        self.owed = {name: int(rps * scale) for name, rps in owed.items()}
        self.supplies = [int(rps * scale) for rps in supplies]
        self.sites = []
        for old, new in cards:
            held, ends = (
                frozenset(
                    (kind.profile, each.start or 0, number[kind])
                    for kind, each in _ours(card.gpu, card.instances)
                    if kind in number and (card is new or each.state in _RUNS)
                )
                for card in (old, new)
            )
            node = of.start.node(old.node)
            offered = frozenset(p.name for p in old.gpu.profiles if node.offers(p))
            foreign = tuple((old.gpu.profile(e.profile).name, e.start or 0) for e in old.foreign)
            self.sites.append(_Site(old.gpu.key, offered, foreign, held, ends))
        self.held = Counter(at for site in self.sites for *_, at in site.held)
        self._fill = cache(partial(_fill, of.start.devices))

    def lack(self, at: int, stays: _Kinds, never: _Kinds) -> str:
        """Say what there is too little room for as one of a kind stops or begins, if there is."""
        needs, comes = Counter(self.owed), {at} & never
        for each in stays:
            needs[self.kinds[each].work.service] -= self.held[each] * self.supplies[each]
        if not comes:
            needs[self.kinds[at].work.service] += self.supplies[at]
        able: dict[str, list[int]] = {name: [] for name, need in needs.items() if need > 0}
        for number, kind in enumerate(self.kinds):
            if self.supplies[number] and number not in never and kind.work.service in able:
                able[kind.work.service].append(number)
        for unit, weights in self.weights.items():
            room = self._room(unit, stays, comes.union(*able.values()))
            needed = sum(weights[each] for each in comes)
            for name, own in able.items():
                pairs = tuple((weights[n], self.supplies[n]) for n in own)
                if (least := _lightest(pairs, needs[name])) is None:
                    return "nothing can give what the floors lack"
                needed += least
            if needed > room:
                return f"{needed} {unit} slices are needed, and {room} can be free"
        return ""

    def _room(self, unit: str, stays: _Kinds, able: _Kinds) -> int:
        """Return the most slices of instances that fit beside what stays."""
        profiles: dict[str, set[str]] = {}
        for at in able:
            profiles.setdefault(self.kinds[at].gpu, set()).add(self.kinds[at].profile)
        used, empty = list[int](), list[int]()
        for key, offered, foreign, held, _ in self.sites:
            own = ((profile, start) for profile, start, at in held if at in stays)
            there = tuple(sorted((*foreign, *own)))
            names = tuple(sorted(offered & profiles.get(key, set())))
            (used if there else empty).append(self._fill(key, there, names, unit))
        return sum(used) + sum(sorted(empty, reverse=True)[: max(0, self.most - len(used))])

    def in_the_way(self, stays: _Kinds, never: _Kinds, *, places: bool) -> list[int]:
        """List what stays and the target lacks, and what the target has and never begins."""
        if places:
            gone = {at for site in self.sites for *_, at in site.held - site.wanted}
        else:
            gone = {at for at, n in self.held.items() if n > self.wanted[at]}
        return sorted(self.wanted.keys() & never) + sorted(gone & stays)


def _ours(gpu: Gpu, instances: Iterable[Instance]) -> Iterator[tuple[Kind, Instance]]:
    for each in instances:
        if each.is_managed and each.work is not None:
            yield Kind(gpu.key, gpu.profile(each.profile).name, each.work), each


def _fill(
    gpus: Mapping[str, Gpu], key: str, there: _Places, profiles: tuple[str, ...], unit: str
) -> int:
    """Return the most slices of instances of some profiles that fit beside a GPU's own."""
    layouts = layouts_around(gpus[key], there, profiles) if profiles else (there,)
    sums: list[int] = [
        sum(getattr(gpus[key].profile(name), unit) for name, _ in each)
        for each in (there, *layouts)
    ]
    return max(sums) - sums[0]


@lru_cache(65536)
def _lightest(pairs: tuple[tuple[int, int], ...], need: int) -> int | None:
    """Return the least weight of instances, by weight and supply, that give what is needed."""
    found = cheapest_option([weight for weight, _ in pairs], [rps for _, rps in pairs], need)
    return None if found is None else found.value


def find_frozen(of: Transition, spare: int, limits: Limits) -> tuple[Frozen, str] | None:
    """Look for a proof that a number of spare GPUs will not do, with the reason in words."""
    if not (has_starts(of.start) and has_starts(of.target)):
        return None
    question, places = _Question(of, spare), of.kept.places
    kinds, lacks = question.kinds, {-1: ""}
    stays = {at for at in question.held if question.supplies[at]}
    never = {at for at in range(len(kinds)) if not question.held[at]}
    while not all(lacks.values()):
        if limits.over:
            return None
        lacks = {at: question.lack(at, stays, never) for at in stays | never}
        left = {at for at, words in lacks.items() if words}
        stays, never = stays & left, never & left
    wrong = question.in_the_way(stays, never, places=places)
    if not wrong:
        return None
    first = kinds[wrong[0]]
    what = "begin: with the first" if wrong[0] in never else "stop: without it"
    words = (
        f"with {count(spare, 'spare GPU')}: no {first.profile} of "
        f"{first.work.service} can ever {what}, {lacks[wrong[0]]}"
    )
    fixed = [tuple(kinds[at].work for at in sorted(part)) for part in (stays, never)]
    return Frozen(fixed[0], fixed[1], places), words


def prove_spare(of: Transition, limits: Limits) -> Spare:
    """Say how many of the spare GPUs of a transition are proved necessary."""
    for fewer in reversed(range(of.spare.count)):
        if found := find_frozen(of, fewer, limits):
            return replace(of.spare, least=fewer + 1, reason=found[1], proof=found[0])
    return of.spare


def spare_fault(of: Transition, proof: Frozen) -> str:
    """Say why it is not proved that one spare GPU fewer than the least will not do."""
    if not (has_starts(of.start) and has_starts(of.target)):
        return "nothing is proved of GPUs that are not cut by MIG, or whose starts are not known"
    question = _Question(of, of.spare.least - 1)
    number = {kind.work: at for at, kind in enumerate(question.kinds)}
    stays, never = ({number.get(work, -1) for work in part} for part in (proof.stays, proof.never))
    if not all(at >= 0 and question.held[at] and question.supplies[at] for at in stays):
        return "something is said to stay that does not run for a service with a floor"
    if not all(at >= 0 and not question.held[at] for at in never):
        return "something is said never to begin that runs at the start"
    for at in sorted(stays | never):
        if not question.lack(at, stays, never):
            what = "begin" if at in never else "stop"
            return f"that {question.kinds[at]} can never {what} is not proved"
    if not question.in_the_way(stays, never, places=proof.places):
        return "the target has all that stays, and nothing that never begins"
    return ""
