"""The devices that come with the package, found by key, product name or PCI device id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated

from ...errors import FileError, InvalidOption
from ...files.fields import refusal
from ...files.json_text import parse_json
from ...files.model import Built, build
from ...files.parsed import Parsed
from ...files.source import StrPath, read_source
from .device import Gpu
from .device_file import DevicePart
from .profile import Evidence, Profile

_DEVICES = Path(__file__).parent / "devices"


def get_gpu(name: str) -> Gpu:
    """Return a device of the catalogue; the same object for the same device.

    `name` is its key (``a100-80gb``), a product name as drivers and node labels print it (``NVIDIA
    A100-SXM4-80GB``) or its PCI device id (``0x234810DE``). Upper and lower case count as equal,
    and so do blanks, hyphens and underscores. InvalidOption has the keys, the likely ones first, if
    there is none; :func:`read_gpu` reads a device file of your own.

    Examples
    --------
    >>> get_gpu("NVIDIA A100-SXM4-80GB").key
    'a100-80gb'
    """
    if not isinstance(name, str):
        raise InvalidOption(f"GPU name is {name!r}; expected a text such as 'a100-80gb'")
    if (found := find_gpu(name)) is not None:
        return found
    guess = likely_gpus(name)
    raise InvalidOption(
        f"unknown GPU {name!r}; {guess + ' Known' if guess else 'known'}: {', '.join(_keys())}. "
        "For another card, read_gpu reads a device file of your own"
    )


def find_gpu(name: str) -> Gpu | None:
    """Return a device of the catalogue, as `get_gpu` does; None if there is none."""
    folded = _fold(name)
    key = folded if folded in _keys() else _other_names().get(folded)
    return None if key is None else _load(key)


def gpu_called(name: str, own: Iterable[Gpu] = ()) -> Gpu:
    """Return a device by any of its names: one of the caller's own, or of the catalogue."""
    found = (each for each in own if each.profiles and is_called(each, name))
    return next(found, None) or get_gpu(name)


def is_called(one: Gpu, name: str) -> bool:
    """Whether this is a GPU's key, product name or PCI device id, spelt as `get_gpu` takes them."""
    folded = _fold(name)
    return any(folded == _fold(each) for each in (one.key, *one.aliases, *one.pci_device_ids))


def uncut_gpu(name: str) -> Gpu:
    """Return a device of which nothing is known but its name: no profile of MIG is its."""
    key = re.sub(r"[^a-z0-9]+", "-", _fold(name)).strip("-") or "unknown"
    said = Evidence(("key",), "capture", "the name of a GPU that no device file describes")
    return Gpu(key, (), (), "unknown", 1, 1, None, (), (said,), 1)


def list_gpus() -> tuple[Gpu, ...]:
    """Return all devices of the catalogue, in the order of their keys.

    Examples
    --------
    >>> [device.key for device in list_gpus()][:3]
    ['a100-40gb', 'a100-80gb', 'a30-24gb']
    """
    return tuple(_load(key) for key in _keys())


@cache
def _load(key: str) -> Gpu:
    source = read_source(_DEVICES / f"{key}.json", holds="a device")
    found: Gpu = build(DevicePart, Parsed(parse_json(source), source), whole=True)
    return found


@cache
def _keys() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _DEVICES.glob("*.json")))


@cache
def _other_names() -> dict[str, str]:
    """Aliases and PCI device ids of all devices: parsed, but not checked or enumerated."""
    names: dict[str, str] = {}
    for key in _keys():
        device = parse_json(read_source(_DEVICES / f"{key}.json"))
        for name in (*device["aliases"], *device["pci_device_ids"]):
            names[_fold(name)] = key
    return names


def read_gpu(path: StrPath) -> Gpu:
    """Read a device file of your own: JSON (``.json``) or YAML (``.yaml``, ``.yml``).

    The GPU can be used wherever a name of the catalogue is. A FileError has file, line and column,
    if a field is missing, unknown or of the wrong kind, the file contradicts itself, the table has
    the slices of the known cards and other layouts than theirs (unless it says ``geometry: own``),
    or there are more than 16 slices, 50 profiles or 20,000 sets of instances that do not overlap.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("cms.fleet.hardware") / "devices/a30-24gb.json"  # a file to start from
    >>> read_gpu(path) == get_gpu("a30-24gb")
    True
    """
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix not in (".json", ".yaml", ".yml"):
        raise FileError(
            path if isinstance(path, str) else os.fspath(path),
            f"the name ends with {suffix!r}" if suffix else "the name has no ending",
            expected="a device file: .json, .yaml or .yml",
        )
    source = read_source(path, holds="a device")
    if suffix == ".json":
        document = Parsed(parse_json(source), source)
    else:
        from .yaml_text import read_yaml  # not on the way to a device of the catalogue

        document = read_yaml(source, holds="a device")
    found: Gpu = build(_DescribedPart, document, whole=True)
    return found


class _DescribedPart(DevicePart):
    """A device described by a user's file, or by a plan."""

    def build(self, *, whole: bool = False) -> Gpu:
        """Build and check the device; one with a key of the catalogue is that one."""
        device = super().build(whole=whole)
        if wrong := contradiction(device):
            raise refusal(
                "the card of that name",
                what=f"{{}} has the key {device.key!r} of the catalogue, and {wrong}",
                fix="give another card a key of its own",
            )
        return device


#: A device in a document.
Device = Annotated[Gpu, Built(_DescribedPart)]


def contradiction(device: Gpu) -> str:
    """Say in what a device has the key of one of the catalogue, and is another; empty if it is not.

    Profiles may be left out; sources and further names may differ, since they grow from version to
    version. What decides which instances fit may not, nor may two GPUs share a name.
    """
    if device.key not in _keys():
        return ""
    own = _load(device.key)
    sizes, slices = ((each.compute_slices, each.memory_slices) for each in (device, own))
    if sizes != slices:
        return f"{sizes[0]} compute and {sizes[1]} memory slices, not {slices[0]} and {slices[1]}"
    given, known = ({each.name: _rules(each) for each in g.profiles} for g in (device, own))
    for name in given:
        if given[name] != known.get(name):
            return f"another profile {name!r}"
    of = {other: each.name for each in own.profiles for other in (each.name, *each.other_names)}
    for each in device.profiles:
        for other in each.other_names:
            if of.get(other, each.name) != each.name:
                return f"the name {other!r} of {of[other]} for {each.name}"
    for name in device.aliases:
        if (key := _other_names().get(_fold(name), device.key)) != device.key:
            return f"the name {name!r}, which is {key}"
    return ""


def _rules(profile: Profile) -> tuple[object, ...]:
    """What decides where it fits."""
    since = profile.since_driver
    branch = None if since is None else int(since.removeprefix("R").partition(".")[0])
    sizes = profile.compute, profile.memory, profile.starts, profile.max
    return *sizes, profile.attributes, branch


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().casefold()).removeprefix("nvidia-")


def likely_gpus(name: str) -> str:
    """Word which devices may be meant by an unknown name, told apart; empty if that is unclear."""
    folded, keys = _fold(name), _keys()
    likely = [key for key in keys if folded and key.startswith(folded)]
    if len(likely) > 1:
        likely = [f"{key} ({', '.join(_load(key).aliases)})" for key in likely]
    if not likely:
        from difflib import get_close_matches  # only ever needed on the way to an error

        names = dict.fromkeys(keys) | _other_names()
        close = get_close_matches(folded, names, n=3)
        likely = list(dict.fromkeys(names[name] or name for name in close))
    if not likely:
        return ""
    *others, last = likely
    before = f"{', '.join(others)} or " if others else ""
    return f"did you mean {before}{last}?"
