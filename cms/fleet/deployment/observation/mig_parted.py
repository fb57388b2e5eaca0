"""The file of mig-parted, version v1: how the GPUs of a node are cut, by counts, under a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, TypeAdapter

from ....errors import FileError
from ....files import fields as f
from ....files import model as m
from ....files.source import Source
from ....values.frozen import FrozenMap
from ...hardware.yaml_text import read_yaml_or_json
from ..model import FleetGpu
from .facts import GpuFacts, Statement

#: How one GPU is cut: ``{profile: count}``, or None with MIG off.
Cut: TypeAlias = FrozenMap[str, int] | None

#: The configuration that every file has here, and what mig-parted calls the one that it exports.
ALL_DISABLED, _CURRENT = "all-disabled", "current"
_FILE = re.compile(r"^[ \t]*[\"']?mig-configs[\"']?\s*:", re.M)


@dataclass(frozen=True, slots=True)
class Entry:
    """Some GPUs of a node and how they are cut."""

    devices: tuple[int, ...] | None  # their indices; None stands for all
    cut: Cut
    filters: tuple[str, ...] = ()  # PCI ids to which it is confined


def is_mig_parted(text: str) -> bool:
    """Whether a text looks like a file of mig-parted."""
    return _FILE.search(text) is not None


_INDICES = TypeAdapter(tuple[f.Count, ...])


def _read_devices(value: Any) -> Any:
    if not isinstance(value, list) and value != "all":
        raise f.refusal('"all" or a list of indices', fix="write [0], not 0")
    return value if value == "all" else _INDICES.validate_python(value)


class _EntryPart(m.Part):
    OWN_KEYS: ClassVar[bool] = False
    devices: Annotated[Any, f.Value(_read_devices)]
    is_enabled: f.Flag = Field(alias="mig-enabled")
    counts: dict[str, f.Count] | None = Field(None, alias="mig-devices")
    filters: Any = Field((), alias="device-filter")

    def build(self) -> Entry:
        filters, counts = self.filters, self.counts
        is_listed = isinstance(filters, list | tuple)
        filters = tuple(filters) if is_listed else (filters,)
        for index, each in enumerate(filters):
            if not isinstance(each, str):
                raise f.refusal("a text", "device-filter", *([index] * is_listed))
        devices = None if self.devices == "all" else self.devices
        if not self.is_enabled:
            if counts:
                raise f.refusal("nothing, as MIG is not enabled", "mig-devices")
            return Entry(devices, None, filters)
        if counts is None:
            raise f.refusal("counts, or {} for none", what="{} has no mig-devices")
        if counts and not any(counts.values()):
            raise f.refusal("a count above 0, or {}", "mig-devices")
        cut = FrozenMap({name: count for name, count in counts.items() if count})
        return Entry(devices, cut, filters)


class _File(m.Part):
    OWN_KEYS: ClassVar[bool] = False
    version: Literal["v1"]
    configs: dict[str, tuple[Annotated[Entry, m.Built(_EntryPart)], ...]] = Field(
        alias="mig-configs"
    )

    def build(self) -> Self:
        for name, entries in self.configs.items():
            if not entries:
                raise f.refusal("at least one entry", "mig-configs", name)
        return self


def read_configs(source: Source) -> dict[str, tuple[Entry, ...]]:
    """Read the configurations of a mig-parted file, or of what ``mig-parted export`` prints.

    Refuses what mig-parted would: https://github.com/NVIDIA/mig-parted (api/spec/v1) in v0.15.0.
    """
    document, *others = read_yaml_or_json(source, holds="a mig-parted configuration")
    if others:
        raise others[0].error("a second document begins here", expected="one configuration file")
    found: _File = m.build(_File, document)
    return dict(found.configs)


def current_config(source: Source) -> tuple[Entry, ...]:
    """Return the configuration that says how the GPUs are cut now."""
    configs = read_configs(source)
    if _CURRENT in configs:
        return configs[_CURRENT]
    if len(configs) != 1:
        names = ", ".join(configs) or "none"
        raise FileError(
            source.name, f"which of its configurations is the current one is not said: {names}",
            expected=f"{_CURRENT!r}, as nvidia-mig-parted export calls it, or only one",
        )  # fmt: skip
    return next(iter(configs.values()))


def read_cuts(
    source: Source, entries: Sequence[Entry], node: str, gpus: tuple[FleetGpu, ...]
) -> Iterator[GpuFacts]:
    """Say how the GPUs of a node are cut, which are known as far as anything else tells of them.

    Refuses GPUs in no entry or in several, and entries that name a GPU that is not there.
    """
    known, where = {card.index: card for card in gpus}, source.name
    found: dict[int, list[Entry]] = {index: [] for index in known}
    for entry in entries:
        if entry.devices is None and not known:
            what = f"it is of all GPUs of node {node!r}, and how many these are is said nowhere"
            expected = f"the output of nvidia-smi -q -x beside it: {node}=gpus.xml"
            raise FileError(where, what, expected=expected)
        for index in known if entry.devices is None else entry.devices:
            if known and index not in known:
                raise FileError(where, f"GPU {index} is listed, but node {node!r} has none")
            if not known or _is_meant(entry, known[index], where):
                found.setdefault(index, []).append(entry)
    for index, own in sorted(found.items()):
        if len(own) != 1:
            what = f"GPU {node}/{index} is in {len(own)} entries"
            raise FileError(where, what, expected="exactly one")
        (entry,) = own
        # the one PCI id of an entry says what the GPUs are that it names
        ids = entry.filters if entry.devices and len(entry.filters) == 1 else ()
        product = next((Statement(each, "device-filter") for each in ids), None)
        mig = Statement("off" if entry.cut is None else "on", where)
        yield GpuFacts(index, where, product=product, mig=mig, counts=entry.cut)


def _is_meant(entry: Entry, card: FleetGpu, where: str) -> bool:
    """Whether the PCI ids of an entry are those of a GPU."""
    if entry.filters and not card.gpu.pci_device_ids:
        raise FileError(
            where,
            f"an entry is for the PCI ids {', '.join(entry.filters)} alone, and those of "
            f"{card.gpu.key} are not known",
            fix="leave out device-filter and list the indices",
        )
    ids = {each.lower() for each in card.gpu.pci_device_ids}
    return not entry.filters or any(each.lower() in ids for each in entry.filters)
