"""Files of rates: CSV tables, long (``time,service,rate_rps``) or wide, and Prometheus' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import ConfigDict

from ...errors import FileError
from ...files import fields as f
from ...files import model as m
from ...files.json_text import parse_json
from ...files.parsed import Parsed
from ...files.source import Source, StrPath, read_source
from ...files.tables import read_table
from ...values.numbers import shown
from .rates import OneClock, Rates, Sample, align_samples, read_moment

#: The label that names a series' service, where the user names none.
SERVICE_LABEL = "service"
#: What the names of counters end in, by Prometheus' own rules of naming.
_COUNTERS = ("_total", "_count")
#: What holds no rate of requests even where it is made one: sums of what was measured, and bins.
_SUMS = ("_sum", "_bucket")
_NO_NUMBERS = ("NaN", "+Inf", "-Inf", "Inf")
#: One fall, or one in this number of moments, is a reset: rates waver more often.
_MOMENTS_A_FALL = 20
#: Traffic of these items per second more every second, over this number of moments, is a counter's.
_STEEP, _FEWEST_STEEP, _LEAST_RISE = 1, 12, 1000
#: What rises so much less than on average where it begins and where it ends is a ramp.
_LEVEL = 3
#: So many moments in whole numbers, of which most rises are below this share, are a counter's.
_FEWEST_WHOLE, _CREEPING = 24, Fraction(1, 100)
#: The columns of a long table beside the time.
_LONG = ("service", "rate_rps")

_Time = f.Value(lambda value: value if isinstance(value, str) else f.read_number(value))
_Rate = f.Value(lambda value: None if value in _NO_NUMBERS else f.read_number(value))


class _Foreign(m.Part):
    """An object of another program's document, of which only some keys are read."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def _is_own(cls, key: object) -> bool:
        return True


class _Series(_Foreign):
    metric: dict[str, f.Text]
    values: tuple[tuple[Annotated[Any, _Time], Annotated[Any, _Rate]], ...]


class _Answer(_Foreign):
    resultType: f.Text  # noqa: N815
    result: tuple[_Series, ...]


class _Told(_Foreign):
    warnings: tuple[f.Text, ...] | None = None
    infos: tuple[f.Text, ...] | None = None


def read_rates(path: StrPath, service_label: str = SERVICE_LABEL) -> Rates:
    """Read observed rates: a CSV table, or the JSON of a Prometheus range query.

    `path` may be ``-``, standard input. `service_label` says which label of a Prometheus series has
    the service's name. Moments without a value are gaps (`Rates.gaps`). Rates are in requests per
    second. A FileError has the place of what is wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rates.csv"
    >>> _ = path.write_text("time,service,rate_rps\\n0,chat,5\\n60,chat,7\\n180,chat,6\\n")
    >>> rates = read_rates(path)
    >>> print(rates, *rates.gaps, sep="; ")
    1 service, 4 moments, every 60 s from 0 s to 180 s; chat: no value at 120 s
    """
    source = read_source(path, holds="a table of rates")
    if (source.text or "").lstrip().startswith(("{", "[")):
        return rates_from_matrix(Parsed(parse_json(source), source), service_label)
    return rates_from_table(source)


def rates_from_table(source: Source) -> Rates:
    """Read rates from a CSV table, long or wide; empty cells, ``NaN`` and ``-`` are not known."""
    table = read_table(source, ("time",), _LONG)
    there = [name for name in _LONG if name in table.index]
    if len(there) == 1:
        raise table.error(
            f"there is a column {there[0]!r} and none {({*_LONG} - {*there}).pop()!r}",
            expected="time,service,rate_rps, or time and a column for each service",
        )
    names = [name for name in table.index if name != "time"]
    if not names:
        what = "the only column is 'time'"
        raise table.error(what, expected="a column for each service beside it")
    clock, samples = OneClock(), dict[str, list[Sample]]()
    for row in table:
        at = clock.time_of(row["time"])
        cells = {row["service"].word(): row["rate_rps"]} if there else {n: row[n] for n in names}
        for name, cell in cells.items():
            rate = None if cell.is_missing else cell.number()
            samples.setdefault(name, []).append(Sample(at, rate, row))

    def refuse(what: str) -> FileError:
        expected = "two moments or more, and not more than a million rates"
        return FileError(source.name, what, line=table.rows[0].line, expected=expected)

    return align_samples(samples, clock.is_clock, refuse)


def rates_from_matrix(document: Parsed, label: str = SERVICE_LABEL) -> Rates:
    """Read rates from the answer of ``/api/v1/query_range``, a matrix, or its ``data`` alone.

    `label` has the service's name. A series whose name ends in ``_total`` or ``_count`` is a
    counter: its rate at a moment is its growth since the moment before, a step away; where it falls
    it was reset, and the rate there is not known. All others (``rate()`` takes the name off) are
    rates as they are; one that grows like a counter is refused.
    """
    data = _data(document)
    kind = data.at("resultType").value
    if isinstance(kind, str) and kind != "matrix":
        fix = "ask /api/v1/query_range, with start, end and step"
        raise data.wrong('"matrix"', "resultType", fix=fix)
    answer: _Answer = m.build(_Answer, data)
    read: dict[str, list[Sample]] = {}
    counters = []
    for index, one in enumerate(answer.result):
        entry = data.at("result", index)
        if label not in one.metric:
            others = ", ".join(name for name in one.metric if name != "__name__") or "none"
            raise entry.error(
                f"{entry.label('metric')} has no label {label!r}",
                "metric",
                expected=f"the service's name there; its labels are: {others}",
                fix="name another as service_label in [observation] of fleet.toml",
            )
        read_name: Callable[[Any], str] = f.name("service").read
        name = m.read_as(entry.at("metric", label), read_name)
        if name in read:
            raise entry.error(
                f"{entry.label()} is a second series of {name!r}",
                expected="one series a service",
                fix=f"add them up in the query: sum by ({label}) (...)",
            )
        read[name] = [*_samples(entry, one)]
        if one.metric.get("__name__", "").endswith(_COUNTERS):
            counters.append(name)
        else:
            _refuse_counter(entry, name, read[name], one, label)
    if not read:
        raise data.error("the result has no series", "result", expected="one a service")
    rates = align_samples(read, True, lambda what: document.error(what, expected="two or more"))
    known, reasons = dict(rates.rates_rps), {}
    for name in counters:
        grown: list[Fraction | None] = [None]
        for at, (old, new) in enumerate(pairwise(known[name]), 1):
            if old is not None and new is not None and new >= old:
                grown.append((new - old) / rates.step_s)
                continue
            grown.append(None)
            if new is not None:
                why = f"counter reset ({shown(old)} to {shown(new)})" if old else "no value before"
                reasons[name, rates.time_s(at)] = why
        known[name] = tuple(grown)
    told: _Told = m.build(_Told, document)
    notes = (*(told.warnings or ()), *(told.infos or ()))
    warnings = tuple(f"Prometheus: {text}" for text in notes)
    rates = replace(rates, rates_rps=known, reasons=reasons, warnings=warnings)
    # nothing is known of the first moment where all are counters
    return rates.between(1, rates.count - 1) if len(counters) == len(known) else rates


def _refuse_counter(entry: Parsed, name: str, own: list[Sample], one: _Series, label: str) -> None:
    """Refuse what counts requests since some beginning, which is no rate."""
    # names of series: "order_count" of another label is a name of something else
    keys = {"__name__", "metric", "name", "series"} - {label}
    names = [text for key, text in one.metric.items() if key in keys]
    called = [text for text in names if text.endswith((*_COUNTERS, *_SUMS))]
    known = [(each.at_s, each.rate_rps) for each in own if each.rate_rps is not None]
    is_sum = one.metric.get("__name__", "").endswith(_SUMS)
    if not is_sum and not is_counter(known, is_named=bool(called)):
        return
    said = f" ({called[0]})" if called else ""
    asked = next((text for text in called if text.endswith(_COUNTERS)), "requests_total")
    raise entry.error(
        f"the series of {name!r}{said} is a counter, which grows on and on",
        expected="items per second",
        fix=f"ask for sum by ({label}) (rate({asked}[5m])), or give rates as a CSV table",
    )


def _data(document: Parsed) -> Parsed:
    if not isinstance(document.value, dict):
        raise document.wrong("an object: the answer of a Prometheus range query")
    if "status" not in document.value:
        return document
    if document.value["status"] != "success":
        fix = "the query failed: see what it says under error"
        raise document.wrong('"success"', "status", fix=fix)
    if "data" not in document.value:
        raise document.error('the answer has no "data"', expected='the key "data"')
    return document.at("data")


def _samples(entry: Parsed, one: _Series) -> Iterator[Sample]:
    for index, (at, known) in enumerate(one.values):
        place = entry.at("values", index, 0)
        try:
            yield Sample(read_moment(at)[0], known, place)
        except ValueError as fault:
            raise place.wrong(str(fault)) from None


def is_counter(values: Sequence[tuple[Fraction, Fraction]], *, is_named: bool = False) -> bool:
    """Tell whether a series, of times in seconds and values, counts since some beginning.

    Rates go down as well as up; a counter only falls where it is reset. Growing traffic looks alike
    for a while, so a counter grows as no traffic does, or is counted in whole numbers and creeps up
    without ever falling, where a measured rate would waver. If some label calls the series a
    counter (`is_named`), it has only to grow, and not to fall.
    """
    steps = [after - before for (_, before), (_, after) in pairwise(values)]
    rises = [step for step in steps if step > 0]
    falls = sum(step < 0 for step in steps)
    if not rises or falls > max(1, len(values) // _MOMENTS_A_FALL):
        return False
    if is_named and len(values) > 2:
        return True
    grown, ends = sum(rises), len(steps) // 10 + 1
    if max(sum(steps[:ends]), sum(steps[-ends:])) * _LEVEL * len(steps) < grown * ends:
        return False  # from a night to a noon: a counter goes on, the more so at noon
    is_steep = grown >= _STEEP * (values[-1][0] - values[0][0])
    if is_steep and len(values) >= _FEWEST_STEEP and grown >= _LEAST_RISE:
        return True
    creeping = sum(0 < s < _CREEPING * v for s, (_, v) in zip(steps, values, strict=False))
    is_whole = all(value.denominator == 1 for _, value in values)
    return len(values) >= _FEWEST_WHOLE <= 2 * len(rises) <= 4 * creeping and is_whole
