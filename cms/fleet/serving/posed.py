"""Services on GPUs and the problem that they pose, whatever a block serves at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

from ...problem.machine_problem import MachineProblem
from ...problem.parts import Block, GroupLimit
from ...schedule.contents import Content
from ...values.frozen import FrozenMap
from ...values.numbers import Number
from ..hardware import Gpu
from .available import AvailableGpus
from .gpus_used import build_machine_types, list_configurations
from .measurements import (
    InstanceKind,
    Measurements,
    batch_time_warnings,
    limit_warnings,
    shrinking_warnings,
    unit_warnings,
)
from .operating_point import OperatingPoint
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
class Posed(ABC, Generic[P]):
    """A problem, and what its jobs and blocks stand for: what all kinds of sharing have in common.

    There is one job a service and one block a profile (with several GPU types
    ``a100-80gb:3g.40gb``); machine types are GPU keys, or those of `available`.
    """

    problem: P
    services: tuple[Service, ...]  #: in the order of the problem's jobs
    gpus: tuple[Gpu, ...]  #: in the order of the problem's machine types, each once
    #: By service and block: what an instance may run for this service.
    points: FrozenMap[tuple[str, Block], tuple[OperatingPoint, ...]]
    warnings: tuple[str, ...] = ()  #: what looks odd about the data; show them
    #: ``{service: why}`` for services that no operating point can serve within their limit, with
    #: the best one and the limit it needs. If there is one, the problem is infeasible.
    unservable: FrozenMap[str, str] = field(default_factory=FrozenMap)
    max_processes: int | None = None  #: points with more processes in an instance were left out
    rate_margin: Fraction = Fraction(0)  #: rates were taken to be higher by this share
    routing: str = "weighted"  #: of a service's requests over its instances, or ``equal``
    replica_share: Fraction | None = None  #: of its service's rate, as of :func:`build_problem`
    #: The GPUs that are there, in the order of the problem's machine types; empty: any empty ones.
    available: tuple[AvailableGpus, ...] = ()
    currency: str = ""  #: of costs, which are then by the hour; empty: costs are numbers

    @property
    @abstractmethod
    def rule_name(self) -> str:
        """What the rule is called that says what an instance counts for."""

    @abstractmethod
    def planned_rps(self, service: Service) -> Fraction:
        """Return the rate that is planned for: the service's, and what is added to it."""

    @abstractmethod
    def served(self, content: Content, block: Block) -> tuple[Served, ...]:
        """Return what such an instance does for what it is given to, a line a service.

        Nothing, if it is given to a service that it cannot serve.
        """

    @property
    def splits(self) -> str:
        """How a GPU is shared under MPS, a word of ``SPLITS``."""
        return "any"

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


class PlanRequest(NamedTuple):
    """Services, what was measured of their models on these GPUs, and the terms of a plan."""

    services: tuple[Service, ...]
    fleet: tuple[Gpu, ...]
    known: Measurements
    margin: Fraction = Fraction(0)
    max_processes: int | None = None
    limits: Mapping[str, int] | None = None
    costs: Mapping[str, Number] | None = None
    group_limits: tuple[GroupLimit, ...] = ()
    routing: str = "weighted"
    replica_share: Fraction | None = None
    available: tuple[AvailableGpus, ...] = ()
    currency: str = ""

    @property
    def measured(self) -> dict[str, Mapping[InstanceKind, Sequence[OperatingPoint]]]:
        """The points of each model that a service runs."""
        return {each.model: self.known.measured[each.model] for each in self.services}

    @property
    def points(self) -> list[OperatingPoint]:
        """The points of models that a service runs, in a row."""
        return [point for own in self.measured.values() for each in own.values() for point in each]

    def limit_to(self, used: Iterable[InstanceKind]) -> PlanRequest:
        """Return the request with GPUs together that only differ in profiles that nothing uses."""
        if not self.available:
            return self
        profiles = [*used]
        found: dict[AvailableGpus, int] = {}
        names: dict[str, str] = {}
        for each in self.available:
            own = {profile for key, profile in profiles if key == each.gpu}
            alike = replace(each.limit_to(own), count=0)
            found[alike] = found.get(alike, 0) + each.count
            names[each.name] = alike.name
        groups = tuple(
            GroupLimit(one.name, {names[key]: n for key, n in one.weights.items()}, one.at_most)
            for one in self.group_limits
        )
        there = tuple(replace(each, count=n) for each, n in found.items())
        return self._replace(available=there, group_limits=groups)

    def build_machines(self, used: Iterable[InstanceKind], splits: str = "any") -> dict[str, Any]:
        """Return the configurations with these kinds of instances, and the machine types."""
        types, groups = build_machine_types(self.fleet, self.limits, self.costs, self.available)
        return {
            "configurations": list_configurations(self.fleet, used, splits, self.available),
            "machine_types": types,
            "group_limits": (*self.group_limits, *groups),
        }

    @property
    def kept(self) -> dict[str, Any]:
        """What a serving problem keeps as it is."""
        own = "services", "max_processes", "routing", "replica_share", "available", "currency"
        kept = {name: getattr(self, name) for name in own}
        return kept | {"gpus": self.fleet, "rate_margin": self.margin}

    def warnings(self, *, batches: bool) -> tuple[str, ...]:
        """Say what looks odd about services and points that are known to go together.

        `batches`: whether to name points whose latency is not what their throughput says.
        """
        units = unit_warnings(self.points)
        # latencies in a wrong unit make every limit look wrong: one mistake, one warning
        odd_limits = () if units else limit_warnings(self.services, self.measured)
        slow = batch_time_warnings(self.points) if batches and not units else ()
        return (*units, *slow, *odd_limits, *shrinking_warnings(self.measured, self.fleet))
