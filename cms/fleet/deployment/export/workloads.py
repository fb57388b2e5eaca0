"""What a cluster is asked to run, by kinds of pods, and what its nodes offer to a scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from ....errors import InvalidProblem
from ....values.frozen import FrozenMap
from ..instance import WHOLE, Instance, State, Work
from ..labels import HOSTNAME, dns_label
from ..model import Deployment, FleetGpu, FleetNode


def name_by_driver(deployment: Deployment) -> Deployment:
    """Return a deployment whose profiles have the names that each node's driver knows."""
    named = {(c.node, c.index): named_by(node, c) for node in deployment.nodes for c in node.gpus}
    return deployment.with_gpus(named)


def named_by(node: FleetNode, card: FleetGpu) -> FleetGpu:
    """Return a GPU whose profiles have the names that its node's driver knows."""
    held = (replace(i, profile=node.calls(card.gpu, i.profile)) for i in card.instances)
    return replace(card, instances=tuple(held))


class WorkloadKey(NamedTuple):
    """What pods of one kind have in common."""

    service: str
    gpu: str  # a key of the catalogue
    profile: str
    processes: int
    batch: int
    place: str  # the node or GPU that they are tied to, or ""

    @property
    def label(self) -> str:
        """The kind in a few letters, its place among them: ``chat-a100-80gb-1g10gb-2x8``."""
        place = f"-{self.place}" if self.place else ""
        return f"{self.service}-{self.gpu}-{self.part}-{self.processes}x{self.batch}{place}"

    @property
    def part(self) -> str:
        """Its profile in letters that names may have: ``1g10gb-me``, ``mps40``."""
        return self.profile.replace(".", "").replace(":", "").replace("+", "-").replace(",", "-")


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one kind."""

    key: WorkloadKey
    name: str  # of their Deployment
    replicas: int
    works: tuple[Work, ...]  # what they do: one, unless a point was measured again
    supply_rps: Fraction  # of all together
    card: FleetGpu  # the first on which the plan has one
    hosts: tuple[str, ...]  # the only nodes that will do, by their label; empty if all will


def list_working(deployment: Deployment) -> list[tuple[FleetGpu, Instance, Work]]:
    """Return the managed instances that have work and are not being drained."""
    return [
        (card, each, each.work)
        for card, each in deployment.instances()
        if each.work is not None and each.is_managed and each.state is not State.DRAINING
    ]


def offered_profiles(card: FleetGpu) -> set[str]:
    """Return what a GPU offers to pods: its profiles, or all of it, also while it is empty."""
    return {*card.counts} if card.is_cut else {WHOLE}


def find_workloads(
    deployment: Deployment, place: Callable[[FleetGpu], str]
) -> tuple[Workload, ...]:
    """Gather the instances that work into kinds of pods; refuse two kinds with one name."""
    deployment = name_by_driver(deployment)
    found: dict[WorkloadKey, list[tuple[FleetGpu, Work]]] = {}
    for card, each, work in list_working(deployment):
        ways = work.point.processes, work.point.batch
        key = WorkloadKey(work.service, card.gpu.key, each.profile, *ways, place(card))
        found.setdefault(key, []).append((card, work))
    types: dict[str, set[str]] = {}
    nodes: dict[tuple[str, str], set[str]] = {}
    for card in deployment.gpus():
        for profile in offered_profiles(card):
            types.setdefault(profile, set()).add(card.gpu.key)
        for profile in card.counts:
            nodes.setdefault((card.gpu.key, profile), set()).add(card.node)
    named: dict[str, WorkloadKey] = {}
    done = []
    for key, held in sorted(found.items()):
        name, card = dns_label(key.label), held[0][0]
        if named.setdefault(name, key) != key:
            raise InvalidProblem(f"{key} and {named[name]} would both be named {name!r}")
        only: set[str] = set()
        if key.place:
            only = {card.node for card, _ in held}
        elif len(types[key.profile if card.is_cut else WHOLE]) > 1:
            only = nodes[key.gpu, key.profile]
        # a node's name, unless its label says otherwise
        hosts = tuple(sorted(deployment.node(node).labels.get(HOSTNAME, node) for node in only))
        works = tuple(dict.fromkeys(work for _, work in held))
        supply = sum((work.supply_rps for _, work in held), Fraction(0))
        done.append(Workload(key, name, len(held), works, supply, card, hosts))
    return tuple(done)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node offers under the device plugin's strategy ``mixed``.

    `strategy`: The least that shows all its instances: ``none``, ``single`` or ``mixed``. A cluster
    has one strategy, so ``mixed`` if any node needs it. `resources`: Counts by name.
    """

    node: str
    strategy: str
    resources: FrozenMap[str, int]


def resource_of(profile: str) -> str:
    """Return the name of a profile's resource: ``nvidia.com/mig-1g.10gb.me``."""
    return "nvidia.com/gpu" if profile == WHOLE else f"nvidia.com/mig-{profile.replace('+', '.')}"


def advertise(deployment: Deployment) -> tuple[Offer, ...]:
    """Say what each node will offer once the deployment stands.

    Foreign instances without a compute instance are not counted. GPUs under MPS count as one each,
    before any sharing is configured.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import FleetGpu, Instance
    >>> held = (Instance("4g.40gb", 0), Instance("3g.40gb", 4))
    >>> node = FleetNode("a", (FleetGpu("a", 0, get_gpu("a100-80gb"), instances=held),))
    >>> dict(advertise(Deployment((node,)))[0].resources)
    {'nvidia.com/mig-3g.40gb': 1, 'nvidia.com/mig-4g.40gb': 1}
    """
    return tuple(map(offer_of, name_by_driver(deployment).nodes))


def offer_of(node: FleetNode) -> Offer:
    """Say what one node offers; see `advertise`."""
    cut = [card for card in node.gpus if card.is_cut]
    found = Counter(i.profile for c in cut for i in c.instances if i.is_managed or i.is_whole)
    alike = len(found) == 1 and len(cut) == len(node.gpus) and all(card.instances for card in cut)
    if len(cut) < len(node.gpus):
        found[WHOLE] = len(node.gpus) - len(cut)
    resources = {resource_of(profile): count for profile, count in found.items()}
    strategy = "none" if not cut else "single" if alike else "mixed"
    return Offer(node.name, strategy, FrozenMap(resources))
