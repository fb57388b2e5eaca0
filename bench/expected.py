"""Figures beside what they should be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.console import Console

from bench.tables import Table, columns


class Line(NamedTuple):
    """A figure, what it should be and what it is."""

    figure: str
    of: str
    expected: str
    found: str
    holds: bool


def show(title: str, caption: str, found: Iterable[Line]) -> int:
    """Print figures as a table, those that are not as expected in red; return 1 if there is one."""
    headings = columns("figure:text | of:text | expected:text | found:text | holds:text")
    table = Table(title, f"{caption} Red: not as expected.", headings)
    for line in found:
        table.add(*line[:4], "yes" if line.holds else "no", red=not line.holds)
    Console().print(table.rich())
    return 1 if table.red else 0
