"""What the nodes of a deployment offer to a cluster's scheduler, by the device plugin's names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ....values.frozen import FrozenMap
from ..instance import WHOLE
from ..model import Deployment, FleetNode
from .export import name_by_driver

__all__ = ["Offer", "advertise", "offer_of", "resource_of"]


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
