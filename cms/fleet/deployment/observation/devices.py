"""What a GPU is, and its number; and GPUs on which nothing is planned, as something is odd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ....errors import InvalidOption
from ...hardware import Gpu
from ...hardware.catalogue import gpu_called, uncut_gpu
from ..instance import UNKNOWN_OWNER, UUID, WHOLE, Instance, Mode, StartSource, State
from ..model import Deployment, FleetGpu
from .facts import SAME_TIME, GpuFacts, InstanceFacts, NodeFacts, Statement, fault_at
from .nvidia_smi import ASK
from .pods import MergeContext

#: What a profile's name looks like, also one that no device file has: 1g.24gb+gfx, 1c.3g.40gb.
_PROFILE = re.compile(r"(\d+c\.)?\d+g\.\d+gb([+-][a-z]+([.,+-][a-z]+)*)?", re.ASCII)


def check_uuid(name: str, uuid: str, where: str) -> str:
    """Return a UUID; refuse what is none."""
    if not UUID.fullmatch(uuid):
        raise fault_at(where, f"the UUID of {name} is {uuid!r} here", "GPU-... or MIG-...")
    return uuid


def find_gpu(context: MergeContext, product: str) -> Gpu:
    """Return the device of a product; one without profiles if no device file has its name."""
    try:
        return gpu_called(product, context.devices.values())
    except InvalidOption:
        return uncut_gpu(product)


def find_device(
    context: MergeContext, node: str, facts: Sequence[GpuFacts], product: Statement | None,
    unfit: Statement | None,
) -> tuple[Gpu, Statement | None]:  # fmt: skip
    """Return what a GPU is, and why nothing is known of it where no device file has its name."""
    name = f"{node}/{facts[0].index}"
    told = [
        (find_gpu(context, each.value), each)
        for each in (*(card.product for card in facts), product)
        if each is not None
    ]
    if product is not None and not all(card.profiles for card, _ in (told[0], told[-1])):
        told = told[:-1] or told  # a label of a node with several types has one of them
    for card, each in told:
        if card.key != told[0][0].key:
            first, before = told[0]
            what = f"{name} is a {card.key} here, and a {first.key} in {before.where}"
            raise fault_at(each.where, what, SAME_TIME)
    for card, each in told:
        own = "where MIG cuts it, give one of your own: --gpu FILE"
        what = f"no device file is of the GPU {each.value!r}; {own}"
        return card, None if card.profiles else Statement(what, each.where)
    if context.device is not None:
        return context.device, None
    if unfit is None:
        raise fault_at(
            facts[0].where, f"what GPU {name} is is said nowhere",
            "the output of nvidia-smi -q -x beside it, or --gpu a100-80gb",
        )  # fmt: skip
    meant = (card.gpu for card in context.meant(node) if card.index == facts[0].index)
    return next(meant, uncut_gpu("unknown")), None


def find_unknown_profile(card: Gpu, facts: Sequence[GpuFacts]) -> Statement | None:
    """Say which instance is of a profile that the device does not have, if one is."""
    said = [(i.profile, i.where) for each in facts for i in each.instances or ()]
    said += [(p, each.where) for each in facts for p, n in (each.counts or {}).items() if n]
    known = {name for p in card.profiles for name in (p.name, *p.other_names)}
    odd = ((p, where) for p, where in said if p not in known and _PROFILE.fullmatch(p))
    return next((Statement(f"{card.key} has no profile {p!r}", where) for p, where in odd), None)


def read_instance(name: str, facts: InstanceFacts, card: Gpu) -> Instance:
    """Return an instance of a GPU, of which nothing says whose it is."""
    profile = next((p for p in card.profiles if facts.profile in (p.name, *p.other_names)), None)
    state = facts.state
    # the largest part of an instance has two thirds of its multiprocessors; of one product's GPUs
    # some have a seventh less than the catalogue says
    if profile and profile.sms and facts.multiprocessors and state is State.RUNNING:
        is_part = 4 * facts.multiprocessors < 3 * profile.sms
        state = State.SPLIT if is_part else State.RUNNING
    if facts.uuid is not None:
        check_uuid(f"{name} {facts.profile}", facts.uuid, facts.where)
    return Instance(
        profile.name if profile else facts.profile, facts.start, None, UNKNOWN_OWNER, state,
        facts.gpu_instance, facts.uuid,
    )  # fmt: skip


def build_fixed_gpu(node: str, card: Gpu, facts: Sequence[GpuFacts], uuid: str | None) -> FleetGpu:
    """Return a GPU on which nothing is planned: what is on it is foreign, as far as known."""
    index = facts[0].index
    listed = next((each.instances for each in facts if each.instances), ())
    counts = Counter(next((each.counts for each in facts if each.counts), {}))
    told = listed or [InstanceFacts(name, "") for name in counts.elements()]
    held = tuple(read_instance(f"{node}/{index}", each, card) for each in told)
    seen = StartSource.UNKNOWN if held and not listed else StartSource.OBSERVED
    instances = held or (Instance(WHOLE, owner=UNKNOWN_OWNER),)
    return FleetGpu(node, index, card, Mode.FIXED, instances, uuid, seen)


def number_gpus(
    name: str, told: Sequence[NodeFacts], meant: Iterable[FleetGpu]
) -> tuple[Sequence[NodeFacts], bool]:
    """Return what is told of a node with the GPUs' indices, and whether these are known.

    The driver of DRA calls a GPU by the minor number of its device file: UUIDs alone tell which of
    ``nvidia-smi`` it is. What was meant to be there may know them if nothing else does.
    """
    named = [card for each in told if not each.is_numbered for card in each.gpus]
    if all(each.is_numbered for each in told):
        return told, True
    cards = [card for each in told if each.is_numbered for card in each.gpus]
    indices = {card.uuid.value: card.index for card in cards if card.uuid is not None}
    uuids = {card.uuid.value if card.uuid else "" for card in named}
    if not indices and len({c.index for c in named}) == len({c.index for c in cards}) == 1:
        indices = dict.fromkeys(uuids, cards[0].index)  # there is one GPU alone
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
    numbered = (card for node in other.nodes if node.is_numbered for card in node.gpus)
    known: dict[tuple[str, str | None], int]
    known = {(card.node, card.uuid): card.index for card in numbered if card.uuid is not None}
    nodes = []
    for node in deployment.nodes:
        told = [(card, known[card.node, card.uuid]) for card in node.gpus
                if (card.node, card.uuid) in known]  # fmt: skip
        if not node.is_numbered and len(told) == len(node.gpus):
            cards = tuple(replace(card, index=index) for card, index in told)
            node = replace(node, gpus=cards, is_numbered=True)
        nodes.append(node)
    return replace(deployment, nodes=tuple(nodes))
