"""Why no more is kept, and why fewer spare GPUs will not do: what a transition's bounds rest on.

What both sides have in common bounds what is kept. Where GPUs would have to be cut in two ways at
once to keep all of that, prices say so (:mod:`~cms.fleet.placement.kept_bound`). Work that can
never stop or begin proves that too few spare GPUs will not do.

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
compute, divided by a number and rounded down. The largest X and Y are found by leaving out, again
and again, what cannot be shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from math import lcm
from typing import NamedTuple

from ....errors import CmsError, InvalidCertificate
from ....knapsack.pricing import cheapest_option
from ....schedule.faults import Violation
from ....solving.solution import Proof
from ....values.frozen import FrozenMap
from ...hardware import Gpu
from ...placement.gpu_group import GpuGroup, group_equivalent_gpus, layouts_around
from ...placement.kept_bound import Prices, best_prices, most_kept
from ...placement.placement_model import Demand
from ...placement.program import Limits
from ..checking import has_our_work
from ..instance import Instance, Kind, Mode, State
from ..model import Deployment
from .model import Frozen, Kept, KeptPrices, Spare, Transition, most_gpus

#: What instances are weighed by.
_UNITS = ("memory", "compute")
_RUNS = (State.RUNNING, State.STARTING)
_Kinds = AbstractSet[int]


class _Site(NamedTuple):
    """A GPU; instances of ours are ``(profile, start, number of the kind)``."""

    gpu: Gpu
    offered: frozenset[str]
    foreign: tuple[tuple[str, int], ...]
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
        self.gpus = {gpu.key: gpu for gpu in there.values()}
        wanted = Counter(kind for _, new in cards for kind, _ in _ours(new.gpu, new.instances))
        added = ((there[each.name], each.adds) for each in of.actions)
        both = (*((old.gpu, old.instances) for old, _ in cards), *added)
        named = wanted.keys() | {kind for gpu, own in both for kind, _ in _ours(gpu, own)}
        owed = {name: floor.rps for name, floor in of.floors.items() if floor.rps > 0}
        self.kinds = sorted(
            (k for k in named if wanted[k] or (k.work.service in owed and k.work.supply_rps)),
            key=lambda kind: (*kind.order, kind.work.supply_rps),
        )
        supplies = [k.work.supply_rps * (k.work.service in owed) for k in self.kinds]
        for old, _ in cards:
            for each in old.foreign:
                if each.work is not None and each.state in _RUNS and each.work.service in owed:
                    owed[each.work.service] -= each.work.supply_rps
        scale = lcm(*(rps.denominator for rps in (*owed.values(), *supplies)))
        self.owed = {name: int(rps * scale) for name, rps in owed.items()}
        self.supplies = [int(rps * scale) for rps in supplies]
        number = {kind: at for at, kind in enumerate(self.kinds)}
        self.wanted = Counter({number[kind]: n for kind, n in wanted.items()})
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
            self.sites.append(_Site(old.gpu, offered, foreign, held, ends))
        self.held = Counter(at for site in self.sites for *_, at in site.held)
        self._fills: dict[object, int] = {}

    def lack(self, at: int, stays: _Kinds, never: _Kinds) -> str:
        """Say what there is too little room for as one of a kind stops or begins, if there is."""
        needs, comes = dict(self.owed), {at} & never
        for each in stays:
            needs[self.kinds[each].work.service] -= self.held[each] * self.supplies[each]
        if not comes:
            needs[self.kinds[at].work.service] += self.supplies[at]
        able: dict[str, list[int]] = {name: [] for name, need in needs.items() if need > 0}
        for number, kind in enumerate(self.kinds):
            if self.supplies[number] and number not in never and kind.work.service in able:
                able[kind.work.service].append(number)
        for unit in _UNITS:
            weights = [_slices(self.gpus[k.gpu], k.profile, unit) for k in self.kinds]
            room = self._room(unit, stays, {*comes, *(n for own in able.values() for n in own)})
            needed = sum(weights[each] for each in comes)
            for name, own in able.items():
                least = _lightest(
                    tuple(weights[n] for n in own), tuple(self.supplies[n] for n in own),
                    needs[name],
                )  # fmt: skip
                if least is None:
                    return "nothing can give what the floors lack"
                needed += least
            if needed > room:
                return f"{needed} {unit} slices are needed, and {room} can be free"
        return ""

    def _room(self, unit: str, stays: _Kinds, able: _Kinds) -> int:
        """Return the most slices of instances that fit beside what stays."""
        profiles: dict[str, set[str]] = {key: set() for key in self.gpus}
        for at in able:
            profiles[self.kinds[at].gpu].add(self.kinds[at].profile)
        used, empty = list[int](), list[int]()
        for site in self.sites:
            own = ((profile, start) for profile, start, at in site.held if at in stays)
            there = tuple(sorted((*site.foreign, *own)))
            names = tuple(sorted(site.offered & profiles[site.gpu.key]))
            key = site.gpu.key, there, names, unit
            if key not in self._fills:  # a GPU is slow to hash
                self._fills[key] = _fill(site.gpu, there, names, unit)
            (used if there else empty).append(self._fills[key])
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


def _slices(gpu: Gpu, profile: str, unit: str) -> int:
    slices: int = getattr(gpu.profile(profile), unit)
    return slices


@lru_cache(65536)
def _lightest(weights: tuple[int, ...], supplies: tuple[int, ...], need: int) -> int | None:
    found = cheapest_option(weights, supplies, need)
    return None if found is None else found.value


def _fill(
    gpu: Gpu, there: tuple[tuple[str, int], ...], profiles: tuple[str, ...], unit: str
) -> int:
    if not profiles:
        return 0
    layouts = layouts_around(gpu, there, profiles)
    most = max(sum(_slices(gpu, name, unit) for name, _ in layout) for layout in layouts)
    return most - sum(_slices(gpu, name, unit) for name, _ in there)


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
        f"with {spare} spare GPU{'s' * (spare != 1)}: no {first.profile} of "
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


# --- how many instances can be kept ---------------------------------------------------------------


def in_common(start: Deployment, target: Deployment, *, places: bool = False) -> int:
    """Count what both sides have of each kind, or of each kind at each place."""
    if not places:
        return (start.kinds() & target.kinds()).total()
    here, there = (
        Counter(
            (card.name, each.profile, each.start, each.work)
            for card, each in side.instances()
            if each.is_managed and each.work is not None
        )
        for side in (start, target)
    )
    return (here & there).total()


def proved_kept(
    start: Deployment, target: Deployment, count: int, bound: tuple[int, Proof], limits: Limits
) -> Kept:
    """Say how many are kept of at most how many, with prices where it takes any to prove it.

    It is on a solver's word where prices prove nothing: of GPUs that are not cut by MIG, and of
    contents as grouped.
    """
    most, proof = max(count, bound[0]), bound[1]
    if proof is not Proof.CHECKED or in_common(start, target) <= most:
        return Kept(count, most, proof)
    if has_starts(start) and has_starts(target):
        spots, demand = _program(start, target)
        found = best_prices(spots, demand, limits)
        if found is not None:
            kinds = sorted(found[0].kinds.items())
            prices = KeptPrices(
                tuple((demand.kinds[at].work, price) for at, price in kinds),
                FrozenMap(found[0].blocks),
                FrozenMap(found[0].gpus),
            )
            if _most(spots, demand, prices) <= most:
                return Kept(count, most, proof, prices=prices)
    return Kept(count, most, Proof.SOLVER)


def has_starts(side: Deployment) -> bool:
    """Whether all that is there is cut by MIG, at known starts."""
    return all(card.mode is Mode.MIG and each.start is not None for card, each in side.instances())


def _program(start: Deployment, target: Deployment) -> tuple[tuple[GpuGroup, ...], Demand]:
    counts = target.kinds()
    kinds = tuple(counts)
    gpus = Counter(card.gpu.key for card in target.gpus() if has_our_work(card))
    spots = group_equivalent_gpus(start, {kind: number for number, kind in enumerate(kinds)})
    return spots, Demand(kinds, tuple(counts.values()), gpus, ())


def _most(spots: tuple[GpuGroup, ...], demand: Demand, prices: KeptPrices) -> int:
    number = {kind.work: at for at, kind in enumerate(demand.kinds)}
    if unknown := [work for work, _ in prices.works if work not in number]:
        raise InvalidCertificate(f"a price of {unknown[0]}, which is not wanted")
    if far := prices.gpus.keys() - demand.gpus.keys():
        raise InvalidCertificate(f"a price of {min(far)}, which the target does not use")
    works = {number[work]: price for work, price in prices.works}
    return most_kept(spots, demand, Prices(works, prices.blocks, prices.gpus))


def kept_faults(transition: Transition) -> Iterator[Violation]:
    """Say what is wrong with the bound that a transition states, if it is said to be checked."""
    kept, start, target = transition.kept, transition.start, transition.target
    if kept.proof is not Proof.CHECKED:
        return
    why = ""
    if kept.prices is None:
        if (most := in_common(start, target, places=kept.places)) > kept.most:
            why = f"no prices, and {most} in common"
    elif not (has_starts(start) and has_starts(target)):
        why = "prices of GPUs that are not cut by MIG, or without starts"
    else:
        spots, demand = _program(start, target)
        try:
            if (most := _most(spots, demand, kept.prices)) > kept.most:
                why = f"prices that prove no more than {most}"
        except CmsError as fault:
            why = str(fault)
    if why:
        has = f"at most {kept.most} instances kept, with {why}"
        yield Violation("kept", "the transition", has, "a bound that is proved")
