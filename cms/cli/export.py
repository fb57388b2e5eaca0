"""``cms export``: a deployment as the files of the tools that bring it about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cms.fleet
from cms.errors import FileError
from cms.files import Source, read_source
from cms.files.documents import document_text
from cms.values.frozen import FrozenMap

from . import options
from .command import command
from .fleets import read_current, read_fleet
from .options import File, Texts
from .session import Exit, Session

if TYPE_CHECKING:
    from cms.fleet.deployment.export import ExportOptions

#: The deployment in a folder of `cms export`.
TARGET = "target.json"


@command()
def export(
    session: Session,
    target: Path,
    to: Texts = None,
    current: File = None,
    advertise: bool = False,
    max_age: str = "15min",
    output: File = None,
    force: bool = False,
) -> int:
    """Write a deployment as files for partitioning tools.

    -o has a folder for each tool, which says what it cannot express. With --current nothing foreign
    is cut anew. What the files say beside the deployment stands in [export] of fleet.toml.
    """
    names = dict.fromkeys(name.strip() for text in to or () for name in text.split(","))
    if output is not None and not names:
        raise options.usage_error("nothing is written without --to", "--output")
    if output is not None:
        from cms.fleet.deployment.written_folder import refuse_folder

        refuse_folder(output, force=force)
    with session.reading("writing for the tool"):
        from cms.fleet.deployment import deployment_to_json
        from cms.fleet.deployment import export as tools
        from cms.fleet.report.deployments import export_page

        if not names and not advertise:
            known = ", ".join(tools.TARGETS)
            raise options.usage_error(f"expected one or more of {known}", "--to")
        meant = read_fleet(target)
        today = None if current is None else read_current(session, current, max_age)
        how = export_options(session, today)
        exports = {name: tools.export(meant, name, how) for name in names}

    def document() -> dict[str, Any]:
        said: dict[str, Any] = {
            "targets": {
                name: options.attributes(each, "losses order executables files")
                for name, each in exports.items()
            }
        }
        if advertise:
            offers = tools.advertise(meant)
            said["advertised"] = [
                options.attributes(each, "node strategy resources") for each in offers
            ]
        return said

    where = "nothing is written without -o DIR" if output is None else f"written to {output}"
    session.show(document, lambda: export_page(exports, meant, where, offers=advertise), None)
    if exports:
        files = {
            f"{name}/{path}": text for name in exports for path, text in exports[name].files.items()
        }
        files[TARGET] = document_text(lambda: deployment_to_json(meant), TARGET)
        session.write_folder(files, output, force=force)
    return Exit.ANSWER


def export_options(session: Session, current: cms.fleet.Deployment | None = None) -> ExportOptions:
    """Return what the files of a tool say beside the deployment."""
    from cms.fleet.deployment.export import ExportOptions

    given = session.fleet.export
    told: dict[str, Any] = dict(given) | {
        "now": current,
        "merge": session.read_beside(given.merge, partial(read_source, holds="a mig-parted file")),
        "slurm_types": FrozenMap(given.slurm_types),
        "slurm_nodes": FrozenMap(given.slurm_nodes),
        "base": tuple(_manifests(session.folder / path for path in given.base)),
    }
    return ExportOptions(**told)


def _manifests(base: Iterable[Path]) -> Iterator[Source]:
    """Read the user's own manifests, in a folder all that YAML or JSON is in, by name."""
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
