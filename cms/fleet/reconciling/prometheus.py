"""Rates from the answer of a Prometheus range query, as it is."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from ...errors import FileError
from ...files.node import Node
from ...values.numbers import shown
from .rates import Rates
from .sampling import Sample, on_even_steps

__all__ = ["SERVICE_LABEL", "rates_from_matrix"]

#: The label that names a series' service, where the user names none.
SERVICE_LABEL = "service"
#: What the names of counters end in, by Prometheus' own rules of naming.
_COUNTERS = ("_total", "_count")
_NO_NUMBERS = ("NaN", "+Inf", "-Inf", "Inf")


def rates_from_matrix(document: Node, label: str = SERVICE_LABEL) -> Rates:
    """Read rates from ``/api/v1/query_range``'s answer (``resultType: matrix``).

    A series whose name ends in ``_total`` or ``_count`` is a counter: its rate at a moment is its
    growth since the moment before, a step away; where it falls it was reset, and the rate there is
    not known. All others (``rate()`` takes the name off) are rates as they are.

    Parameters
    ----------
    document : Node
        The answer with its ``status``, or its ``data`` alone.
    label : str
        Which label has the service's name.

    Raises
    ------
    FileError
        With its place: another result type, a series without the label, two of one service, a
        negative rate, ...

    Examples
    --------
    >>> series = {"metric": {"service": "chat"}, "values": [[1764000000, "5"], [1764000060, "7"]]}
    >>> print(rates_from_matrix(Node({"resultType": "matrix", "result": [series]})))
    1 service, 2 moments, every 60 s from 2025-11-24 16:00:00Z to 2025-11-24 16:01:00Z
    """
    data = _data(document)
    kind = data.at("resultType")
    if kind.text() != "matrix":
        raise kind.wrong('"matrix"', "ask /api/v1/query_range, with start, end and step")
    series: dict[str, tuple[Node, bool]] = {}
    for entry in data.at("result").array():
        name, is_counter = _whose(entry, label)
        if name in series:
            raise entry.error(
                f"{entry.label} is a second series of {name!r}",
                expected="one series a service",
                fix=f"add them up in the query: sum by ({label}) (...)",
            )
        series[name] = entry, is_counter
    if not series:
        raise data.at("result").error("the result has no series", expected="one a service")
    read = {name: _values(entry.at("values")) for name, (entry, _) in series.items()}
    on_grid = on_even_steps(read, True, lambda what: document.error(what, expected="two or more"))
    counters = [name for name, (_, is_counter) in series.items() if is_counter]
    if not counters:
        return on_grid
    grown = {
        name: _growth(own, on_grid.step_s) if name in counters else own
        for name, own in read.items()
    }
    return on_even_steps(grown, True, lambda what: document.error(what, expected="two or more"))


def _data(document: Node) -> Node:
    if not isinstance(document.value, dict):
        raise document.wrong("an object: the answer of a Prometheus range query")
    if "status" in document.value:
        status = document.at("status")
        if status.value != "success":
            raise status.wrong('"success"', "the query failed: see what it says under error")
        return document.at("data")
    return document


def _whose(entry: Node, label: str) -> tuple[str, bool]:
    labels = entry.at("metric")
    found = {key: value.text() for key, value in labels.entries()}
    if label not in found:
        others = ", ".join(name for name in found if name != "__name__") or "none"
        raise labels.error(
            f"{labels.label} has no label {label!r}",
            expected=f"the service's name there; its labels are: {others}",
            fix="name another with --service-label",
        )
    return labels.at(label).name("service"), found.get("__name__", "").endswith(_COUNTERS)


def _values(values: Node) -> list[Sample]:
    found = []
    for pair in values.array():
        time, value = pair.array(2)

        def refuse(what: str, expected: str, fix: str, at: Node = time) -> FileError:
            return at.error(what, expected=expected, fix=fix)

        known = None if value.value in _NO_NUMBERS else value.number()
        found.append(Sample(time.number(), known, refuse))
    return found


def _growth(samples: list[Sample], step: Fraction) -> list[Sample]:
    """Return the rates at which a counter grew, from its second value on."""
    found = []
    for before, after in pairwise(samples):
        old, new = before.rate_rps, after.rate_rps
        rate, reason = None, ""
        if old is None or new is None or after.at_s - before.at_s != step:
            reason = "no value, or none a step before"
        elif new < old:
            reason = f"counter reset ({shown(old)} to {shown(new)})"
        else:
            rate = (new - old) / step
        found.append(Sample(after.at_s, rate, after.refuse, reason))
    return found
