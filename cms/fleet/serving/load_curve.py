"""How long requests take at an operating point: load curves, and the times of smaller batches."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import TypeAlias

from ...errors import InvalidProblem
from ...files.csv_records import csv_text
from ...files.source import StrPath
from ...files.tables import TableRow, read_table
from ...values.numbers import Number, exact, format_exact, shown
from .operating_point import OperatingPoint
from .service import require_late_share
from .table_guards import read_keyed

#: What names an operating point: model, device, profile, processes and batch.
PointKey: TypeAlias = tuple[str, str, str, int, int]
_EVIDENCE = ("measured", "simulated")
_DIGEST = re.compile("[0-9a-f]{64}")
POINT_KEYS = ("model", "device", "profile", "processes", "batch")
CURVE_COLUMNS = (*POINT_KEYS, "late_share", "evidence", "rates_rps", "latencies_ms")
#: A further column, of curves that were simulated by batches.
BATCHES = "batches_sha256"


@dataclass(frozen=True, slots=True, init=False)
class LoadCurve:
    """Rates of one instance, and the latency that all but a share of the requests keep at each.

    Nothing is known between two rates, so only the rates of a curve count: a straight line promises
    too much where latencies bend downwards, as they do where limits are near one batch time.
    Rates are in requests per second, latencies in milliseconds.

    Examples
    --------
    >>> curve = LoadCurve([10, 20, 40], [30, 35, 80])
    >>> [str(curve.sustained(Fraction(limit))) for limit in (29, 33, 50, 90)]
    ['0', '10', '20', '40']
    """

    rates_rps: tuple[Fraction, ...]  #: ascending, > 0
    latencies_ms: tuple[Fraction, ...]  #: one a rate
    #: So many requests may be later; 0.01, the default, makes the latencies the 99th percentiles.
    late_share: Fraction
    evidence: str  #: ``measured`` (the default) or ``simulated``
    #: Of a curve that was simulated by batches, which ones: the digest of their times
    #: (:meth:`FillTimes.digest`). A replay of the same batches may judge
    #: what rests on the curve; of any other curve, it would be another instance that it replays.
    batches_sha256: str
    #: The highest latency up to each rate: limits from which on more is sustained.
    highest_ms: tuple[Fraction, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        rates_rps: Iterable[Number],
        latencies_ms: Iterable[Number],
        late_share: Number = Fraction(1, 100),
        evidence: str = "measured",
        batches_sha256: str = "",
    ) -> None:
        put = object.__setattr__
        put(self, "rates_rps", tuple(exact(rate, "a rate of a load curve") for rate in rates_rps))
        latencies = tuple(exact(each, "a latency of a load curve") for each in latencies_ms)
        put(self, "latencies_ms", latencies)
        put(self, "highest_ms", tuple(accumulate(latencies, max)))
        put(self, "late_share", require_late_share(late_share, "a load curve"))
        put(self, "evidence", evidence)
        put(self, "batches_sha256", batches_sha256)
        if len(latencies) != len(self.rates_rps) or not latencies:
            raise InvalidProblem(
                f"a load curve has {len(self.rates_rps)} rates and {len(latencies)} latencies; "
                "expected one latency a rate, and at least one"
            )
        if not all(low < high for low, high in pairwise((Fraction(0), *self.rates_rps))):
            raise InvalidProblem("the rates of a load curve are not > 0 and ascending; sort them")
        if evidence not in _EVIDENCE:
            raise InvalidProblem(
                f"the evidence of a load curve is {evidence!r}; expected {' or '.join(_EVIDENCE)}"
            )
        if batches_sha256 and not (evidence == "simulated" and _DIGEST.fullmatch(batches_sha256)):
            raise InvalidProblem(
                f"the batches_sha256 of a load curve that was {evidence} is {batches_sha256!r}; "
                "expected 64 hexadecimal digits, as 'cms calibrate' writes them into the curves "
                "that it simulates, and none if it was measured"
            )

    def sustained(self, limit_ms: Fraction) -> Fraction:
        """Return the largest rate known to be within a limit; 0 if the lowest is too much."""
        at = bisect_right(self.highest_ms, limit_ms)
        return self.rates_rps[at - 1] if at else Fraction(0)


def key_of(point: OperatingPoint) -> PointKey:
    """Return what names a point."""
    return point.model, point.device, point.profile, point.processes, point.batch


def read_load_curves(path: StrPath) -> dict[PointKey, LoadCurve]:
    """Read load curves from a CSV table, by (model, device, profile, processes, batch).

    Columns are ``model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms``,
    one row a point: the last two are numbers with blanks or semicolons between them. With
    ``batches_sha256``, as :func:`load_curves_text` writes it, a curve says of which batches it was
    simulated. A FileError has file, line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "curves.csv"
    >>> columns = "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms"
    >>> _ = path.write_text(f"{columns}\\nbert,a30-24gb,1g.6gb,1,8,0.01,measured,100 200,60 75\\n")
    >>> [curve.latencies_ms for curve in read_load_curves(path).values()]
    [(Fraction(60, 1), Fraction(75, 1))]
    """

    def make(row: TableRow) -> tuple[PointKey, LoadCurve]:
        point = (
            row["model"].word(), row["device"].word(), row["profile"].word(),
            row["processes"].integer(minimum=1), row["batch"].integer(minimum=1),
        )  # fmt: skip
        rates, latencies = row["rates_rps"].numbers(), row["latencies_ms"].numbers()
        share, evidence = row["late_share"].number(), row["evidence"].word()
        batches = row[BATCHES].text if BATCHES in row else ""
        return point, LoadCurve(rates, latencies, share, evidence, batches)

    table = read_table(path, CURVE_COLUMNS, (BATCHES,))
    return read_keyed(table, make, "point", lambda point, _: ", ".join(map(str, point)))


def load_curves_text(curves: Mapping[PointKey, LoadCurve]) -> str:
    """Write load curves as the table that :func:`read_load_curves` reads."""
    batches = any(curve.batches_sha256 for curve in curves.values())
    rows: list[Sequence[object]] = [[*CURVE_COLUMNS, *[BATCHES] * batches]]
    for point, curve in curves.items():
        numbers = curve.rates_rps, curve.latencies_ms
        lists = (" ".join(map(format_exact, each)) for each in numbers)
        share = format_exact(curve.late_share)
        rows.append([*point, share, curve.evidence, *lists, *[curve.batches_sha256] * batches])
    return csv_text(rows)


@dataclass(frozen=True, slots=True)
class FillTimes:
    """The time of a batch by the number of requests in it.

    Examples
    --------
    >>> FillTimes({2: Fraction(4), 8: Fraction(10)}).rounded_up(1)
    [4, 4, 5, 6, 7, 8, 9, 10]
    """

    #: Ascending numbers, and times that never fall; the last is the full batch.
    times_ms: Mapping[int, Fraction]

    def __post_init__(self) -> None:
        steps = pairwise(self.times_ms.items())
        if not self.times_ms or not all(n < m and s <= t for (n, s), (m, t) in steps):
            raise InvalidProblem(
                f"the times of a batch are {self}; expected ascending numbers of requests, and "
                "times that never fall"
            )

    def __str__(self) -> str:
        return ", ".join(f"{n}: {shown(time)} ms" for n, time in self.times_ms.items()) or "none"

    def rounded_up(self, unit: int) -> list[int]:
        """Return T(1), T(2), ... in units of 1/`unit` ms, each rounded up.

        T is linear between two numbers, and constant below the smallest.
        """
        (low, start), *rest = self.times_ms.items()
        found = [math.ceil(start * unit)] * low
        for high, end in rest:  # in integers: a batch may hold a million requests
            steps = (high - low) * math.lcm(start.denominator, end.denominator)
            first, last = int(start * unit * steps), int(end * unit * steps)
            rise = (last - first) // (high - low)
            found += [-(-(first + rise * n) // steps) for n in range(1, high - low + 1)]
            low, start = high, end
        return found

    def digest(self, processes: int) -> str:
        """Return the SHA-256 of what a replay by batches knows: the processes and T(n), in ns."""
        known = " ".join(map(str, (processes, *self.rounded_up(10**6))))
        return sha256(known.encode()).hexdigest()


def fills_of(
    wanted: Iterable[OperatingPoint], points: Iterable[OperatingPoint]
) -> dict[PointKey, FillTimes]:
    """Collect the times of the smaller batches of some points, each at most the full one's."""
    keys = {key_of(point): point for point in wanted}
    kinds = {key[:4] for key in keys}
    measured: dict[tuple[str, str, str, int], dict[int, Fraction]] = {}
    for point in points:
        if (kind := key_of(point)[:4]) in kinds:
            measured.setdefault(kind, {})[point.batch] = point.batch_ms
    found = {}
    for key, point in keys.items():
        known = sorted(measured.get(key[:4], {}).items())
        smaller = {batch: min(time, point.batch_ms) for batch, time in known if batch < point.batch}
        times = dict(zip(smaller, accumulate(smaller.values(), max), strict=True))
        found[key] = FillTimes({**times, point.batch: point.batch_ms})
    return found
