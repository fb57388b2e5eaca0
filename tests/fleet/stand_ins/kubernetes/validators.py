"""Is an exported text what its readers take? Each function takes texts and returns messages.

Written from the documents of the formats, for files written by somebody else. No message means
that nothing was found, never that the text does what it should: that is for the stand-ins.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from tests.fleet.stand_ins.kubernetes.allocation import claims, synthetic_slices
from tests.fleet.stand_ins.kubernetes.nodes import Gpu, Machine
from tests.fleet.stand_ins.kubernetes.rules import label_value, rule_faults
from tests.fleet.stand_ins.kubernetes.schemas import VERSIONS, documents, schema_faults
from tests.fleet.stand_ins.mig_parted_file import Entry, Failure, entry_of, specification
from tests.fleet.stand_ins.placement import MODELS, place, trouble

Nodes = Mapping[str, Sequence[Gpu]]

__all__ = [
    "claims", "gpu_operator", "manifests", "mig_parted_config", "nvidia_smi", "slurm",
    "synthetic_slices",
]  # fmt: skip


def manifests(text: str, versions: Sequence[str] = VERSIONS) -> list[str]:
    """Objects of Kubernetes: the strict schema of each version, names, labels and quantities."""
    items, said = documents(text)
    for item in items:
        name = f"{item.get('kind')}/{(item.get('metadata') or {}).get('name')}"
        found = [fault for version in versions for fault in schema_faults(item, version)]
        said += [f"{name}: {fault}" for fault in [*found, *rule_faults(item)]]
    return said


def mig_parted_config(text: str, gpus: Mapping[str, Sequence[str]] | Sequence[str]) -> list[str]:
    """A configuration file of mig-parted, for nodes with these models by index."""
    try:
        return _traps(specification(text), gpus)
    except Failure as failure:
        return [str(failure)]


def _traps(
    configs: Mapping[str, Sequence[Entry]], gpus: Mapping[str, Sequence[str]] | Sequence[str]
) -> list[str]:
    """Whatever goes wrong later: zero counts, indices left out or twice, counts nothing holds.

    `gpus` are the models of a node's GPUs by index, the same for every configuration or by name.
    """
    said = []
    for name, entries in configs.items():
        if not label_value(name) or not name:
            said.append(f"{name!r} cannot be a label's value (at most 63 of A-Za-z0-9_.-)")
        models = gpus.get(name, ()) if isinstance(gpus, Mapping) else gpus
        for index, model in enumerate(models):
            device_id = MODELS[model].device_id
            listed = sum(entry.matches(index, device_id) for entry in entries)
            if listed != 1:
                said.append(f"{name}: GPU {index} is listed {listed} times")
            entry = entry_of(entries, index, device_id)
            if entry and place(model, entry.wanted or {}) is None:
                said.append(f"{name}: no layout of {model} holds {entry.wanted}")
        for entry in entries:
            for index in () if entry.devices == "all" else entry.devices:
                if models and index >= len(models):
                    said.append(f"{name}: there is no GPU {index}")
            counts = (entry.wanted or {}).items()
            said += [f"{name}: {profile} has count 0" for profile, count in counts if not count]
    return said


def gpu_operator(text: str, script: str, nodes: Mapping[str, Sequence[str]]) -> list[str]:
    """The ConfigMap and the `kubectl label` lines that choose from it, for nodes with these models.

    A configuration is checked for the node that is labelled with it.
    """
    items, said = documents(text)
    maps = [item for item in items if item.get("kind") == "ConfigMap"]
    if len(maps) != 1:
        return [*said, f"{len(maps)} ConfigMaps instead of one"]
    said += manifests(text)
    data = maps[0].get("data") or {}
    if list(data) != ["config.yaml"]:
        return [*said, f"the key must be config.yaml, not {', '.join(data) or 'missing'}"]
    if not (maps[0].get("metadata") or {}).get("namespace"):
        said.append("the ConfigMap has no namespace")
    try:
        configs = specification(data["config.yaml"])
    except Failure as failure:
        return [*said, str(failure)]
    if "all-disabled" not in configs:
        said.append("all-disabled is missing: this map replaces the generated one")
    chosen: dict[str, Sequence[str]] = {}
    for line in _commands(script, "kubectl label"):
        words = line.split()
        named = re.search(r"\bnodes?[ /](\S+)", line)
        for word in words:
            key, equal, value = word.partition("=")
            if key == "nvidia.com/mig.config" and equal and "$" not in value:
                if not label_value(value):
                    said.append(f"{value!r} is not a label's value (at most 63 characters)")
                if value not in configs:
                    said.append(f"{value!r} is not in the ConfigMap")
                if "--overwrite" not in words:
                    said.append(f"no --overwrite: {line}")
                if named and named[1] in nodes:
                    chosen[value] = nodes[named[1]]
    return said + _traps(configs, chosen)


def _commands(script: str, command: str) -> Iterator[str]:
    """The commands of a script that begin so, without comments and continuation lines."""
    whole = re.sub(r"\\\n\s*", " ", script)
    for line in whole.splitlines():
        if not line.lstrip().startswith("#"):
            yield from re.findall(rf"{re.escape(command)}\b[^;&|#]*", line)


_GRES = {
    "name", "type", "file", "multiplefiles", "count", "autodetect", "nodename", "cores", "links",
    "flags",
}  # fmt: skip


def slurm(gres: str, conf: str, nodes: Nodes) -> list[str]:
    """gres.conf and the lines of slurm.conf, for nodes that are cut like this."""
    said = []
    lines = [line.partition("#")[0].strip() for line in gres.splitlines()]
    for line in filter(None, lines):
        fields = dict(word.partition("=")[::2] for word in line.split())
        keys = {key.lower() for key in fields}
        said += [f"gres.conf: unknown key {key}" for key in fields if key.lower() not in _GRES]
        if "autodetect" not in keys and not keys & {"file", "multiplefiles", "count"}:
            said.append(f"gres.conf: neither AutoDetect nor files: {line}")
    words = {}
    types, tres = set[str](), set[str]()
    for line in conf.splitlines():
        fields = dict(word.partition("=")[::2] for word in line.partition("#")[0].split())
        types |= set(filter(None, fields.get("GresTypes", "").split(",")))
        tres |= set(filter(None, fields.get("AccountingStorageTRES", "").split(",")))
        if "NodeName" in fields:
            words[fields["NodeName"]] = fields.get("Gres", "")
    if any(each.startswith("gres/") for each in tres):
        said.append("slurm.conf: with TRES of gres slurmctld starts beside slurmdbd alone")
    if not types & {"gpu"}:
        said.append("slurm.conf: GresTypes without gpu")
    for name, gpus in nodes.items():
        detected = [_detected(gpus[d.gpu], d.profile) for d in Machine(name, list(gpus)).devices()]
        for item in filter(None, words.get(name, "").split(",")):
            found = re.fullmatch(r"(gpu)(?::([^:]+))?:(\d+)|mps:\d+00", item)
            if found is None:
                said.append(f"{name}: {item!r} is neither gpu:type:count nor hundreds of mps")
                continue
            kind, count = found[2] or "", int(found[3] or 0)
            if found[1] is None:
                if "mps" not in types:
                    said.append("slurm.conf: GresTypes without mps")
                continue
            whole = [each for each in detected if each.endswith("-")]
            fits = [each for each in detected if each.endswith(kind) or f"{kind}-" in each]
            fits = fits if kind else whole
            if count == 0 or len(fits) != count:
                said.append(f"{name}: {item} beside {len(fits)} devices of that type: {detected}")
            detected = [each for each in detected if each not in fits]
        if detected:
            said.append(f"{name}: not in Gres: {', '.join(detected)}")
    return said


def _detected(gpu: Gpu, profile: str | None) -> str:
    """As NVML's detection names a device: nvidia_a100_3g.20gb, nvidia_a100-sxm4-80gb."""
    product = gpu.card.product.lower().removeprefix("nvidia ").replace(" ", "-")
    return f"nvidia_{product.partition('-')[0]}_{profile}" if profile else f"nvidia_{product}-"


def nvidia_smi(script: str, gpus: Sequence[str]) -> list[str]:
    """Command lines that create GPU instances: each with a start, each legal, together too."""
    said = []
    for line in _commands(script, "nvidia-smi mig"):
        words = shlex.split(line.replace("$", "\\$"))
        options = {word: words[place + 1 :] for place, word in enumerate(words)}
        if options.get("-cgi"):
            said += [f"{line.strip()}: {fault}" for fault in _created(options, gpus)]
        for kind in ("-dgi", "-dci"):
            if kind in words and (options.get("-gi") or ["$"])[0].isdigit():
                said.append(f"{line.strip()}: an id is written down, not looked up")
    return said


def _created(options: Mapping[str, Sequence[str]], gpus: Sequence[str]) -> list[str]:
    index = (options.get("-i") or [""])[0]
    items = [item.rpartition(":") for item in options["-cgi"][0].split(",")]
    said = [f"{item[2]} has no start" for item in items if not item[1]]
    if "$" in options["-cgi"][0] or "$" in index:
        return []  # what a variable will hold shows when the script runs
    if not index.isdigit() or int(index) >= len(gpus):
        return [*said, f"-i {index!r} names none of {len(gpus)} GPUs"]
    if said:
        return said
    model = MODELS[gpus[int(index)]]
    known = model.by_name | {str(each.number): each for each in model.profiles}
    if bad := [start for _, _, start in items if not start.isdigit()]:
        return [f"{bad[0]!r} is not a start"]
    if bad := [name for name, _, _ in items if name not in known]:
        return [f"{model.product} has no profile {bad[0]}"]
    found = trouble(model, [(known[name], int(start)) for name, _, start in items])
    return [found] if found else []
