"""Measured pairs as the table in CSV that ``cms colocate`` read."""

from __future__ import annotations

from collections.abc import Iterable

from cms.files.csv_records import csv_text
from cms.files.source import StrPath, write_bytes
from cms.fleet.colocation import MeasuredPair
from cms.fleet.colocation.tables import PAIR_COLUMNS
from cms.values.numbers import format_exact


def write_measured_pairs(pairs: Iterable[MeasuredPair], path: StrPath) -> None:
    """Write measured pairs as :func:`cms.fleet.colocation.read_measured_pairs` reads them."""
    rows = [
        (*pair[:4], format_exact(pair.offline_throughput), format_exact(pair.online_slowdown))
        for pair in pairs
    ]
    write_bytes(csv_text([PAIR_COLUMNS, *rows]).encode(), path)
