"""What a GPU is; and GPUs on which nothing is planned, since something about them is odd."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ....errors import InvalidOption
from ...hardware import Gpu
from ...hardware.catalogue import gpu_called, uncut_gpu
from ..instance import UNKNOWN_OWNER, UUID, WHOLE, Instance, Mode, Seen, State
from ..model import FleetGpu
from .facts import GpuFacts, Stated
from .merging import Merging, fault_at

__all__ = ["check_uuid", "device_of", "fixed", "joined", "odd_profile"]

#: What a profile's name looks like, also one that no device file has: 1g.24gb+gfx, 1c.3g.40gb.
_PROFILE = re.compile(r"(\d+c\.)?\d+g\.\d+gb([+-][a-z]+([.,+-][a-z]+)*)?", re.ASCII)


def check_uuid(name: str, uuid: str, where: str) -> None:
    """Refuse what is no UUID.

    Raises
    ------
    FileError
        With its place.
    """
    if not UUID.fullmatch(uuid):
        raise fault_at(where, f"the UUID of {name} is {uuid!r} here", "GPU-... or MIG-...")


def device_of(
    merging: Merging,
    node: str,
    facts: Sequence[GpuFacts],
    product: Stated | None,
    unfit: Stated | None,
) -> tuple[Gpu, Stated | None]:
    """Return what a GPU is, and why nothing is known of it where no device file has its name."""
    name = f"{node}/{facts[0].index}"
    found: list[tuple[Gpu, Stated]] = []
    unknown: Stated | None = None
    for each in (*(card.product for card in facts), product):
        if each is None:
            continue
        try:
            card = gpu_called(each.value, merging.devices.values())
        except InvalidOption:
            card = uncut_gpu(each.value)
        if found and each is product and not (card.profiles and found[0][0].profiles):
            continue  # a label of a node with several types has one of them
        if not card.profiles:
            unknown = unknown or Stated(
                f"no device file is of the GPU {each.value!r}; where MIG cuts it, give one of your "
                "own: --gpu FILE", each.where,
            )  # fmt: skip
        if found and found[0][0].key != card.key:
            raise fault_at(
                each.where,
                f"{name} is a {card.key} here, and a {found[0][0].key} in {found[0][1].where}",
                "sources of the same node, read at the same time",
            )
        found.append((card, each))
    if found:
        return found[0][0], unknown
    if merging.device is not None:
        return merging.device, None
    if unfit is None:
        raise fault_at(
            facts[0].where, f"what GPU {name} is is said nowhere",
            "the output of nvidia-smi -L beside it, or --gpu a100-80gb",
        )  # fmt: skip
    meant = (card for each in merging.meant() for card in each.gpus if card.name == name)
    return next((card.gpu for card in meant), uncut_gpu("unknown")), None


def odd_profile(card: Gpu, facts: Sequence[GpuFacts]) -> Stated | None:
    """Say which instance is of a profile that the device does not have, if one is."""
    said = [Stated(i.profile, i.where) for each in facts for i in each.instances or ()]
    said += [Stated(p, each.where) for each in facts for p, n in (each.counts or {}).items() if n]
    known = {name for p in card.profiles for name in (p.name, *p.other_names)}
    for each in said:
        if each.value not in known and _PROFILE.fullmatch(each.value):
            return Stated(f"{card.key} has no profile {each.value!r}", each.where)
    return None


def fixed(node: str, card: Gpu, facts: Sequence[GpuFacts], uuid: Stated | None) -> FleetGpu:
    """Return a GPU on which nothing is planned: what is on it is another's, as far as known."""
    own = {name: p.name for p in card.profiles for name in (p.name, *p.other_names)}
    held: list[Instance] = []
    listed = next((each.instances for each in facts if each.instances), ())
    counts = next((each.counts for each in facts if each.counts), {})
    for each in listed:
        if each.uuid is not None:
            check_uuid(f"{node}/{facts[0].index} {each.profile}", each.uuid, each.where)
        state = State.HOLLOW if each.is_hollow else State.SPLIT if each.is_split else State.RUNNING
        held.append(
            Instance(
                own.get(each.profile, each.profile), each.start, None, UNKNOWN_OWNER, state,
                each.gpu_instance, each.uuid,
            )
        )  # fmt: skip
    if not listed:
        names = (own.get(name, name) for name, n in counts.items() for _ in range(n))
        held = [Instance(name, owner=UNKNOWN_OWNER) for name in names]
    instances = tuple(held) or (Instance(WHOLE, owner=UNKNOWN_OWNER),)
    seen = Seen.UNKNOWN if held and not listed else Seen.SEEN
    index, name = facts[0].index, uuid.value if uuid else None
    return FleetGpu(node, index, card, Mode.FIXED, instances, name, seen)


def joined(layouts: Sequence[Sequence[Instance]]) -> tuple[Instance, ...]:
    """Return what all sources say together of the same instances."""
    by_place: dict[str, Instance] = {}
    for each in (instance for layout in layouts for instance in layout):
        first = by_place.setdefault(each.place, each)
        by_place[each.place] = replace(
            each if first.is_whole else first,
            gpu_instance=each.gpu_instance if first.gpu_instance is None else first.gpu_instance,
            uuid=first.uuid or each.uuid,
        )
    return tuple(by_place.values())
