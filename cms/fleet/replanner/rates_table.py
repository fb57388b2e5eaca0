"""Files of rates: CSV tables, long (``time,service,rate_rps``) or wide, and Prometheus' answers."""

from __future__ import annotations

from fractions import Fraction

from ...errors import FileError
from ...files.json_text import parse_json
from ...files.parsed import Parsed
from ...files.source import Source, StrPath, read_source
from ...files.tables import Cell, Table, read_table
from .prometheus import SERVICE_LABEL, rates_from_matrix
from .rates import Rates, Sample, align_samples
from .times import OneClock

_LONG = ("service", "rate_rps")


def read_rates(path: StrPath, service_label: str = SERVICE_LABEL) -> Rates:
    """Read observed rates: a CSV table, or the JSON of a Prometheus range query.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard input. A FileError has the place of what is wrong.
    service_label : str
        Which label of a Prometheus series has the service's name.

    Returns
    -------
    Rates
        Moments without a value are gaps (`Rates.gaps`); nothing stands in for them.
    """
    source = read_source(path, holds="a table of rates")
    if (source.text or "").lstrip().startswith(("{", "[")):
        return rates_from_matrix(Parsed(parse_json(source), source), service_label)
    return rates_from_table(source)


def rates_from_table(source: Source) -> Rates:
    """Read rates from a CSV table, long or wide.

    Empty cells, ``NaN`` and ``-`` are rates that are not known. A FileError has line and column of
    a rate that is negative or no number, a time that is none, times that go back, are there twice
    or have zones only here and there, ...
    """
    table = read_table(source, ("time",), _LONG)
    there = [name for name in _LONG if name in table.index]
    clock = OneClock()
    samples: dict[str, list[Sample]] = {}
    if len(there) == 1:
        raise FileError(
            source.name,
            f"there is a column {there[0]!r} and none {({*_LONG} - {*there}).pop()!r}",
            line=table.line,
            expected="time,service,rate_rps, or time and a column for each service",
        )
    if there:
        for row in table:
            at = clock.time_of(row["time"])
            own = samples.setdefault(row["service"].word(), [])
            own.append(_sample(at, row["rate_rps"]))
    else:
        _fill_from_columns(table, clock, samples)
    return align_samples(samples, clock.is_clock, lambda what: _too_few(source, table, what))


def _fill_from_columns(table: Table, clock: OneClock, samples: dict[str, list[Sample]]) -> None:
    names = [name for name in table.index if name != "time"]
    if not names:
        raise FileError(
            table.source.name,
            "the only column is 'time'",
            line=table.line,
            expected="a column for each service beside it",
        )
    for row in table:
        at = clock.time_of(row["time"])
        for name in names:
            samples.setdefault(name, []).append(_sample(at, row[name]))


def _sample(at: Fraction, cell: Cell) -> Sample:
    def refuse(what: str, expected: str, fix: str) -> FileError:
        return cell.row.error(what, expected=expected, fix=fix)

    return Sample(at, None if cell.is_missing else cell.number(), refuse)


def _too_few(source: Source, table: Table, what: str) -> FileError:
    return FileError(
        source.name,
        what,
        line=table.rows[0].line,
        expected="two moments or more, and not more than a million rates",
    )
