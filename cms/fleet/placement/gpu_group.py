"""Equivalent GPUs of a fleet: as machine types of a plan, and with the layouts that each can take.

The machine types tell apart what stays; the variables of the placement model what runs, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeVar

from ...errors import InvalidOption
from ...values.numbers import shown
from ...values.words import money
from ..deployment.checking import has_our_work
from ..deployment.instance import WHOLE, Instance, Kind, Mode, StartSource, State
from ..deployment.model import Deployment, FleetGpu
from ..deployment.turns import refuse_turns
from ..hardware import MPS_CLIENTS, Gpu, Layout
from ..serving.gpus_used import AvailableGpus, HeldInstance
from ..serving.operating_point import mps_share

#: Profiles and starts.
Places = tuple[tuple[str, int], ...]
K = TypeVar("K", int, str)

#: Ways to share one GPU under MPS that are listed at most.
_MOST_FILLS = 20_000


class ManagedInstance(NamedTuple):
    """A managed instance on a GPU."""

    profile: str
    start: int  # -1 where there is none
    kind: int  # the number of its kind, if it can go on as it is; else -1
    works: bool
    is_whole: bool  # it has a compute instance, so that something else could run there at once


class LayoutOption(NamedTuple):
    """A layout that a GPU can take, in counts."""

    mode: Mode
    counts: tuple[tuple[str, int], ...]  # instances of each profile that may be used
    keeps: tuple[tuple[int, int], ...]  # instances of each kind that can go on where they are
    there: tuple[tuple[str, int], ...]  # instances that are there already, with whatever work
    stays: bool = False  # nothing changes
    as_cut: bool = False  # instances stay and only their work changes: starts are not known


class GpuCost(NamedTuple):
    """What GPUs cost, and how many they are, without those on which something foreign stays."""

    cost: Fraction
    gpus: int

    def tell(self, currency: str = "") -> str:
        """Say both, in money if there is a currency."""
        gpus = f"{self.gpus} GPU{'s' * (self.gpus != 1)}"
        if self.cost == self.gpus and not currency:
            return gpus
        return f"{gpus} ({tell_cost(self.cost, currency)})"


def tell_cost(cost: Fraction, currency: str) -> str:
    """Say a cost: ``41.20 EUR/h``, or in no currency ``cost 41.2``."""
    return money(cost, currency) if currency else f"cost {shown(cost)}"


@dataclass(frozen=True)
class GpuGroup:
    """GPUs that the placement model need not distinguish."""

    gpu: Gpu
    members: tuple[FleetGpu, ...]  # by node and index
    instances: tuple[ManagedInstance, ...]  # on each of them
    options: tuple[LayoutOption, ...]  # that each can take
    available: AvailableGpus  # each of them, as a machine type
    domain: str = ""  # the node or zone they are on, if a constraint depends on it

    @property
    def is_held(self) -> bool:
        """Whether something stays on each that is foreign, or may be."""
        return bool(self.available.held)


def kind_of(card: FleetGpu, instance: Instance) -> Kind | None:
    """Return the kind of a managed instance that has work and can go on; else None."""
    if not instance.is_managed or instance.work is None:
        return None
    if instance.state not in (State.RUNNING, State.STARTING):
        return None
    return Kind(card.gpu.key, instance.profile, instance.work)


def place_of(instance: Instance) -> tuple[str, int]:
    """Return the profile and start of an instance."""
    return instance.profile, instance.start or 0


def is_as_cut(card: FleetGpu) -> bool:
    """Whether a GPU can only stay as cut or be cut anew: the starts on it are not known."""
    return (
        card.mode is Mode.MIG and card.start_source is StartSource.UNKNOWN and bool(card.instances)
    )


def list_available(fleet: Deployment, gpus: Iterable[Gpu]) -> tuple[AvailableGpus, ...]:
    """Return the GPUs of a fleet as machine types, the types' empty ones first.

    What stays on a GPU tells types apart: foreign instances, and managed ones that may be foreign.
    Other managed instances do not. GPUs that nothing can be planned on are left out.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import FleetNode
    >>> gpu, taken = get_gpu("a30-24gb"), Instance("1g.6gb", 0, owner="pod team-x/a")
    >>> cards = FleetGpu("a", 0, gpu), FleetGpu("a", 1, gpu, instances=(taken,))
    >>> for each in list_available(Deployment((FleetNode("a", cards),)), [gpu]):
    ...     print(each.count, "x", each.name)
    1 x a30-24gb
    1 x a30-24gb beside 1g.6gb@0
    """
    found: list[AvailableGpus] = []
    for gpu in gpus:
        own = Counter(
            _describe(fleet, card)
            for card in fleet.gpus()
            if card.gpu.key == gpu.key and card.mode is not Mode.FIXED
        )
        own[AvailableGpus(gpu.key)] += 0  # empty ones are listed even if there are none
        found += sorted(
            (
                replace(each, count=n)
                for each, n in own.items()
                if WHOLE not in {one.profile for one in each.held}
            ),
            key=lambda each: each.name,
        )
    return tuple(found)


def cost_at_work(fleet: Deployment, prices: Mapping[str, Fraction]) -> Fraction:
    """Return what the GPUs with managed work cost, by their types' prices, 1 by default."""
    used = (_describe(fleet, card).cost(prices) for card in fleet.gpus() if has_our_work(card))
    return sum(used, Fraction(0))


def _describe(fleet: Deployment, card: FleetGpu) -> AvailableGpus:
    """Return a GPU as a machine type."""
    node, stay = fleet.node(card.node), fleet.in_doubt(card)
    held = [
        HeldInstance(each.profile, each.start, each.is_managed) for each in (*card.foreign, *stay)
    ]
    if held and is_as_cut(card):  # all that can be used is what is there
        held = [
            HeldInstance(each.profile, None, each.is_managed)
            for each in card.instances
            if each.is_whole or not each.is_managed
        ]
    elif card.mode is not Mode.MIG:
        held = [each._replace(start=None) for each in held]
    held.sort(key=lambda each: (-1 if each.start is None else each.start, *map(str, each)))
    lacks = tuple(sorted(p.name for p in card.gpu.profiles if not node.offers(p)))
    price = None if held else node.price
    return AvailableGpus(card.gpu.key, held=tuple(held), lacks=lacks, price=price)


def group_equivalent_gpus(
    fleet: Deployment,
    numbers: Mapping[Kind, int],
    domains: Mapping[str, str] | None = None,
    blocks: Iterable[tuple[str, str]] = (),
) -> tuple[GpuGroup, ...]:
    """Group equivalent GPUs, and list the layouts that they can take.

    GPUs of types that no numbered kind is on are left out. With `domains`, ``{node: domain}``, GPUs
    of different domains differ. `blocks`: The GPU and profile of each block of a plan: groups are
    called by its machine types. Services that take turns are refused.
    """
    refuse_turns(fleet.gpus())
    wanted: dict[str, set[str]] = {}
    for kind in numbers:
        wanted.setdefault(kind.gpu, set()).add(kind.profile)
    known: dict[str, set[str]] = {key: set() for key in wanted}
    for key, profile in blocks:
        known.setdefault(key, set()).add(profile)
    alike: defaultdict[tuple[Any, ...], list[FleetGpu]] = defaultdict(list)
    for card in fleet.gpus():
        if (key := card.gpu.key) in wanted:
            available = _describe(fleet, card)
            offered = frozenset(wanted[key].difference(available.lacks))
            stay = tuple(map(place_of, fleet.in_doubt(card)))  # since it may be another's
            domain = "" if domains is None else domains[card.node]
            own = available.limit_to(known[key]), domain, tuple(sorted(_here(card, numbers)))
            foreign = tuple((each.profile, each.start) for each in card.foreign)
            alike[*own, offered, stay, card.mode, is_as_cut(card), foreign].append(card)
    groups = []
    for (available, domain, here, offered, stay, *_), cards in alike.items():
        if options := tuple(_options(cards[0], here, offered, stay)):
            groups.append(GpuGroup(cards[0].gpu, tuple(cards), here, options, available, domain))
    return tuple(groups)


def _here(card: FleetGpu, numbers: Mapping[Kind, int]) -> Iterator[ManagedInstance]:
    for each in card.instances:
        if each.is_managed:
            kind = kind_of(card, each)
            yield ManagedInstance(
                each.profile,
                -1 if each.start is None else each.start,
                -1 if kind is None else numbers.get(kind, -1),
                each.work is not None,
                each.is_whole,
            )


def _options(
    card: FleetGpu, here: tuple[ManagedInstance, ...], profiles: frozenset[str], stay: Places
) -> Iterator[LayoutOption]:
    found: dict[LayoutOption, None] = {}
    works = [each for each in here if each.works]
    if works and all(each.kind >= 0 for each in works):
        found[_as_it_is(card.mode, works, stays=True)] = None
    if is_as_cut(card):
        usable = [each for each in here if each.is_whole and each.profile in profiles]
        found[_as_it_is(Mode.MIG, usable, as_cut=True)] = None
    free = not card.foreign and not stay
    if free or (card.mode is Mode.MIG and not is_as_cut(card)):
        kept = here if card.mode is Mode.MIG and not is_as_cut(card) else ()
        cut = sorted(name for name in profiles if name != WHOLE and mps_share(name) is None)
        if cut:
            pinned = tuple(map(place_of, card.foreign))
            found |= dict.fromkeys(_cut(card.gpu, pinned, stay, tuple(cut), kept))
    if free or card.mode is Mode.MPS:
        kept = here if card.mode is Mode.MPS else ()
        shares = sorted((s, name) for name in profiles if (s := mps_share(name)) is not None)
        others = card.foreign if card.mode is Mode.MPS else ()
        found |= dict.fromkeys(_shared(shares, others, kept))
    if WHOLE in profiles and (free or (card.mode is Mode.WHOLE and not card.foreign)):
        kinds = sorted({each.kind for each in here if card.mode is Mode.WHOLE and each.kind >= 0})
        runs = card.mode is Mode.WHOLE and any(each.is_whole for each in here)
        there = ((WHOLE, 1),) if runs else ()
        for keeps in [as_pairs({kind: 1}) for kind in kinds] or [()]:
            found[LayoutOption(Mode.WHOLE, ((WHOLE, 1),), keeps, there)] = None
    yield from (option for option in found if option.counts)


def _as_it_is(
    mode: Mode, usable: list[ManagedInstance], *, stays: bool = False, as_cut: bool = False
) -> LayoutOption:
    counts = as_pairs(Counter(each.profile for each in usable))
    keeps = as_pairs(Counter(each.kind for each in usable if each.kind >= 0))
    return LayoutOption(mode, counts, keeps, counts, stays, as_cut)


def _cut(
    gpu: Gpu,
    foreign: Places,
    fixed: Places,
    profiles: tuple[str, ...],
    here: tuple[ManagedInstance, ...],
) -> Iterator[LayoutOption]:
    places = {(each.profile, each.start): each for each in here}
    others = {start for _, start in foreign}
    others |= {start for profile, start in fixed if profile not in profiles}
    for layout in layouts_around(gpu, (*foreign, *fixed), profiles):
        open_ = [place for place in layout if place.start not in others]
        usable = [places[place] for place in open_ if place in places]
        yield LayoutOption(
            Mode.MIG,
            as_pairs(Counter(place.profile for place in open_)),
            as_pairs(Counter(each.kind for each in usable if each.kind >= 0)),
            as_pairs(Counter(each.profile for each in usable if each.is_whole)),
        )


@lru_cache(4096)
def layouts_around(gpu: Gpu, pinned: Places, profiles: tuple[str, ...]) -> tuple[Layout, ...]:
    """Return the maximal layouts around what is pinned, of the profiles wanted."""
    return gpu.maximal_layouts_around(pinned, profiles)


def _shared(
    shares: list[tuple[int, str]], others: Sequence[Instance], here: tuple[ManagedInstance, ...]
) -> Iterator[LayoutOption]:
    """List the ways to share what others leave of a GPU; which of our clients go on is a choice."""
    taken = sum(mps_share(each.profile) or 0 for each in others)
    kinds = Counter(each.kind for each in here if each.kind >= 0)
    profile = {each.kind: each.profile for each in here}
    there = Counter(each.profile for each in here if each.is_whole)
    for fill in _fills(tuple(s for s, _ in shares), 100 - taken, MPS_CLIENTS - len(others)):
        counts = {name: n for (_, name), n in zip(shares, fill, strict=True) if n}
        choices = []
        for name, room in counts.items():
            own = [(kind, n) for kind, n in sorted(kinds.items()) if profile[kind] == name]
            choices.append(list(_chosen(own, min(room, sum(n for _, n in own)))))
        reused = {name: min(n, there[name]) for name, n in counts.items() if there[name]}
        for chosen in product(*choices):
            keeps = as_pairs(dict(pair for part in chosen for pair in part))
            yield LayoutOption(Mode.MPS, as_pairs(counts), keeps, as_pairs(reused))


def _chosen(own: list[tuple[int, int]], room: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """List the ways to choose `room` instances of some kinds."""
    if not own:
        yield ()
        return
    (kind, most), *rest = own
    left = sum(n for _, n in rest)
    for number in range(max(0, room - left), min(most, room) + 1):
        yield from (((kind, number), *more) for more in _chosen(rest, room - number))


@lru_cache(256)
def _fills(shares: tuple[int, ...], room: int, clients: int) -> tuple[tuple[int, ...], ...]:
    """List the maximal numbers of clients of each share, given in rising order."""
    found: list[tuple[int, ...]] = []

    def extend(at: int, counts: tuple[int, ...], room: int, clients: int) -> None:
        if len(found) > _MOST_FILLS:
            raise InvalidOption(
                f"more than {_MOST_FILLS} ways to share a GPU under MPS among {len(shares)} kinds "
                "of shares; plan with fewer steps"
            )
        if at < 0:
            if not clients or room < shares[0]:
                found.append(counts)
            return
        for number in range(min(room // shares[at], clients), -1, -1):
            extend(at - 1, (number, *counts), room - number * shares[at], clients - number)

    if shares and room >= shares[0] and clients > 0:
        extend(len(shares) - 1, (), room, clients)
    return tuple(found)


def as_pairs(counts: Mapping[K, int]) -> tuple[tuple[K, int], ...]:
    """Return counts that are not 0 in the order of their keys."""
    return tuple(sorted((key, n) for key, n in counts.items() if n))
