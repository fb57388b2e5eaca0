"""From services and operating points to a problem, with the point behind every supply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from ...errors import InvalidOption
from ...problem.parts import Block, Configuration, Job, MachineType, SizeBoundedConfigurations
from ...problem.problem import Problem
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import Number, exact, shown
from ..hardware import Gpu, gpu, mps_shares
from .capacity import CapacityRule
from .fills import FillTimes, fills_of
from .guards import (
    batch_time_warnings,
    column_warnings,
    limit_warnings,
    shrinking_warnings,
    unit_warnings,
)
from .load_curve import LoadCurve, PointKey, key_of
from .measurements import InstanceKind, is_called, measurements, only_device, points_for
from .operating_point import OperatingPoint, mps_share
from .promise import Promise
from .queueing import DEFAULT_RULE, QueueingRule, queueing_rule
from .service import Service

T = TypeVar("T")

__all__ = ["DEFAULT_GPU", "ServingProblem", "as_problem", "shapes"]

DEFAULT_GPU = "a100-80gb"
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Served:
    """What an instance does for one of the services on it.

    Parameters
    ----------
    service : str
    point : OperatingPoint
        What the instance runs for it.
    rate_rps : Fraction
        What the instance counts for under the queueing rule.
    slack_ms : Fraction or None
        The service's latency limit less the latency of one batch; None without a limit.
    """

    service: str
    point: OperatingPoint
    rate_rps: Fraction
    slack_ms: Fraction | None


@dataclass(frozen=True, slots=True, repr=False)
class ServingProblem:
    """A problem, and what its jobs and blocks stand for.

    Parameters
    ----------
    problem : Problem
        One job a service, its demand the rate; one block a profile (``3g.40gb``, with several GPU
        types ``a100-80gb:3g.40gb``); machine types are GPU keys.
    services : tuple of Service
        In the order of the problem's jobs.
    gpus : tuple of Gpu
        In the order of the problem's machine types.
    rule : QueueingRule
        What turned operating points into supply.
    points : FrozenMap
        ``{(service, block): (OperatingPoint, ...)}``: what an instance that serves this service
        runs; there is one point.
    warnings : tuple of str
        What looks odd about the data; show them.
    unservable : FrozenMap
        ``{service: why}`` for services that no operating point can serve within their limit, with
        the best one and the limit it needs. If there is one, the problem is infeasible.
    max_processes : int or None
        Points with more processes in an instance were left out.
    fills : FrozenMap
        ``{(service, block): FillTimes}``: how long batches that are not full take at these points.
    rate_margin : Fraction
        A job's demand is its service's rate and this share of it more.

    Examples
    --------
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, "60.5", 33)
    >>> services = [Service(f"chat {i}", "bert", 100, limit) for i, limit in [(1, 100), (2, 50)]]
    >>> print(as_problem(services, [point], "a30-24gb"))
    2 services on a30-24gb, rule 'capacity'
    1 blocks in 1 configurations, 1 operating points in use
    not servable: chat 2
    """

    problem: Problem
    services: tuple[Service, ...]
    gpus: tuple[Gpu, ...]
    rule: QueueingRule
    points: FrozenMap[tuple[str, Block], tuple[OperatingPoint, ...]]
    warnings: tuple[str, ...] = ()
    unservable: FrozenMap[str, str] = field(default_factory=FrozenMap)
    max_processes: int | None = None
    fills: FrozenMap[tuple[str, Block], FillTimes] = field(default_factory=FrozenMap)
    rate_margin: Fraction = Fraction(0)

    def __str__(self) -> str:
        blocks, shapes = len(self.problem.blocks), len(self.problem.configurations)
        used = f"{sum(map(len, self.points.values()))} operating points in use"
        lines = [
            f"{self._in_short}, rule {self.rule.name!r}",
            f"{blocks} blocks in {shapes} configurations, {used}",
        ]
        if self.unservable:
            names = [*self.unservable][:_NAMES_SHOWN]
            more = len(self.unservable) - len(names)
            lines.append(f"not servable: {', '.join(names)}{f' and {more} more' if more else ''}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"ServingProblem({self._in_short})"

    @property
    def _in_short(self) -> str:
        return f"{len(self.services)} services on {', '.join(one.key for one in self.gpus)}"

    @property
    def promise(self) -> Promise | None:
        """What a plan may say of latencies; None if that is nothing.

        The rule may promise nothing, or no service have a limit.
        """
        promise = self.rule.promise
        if self.services and all(each.latency_limit_ms is None for each in self.services):
            return None
        return None if promise is None else replace(promise, rate_margin=self.rate_margin)

    def fill_times(self, service: str, block: Block) -> FillTimes:
        """Return how long batches take in such an instance; KeyError if it cannot serve it."""
        (point,) = self.points[service, block]
        return self.fills.get((service, block)) or FillTimes({point.batch: point.batch_ms})

    def service(self, name: str) -> Service:
        """Return a service by its name; KeyError if there is none."""
        return self.services[self.problem.job_index(name)]

    def supply(self, service: str, block: Block) -> Fraction:
        """Return the items per second that one such block counts for; 0 if it cannot serve it."""
        problem = self.problem
        return problem.rows.supply(problem.job_index(service), problem.block_index[block])

    def served(self, service: str, block: Block) -> tuple[Served, ...]:
        """Return what such an instance does for a service; nothing if it cannot serve it."""
        rate, limit = self.supply(service, block), self.service(service).latency_limit_ms
        return tuple(
            Served(service, point, rate, None if limit is None else limit - point.latency_ms)
            for point in self.points.get((service, block), ())
        )

    def gpu_of(self, machine: str | None) -> Gpu:
        """Return the GPU behind a machine type; KeyError if there is none."""
        for found in self.gpus:
            if found.key == machine or (machine is None and len(self.gpus) == 1):
                return found
        raise KeyError(machine)

    def profile_of(self, block: Block) -> str:
        """Return a block's profile, without the GPU's key before it.

        Examples
        --------
        >>> point = OperatingPoint("bert", "h100-80gb", "3g.40gb", 1, 1, 300, 10)
        >>> other = OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 1, 180, 14)
        >>> service = Service("chat", "bert", rate_rps=1000, latency_limit_ms=60)
        >>> serving = as_problem([service], [point, other], ["a100-80gb", "h100-80gb"])
        >>> serving.problem.blocks, serving.profile_of("h100-80gb:3g.40gb")
        (('a100-80gb:3g.40gb', 'h100-80gb:3g.40gb'), '3g.40gb')
        """
        return self.instance_of(block)[1]

    def instance_of(self, block: Block) -> InstanceKind:
        """Return the GPU's key and the profile behind a block."""
        if len(self.gpus) == 1:
            return self.gpus[0].key, block
        key, _, profile = block.partition(":")
        return key, profile


def as_problem(
    services: Iterable[Service],
    operating_points: Iterable[OperatingPoint],
    gpus: str | Gpu | Sequence[str | Gpu] | None = None,
    *,
    rule: str | QueueingRule = DEFAULT_RULE,
    load_curves: Mapping[PointKey, LoadCurve] | None = None,
    rate_margin: Number = 0,
    max_processes: int | None = None,
    limits: Mapping[str, int] | None = None,
    costs: Mapping[str, Number] | None = None,
    mps: bool = True,
) -> ServingProblem:
    """Turn services and measured operating points into a problem.

    Each GPU may take a maximal multiset of the MIG profiles that were measured for one of the
    services and that it allows, or be shared under MPS as a whole where shares were measured. An
    instance serves a service at the admissible operating point with the largest supply.

    Parameters
    ----------
    services : iterable of Service
    operating_points : iterable of OperatingPoint
        Those of models that no service runs and of other GPUs than `gpus` are left aside.
    gpus : str, Gpu or a sequence of them, optional
        Keys or aliases of the catalogue, or a user's own (:func:`cms.fleet.read_gpu`). By default
        the one GPU that all points were measured on.
    rule : str or QueueingRule, default ``"capacity"``
        What an instance counts for; see :data:`cms.fleet.serving.RULES`.
    load_curves : mapping, optional
        Load curves of operating points (:func:`cms.fleet.read_load_curves`), which go before the
        table of the rule ``capacity``.
    rate_margin : number, default 0
        Plan for rates that are higher by this share: 0.1 for 10 %. Rates are those of the busiest
        window of about a minute, never a daily mean.
    max_processes : int, optional
        Leave out operating points with more processes in an instance.
    limits : mapping, optional
        ``{gpu: number there are}``; without an entry, any number.
    costs : mapping, optional
        ``{gpu: cost of one}``; without an entry, 1.
    mps : bool, default True
        Whether points measured under MPS shares of a whole GPU (``mps:40``) may be used.

    Returns
    -------
    ServingProblem

    Raises
    ------
    InvalidProblem
        If a service or point is there twice, or a model, device or profile is not known or was not
        measured; the message has the nearest name.
    InvalidOption
        If there is no such GPU or rule, or the points are of several GPUs and `gpus` is left open.

    Examples
    --------
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 1, "74.408", 13),
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "202.1", 10),
    ... ]
    >>> serving = as_problem([service], points)
    >>> serving.problem.jobs[0]
    Job(name='chat', demand=Fraction(100, 1), demand_function=DemandFunction({'1g.10gb': \
Fraction(51341, 1000), '3g.40gb': Fraction(176837, 1000)}))
    >>> print(*serving.points["chat", "3g.40gb"])
    bert on 3g.40gb, 1 process, batch 2: 202.1 items/s at 10 ms
    """
    operating_points = tuple(operating_points)
    if gpus is None:
        gpus = only_device(operating_points) or DEFAULT_GPU
    fleet = _fleet(gpus)
    how = _with_curves(queueing_rule(rule), load_curves)
    margin = exact(rate_margin, "the rate margin", error=InvalidOption)
    _require_processes(max_processes)
    wanted = _unique(services)
    known = measurements(operating_points, fleet, mps=mps, max_processes=max_processes)
    prefix = {one.key: f"{one.key}:" if len(fleet) > 1 else "" for one in fleet}
    points: dict[tuple[str, Block], tuple[OperatingPoint, ...]] = {}
    unservable: dict[str, str] = {}
    on: dict[tuple[str, Block], list[OperatingPoint]] = {}
    used: dict[InstanceKind, None] = {}
    jobs = []
    for service in wanted:
        candidates = points_for(service, known, fleet)
        used.update(dict.fromkeys(candidates))
        supply: dict[Block, Fraction] = {}
        for (key, profile), own in candidates.items():
            amount, point = _best(service, own, how)
            if amount:
                block = prefix[key] + profile
                supply[block], points[service.name, block] = amount, (point,)
                on[service.name, block] = own
        if service.rate_rps and not supply:
            unservable[service.name] = _why_unservable(service, candidates, how)
        jobs.append(Job(service.name, service.rate_rps * (1 + margin), supply))
    problem = Problem(
        configurations=[shape for one in fleet for shape in shapes(one, used, prefix[one.key])],
        jobs=jobs,
        machine_types=_machine_types(fleet, limits, costs),
    )
    mine = {service.model: known.measured[service.model] for service in wanted}
    measured = [p for own in mine.values() for each in own.values() for p in each]
    units = unit_warnings(measured)
    # latencies in a wrong unit make every limit look wrong: one mistake, one warning
    odd_limits = () if units else limit_warnings(wanted, mine)
    slow = () if units or how.promise is None else batch_time_warnings(measured)
    warnings = (
        *units, *slow, *odd_limits, *shrinking_warnings(mine, fleet), *column_warnings(wanted),
    )  # fmt: skip
    return ServingProblem(
        problem=problem,
        services=wanted,
        gpus=fleet,
        rule=how,
        points=FrozenMap(points),
        warnings=warnings,
        unservable=FrozenMap(unservable),
        max_processes=max_processes,
        fills=FrozenMap(_fills(points, on)),
        rate_margin=margin,
    )


def _with_curves(rule: QueueingRule, curves: Mapping[PointKey, LoadCurve] | None) -> QueueingRule:
    if curves is None:
        return rule
    if not isinstance(rule, CapacityRule):
        raise InvalidOption(
            f"load curves are given, which the rule {rule.name!r} does not ask for; leave them "
            "out, or take the rule 'capacity'"
        )
    return rule.with_curves(curves)


def _fills(
    points: Mapping[tuple[str, Block], tuple[OperatingPoint, ...]],
    on: Mapping[tuple[str, Block], Sequence[OperatingPoint]],
) -> dict[tuple[str, Block], FillTimes]:
    """The times of the smaller batches, once an instance and model: services may share them."""
    known: dict[int, tuple[Sequence[OperatingPoint], dict[PointKey, FillTimes]]] = {}
    for pair, (point,) in points.items():
        own = on[pair]
        _, found = known.setdefault(id(own), (own, {}))
        if key_of(point) not in found:
            found |= fills_of([point], own)
    return {pair: known[id(on[pair])][1][key_of(point)] for pair, (point,) in points.items()}


def _fleet(gpus: str | Gpu | Sequence[str | Gpu]) -> tuple[Gpu, ...]:
    chosen = (gpus,) if isinstance(gpus, str | Gpu) else tuple(gpus)
    fleet = tuple(one if isinstance(one, Gpu) else gpu(one) for one in chosen)
    if not fleet:
        raise InvalidOption(f"no GPU type to plan with; name at least one, such as {DEFAULT_GPU!r}")
    keys = [one.key for one in fleet]
    if len(set(keys)) < len(keys):
        raise InvalidOption(f"a GPU type is named twice: {', '.join(keys)}; name each once")
    return fleet


def _require_processes(max_processes: int | None) -> None:
    if max_processes is not None and (type(max_processes) is not int or max_processes < 1):
        raise InvalidOption(f"max_processes is {max_processes!r}; expected an integer >= 1")


def _unique(services: Iterable[Service]) -> tuple[Service, ...]:
    found: dict[str, Service] = {}
    for service in services:
        if service.name in found:
            raise service.fault(
                f"two services are called {service.name!r}; every service needs a name of its own"
            )
        found[service.name] = service
    return tuple(found.values())


def _best(
    service: Service, points: Sequence[OperatingPoint], rule: QueueingRule
) -> tuple[Fraction, OperatingPoint]:
    """Return the largest supply; ties go to the lower latency, fewer processes, smaller batch."""
    ranked = (
        (rule.supply(service, point), -point.latency_ms, -point.processes, -point.batch, at)
        for at, point in enumerate(points)
    )
    amount, *_, at = max(ranked)
    return amount, points[at]


def _why_unservable(
    service: Service,
    candidates: Mapping[InstanceKind, Sequence[OperatingPoint]],
    rule: QueueingRule,
) -> str:
    """Name the point that comes nearest to the limit, and the limit that would admit it."""
    fastest = min(
        (point for own in candidates.values() for point in own),
        key=lambda point: (point.latency_ms, -point.throughput_rps),
    )
    limit = service.latency_limit_ms
    meets = "serves it" if limit is None else f"meets {shown(limit)} ms"
    return (
        f"{service.name}: no profile {meets} under the "
        f"rule {rule.name!r}; best: {fastest.setting}: {rule.refusal(service, fastest)}"
    )


def shapes(
    one: Gpu, used: Iterable[InstanceKind], prefix: str
) -> Iterable[Configuration | SizeBoundedConfigurations]:
    """Say what a GPU can be: cut up by MIG, or with MIG off shared under MPS."""
    profiles = [profile for key, profile in used if key == one.key]
    shares = sorted(share for name in profiles if (share := mps_share(name)) is not None)
    if mig := [name for name in profiles if mps_share(name) is None]:
        yield from one.configurations_of(mig, prefix=prefix)
    if shares:
        yield mps_shares(shares, machine=one.key, prefix=prefix)


def _machine_types(
    fleet: Sequence[Gpu], limits: Mapping[str, int] | None, costs: Mapping[str, Number] | None
) -> list[MachineType]:
    limit, cost = _by_key("limit", limits, fleet), _by_key("cost", costs, fleet)
    return [
        MachineType(one.key, cost=cost.get(one.key, 1), limit=limit.get(one.key)) for one in fleet
    ]


def _by_key(what: str, given: Mapping[str, T] | None, fleet: Sequence[Gpu]) -> dict[str, T]:
    result: dict[str, T] = {}
    for name, value in (given or {}).items():
        called = [one.key for one in fleet if is_called(one, name)]
        if not called:
            keys = [one.key for one in fleet]
            raise InvalidOption(
                f"a {what} is given for the GPU {name!r}, which is not in this fleet"
                f"{nearest(name, keys)}; "
                f"expected one of {', '.join(keys)}"
            )
        if called[0] in result:
            raise InvalidOption(
                f"a {what} is given for {called[0]} twice, once as {name!r}; give it once"
            )
        result[called[0]] = value
    return result
