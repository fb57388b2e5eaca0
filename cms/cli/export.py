"""``cms export``: a deployment as the files of the tools that bring it about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import FileError

from . import options
from .fleet_file import FleetFile, with_fleet_file
from .fleets import Current, Force, MaxAge, read_current, read_fleet
from .session import Exit, Session, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.files.source import Source
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.export import Export, ExportOptions

#: The deployment in a folder of `cms export`.
TARGET = "target.json"


def _targets() -> Iterable[str]:
    from cms.fleet.deployment.export import TARGETS

    return TARGETS


_File = Annotated[
    Path,
    typer.Argument(metavar="target.json", help="What is to be there; '-' is standard input."),
]
_To = Annotated[
    list[str] | None,
    typer.Option(
        "--to", "-t", metavar="TOOL,...",
        help="mig-parted, gpu-operator, nvidia-smi, slurm, kubernetes, dra; may be repeated.",
        autocompletion=options.offering(_targets),
    ),
]  # fmt: skip
_Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR",
        help="The folder to write, one folder in it for each tool; '-' prints JSON instead.",
    ),
]  # fmt: skip
_Advertise = Annotated[
    bool,
    typer.Option("--advertise", help="List what each node will offer: resource names and counts."),
]


@with_fleet_file
def export(
    context: typer.Context,
    target: _File,
    to: _To = None,
    current: Current = None,
    fleet: FleetFile = None,
    advertise: _Advertise = False,
    max_age: MaxAge = "15min",
    output: _Folder = None,
    force: Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write a deployment as files for partitioning tools.

    Each says what it cannot express. With --current a script may also remove what stands there
    today, and go back. What the files say beside the deployment stands in [export] of fleet.toml.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    refuse_two_readers((target, "target.json"), (current, "--current"))
    names = _names(to)
    if not names and not advertise:
        raise options.usage_error(f"expected one or more of {', '.join(_targets())}", "--to")
    if output is not None and not names:
        raise options.usage_error("nothing is written without --to", "--output")
    if output is not None:
        from cms.fleet.deployment.written_folder import refuse_folder

        refuse_folder(output, force=force)
    with session.reading("writing for the tool"):
        from cms.fleet.deployment.export import export as written

        meant = read_fleet(target)
        today = None if current is None else read_current(session, current, max_age)
        how = export_options(session, today)
        exports = {name: written(meant, name, how) for name in names}

    def document() -> dict[str, Any]:
        return _document(exports, meant if advertise else None)

    if session.json:
        session.print_json(document)
    elif not quiet:
        from cms.fleet.report.deployments import export_page

        where = "nothing is written without -o DIR" if output is None else f"written to {output}"
        session.print_page(export_page(exports, meant, where, offers=advertise))
    if exports:
        session.write_folder(_files(exports, meant), output, force=force)
    return Exit.ANSWER


def export_options(session: Session, current: Deployment | None = None) -> ExportOptions:
    """Return what the files of a tool say beside the deployment."""
    from cms.files.source import read_source
    from cms.fleet.deployment.export import ExportOptions
    from cms.values.frozen import FrozenMap

    given = session.fleet.export
    merge = session.beside(given.merge)
    return ExportOptions(
        now=current,
        merge=None if merge is None else read_source(merge, holds="a mig-parted file"),
        operator_namespace=given.operator_namespace,
        config_map=given.config_map,
        slurm_types=FrozenMap(given.slurm_types),
        slurm_nodes=FrozenMap(given.slurm_nodes),
        base=tuple(_manifests(session.folder / path for path in given.base)),
        namespace=given.namespace,
        pin_nodes=given.pin_nodes,
        pin_gpus=given.pin_gpus,
    )


def _names(to: list[str] | None) -> list[str]:
    """The tools, each once, in the order in which they are given."""
    from cms.values.names import nearest

    known = list(_targets())
    names = [name.strip() for text in to or () for name in text.split(",")]
    for name in names:
        if name not in known:
            raise options.usage_error(
                f"{name!r} is unknown{nearest(name, known)}; expected one of {', '.join(known)}",
                "--to",
            )
    return list(dict.fromkeys(names))


def _manifests(base: Iterable[Path]) -> Iterator[Source]:
    """Read the user's own manifests, in a folder all that YAML or JSON is in, by name."""
    from cms.files.source import read_source

    for path in base:
        if not path.is_dir():
            yield read_source(path, holds="a Deployment")
            continue
        found = sorted(
            each for each in path.iterdir() if each.suffix.lower() in (".yaml", ".yml", ".json")
        )
        if not found:
            raise FileError(path, "this folder holds no manifest", expected="*.yaml or *.json")
        for each in found:
            if each.stem != "kustomization":
                yield read_source(each, holds="a Deployment")


def _files(exports: Mapping[str, Export], meant: Deployment) -> dict[str, str]:
    from cms.files.documents import document_text
    from cms.fleet.deployment import deployment_to_json

    files = {
        f"{name}/{path}": text
        for name, export in exports.items()
        for path, text in export.files.items()
    }
    return {**files, TARGET: document_text(lambda: deployment_to_json(meant), TARGET)}


def _document(exports: Mapping[str, Export], offered: Deployment | None) -> dict[str, Any]:
    from cms.fleet.deployment.export import advertise

    document: dict[str, Any] = {
        "targets": {
            name: {
                "losses": list(export.losses),
                "order": list(export.order),
                "executables": list(export.executables),
                "files": dict(export.files),
            }
            for name, export in exports.items()
        }
    }
    if offered is not None:
        document["advertised"] = [
            {"node": each.node, "strategy": each.strategy, "resources": dict(each.resources)}
            for each in advertise(offered)
        ]
    return document
