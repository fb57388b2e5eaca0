"""Dynamic resource allocation: the devices that ResourceSlices list, and who was given which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....files.node import Node
from ....files.numerals import is_whole
from ...hardware import Placement
from .facts import GpuFacts, InstanceFacts, Stated
from .kubernetes_objects import array_of, text_of, value_at

__all__ = ["DRIVER", "Device", "devices_of", "gpus_of", "results_of", "where"]

DRIVER = "gpu.nvidia.com"
_SHAPES = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")  # older ones are built otherwise
_CARD = re.compile(r"gpu-(\d{1,9})", re.ASCII)
_PART = re.compile(r"gpu-(\d{1,9})-mig-(.*)", re.ASCII)


def where(node: Node) -> str:
    """Say where a value stands, without reading the file again: ``pods.json: items[3]``."""
    return f"{node.source.name}: {node.label}"


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a pool: a GPU, or a part of one.

    Parameters
    ----------
    node : str
    index : int
        The number in the GPU's name: that of its device file, and not that of ``nvidia-smi``.
    place : Placement, optional
        Of the part; None for the GPU as a whole.
    attributes : Mapping[str, str]
    is_possible : bool
        Whether it is one that the driver would make, and not one that is there.
    where : str
    taint : str, optional
        What keeps new pods from it.
    """

    node: str
    index: int
    place: Placement | None
    attributes: Mapping[str, str]
    is_possible: bool
    where: str
    taint: str | None = None

    def stated(self, name: str) -> Stated | None:
        """Return an attribute, if it has it."""
        value = self.attributes.get(name)
        return None if value is None else Stated(value, self.where)


def devices_of(slices: Iterable[Node]) -> dict[tuple[str, str], Device]:
    """Return the GPUs and their parts that slices list, by pool and name.

    Raises
    ------
    FileError
        If a slice is of an older interface, a pool is not here as a whole, or a device is not
        named as the driver does.
    """
    pools: dict[str, dict[int, list[Node]]] = {}
    for each in slices:
        spec = each.at("spec")
        if spec.at("driver").text() == DRIVER:
            each.at("apiVersion").one_of(_SHAPES)
            pool = spec.at("pool")
            generation = pool.at("generation").integer()
            pools.setdefault(pool.at("name").text(), {}).setdefault(generation, []).append(spec)
    found: dict[tuple[str, str], Device] = {}
    for pool_name, generations in pools.items():
        newest = generations[max(generations)]
        count = newest[0].at("pool").at("resourceSliceCount")
        if count.integer(1) != len(newest):
            raise count.error(
                f"{count.label}: pool {pool_name!r} has {count.shown} slices, of which "
                f"{len(newest)} are here",
                expected="all of them: kubectl get resourceslices -o json",
            )
        for spec in newest:
            for entry in array_of(spec, "devices"):
                device = _device(spec.at("nodeName").text(), entry)
                if device is not None:
                    found[pool_name, entry.at("name").text()] = device
    return found


def _device(node: str, entry: Node) -> Device | None:
    """Read a device; None if it is neither a GPU nor a part of one."""
    attributes: dict[str, str] = {}
    for key, value in entry.at("attributes").entries():
        for form, each in value.entries():
            if form in ("string", "version"):
                attributes[key.removeprefix(f"{DRIVER}/")] = each.text()
    kind = attributes.get("type")
    if kind not in ("gpu", "mig"):
        return None
    name = entry.at("name")
    match = (_CARD if kind == "gpu" else _PART).fullmatch(name.text())
    letters, *numbers = match[2].rsplit("-", 2) if match and kind == "mig" else ("", "0", "0")
    if match is None or len(numbers) < 2 or not is_whole(numbers[-1]):
        raise name.wrong("gpu-0, or gpu-0-mig-3g40gb-9-4: profile, its number, start")
    place = None
    if kind == "mig":
        profile = attributes.get("profile", "")
        if re.sub(r"[^a-z0-9]", "", profile) != letters.replace("-", ""):
            raise name.wrong(f"the name of a part with the profile {profile!r}, as it says")
        place = Placement(profile, int(numbers[-1]))
    is_possible = any(array_of(entry, "consumesCounters"))
    taint = next(_taints(entry), None)
    return Device(node, int(match[1]), place, attributes, is_possible, where(entry), taint)


def _taints(entry: Node) -> Iterator[str]:
    """Say what keeps a device from pods: what has the effect None is no more than a remark."""
    for each in array_of(entry, "taints"):
        effect = each.at("effect").text()
        if effect != "None":
            value = text_of(each, "value")
            said = each.at("key").text() + (f"={value}" if value else "")
            yield f"{said} ({effect})"


def gpus_of(devices: Iterable[Device], held: Iterable[Device]) -> tuple[GpuFacts, ...]:
    """Return the GPUs of a node.

    Parameters
    ----------
    devices : iterable of Device
        Those of the node.
    held : iterable of Device
        Those of them that somebody was given: of the possible ones, only these are there.
    """
    given = {(each.index, each.place) for each in held}
    cards: dict[int, list[Device]] = {}
    for each in devices:
        cards.setdefault(each.index, []).append(each)
    return tuple(_gpu(index, cards[index], given) for index in sorted(cards))


def _gpu(index: int, devices: list[Device], given: set[tuple[int, Placement | None]]) -> GpuFacts:
    there = [each for each in devices if not each.is_possible or (index, each.place) in given]
    whole = next((each for each in there if each.place is None), None)
    parts = [each for each in there if each.place is not None]
    first = whole or (parts or devices)[0]
    uuid = first.stated("uuid" if first.place is None else "parentUUID")
    product = first.stated("productName")
    if whole is not None and not parts:
        return GpuFacts(index, first.where, uuid, product, Stated("off", first.where))
    instances = tuple(
        InstanceFacts(
            each.place.profile, each.where, each.place.start, uuid=each.attributes.get("uuid")
        )
        for each in parts
        if each.place is not None
    )
    if parts:
        return GpuFacts(
            index, first.where, uuid, product, Stated("on", first.where), None, instances
        )
    # Nobody holds any of it, so the driver has taken its parts away. Where it lists the GPU as a
    # whole beside them, it switches MIG as asked, and has switched it off.
    is_off = any(each.place is None for each in devices)
    unclaimed = Stated("off" if is_off else "on", first.where)
    return GpuFacts(index, first.where, uuid, product, instances=(), unclaimed=unclaimed)


def results_of(claim: Node, devices: Mapping[tuple[str, str], Device]) -> Iterator[Device]:
    """Yield the devices that a claim was given.

    Raises
    ------
    FileError
        If one is in no slice.
    """
    for each in array_of(claim, "status", "allocation", "devices", "results"):
        admin = value_at(each, "adminAccess")
        if each.at("driver").text() != DRIVER or (admin is not None and admin.boolean()):
            continue
        key = each.at("pool").text(), each.at("device").text()
        if key not in devices:
            raise each.error(
                f"{each.label}: device {key[1]!r} of pool {key[0]!r} is in no ResourceSlice",
                expected="slices of the same time: kubectl get resourceslices -o json",
            )
        yield devices[key]
