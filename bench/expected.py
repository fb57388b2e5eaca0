"""Figures beside what they should be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.console import Console

from bench.tables import Column, Table


class Line(NamedTuple):
    """A figure, what it should be and what it is."""

    figure: str
    of: str
    expected: str
    found: str
    holds: bool


def show(title: str, caption: str, found: Iterable[Line]) -> int:
    """Print figures as a table, those that are not as expected in red; return 1 if there is one."""
    lines = [*found]
    red = frozenset(at for at, line in enumerate(lines) if not line.holds)
    columns = (
        Column("figure", left=True), Column("of", left=True), Column("expected", left=True),
        Column("found", left=True), Column("holds", left=True),
    )  # fmt: skip
    rows = tuple((*line[:4], "yes" if line.holds else "no") for line in lines)
    said = f"{caption} Red: not as expected."
    Console().print(Table(title, said, columns, rows, red).rich())
    return 1 if red else 0
