"""Load curves: the latency of an operating point at several rates, measured or simulated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from ...errors import InvalidProblem
from ...files.layout import number_to_json
from ...files.source import StrPath
from ...files.tables import read_table
from ...values.numbers import Number, exact
from .operating_point import OperatingPoint
from .service import require_late_share

__all__ = ["CURVE_COLUMNS", "LoadCurve", "PointKey", "key_of", "read_load_curves"]

#: What names an operating point: model, device, profile, processes and batch.
PointKey: TypeAlias = tuple[str, str, str, int, int]
_EVIDENCE = ("measured", "simulated")
CURVE_COLUMNS = (
    "model",
    "device",
    "profile",
    "processes",
    "batch",
    "late_share",
    "evidence",
    "rate_rps",
    "latency_ms",
)


@dataclass(frozen=True, slots=True, init=False)
class LoadCurve:
    """Rates of one instance, and the latency that all but a share of the requests keep at each.

    Parameters
    ----------
    rates_rps : sequence of numbers
        Ascending, > 0.
    latencies_ms : sequence of numbers
        One a rate.
    late_share : number, default 0.01
        So many requests may be later; 0.01 makes the latencies the 99th percentiles.
    evidence : str, default ``"measured"``
        ``measured`` or ``simulated``.

    Examples
    --------
    >>> curve = LoadCurve([10, 20, 40], [30, 35, 80])
    >>> curve.sustained(Fraction(50))
    Fraction(80, 3)
    """

    rates_rps: tuple[Fraction, ...]
    latencies_ms: tuple[Fraction, ...]
    late_share: Fraction
    evidence: str

    def __init__(
        self,
        rates_rps: Iterable[Number],
        latencies_ms: Iterable[Number],
        late_share: Number = Fraction(1, 100),
        evidence: str = "measured",
    ) -> None:
        put = object.__setattr__
        put(self, "rates_rps", tuple(exact(rate, "a rate of a load curve") for rate in rates_rps))
        latencies = tuple(exact(each, "a latency of a load curve") for each in latencies_ms)
        put(self, "latencies_ms", latencies)
        put(self, "late_share", require_late_share(late_share, "a load curve"))
        put(self, "evidence", evidence)
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

    def sustained(self, limit_ms: Fraction) -> Fraction:
        """Return the largest rate within a limit: linear between two rates, exact.

        Latencies count as the largest up to their rate. 0 if the lowest rate is too much; at most
        the highest rate.
        """
        highest = list(accumulate(self.latencies_ms, max))
        if highest[0] > limit_ms:
            return Fraction(0)
        for (low, below), (high, above) in pairwise(zip(self.rates_rps, highest, strict=True)):
            if above > limit_ms:
                return low + (high - low) * (limit_ms - below) / (above - below)
        return self.rates_rps[-1]

    def to_json(self) -> dict[str, Any]:
        """The curve as a JSON object."""
        return {
            "late_share": number_to_json(self.late_share),
            "evidence": self.evidence,
            "rates_rps": [number_to_json(rate) for rate in self.rates_rps],
            "latencies_ms": [number_to_json(latency) for latency in self.latencies_ms],
        }


def key_of(point: OperatingPoint) -> PointKey:
    """Return what names a point."""
    return point.model, point.device, point.profile, point.processes, point.batch


def read_load_curves(path: StrPath) -> dict[PointKey, LoadCurve]:
    """Read load curves from a CSV table.

    Parameters
    ----------
    path : str or path-like
        Columns ``model,device,profile,processes,batch,late_share,evidence,rate_rps,latency_ms``:
        one row a rate, those of a point with ascending rates.

    Returns
    -------
    dict
        By (model, device, profile, processes, batch).

    Raises
    ------
    FileError
        With file, line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "curves.csv"
    >>> _ = path.write_text(
    ...     "model,device,profile,processes,batch,late_share,evidence,rate_rps,latency_ms\\n"
    ...     "bert,a100-80gb,1g.10gb,1,8,0.01,measured,100,60\\n"
    ...     "bert,a100-80gb,1g.10gb,1,8,0.01,measured,200,75\\n"
    ... )
    >>> [curve.latencies_ms for curve in read_load_curves(path).values()]
    [(Fraction(60, 1), Fraction(75, 1))]
    """
    rows: dict[PointKey, list[Any]] = {}
    for row in read_table(path, CURVE_COLUMNS):
        point = (
            row["model"].word(), row["device"].word(), row["profile"].word(),
            row["processes"].integer(minimum=1), row["batch"].integer(minimum=1),
        )  # fmt: skip
        rows.setdefault(point, []).append(row)
    curves = {}
    for point, own in rows.items():
        first = own[0]
        for row in own[1:]:
            for name in ("late_share", "evidence"):
                if row[name].text != first[name].text:
                    raise row[name].error(
                        f"{name} is {row[name].text} here and {first[name].text} on line "
                        f"{first.line}",
                        expected="one curve a point",
                    )
        try:
            curves[point] = LoadCurve(
                [row["rate_rps"].number() for row in own],
                [row["latency_ms"].number() for row in own],
                first["late_share"].number(),
                first["evidence"].word(),
            )
        except InvalidProblem as fault:
            raise first.error(str(fault)) from None
    return curves
