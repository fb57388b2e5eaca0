"""Simulations as JSON documents (format ``cms-simulation``): equal ones are equal files.

Nothing in a document depends on the machine, the time or the number of threads. Times are exact
decimals of milliseconds, which nanoseconds always are.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ...files.documents import check_head, head, number_to_json, read_document, write_document
from ...files.node import Node
from ...files.source import StrPath
from .model import SECOND
from .result import Recovery, ServiceResult, Simulation, Timeline
from .statistics import Interval, Verdict

__all__ = ["read_simulation", "simulation_from_json", "simulation_to_json", "write_simulation"]

_MILLISECOND = 10**6
_COUNTS = ("instances", "requests", "late", "lost", "retried", "deepest_queue")
_TIMES = ("mean", "p50", "p90", "p99", "max")
_NUMBERS = ("rate_rps", "tolerated", "seconds", "utilisation", "mean_fill")
_JUDGED = (Verdict.KEPT, Verdict.BROKEN, Verdict.UNDECIDED)
_OTHERS = (
    "limit_ms",
    "load",
    "late_share",
    "verdict",
    "overloaded",
    "cause",
    "recoveries",
    "timeline",
)


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
    return simulation_from_json(read_document(path, "cms-simulation"))


def simulation_to_json(simulation: Simulation) -> dict[str, Any]:
    """Turn a simulation into the document that :func:`read_simulation` reads."""
    seconds = simulation.seconds
    return {
        **head("cms-simulation"),
        "rule": simulation.rule,
        "promised": simulation.promised,
        "problem_sha256": simulation.problem_sha256,
        "arrivals": simulation.arrivals,
        "routing": simulation.routing,
        "seed": simulation.seed,
        "rate": number_to_json(simulation.rate),
        "seconds": None if seconds is None else number_to_json(seconds),
        "requests": simulation.requests,
        "on_failure": simulation.on_failure,
        "events": list(simulation.events),
        "stopped": simulation.stopped,
        "kept": simulation.count(Verdict.KEPT),
        "broken": simulation.count(Verdict.BROKEN),
        "undecided": simulation.count(Verdict.UNDECIDED),
        "not_replayed": simulation.count(Verdict.NOT_REPLAYED),
        "warnings": list(simulation.warnings),
        "services": [_service_to_json(each) for each in simulation.services],
    }


def _service_to_json(found: ServiceResult) -> dict[str, Any]:
    line = found.timeline
    return {
        "name": found.name,
        "verdict": found.verdict.value,
        "overloaded": found.overloaded,
        "cause": found.cause,
        **{name: getattr(found, name) for name in _COUNTS},
        "late_share": [number_to_json(each) for each in found.interval],
        **{name: number_to_json(getattr(found, name)) for name in _NUMBERS},
        "load": None if found.load is None else number_to_json(found.load),
        "limit_ms": None if found.limit_ns is None else _milliseconds(found.limit_ns),
        **{f"{name}_ms": _milliseconds(getattr(found, f"{name}_ns")) for name in _TIMES},
        "recoveries": [
            {
                "event": each.event,
                "seconds": number_to_json(each.seconds),
                "back_after_seconds": None
                if each.back_after_seconds is None
                else number_to_json(each.back_after_seconds),
            }
            for each in found.recoveries
        ],
        "timeline": None
        if line is None
        else {
            "cell_seconds": number_to_json(Fraction(line.cell_ns, SECOND)),
            "requests": list(line.requests),
            "late": list(line.late),
            "mean_ms": [_milliseconds(each) for each in line.mean_ns],
        },
    }


def _milliseconds(nanoseconds: int) -> int | str:
    return number_to_json(Fraction(nanoseconds, _MILLISECOND))


def simulation_from_json(document: Node | Mapping[str, Any]) -> Simulation:
    """Turn a parsed document into a simulation.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        If a part is missing or wrong, or the parts contradict each other.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, "cms-simulation")
    fields = node.object(
        (
            "format", "schema", "rule", "promised", "problem_sha256", "arrivals", "routing", "seed",
            "rate", "seconds", "requests", "on_failure", "events", "stopped", "kept", "broken",
            "undecided", "warnings", "services",
        ),
        ("not_replayed",),
    )  # fmt: skip
    names: dict[str, object] = {}
    found = Simulation(
        services=tuple(_service(entry, names) for entry in fields["services"].array()),
        arrivals=fields["arrivals"].text(),
        routing=fields["routing"].text(),
        seed=fields["seed"].integer(),
        rate=fields["rate"].number(),
        seconds=fields["seconds"].or_null(Node.number),
        requests=fields["requests"].or_null(lambda it: it.integer(1)),
        on_failure=fields["on_failure"].one_of(("retry", "lose")),
        events=tuple(entry.text() for entry in fields["events"].array()),
        rule=fields["rule"].text(),
        promised=_truth(fields["promised"]),
        problem_sha256=fields["problem_sha256"].text(),
        warnings=tuple(entry.text() for entry in fields["warnings"].array()),
        stopped=_truth(fields["stopped"]),
    )
    for verdict in _JUDGED:
        fields[verdict.value].agree(found.count(verdict), "as its services say")
    left = found.count(Verdict.NOT_REPLAYED)
    if "not_replayed" in fields or left:
        node.at("not_replayed").agree(left, "as its services say")
    return found


def _service(node: Node, names: dict[str, object]) -> ServiceResult:
    times = {f"{name}_ms": f"{name}_ns" for name in _TIMES}
    fields = node.object(("name", *_COUNTS, *times, *_NUMBERS, *_OTHERS))
    name = fields["name"].new_name("service", names)
    node.about = f"service {name!r}"
    low, high = (entry.number() for entry in fields["late_share"].array(2))
    counts: dict[str, Any] = {each: fields[each].integer() for each in _COUNTS}
    numbers: dict[str, Any] = {each: fields[each].number() for each in _NUMBERS}
    numbers |= {to: _nanoseconds(fields[each]) for each, to in times.items()}
    if counts["late"] > counts["requests"] or counts["lost"] > counts["late"]:
        raise fields["late"].wrong("lost <= late <= requests")
    limit, verdict = fields["limit_ms"], fields["verdict"].one_of([each.value for each in Verdict])
    if (limit.value is None) != (verdict == Verdict.NO_LIMIT):
        raise limit.wrong(f'null just where the verdict is "{Verdict.NO_LIMIT}"')
    return ServiceResult(
        name=name,
        limit_ns=None if limit.value is None else _nanoseconds(limit),
        load=fields["load"].or_null(Node.number),
        interval=Interval(low, high),
        verdict=Verdict(verdict),
        overloaded=_truth(fields["overloaded"]),
        cause=fields["cause"].text(),
        recoveries=tuple(_recovery(entry) for entry in fields["recoveries"].array()),
        timeline=None if fields["timeline"].value is None else _timeline(fields["timeline"]),
        **numbers,
        **counts,
    )


def _recovery(node: Node) -> Recovery:
    fields = node.object(("event", "seconds", "back_after_seconds"))
    return Recovery(
        fields["event"].integer(),
        fields["seconds"].number(),
        fields["back_after_seconds"].or_null(Node.number),
    )


def _timeline(node: Node) -> Timeline:
    fields = node.object(("cell_seconds", "requests", "late", "mean_ms"))
    requests = tuple(entry.integer() for entry in fields["requests"].array())
    late = tuple(entry.integer() for entry in fields["late"].array(len(requests)))
    means = tuple(_nanoseconds(entry) for entry in fields["mean_ms"].array(len(requests)))
    cell = fields["cell_seconds"].number() * SECOND
    if cell.denominator != 1 or not cell:
        raise fields["cell_seconds"].wrong("a whole number of nanoseconds > 0")
    return Timeline(int(cell), requests, late, means)


def _nanoseconds(node: Node) -> int:
    value = node.number() * _MILLISECOND
    if value.denominator != 1:
        raise node.wrong("a whole number of nanoseconds")
    return int(value)


def _truth(node: Node) -> bool:
    if not isinstance(node.value, bool):
        raise node.wrong("true or false")
    return node.value
