"""What a cluster is asked to run: the number of pods of each kind."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ....errors import InvalidProblem
from ..instance import WHOLE, Instance, State, Work
from ..labels import HOSTNAME
from ..model import Deployment, FleetGpu
from .export import name_by_driver

__all__ = ["Workload", "WorkloadKey", "dns_label", "find_workloads", "list_working",
           "offered_profiles"]  # fmt: skip

_LONGEST = 63
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)


def dns_label(text: str) -> str:
    """Return a text as a name of Kubernetes: itself if it can be one, else shortened, with a hash.

    Examples
    --------
    >>> dns_label("chat-1g10gb-1x4"), dns_label("Übersetzer 2")
    ('chat-1g10gb-1x4', 'bersetzer-2-38496e')
    """
    if len(text) <= _LONGEST and _LABEL.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower(), flags=re.ASCII)[: _LONGEST - 7].strip("-")
    return f"{plain}-{digest}" if plain else f"x-{digest}"


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
