"""Dynamic resource allocation: the devices that ResourceSlices list, and who was given which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from ....files.parsed import Parsed
from ....files.source import one_of
from ...hardware import Placement
from ..instance import WHOLE
from ..kubernetes_objects import ClaimObject, DeviceEntry, SliceObject
from .facts import GpuFacts, InstanceFacts, Statement

_DRIVER = "gpu.nvidia.com"
_SHAPES = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")  # older ones are built otherwise
_NAME = re.compile(r"gpu-(\d{1,9})(?:-mig-(.*)-\d{1,9}-(\d{1,9}))?", re.ASCII)


def where(node: Parsed) -> str:
    """Say where a value stands, without reading the file again: ``pods.json: items[3]``."""
    return f"{node.source.name}: {node.label()}"


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a pool: a GPU, or a part of one."""

    node: str
    index: int  # in the GPU's name: that of its device file, and not that of nvidia-smi
    place: Placement | None  # of the part; None for the GPU as a whole
    attributes: Mapping[str, str]
    is_possible: bool  # one that the driver would make, and not one that is there
    where: str
    taint: str | None = None  # what keeps new pods from it

    def stated(self, name: str) -> Statement | None:
        """Return an attribute, if it has it."""
        value = self.attributes.get(name)
        return None if value is None else Statement(value, self.where)

    @property
    def held(self) -> tuple[int, str, int | None]:
        """Who has it holds this: GPU, profile and start."""
        return (self.index, *(self.place or (WHOLE, None)))


def devices_of(slices: Iterable[tuple[Parsed, SliceObject]]) -> dict[tuple[str, str], Device]:
    """Return the GPUs and their parts that slices list, by pool and name.

    Refuses slices of an older interface, pools that are not here as a whole, and other names of
    devices than the driver's.
    """
    own = [(node, each) for node, each in slices if each.driver == _DRIVER]
    latest: dict[str, int] = {}
    for node, each in own:
        if node.value.get("apiVersion") not in _SHAPES:
            raise node.wrong(one_of(_SHAPES), "apiVersion")
        latest[each.pool] = max(each.generation, latest.get(each.pool, each.generation))
    own = [(node, each) for node, each in own if each.generation == latest[each.pool]]
    numbers = Counter(each.pool for _, each in own)
    found: dict[tuple[str, str], Device] = {}
    for node, each in own:
        if each.n_slices != numbers[each.pool]:
            count = node.at("spec", "pool", "resourceSliceCount")
            has = f"has {count.value} slices, of which {numbers[each.pool]} are here"
            expected = "all of them: kubectl get resourceslices -o json"
            raise count.error(f"{count.label()}: pool {each.pool!r} {has}", expected=expected)
        for at, entry in enumerate(each.devices):
            if device := _device(node, at, each.node_name, entry):
                found[each.pool, entry.name] = device
    return found


def _device(slice_: Parsed, at: int, node: str, entry: DeviceEntry) -> Device | None:
    """Read a device; None if it is neither a GPU nor a part of one."""
    attributes = {
        key.removeprefix(f"{_DRIVER}/"): each.string or each.version
        for key, each in entry.attributes.items()
        if each.string or each.version
    }
    kind = attributes.get("type")
    if kind not in ("gpu", "mig"):
        return None
    place = slice_.at("spec", "devices", at)
    match = _NAME.fullmatch(entry.name)
    if match is None or (match[2] is not None) != (kind == "mig"):
        expected = "gpu-0, or gpu-0-mig-3g40gb-9-4: profile, its number, start"
        raise place.wrong(expected, "name")
    part = None
    if match[2] is not None:
        profile = attributes.get("profile", "")
        if re.sub(r"[^a-z0-9]", "", profile) != match[2].replace("-", ""):
            raise place.wrong(f"the name of a part with the profile {profile!r}", "name")
        part = Placement(profile, int(match[3]))
    taints = (
        "=".join(filter(None, (str(each.get("key")), each.get("value")))) + f" ({effect})"
        for each in entry.taints
        if (effect := each.get("effect")) != "None"
    )
    is_possible = bool(entry.consumes_counters)
    said = next(taints, None)
    return Device(node, int(match[1]), part, attributes, is_possible, where(place), said)


def gpus_of(devices: Iterable[Device], held: Iterable[Device]) -> tuple[GpuFacts, ...]:
    """Return the GPUs of a node, given its devices and those of them that are in use.

    Of the devices that the driver would make only these are there.
    """
    given = {each.held for each in held}
    listed = sorted(devices, key=lambda each: each.index)
    return tuple(_gpu(i, [*own], given) for i, own in groupby(listed, lambda each: each.index))


def _gpu(index: int, devices: list[Device], given: set[tuple[int, str, int | None]]) -> GpuFacts:
    there = [each for each in devices if not each.is_possible or each.held in given]
    whole = next((each for each in there if each.place is None), None)
    parts = tuple(
        InstanceFacts(each.place.profile, each.where, each.place.start,
                      uuid=each.attributes.get("uuid"))
        for each in there if each.place is not None
    )  # fmt: skip
    first = whole or (there or devices)[0]
    uuid = first.stated("uuid" if first.place is None else "parentUUID")
    facts = GpuFacts(index, first.where, uuid, first.stated("productName"))
    on, off = Statement("on", first.where), Statement("off", first.where)
    if parts:
        return replace(facts, mig=on, instances=parts)
    if whole is not None:
        return replace(facts, mig=off)
    # Nobody holds any of it, so the driver has taken its parts away. Where it lists the GPU as a
    # whole beside them, it switches MIG as asked, and has switched it off.
    is_off = any(each.place is None for each in devices)
    return replace(facts, instances=(), unclaimed=off if is_off else on)


def results_of(
    claim: tuple[Parsed, ClaimObject], devices: Mapping[tuple[str, str], Device]
) -> Iterator[Device]:
    """Yield the devices that a claim was given; FileError if one is in no slice."""
    node, found = claim
    for at, each in enumerate(found.results):
        if each.driver != _DRIVER or each.admin_access:
            continue
        if (each.pool, each.device) not in devices:
            node = node.at("status", "allocation", "devices", "results", at)
            what = f"device {each.device!r} of pool {each.pool!r} is in no ResourceSlice"
            expected = "slices of the same time: kubectl get resourceslices -o json"
            raise node.error(f"{node.label()}: {what}", expected=expected)
        yield devices[each.pool, each.device]
