"""Pods that hold GPUs or parts of them: through the device plugin, or by claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ....files.node import Node
from ..instance import WHOLE, State
from ..labels import HOSTNAME, POINT_LABEL, SERVICE_LABEL
from .facts import PodFacts
from .kubernetes_devices import Device, results_of, where
from .kubernetes_objects import (
    ASK,
    PREFIX,
    Cluster,
    Names,
    array_of,
    count_of,
    entries_of,
    labels_of,
    text_of,
    value_at,
)

__all__ = ["Held", "held_in"]


class Held(NamedTuple):
    """What a pod holds, and where it says so."""

    node: str
    pod: PodFacts
    devices: tuple[Device, ...]
    at: Node


def held_in(
    cluster: Cluster,
    devices: Mapping[tuple[str, str], Device],
    names: Mapping[str, Names],
    service_label: str | None,
) -> Iterator[Held]:
    """Yield the pods that hold GPUs, or parts of them.

    Raises
    ------
    FileError
        If the node or claim of one is not told of.
    """
    given = {name: tuple(results_of(claim, devices)) for name, claim in cluster.claims.items()}
    users: set[str] = set()
    for name, pod in cluster.pods.items():
        spec = pod.at("spec")
        node = text_of(spec, "nodeName")
        if not node or text_of(pod, "status", "phase") in ("Succeeded", "Failed"):
            continue
        own: list[Device] = []
        for claim, at in _claims(pod, name):
            if claim not in given:
                raise at.error(
                    f"{at.label}: pod {name} holds the claim {claim!r}, which is not told of",
                    expected=ASK if not cluster.lists_claims else "claims of the same time",
                )
            users.add(claim)
            own += given[claim]
        resources = _resources(pod)
        if node not in names:
            if own or any(Names(None, False).profile(each) for each in resources):
                raise spec.at("nodeName").error(
                    f"{spec.at('nodeName').label}: pod {name} holds GPUs of node {node!r}, which "
                    "is not told of",
                    expected=ASK,
                )
            continue
        profiles = [
            profile
            for resource, count in resources.items()
            if (profile := names[node].profile(resource)) is not None
            for _ in range(count)
        ]
        if own or profiles:
            yield _pod_facts(name, pod, node, profiles, own, service_label)
    yield from _others(cluster, given, users)


def _pod_facts(
    name: str,
    pod: Node,
    node: str,
    profiles: Sequence[str],
    devices: Sequence[Device],
    service_label: str | None,
) -> Held:
    for each in devices:
        if each.node != node:
            raise pod.error(
                f"{pod.label}: pod {name} runs on node {node!r}, and holds a device of "
                f"{each.node!r} ({each.where})",
                expected="objects of one time",
            )
    labels = labels_of(pod)
    service, point = labels.get(SERVICE_LABEL), labels.get(POINT_LABEL)
    if service is None and service_label is not None:
        service = labels.get(service_label)
    places = tuple(_place(each) for each in devices)
    return Held(
        node,
        PodFacts(
            name,
            where(pod),
            (*profiles, *(profile for _, profile, _ in places)),
            None if service is None else service.text(),
            None if point is None else point.text(),
            _state(pod),
            places,
            value_at(pod, "spec", "nodeSelector", HOSTNAME) is not None,
        ),
        tuple(devices),
        pod,
    )


def _place(device: Device) -> tuple[int, str, int | None]:
    if device.place is None:
        return device.index, WHOLE, None
    return device.index, device.place.profile, device.place.start


def _state(pod: Node) -> State:
    if value_at(pod, "metadata", "deletionTimestamp") is not None:
        return State.DRAINING
    for each in array_of(pod, "status", "conditions"):
        if each.at("type").text() == "Ready" and each.at("status").text() == "True":
            return State.RUNNING
    return State.STARTING


def _claims(pod: Node, name: str) -> Iterator[tuple[str, Node]]:
    """Yield the claims that a pod holds, each with the place that names it."""
    space = name.partition("/")[0]
    for each in (
        *array_of(pod, "spec", "resourceClaims"),
        *array_of(pod, "status", "resourceClaimStatuses"),
    ):
        claim = value_at(each, "resourceClaimName")
        if claim is not None:
            yield f"{space}/{claim.text()}", claim
    claim = value_at(pod, "status", "extendedResourceClaimStatus", "resourceClaimName")
    if claim is not None:
        yield f"{space}/{claim.text()}", claim


def _resources(pod: Node) -> dict[str, int]:
    """Count what a pod holds through the device plugin: containers together, or one before them."""
    served = {
        each.at("resourceName").text()
        for each in array_of(pod, "status", "extendedResourceClaimStatus", "requestMappings")
    }
    together: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for each in array_of(pod, "spec", "initContainers"):
        if text_of(each, "restartPolicy") == "Always":  # it runs beside the others
            together += _limits(each)
            before |= together
        else:
            before |= together + _limits(each)
    for each in pod.at("spec").at("containers").array():
        together += _limits(each)
    return {name: n for name, n in (together | before).items() if name not in served}


def _limits(container: Node) -> Counter[str]:
    return Counter(
        {
            name: count_of(count)
            for name, count in entries_of(container, "resources", "limits")
            if name.startswith(PREFIX)
        }
    )


def _others(
    cluster: Cluster, given: Mapping[str, tuple[Device, ...]], users: set[str]
) -> Iterator[Held]:
    """Yield pods that are told of by the claims alone that are reserved for them."""
    for claim, devices in given.items():
        if claim in users or not devices:
            continue
        object_ = cluster.claims[claim]
        for each in array_of(object_, "status", "reservedFor"):
            name = f"{claim.partition('/')[0]}/{each.at('name').text()}"
            places = tuple(_place(device) for device in devices)
            profiles = tuple(profile for _, profile, _ in places)
            facts = PodFacts(name, where(each), profiles, places=places)
            yield Held(devices[0].node, facts, devices, object_)
            break  # several share it, and one of them is enough to keep it from us
