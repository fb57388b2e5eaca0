"""The devices that come with the package, found by key, product name or PCI device id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ...errors import InvalidOption
from ...files.json_text import parse_json
from ...files.source import read_source
from .device import Gpu
from .device_file import read_device
from .profile import Evidence

_DEVICES = Path(__file__).parent / "devices"


def gpu(name: str) -> Gpu:
    """Return a device of the catalogue.

    Parameters
    ----------
    name : str
        Its key (``a100-80gb``), a product name as drivers and node labels print it (``NVIDIA
        A100-SXM4-80GB``, ``NVIDIA-A100-SXM4-80GB``) or its PCI device id (``0x234810DE``). Upper
        and lower case count as equal, and so do blanks, hyphens and underscores.

    Returns
    -------
    Gpu
        The same object for the same device.

    Raises
    ------
    InvalidOption
        If there is none; the message has the keys, the likely ones first.

    See Also
    --------
    read_gpu : a device file of your own.

    Examples
    --------
    >>> gpu("NVIDIA A100-SXM4-80GB").key
    'a100-80gb'
    >>> gpu("a100")
    Traceback (most recent call last):
        ...
    cms.errors.InvalidOption: unknown GPU 'a100'; did you mean a100-40gb (A100-SXM4-40GB, ...
    """
    if not isinstance(name, str):
        raise InvalidOption(f"GPU name is {name!r}; expected a text such as 'a100-80gb'")
    folded = _fold(name)
    keys = _keys()
    key = folded if folded in keys else _other_names().get(folded)
    if key is not None:
        return _load(key)
    guess = likely_gpus(name)
    raise InvalidOption(
        f"unknown GPU {name!r}; {guess + ' Known' if guess else 'known'}: {', '.join(keys)}. "
        "For another card, read_gpu reads a device file of your own"
    )


def gpu_called(name: str, own: Iterable[Gpu] = ()) -> Gpu:
    """Return a device by any of its names: one of the caller's own, or of the catalogue.

    Raises
    ------
    InvalidOption
        If there is none.

    Examples
    --------
    >>> gpu_called("nvidia_a30").key
    'a30-24gb'
    """
    found = (each for each in own if each.profiles and is_called(each, name))
    return next(found, None) or gpu(name)


def is_called(one: Gpu, name: str) -> bool:
    """Whether this is a GPU's key, product name or PCI device id, spelt as `gpu` takes them.

    Examples
    --------
    >>> is_called(gpu("a100-80gb"), "nvidia_a100-sxm4-80gb"), is_called(gpu("a30-24gb"), "0x20b5")
    (True, False)
    """
    folded = _fold(name)
    return any(folded == _fold(each) for each in (one.key, *one.aliases, *one.pci_device_ids))


def uncut_gpu(name: str) -> Gpu:
    """Return a device of which nothing is known but its name: no profile of MIG is its.

    Examples
    --------
    >>> print(uncut_gpu("Tesla T4").key, uncut_gpu("Tesla T4").profiles)
    tesla-t4 ()
    """
    key = re.sub(r"[^a-z0-9]+", "-", _fold(name)).strip("-") or "unknown"
    said = Evidence(("key",), "capture", "the name of a GPU that no device file describes")
    return Gpu(key, (), (), "unknown", 1, 1, None, (), (said,), 1)


def gpus() -> tuple[Gpu, ...]:
    """Return all devices of the catalogue, in the order of their keys.

    Examples
    --------
    >>> [device.key for device in gpus()][:3]
    ['a100-40gb', 'a100-80gb', 'a30-24gb']
    """
    return tuple(_load(key) for key in _keys())


@cache
def _load(key: str) -> Gpu:
    return read_device(read_source(_DEVICES / f"{key}.json", holds="a device"))


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


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().casefold()).removeprefix("nvidia-")


def likely_gpus(name: str) -> str:
    """Word which devices somebody may have meant by a name that is none; empty if that is unclear.

    Those whose keys begin with it come with their product names: they are to be told apart.

    Examples
    --------
    >>> likely_gpus("H100")
    'did you mean h100-80gb (H100 80GB HBM3, H100 PCIe), h100-94gb (H100 NVL) or h100-96gb \
(GH200 480GB, H20)?'
    >>> likely_gpus("a30-23gb")
    'did you mean a30-24gb?'
    """
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
