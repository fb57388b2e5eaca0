"""From services and operating points to a problem, with the point behind every supply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from ...problem.parts import Block, Job, Replicas
from ...problem.problem import Problem
from ...schedule.contents import Content
from ...values.frozen import FrozenMap
from ...values.numbers import shown
from .gpus_used import block_prefixes
from .load_curve import FillTimes, PointKey, fills_of, key_of
from .measurements import InstanceKind, find_points
from .operating_point import OperatingPoint, find_best_point
from .posed import PlanRequest, Posed, Served
from .queueing import QueueingRule
from .service import Promise, Service


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
    fills: FrozenMap[tuple[str, Block], FillTimes] = field(default_factory=FrozenMap)

    @property
    def rule_name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def planned_rps(self, service: Service) -> Fraction:
        """Return the service's rate with the margin."""
        return service.rate_rps * (1 + self.rate_margin)

    @property
    def promise(self) -> Promise | None:
        """What a plan may say of latencies; None if that is nothing.

        The rule may promise nothing, or no service have a limit.
        """
        promise = self.rule.promise
        if self.services and all(each.latency_limit_ms is None for each in self.services):
            return None
        if promise is None:
            return None
        return replace(promise, rate_margin=self.rate_margin, routing=self.routing)

    def fill_times(self, service: str, block: Block) -> FillTimes:
        """Return how long batches take in such an instance; KeyError if it cannot serve it."""
        (point,) = self.points[service, block]
        return self.fills.get((service, block)) or FillTimes({point.batch: point.batch_ms})

    def supply(self, service: str, block: Block) -> Fraction:
        """Return the items per second that one such block counts for; 0 if it cannot serve it."""
        problem = self.problem
        return problem.rows.supply(problem.job_index(service), problem.block_index[block])

    def can_serve(self, service: str) -> bool:
        """Whether some block serves it within its limit, and enough for a replica."""
        most = max(self.supply(service, block) for block in self.problem.blocks)
        return most > 0 and most >= _least_replica(
            self.problem.jobs[self.problem.job_index(service)]
        )

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
    prefix = block_prefixes(request.fleet)
    points: dict[tuple[str, Block], tuple[OperatingPoint, ...]] = {}
    fills: dict[tuple[str, Block], FillTimes] = {}
    known: dict[tuple[int, PointKey], FillTimes] = {}  # services may share their points
    unservable: dict[str, str] = {}
    used: dict[InstanceKind, None] = {}
    jobs = []
    for service in request.services:
        candidates = find_points(service, request.known, request.fleet)
        used.update(dict.fromkeys(candidates))
        supply: dict[Block, Fraction] = {}
        for (key, profile), own in candidates.items():
            amount, point = find_best_point(own, partial(rule.supply, service))
            if amount:
                block, place = prefix[key] + profile, (id(own), key_of(point))
                supply[block], points[service.name, block] = amount, (point,)
                if place not in known:
                    known[place] = fills_of([point], own)[key_of(point)]
                fills[service.name, block] = known[place]
        if service.rate_rps and not supply:
            unservable[service.name] = _why_unservable(service, candidates, rule)
        planned = service.rate_rps * (1 + request.margin)
        jobs.append(job := pose_job(service, planned, supply, request))
        if supply and max(supply.values()) < _least_replica(job):
            unservable[service.name] = (
                f"{service.name}: no instance serves {shown(_least_replica(job))} requests/s, as "
                f"each of its replicas has to; the most that one serves is "
                f"{shown(max(supply.values()))}: lower replica_share"
            )
    request = request.limit_to(used)
    return ServingProblem(
        problem=Problem(jobs=jobs, **request.build_machines(used)),
        rule=rule,
        points=FrozenMap(points),
        fills=FrozenMap(fills),
        warnings=request.warnings(batches=rule.promise is not None),
        unservable=FrozenMap(unservable),
        **request.kept,
    )


def pose_job(
    service: Service,
    planned: Fraction,
    supply: Mapping[Block, Fraction],
    terms: PlanRequest | ServingProblem,
) -> Job:
    """Pose the job of a service, with the replicas that it asks for.

    Without a share each of r serves 1 / (2 r) of the rate, so that none is one in name only. In
    equal shares none is; and where no instance serves so much, none of them matters much.
    """
    count, share, routing = service.min_replicas, terms.replica_share, terms.routing
    if share is None and count:
        small = max(supply.values(), default=Fraction(0)) < planned / (2 * count)
        share = Fraction(0) if small or routing == "equal" else None
    replicas = Replicas(count, share) if count else None
    return Job(service.name, planned, supply, replicas, routing)


def _least_replica(job: Job) -> Fraction:
    """Return what each replica has to serve."""
    return Fraction(0) if job.replicas is None else job.replicas.share * job.demand


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
