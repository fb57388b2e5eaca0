"""The mig-parted file, version v1: how the GPUs of a node are cut, by counts, under a name.

Rules of the format: https://github.com/NVIDIA/mig-parted (api/spec/v1), read in v0.15.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from ....errors import CmsError, FileError, InvalidProblem
from ....files.node import Node
from ....files.source import Source, quoted
from ....files.yaml_text import read_yaml_or_json
from ....values.frozen import FrozenMap
from ..instance import Instance, Mode, Seen
from ..model import FleetGpu, FleetNode
from .export import without_head

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node as YamlNode

__all__ = [
    "Cut",
    "Entry",
    "configs_of",
    "cut_card",
    "cut_of",
    "cuts_of",
    "merged",
    "name_of",
    "read_configs",
    "text_of",
]

#: How one GPU is cut: ``{profile: count}``, or None with MIG off.
Cut: TypeAlias = FrozenMap[str, int] | None

ALL_DISABLED = "all-disabled"


@dataclass(frozen=True, slots=True)
class Entry:
    """Some GPUs of a node and how they are cut.

    Parameters
    ----------
    devices : tuple of int, or None
        Their indices; None stands for all.
    cut : Cut
    filters : tuple of str
        PCI ids to which it is confined; empty for none.
    """

    devices: tuple[int, ...] | None
    cut: Cut
    filters: tuple[str, ...] = ()


def name_of(cuts: Mapping[int, Cut]) -> str:
    """Name the way in which a node is cut; nodes that are cut alike have one name.

    Examples
    --------
    >>> name_of({0: FrozenMap({"3g.40gb": 2}), 1: None})
    'cms-6b436d3f4eb2'
    """
    said = [(index, None if cut is None else dict(cut)) for index, cut in sorted(cuts.items())]
    digest = hashlib.sha256(json.dumps(said).encode())
    return f"cms-{digest.hexdigest()[:12]}"


def configs_of(layouts: Iterable[Mapping[int, Cut]]) -> dict[str, Mapping[int, Cut]]:
    """Return nodes' layouts by name, each once.

    Parameters
    ----------
    layouts : iterable of Mapping
        How each GPU of a node is cut, by index.

    Raises
    ------
    InvalidProblem
        If two that differ have one name, which is too short a hash to exclude it.

    Examples
    --------
    >>> two = {0: FrozenMap({"3g.40gb": 2}), 1: None}
    >>> list(configs_of([two, {0: None}, two]))
    ['cms-6b436d3f4eb2', 'cms-5caa6b1ca4c6']
    """
    found: dict[str, Mapping[int, Cut]] = {}
    for cuts in layouts:
        name = name_of(cuts)
        known = found.setdefault(name, cuts)
        if dict(known) != dict(cuts):
            raise InvalidProblem(
                f"the layouts {_said(known)} and {_said(cuts)} of nodes both have the name {name}; "
                "expected a name for each: export the nodes of one of them by themselves"
            )
    return found


def _said(cuts: Mapping[int, Cut]) -> str:
    return json.dumps(
        {str(index): None if cut is None else dict(cut) for index, cut in sorted(cuts.items())}
    )


def text_of(configs: Mapping[str, Mapping[int, Cut]]) -> str:
    """Write configurations, given as the cut of each index, and ``all-disabled``.

    Examples
    --------
    >>> print(text_of({"two": {0: FrozenMap({"3g.40gb": 2}), 1: None, 2: None}}), end="")
    version: v1
    mig-configs:
      all-disabled:
      - devices: all
        mig-enabled: false
      two:
      - devices: [0]
        mig-enabled: true
        mig-devices: {"3g.40gb": 2}
      - devices: [1, 2]
        mig-enabled: false
    """
    return "version: v1\nmig-configs:\n" + "".join(_lines(_with_all_disabled(configs), "  "))


def _with_all_disabled(configs: Mapping[str, Mapping[int, Cut]]) -> dict[str, list[Entry]]:
    entries = {ALL_DISABLED: [Entry(None, None)]}
    for name, cuts in sorted(configs.items()):
        alike: dict[Cut, list[int]] = {}
        for index, cut in sorted(cuts.items()):
            alike.setdefault(cut, []).append(index)
        entries[name] = [Entry(tuple(indices), cut) for cut, indices in alike.items()]
    return entries


def _lines(configs: Mapping[str, Iterable[Entry]], indent: str) -> Iterable[str]:
    for name, entries in configs.items():
        yield f"{indent}{name}:\n"
        for entry in entries:
            devices = "all" if entry.devices is None else list(entry.devices)
            yield f"{indent}- devices: {devices}\n"
            yield f"{indent}  mig-enabled: {'false' if entry.cut is None else 'true'}\n"
            if entry.cut is not None:
                yield f"{indent}  mig-devices: {json.dumps(dict(entry.cut))}\n"


def read_configs(source: Source) -> dict[str, tuple[Entry, ...]]:
    """Read the configurations of a mig-parted file, or of what ``mig-parted export`` prints.

    Parameters
    ----------
    source : Source
        YAML or JSON.

    Raises
    ------
    FileError
        With line and column, wherever mig-parted itself would refuse the file.

    Examples
    --------
    >>> read_configs(Source("c.yaml", text_of({})))
    {'all-disabled': (Entry(devices=None, cut=None, filters=()),)}
    """
    documents = read_yaml_or_json(source, holds="a mig-parted configuration")
    if len(documents) > 1:
        raise documents[1].error("a second document begins here", expected="one configuration file")
    fields = documents[0].object(("version", "mig-configs"), own=False)
    fields["version"].one_of(["v1"])
    found = {}
    for name, listed in fields["mig-configs"].entries():
        found[name] = tuple(_entry(each) for each in listed.array())
        if not found[name]:
            raise listed.wrong("at least one entry")
    return found


def _entry(node: Node) -> Entry:
    fields = node.object(
        ("devices", "mig-enabled"), ("mig-devices", "device-filter"), own=False
    )  # fmt: skip
    devices = fields["devices"]
    if devices.value == "all":
        indices = None
    elif isinstance(devices.value, list):
        indices = tuple(each.integer() for each in devices.array())
    else:
        raise devices.wrong('"all" or a list of indices', "write [0], not 0")
    filters: tuple[str, ...] = ()
    if "device-filter" in fields:
        given = fields["device-filter"]
        every = given.array() if isinstance(given.value, list) else [given]
        filters = tuple(each.text() for each in every)
    counts = None
    if "mig-devices" in fields and fields["mig-devices"].value is not None:
        counts = {name: each.integer() for name, each in fields["mig-devices"].entries()}
    if not fields["mig-enabled"].boolean():
        if counts:
            raise fields["mig-devices"].wrong("nothing, as MIG is not enabled")
        return Entry(indices, None, filters)
    if counts is None:
        raise node.error(f"{node.label} has no mig-devices", expected="counts, or {} for none")
    if counts and not any(counts.values()):
        raise fields["mig-devices"].wrong("a count above 0, or {}")
    cut = FrozenMap({name: count for name, count in counts.items() if count})
    return Entry(indices, cut, filters)


def cuts_of(entries: Iterable[Entry], node: FleetNode, where: str) -> dict[int, Cut]:
    """Apply a configuration to a node: how each of its GPUs is cut.

    Parameters
    ----------
    entries : iterable of Entry
    node : FleetNode
        Its GPUs' indices and types; what is on them does not matter.
    where : str
        The file, for errors.

    Raises
    ------
    FileError
        If a GPU is in no entry or in several, or an entry names a GPU that is not there.
    """
    entries = tuple(entries)
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


def cut_of(card: FleetGpu) -> Cut:
    """Return how a GPU is cut.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> print(cut_of(FleetGpu("a", 0, gpu("a30-24gb"), Mode.WHOLE)))
    None
    """
    return FrozenMap(card.counts) if card.is_cut else None


def cut_card(card: FleetGpu, cut: Cut) -> FleetGpu:
    """Return a GPU as it is seen where only its counts are known.

    Raises
    ------
    CmsError
        If the GPU cannot be cut so.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> a30 = FleetGpu("a", 0, gpu("a30-24gb"))
    >>> print(cut_card(a30, FrozenMap({"2g.12gb": 2})).seen, cut_card(a30, None).mode)
    only_one whole
    >>> print(cut_card(a30, FrozenMap({"2g.12gb": 1})))
    a/0 a30-24gb: 2g.12gb idle
    """
    if cut is None:
        return replace(card, mode=Mode.WHOLE, instances=(), seen=Seen.SEEN)
    choices = card.gpu.layouts_of(cut)
    if not choices:
        raise CmsError(f"{card.name}: {card.gpu.why_not(cut)}")
    if len(choices) == 1:
        placed = tuple(Instance(*place) for place in choices[0])
        return replace(card, mode=Mode.MIG, instances=placed, seen=Seen.ONLY_ONE)
    unplaced = tuple(Instance(profile) for profile, _ in choices[0])
    return replace(card, mode=Mode.MIG, instances=unplaced, seen=Seen.UNKNOWN)


def merged(source: Source, configs: Mapping[str, Mapping[int, Cut]]) -> str:
    """Write configurations below those of an existing file, of which every character is kept.

    Parameters
    ----------
    source : Source
        In YAML, with each configuration on lines of its own. What an earlier export put at its
        head goes.
    configs : Mapping
        As `text_of` takes them. Those that are there already, word for word, are left alone.

    Raises
    ------
    FileError
        If the file is none, or has one of the names for something else.

    Examples
    --------
    >>> theirs = "version: v1\\nmig-configs:\\n  # for training\\n  all-off:\\n"
    >>> theirs += "  - {devices: all, mig-enabled: false}\\n"
    >>> print(merged(Source("c.yaml", theirs), {"mine": {0: None}}), end="")
    version: v1
    mig-configs:
      # for training
      all-off:
      - {devices: all, mig-enabled: false}
      all-disabled:
      - devices: all
        mig-enabled: false
      mine:
      - devices: [0]
        mig-enabled: false
    """
    source = Source(source.name, without_head(source.text or ""))
    text = source.text or ""
    theirs, ours = read_configs(source), _with_all_disabled(configs)
    for name in ours:
        if name in theirs and name != ALL_DISABLED and set(theirs[name]) != set(ours[name]):
            raise FileError(
                source.name,
                f"there is a configuration {quoted(name)} of another content already",
                fix="rename it, or export without it",
            )
    added = {name: entries for name, entries in ours.items() if name not in theirs}
    column, line = _end_of_configs(source)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    lines[line:line] = _lines(added, " " * column)
    together = "".join(lines)
    both = read_configs(Source(source.name, together))
    if both != {**theirs, **{name: tuple(entries) for name, entries in added.items()}}:
        raise FileError(
            source.name,
            "what is to be added does not fit below its configurations",
            expected="block YAML, indented as mig-parted's own examples",
        )
    return together


def _end_of_configs(source: Source) -> tuple[int, int]:
    """Return the column of the configurations' names, and after how many lines the last ends."""
    from ruamel.yaml import YAML  # as in files.yaml_text: only for users' YAML
    from ruamel.yaml.nodes import MappingNode

    root = YAML(typ="safe", pure=True).compose(source.text or "")  # it has been read once already
    named = {key.value: value for key, value in root.value}
    configs = named["mig-configs"]
    if root.flow_style or not isinstance(configs, MappingNode) or configs.flow_style:
        raise FileError(
            source.name,
            "its configurations stand in braces, where nothing can be put below them",
            expected="each on lines of its own",
        )
    return configs.start_mark.column, _last_line(configs) + 1


def _last_line(node: YamlNode) -> int:
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    if isinstance(node, MappingNode) and not node.flow_style and node.value:
        return max(_last_line(each) for pair in node.value for each in pair)
    if isinstance(node, SequenceNode) and not node.flow_style and node.value:
        return max(_last_line(each) for each in node.value)
    last: int = node.end_mark.line
    return last
