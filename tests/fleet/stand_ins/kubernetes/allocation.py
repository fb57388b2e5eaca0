"""Can the claims of an export be met, all at once and in whatever order they come?

Selectors are evaluated as CEL on the ResourceSlices of a node that is cut as the plan says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.nodes import Gpu, Json, Machine
from tests.fleet.stand_ins.kubernetes.schemas import VERSIONS, documents, schema_faults


def synthetic_slices(nodes: Mapping[str, Sequence[Gpu]]) -> str:
    """The ResourceSlices of nodes cut like this, as a text."""
    slices = [dra.resource_slice(Machine(name, list(gpus))) for name, gpus in nodes.items()]
    return "\n---\n".join(json.dumps(each, indent=1) for each in slices)


def _replicas(items: Sequence[Json]) -> Counter[str]:
    """How many claims the Deployments of a text will have made from each template."""
    counts: Counter[str] = Counter()
    for item in items:
        if item.get("kind") == "Deployment":
            for claim in item["spec"]["template"]["spec"].get("resourceClaims") or []:
                name = claim.get("resourceClaimTemplateName", "")
                counts[name] += item["spec"].get("replicas", 1)
    return counts


def claims(text: str, slices: str, counts: Mapping[str, int] | None = None) -> list[str]:
    """Can all claims be met at once, in whatever order they come?

    Without `counts` (claims by template) the replicas of the Deployments in the text count. Claims
    whose devices are in part the same are refused: who comes first could take what another needs.
    """
    items, said = documents(text)
    said += [f"{e['metadata']['name']}: {f}" for e in items for f in schema_faults(e, VERSIONS[-1])]
    if said:
        return said
    counts = _replicas(items) if counts is None else counts
    devices = dra.listed(documents(slices)[0])
    installed = [dra.device_class(kind) for kind in ("gpu", "mig")]
    given = [item for item in items if item["kind"] == "DeviceClass"]
    classes = {each["metadata"]["name"]: each for each in [*installed, *given]}
    wanted: Counter[frozenset[int]] = Counter()
    for item in items:
        if item["kind"] not in ("ResourceClaimTemplate", "ResourceClaim"):
            continue
        name = item["metadata"]["name"]
        spec = item["spec"]["spec"] if item["kind"] == "ResourceClaimTemplate" else item["spec"]
        number = 1 if item["kind"] == "ResourceClaim" else counts.get(name, 0)
        for request in spec["devices"]["requests"] if number else ():
            one = request["exactly"]
            try:
                met = frozenset(
                    n for n, each in enumerate(devices) if dra.takes(one, each, classes)
                )
            except dra.CelError as error:
                return [str(error)]
            if not met:
                said.append(f"{name}: no device meets {one}")
            wanted[met] += number * one.get("count", 1)
    every = Counter(device for met in wanted for device in met)
    if any(count > 1 for count in every.values()):
        said.append("claims of different templates want the same devices")
    found = sum(min(number, len(met)) for met, number in wanted.items())
    if found < wanted.total():
        said.append(f"{found} of {wanted.total()} devices can be had at once")
    return said
