"""The door from services and operating points to a problem, and to what its parts stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from ...errors import InvalidOption
from ...files.source import shortened
from ...problem.parts import GroupLimit
from ...time_sharing.duty_cycle import DutyCycleRule
from ...values.numbers import Number, exact
from ..hardware import Gpu
from .gpus_used import DEFAULT_GPU, AvailableGpus, find_gpus
from .interference import Interference
from .load_curve import LoadCurve, PointKey
from .measurements import only_device, sort_measurements
from .neighbours import NeighbourServing, pose_beside
from .operating_point import OperatingPoint
from .queueing import DEFAULT_RULE, QueueingRule, queueing_rule, with_curves, with_latency_margin
from .service import Service
from .serving_problem import PlanRequest, ServingProblem, pose_unshared
from .time_sharing import DEFAULT_FRAME_RULE, Headroom, SharedServing, TimeSharing, pose_shared

#: What :func:`build_problem` returns, whatever a block serves at a time.
AnyServing: TypeAlias = ServingProblem | SharedServing
_Gpus: TypeAlias = str | Gpu | Sequence[str | Gpu]


class _Terms(TypedDict, total=False):
    load_curves: Mapping[PointKey, LoadCurve] | None
    rate_margin: Number
    latency_margin: Number
    max_processes: int | None
    limits: Mapping[str, int] | None
    costs: Mapping[str, Number] | None
    group_limits: Iterable[GroupLimit]
    mps: bool
    max_services: int | None
    splits: str | None
    headroom: str | Headroom | None
    classes: int | None
    routing: str
    replica_share: Number | None
    available: Iterable[AvailableGpus]
    currency: str


@overload
def build_problem(
    services: Iterable[Service],
    operating_points: Iterable[OperatingPoint],
    gpus: _Gpus | None = None,
    *,
    rule: str | QueueingRule | None = None,
    sharing: None = None,
    **terms: Unpack[_Terms],
) -> ServingProblem: ...


@overload
def build_problem(
    services: Iterable[Service],
    operating_points: Iterable[OperatingPoint],
    gpus: _Gpus | None = None,
    *,
    rule: str | DutyCycleRule | None = None,
    sharing: Literal["time"],
    interference: None = None,
    **terms: Unpack[_Terms],
) -> SharedServing: ...


@overload
def build_problem(
    services: Iterable[Service],
    operating_points: Iterable[OperatingPoint],
    gpus: _Gpus | None = None,
    *,
    rule: str | DutyCycleRule | None = None,
    sharing: Literal["time"],
    interference: Interference,
    **terms: Unpack[_Terms],
) -> NeighbourServing: ...


def build_problem(
    services: Iterable[Service],
    operating_points: Iterable[OperatingPoint],
    gpus: _Gpus | None = None,
    *,
    rule: str | QueueingRule | DutyCycleRule | None = None,
    load_curves: Mapping[PointKey, LoadCurve] | None = None,
    rate_margin: Number = 0,
    latency_margin: Number = 0,
    max_processes: int | None = None,
    limits: Mapping[str, int] | None = None,
    costs: Mapping[str, Number] | None = None,
    group_limits: Iterable[GroupLimit] = (),
    mps: bool = True,
    sharing: str | None = None,
    max_services: int | None = None,
    splits: str | None = None,
    headroom: str | Headroom | None = None,
    interference: Interference | None = None,
    classes: int | None = None,
    routing: str = "weighted",
    replica_share: Number | None = None,
    available: Iterable[AvailableGpus] = (),
    currency: str = "",
) -> AnyServing:
    """Turn services and measured operating points into a problem.

    Each GPU may take a maximal multiset of the MIG profiles that were measured for one of the
    services and that it allows, or be shared under MPS as a whole where shares were measured. An
    instance serves a service at the admissible operating point with the largest supply.

    InvalidProblem, with the nearest name, if a service or point is there twice, or a model, device
    or profile is not known or was not measured. InvalidOption if there is no such GPU or rule, the
    points are of several GPUs and `gpus` is left open, or an option does not go with the kind of
    sharing.

    `operating_points`: Those of other models and of other GPUs are left aside.
    `gpus`: Keys or aliases of the catalogue, or a user's own (:func:`cms.fleet.read_gpu`).
    `rule`: What an instance counts for, of :data:`cms.fleet.serving.RULES`, or with `sharing` of
    :class:`cms.DutyCycleRule`; by default ``"capacity"``, or ``"round_robin"``.
    `load_curves`: Of :func:`cms.fleet.read_load_curves`; they override the rule's own table.
    `rate_margin`: Share by which rates may be higher. Rates are those of the busiest minute.
    `latency_margin`: Share by which batches may take longer than measured; fewer are then served.
    `max_processes`: Operating points with more processes are left out.
    `limits`, `costs`: ``{gpu: number there are}`` (any), ``{gpu: cost of one}`` (1).
    `group_limits`: Of GPUs of several types together, by their keys.
    `mps`: Whether points measured under MPS percentages (``mps:40``) may be used.
    `sharing`: ``"time"``: an instance serves a batch of each of its services in turn.
    With sharing, `max_services` on an instance, `splits` of a GPU under MPS (``"pairs"``, the
    default, or ``"any"``), and `headroom` beyond rates and lengths (``"gpulet"``).
    `interference`: With sharing, measured pairs: limits hold beside any neighbour.
    `classes`: With interference, classes of batches by how much they slow others (3).
    `routing`: of requests over a service's instances, ``"weighted"`` like their supplies, or
    ``"equal"``: each counts as the smallest. A service with a column ``min_replicas`` has so many
    instances at least that each serve `replica_share` of its rate; by default
    1 / (2 min_replicas), or any part where no instance serves so much, and in equal shares.
    `available`: GPUs that are there (:func:`cms.fleet.placement.list_available`): machine types are
    their names, also in `group_limits`. By default any number of empty GPUs.
    `currency`: Of `costs`, which are then by the hour.

    Examples
    --------
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 1, "74.408", 13),
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "202.1", 10),
    ... ]
    >>> serving = build_problem([service], points)
    >>> serving.problem.jobs[0]
    Job(name='chat', demand=Fraction(100, 1), demand_function=DemandFunction({'1g.10gb': \
Fraction(51341, 1000), '3g.40gb': Fraction(176837, 1000)}), replicas=None, routing='weighted')
    >>> print(*serving.points["chat", "3g.40gb"])
    bert on 3g.40gb, 1 process, batch 2: 202.1 requests/s at 10 ms
    """
    operating_points = tuple(operating_points)
    fleet = find_gpus((only_device(operating_points) or DEFAULT_GPU) if gpus is None else gpus)
    there = tuple(available)
    unfit: dict[str, Any]
    if sharing is None:
        unfit = {"max_services": max_services, "splits": splits, "headroom": headroom}
        unfit |= {"interference": interference, "classes": classes}
        why, instead = "nothing is shared", "share instances in time: sharing='time'"
    elif sharing == "time":
        unfit = {"load_curves": load_curves, "replica_share": replica_share}
        unfit |= {"routing": routing if routing != "weighted" else None, "available": there or None}
        why, instead = "services share instances in time", "plan without sharing"
    else:
        raise InvalidOption(
            f"sharing is {sharing!r}; expected None (an instance serves one service) or 'time' "
            "(it serves a batch of each of several in turn)"
        )
    for name, value in unfit.items():
        if value is not None:
            given = shortened(repr(value))
            raise InvalidOption(f"{name} is {given} and {why}; leave it out, or {instead}")
    if classes is not None and interference is None:
        raise InvalidOption(
            f"classes is {classes!r} and there is no interference; leave it out, or give both"
        )
    if sharing is None and rule in list(DutyCycleRule):
        raise InvalidOption(
            f"the rule {str(rule)!r} is for instances that services share in time; add "
            "sharing='time', or take one of cms.fleet.serving.RULES"
        )
    if max_processes is not None and (type(max_processes) is not int or max_processes < 1):
        raise InvalidOption(f"max_processes is {max_processes!r}; expected an integer >= 1")
    wanted: dict[str, Service] = {}
    for service in services:
        if service.name in wanted:
            raise service.fault(
                f"two services are called {service.name!r}; every service needs a name of its own"
            )
        wanted[service.name] = service
    request = PlanRequest(
        services=tuple(wanted.values()), gpus=fleet, max_processes=max_processes, routing=routing,
        rate_margin=exact(rate_margin, "the rate margin", error=InvalidOption),
        replica_share=None if replica_share is None else exact(replica_share, "the replica share"),
        available=there, currency=currency, limits=limits, costs=costs,
        group_limits=tuple(group_limits),
        known=sort_measurements(operating_points, fleet, mps=mps, max_processes=max_processes),
    )  # fmt: skip
    if sharing is None:
        counted = queueing_rule(DEFAULT_RULE if rule is None else rule)
        counted = with_latency_margin(counted, latency_margin)
        return pose_unshared(request, with_curves(counted, load_curves))
    how = DEFAULT_FRAME_RULE if rule is None else rule
    terms = TimeSharing(how, max_services, splits or "pairs", headroom, latency_margin)
    solo = pose_shared(request, terms)
    return solo if interference is None else pose_beside(solo, interference, classes)
