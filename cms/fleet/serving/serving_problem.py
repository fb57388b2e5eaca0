"""From services and operating points to a problem, with the point behind every supply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import chain
from typing import Any, Generic, TypeVar

from ...problem.machine_problem import MachineProblem
from ...problem.parts import Block, GroupLimit, Job, MachineType, Replicas
from ...problem.problem import Problem
from ...schedule.contents import Content
from ...values.frozen import FrozenMap
from ...values.numbers import Number, shown
from ..hardware import Gpu
from .gpus_used import AvailableGpus, block_prefixes, key_by_gpu, list_configurations, name_caps
from .load_curve import FillTimes, fills_of, key_of
from .measurements import InstanceKind, Measurements, find_odd_data, find_points, list_points
from .operating_point import OperatingPoint
from .queueing import QueueingRule
from .service import Promise, Service

P = TypeVar("P", bound=MachineProblem)
_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Served:
    """What an instance does for one of the services on it."""

    service: str
    point: OperatingPoint  #: what the instance runs for it
    rate_rps: Fraction  #: what the instance counts for under the queueing rule
    #: The service's latency limit less the latency of one batch, or where services share the
    #: instance in time, less what the rule of cycles needs; None without a limit.
    slack_ms: Fraction | None
    #: How long its slot in the instance's cycle is; None if it has the instance to itself.
    length_ms: Fraction | None = None


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ServingTerms:
    """What is to be planned on which GPUs: what a problem keeps of what was asked for."""

    services: tuple[Service, ...]  #: in the order of the problem's jobs
    gpus: tuple[Gpu, ...]  #: in the order of the problem's machine types, each once
    max_processes: int | None = None  #: points with more processes in an instance were left out
    rate_margin: Fraction = Fraction(0)  #: rates were taken to be higher by this share
    routing: str = "weighted"  #: of a service's requests over its instances, or ``equal``
    replica_share: Fraction | None = None  #: of its service's rate, as of :func:`build_problem`
    #: The GPUs that are there, in the order of the problem's machine types; empty: any empty ones.
    available: tuple[AvailableGpus, ...] = ()
    currency: str = ""  #: of costs, which are then by the hour; empty: costs are numbers

    def planned_rps(self, service: Service) -> Fraction:
        """Return the rate that is planned for: the service's with the margin."""
        return service.rate_rps * (1 + self.rate_margin)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Posed(ServingTerms, ABC, Generic[P]):
    """A problem, and what its jobs and blocks stand for: what all kinds of sharing have in common.

    There is one job a service and one block a profile (with several GPU types
    ``a100-80gb:3g.40gb``); machine types are GPU keys, or those of `available`.
    """

    problem: P
    #: By service and block: what an instance may run for this service.
    points: FrozenMap[tuple[str, Block], tuple[OperatingPoint, ...]]
    warnings: tuple[str, ...] = ()  #: what looks odd about the data; show them
    #: ``{service: why}`` for services that no operating point can serve within their limit, with
    #: the best one and the limit it needs. If there is one, the problem is infeasible.
    unservable: FrozenMap[str, str] = field(default_factory=FrozenMap)

    @property
    @abstractmethod
    def rule_name(self) -> str:
        """What the rule is called that says what an instance counts for."""

    @abstractmethod
    def served(self, content: Content, block: Block) -> tuple[Served, ...]:
        """Return what such an instance does for what it is given to, a line a service.

        Nothing, if it is given to a service that it cannot serve.
        """

    @abstractmethod
    def supply(self, service: str, block: Block) -> Fraction:
        """Return the most requests per second that one such block gives a service alone on it."""

    def can_serve(self, service: str) -> bool:
        """Whether some block serves it within its limit, if it has one."""
        return any(self.supply(service, block) for block in self.problem.blocks)

    @property
    def promise(self) -> Promise | None:
        """What a plan may say of the latencies of random arrivals; None if that is nothing."""
        return None

    def __str__(self) -> str:
        blocks, shapes = len(self.problem.blocks), len(self.problem.configurations)
        used = f"{sum(map(len, self.points.values()))} operating points in use"
        lines = [
            f"{self._in_short}, rule {self.rule_name!r}",
            f"{blocks} blocks in {shapes} configurations, {used}",
        ]
        if self.unservable:
            names = [*self.unservable][:_NAMES_SHOWN]
            more = len(self.unservable) - len(names)
            lines.append(f"not servable: {', '.join(names)}{f' and {more} more' if more else ''}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._in_short})"

    @property
    def _in_short(self) -> str:
        return f"{len(self.services)} services on {', '.join(one.key for one in self.gpus)}"

    def service(self, name: str) -> Service:
        """Return a service by its name; KeyError if there is none."""
        return self.services[self.problem.job_index(name)]

    def gpu_of(self, machine: str | None) -> Gpu:
        """Return the GPU behind a machine type; KeyError if there is none."""
        there = self.available_as(machine)
        key = machine if there is None else there.gpu
        for found in self.gpus:
            if found.key == key or (machine is None and len(self.gpus) == 1):
                return found
        raise KeyError(machine)

    def available_as(self, machine: str | None) -> AvailableGpus | None:
        """Return the GPUs that are there behind a machine type; None if it is of empty ones."""
        return next((each for each in self.available if each.name == machine), None)

    def profile_of(self, block: Block) -> str:
        """Return a block's profile, without the GPU's key before it."""
        return self.instance_of(block)[1]

    def instance_of(self, block: Block) -> InstanceKind:
        """Return the GPU's key and the profile behind a block."""
        if len(self.gpus) == 1:
            return self.gpus[0].key, block
        key, _, profile = block.partition(":")
        return key, profile


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(ServingTerms):
    """The terms of a plan, what was measured on its GPUs, and how many there are of them."""

    known: Measurements
    limits: Mapping[str, int] | None
    costs: Mapping[str, Number] | None
    group_limits: tuple[GroupLimit, ...]

    def find_candidates(
        self,
    ) -> tuple[list[dict[Block, list[OperatingPoint]]], dict[InstanceKind, None]]:
        """Return the points that each service may run, by block, and the instances of them all."""
        prefix = block_prefixes(self.gpus)
        found = [find_points(service, self.known, self.gpus) for service in self.services]
        by_block = [{prefix[k] + name: ps for (k, name), ps in own.items()} for own in found]
        return by_block, dict.fromkeys(kind for own in found for kind in own)

    def limit_to(self, used: Iterable[InstanceKind]) -> PlanRequest:
        """Return the request with GPUs together that only differ in profiles that nothing uses."""
        if not self.available:
            return self
        profiles, found, names = [*used], Counter[AvailableGpus](), dict[str, str]()
        for each in self.available:
            own = {profile for key, profile in profiles if key == each.gpu}
            alike = replace(each.limit_to(own), count=0)
            found[alike] += each.count
            names[each.name] = alike.name
        groups = tuple(
            GroupLimit(one.name, {names[key]: n for key, n in one.weights.items()}, one.at_most)
            for one in self.group_limits
        )
        there = tuple(replace(each, count=n) for each, n in found.items())
        return replace(self, available=there, group_limits=groups)

    def build_machines(self, used: Iterable[InstanceKind], splits: str = "any") -> dict[str, Any]:
        """Return the configurations with these kinds of instances, the machine types and limits.

        InvalidOption for a limit or cost of no GPU here, or given twice.
        """
        limits = key_by_gpu("limit", self.limits, self.gpus)
        costs = key_by_gpu("cost", self.costs, self.gpus)
        there, groups = self.available, [*self.group_limits]
        types = [MachineType(g.key, costs.get(g.key, 1), limits.get(g.key)) for g in self.gpus]
        if there:
            prices = {each.name: each.cost for each in types}
            types = [MachineType(each.name, each.cost(prices), each.count) for each in there]
            names = {key: name for name, key in name_caps(there).items()}
            for key, cap in limits.items():
                own = {each.name: each.count for each in there if each.gpu == key}
                if cap < sum(own.values()):
                    groups.append(GroupLimit(names[key], dict.fromkeys(own, 1), cap))
        return {
            "configurations": list_configurations(self.gpus, used, splits, there),
            "machine_types": types,
            "group_limits": groups,
        }

    @property
    def kept(self) -> dict[str, Any]:
        """What a serving problem keeps as it is."""
        return {each.name: getattr(self, each.name) for each in fields(ServingTerms)}


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ServingProblem(Posed[Problem]):
    """A problem of blocks that serve one service each, and what its jobs and blocks stand for.

    There is one point for each service and block; a job's demand is its service's planned rate.

    Examples
    --------
    >>> from cms.fleet import build_problem
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, "60.5", 33)
    >>> print(build_problem([Service("chat", "bert", 100, 100)], [point], "a30-24gb"))
    1 services on a30-24gb, rule 'capacity'
    1 blocks in 1 configurations, 1 operating points in use
    """

    rule: QueueingRule  #: what turned operating points into supply
    #: By service and block: how long batches that are not full take at these points.
    fills: FrozenMap[tuple[str, Block], FillTimes]

    @property
    def rule_name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def promise(self) -> Promise | None:
        """What a plan may say of latencies; None if that is nothing.

        The rule may promise nothing, or no service have a limit.
        """
        promise, limits = self.rule.promise, [each.latency_limit_ms for each in self.services]
        if promise is None or (limits and set(limits) == {None}):
            return None
        return replace(promise, rate_margin=self.rate_margin, routing=self.routing)

    def supply(self, service: str, block: Block) -> Fraction:
        """Return the items per second that one such block counts for; 0 if it cannot serve it."""
        problem = self.problem
        return problem.rows.supply(problem.job_index(service), problem.block_index[block])

    def can_serve(self, service: str) -> bool:
        """Whether some block serves it within its limit, and enough for a replica."""
        problem = self.problem
        most = max(self.supply(service, block) for block in problem.blocks)
        return 0 < most >= _least_replica(problem.jobs[problem.job_index(service)])

    def served(self, content: Content, block: Block) -> tuple[Served, ...]:
        """Return what such an instance does for a service; nothing if it cannot serve it."""
        if not isinstance(content, str):
            return ()
        rate, limit = self.supply(content, block), self.service(content).latency_limit_ms
        return tuple(
            Served(content, point, rate, None if limit is None else limit - point.latency_ms)
            for point in self.points.get((content, block), ())
        )


def pose_unshared(request: PlanRequest, rule: QueueingRule) -> ServingProblem:
    """Pose the problem in which a block serves one service; see :func:`build_problem`."""
    points: dict[tuple[str, Block], tuple[OperatingPoint, ...]] = {}
    unservable: dict[str, str] = {}
    jobs = []
    candidates, used = request.find_candidates()
    for service, by_block in zip(request.services, candidates, strict=True):
        supply: dict[Block, Fraction] = {}
        for block, own in by_block.items():
            ranked = (  # ties go to the lower latency, then fewer processes, then the smaller batch
                (rule.supply(service, each), -each.latency_ms, -each.processes, -each.batch, at)
                for at, each in enumerate(own)
            )
            amount, *_, at = max(ranked)
            if amount:
                supply[block], points[service.name, block] = amount, (own[at],)
        if service.rate_rps and not supply:
            every = chain.from_iterable(by_block.values())
            unservable[service.name] = _why_unservable(service, every, rule)
        jobs.append(job := pose_job(service, supply, request))
        if supply and (most := max(supply.values())) < (least := _least_replica(job)):
            unservable[service.name] = (
                f"{service.name}: no instance serves {shown(least)} requests/s, as each of its "
                f"replicas has to; the most that one serves is {shown(most)}: lower replica_share"
            )
    measured = list_points(request.services, request.known)
    fills = fills_of(chain.from_iterable(points.values()), measured)
    request, batches = request.limit_to(used), rule.promise is not None
    return ServingProblem(
        problem=Problem(jobs=jobs, **request.build_machines(used)),
        rule=rule,
        points=FrozenMap(points),
        fills=FrozenMap({pair: fills[key_of(point)] for pair, (point,) in points.items()}),
        warnings=find_odd_data(request.services, request.known, request.gpus, batches=batches),
        unservable=FrozenMap(unservable),
        **request.kept,
    )


def pose_job(service: Service, supply: Mapping[Block, Fraction], terms: ServingTerms) -> Job:
    """Pose the job of a service, with the replicas that it asks for.

    Without a share each of r serves 1 / (2 r) of the rate, so that none is one in name only. In
    equal shares none is; and where no instance serves so much, none of them matters much.
    """
    planned, routing = terms.planned_rps(service), terms.routing
    count, share = service.min_replicas, terms.replica_share
    if share is None and count:
        small = max(supply.values(), default=Fraction(0)) < planned / (2 * count)
        share = Fraction(0) if small or routing == "equal" else None
    replicas = Replicas(count, share) if count else None
    return Job(service.name, planned, supply, replicas, routing)


def _least_replica(job: Job) -> Fraction:
    """Return what each replica has to serve."""
    return Fraction(0) if job.replicas is None else job.replicas.share * job.demand


def _why_unservable(service: Service, points: Iterable[OperatingPoint], rule: QueueingRule) -> str:
    """Name the point that comes nearest to the limit, and the limit that would admit it."""
    fastest = min(points, key=lambda point: (point.latency_ms, -point.throughput_rps))
    limit = service.latency_limit_ms
    meets = "serves it" if limit is None else f"meets {shown(limit)} ms"
    return (
        f"{service.name}: no profile {meets} under the "
        f"rule {rule.name!r}; best: {fastest.setting}: {rule.refusal(service, fastest)}"
    )
