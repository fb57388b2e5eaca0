"""The objects of a cluster, and the pods that hold GPUs: through the device plugin, or by claims.

What a device plugin gives a pod is known by profile and node; what a claim gives it, exactly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....files.parsed import Parsed
from ..instance import WHOLE
from ..kubernetes_objects import ClaimObject, NodeObject, PodObject, SliceObject, read_object
from ..labels import HOSTNAME, POINT_LABEL, SERVICE_LABEL
from .dra import Device, results_of, where
from .facts import PodFacts

__all__ = [
    "ASK", "PREFIX", "Cluster", "PodHolding", "count_profiles", "gather", "held_in", "profile_of",
]  # fmt: skip

ASK = "kubectl get nodes,pods,deployments,resourceslices,resourceclaims -A -o json"
PREFIX = "nvidia.com/"
_MIG = re.compile(r"((?:\d+c\.)?\d+g\.\d+gb(?:-[a-z.]+)?)(?:\.([a-z.]+))?", re.ASCII)


@dataclass
class Cluster:
    """The objects of all documents by name, each with its place."""

    nodes: dict[str, tuple[Parsed, NodeObject]] = field(default_factory=dict)
    pods: dict[str, tuple[Parsed, PodObject]] = field(default_factory=dict)
    slices: dict[str, tuple[Parsed, SliceObject]] = field(default_factory=dict)
    claims: dict[str, tuple[Parsed, ClaimObject]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)  # kinds, also those of which there is none


class PodHolding(NamedTuple):
    """What a pod holds, and where it says so."""

    node: str
    pod: PodFacts
    devices: tuple[Device, ...]
    at: Parsed


def profile_of_resource(resource: str, single: str | None) -> str | None:
    """Return the profile of a resource, or WHOLE; None if it is of no GPU.

    `single`: The profile that ``nvidia.com/gpu`` stands for on a node, if not for a GPU.
    """
    if resource in ("nvidia.com/gpu", "nvidia.com/gpu.shared"):
        return single or WHOLE
    _, is_part, written = resource.partition(f"{PREFIX}mig-")
    return profile_of(written) if is_part else None


def count_profiles(resources: Mapping[str, int], single: str | None) -> Counter[str]:
    """Count what the resources of a node stand for, by profile."""
    found: Counter[str] = Counter()
    for resource, count in resources.items():
        if (profile := profile_of_resource(resource, single)) is not None:
            found[profile] += count
    return found


def profile_of(written: str) -> str | None:
    """Return a profile from a name that may have no plus: ``1g.10gb+me`` of ``1g.10gb.me``."""
    match = _MIG.fullmatch(written)
    if match is None:
        return None
    return match[1] if match[2] is None else f"{match[1]}+{match[2]}"


def gather(documents: Sequence[Parsed]) -> Cluster:
    """Read the objects of all documents."""
    cluster = Cluster()
    kinds: dict[str, tuple[Any, dict[str, tuple[Parsed, Any]]]] = {
        "Node": (NodeObject, cluster.nodes), "Pod": (PodObject, cluster.pods),
        "ResourceSlice": (SliceObject, cluster.slices),
        "ResourceClaim": (ClaimObject, cluster.claims),
    }  # fmt: skip
    for document in documents:
        outer = _kind(document)
        is_list = outer.endswith("List")
        cluster.listed.add(outer.removesuffix("List"))
        if is_list and "items" not in document.value:
            raise document.error(f'{document.label()} has no "items"', expected='the key "items"')
        items = [document]
        if is_list:
            listed = document.value["items"]
            if not isinstance(listed, list | tuple):
                raise document.wrong("an array", "items")
            items = [document.at("items", index) for index in range(len(listed))]
        for item in items:
            if not isinstance(item.value, dict):
                raise item.wrong("an object of Kubernetes")
            kind = _kind(item) if "kind" in item.value else outer.removesuffix("List")
            if kind not in kinds:
                continue
            cluster.listed.add(kind)
            model, known = kinds[kind]
            one: Any = read_object(item, model)
            before, _ = known.setdefault(one.full_name, (item, one))
            if before is not item:
                raise item.error(
                    f"{item.label()}: {kind} {one.full_name!r} is told of twice, also in "
                    f"{where(before)}",
                    expected="what one cluster said at one time",
                )
    return cluster


def _kind(item: Parsed) -> str:
    if not isinstance(kind := item.at("kind").value, str):
        raise item.wrong("a text", "kind")
    return kind


# --- pods -----------------------------------------------------------------------------------------


def held_in(
    cluster: Cluster,
    devices: Mapping[tuple[str, str], Device],
    singles: Mapping[str, str | None],
    service_label: str | None,
) -> Iterator[PodHolding]:
    """Yield the pods that hold GPUs, or parts of them."""
    given = {name: tuple(results_of(claim, devices)) for name, claim in cluster.claims.items()}
    users: set[str] = set()
    are_told = "ResourceClaim" in cluster.listed
    for name, (at, pod) in cluster.pods.items():
        node = pod.node_name
        if not node or pod.phase in ("Succeeded", "Failed"):
            continue
        own: list[Device] = []
        named = [each.get("resourceClaimName") for each in (*pod.claims, *pod.made_claims)]
        for each in filter(None, (*named, pod.extended_claim)):
            claim = f"{pod.namespace}/{each}"
            if claim not in given:
                raise at.error(
                    f"{at.label()}: pod {name} holds the claim {claim!r}, which is not told of",
                    expected="claims of the same time" if are_told else ASK,
                )
            users.add(claim)
            own += given[claim]
        resources = _resources(pod)
        if node not in singles:
            if own or any(profile_of_resource(each, None) for each in resources):
                at = at.at("spec").at("nodeName")
                raise at.error(
                    f"{at.label()}: pod {name} holds GPUs of node {node!r}, which is not told of",
                    expected=ASK,
                )
            continue
        for device in own:
            if device.node != node:
                raise at.error(
                    f"{at.label()}: pod {name} runs on node {node!r}, and holds a device of "
                    f"{device.node!r} ({device.where})",
                    expected="objects of one time",
                )
        places = tuple(device.held for device in own)
        profiles = (
            *count_profiles(resources, singles[node]).elements(),
            *(profile for _, profile, _ in places),
        )
        if profiles:
            service = pod.labels.get(SERVICE_LABEL, pod.labels.get(service_label or SERVICE_LABEL))
            facts = PodFacts(
                name, where(at), profiles, service, pod.labels.get(POINT_LABEL), pod.state, places,
                HOSTNAME in pod.node_selector,
            )  # fmt: skip
            yield PodHolding(node, facts, tuple(own), at)
    yield from _others(cluster, given, users)


def _resources(pod: PodObject) -> dict[str, int]:
    """Count what a pod holds through the device plugin: containers together, or one before them."""
    served = {each.get("resourceName") for each in pod.extended_resources}
    together: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for each in pod.init_containers:
        if each.restart_policy == "Always":  # it runs beside the others
            together += Counter(each.limits)
            before |= together
        else:
            before |= together + Counter(each.limits)
    for each in pod.containers:
        together += Counter(each.limits)
    return {name: n for name, n in (together | before).items() if name not in served}


def _others(
    cluster: Cluster, given: Mapping[str, tuple[Device, ...]], users: set[str]
) -> Iterator[PodHolding]:
    """Yield pods that are told of by the claims alone that are reserved for them."""
    for claim, devices in given.items():
        at, found = cluster.claims[claim]
        if claim in users or not devices or not found.user:
            continue
        # several may share it, and one of them is enough to keep it from us
        name = f"{found.namespace}/{found.user}"
        places = tuple(device.held for device in devices)
        facts = PodFacts(name, where(at), tuple(p for _, p, _ in places), places=places)
        yield PodHolding(devices[0].node, facts, devices, at)
