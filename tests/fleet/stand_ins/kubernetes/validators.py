"""Is an exported text what its readers take? Each function takes texts and returns messages.

Written from the documents of the formats. No message means that nothing was found, never that the
text does what it should: that is for the other stand-ins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.fleet.stand_ins.kubernetes.nodes import Gpu, Machine
from tests.fleet.stand_ins.kubernetes.rules import rule_faults
from tests.fleet.stand_ins.kubernetes.schemas import VERSIONS, documents, schema_faults


def manifests(text: str) -> list[str]:
    """Objects of Kubernetes: the strict schema of each version, names, labels and quantities."""
    items, said = documents(text)
    for item in items:
        name = f"{item.get('kind')}/{(item.get('metadata') or {}).get('name')}"
        found = [fault for version in VERSIONS for fault in schema_faults(item, version)]
        said += [f"{name}: {fault}" for fault in [*found, *rule_faults(item)]]
    return said


_GRES = {
    "name", "type", "file", "multiplefiles", "count", "autodetect", "nodename", "cores", "links",
    "flags",
}  # fmt: skip


def slurm(gres: str, conf: str, nodes: Mapping[str, Sequence[Gpu]]) -> list[str]:
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
