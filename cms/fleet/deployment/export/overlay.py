"""An overlay for kustomize: a base Deployment for each service, and a patch for each kind of pod.

Both targets for Kubernetes write it; they differ in how a container asks for its part of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ....errors import CmsError, FileError, InvalidProblem
from ....files.node import Node
from ....files.source import Source
from ....files.yaml_text import read_yaml_or_json
from ....values.numbers import shown
from ..labels import HOSTNAME, POINT_LABEL, SERVICE_LABEL, label_value, point_label
from ..model import Deployment
from .export import ExportOptions
from .manifests import Value, dns_label, documents_in, kustomization, yaml_of
from .workloads import Asked, Workload, host_of

__all__ = ["PLACEHOLDER", "WORKLOAD_LABEL", "Container", "Read", "overlay", "read_overlay"]

WORKLOAD_LABEL = "cms.workload"
PLACEHOLDER = "example.invalid/replace-this-image"
_TOP = "kustomization.yaml"


class Container(NamedTuple):
    """How the container of a pod asks for its part of a GPU.

    Attributes
    ----------
    resources : dict
        What is set under ``resources``.
    pod : dict
        What is set in the pod beside it.
    env : dict
        ``{name: value}``.
    """

    resources: dict[str, Value]
    pod: dict[str, Value]
    env: dict[str, str]


# --- written --------------------------------------------------------------------------------------


class _Base(NamedTuple):
    """A Deployment that is patched."""

    text: str
    containers: tuple[str, ...]
    server: str  # that of the containers which gets a part of a GPU
    taken: dict[str, list[str]]  # GPU resources that it asks for, under limits and requests
    has_strategy: bool


def overlay(
    workloads: Iterable[Workload],
    options: ExportOptions,
    container: Callable[[Workload], Container],
    resources: Iterable[str] = (),
) -> dict[str, str]:
    """Write the overlay: a base for each service, and a patch of it for each kind of pod.

    Parameters
    ----------
    workloads : iterable of Workload
    options : ExportOptions
    container : callable
        How a pod of a kind asks for its part of a GPU.
    resources : iterable of str
        Further files of the overlay.

    Raises
    ------
    FileError
        If a base is no Deployment, or there is none for a service.
    InvalidProblem
        If the namespace has no name of Kubernetes.
    """
    if options.namespace is not None and dns_label(options.namespace) != options.namespace:
        raise InvalidProblem(
            f"the namespace is {options.namespace!r}; expected a name of Kubernetes, such as "
            f"{dns_label(options.namespace)!r}"
        )
    workloads = tuple(workloads)
    services = sorted({each.asked.service for each in workloads})
    _require_distinct(services)
    bases = _bases(options.base, services)
    files: dict[str, str] = {}
    for service in services:
        folder = f"base/{dns_label(service)}"
        files[f"{folder}/kustomization.yaml"] = kustomization(["deployment.yaml"])
        files[f"{folder}/deployment.yaml"] = bases[service].text
    for each in workloads:
        folder = f"workloads/{each.name}"
        patch: Value = {
            "path": "patch.yaml",
            "target": {"kind": "Deployment"},
            "options": {"allowNameChange": True},
        }
        files[f"{folder}/kustomization.yaml"] = kustomization(
            [f"../../base/{dns_label(each.asked.service)}"], patches=[patch]
        )
        said = _patch(each, bases[each.asked.service], container(each))
        files[f"{folder}/patch.yaml"] = yaml_of(said)
    parts = [*resources, *(f"workloads/{each.name}" for each in workloads)]
    files[_TOP] = kustomization(parts, namespace=options.namespace)
    return files


def _patch(workload: Workload, base: _Base, container: Container) -> dict[str, Value]:
    asked, work = workload.asked, workload.works[0]
    labels: dict[str, Value] = {
        SERVICE_LABEL: label_value(asked.service),
        POINT_LABEL: point_label(work),
        WORKLOAD_LABEL: workload.name,
    }
    selector: dict[str, Value] = {WORKLOAD_LABEL: workload.name}
    env = {
        "CMS_SERVICE": asked.service,
        "CMS_MODEL": work.point.model,
        "CMS_GPU": asked.gpu,
        "CMS_PROFILE": asked.profile,
        "CMS_PROCESSES": str(asked.processes),
        "CMS_BATCH": str(asked.batch),
        **container.env,
    }
    resources = dict(container.resources)
    for kind, names in base.taken.items():
        kept = resources.get(kind)
        kept = kept if isinstance(kept, dict) else {}
        gone: dict[str, Value] = dict.fromkeys(names)
        resources[kind] = gone | kept
    server: dict[str, Value] = {
        "name": base.server,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": resources,
    }
    # All are named, so that they stay in their order.
    containers: list[Value] = [
        server if name == base.server else {"name": name} for name in base.containers
    ]
    pod: dict[str, Value] = {
        **_where(workload, selector),
        "containers": containers,
        **container.pod,
    }
    # No instance is spare for one pod more: old pods have to go before new ones come.
    strategy: Value = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    supply = min(each.supply_rps for each in workload.works)
    spec: dict[str, Value] = {"replicas": workload.replicas}
    if not base.has_strategy:
        spec["strategy"] = strategy
    spec["selector"] = {"matchLabels": selector}
    spec["template"] = {
        "metadata": {"labels": labels, "annotations": {"cms.items-per-second": shown(supply)}},
        "spec": pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name, "labels": dict(labels)},
        "spec": spec,
    }


def _where(workload: Workload, selector: dict[str, Value]) -> dict[str, Value]:
    if workload.asked.place is not None and len(workload.hosts) == 1:
        return {"nodeSelector": {HOSTNAME: workload.hosts[0]}}
    found: dict[str, Value] = {}
    if workload.hosts:
        term: Value = {"key": HOSTNAME, "operator": "In", "values": list(workload.hosts)}
        terms: Value = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        found["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
    if workload.replicas > 1:
        spread: dict[str, Value] = {
            "maxSkew": 1,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
        }
        found["topologySpreadConstraints"] = [spread]
    return found


def _require_distinct(services: Iterable[str]) -> None:
    """Refuse services that labels or folders could not tell apart: hashes in them are short."""
    for what, named in (("label", label_value), ("folder", dns_label)):
        seen: dict[str, str] = {}
        for service in services:
            if (other := seen.setdefault(named(service), service)) != service:
                raise InvalidProblem(
                    f"the services {other!r} and {service!r} would both have the {what} "
                    f"{named(service)!r}; expected names that differ in it: rename one of them"
                )


def _bases(given: Iterable[Source], services: Iterable[str]) -> dict[str, _Base]:
    """Return the base of each service: its own, the one for all, or one with a placeholder."""
    services, sources = list(services), tuple(given)
    if not sources:
        return {name: _read_base(Source("base", _minimal(name)))[1] for name in services}
    own: dict[str, _Base] = {}
    general: list[tuple[str, _Base]] = []
    for source in sources:
        names, base = _read_base(source)
        mine = [s for s in services if names & {label_value(s), dns_label(s)}]
        for service in mine:
            if service in own:
                raise source.error(f"this is a second base of service {service!r}")
            own[service] = base
        if not mine:
            general.append((source.name, base))
    for service in services:
        if service not in own and len(general) != 1:
            found = ", ".join(name for name, _ in general) or "none"
            raise FileError(
                sources[0].name,
                f"of the bases, none is of service {service!r}; for all: {found}",
                expected=f"a Deployment with the label {SERVICE_LABEL}: {label_value(service)}, "
                "or one for all services",
            )
    return {name: own[name] if name in own else general[0][1] for name in services}


def _read_base(source: Source) -> tuple[set[str], _Base]:
    first, *others = read_yaml_or_json(source, holds="a Deployment")
    if others:
        raise others[0].error(
            "a second document", expected="one Deployment a file, and nothing else",
            fix="a Service or ConfigMap goes into a kustomization of your own that has the folder "
            "of this export among its resources",
        )  # fmt: skip
    first.at("apiVersion").one_of(("apps/v1",))
    first.at("kind").one_of(("Deployment",))
    meta, spec = first.at("metadata"), first.at("spec")
    names = {meta.at("name").text()}
    if "labels" in meta.value:
        names |= {each.text() for key, each in meta.at("labels").entries() if key == SERVICE_LABEL}
    containers = list(spec.at("template").at("spec").at("containers").array())
    if not containers:
        raise spec.at("template").error("its pods have no container", expected="at least one")
    taken = [(each, _taken(each)) for each in containers]
    server, gone = next(((each, found) for each, found in taken if found), taken[0])
    text = (source.text or "").replace("\r\n", "\n").rstrip("\n") + "\n"
    own = tuple(each.at("name").text() for each in containers)
    base = _Base(text, own, server.at("name").text(), gone, "strategy" in spec.value)
    return names, base


def _taken(container: Node) -> dict[str, list[str]]:
    """Return the GPU resources that a container asks for, which a patch has to take away."""
    found: dict[str, list[str]] = {}
    for kind in ("limits", "requests"):
        for key, resources in container.entries():
            if key == "resources" and kind in resources.value:
                names = [name for name, _ in resources.at(kind).entries()]
                if own := [name for name in names if name.startswith("nvidia.com/")]:
                    found[kind] = own
    return found


def _minimal(service: str) -> str:
    label: dict[str, Value] = {SERVICE_LABEL: label_value(service)}
    container: Value = {"name": "server", "image": PLACEHOLDER}
    return yaml_of(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": dns_label(service), "labels": dict(label)},
            "spec": {
                "selector": {"matchLabels": dict(label)},
                "template": {
                    "metadata": {"labels": dict(label)},
                    "spec": {"containers": [container]},
                },
            },
        }
    )


# --- read -----------------------------------------------------------------------------------------


class Read(NamedTuple):
    """A patch that was read back.

    Attributes
    ----------
    asked : Asked
        With the node that it is tied to as its place.
    replicas : int
    container, pod : Node
    """

    asked: Asked
    replicas: int
    container: Node
    pod: Node


def read_overlay(files: Mapping[str, str], fleet: Deployment) -> list[Read]:
    """Read the patches of an overlay back.

    Raises
    ------
    FileError
        If a file is missing or wrong, or asks for what the fleet does not have.
    """
    (top,) = documents_in(files, _TOP)
    found = []
    for entry in top.at("resources").array():
        path = entry.text()
        if path.startswith("workloads/"):
            (patch,) = documents_in(files, f"{path}/patch.yaml")
            found.append(_read_patch(patch, fleet))
    return found


def _read_patch(patch: Node, fleet: Deployment) -> Read:
    template = patch.at("spec").at("template")
    pod = template.at("spec")
    containers = pod.at("containers")
    container = next((each for each in containers.array() if "env" in each.value), None)
    if container is None:
        raise containers.error("none of them has an env", expected="the file as it was written")
    env = {each.at("name").text(): each.at("value") for each in container.at("env").array()}
    for name in ("CMS_SERVICE", "CMS_GPU", "CMS_PROFILE", "CMS_PROCESSES", "CMS_BATCH"):
        if name not in env:
            raise container.at("env").error(f"it has no {name}", expected="the file as written")
    service, gpu = env["CMS_SERVICE"].text(), env["CMS_GPU"].text()
    label = template.at("metadata").at("labels").at(SERVICE_LABEL)
    if label.text() != label_value(service):
        raise label.wrong(f"{label_value(service)!r}, as CMS_SERVICE has it")
    place = None
    if "nodeSelector" in pod.value:
        selector = pod.at("nodeSelector").at(HOSTNAME)
        hosts = {host_of(fleet, node.name): node.name for node in fleet.nodes}
        if selector.text() not in hosts:
            raise selector.wrong("a node of the fleet")
        place = hosts[selector.text()]
    cards = {card.gpu.key: card.gpu for card in fleet.gpus() if place in (None, card.node)}
    if gpu not in cards:
        raise env["CMS_GPU"].wrong(f"a GPU of {place or 'the fleet'}")
    profile = env["CMS_PROFILE"].text()
    if profile[0].isdigit():
        try:
            cards[gpu].profile(profile)
        except CmsError as fault:
            raise env["CMS_PROFILE"].error(str(fault)) from None
    counts = [env[name].number(1) for name in ("CMS_PROCESSES", "CMS_BATCH")]
    asked = Asked(service, gpu, profile, int(counts[0]), int(counts[1]), place)
    return Read(asked, patch.at("spec").at("replicas").integer(1), container, pod)
