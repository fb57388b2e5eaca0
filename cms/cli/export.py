"""``cms export``: a deployment as the files of the tools that bring it about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import FileError

from . import options
from .fleets import Force, MaxAge, read_fleet, refuse_stale_now
from .session import Exit, refuse_two_readers, session_of
from .verify import TARGET

if TYPE_CHECKING:
    from cms.files.source import Source
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.export import Export


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
_Now = Annotated[
    Path | None,
    typer.Option(
        "--now", metavar="now.json",
        help="What stands there today: only then may a script remove anything, and go back.",
    ),
]  # fmt: skip
Merge = Annotated[
    Path | None,
    typer.Option(
        "--merge", metavar="FILE", help="A mig-parted file whose configurations are kept."
    ),
]
_Base = Annotated[
    list[Path] | None,
    typer.Option(
        "--base", metavar="DIR",
        help="Your own Deployments, which are patched: a file or a folder of YAML; may be "
        "repeated.",
    ),
]  # fmt: skip
_Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Where pods are to run."),
]
_PinNodes = Annotated[bool, typer.Option("--pin-nodes", help="Tie pods to their nodes.")]
_PinGpus = Annotated[bool, typer.Option("--pin-gpus", help="With DRA: tie pods to their GPUs.")]
_Advertise = Annotated[
    bool,
    typer.Option("--advertise", help="List what each node will offer: resource names and counts."),
]
OperatorNamespace = Annotated[
    str,
    typer.Option("--operator-namespace", metavar="NAME", help="Where the GPU Operator runs."),
]
ConfigMap = Annotated[
    str, typer.Option("--config-map", metavar="NAME", help="The ConfigMap that is made for it.")
]
SlurmTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm-type", metavar="KEY=TYPE",
        help="What Slurm's types of a GPU begin with: a100-80gb=a100; may be repeated.",
    ),
]  # fmt: skip
SlurmNodes = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm-node", metavar="NODE=TEXT",
        help="The rest of a node's line: 'node-a=CPUs=64 RealMemory=512000'; may be repeated.",
    ),
]  # fmt: skip


def export(
    context: typer.Context,
    target: _File,
    to: _To = None,
    output: _Folder = None,
    now: _Now = None,
    merge: Merge = None,
    base: _Base = None,
    namespace: _Namespace = None,
    pin_nodes: _PinNodes = False,
    pin_gpus: _PinGpus = False,
    advertise: _Advertise = False,
    operator_namespace: OperatorNamespace = "gpu-operator",
    config_map: ConfigMap = "cms-mig-parted-config",
    slurm_type: SlurmTypes = None,
    slurm_node: SlurmNodes = None,
    max_age: MaxAge = "15min",
    force: Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write a deployment as files for partitioning tools.

    Each says what it cannot express.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    refuse_two_readers((target, "target.json"), (now, "--now"), (merge, "--merge"))
    names = _names(to)
    if not names and not advertise:
        raise options.usage_error(f"expected one or more of {', '.join(_targets())}", "--to")
    if output is not None:
        from cms.fleet.deployment.written_folder import refuse_folder

        refuse_folder(output, force=force)
    with session.reading("writing for the tool"):
        from cms.files.source import read_source
        from cms.fleet.deployment.export import ExportOptions
        from cms.fleet.deployment.export import export as written
        from cms.values.frozen import FrozenMap

        meant = read_fleet(target)
        today = None if now is None else read_fleet(now)
        if today is not None:
            refuse_stale_now(session, today, max_age)
        how = ExportOptions(
            now=today,
            merge=None if merge is None else read_source(merge, holds="a mig-parted file"),
            operator_namespace=operator_namespace,
            config_map=config_map,
            slurm_types=FrozenMap(options.pairs(slurm_type, "--slurm-type", "a100-80gb=a100")),
            slurm_nodes=FrozenMap(options.pairs(slurm_node, "--slurm-node", "node-a=CPUs=64")),
            base=tuple(_manifests(base)),
            namespace=namespace,
            pin_nodes=pin_nodes,
            pin_gpus=pin_gpus,
        )
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


def _manifests(base: list[Path] | None) -> Iterator[Source]:
    """Read the files of ``--base``, in a folder all that YAML or JSON is in, by name."""
    from cms.files.source import read_source

    for path in base or ():
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
