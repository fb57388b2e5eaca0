"""From deployments to stand-ins and back: nodes made as they say, and observed by their texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cms.fleet.deployment import Deployment, Mode
from cms.fleet.deployment.export import Export
from cms.fleet.deployment.observation.sources import SourceFile, observe
from tests.fleet.stand_ins.machines import StandInNode


def stand_ins(folder: Path, deployment: Deployment, **options: object) -> dict[str, StandInNode]:
    """A stand-in for each node, with its instances already on it."""
    made = {}
    for number, node in enumerate(deployment.nodes):
        modes = [card.mode is Mode.MIG for card in node.gpus]
        keys = [card.gpu.key for card in node.gpus]
        made[node.name] = StandInNode(
            folder / node.name,
            keys,
            mig=modes,
            **{"seed": number, **options},  # type: ignore[arg-type]
        )
        for card in node.gpus:
            if card.mode is Mode.MIG:
                made[node.name].put(card.index, card.layout)
    return made


def observed(
    nodes: Mapping[str, StandInNode],
    known: Deployment | None = None,
    exports: Iterable[SourceFile] = (),
) -> Deployment:
    """What the nodes' own texts, and what mig-parted exported of them, say."""
    given = []
    for name, node in nodes.items():
        texts = [node.smi(each).text for each in ("mig -lgi", "-q -x", "-L")]
        for number, text in enumerate(texts):
            path = node.folder / f"told-{number}.txt"
            path.write_text(text, encoding="utf-8")
            given.append(SourceFile(str(path), name))
    return observe([*given, *exports], known=known).deployment


def write(folder: Path, export: Export) -> None:
    for path, text in export.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def changes(node: StandInNode) -> list[str]:
    """Every command so far that was to change something."""
    reads = (" -lgi", " -lci", " -L", " --query-gpu", " -q -x")
    return [line for line in node.log if not any(word in line for word in reads)]
