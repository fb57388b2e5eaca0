"""For Kubernetes: an overlay for kustomize with a Deployment for each kind of pod."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from pydantic import ValidationError

from ....errors import FileError, InvalidProblem
from ....files.source import Source
from ....values.numbers import common_step, shown
from ...hardware.yaml_text import read_yaml_or_json
from ..instance import WHOLE, Mode
from ..kubernetes_objects import (
    MAX_BACKENDS,
    MAX_WEIGHT,
    BackendRef,
    Container,
    DeploymentObject,
    HttpRoute,
    ParentRef,
    read_object,
)
from ..labels import SERVICE_LABEL, dns_label, label_value, point_label
from ..model import Deployment, FleetGpu
from .export import Export, ExportOptions, assemble, render
from .workloads import Workload, WorkloadKey, find_workloads, resource_of

_PLACEHOLDER = "example.invalid/replace-this-image"
_CLAIMS, _ROUTES, _FOLDER = "claims.yaml", "routes.yaml", "kustomization.yaml"
_ATTRIBUTES = "device.attributes['gpu.nvidia.com']"


def write(target: str, deployment: Deployment, options: ExportOptions) -> Export:
    """Write a base for each service, and a patch of it for each kind of pod.

    Pods ask for instances by the device plug-in's resource of their profile, or for ``dra`` by
    claims, which name a profile by CEL, and with `pin_gpus` the very GPU.
    """
    has_claims = target == "dra"

    def place(card: FleetGpu) -> str:
        if has_claims and (options.pin_gpus or card.mode is Mode.MPS):
            return card.name  # shares of one GPU are one claim
        return card.node if options.pin_nodes else ""

    workloads = find_workloads(deployment, place)
    made = {each.name: _claim(each, options) for each in workloads if has_claims}
    files, routes = _overlay(deployment, workloads, options, made)
    former = () if options.now is None else find_workloads(options.now, place)
    gone = sorted({each.name for each in former} - {each.name for each in workloads})
    profiles = {each.profile for _, each in deployment.instances() if has_claims}
    classes = [_device_class(each) for each in sorted(profiles) if not each.startswith("mps:")]
    if made:
        files[_CLAIMS] = render("claims.yaml", claims=sorted({*made.values()}))
    if classes:
        files["device-classes.yaml"] = render("device-classes.yaml", classes=classes)
    facts = {"workloads": workloads, "routes": routes, "gone": gone, "classes": classes}
    return assemble(target, deployment, options, files, **facts)


class _Claim(NamedTuple):
    name: str
    device_class: str
    selector: str
    largest_share: int | None  # of a GPU under MPS, which all its pods claim together


def _claim(workload: Workload, options: ExportOptions) -> _Claim:
    profile, card = workload.key.profile, workload.card
    is_shared = profile.startswith("mps:")
    of_gpu = f"-{workload.key.place.replace('/', '-')}" if "/" in workload.key.place else ""
    name = dns_label(f"cms-{'mps' if is_shared else workload.key.part}{of_gpu}")
    is_whole = is_shared or profile == WHOLE
    wanted = {"type": "gpu"} if is_whole else {"profile": profile}
    if options.pin_gpus:
        if card.uuid is None:
            raise InvalidProblem(
                f"the UUID of {card.name} is not known, so that no claim can name it; observe the "
                "node with: nvidia-smi -q -x"
            )
        wanted["uuid" if is_whole else "parentUUID"] = card.uuid
    selector = " && ".join(f"{_ATTRIBUTES}.{key} == '{each}'" for key, each in wanted.items())
    shares = (int(each.removeprefix("mps:")) for each in card.counts) if is_shared else ()
    kind = "gpu.nvidia.com" if is_whole else "mig.nvidia.com"
    return _Claim(name, kind, selector, max(shares, default=None))


def _device_class(profile: str) -> dict[str, str]:
    """Return the class that serves the device plug-in's resource of a profile."""
    kind, part = ("gpu", "") if profile == WHOLE else ("mig", f"-{profile}")
    selector = f"device.driver == 'gpu.nvidia.com' && {_ATTRIBUTES}.type == '{kind}'"
    selector += f" && {_ATTRIBUTES}.profile == '{profile}'" if part else ""
    name = f"cms-{kind}{re.sub(r'[^a-z0-9]+', '-', part)}.gpu.nvidia.com"
    return {"name": name, "resource": resource_of(profile), "selector": selector}


class Route(NamedTuple):
    """How the requests of a service are spread over its groups of like instances."""

    service: str
    label: str  # of its pods
    port: int | str  # of its pods, by number or name
    route: HttpRoute
    is_exact: bool  # whether the weights are in the very ratio of the capacities


def find_routes(
    deployment: Deployment, options: ExportOptions, ports: Mapping[str, int | str]
) -> tuple[Route, ...]:
    """Find the routes of all services to these ports of their pods, and check them by their schema.

    There are none without a Gateway, but for a plan whose limits hold for equal shares: then one
    Service has all pods. InvalidProblem if a service has more groups than a route takes.
    """
    if options.gateway is None and deployment.routing != "equal":
        return ()
    parent = None if options.gateway is None else _read_gateway(options.gateway)
    found: defaultdict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for each in find_workloads(deployment, lambda _: ""):
        found[each.key.service][group_name(each.key, deployment)] += each.supply_rps
    routes = []
    for service, supplies in found.items():
        if len(supplies) > MAX_BACKENDS:
            raise InvalidProblem(
                f"service {service!r} has {len(supplies)} groups of like instances; expected at "
                f"most {MAX_BACKENDS}, which a rule of an HTTPRoute takes: plan it on fewer kinds "
                "of instances, or leave gateway out of [export]"
            )
        weights = find_weights([*supplies.values()])
        ratios = {supply / n for supply, n in zip(supplies.values(), weights, strict=True) if n}
        backends = tuple(
            BackendRef(name=name, port=80, weight=weight)
            for name, weight in zip(supplies, weights, strict=True)
        )
        route = HttpRoute(name=dns_label(service), parent=parent, backends=backends)
        routes.append(Route(service, label_value(service), ports[service], route, len(ratios) <= 1))
    return tuple(routes)


def group_name(key: WorkloadKey, deployment: Deployment) -> str:
    """Return the name of the Service that has such pods, by which their label says it."""
    group = key.service if deployment.routing == "equal" else key._replace(place="").label
    return dns_label(f"cms-{group}")  # a Service's name begins with a letter


def find_weights(capacities: Sequence[Fraction]) -> list[int]:
    """Return integers up to 1,000,000 in the ratio of capacities.

    Where that is not possible, each share differs by less than a millionth, but for the weight 1 of
    what would have none. A capacity of 0 has the weight 0, unless all are 0.

    Examples
    --------
    >>> find_weights([Fraction(33), Fraction(12)]), find_weights([Fraction(1, 3), Fraction(10**7)])
    ([11, 4], [1, 1000000])
    """
    step, most = common_step(capacities), max(capacities)
    if not step:
        return [1] * len(capacities)
    if most <= MAX_WEIGHT * step:
        return [int(each / step) for each in capacities]
    quotas = [each / most * MAX_WEIGHT for each in capacities]
    whole = sum(quotas) // 1  # shares of it are rounded, so that they come to as much
    quotas = [each / sum(quotas) * whole for each in quotas]
    weights = [int(each) for each in quotas]
    by_rest = sorted(range(len(weights)), key=lambda at: weights[at] - quotas[at])
    for at in by_rest[: whole - sum(weights)]:
        weights[at] += 1
    return [max(weight, int(each > 0)) for weight, each in zip(weights, capacities, strict=True)]


def _read_gateway(text: str) -> ParentRef:
    space, _, name = text.rpartition("/")
    try:
        return ParentRef(name=name if space else text, namespace=space)
    except ValidationError:
        raise InvalidProblem(
            f"gateway in [export] is {text!r}; expected the name of a Gateway, or its namespace "
            'and name, such as "infra/shared"'
        ) from None


class _Base(NamedTuple):
    text: str
    containers: tuple[str, ...]
    server: str  # the container that gets a part of a GPU
    taken: dict[str, tuple[str, ...]]  # GPU resources that it asks for, under limits and requests
    has_strategy: bool
    port: int | str  # the server's first, by name or number; "" if it names none
    source: str = ""


def _overlay(
    deployment: Deployment, workloads: Iterable[Workload], options: ExportOptions,
    claims: dict[str, _Claim],
) -> tuple[dict[str, str], tuple[Route, ...]]:  # fmt: skip
    space = options.namespace
    if space is not None and (name := dns_label(space)) != space:
        what = f"the namespace is {space!r}; expected a name of Kubernetes, such as {name!r}"
        raise InvalidProblem(what)
    services = sorted({each.key.service for each in workloads})
    _require_distinct(services)
    bases = _bases(options.base, services)
    routes = find_routes(deployment, options, {name: each.port for name, each in bases.items()})
    for route in (each for each in routes if not each.port):
        base = bases[route.service]
        what = f"the container {base.server!r} names no port, to which the route of service"
        raise FileError(base.source, f"{what} {route.service!r} could lead", expected="one")
    files: dict[str, str] = {}
    if routes:
        files[_ROUTES] = render(_ROUTES, routes=routes)
    parts = [*[_CLAIMS] * bool(claims), *files]
    for service in services:
        folder = f"base/{dns_label(service)}"
        files[f"{folder}/{_FOLDER}"] = render(_FOLDER, resources=["deployment.yaml"])
        files[f"{folder}/deployment.yaml"] = bases[service].text
    for each in workloads:
        folder = f"workloads/{each.name}"
        parts.append(folder)
        own = f"../../base/{dns_label(each.key.service)}"
        files[f"{folder}/{_FOLDER}"] = render(_FOLDER, resources=[own], patch=True)
        group = group_name(each.key, deployment) if routes else ""
        patch = _patch(each, bases[each.key.service], claims.get(each.name), group)
        files[f"{folder}/patch.yaml"] = patch
    files[_FOLDER] = render(_FOLDER, resources=parts, space=space)
    return files, routes


def _patch(workload: Workload, base: _Base, claim: _Claim | None, group: str) -> str:
    key, work = workload.key, workload.works[0]
    resources: dict[str, dict[str, str | None]]
    resources = {kind: dict.fromkeys(names) for kind, names in base.taken.items()}
    share = key.profile.removeprefix("mps:") if key.profile.startswith("mps:") else None
    if claim is None:
        asked = resource_of(key.profile) if share is None else "nvidia.com/gpu.shared"
        resources.setdefault("limits", {})[asked] = "1"
    return render(
        "patch.yaml",
        workload=workload, key=key, base=base, resources=resources, claim=claim, share=share,
        group=group,
        model=work.point.model, service=label_value(key.service), point=point_label(work),
        supply=shown(min(each.supply_rps for each in workload.works)),
    )  # fmt: skip


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


def _bases(given: tuple[Source, ...], services: Iterable[str]) -> dict[str, _Base]:
    """Return the base of each service: its own, the one for all, or one with a placeholder."""
    if not given:
        return {name: _minimal(name) for name in services}
    own: dict[str, _Base] = {}
    general: list[tuple[str, _Base]] = []
    for source in given:
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
            what = f"of the bases, none is of service {service!r}; for all: {found}"
            own_one = f"a Deployment with the label {SERVICE_LABEL}: {label_value(service)}"
            raise FileError(given[0].name, what, expected=f"{own_one}, or one for all services")
    return {name: own[name] if name in own else general[0][1] for name in services}


def _minimal(service: str) -> _Base:
    name, label = dns_label(service), label_value(service)
    text = render("base.yaml", name=name, label=label, image=_PLACEHOLDER)
    return _Base(text, ("server",), "server", {}, has_strategy=False, port="http")


def _read_base(source: Source) -> tuple[set[str], _Base]:
    first, *others = read_yaml_or_json(source, holds="a Deployment")
    if others:
        raise others[0].error(
            "a second document", expected="one Deployment a file, and nothing else",
            fix="a Service or ConfigMap goes into a kustomization of your own that has the folder "
            "of this export among its resources",
        )  # fmt: skip
    found = read_object(first, DeploymentObject)
    containers = found.containers
    if not all(each.name for each in (containers or [Container()])):
        inner = first.at("spec", "template", "spec", "containers")
        what = f"{inner.label()} has none, or one without a name"
        raise inner.error(what, expected="a name each")
    asked = ({"limits": each.limits, "requests": each.requests} for each in containers)
    taken = [{kind: tuple(names) for kind, names in each.items() if names} for each in asked]
    server = next((at for at, each in enumerate(taken) if each), 0)
    text = source.text.replace("\r\n", "\n").rstrip("\n") + "\n"
    own = tuple(each.name for each in containers)
    names = {found.name, found.labels.get(SERVICE_LABEL, found.name)}
    has_strategy = found.strategy is not None
    port = next((each.name or each.container_port for each in containers[server].ports), "")
    return names, _Base(text, own, own[server], taken[server], has_strategy, port, source.name)
