"""What the simulator knows of a plan: services, their limits, and the instances that serve them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidOption
from ...values.fields import CheckedFields
from ...values.numbers import exact, shown
from ..serving.load_curve import FillTimes
from ..serving.operating_point import OperatingPoint
from ..serving.plan import Plan
from ..serving.queueing import QueueingRule, evidence_of
from ..serving.service import Service

Bits: TypeAlias = NDArray[np.uint64]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Int32s: TypeAlias = NDArray[np.int32]
Shorts: TypeAlias = NDArray[np.int16]
#: Nanoseconds a second, and a millisecond.
SECOND, MILLISECOND = 10**9, 10**6
#: Nine years: with room for what comes on top, it stays below 2**62 nanoseconds.
LONGEST_NS = 2**58
#: Requests a second of one service: a gap between two is some nanoseconds.
FASTEST = 10**8
#: A plan may have 10^12 GPUs; each instance that is simulated takes some memory.
MOST_STATIONS = 2**20
LARGEST_BATCH = 2**20 - 1
#: Tolerated if a service says nothing else: "p99 is within the limit".
LATE_SHARE = Fraction(1, 100)
#: Characters of a number in a message.
BRIEF = 30


class BriefFields(CheckedFields):
    """Fields that a user writes: a number of hundreds of digits is shown in brief."""

    refusal = InvalidOption

    def _refuse(self, field: str, expected: str) -> Exception:
        value = exact(getattr(self, field), field)
        return self.refusal(f"{self._what(field)} is {shown(value, BRIEF)}; expected {expected}")


@dataclass(frozen=True, slots=True)
class ModelledInstance:
    """An instance as queueing theory sees it."""

    weight: Fraction  #: Its share of the requests, as a number of any scale: its supply.
    processes: int  #: How many batches it works on at a time
    #: The times of batches of 1, 2, ... requests, in nanoseconds, up to the largest.
    fill_ns: tuple[int, ...]
    #: ``instance`` if all processes take from one queue; ``process`` if each has a queue of its
    #: own, between which the instance's share is split evenly.
    queue: str = "instance"
    gpu: int = 0  #: The GPU it is on
    block: str = ""  #: What it is in the plan

    def __post_init__(self) -> None:
        if self.weight < 0 or self.processes < 1 or not self.fill_ns or min(self.fill_ns) < 1:
            had = f"weight {self.weight}, {self.processes} processes, batches {self.fill_ns[:3]} ns"
            raise InvalidOption(f"an instance has {had}; expected >= 0, >= 1 and integers >= 1")
        if len(self.fill_ns) > LARGEST_BATCH:
            raise InvalidOption(
                f"a batch holds {len(self.fill_ns):,} requests; expected at most {LARGEST_BATCH:,}"
            )
        if self.queue not in ("instance", "process"):
            raise InvalidOption(f"queue is {self.queue!r}; expected 'instance' or 'process'")

    @property
    def capacity(self) -> Fraction:
        """Requests a second that it works off in full batches."""
        return Fraction(self.processes * len(self.fill_ns) * SECOND, self.fill_ns[-1])


@dataclass(frozen=True, slots=True)
class ModelledService:
    """A service as queueing theory sees it."""

    name: str
    rate: Fraction  #: Requests a second
    limit_ns: int | None  #: A request that takes longer is late; None: no request is.
    late_share: Fraction  #: How many may be late
    instances: tuple[ModelledInstance, ...]
    #: Why a replay by batches says nothing of whether its limit is met; empty: it does.
    not_replayed: str = ""

    def __post_init__(self) -> None:
        # no batch takes less than a nanosecond, and shares of the limit are printed
        if self.limit_ns is not None:
            object.__setattr__(self, "limit_ns", max(self.limit_ns, 1))

    @property
    def load(self) -> Fraction | None:
        """The rate as a share of what its instances work off; None without any."""
        capacity = sum((each.capacity for each in self.instances), Fraction(0))
        return self.rate / capacity if capacity else None


class Station(NamedTuple):
    """A queue of one of a service's instances, and the processes that take from it."""

    instance: int
    weight: Fraction
    processes: int
    fill_ns: tuple[int, ...]
    gpu: int


def stations_of(instances: Sequence[ModelledInstance]) -> list[Station]:
    """Split instances with a queue a process into their processes."""
    processes = sum(each.processes for each in instances)
    if processes > MOST_STATIONS:
        said = f"a service has {processes:,} processes; at most {MOST_STATIONS:,} are simulated"
        raise InvalidOption(said)
    found = []
    for at, each in enumerate(instances):
        parts = each.processes if each.queue == "process" else 1
        share, own = each.weight / parts, each.processes // parts
        found += [Station(at, share, own, each.fill_ns, each.gpu)] * parts
    return found


def services_of(plan: Plan) -> tuple[tuple[ModelledService, ...], tuple[str, ...]]:
    """Read what a plan promises, as queues; and which of its points contradict themselves.

    GPUs are counted from 0 in the order of the plan's groups, the instances of a service in the
    order of the GPUs. Of services that share instances in time
    :func:`.duty_cycles.replay_duty_cycles` is.
    """
    serving = plan.unshared("the simulator of queues")
    promise = serving.rule.promise
    share, queue = (promise.late_share, promise.queue) if promise else (LATE_SHARE, "instance")
    total = sum(group.count * each.count for group in plan.groups for each in group.instances)
    if total > MOST_STATIONS:
        said = f"the plan has more than {MOST_STATIONS:,} instances"
        raise InvalidOption(f"{said}; fewer are simulated at a time")
    instances: dict[str, list[ModelledInstance]] = {each.name: [] for each in serving.services}
    fills: dict[tuple[str, str], tuple[int, ...]] = {}
    warnings, reasons = dict[str, None](), dict[str, str]()
    first = 0
    for group in plan.groups:
        for kind, served in ((one, each) for one in group.instances for each in one.serves):
            service, point = serving.service(served.service), served.point
            if (pair := (service.name, kind.block)) not in fills:
                if point.batch > LARGEST_BATCH:
                    said = f"{point.setting}: a batch holds {point.batch:,} requests"
                    raise InvalidOption(f"{said}; expected at most {LARGEST_BATCH:,}")
                times = serving.fills[pair]
                # the latency column is usually rounded to a millisecond
                if point.batch_ms == point.latency_ms != point.computed_batch_ms:
                    took = f"{shown(round(point.computed_batch_ms, 2))} ms"
                    said = f"{point}: by its throughput a batch takes {took}"
                    warnings[f"{said}; the longer latency is taken"] = None
                fills[pair] = tuple(times.rounded_up(MILLISECOND))
                if why := _not_replayed(serving.rule, service, point, times):
                    reasons.setdefault(service.name, why)
            instances[service.name] += [
                ModelledInstance(
                    served.rate_rps, point.processes, fills[pair], service.queue or queue,
                    gpu=first + nth, block=kind.block,
                )
                for nth in range(group.count)
                for _ in range(kind.count)
            ]  # fmt: skip
        first += group.count
    services = tuple(
        ModelledService(
            each.name,
            each.rate_rps,
            None if (ms := each.latency_limit_ms) is None else math.floor(ms * MILLISECOND),
            share if each.late_share is None else each.late_share,
            tuple(sorted(instances[each.name], key=lambda one: one.gpu)),
            reasons.get(each.name, ""),
        )
        for each in serving.services
    )
    return services, tuple(warnings)


def _not_replayed(
    rule: QueueingRule, service: Service, point: OperatingPoint, times: FillTimes
) -> str:
    """Say why a replay by batches is of another instance than the one that was promised for."""
    # A curve tells what an instance sustained, whatever goes on in it.
    found = evidence_of(rule, service, point)
    curve = None if found is None else found.curve
    if curve is None or curve.batches_sha256 == times.digest(point.processes):
        return ""
    why = (
        "a curve that does not say it was simulated for the plan's batch times; make it with "
        "'cms calibrate' from the plan's operating points"
    )
    if curve.evidence == "measured":
        why = "a measured curve, which says nothing of batches; plan without --load-curves"
    return f"{service.name} counts on {why}"
