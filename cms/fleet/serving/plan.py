"""A plan: a solution of a serving problem, read as GPUs, instances and services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

from ...certificate.certificate import Certificate
from ...errors import InvalidSchedule, UnsupportedProblem
from ...problem.machine_problem import MachineProblem
from ...problem.parts import Block, Configuration
from ...schedule.contents import Content
from ...schedule.schedule import MachineGroup
from ...solving.solution import Proof, Solution, Status
from ...time_sharing.prices import MixPrices
from ...values.numbers import shown
from ...values.views import Record, Tabular, Viewed
from ..hardware import Gpu, Placement
from .capacity import CapacityRule
from .gpus_used import AvailableGpus
from .latency_rule import LatencyRule
from .neighbours import NeighbourServing
from .operating_point import OperatingPoint
from .posing import AnyServing
from .service import Service, combine_supplies
from .serving_problem import Served, ServingProblem
from .time_sharing import SharedServing

#: Services that a printed plan lists before it says how many more there are.
_SERVICES_SHOWN = 6
_BRIEF = 24  # characters of a number in a printed plan


@dataclass(frozen=True, slots=True)
class Use:
    """Instances of one kind that serve one service, on all GPUs together."""

    block: Block  #: in the problem
    gpu: str  #: the GPU's key
    profile: str
    point: OperatingPoint  #: what each instance runs
    supply_rps: Fraction  #: what each counts for under the queueing rule
    count: int
    slack_ms: Fraction | None = None  #: as of :class:`Served`
    #: How long the cycle is in which the service takes its turn; None where nothing is shared.
    duty_cycle_ms: Fraction | None = None
    length_ms: Fraction | None = None  #: how long its slot in the cycle is

    def __str__(self) -> str:
        return f"{shown(self.count)} x {self.block}"


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What a plan gives one service."""

    service: Service
    uses: tuple[Use, ...]  #: in the order of the problem's blocks
    planned_rps: Fraction  #: the rate it asks for, with margin and head-room
    routing: str = "weighted"  #: of its requests over its instances, or ``equal``
    #: By which share all batches may take longer than measured until its limit breaks under the
    #: plan's rule. None without limit, requests or instances, and if the rule does not know.
    latency_headroom: Fraction | None = None

    @property
    def wanted_rps(self) -> Fraction:
        """The rate the service asks for."""
        return self.service.rate_rps

    @property
    def provided_rps(self) -> Fraction:
        """What its instances supply together in its routing."""
        return combine_supplies([(use.supply_rps, use.count) for use in self.uses], self.routing)

    @property
    def headroom_rps(self) -> Fraction:
        """Provided minus wanted; negative where there is no schedule."""
        return self.provided_rps - self.wanted_rps

    @property
    def headroom(self) -> Fraction | None:
        """Head-room as a share of the rate wanted; None for a rate of 0."""
        return self.headroom_rps / self.wanted_rps if self.wanted_rps else None

    @property
    def instances(self) -> int:
        """Number of instances that serve it."""
        return sum(use.count for use in self.uses)

    def __str__(self) -> str:
        by = ", ".join(map(str, self.uses)) or "nothing"
        wanted, provided = shown(self.wanted_rps), shown(self.provided_rps, _BRIEF)
        return f"{self.service.name}: {provided} requests/s by {by}, wanted {wanted}"


@dataclass(frozen=True, slots=True)
class Instances:
    """Equal instances on one GPU."""

    block: Block
    profile: str
    count: int  #: on *one* GPU
    serves: tuple[Served, ...] = ()  #: what each serves; empty if they idle

    @property
    def duty_cycle_ms(self) -> Fraction | None:
        """How long one round of its services takes; None if it serves at most one, all the time."""
        return duty_cycle_ms(self.serves)

    def __str__(self) -> str:
        names = " + ".join(one.service for one in self.serves) or "idle"
        return f"{self.count} x {self.profile} -> {names}"


class LatencyHeadroom(NamedTuple):
    """By which share batches may take longer until a limit breaks, and whose it is."""

    share: Fraction
    service: str


def duty_cycle_ms(serves: Iterable[Served]) -> Fraction | None:
    """Return how long the slots of an instance take together; None if there are none."""
    lengths = [one.length_ms for one in serves if one.length_ms is not None]
    return sum(lengths, Fraction(0)) if lengths else None


@dataclass(frozen=True, slots=True)
class PlanGroup:
    """GPUs that are cut and used alike."""

    gpu: str  #: their key
    configuration: Configuration
    #: Of one GPU: the used ones in the order of the problem's blocks and services, then the idle.
    instances: tuple[Instances, ...]
    count: int  #: of such GPUs
    available: AvailableGpus | None = None  #: what they are, in a plan for GPUs that are there

    @property
    def machine(self) -> str | None:
        """The machine type, in a plan for GPUs that are there."""
        return None if self.available is None else self.available.name

    def __str__(self) -> str:
        machine = self.machine or self.gpu
        return f"{shown(self.count)} x {machine}: {', '.join(map(str, self.instances))}"


@dataclass(frozen=True, repr=False)
class Plan(Viewed, Tabular):
    """A solution of a serving problem, in terms of GPUs, instances and services.

    InvalidSchedule if a solution is of another problem, or the two contradict each other.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Service, build_problem
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=400)
    >>> point = OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "60.5", 33)
    >>> serving = build_problem([service], [point])
    >>> plan = Plan(serving, solve(serving.problem))
    >>> plan.services[0].provided_rps, plan.services[0].headroom
    (Fraction(13567, 125), Fraction(1067, 12500))
    >>> [(group.count, group.gpu, len(group.instances)) for group in plan.groups]
    [(1, 'a100-80gb', 1)]
    >>> print(plan)
    1 x a100-80gb for 1 services: optimal, proof checked
    cost 1, lower bound 1
    chat: 108.536 requests/s by 2 x 3g.40gb, wanted 100
    """

    serving: AnyServing
    solution: Solution  #: of ``serving.problem``
    #: Of ``serving.outer``, under interference: its bound is the plan's. Without it nothing is
    #: known of how few GPUs would do.
    outer: Solution | None = None

    def __post_init__(self) -> None:
        _require_own("solution", self.solution, "problem", self.serving.problem)
        if self.outer is None:
            return
        if not isinstance(self.serving, NeighbourServing):
            raise InvalidSchedule(
                "an outer solution is given of a plan without interference, whose own solution has "
                "its bound; leave it out"
            )
        _require_own("outer solution", self.outer, "outer", self.serving.outer)
        cost, bound = self.solution.cost, self.outer.lower_bound
        if cost is not None and (self.outer.status is Status.INFEASIBLE or cost < bound):
            found = "infeasible" if self.outer.status is Status.INFEASIBLE else f">= {shown(bound)}"
            raise InvalidSchedule(
                f"the schedule costs {shown(cost)}, and what any costs is said to be {found}; one "
                "of the two is wrong"
            )

    def __str__(self) -> str:
        gpus = Counter[str]()
        for group in self.groups:
            gpus[group.gpu] += group.count
        needed = " + ".join(f"{shown(count)} x {key}" for key, count in gpus.items()) or "no GPU"
        solution = self.answer
        bound = f"lower bound {shown(solution.lower_bound)}"
        found = bound if solution.cost is None else f"cost {shown(solution.cost)}, {bound}"
        lines = [f"{needed} {self._for_whom}", found, *map(str, self.services[:_SERVICES_SHOWN])]
        if (more := len(self.services) - _SERVICES_SHOWN) > 0:
            lines.append(f"... and {more} more services")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Plan({shown(self.solution.schedule.machine_count)} GPUs {self._for_whom})"

    def _tables(self) -> Mapping[str, Iterable[Record]]:
        of_services = (
            "service.model", "wanted_rps", "planned_rps", "provided_rps", "headroom",
            "latency_headroom", "service.latency_limit_ms", "instances",
        )  # fmt: skip
        of_uses = (
            "gpu", "profile", "count", "point.processes", "point.batch", "supply_rps",
            "point.latency_ms", "slack_ms",
        )  # fmt: skip

        def row(service: ServicePlan, thing: object, paths: Iterable[str]) -> Record:
            values = {path.rpartition(".")[2]: attrgetter(path)(thing) for path in paths}
            return {"service": service.service.name, **values}

        return {
            "services": (row(each, each, of_services) for each in self.services),
            "instances": (row(each, use, of_uses) for each in self.services for use in each.uses),
            "gpus": (
                {
                    "group": nth,
                    "gpu": group.gpu,
                    "gpus": group.count,
                    "profile": each.profile,
                    "instances": each.count,
                    "services": ", ".join(served.service for served in each.serves) or None,
                }
                for nth, group in enumerate(self.groups)
                for each in group.instances
            ),
        }

    @property
    def _for_whom(self) -> str:
        proof = {"checked": ", proof checked", "solver": ", on a solver's word", "none": ""}
        status = self.answer.status.replace("_", " ") + proof[self.answer.proof]
        return f"for {len(self.serving.services)} services: {status}"

    @cached_property
    def answer(self) -> Solution:
        """What was found and what is proved of all plans: ``solution``, but under interference.

        There its certificate, bound and proof are those of ``outer``; a schedule of
        ``serving.problem`` is optimal if its cost is that bound.
        """
        found, outer = self.solution, self.outer
        if not isinstance(self.serving, NeighbourServing):
            return found
        bound, claimed, seconds = Fraction(0), None, found.seconds
        status, proof = Status.FEASIBLE, Proof.NONE
        certificate: Certificate = MixPrices()  # of the bound 0
        if outer is not None:
            bound, claimed, certificate = outer.lower_bound, outer.claimed_bound, outer.certificate
            seconds += 0 if outer is found else outer.seconds
        if outer is not None and outer.status is Status.INFEASIBLE:
            status, proof = Status.INFEASIBLE, outer.proof
        elif found.cost is None:
            status = Status.NO_SCHEDULE
        elif found.cost == bound:
            status, proof = Status.OPTIMAL, Proof.CHECKED
        elif found.cost == claimed:
            status, proof = Status.OPTIMAL, Proof.SOLVER
        return replace(
            found, status=status, proof=proof, certificate=certificate, lower_bound=bound,
            claimed_bound=claimed, seconds=seconds, guarantee=None, history=(),
        )  # fmt: skip

    @property
    def checkers(self) -> tuple[str, ...]:
        """The checkers that know the form of the plan's proof; the package's has accepted it."""
        unknown = isinstance(self.serving, SharedServing) or self.routing == "equal"
        return ("package", "independent", *(() if unknown else ("proved",)))

    @property
    def routing(self) -> str:
        """How requests have to be spread over the instances of a service."""
        promise = self.serving.promise
        own = "weighted" if promise is None else promise.routing
        return str(getattr(self.serving, "routing", own))

    def unshared(self, wanted_for: str, instead: str = "plan without sharing") -> ServingProblem:
        """Return the serving problem of a plan whose instances serve one service each.

        UnsupportedProblem, which says what to do `instead`, if services share instances in time.
        """
        if isinstance(self.serving, ServingProblem):
            return self.serving
        raise UnsupportedProblem(
            f"{wanted_for} takes plans whose instances serve one service each, and in this one "
            f"services share instances in time; {instead}"
        )

    @cached_property
    def groups(self) -> tuple[PlanGroup, ...]:
        """The GPUs, alike ones together, in the order of the schedule; empty without one."""
        return tuple(self._group(group) for group in self.solution.schedule.groups)

    @cached_property
    def services(self) -> tuple[ServicePlan, ...]:
        """What each service gets, in the order of the problem."""
        serving, counts = self.serving, Counter[tuple[Block, Content]]()
        for group in self.solution.schedule.groups:
            for pair, count in group.assignment.items():
                counts[pair] += group.count * count
        uses: dict[str, list[Use]] = {service.name: [] for service in serving.services}
        index = serving.problem.block_index
        for (block, content), count in sorted(counts.items(), key=lambda of: index[of[0][0]]):
            # a block may be given to a service that it cannot serve: wasteful, but valid
            serves, kind = serving.served(content, block), serving.instance_of(block)
            for one in serves:
                times = one.slack_ms, duty_cycle_ms(serves), one.length_ms
                use = Use(block, *kind, one.point, one.rate_rps, count, *times)
                uses[one.service].append(use)
        found = []
        for each in serving.services:
            own, planned = tuple(uses[each.name]), serving.planned_rps(each)
            given = ServicePlan(each, own, planned, serving.routing)
            found.append(replace(given, latency_headroom=self._find_headroom(given)))
        return tuple(found)

    @property
    def latency_headroom(self) -> LatencyHeadroom | None:
        """The least latency headroom of a service; None if none is known."""
        known = (
            LatencyHeadroom(each.latency_headroom, each.service.name)
            for each in self.services
            if each.latency_headroom is not None
        )
        return min(known, key=lambda each: each.share, default=None)

    def _find_headroom(self, given: ServicePlan) -> Fraction | None:
        """Find how much slower batches may be, at the planned rate in the promised shares.

        The rules of cycles are linear: a mix of batches that take f times as long needs f times the
        limit, and serves 1/f of the rates.
        """
        serving, service, planned = self.serving, given.service, given.planned_rps
        limit, provided = service.latency_limit_ms, given.provided_rps
        if limit is None or not planned or not given.uses:
            return None
        if isinstance(serving, SharedServing):
            needed = [limit - (use.slack_ms or 0) for use in given.uses]
            slower = min(limit / max(needed), provided / planned)
            return slower * (1 + serving.sharing.latency_margin) - 1
        rule = serving.rule
        if not isinstance(rule, CapacityRule | LatencyRule):
            return None
        is_equal = self.routing == "equal"
        loads = [
            planned / given.instances if is_equal else planned / provided * use.supply_rps
            for use in given.uses
        ]
        slowest = map(partial(rule.find_slowest, service), (u.point for u in given.uses), loads)
        return min(slowest) - 1

    def service(self, name: str) -> ServicePlan:
        """Return what one service gets; KeyError if there is none of this name."""
        return self.services[self.serving.problem.job_index(name)]

    def _group(self, group: MachineGroup) -> PlanGroup:
        serving, problem = self.serving, self.serving.problem
        index, place = problem.block_index, problem.job_index

        def order(entry: tuple[tuple[Block, Content], int]) -> tuple[Any, ...]:
            """By the blocks, then by the services that they are given to, then by the batches."""
            block, content = entry[0]
            amounts = {content: Fraction(0)} if isinstance(content, str) else content
            return index[block], sorted((place(name), amount) for name, amount in amounts.items())

        idle = dict(group.configuration.blocks)
        used = []
        for (block, content), count in sorted(group.assignment.items(), key=order):
            if serves := serving.served(content, block):
                idle[block] -= count
                used.append(Instances(block, serving.profile_of(block), count, serves))
        left = sorted(filter(idle.get, idle), key=index.__getitem__)
        rest = (Instances(block, serving.profile_of(block), idle[block]) for block in left)
        machine = group.configuration.machine
        gpu, there = serving.gpu_of(machine).key, serving.available_as(machine)
        return PlanGroup(gpu, group.configuration, (*used, *rest), group.count, there)


def _require_own(what: str, solution: Solution, name: str, problem: MachineProblem) -> None:
    mine, found = problem.sha256, solution.problem_sha256
    if mine != found:
        raise InvalidSchedule(
            f"the {what} is of another problem (SHA-256 {found[:12]}...), not of the serving "
            f"problem's (SHA-256 {mine[:12]}...); solve serving.{name}"
        )


def placed_instances(gpu: Gpu, group: PlanGroup) -> tuple[tuple[Placement, Instances], ...]:
    """Place the instances of one GPU of a plan's group, which MIG partitions, by their starts.

    Of one profile, those that are first in the group start first. InvalidSchedule if there is no
    place.
    """
    waiting: dict[str, list[Instances]] = {}
    for instances in group.instances:
        own = waiting.setdefault(gpu.profile(instances.profile).name, [])
        own.extend([instances] * instances.count)
    counts = {profile: len(own) for profile, own in waiting.items()}
    held = () if group.available is None else group.available.held
    around = [(e.profile, e.start) for e in held if e.start is not None and not e.serves]
    layout = gpu.place(counts, around=around)
    if layout is None:
        raise InvalidSchedule(f"instances that have no place: {gpu.why_not(counts, around=around)}")
    return tuple((place, waiting[place.profile].pop(0)) for place in layout)
