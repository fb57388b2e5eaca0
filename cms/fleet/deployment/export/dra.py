"""For Kubernetes with dynamic resource allocation: the same overlay, whose pods hold claims.

A claim names a profile by CEL, and with `pin_gpus` the very GPU, which resources of the device
plugin cannot. The devices have to be there when the driver starts (static MIG): cut the GPUs first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from ....errors import InvalidProblem
from ....files.node import Node
from ..instance import WHOLE, Mode
from ..model import Deployment, FleetGpu
from . import kubernetes
from .advertised import resource_of
from .export import Export, ExportOptions, assembled
from .losses import about_fixed, about_mps, about_nodes, about_others, about_starts
from .manifests import Value, dns_label, documents_in, yaml_of
from .overlay import Container, overlay, read_overlay
from .workloads import Asked, Workload, about_work, working, workloads_of

__all__ = ["as_seen", "read", "write"]

_API = "resource.k8s.io/v1"
_DRIVER = "gpu.nvidia.com"
_CLAIMS, _CLASSES = "claims.yaml", "device-classes.yaml"
_REQUEST = "gpu"
_CONDITION = re.compile(
    r"device\.attributes\['gpu\.nvidia\.com'\]\.(type|profile|uuid|parentUUID) == '([^']*)'"
)


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write the overlay with ``claims.yaml``, and ``device-classes.yaml`` for the old names.

    Raises
    ------
    FileError
        If a base given is no Deployment, or there is none for a service.
    InvalidProblem
        If a GPU is to be pinned whose UUID is not known.
    """
    place = _place(pin_nodes=options.pin_nodes, pin_gpus=options.pin_gpus)
    workloads = workloads_of(deployment, place)
    claims = {_name_of(each): _claim(each, options) for each in workloads}
    files = {}
    if claims:
        files[_CLAIMS] = _stream(claims[name] for name in sorted(claims))
    files |= overlay(workloads, options, _container, [_CLAIMS] if claims else [])
    profiles = {each.profile for _, each in deployment.instances()}
    if classes := [_bridge(name) for name in sorted(profiles) if not name.startswith("mps:")]:
        files[_CLASSES] = _stream(classes)
    former = workloads_of(options.now, place) if options.now else None
    return assembled(
        "dra",
        "How many pods of each kind are to run, each with a claim on an instance of its profile.",
        files,
        _losses(deployment, options),
        kubernetes.order(workloads, options, former, _order(files)),
        kubernetes.back(options),
    )


def _order(files: Mapping[str, str]) -> tuple[str, ...]:
    said = [
        "It takes Kubernetes 1.34 or later and the DRA driver for NVIDIA GPUs, started after the "
        "GPUs are cut: it publishes what it then finds. Leave its gate DynamicMIG off: with it the "
        "driver destroys instances that it did not create."
    ]
    if _CLASSES in files:
        said.append(
            f"Only if pods that ask for resources of the device plugin are to be served, too: "
            f"`kubectl apply -f {_CLASSES}` (Kubernetes 1.35 or later, gate DRAExtendedResource)."
        )
    return tuple(said)


def _stream(documents: Iterator[Value] | list[Value]) -> str:
    return "---\n".join(yaml_of(each) for each in documents)


def _place(*, pin_nodes: bool, pin_gpus: bool) -> Callable[[FleetGpu], str | None]:
    def place(card: FleetGpu) -> str | None:
        if pin_gpus or card.mode is Mode.MPS:  # shares of one GPU are one claim
            return card.name
        return card.node if pin_nodes else None

    return place


# --- claims ---------------------------------------------------------------------------------------


def _name_of(workload: Workload) -> str:
    """Name the claim of a kind of pod: by its profile, and by its GPU if it is tied to one."""
    asked = workload.asked
    card = "" if asked.place is None or "/" not in asked.place else f"-{asked.place}"
    part = "mps" if asked.profile.startswith("mps:") else asked.part
    return dns_label(f"cms-{part}{card.replace('/', '-')}")


def _claim(workload: Workload, options: ExportOptions) -> Value:
    profile, (card, *_) = workload.asked.profile, workload.cards
    uuid = card.uuid if options.pin_gpus else None
    if options.pin_gpus and uuid is None:
        raise InvalidProblem(
            f"the UUID of {card.name} is not known, so that no claim can name it; observe the node "
            "with: nvidia-smi -L"
        )
    named: dict[str, Value] = {"name": _name_of(workload)}
    if profile.startswith("mps:"):
        shares = [share for share in card.counts if share.startswith("mps:")]
        most = max(int(share.removeprefix("mps:")) for share in shares)
        devices = _devices("gpu.nvidia.com", _selector(WHOLE, uuid), most)
        return {"apiVersion": _API, "kind": "ResourceClaim", "metadata": named,
                "spec": {"devices": devices}}  # fmt: skip
    kind = "gpu.nvidia.com" if profile == WHOLE else "mig.nvidia.com"
    devices = _devices(kind, _selector(profile, uuid))
    return {"apiVersion": _API, "kind": "ResourceClaimTemplate", "metadata": named,
            "spec": {"spec": {"devices": devices}}}  # fmt: skip


def _selector(profile: str, uuid: str | None) -> str:
    """Write what a device has to be, without anything that takes an extension of CEL."""
    attributes = {"type": "gpu"} if profile == WHOLE else {"profile": profile}
    if uuid is not None:
        attributes["uuid" if profile == WHOLE else "parentUUID"] = uuid
    return " && ".join(
        f"device.attributes['{_DRIVER}'].{name} == '{value}'" for name, value in attributes.items()
    )


def _devices(device_class: str, selector: str, most: int | None = None) -> dict[str, Value]:
    exactly: dict[str, Value] = {
        "deviceClassName": device_class,
        "selectors": [{"cel": {"expression": selector}}],
    }
    found: dict[str, Value] = {"requests": [{"name": _REQUEST, "exactly": exactly}]}
    if most is not None:
        parameters: Value = {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "GpuConfig",
            "sharing": {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": most}},
        }
        opaque: Value = {"driver": _DRIVER, "parameters": parameters}
        found["config"] = [{"requests": [_REQUEST], "opaque": opaque}]
    return found


def _bridge(profile: str) -> Value:
    """Write the class that serves the device plugin's name of a profile."""
    kind = "gpu" if profile == WHOLE else "mig"
    attribute = f"device.attributes['{_DRIVER}']"
    expression = f"device.driver == '{_DRIVER}' && {attribute}.type == '{kind}'"
    name, resource = "gpu", "nvidia.com/gpu"
    if profile != WHOLE:
        expression += f" && {attribute}.profile == '{profile}'"
        resource = resource_of(profile)
        name = re.sub(r"[^a-z0-9]+", "-", f"mig-{profile}")
    return {
        "apiVersion": _API,
        "kind": "DeviceClass",
        "metadata": {"name": f"cms-{name}.gpu.nvidia.com"},
        "spec": {
            "extendedResourceName": resource,
            "selectors": [{"cel": {"expression": expression}}],
        },
    }


def _container(workload: Workload) -> Container:
    profile = workload.asked.profile
    is_shared = profile.startswith("mps:")
    by = "resourceClaimName" if is_shared else "resourceClaimTemplateName"
    env = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": profile.removeprefix("mps:")} if is_shared else {}
    pod: dict[str, Value] = {"resourceClaims": [{"name": _REQUEST, by: _name_of(workload)}]}
    return Container({"claims": [{"name": _REQUEST}]}, pod, env)


def _losses(deployment: Deployment, options: ExportOptions) -> Iterator[str]:
    if working(deployment):
        what = "GPU" if options.pin_nodes else "node and GPU"
        where = "" if options.pin_gpus else f"which {what} a pod gets and "
        yield f"Places: {where}which start; the scheduler takes the first device that fits."
    yield from about_starts(deployment)
    yield "The GPUs themselves: how they are cut."
    yield from about_work(deployment)
    if not options.pin_gpus:
        yield from kubernetes.about_types(deployment)
    yield from about_mps(
        deployment,
        "the pods of such a GPU share one claim with the largest share as its default (the "
        "driver's gate MPSSupport); each pod's own is in CUDA_MPS_ACTIVE_THREAD_PERCENTAGE.",
    )
    for about in (about_others, about_fixed):
        yield from about(deployment, "they are not claimed, and no claim is told to spare them")
    yield from about_nodes(deployment)


# --- read -----------------------------------------------------------------------------------------


def read(files: Mapping[str, str], fleet: Deployment) -> dict[Asked, int]:
    """Read the patches and their claims back: how many pods there are of each kind.

    Parameters
    ----------
    files : Mapping[str, str]
        ``{path: text}``, as `Export` has them.
    fleet : Deployment
        The nodes and their types of GPU.

    Raises
    ------
    FileError
        If a file is missing or wrong, or asks for what the fleet does not have.
    """
    claims: dict[str, Node] = {}
    for document in documents_in(files, _CLAIMS) if _CLAIMS in files else ():
        document.at("apiVersion").one_of((_API,))
        claims[document.at("metadata").at("name").text()] = document
    shared = {dns_label(f"cms-mps-{c.name.replace('/', '-')}"): c.name for c in fleet.gpus()}
    uuids = {card.uuid: card.name for card in fleet.gpus() if card.uuid is not None}
    found: Counter[Asked] = Counter()
    for each in read_overlay(files, fleet):
        (entry,) = each.pod.at("resourceClaims").array(1)
        is_shared = "resourceClaimName" in entry.value
        named = entry.at("resourceClaimName" if is_shared else "resourceClaimTemplateName")
        if named.text() not in claims:
            raise named.wrong(f"a claim of {_CLAIMS}")
        said = _conditions(claims[named.text()], is_template=not is_shared)
        profile = said.pop("profile", WHOLE)
        if not is_shared and profile != each.asked.profile:
            raise named.error(
                f"its claim is for {profile}", expected=f"{each.asked.profile}, as CMS_PROFILE has"
            )
        uuid = said.get("uuid", said.get("parentUUID"))
        place = each.asked.place
        if uuid is not None or is_shared:
            place = uuids.get(uuid) if uuid is not None else shared.get(named.text())
            if place is None:
                raise named.error("its claim is on a GPU that is not of the fleet",
                                  expected="a GPU of the fleet")  # fmt: skip
        found[each.asked._replace(place=place)] += each.replicas
    return dict(found)


def _conditions(claim: Node, *, is_template: bool) -> dict[str, str]:
    """Read what a claim wants of its device: ``{attribute: value}``."""
    spec = claim.at("spec").at("spec") if is_template else claim.at("spec")
    (request,) = spec.at("devices").at("requests").array(1)
    (selector,) = request.at("exactly").at("selectors").array(1)
    expression = selector.at("cel").at("expression")
    found = {}
    for part in expression.text().split(" && "):
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise expression.wrong("conditions as they were written")
        found[match[1]] = match[2]
    return found


def as_seen(
    deployment: Deployment, *, pin_nodes: bool = False, pin_gpus: bool = False
) -> dict[Asked, int]:
    """Return how many pods of each kind there are, tied to nodes, to GPUs or to neither.

    Shares under MPS are tied to their GPU in any case: they hold one claim together.
    """
    place = _place(pin_nodes=pin_nodes, pin_gpus=pin_gpus)
    return {each.asked: each.replicas for each in workloads_of(deployment, place)}
