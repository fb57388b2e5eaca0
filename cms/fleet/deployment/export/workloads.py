"""What a cluster is asked to run: so many pods of each kind, and what that does not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ....errors import InvalidProblem
from ....values.numbers import shown
from ..instance import WHOLE, Instance, State, Work
from ..labels import HOSTNAME
from ..model import Deployment, FleetGpu
from .export import by_driver
from .manifests import dns_label

__all__ = [
    "Asked",
    "Workload",
    "about_work",
    "host_of",
    "offered_by",
    "working",
    "workloads_of",
]


class Asked(NamedTuple):
    """A kind of pod.

    Attributes
    ----------
    service, gpu, profile : str
        `gpu` is a key of the catalogue.
    processes, batch : int
    place : str or None
        The node or GPU that it is tied to.
    """

    service: str
    gpu: str
    profile: str
    processes: int
    batch: int
    place: str | None

    @property
    def label(self) -> str:
        """The kind in a few letters, its place among them: ``chat-a100-80gb-1g10gb-2x8``."""
        place = "" if self.place is None else f"-{self.place}"
        return f"{self.service}-{self.gpu}-{self.part}-{self.processes}x{self.batch}{place}"

    @property
    def part(self) -> str:
        """Its profile in letters that names may have: ``1g10gb-me``, ``mps40``."""
        return self.profile.replace(".", "").replace(":", "").replace("+", "-").replace(",", "-")


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one kind.

    Parameters
    ----------
    asked : Asked
    name : str
        Of their Deployment.
    replicas : int
    works : tuple of Work
        What they do: one, unless a point was measured again.
    cards : tuple of FleetGpu
        Where the plan has them.
    hosts : tuple of str
        The only nodes that will do, by their label :data:`HOSTNAME`; empty if all will.
    """

    asked: Asked
    name: str
    replicas: int
    works: tuple[Work, ...]
    cards: tuple[FleetGpu, ...]
    hosts: tuple[str, ...]


def working(deployment: Deployment) -> list[tuple[FleetGpu, Instance, Work]]:
    """Return our instances that do something and are not being drained."""
    return [
        (card, each, each.work)
        for card, each in deployment.instances()
        if each.work is not None and each.is_ours and each.state is not State.DRAINING
    ]


def workloads_of(
    deployment: Deployment, place: Callable[[FleetGpu], str | None]
) -> tuple[Workload, ...]:
    """Gather the instances that work into kinds of pods, in the order of their kinds.

    Raises
    ------
    InvalidProblem
        If two kinds would have one name.
    """
    deployment = by_driver(deployment)
    found: dict[Asked, list[tuple[FleetGpu, Work]]] = {}
    for card, each, work in working(deployment):
        asked = _asked(card, each.profile, work, place(card))
        found.setdefault(asked, []).append((card, work))
    types: dict[str, set[str]] = {}
    for card in deployment.gpus():
        for profile in offered_by(card):
            types.setdefault(profile, set()).add(card.gpu.key)
    kinds = sorted(found, key=lambda asked: (*asked[:5], asked.place or ""))
    named: dict[str, Asked] = {}
    done = []
    for asked in kinds:
        name = dns_label(asked.label)
        if named.setdefault(name, asked) != asked:
            raise InvalidProblem(f"{asked} and {named[name]} would both be named {name!r}")
        cards = tuple(card for card, _ in found[asked])
        card = cards[0]
        works = tuple(dict.fromkeys(work for _, work in found[asked]))
        hosts = _hosts(deployment, asked, cards, many=len(types[_offer(card, asked.profile)]) > 1)
        done.append(Workload(asked, name, len(cards), works, cards, hosts))
    return tuple(done)


def offered_by(card: FleetGpu) -> set[str]:
    """Return what a GPU offers to pods: its profiles, or all of it, also while nothing is on it."""
    return {_offer(card, each) for each in card.counts} if card.is_cut else {WHOLE}


def _offer(card: FleetGpu, profile: str) -> str:
    return profile if card.is_cut else WHOLE


def _asked(card: FleetGpu, profile: str, work: Work, place: str | None) -> Asked:
    point = work.point
    return Asked(work.service, card.gpu.key, profile, point.processes, point.batch, place)


def _hosts(
    deployment: Deployment, asked: Asked, cards: Iterable[FleetGpu], *, many: bool
) -> tuple[str, ...]:
    """Name the nodes that alone will do: those of its place, or with its type of GPU."""
    if asked.place is not None:
        nodes = {card.node for card in cards}
    elif many:
        nodes = {
            card.node
            for card, each in deployment.instances()
            if (card.gpu.key, each.profile) == (asked.gpu, asked.profile)
        }
    else:
        return ()
    return tuple(sorted(host_of(deployment, name) for name in nodes))


def host_of(deployment: Deployment, node: str) -> str:
    """Return what the label :data:`HOSTNAME` of a node says: its name, unless it is known."""
    return deployment.node(node).labels.get(HOSTNAME, node)


def about_work(deployment: Deployment) -> Iterator[str]:
    """Say what manifests do not of services, their traffic, and what is not in them."""
    found = working(deployment)
    if deployment.services:
        yield (
            "Services: the rates and limits that they are to meet, the capacities that were "
            "counted on and the queueing rule."
        )
    supplies: dict[str, Counter[Fraction]] = {}
    for _, _, work in found:
        supplies.setdefault(work.service, Counter())[work.supply_rps] += 1
    rates = {service.name: service.rate_rps for service in deployment.services}
    for name, counted in sorted(supplies.items()):
        if len(counted) > 1:
            pods, least = counted.total(), min(counted)
            even, sum_ = pods * least, sum(s * n for s, n in counted.items())
            kept = "which is still enough" if even >= rates[name] else "which is too little"
            yield (
                f"Traffic: a Kubernetes Service gives each pod of {name} the same, though they "
                f"supply {', '.join(shown(s) for s in sorted(counted))} items/s. In equal parts "
                f"{shown(even)} of their {shown(sum_)} items/s can be served before the weakest of "
                f"{pods} is overrun, {kept} for the {shown(rates[name])} asked for; weights by the "
                "annotation cms.items-per-second of the pods keep all of it."
            )
    if deployment.plan is not None:
        yield "The plan that this realises, and its proof."
    idle = sum(1 for _, each in deployment.instances() if each.is_ours and each.work is None)
    if idle:
        yield f"Idle: {idle} of our instances do nothing; no pod asks for them."
    moved = [
        f"{card.name} {each}"
        for card, each in deployment.instances()
        if each.work is not None and each.is_ours and each.state is not State.RUNNING
    ]
    if moved:
        yield (
            "States: what starts is asked for like what runs, and what is drained is not asked "
            f"for: {', '.join(moved[:5])}{' and more' * (len(moved) > 5)}."
        )
