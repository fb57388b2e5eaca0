"""``cms gpus`` and ``cms problem algorithms``: what is there to choose from."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, Output, offering, usage_error
from .session import Exit, session_of

if TYPE_CHECKING:
    from cms.fleet.hardware import Gpu


def gpu_keys() -> Iterable[str]:
    """Return the keys of the catalogue, for a shell that completes."""
    from cms.fleet.hardware import list_gpus as catalogue

    return [one.key for one in catalogue()]


_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="A key, a product name, or your own device file.",
        autocompletion=offering(gpu_keys),
    ),
]  # fmt: skip


def gpus(
    context: typer.Context, name: _Name = None, output: Output = None, json: Json = False
) -> int:
    """List the GPUs of the catalogue, or show one.

    It shows profiles, placements and configurations.
    """
    from cms.fleet.hardware import list_gpus as catalogue

    session = session_of(context)
    output = session.begin(output, json=json)
    if name is None:
        found = catalogue()
        document: dict[str, Any] = {"gpus": [_gpu_to_json(gpu) for gpu in found]}
    else:
        shown = find_gpu(name)
        document = {"gpus": [_gpu_to_json(shown)]}
    if session.json:
        session.print_json(lambda: document)
    else:
        from cms.fleet.report.catalogue import gpu_page, gpus_page

        session.print_page(gpus_page(found) if name is None else gpu_page(shown))
    session.write(lambda: document, output)
    return Exit.ANSWER


def find_gpu(name: str, option: str = "") -> Gpu:
    """Return a GPU by key or product name, or read it from a user's own device file."""
    from cms.errors import InvalidOption
    from cms.fleet.hardware import get_gpu, read_gpu
    from cms.fleet.hardware import list_gpus as catalogue
    from cms.fleet.hardware.catalogue import likely_gpus
    from cms.fleet.hardware.device_file import is_device_file

    if is_device_file(name):
        return read_gpu(name)
    try:
        return get_gpu(name)
    except InvalidOption:
        if guess := likely_gpus(name):
            raise usage_error(f"unknown GPU {name!r}; {guess}", option) from None
        keys = ", ".join(known.key for known in catalogue())
        raise usage_error(
            f"unknown GPU {name!r} (expected a product name, one of {keys}, or the path of a "
            "device file, .yaml or .json)",
            option,
        ) from None


def _gpu_to_json(gpu: Gpu) -> dict[str, Any]:
    return {
        "key": gpu.key,
        "aliases": list(gpu.aliases),
        "architecture": gpu.architecture,
        "compute_slices": gpu.compute_slices,
        "memory_slices": gpu.memory_slices,
        "version": gpu.version,
        "profiles": [
            {
                "name": p.name, "family": p.family, "id": p.id, "compute": p.compute,
                "memory": p.memory, "starts": list(p.starts), "max": p.max, "sms": p.sms,
                "memory_mib": p.memory_mib, "attributes": list(p.attributes),
                "since_driver": p.since_driver,
            }
            for p in gpu.profiles
        ],
        "configurations": [dict(c.blocks) for c in gpu.configurations],
        "maximal_layouts": [list(map(str, layout)) for layout in gpu.maximal_layouts()],
        "sources": [
            {
                "fields": list(s.fields), "evidence": s.evidence, "source": s.source,
                "driver": s.driver, "date": s.date,
            }
            for s in gpu.sources
        ],
    }  # fmt: skip


def _json_value(default: object) -> object:
    """An option's default in its own type, as far as JSON has it; a fraction becomes a text."""
    return default if default is None or isinstance(default, bool | int | float) else str(default)


def algorithms(context: typer.Context, output: Output = None, json: Json = False) -> int:
    """List the installed algorithms with their options."""
    from cms.plugin.registry import algorithm_details

    session = session_of(context)
    output = session.begin(output, json=json)
    with warnings.catch_warnings(record=True) as broken:
        warnings.simplefilter("always")
        found = algorithm_details()
    for warning in broken:
        session.warn(str(warning.message))
    document = {
        "algorithms": [
            {
                "name": one.name,
                "summary": one.summary,
                "distribution": one.distribution,
                "trusted": one.trusted,
                "options": {name: _json_value(default) for name, default in one.options.items()},
            }
            for one in found
        ]
    }
    if session.json:
        session.print_json(lambda: document)
    else:
        from cms.fleet.report.catalogue import algorithms_page

        session.print_page(algorithms_page(found))
    session.write(lambda: document, output)
    return Exit.ANSWER
