"""The few statistics the tables need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, log, sqrt
from statistics import median
from typing import Any, NamedTuple

from .row import RunRow

__all__ = ["Growth", "growth", "measured", "median", "middle", "quantile", "values"]


def values(rows: Iterable[RunRow], field: str) -> list[Any]:
    """Return a field of the rows that have it."""
    return [value for row in rows if (value := getattr(row, field)) is not None]


def measured(rows: Sequence[RunRow]) -> dict[str, list[float]]:
    """Return the measurements of all rows by name."""
    return {key: [float(row.measurements[key]) for row in rows] for key in rows[0].measurements}


def middle(found: Sequence[float]) -> float | None:
    """Return the median; None of nothing."""
    return median(found) if found else None


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest of the values that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


class Growth(NamedTuple):
    """The exponent of a power law, fitted, and its standard error (None below three points)."""

    exponent: float
    error: float | None


def growth(sizes: Sequence[float], times: Sequence[float]) -> Growth | None:
    """Fit ``time = a * size ** exponent`` by least squares of the logarithms."""
    if len(set(sizes)) < 2:
        return None
    x, y = [log(size) for size in sizes], [log(time) for time in times]
    mean_x, mean_y = sum(x) / max(1, len(x)), sum(y) / max(1, len(y))
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    left = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in zip(x, y, strict=True))
    degrees = len(x) - 2
    return Growth(slope, sqrt(left / degrees / spread) if degrees > 0 else None)
