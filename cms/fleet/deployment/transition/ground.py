"""What proofs about spare GPUs speak of: who is where, what could be, and what must not be missed.

A proof is about sequences of single creations and deletions. Every transition is one, done action
by action: a restart or a repartition passes through the state in which what it removes supplies
nothing and what it adds is not there yet. Only what matters is left in: idle instances, and those
that supply nothing and are not wanted, may always be deleted first; what starts counts as if it
ran. Each makes more possible, never less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ....errors import InvalidOption
from ...hardware import Gpu
from ...serving.measurements import is_measured_on
from ..checking import check_gpu
from ..instance import Instance, Mode, State, Work
from ..model import Deployment, FleetGpu
from .model import Floor, Transition

__all__ = ["Ground", "Place", "Site", "Use", "ground_of", "works_of"]


class Use(NamedTuple):
    """Work that a proof has to consider.

    Attributes
    ----------
    work : Work
    gpu, profile : str
        What it runs on.
    supply : Fraction
        Items per second for a service that has a floor; 0 otherwise.
    """

    work: Work
    gpu: str
    profile: str
    supply: Fraction


class Place(NamedTuple):
    """An instance: its profile, its first memory slice, and the number of its use."""

    profile: str
    start: int
    use: int


class Site(NamedTuple):
    """A GPU.

    Attributes
    ----------
    name : str
    gpu : Gpu
    uses : tuple of int
        What can run there.
    foreign : tuple of (str, int)
        Profiles and starts of instances that are not ours.
    held, wanted : frozenset of Place
        What is there at the start, and in the target.
    """

    name: str
    gpu: Gpu
    uses: tuple[int, ...]
    foreign: tuple[tuple[str, int], ...]
    held: frozenset[Place]
    wanted: frozenset[Place]


@dataclass(frozen=True)
class Ground:
    """All that a proof speaks of.

    Parameters
    ----------
    uses : tuple of Use
    sites : tuple of Site
        By node and index.
    floors : Mapping[str, Fraction]
        Of services that have one.
    base : Mapping[str, Fraction]
        What instances that are not ours supply.
    wanted : Mapping[int, int]
        How many instances of each use are wanted.
    gpus : Mapping[str, int]
        GPUs of each type that the target uses.
    """

    uses: tuple[Use, ...]
    sites: tuple[Site, ...]
    floors: Mapping[str, Fraction]
    base: Mapping[str, Fraction]
    wanted: Mapping[int, int]
    gpus: Mapping[str, int]

    def held(self) -> Counter[int]:
        """Count what is there at the start."""
        return Counter(place.use for site in self.sites for place in site.held)


def works_of(transition: Transition) -> set[Work]:
    """Return all work that a transition names: what instances may be used for on the way."""
    sides = transition.start.instances(), transition.target.instances()
    named = [each for side in sides for _, each in side]
    named += [each for a in transition.actions for each in (*a.removes, *a.adds)]
    return {each.work for each in named if each.work is not None}


def ground_of(
    start: Deployment, target: Deployment, floors: Mapping[str, Floor], works: Iterable[Work]
) -> Ground | None:
    """Return what a proof speaks of; None where nothing is proved.

    That is where a GPU with something on it is not cut by MIG, where a start is not known or a
    layout not legal, and where work is measured on shares or whole GPUs.
    """
    cards = list(zip(start.gpus(), target.gpus(), strict=True))
    for card in (each for pair in cards for each in pair):
        if card.instances and card.mode is not Mode.MIG:
            return None
        if any(each.start is None for each in card.instances) or check_gpu(card):
            return None
    asked = {name: floor.rps for name, floor in floors.items() if floor.rps > 0}
    wanted = Counter(
        each.work for _, each in target.instances() if each.is_managed and each.work is not None
    )
    uses: list[Use] = []
    for work in sorted(set(works), key=_order):
        supply = work.supply_rps if work.service in asked else Fraction(0)
        if supply or wanted[work]:
            found = _use(work, supply, start)
            if found is None:
                return None
            uses.append(found)
    number = {use.work: at for at, use in enumerate(uses)}
    base: Counter[str] = Counter()
    for _, each in start.instances():
        if not each.is_managed and each.work is not None:
            base[each.work.service] += _supply(each)  # type: ignore[assignment]
    return Ground(
        tuple(uses),
        tuple(_site(start, old, new, uses, number) for old, new in cards),
        asked,
        base,  # type: ignore[arg-type]
        {number[work]: n for work, n in wanted.items()},
        Counter(new.gpu.key for _, new in cards if new.instances),
    )


def _order(work: Work) -> tuple[object, ...]:
    point = work.point
    more = point.processes, point.batch, point.throughput_rps, point.latency_ms, work.supply_rps
    return work.service, point.device, point.profile, *more, str(point.extra)


def _use(work: Work, supply: Fraction, fleet: Deployment) -> Use | None:
    for key, gpu in fleet.devices.items():
        if is_measured_on(work.point, gpu):
            try:
                return Use(work, key, gpu.profile(work.point.profile).name, supply)
            except InvalidOption:
                return None
    return None


def _supply(instance: Instance) -> Fraction:
    """What an instance supplies once what starts has started."""
    if instance.work is None or instance.state not in (State.RUNNING, State.STARTING):
        return Fraction(0)
    return instance.work.supply_rps


def _site(
    fleet: Deployment,
    old: FleetGpu,
    new: FleetGpu,
    uses: list[Use],
    number: Mapping[Work, int],
) -> Site:
    node, gpu = fleet.node(old.node), old.gpu
    runs = tuple(
        at
        for at, use in enumerate(uses)
        if use.gpu == gpu.key and node.offers(gpu.profile(use.profile))
    )

    def places(card: FleetGpu, states: tuple[State, ...]) -> frozenset[Place]:
        return frozenset(
            Place(gpu.profile(each.profile).name, each.start or 0, number[each.work])
            for each in card.instances
            if each.is_managed and each.work is not None
            if each.work in number and each.state in states
        )

    running = State.RUNNING, State.STARTING
    pinned = tuple(sorted((gpu.profile(e.profile).name, e.start or 0) for e in old.foreign))
    return Site(old.name, gpu, runs, pinned, places(old, running), places(new, tuple(State)))
