"""Rates from the answer of a Prometheus range query, as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from ...errors import FileError
from ...files.node import Node
from ...values.numbers import shown
from .counters import counted_per_s
from .rates import Rates
from .sampling import Sample, on_even_steps
from .times import NoTime, moment_of

__all__ = ["SERVICE_LABEL", "rates_from_matrix"]

#: The label that names a series' service, where the user names none.
SERVICE_LABEL = "service"
#: What the names of counters end in, by Prometheus' own rules of naming.
_COUNTERS = ("_total", "_count")
#: What holds no rate of requests even where it is made one: sums of what was measured, and bins.
_SUMS = ("_sum", "_bucket")
_NO_NUMBERS = ("NaN", "+Inf", "-Inf", "Inf")


def rates_from_matrix(document: Node, label: str = SERVICE_LABEL) -> Rates:
    """Read rates from ``/api/v1/query_range``'s answer (``resultType: matrix``).

    A series whose name ends in ``_total`` or ``_count`` is a counter: its rate at a moment is its
    growth since the moment before, a step away; where it falls it was reset, and the rate there is
    not known. All others (``rate()`` takes the name off) are rates as they are, unless they grow
    like a counter: :func:`cms.fleet.reconciling.counters.counted_per_s`.

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
        counter that is taken for a rate, a negative rate, ...

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
    series: dict[str, tuple[Node, dict[str, str]]] = {}
    for entry in data.at("result").array():
        name, labels = _whose(entry, label)
        if name in series:
            raise entry.error(
                f"{entry.label} is a second series of {name!r}",
                expected="one series a service",
                fix=f"add them up in the query: sum by ({label}) (...)",
            )
        series[name] = entry, labels
    if not series:
        raise data.at("result").error("the result has no series", expected="one a service")
    read = {name: _values(entry.at("values")) for name, (entry, _) in series.items()}

    def too_few(what: str) -> FileError:
        return document.error(what, expected="two or more")

    rates = on_even_steps(read, True, too_few)
    counters = {
        name for name, (_, labels) in series.items() if labels.get("", "").endswith(_COUNTERS)
    }
    for name, (entry, labels) in series.items():
        if name not in counters:
            _refuse_counter(entry, name, read[name], labels, label)
    if counters:
        grown = {
            name: _growth(own, rates.step_s) if name in counters else own
            for name, own in read.items()
        }
        rates = on_even_steps(grown, True, too_few)
    return replace(rates, warnings=_warnings(document))


def _refuse_counter(
    entry: Node, name: str, own: list[Sample], labels: Mapping[str, str], label: str
) -> None:
    """Refuse what counts requests since some beginning, which is no rate."""
    # names of series: "order_count" of another label is a name of something else
    own_names = [text for key, text in labels.items() if key in ("", "metric", "name", "series")]
    called = [text for text in own_names if text.endswith((*_COUNTERS, *_SUMS))]
    known = [(each.at_s, each.rate_rps) for each in own if each.rate_rps is not None]
    grown = counted_per_s(known, bool(called))
    if grown is None and not labels.get("", "").endswith(_SUMS):
        return
    said = f" ({called[0]})" if called else ""
    asked = next((text for text in called if text.endswith(_COUNTERS)), "requests_total")
    raise entry.error(
        f"the series of {name!r}{said} is a counter, which grows on and on",
        expected="items per second",
        fix=f"ask for sum by ({label}) (rate({asked}[5m])), or give rates as a CSV table",
    )


def _warnings(document: Node) -> tuple[str, ...]:
    """What the server says of its own answer."""
    found = document.value if isinstance(document.value, dict) else {}
    return tuple(
        f"Prometheus: {text.text()}"
        for key in ("warnings", "infos")
        if found.get(key) is not None
        for text in document.at(key).array()
    )


def _data(document: Node) -> Node:
    if not isinstance(document.value, dict):
        raise document.wrong("an object: the answer of a Prometheus range query")
    if "status" in document.value:
        status = document.at("status")
        if status.value != "success":
            raise status.wrong('"success"', "the query failed: see what it says under error")
        return document.at("data")
    return document


def _whose(entry: Node, label: str) -> tuple[str, dict[str, str]]:
    """The service, and the other labels; the series' name is under the empty one."""
    labels = entry.at("metric")
    found = {key: value.text() for key, value in labels.entries()}
    if label not in found:
        others = ", ".join(name for name in found if name != "__name__") or "none"
        raise labels.error(
            f"{labels.label} has no label {label!r}",
            expected=f"the service's name there; its labels are: {others}",
            fix="name another with --service-label",
        )
    name = labels.at(label).name("service")
    found[""] = found.pop("__name__", "")
    return name, {key: text for key, text in found.items() if key != label}


def _values(values: Node) -> list[Sample]:
    found = []
    for pair in values.array():
        time, value = pair.array(2)

        def refuse(what: str, expected: str, fix: str, at: Node = time) -> FileError:
            return at.error(what, expected=expected, fix=fix)

        known = None if value.value in _NO_NUMBERS else value.number()
        found.append(Sample(_time(time), known, refuse))
    return found


def _time(time: Node) -> Fraction:
    try:
        return moment_of(time.value if isinstance(time.value, str) else time.number()).at_s
    except NoTime as fault:
        raise time.wrong(str(fault)) from None


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
