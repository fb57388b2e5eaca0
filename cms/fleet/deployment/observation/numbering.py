"""GPUs that a source names by another number than ``nvidia-smi`` get that of their UUID.

The driver of dynamic resource allocation calls a GPU ``gpu-2`` by the minor number of its device
file, which need not be its index: only the UUID says which of the two is which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..model import Deployment, FleetGpu
from .facts import NodeFacts, fault_at
from .nvidia_smi import ASK

__all__ = ["number_gpus", "renumber_gpus"]


def number_gpus(
    name: str, told: Sequence[NodeFacts], meant: Iterable[FleetGpu]
) -> tuple[Sequence[NodeFacts], bool]:
    """Return what is told of a node with the GPUs' indices, and whether these are known.

    What was meant to be there may know UUIDs if nothing else does. Refuses indices that are told,
    if it is not told which GPU has which.
    """
    named = [each for each in told if not each.is_numbered]
    if not named:
        return told, True
    cards = [card for each in told if each.is_numbered for card in each.gpus]
    indices = {card.uuid.value: card.index for card in cards if card.uuid is not None}
    uuids = {card.uuid.value if card.uuid else "" for each in named for card in each.gpus}
    if not indices and len(uuids) == len({card.index for card in cards}) == 1:
        indices = {next(iter(uuids)): cards[0].index}  # there is one GPU alone
    if not cards:
        indices = {card.uuid: card.index for card in meant if card.uuid is not None}
        if not uuids <= indices.keys():
            return told, False
    return [each if each.is_numbered else _renumbered(name, each, indices) for each in told], True


def _renumbered(name: str, told: NodeFacts, indices: Mapping[str, int]) -> NodeFacts:
    found: dict[int, int] = {}
    for card in told.gpus:
        uuid = card.uuid.value if card.uuid else ""
        if uuid not in indices:
            raise fault_at(
                card.where,
                f"which GPU of {name} in the other sources is the one with the UUID "
                f"{uuid or 'that is not told'} is said nowhere",
                f"the output, of the same time, of: {ASK}",
            )
        found[card.index] = indices[uuid]
    pods = told.pods and tuple(
        replace(pod, places=tuple((found[i], profile, start) for i, profile, start in pod.places))
        for pod in told.pods
    )
    gpus = tuple(replace(card, index=found[card.index]) for card in told.gpus)
    return replace(told, gpus=gpus, pods=pods, is_numbered=True)


def renumber_gpus(deployment: Deployment, other: Deployment) -> Deployment:
    """Return a deployment whose GPUs have the numbers that another knows of their UUIDs.

    Nodes stay as they are whose numbers are known, or of which the other does not know all.
    """
    known = {card.uuid: card for node in other.nodes if node.is_numbered for card in node.gpus}
    nodes = []
    for node in deployment.nodes:
        meant = [known.get(card.uuid) for card in node.gpus]
        if not node.is_numbered and all(each and each.node == node.name for each in meant):
            pairs = zip(node.gpus, meant, strict=True)
            cards = tuple(replace(card, index=each.index) for card, each in pairs if each)
            node = replace(node, gpus=cards, is_numbered=True)
        nodes.append(node)
    return replace(deployment, nodes=tuple(nodes))
