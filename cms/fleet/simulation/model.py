"""What the simulator knows of a plan: services, their limits, and the instances that serve them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption

#: Nanoseconds a second, and a millisecond.
SECOND, MILLISECOND = 10**9, 10**6
#: Nine years: with room for what comes on top, it stays below 2**62 nanoseconds.
LONGEST_NS = 2**58
#: Requests a second of one service: a gap between two is some nanoseconds.
FASTEST = 10**8
#: A plan may have 10^12 GPUs; each instance that is simulated takes some memory.
MOST_STATIONS = 2**20
LARGEST_BATCH = 2**20 - 1


@dataclass(frozen=True, slots=True)
class ModelledInstance:
    """An instance as queueing theory sees it."""

    weight: Fraction  #: Its share of the requests, as a number of any scale: its supply.
    processes: int  #: How many batches it works on at a time
    #: How long a batch of 1, 2, ... requests takes, in nanoseconds; as many as fit into one.
    fill_ns: tuple[int, ...]
    #: ``instance`` if all processes take from one queue; ``process`` if each has a queue of its
    #: own, between which the instance's share is split evenly.
    queue: str = "instance"
    gpu: int = 0  #: The GPU it is on
    block: str = ""  #: What it is in the plan

    def __post_init__(self) -> None:
        if self.weight < 0 or self.processes < 1 or not self.fill_ns or min(self.fill_ns) < 1:
            raise InvalidOption(
                f"an instance has weight {self.weight}, {self.processes} processes and the batch "
                f"times {self.fill_ns[:3]} ns; expected >= 0, >= 1 and integers >= 1"
            )
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
    #: Why a replay by batches says nothing of whether its limit is kept; empty: it does.
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
        raise InvalidOption(
            f"a service has {processes:,} processes; at most {MOST_STATIONS:,} are simulated"
        )
    return list(_stations(instances))


def _stations(instances: Sequence[ModelledInstance]) -> Iterator[Station]:
    for at, each in enumerate(instances):
        parts = each.processes if each.queue == "process" else 1
        share, processes = each.weight / parts, each.processes // parts
        for _ in range(parts):
            yield Station(at, share, processes, each.fill_ns, each.gpu)
