"""The file of mig-parted, version v1: how the GPUs of a node are cut, by counts, under a name.

Rules of the format: https://github.com/NVIDIA/mig-parted (api/spec/v1), read in v0.15.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, TypeAdapter

from ....errors import FileError
from ....files import fields as f
from ....files import model as m
from ....files.source import Source
from ....values.frozen import FrozenMap
from ...hardware.yaml_text import read_yaml_or_json
from ..model import FleetGpu, FleetNode
from .facts import GpuFacts, Statement

__all__ = [
    "ALL_DISABLED", "Cut", "Entry", "current_config", "read_cuts", "is_mig_parted",
    "read_configs",
]  # fmt: skip

#: How one GPU is cut: ``{profile: count}``, or None with MIG off.
Cut: TypeAlias = FrozenMap[str, int] | None

#: The configuration that every file has here, and what mig-parted calls the one that it exports.
ALL_DISABLED, _CURRENT = "all-disabled", "current"
_FILE = re.compile(r"^\s*[\"']?mig-configs[\"']?\s*:", re.M)


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
        filters = tuple(filters) if isinstance(filters, list | tuple) else (filters,)
        for index, each in enumerate(filters):
            if not isinstance(each, str):
                raise f.refusal(
                    "a text", "device-filter", *([index] if isinstance(self.filters, list) else [])
                )
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

    Refuses, with line and column, what mig-parted itself would refuse.
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
    if gpus:
        cuts = _cuts_of(entries, FleetNode(node, gpus), source.name)
    else:
        cuts = {}
        for entry in entries:
            if entry.devices is None:
                raise FileError(
                    source.name,
                    f"it is of all GPUs of node {node!r}, and how many these are is said nowhere",
                    expected=f"the output of nvidia-smi -q -x beside it: {node}=gpus.xml",
                )
            for index in entry.devices:
                if index in cuts:
                    raise FileError(source.name, f"GPU {index} is in two entries", expected="one")
                cuts[index] = entry.cut
    # what the one PCI id of an entry says of its GPUs
    products = {
        index: Statement(entry.filters[0], "device-filter")
        for entry in entries
        if len(entry.filters) == 1
        for index in entry.devices or ()
    }
    for index, cut in sorted(cuts.items()):
        mig = Statement("off" if cut is None else "on", source.name)
        counts = None if cut is None else dict(cut)
        yield GpuFacts(index, source.name, product=products.get(index), mig=mig, counts=counts)


def _cuts_of(entries: Iterable[Entry], node: FleetNode, where: str) -> dict[int, Cut]:
    known = {card.index for card in node.gpus}
    for entry in entries:
        for index in entry.devices or ():
            if index not in known:
                raise FileError(where, f"GPU {index} is listed, but node {node.name!r} has none")
    found = {}
    for card in node.gpus:
        fits = [entry for entry in entries if _concerns(entry, card, where)]
        if len(fits) != 1:
            raise FileError(
                where, f"GPU {card.name} is in {len(fits)} entries", expected="exactly one"
            )
        found[card.index] = fits[0].cut
    return found


def _concerns(entry: Entry, card: FleetGpu, where: str) -> bool:
    if entry.devices is not None and card.index not in entry.devices:
        return False
    if entry.filters and not card.gpu.pci_device_ids:
        raise FileError(
            where,
            f"an entry is for the PCI ids {', '.join(entry.filters)} alone, and those of "
            f"{card.gpu.key} are not known",
            fix="leave out device-filter and list the indices",
        )
    ids = {each.lower() for each in card.gpu.pci_device_ids}
    return not entry.filters or any(each.lower() in ids for each in entry.filters)
