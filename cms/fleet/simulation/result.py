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
from ...values.words import count
from ..colocation.files import part_of, require_length
from .model import SECOND
from .statistics import Interval, Verdict

_NOTHING = Fraction(0)
_UNKNOWN = Interval(_NOTHING, Fraction(1))


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a service recovered from an event."""

    event: int  #: Which of the simulation's events
    seconds: Fraction  #: When
    #: From the event until the late share was back; 0 if it never rose, None if it was not back
    #: before the next event.
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
    """The latencies of one service's requests, and the verdict; times in whole nanoseconds."""

    name: str
    verdict: Verdict
    overloaded: bool = False  #: Whether the queues grew throughout
    #: Why the limit was violated or is open, or the service was not replayed; else empty.
    cause: str = ""
    instances: int
    #: All; those beyond the limit, the lost among them; those never answered; those that were sent
    #: again after a failure.
    requests: int = 0
    late: int = 0
    lost: int = 0
    retried: int = 0
    deepest_queue: int = 0  #: Most requests that ever waited for one instance
    interval: Interval = _UNKNOWN  #: Of the late share, 99 %
    rate_rps: Fraction  #: Requests a second it was to get
    tolerated: Fraction  #: The share that may be late
    seconds: Fraction = _NOTHING  #: To the last arrival, or to the end of the last batch
    #: The part of the time that its processes work; near 1 even at low loads, with small batches.
    utilisation: Fraction = _NOTHING
    mean_batch_size: Fraction = _NOTHING
    #: The rate over the capacity in full batches, before any event; None without instances.
    load: Fraction | None = None
    limit_ns: int | None  #: None: it has none, and its verdict is ``no limit``.
    #: Latencies of the answered requests; quantiles may be 0.1 % too long.
    mean_ns: int = 0
    p50_ns: int = 0
    p90_ns: int = 0
    p99_ns: int = 0
    max_ns: int = 0
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
        late = f"{float(self.late_share):.3%} of {self.requests:,} requests late"
        return f"{self.name}: {said}: p99 is {share:.1%} of {limit} ms, {late}"


@dataclass(frozen=True, slots=True)
class Simulation:
    """A plan that was replayed."""

    services: tuple[ServiceResult, ...]  #: In the order of the plan
    arrivals: str  #: In words, as the routing is
    routing: str
    seed: int
    rate: Fraction  #: The factor of all rates
    seconds: Fraction | None  #: How long a service was to run
    requests: int | None  #: Of each service; the most, where `seconds` is given too
    on_failure: str  #: ``retry`` or ``lose``
    events: tuple[str, ...] = ()  #: In words
    rule: str = ""  #: The plan's queueing rule; empty if it was no plan.
    promised: bool = False  #: Whether the rule promises anything about waiting
    problem_sha256: str = ""  #: The plan's problem
    warnings: tuple[str, ...] = ()
    stopped: bool = False  #: Whether it was ended before its time

    def service(self, name: str) -> ServiceResult:
        """Return what was found of one service; KeyError if there is none of this name."""
        return {each.name: each for each in self.services}[name]

    def count(self, verdict: Verdict) -> int:
        """How many services have this verdict."""
        return sum(each.verdict == verdict for each in self.services)

    @property
    def sentence(self) -> str:
        """All in one sentence."""
        met, free = self.count(Verdict.MET), self.count(Verdict.NO_LIMIT)
        limits = f"{met} of {len(self.services) - free} limits met"
        parts = [f"{limits} under {self.arrivals} arrivals, {self.routing} routing"]
        if self.rate != 1:
            parts.append(f"rates x {shown(self.rate)}")
        if self.events:
            parts.append(count(len(self.events), "event"))
        if self.seconds is not None:
            parts.append(f"{shown(self.seconds)} s each")
        if self.requests is not None:
            fewer = any(  # a trace has an end
                each.requests < self.requests and each.verdict is not Verdict.NOT_REPLAYED
                for each in self.services
            )
            least = "at most " if self.seconds is not None or fewer else ""
            parts.append(f"{least}{self.requests:,} requests each")
        said = [", ".join(parts)]
        for verdict in (Verdict.UNDECIDED, Verdict.NOT_REPLAYED):
            if number := self.count(verdict):
                said.append(f"{number} {verdict}")
        said += [f"{count(free, 'service')} without a limit"] * bool(free)
        said += ["stopped before the end"] * self.stopped
        if self.rule and not self.promised:
            what = "nothing about waiting"
            if self.rule in [known.value for known in DutyCycleRule]:
                what = "its limits to evenly spaced arrivals only"
            said.append(f"this plan promised {what} (rule {self.rule})")
        return "; ".join(said)

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


def _key(kind: Any, key: str) -> Any:
    return Annotated[kind, Field(alias=key)]


def _build_timeline(**told: Any) -> Timeline:
    found = Timeline(**told)
    if not found.cell_ns:
        raise f.refusal("a whole number of nanoseconds > 0", "cell_seconds")
    require_length(found.late, len(found.requests), "late")
    require_length(found.mean_ns, len(found.requests), "mean_ms")
    return found


_TimelinePart = part_of(
    Timeline, _build_timeline, requests=tuple[f.Count, ...], late=tuple[f.Count, ...],
    cell_ns=_key(Annotated[int, _nanoseconds(SECOND)], "cell_seconds"),
    mean_ns=_key(tuple[_Milliseconds, ...], "mean_ms"),
)  # fmt: skip


def _build_service(**told: Any) -> ServiceResult:
    found = ServiceResult(**told | {"interval": Interval(*told["interval"])})
    if not found.lost <= found.late <= found.requests:
        raise f.refusal("lost <= late <= requests", "late")
    if (found.limit_ns is None) != (found.verdict is Verdict.NO_LIMIT):
        raise f.refusal(f'null just where the verdict is "{Verdict.NO_LIMIT}"', "limit_ms")
    return found


_ServicePart = part_of(
    ServiceResult, _build_service, name=Annotated[str, f.name("service")], verdict=Verdict,
    interval=_key(tuple[f.Exact, f.Exact], "late_share"),
    limit_ns=_key(_Milliseconds | None, "limit_ms"),
    recoveries=tuple[Annotated[Recovery, m.Built(part_of(Recovery))], ...],
    timeline=Annotated[Timeline, m.Built(_TimelinePart)] | None,
    **{f"{at}_ns": _key(_Milliseconds, f"{at}_ms") for at in ("mean", "p50", "p90", "p99", "max")},
)  # fmt: skip


#: The keys that count services by their verdict.
_COUNTS = {
    verdict.replace(" ", "_"): verdict for verdict in Verdict if verdict is not Verdict.NO_LIMIT
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
        counts = {key: value.count(verdict) for key, verdict in _COUNTS.items()}
        return super().from_object(value, **counts)


def write_simulation(simulation: Simulation, path: StrPath) -> None:
    """Write a simulation to a JSON file; see :func:`read_simulation`.

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
    """Read a simulation from a JSON file; a FileError has line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.simulation import simulate
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "simulation.json"
    >>> write_simulation(simulate([], requests=1), path)
    >>> read_simulation(path).services
    ()
    """
    return simulation_from_json(parse_document(path))


def simulation_to_json(simulation: Simulation) -> dict[str, Any]:
    """Turn a simulation into the document that :func:`read_simulation` reads."""
    return SimulationDocument.from_object(simulation).to_json()


def simulation_from_json(document: Parsed | Mapping[str, Any]) -> Simulation:
    """Turn a parsed document, whose parts must agree, into a simulation."""
    found: Simulation = m.build(SimulationDocument, document)
    return found
