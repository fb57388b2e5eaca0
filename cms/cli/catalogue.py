"""What is available by name: GPUs of the catalogue, published scenarios and problems."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeVar

import cms.fleet
from cms.errors import InvalidOption
from cms.plugin.registry import PluginError, UnknownInstance

from .options import require_known, usage_error

T = TypeVar("T")
_OTHER_KINDS = {
    "plan": ("a problem without services", "problem solve"),
    "solve": ("a scenario of services", "plan"),
}


def gpu_keys() -> Iterable[str]:
    """Return the keys of the catalogue, for a shell that completes."""
    return [gpu.key for gpu in cms.fleet.list_gpus()]


def find_gpu(name: str, option: str = "") -> cms.fleet.Gpu:
    """Return a GPU by key or product name, or read it from a user's own device file."""
    from cms.fleet.hardware.catalogue import is_device_file, likely_gpus

    if is_device_file(name):
        return cms.fleet.read_gpu(name)
    try:
        return cms.fleet.get_gpu(name)
    except InvalidOption:
        guess = likely_gpus(name) or (
            f"expected a product name, one of {', '.join(gpu_keys())}, or the path of a device "
            "file, .yaml or .json"
        )
        raise usage_error(f"unknown GPU {name!r}; {guess}", option) from None


def attributes(it: object, names: str) -> dict[str, Any]:
    """Return attributes of these names, sequences as lists: for a JSON document."""
    values = ((name, getattr(it, name)) for name in names.split())
    return {name: [*each] if isinstance(each, tuple) else each for name, each in values}


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the instances of one kind; one that cannot be loaded is left out."""
    found = []
    for name in cms.list_instances():
        with suppress(PluginError):
            if isinstance(cms.load_instance(name), kind):
                found.append(name)
    return tuple(found)


def scenarios() -> Iterable[str]:
    """Return the names of the published scenarios."""
    return names_of(cms.fleet.Scenario)


def problems() -> Iterable[str]:
    """Return the names of the theory's problems."""
    return names_of(cms.NamedProblem)


def load_published(name: str, kind: type[T], command: str) -> T:
    """Return the instance of this name."""
    try:
        found = cms.load_instance(name)
    except UnknownInstance:
        if not (names := names_of(kind)):
            raise  # it says why nothing is there at all
        require_known(name, names, "--published")
        raise
    if isinstance(found, kind):
        return found
    what, other = _OTHER_KINDS[command]
    raise usage_error(f"{name!r} is {what}; use: cms {other} --published {name}", "--published")
