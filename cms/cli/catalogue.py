"""``cms gpus`` and ``cms algorithms``: what is there to choose from."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, Output
from .session import Exit, session_of

if TYPE_CHECKING:
    from cms.fleet.hardware import Gpu

_Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A key, a product name, or your own device file."),
]


def gpus(
    context: typer.Context, name: _Name = None, output: Output = None, json: Json = False
) -> int:
    """List the GPUs of the catalogue, or show one: its profiles, placements and configurations."""
    from cms.fleet.hardware import gpus as catalogue

    session = session_of(context)
    session.begin(json=json)
    if name is None:
        found = catalogue()
        document: dict[str, Any] = {"gpus": [_gpu_to_json(gpu) for gpu in found]}
    else:
        shown = find_gpu(name)
        document = {"gpus": [_gpu_to_json(shown)]}
    if json:
        session.print_json(document)
    else:
        from cms.fleet.report.catalogue import gpu_report, gpus_report

        session.print(*(gpus_report(found) if name is None else gpu_report(shown)))
    session.write(document, output)
    return Exit.ANSWER


def find_gpu(name: str) -> Gpu:
    """Return a GPU by key or product name, or read it from a user's own device file."""
    from cms.fleet.hardware import gpu, read_gpu

    return read_gpu(name) if name.lower().endswith((".yaml", ".yml", ".json")) else gpu(name)


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


def algorithms(context: typer.Context, output: Output = None, json: Json = False) -> int:
    """List the algorithms that are installed, with their options."""
    from cms.registry import algorithm_details

    session = session_of(context)
    session.begin(json=json)
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
                "options": {name: str(default) for name, default in one.options.items()},
            }
            for one in found
        ]
    }
    if json:
        session.print_json(document)
    else:
        from cms.fleet.report.catalogue import algorithms_report

        session.print(*algorithms_report(found))
    session.write(document, output)
    return Exit.ANSWER
