"""What a simulation found, and its JSON document (``cms-simulation``): equal ones are equal files.

Nothing in a document depends on the machine, the time or the number of threads. Times are exact
decimals of milliseconds, which nanoseconds always are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...files import fields as f
from ...files import model as m
from ...files.documents import number_to_json, parse_document, write_document
from ...files.parsed import Parsed
from ...files.source import StrPath
from ...time_sharing.duty_cycle import DutyCycleRule
from ...values.numbers import shown
from ..colocation.files import part_of
from .model import SECOND
from .statistics import Interval, Verdict

_NOTHING = Fraction(0)
_UNKNOWN = Interval(_NOTHING, Fraction(1))


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a service came over an event."""

    event: int  #: Which of the simulation's events
    seconds: Fraction  #: When
    #: How long after it the late share was back for good, until the next event; 0 if it never left,
    #: None if it was not back by then.
    back_after_seconds: Fraction | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A service's run in cells of equal time, by when requests first arrived."""

    cell_ns: int
    #: In each cell; the mean latency is of the answered ones.
    requests: tuple[int, ...]
    late: tuple[int, ...]
    mean_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceResult:
    """What became of one service's requests; times in whole nanoseconds."""

    name: str
    rate_rps: Fraction  #: Requests a second it was to get
    limit_ns: int | None  #: None: it has none, and its verdict is ``no limit``.
    tolerated: Fraction  #: The share that may be late
    instances: int
    #: How long it ran: to the last arrival, or to the end of the last batch.
    seconds: Fraction = _NOTHING
    #: All; those beyond the limit, the lost among them; those never answered; those that were sent
    #: again after a failure.
    requests: int = 0
    late: int = 0
    lost: int = 0
    retried: int = 0
    interval: Interval = _UNKNOWN  #: Of the late share, 99 %
    #: Latencies of the answered requests; quantiles may be 0.1 % too long.
    mean_ns: int = 0
    p50_ns: int = 0
    p90_ns: int = 0
    p99_ns: int = 0
    max_ns: int = 0
    #: The rate as a share of what its instances work off in full batches, before any event; None
    #: without instances.
    load: Fraction | None = None
    #: Part of its processes' time that they worked: near 1 even at low loads, since a batch begins
    #: with whatever waits.
    utilisation: Fraction = _NOTHING
    mean_batch_size: Fraction = _NOTHING  #: Requests in a batch
    deepest_queue: int = 0  #: Most requests that ever waited for one instance
    verdict: Verdict
    overloaded: bool = False  #: Whether the queues grew throughout
    #: Why the limit was violated, where it can be told, that the run was too short for its load, or
    #: why the service was not replayed; else empty.
    cause: str = ""
    recoveries: tuple[Recovery, ...] = ()  #: One for each event that concerns it
    timeline: Timeline | None = None  #: Where there are events

    @property
    def p99_share(self) -> Fraction | None:
        """The 99th percentile as a share of the limit; None without one."""
        return None if self.limit_ns is None else Fraction(self.p99_ns, self.limit_ns)

    @property
    def late_share(self) -> Fraction:
        """Late requests over all."""
        return Fraction(self.late, self.requests or 1)

    def __str__(self) -> str:
        said = f"{self.verdict.upper()}{' (overloaded)' if self.overloaded else ''}"
        if self.verdict is Verdict.NOT_REPLAYED:
            return f"{said}: {self.cause}"
        if self.limit_ns is None:
            lost = f", {self.lost:,} of {self.requests:,} requests lost" if self.lost else ""
            return f"{self.name}: {said}: p99 is {self.p99_ns / 10**6:.4g} ms{lost}"
        share, limit = self.p99_ns / self.limit_ns, shown(Fraction(self.limit_ns, 10**6))
        return (
            f"{self.name}: {said}: p99 is {share:.1%} of {limit} ms, "
            f"{float(self.late_share):.3%} of {self.requests:,} requests late"
        )


@dataclass(frozen=True, slots=True)
class Simulation:
    """A plan that was replayed."""

    services: tuple[ServiceResult, ...]  #: In the order of the plan
    #: How requests came and were spread, in words
    arrivals: str
    routing: str
    seed: int
    rate: Fraction  #: What all rates were multiplied by
    seconds: Fraction | None  #: How long a service was to run
    #: How many requests it was to get, or at most where `seconds` is given too
    requests: int | None
    on_failure: str  #: ``retry`` or ``lose``
    events: tuple[str, ...] = ()  #: What happened, in words
    rule: str = ""  #: The plan's queueing rule; empty if it was no plan.
    promised: bool = False  #: Whether the rule promises anything about waiting
    problem_sha256: str = ""  #: The plan's problem
    warnings: tuple[str, ...] = ()
    stopped: bool = False  #: Whether it was ended before its time

    def service(self, name: str) -> ServiceResult:
        """Return what was found of one service; KeyError if there is none of this name."""
        for each in self.services:
            if each.name == name:
                return each
        raise KeyError(name)

    def count(self, verdict: Verdict) -> int:
        """How many services have this verdict."""
        return sum(each.verdict == verdict for each in self.services)

    @property
    def sentence(self) -> str:
        """All in one sentence."""
        kept, free = self.count(Verdict.MET), self.count(Verdict.NO_LIMIT)
        total = len(self.services) - free
        parts = [
            f"{kept} of {total} limits met under {self.arrivals} arrivals, {self.routing} routing"
        ]
        if self.rate != 1:
            parts.append(f"rates x {shown(self.rate)}")
        if self.events:
            parts.append(f"{len(self.events)} event{'s' * (len(self.events) > 1)}")
        if self.seconds is not None:
            parts.append(f"{shown(self.seconds)} s each")
        if self.requests is not None:
            fewer = any(  # a trace has an end
                each.requests < self.requests and each.verdict is not Verdict.NOT_REPLAYED
                for each in self.services
            )
            least = "at most " if self.seconds is not None or fewer else ""
            parts.append(f"{least}{self.requests:,} requests each")
        said = ", ".join(parts)
        if opened := self.count(Verdict.UNDECIDED):
            said += f"; {opened} undecided"
        if left := self.count(Verdict.NOT_REPLAYED):
            said += f"; {left} not replayed"
        if free:
            said += f"; {free} service{'s' * (free > 1)} without a limit"
        if self.stopped:
            said += "; stopped before the end"
        if self.rule and not self.promised:
            what = "nothing about waiting"
            if self.rule in [known.value for known in DutyCycleRule]:
                what = "its limits to evenly spaced arrivals only"
            said += f"; this plan promised {what} (rule {self.rule})"
        return said

    def __str__(self) -> str:
        return "\n".join([*map(str, self.services), self.sentence])


def _nanoseconds(unit: int) -> f.Value:
    def read(value: Any) -> int:
        time = f.read_number(value) * unit
        if time.denominator != 1:
            raise f.refusal("a whole number of nanoseconds")
        return int(time)

    return f.Value(
        read, lambda time: number_to_json(Fraction(time, unit)), type=["number", "string"]
    )


_Milliseconds = Annotated[int, _nanoseconds(10**6)]


class _TimelinePart(m.Part):
    cell_ns: Annotated[int, _nanoseconds(SECOND)] = Field(alias="cell_seconds")
    requests: tuple[f.Count, ...]
    late: tuple[f.Count, ...]
    mean_ns: tuple[_Milliseconds, ...] = Field(alias="mean_ms")

    def build(self) -> Timeline:
        if not self.cell_ns:
            raise f.refusal("a whole number of nanoseconds > 0", "cell_seconds")
        for key, values in (("late", self.late), ("mean_ms", self.mean_ns)):
            if len(values) != (length := len(self.requests)):
                raise f.refusal(f"{length} entries", key, what=f"{{}} has {len(values)} entries")
        return Timeline(**dict(self))


class _ServicePart(m.Part):
    name: Annotated[str, f.name("service")]
    verdict: Verdict
    overloaded: f.Flag
    cause: f.Text
    instances: f.Count
    requests: f.Count
    late: f.Count
    lost: f.Count
    retried: f.Count
    deepest_queue: f.Count
    interval: tuple[f.Exact, f.Exact] = Field(alias="late_share")
    rate_rps: f.Exact
    tolerated: f.Exact
    seconds: f.Exact
    utilisation: f.Exact
    mean_batch_size: f.Exact
    load: f.Exact | None
    limit_ns: _Milliseconds | None = Field(alias="limit_ms")
    mean_ns: _Milliseconds = Field(alias="mean_ms")
    p50_ns: _Milliseconds = Field(alias="p50_ms")
    p90_ns: _Milliseconds = Field(alias="p90_ms")
    p99_ns: _Milliseconds = Field(alias="p99_ms")
    max_ns: _Milliseconds = Field(alias="max_ms")
    recoveries: tuple[Annotated[Recovery, m.Built(part_of(Recovery))], ...]
    timeline: Annotated[Timeline, m.Built(_TimelinePart)] | None

    def build(self) -> ServiceResult:
        if self.late > self.requests or self.lost > self.late:
            raise f.refusal("lost <= late <= requests", "late")
        if (self.limit_ns is None) != (self.verdict is Verdict.NO_LIMIT):
            raise f.refusal(f'null just where the verdict is "{Verdict.NO_LIMIT}"', "limit_ms")
        return ServiceResult(**dict(self) | {"interval": Interval(*self.interval)})


#: How many services got each verdict, by the key that says so.
_COUNTS = {
    "met": Verdict.MET,
    "violated": Verdict.VIOLATED,
    "undecided": Verdict.UNDECIDED,
    "not_replayed": Verdict.NOT_REPLAYED,
}


class SimulationDocument(m.Document):
    """A simulation."""

    KIND: ClassVar[str] = "cms-simulation"
    rule: f.Text
    promised: f.Flag
    problem_sha256: f.Text
    arrivals: f.Text
    routing: f.Text
    seed: f.Count
    rate: f.Exact
    seconds: f.Exact | None
    requests: f.AtLeastOne | None
    on_failure: Literal["retry", "lose"]
    events: tuple[f.Text, ...]
    stopped: f.Flag
    met: f.Count
    violated: f.Count
    undecided: f.Count
    not_replayed: f.Count = 0
    warnings: tuple[f.Text, ...]
    services: tuple[Annotated[ServiceResult, m.Built(_ServicePart)], ...]

    def build(self) -> Simulation:
        """Build the simulation; its counts must be those of its services."""
        f.refuse_twice((each.name for each in self.services), "service", "services")
        told = dict(self)
        counts = {key: told.pop(key) for key in _COUNTS}
        found = Simulation(**told)
        for key, verdict in _COUNTS.items():
            if counts[key] != (number := found.count(verdict)):
                raise f.refusal(f"{number}, as its services say", key)
        return found

    @classmethod
    def from_object(cls, value: Simulation, **other: Any) -> Self:
        """Describe a simulation."""
        told = {key: getattr(value, key) for key in cls.model_fields if key not in _COUNTS}
        counts = {key: value.count(verdict) for key, verdict in _COUNTS.items()}
        return cls.from_fields(**told, **counts)


def write_simulation(simulation: Simulation, path: StrPath) -> None:
    """Write a simulation to a JSON file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.simulation import simulate
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "simulation.json"
    >>> write_simulation(simulate([], requests=1), path)
    >>> read_simulation(path).services
    ()
    """
    write_document(lambda: simulation_to_json(simulation), path)


def read_simulation(path: StrPath) -> Simulation:
    """Read a simulation from a JSON file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
    >>> instance = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,))
    >>> chat = ModelledService("chat", Fraction(50), 40_000_000, Fraction(1, 100), (instance,))
    >>> found = simulate([chat], requests=1000)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "simulation.json"
    >>> write_simulation(found, path)
    >>> simulation_to_json(read_simulation(path)) == simulation_to_json(found)
    True
    """
    return simulation_from_json(parse_document(path))


def simulation_to_json(simulation: Simulation) -> dict[str, Any]:
    """Turn a simulation into the document that :func:`read_simulation` reads."""
    return SimulationDocument.from_object(simulation).to_json()


def simulation_from_json(document: Parsed | Mapping[str, Any]) -> Simulation:
    """Turn a parsed document, whose parts must agree, into a simulation."""
    found: Simulation = m.build(SimulationDocument, document)
    return found
