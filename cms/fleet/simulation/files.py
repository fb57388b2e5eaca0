"""Simulations as JSON documents (format ``cms-simulation``): equal ones are equal files.

Nothing in a document depends on the machine, the time or the number of threads. Times are exact
decimals of milliseconds, which nanoseconds always are.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...files import fields as f
from ...files import model as m
from ...files.documents import number_to_json, parse_document, write_document
from ...files.parsed import Parsed
from ...files.source import StrPath
from .model import SECOND
from .result import Recovery, ServiceResult, Simulation, Timeline
from .statistics import Interval, Verdict

__all__ = ["read_simulation", "simulation_from_json", "simulation_to_json", "write_simulation"]


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


class _RecoveryPart(m.Part):
    MAKES: ClassVar[Any] = Recovery
    event: f.Count
    seconds: f.Exact
    back_after_seconds: f.Exact | None


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
    mean_fill: f.Exact
    load: f.Exact | None
    limit_ns: _Milliseconds | None = Field(alias="limit_ms")
    mean_ns: _Milliseconds = Field(alias="mean_ms")
    p50_ns: _Milliseconds = Field(alias="p50_ms")
    p90_ns: _Milliseconds = Field(alias="p90_ms")
    p99_ns: _Milliseconds = Field(alias="p99_ms")
    max_ns: _Milliseconds = Field(alias="max_ms")
    recoveries: tuple[Annotated[Recovery, m.Built(_RecoveryPart)], ...]
    timeline: Annotated[Timeline, m.Built(_TimelinePart)] | None

    def build(self) -> ServiceResult:
        if self.late > self.requests or self.lost > self.late:
            raise f.refusal("lost <= late <= requests", "late")
        if (self.limit_ns is None) != (self.verdict is Verdict.NO_LIMIT):
            raise f.refusal(f'null just where the verdict is "{Verdict.NO_LIMIT}"', "limit_ms")
        return ServiceResult(**dict(self) | {"interval": Interval(*self.interval)})


#: How many services got each verdict, by the key that says so.
_COUNTS = {
    "kept": Verdict.KEPT,
    "broken": Verdict.BROKEN,
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
    kept: f.Count
    broken: f.Count
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

    Parameters
    ----------
    simulation : Simulation
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

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

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    FileError
        With line and column, if the file is no simulation.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
    >>> instance = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,))
    >>> chat = ModelledService("chat", Fraction(50), 40_000_000, Fraction(1, 100), (instance,))
    >>> found = simulate([chat], requests=1000)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "simulation.json"
    >>> write_simulation(found, path)
    >>> read_simulation(path) == found
    True
    """
    return simulation_from_json(parse_document(path))


def simulation_to_json(simulation: Simulation) -> dict[str, Any]:
    """Turn a simulation into the document that :func:`read_simulation` reads."""
    return SimulationDocument.from_object(simulation).to_json()


def simulation_from_json(document: Parsed | Mapping[str, Any]) -> Simulation:
    """Turn a parsed document into a simulation.

    Parameters
    ----------
    document : Parsed or Mapping
        Of a parsed one, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        If a part is missing or wrong, or the parts contradict each other.
    """
    found: Simulation = m.build(SimulationDocument, document)
    return found
