"""Routes for Kubernetes: a Service for each group of like instances, weighted by their capacity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from pydantic import ValidationError

from ....errors import InvalidProblem
from ....values.numbers import common_step
from ..kubernetes_objects import MAX_BACKENDS, MAX_WEIGHT, BackendRef, HttpRoute, ParentRef
from ..labels import dns_label, label_value
from ..model import Deployment
from .export import ExportOptions
from .workloads import WorkloadKey, find_workloads


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
