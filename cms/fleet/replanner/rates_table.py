"""Files of rates: CSV tables, long (``time,service,rate_rps``) or wide, and Prometheus' answers."""

from __future__ import annotations

from ...errors import FileError
from ...files.json_text import parse_json
from ...files.parsed import Parsed
from ...files.source import Source, StrPath, read_source
from ...files.tables import read_table
from .prometheus import SERVICE_LABEL, rates_from_matrix
from .rates import Rates, Sample, align_samples
from .times import OneClock

_LONG = ("service", "rate_rps")


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
    >>> print(rates, *(gap.said(rates.is_clock) for gap in rates.gaps), sep="; ")
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
    clock = OneClock()
    samples: dict[str, list[Sample]] = {}
    if len(there) == 1:
        raise table.error(
            f"there is a column {there[0]!r} and none {({*_LONG} - {*there}).pop()!r}",
            expected="time,service,rate_rps, or time and a column for each service",
        )
    names = [name for name in table.index if name != "time"]
    if not names:
        raise table.error(
            "the only column is 'time'", expected="a column for each service beside it"
        )
    for row in table:
        at = clock.time_of(row["time"])
        cells = {row["service"].word(): row["rate_rps"]} if there else {n: row[n] for n in names}
        for name, cell in cells.items():
            rate = None if cell.is_missing else cell.number()
            samples.setdefault(name, []).append(Sample(at, rate, cell.row.error))

    def too_few(what: str) -> FileError:
        expected = "two moments or more, and not more than a million rates"
        return FileError(source.name, what, line=table.rows[0].line, expected=expected)

    return align_samples(samples, clock.is_clock, too_few)
