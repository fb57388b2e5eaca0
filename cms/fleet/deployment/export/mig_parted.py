"""For mig-parted, also that of the GPU Operator: configurations by counts, and those of nodes."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Collection, Iterable, Mapping

from ....errors import FileError, InvalidProblem
from ....files.source import Source, quoted
from ....values.frozen import FrozenMap
from ..instance import Instance
from ..model import Deployment, FleetGpu, FleetNode, doubtful, in_doubt
from ..observation.mig_parted import ALL_DISABLED, Cut, read_configs
from .export import Export, ExportOptions, assemble, find_current, remove_head, render, require_word

_MAP, _LABELS = "configmap.yaml", "labels.sh"
_DNS = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)


def cut_of(card: FleetGpu) -> Cut:
    """Return how a GPU is cut."""
    return FrozenMap(card.counts) if card.is_cut else None


def name_of(cuts: Mapping[int, Cut]) -> str:
    """Name the way in which a node is cut; nodes that are cut alike have one name."""
    said = [(index, None if cut is None else dict(cut)) for index, cut in sorted(cuts.items())]
    return f"cms-{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]}"


def configs_of(layouts: Iterable[Mapping[int, Cut]]) -> dict[str, Mapping[int, Cut]]:
    """Return nodes' layouts by name, each once; refuse two that differ with one name."""
    found: dict[str, Mapping[int, Cut]] = {}
    for cuts in layouts:
        known = found.setdefault(name := name_of(cuts), cuts)
        if dict(known) != dict(cuts):
            raise InvalidProblem(
                f"the layouts {dict(known)} and {dict(cuts)} of nodes both have the name {name}; "
                "expected a name for each: export the nodes of one of them by themselves"
            )
    return found


def text_of(configs: Mapping[str, Mapping[int, Cut]]) -> str:
    """Write configurations, given as the cut of each index, and ``all-disabled``."""
    entries = {}
    for name, cuts in sorted(configs.items()):
        alike: dict[str | None, list[int]] = {}
        for index, cut in sorted(cuts.items()):
            alike.setdefault(None if cut is None else json.dumps(dict(cut)), []).append(index)
        entries[name] = list(alike.items())
    return render("mig-parted.yaml", configs=list(entries.items()))


def merged(source: Source, configs: Mapping[str, Mapping[int, Cut]]) -> str:
    """Write configurations below those of an existing file, whose comments are kept.

    What an earlier export put at its head goes. Refuses a file that has one of the names for
    something else.
    """
    from ruamel.yaml import YAML  # as in hardware.yaml_text: only for users' YAML

    source = Source(source.name, remove_head(source.text))
    text = text_of(configs)
    theirs, ours = read_configs(source), read_configs(Source("ours.yaml", text))
    for name in (ours.keys() & theirs.keys()) - {ALL_DISABLED}:
        if {*theirs[name]} != {*ours[name]}:
            raise FileError(
                source.name,
                f"there is a configuration {quoted(name)} of another content already",
                fix="rename it, or export without it",
            )
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    indent, dash = _indents(source.text)
    yaml.indent(mapping=indent, sequence=dash - indent + 2, offset=dash - indent)
    both = next(filter(None, yaml.load_all(source.text)))  # ``---`` may begin an empty document
    for name, entries in yaml.load(text)["mig-configs"].items():
        both["mig-configs"].setdefault(name, entries)
    written = io.StringIO()
    yaml.dump(both, written)
    return written.getvalue()


def _indents(text: str) -> tuple[int, int]:
    """Return how far a file indents its first configuration, and the dash of its first entry."""
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    starts = [at for at, line in enumerate(lines) if line.startswith("mig-configs:")]
    below = lines[starts[0] + 1 :] if starts else []
    found = [len(line) - len(line.lstrip()) for line in below]
    entries = (at for at, line in zip(found, below, strict=True) if line[at] == "-")
    return (found[0], next(entries, found[0] + 2)) if found and found[0] else (2, 4)


def _node_cuts(deployment: Deployment) -> dict[str, dict[int, Cut]]:
    """Return how each node is cut."""
    nodes = (node for node in deployment.nodes if node.gpus)
    return {node.name: {card.index: cut_of(card) for card in node.gpus} for node in nodes}


def _configs_text(deployment: Deployment, options: ExportOptions) -> str:
    """Write the configurations of all nodes, and those of today, so that there is a way back."""
    sides = [deployment, *([] if options.now is None else [options.now])]
    configs = configs_of(cuts for side in sides for cuts in _node_cuts(side).values())
    return text_of(configs) if options.merge is None else merged(options.merge, configs)


def _names(deployment: Deployment) -> dict[str, str]:
    """Return which configuration each node takes."""
    return {node: name_of(cuts) for node, cuts in _node_cuts(deployment).items()}


def refuse_doubtful(card: FleetGpu, doubts: Mapping[str, str], gone: Collection[Instance]) -> None:
    """Refuse to delete what may be foreign; see `doubtful` for `doubts`."""
    for each in in_doubt(card, doubts):
        if each in gone:
            place = card.name if each.start is None else f"{card.name}:{each.start}"
            raise InvalidProblem(
                f"{card.name} has {each.place}, which would be deleted and may be what "
                f"{doubts[each.profile]} holds, since the device plug-in does not tell; expected "
                f"that nobody holds it: cms observe ... --reclaim {place}"
            )


def refuse_foreign(deployment: Deployment, now: Deployment | None) -> None:
    """Refuse to have a GPU cut anew that has, or may have, a foreign instance."""
    today = find_current(deployment, now) or {}
    for node in deployment.nodes if today else ():
        doubts = doubtful(FleetNode(node.name, tuple(today[card.name] for card in node.gpus)))
        for card in node.gpus:
            has = today[card.name]
            if cut_of(card) == cut_of(has):
                continue
            if has.foreign:
                raise InvalidProblem(
                    f"{card.name} has {has.foreign[0]}, which is not managed, and would be cut "
                    "anew; have cms apply change it by nvidia-smi, or leave its counts alone"
                )
            refuse_doubtful(has, doubts, has.instances)


def node_files(
    deployment: Deployment, options: ExportOptions
) -> tuple[dict[str, str], dict[str, str] | None]:
    """Return ``mig-parted.yaml`` and ``nodes.csv``, and which configuration nodes take today."""
    refuse_foreign(deployment, options.now)
    rows = (f"{node},{name}\n" for node, name in _names(deployment).items())
    files = {
        "mig-parted.yaml": _configs_text(deployment, options),
        "nodes.csv": "node,config\n" + "".join(rows),
    }
    return files, None if options.now is None else _names(options.now)


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``mig-parted.yaml`` and ``nodes.csv``."""
    files, before = node_files(deployment, options)
    return assemble("mig-parted", deployment, options, files, before=before)


def write_for_operator(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``configmap.yaml`` and ``labels.sh``."""
    names = [node.name for node in deployment.nodes]
    for name in (*names, options.operator_namespace, options.config_map):
        kubernetes_name(name)
    refuse_foreign(deployment, options.now)
    label = "kubectl label --overwrite node {} nvidia.com/mig.config={}\n"
    files = {
        _MAP: config_map(_configs_text(deployment, options), options),
        _LABELS: "set -eu\n" + "".join(label.format(*each) for each in _names(deployment).items()),
    }
    patch = (
        f'{{"spec": {{"migManager": {{"config": {{"name": "{options.config_map}"}}}}, '
        '"mig": {"strategy": "mixed"}}}'
    )
    once = (
        f"`kubectl apply -f {_MAP}`",
        f"`kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p '{patch}'`: "
        "the Operator takes the map in place of its own, wholly.",
    )
    return assemble("gpu-operator", deployment, options, files, once=once)


def kubernetes_name(name: str) -> str:
    """Return a name that Kubernetes takes; else raise InvalidProblem."""
    if not _DNS.fullmatch(name):
        raise InvalidProblem(
            f"{name!r} is no name of Kubernetes; expected lower-case letters, digits, . and -"
        )
    return require_word(name, "the name")


def config_map(configs: str, options: ExportOptions) -> str:
    """Write the ConfigMap that holds a mig-parted file."""
    return render("configmap.yaml", configs=configs.rstrip("\n"), options=options)
