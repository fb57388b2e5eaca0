"""What the nodes of a deployment offer to a cluster's scheduler, by the device plugin's names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ....errors import InvalidOption
from ....values.frozen import FrozenMap
from ..instance import WHOLE
from ..model import Deployment, FleetNode
from .export import name_by_driver

__all__ = ["Offer", "advertise", "offer_of", "resource_of"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node offers.

    Its strategy is the least of the device plugin's that shows all its instances: ``none``,
    ``single`` or ``mixed``. A cluster has one strategy, so ``mixed`` if any node needs it.
    """

    node: str
    strategy: str
    resources: FrozenMap[str, int]  # by name, under the strategy asked for


def resource_of(profile: str) -> str:
    """Return the name of a profile's resource: ``nvidia.com/mig-1g.10gb.me``."""
    return "nvidia.com/gpu" if profile == WHOLE else f"nvidia.com/mig-{profile.replace('+', '.')}"


def advertise(deployment: Deployment, strategy: str = "mixed") -> tuple[Offer, ...]:
    """Say what each node will offer once the deployment stands.

    The strategy is the device plugin's: ``mixed``; ``single``, under which a node that needs
    ``mixed`` offers nothing (the plugin calls it ``mig-strategy-invalid``); or ``none``, under
    which GPUs are offered as they are. Foreign instances without a compute instance are not
    counted. GPUs under MPS count as one each, before any sharing is configured.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import FleetGpu, Instance
    >>> held = (Instance("4g.40gb", 0), Instance("3g.40gb", 4))
    >>> node = FleetNode("a", (FleetGpu("a", 0, get_gpu("a100-80gb"), instances=held),))
    >>> dict(advertise(Deployment((node,)))[0].resources)
    {'nvidia.com/mig-3g.40gb': 1, 'nvidia.com/mig-4g.40gb': 1}
    """
    strategies = "mixed", "single", "none"
    if strategy not in strategies:
        raise InvalidOption(f"strategy is {strategy!r}; expected one of {', '.join(strategies)}")
    return tuple(offer_of(node, strategy) for node in name_by_driver(deployment).nodes)


def offer_of(node: FleetNode, strategy: str = "mixed") -> Offer:
    """Say what one node offers; see `advertise`."""
    cut = [card for card in node.gpus if card.is_cut]
    whole = len(node.gpus) - len(cut)
    profiles = Counter(i.profile for c in cut for i in c.instances if i.is_managed or i.is_whole)
    alike = len(profiles) == 1 and not whole and all(card.instances for card in cut)
    needs = "none" if not cut else "single" if alike else "mixed"
    if strategy == "mixed":
        resources = {resource_of(profile): count for profile, count in profiles.items()}
        resources["nvidia.com/gpu"] = whole
    elif strategy == "none" or needs == "none":
        resources = {"nvidia.com/gpu": len(node.gpus)}
    else:
        resources = {"nvidia.com/gpu": profiles.total() if needs == "single" else 0}
    offered = {name: count for name, count in resources.items() if count}
    return Offer(node.name, needs, FrozenMap(offered))
