"""``cms gpus``, ``cms problem algorithms`` and ``--published``: lists of what is available."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import typer

import cms.fleet
from cms.errors import InvalidOption
from cms.plugin import registry
from cms.plugin.registry import PluginError, UnknownInstance

from .options import Json, Output, Text, offering, require_known, usage_error
from .session import Exit, session_of

T = TypeVar("T")
_OTHER_KINDS = {
    "plan": ("a problem without services", "problem solve"),
    "solve": ("a scenario of services", "plan"),
}


def gpu_keys() -> Iterable[str]:
    """Return the keys of the catalogue, for a shell that completes."""
    return [gpu.key for gpu in cms.fleet.list_gpus()]


def gpus(
    context: typer.Context,
    name: Annotated[
        Text,
        typer.Argument(
            metavar="NAME",
            help="A key, a product name, or your own device file.",
            autocompletion=offering(gpu_keys),
        ),
    ] = None,
    output: Output = None,
    json: Json = False,
) -> int:
    """List the GPUs of the catalogue, or show one.

    It shows profiles, placements and configurations.
    """
    session = session_of(context)
    output = session.begin(output, json=json)
    found = cms.fleet.list_gpus() if name is None else (find_gpu(name),)
    from cms.fleet.report.catalogue import gpu_page, gpus_page

    session.show(
        lambda: {"gpus": [_gpu_to_json(gpu) for gpu in found]},
        lambda: gpus_page(found) if name is None else gpu_page(*found),
        output,
    )
    return Exit.ANSWER


def find_gpu(name: str, option: str = "") -> cms.fleet.Gpu:
    """Return a GPU by key or product name, or read it from a user's own device file."""
    from cms.fleet.hardware.catalogue import likely_gpus
    from cms.fleet.hardware.device_file import is_device_file

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


def _attributes(it: object, names: str) -> dict[str, Any]:
    values = ((name, getattr(it, name)) for name in names.split())
    return {name: [*each] if isinstance(each, tuple) else each for name, each in values}


def _gpu_to_json(gpu: cms.fleet.Gpu) -> dict[str, Any]:
    profile = "name family id compute memory starts max sms memory_mib attributes since_driver"
    return {
        **_attributes(gpu, "key aliases architecture compute_slices memory_slices version"),
        "profiles": [_attributes(each, profile) for each in gpu.profiles],
        "configurations": [dict(each.blocks) for each in gpu.configurations],
        "maximal_layouts": [list(map(str, layout)) for layout in gpu.maximal_layouts()],
        "sources": [
            _attributes(each, "fields evidence source driver date") for each in gpu.sources
        ],
    }


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the instances of one kind; one that cannot be loaded is left out."""
    found = []
    for name in cms.list_instances():
        with suppress(PluginError):
            if isinstance(cms.load_instance(name), kind):
                found.append(name)
    return tuple(found)


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


def _json_value(default: object) -> object:
    """An option's default in its own type, as far as JSON has it; a fraction becomes a text."""
    return default if default is None or isinstance(default, bool | int | float) else str(default)


def algorithms(context: typer.Context, output: Output = None, json: Json = False) -> int:
    """List the installed algorithms with their options."""
    from cms.fleet.report.catalogue import algorithms_page

    session = session_of(context)
    output = session.begin(output, json=json)
    with warnings.catch_warnings(record=True) as broken:
        warnings.simplefilter("always")
        found = registry.algorithm_details()
    for warning in broken:
        session.warn(str(warning.message))
    document = {
        "algorithms": [
            _attributes(one, "name summary distribution trusted")
            | {"options": {name: _json_value(value) for name, value in one.options.items()}}
            for one in found
        ]
    }
    session.show(lambda: document, lambda: algorithms_page(found), output)
    return Exit.ANSWER
