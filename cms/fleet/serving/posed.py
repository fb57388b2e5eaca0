"""Services on GPUs and the problem that they pose, whatever a block serves at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, TypeVar

from ...problem.machine_problem import MachineProblem
from ...problem.parts import Block
from ...schedule.contents import Content
from ...values.frozen import FrozenMap
from ..hardware import Gpu
from .measurements import InstanceKind
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

    There is one job a service and one block a profile (``3g.40gb``, with several GPU types
    ``a100-80gb:3g.40gb``); machine types are GPU keys.
    """

    problem: P
    services: tuple[Service, ...]  #: in the order of the problem's jobs
    gpus: tuple[Gpu, ...]  #: in the order of the problem's machine types
    #: By service and block: what an instance may run for this service.
    points: FrozenMap[tuple[str, Block], tuple[OperatingPoint, ...]]
    warnings: tuple[str, ...] = ()  #: what looks odd about the data; show them
    #: ``{service: why}`` for services that no operating point can serve within their limit, with
    #: the best one and the limit it needs. If there is one, the problem is infeasible.
    unservable: FrozenMap[str, str] = field(default_factory=FrozenMap)
    max_processes: int | None = None  #: points with more processes in an instance were left out
    rate_margin: Fraction = Fraction(0)  #: rates were taken to be higher by this share

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
    def can_serve(self, service: str) -> bool:
        """Whether some block serves it within its limit, if it has one."""

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
        for found in self.gpus:
            if found.key == machine or (machine is None and len(self.gpus) == 1):
                return found
        raise KeyError(machine)

    def profile_of(self, block: Block) -> str:
        """Return a block's profile, without the GPU's key before it."""
        return self.instance_of(block)[1]

    def instance_of(self, block: Block) -> InstanceKind:
        """Return the GPU's key and the profile behind a block."""
        if len(self.gpus) == 1:
            return self.gpus[0].key, block
        key, _, profile = block.partition(":")
        return key, profile
