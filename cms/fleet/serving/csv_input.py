"""Services and operating points from the two CSV tables a user writes; and tables to begin with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from ...files.csv_records import csv_text
from ...files.numerals import number_in
from ...files.source import StrPath
from ...files.tables import Cell, TableRow, read_table
from ..hardware import Gpu, Profile
from .load_curve import PointKey, key_of
from .operating_point import COLD_START, OperatingPoint
from .service import HEEDED, Service
from .table_guards import read_keyed, refuse_unknown_columns

SERVICE_COLUMNS = ("service", "model", "rate_rps")
_AT_LEAST_1, _ABOVE_0 = partial(Cell.integer, minimum=1), partial(Cell.number, above=0)
#: How the columns of points are read, in the order of a point's parameters.
_READERS: dict[str, Callable[[Cell], Any]] = {
    "model": Cell.word, "device": Cell.word, "profile": Cell.word, "processes": _AT_LEAST_1,
    "batch": _AT_LEAST_1, "throughput_rps": _ABOVE_0, "latency_ms": _ABOVE_0,
}  # fmt: skip
POINT_COLUMNS = tuple(_READERS)

_ALLOWED = "allowed_profiles"
_LIMIT = "latency_limit_ms"
_OPTIONAL = (_LIMIT, _ALLOWED, "late_share", "queue")
#: All that the tables may have and that counts.
COLUMNS = tuple(dict.fromkeys((*SERVICE_COLUMNS, *_OPTIONAL, *HEEDED, *POINT_COLUMNS, COLD_START)))
_SEPARATORS = re.compile(r"[;,\s]+")


def read_services(path: StrPath, called: Mapping[str, str] | None = None) -> tuple[Service, ...]:
    """Read the services from a CSV table, in the order of the file.

    Columns are ``service,model,rate_rps`` and, if wanted, ``latency_limit_ms`` (empty for none),
    ``allowed_profiles`` (names with blanks, commas or semicolons between them, empty for all),
    ``late_share`` and ``queue`` (empty for what the rule says). Further columns are kept in
    ``Service.extra``; those that look like a limit, a rate or a wish are refused. `called` maps
    columns' names in the file to what they stand for: ``{"qps": "rate_rps"}``. A FileError has
    file, line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "services.csv"
    >>> _ = path.write_text("service,model,rate_rps,latency_limit_ms\\nchat,bert,19,6434\\n")
    >>> print(*read_services(path))
    chat (bert): 19 requests/s within 6434 ms
    """
    table = read_table(path, SERVICE_COLUMNS, _OPTIONAL, HEEDED, called or {})
    refuse_unknown_columns(table, (*_OPTIONAL, *HEEDED), "all")

    def make(row: TableRow) -> tuple[str, Service]:
        names = row.value(_ALLOWED, lambda cell: filter(None, _SEPARATORS.split(cell.text)), None)
        late = row.value("late_share", _share, None)
        queue = row.value("queue", lambda cell: cell.text or None, None)
        rate, limit = row["rate_rps"].number(), row.value(_LIMIT, _ABOVE_0, None)
        name, model = row["service"].word(), row["model"].word()
        origin = f"{table.source.name}:{row.line}"
        return name, Service(name, model, rate, limit, names, row.extra, origin, late, queue)

    return tuple(read_keyed(table, make, "service", "service {!r}".format).values())


def read_operating_points(
    path: StrPath, called: Mapping[str, str] | None = None
) -> tuple[OperatingPoint, ...]:
    """Read measured operating points from a CSV table, in the order of the file.

    Columns are ``model,device,profile,processes,batch,throughput_rps,latency_ms``: throughput of
    the whole instance in requests per second, latency of a batch in milliseconds. Further columns
    are kept in ``OperatingPoint.extra``; those that look like a limit to keep are refused. `called`
    and errors are as for :func:`read_services`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "points.csv"
    >>> columns = "model,device,profile,processes,batch,throughput_rps,latency_ms"
    >>> _ = path.write_text(f"{columns}\\nbert,a100-80gb,1g.10gb,2,1,104.84,19\\n")
    >>> print(*read_operating_points(path))
    bert on 1g.10gb, 2 processes, batch 1: 104.84 requests/s at 19 ms
    """
    table = read_table(path, POINT_COLUMNS, kept=(COLD_START,), called=called or {})
    refuse_unknown_columns(table, (COLD_START,), "limits")
    # tables of measurements repeat themselves: most cells were read further up already
    memory: dict[tuple[str, str], Any] = {}

    def make(row: TableRow) -> tuple[PointKey, OperatingPoint]:
        values: dict[str, Any] = {}
        for name, read in _READERS.items():
            cell = name, row.texts[row.table.index[name]]
            if cell not in memory:
                memory[cell] = read(row[name])
            values[name] = memory[cell]
        point = OperatingPoint(**values, extra=row.extra, origin=f"{table.source.name}:{row.line}")
        return key_of(point), point

    def said(_: PointKey, point: OperatingPoint) -> str:
        return f"{point.model} on {point.device}, {point.setting}"

    return tuple(read_keyed(table, make, "point", said).values())


def _share(cell: Cell) -> Fraction:
    """Read ``0.05`` or ``5 %``."""
    if cell.text.endswith("%") and (hundredths := number_in(cell.text[:-1].rstrip())) is not None:
        return hundredths / 100
    return cell.number(above=0)


_TEMPLATES = Path(__file__).parent / "templates"
#: Items per second of a whole GPU in batches of 8: orders of magnitude, not measurements.
_MODELS = {"bert": 800, "resnet50": 3000}
#: (processes, batch) and the part of the whole GPU's throughput that is reached with them.
_SETTINGS = {(1, 1): 0.45, (1, 8): 0.9, (2, 8): 1.0}


def services_template() -> str:
    """Return a table of services to begin with."""
    return (_TEMPLATES / "services.csv").read_text("utf-8")


def points_template(gpu: Gpu) -> str:
    """Return a table of operating points on the profiles of a GPU, to begin with."""
    rows: list[tuple[object, ...]] = [POINT_COLUMNS]
    # one profile of each size: those with more memory or media engines are for what needs them
    sizes: dict[int, Profile] = {}
    for one in sorted(gpu.profiles, key=lambda each: (each.compute, each.memory, len(each.name))):
        sizes.setdefault(one.compute, one)
    for model, whole in _MODELS.items():
        for profile in sizes.values():
            # small instances do a little better than their share, as they do in measurements
            part = (profile.compute / gpu.compute_slices) ** 0.85
            for (processes, batch), reached in _SETTINGS.items():
                throughput = round(whole * part * reached, 1)
                latency = round(1000 * processes * batch / throughput, 1)
                own = model, gpu.key, profile.name, processes, batch
                rows.append((*own, f"{throughput:g}", f"{latency:g}"))
    return (_TEMPLATES / "operating_points.csv").read_text("utf-8") + csv_text(rows)
