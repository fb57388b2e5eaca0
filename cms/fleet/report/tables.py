"""Tables of reports: cells that know what they are sorted by, and heads written in one text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...values.words import decimal

#: Rows that a terminal shows.
MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: text, sort key, the place of a service, and a tone."""

    text: str
    order: Fraction | float | str | None = None
    place: int | None = None
    tone: str = ""

    @property
    def key(self) -> str:
        """What a script compares: digits, or words in small letters."""
        if self.order is None or isinstance(self.order, str):
            return (self.order or self.text).casefold()
        try:
            return repr(float(self.order))
        except OverflowError:  # beyond all floats, the largest
            return "1.7e+308" if self.order > 0 else "-1.7e+308"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: of numbers or of long texts.

    Columns of a higher rank go first where a terminal is too narrow; from 9 on a column is for the
    page alone.
    """

    name: str
    number: bool = False
    long: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """A table, which a page can sort.

    A terminal shows the first `most` rows and calls one of the others `rest`, a noun before a bar.
    A page folds the table where it is `folded`.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    rest: str = "more row"
    folded: bool = False
    most: int = MOST_ROWS
    only: str = ""


def table(
    name: str, heads: str, rows: Iterable[Iterable[object]], rest: str = "more row", **more: Any
) -> Grid:
    """Make a table; heads stand between bars: ``>s:2`` is of numbers, rank 2; ``what*`` is long."""
    columns = []
    for head in heads.split("|"):
        text, _, rank = head.strip().partition(":")
        columns.append(Column(text.strip(">*"), ">" in text, text.endswith("*"), int(rank or 0)))
    cells = [[each if isinstance(each, Cell) else Cell(str(each)) for each in row] for row in rows]
    return Grid(name, columns, cells, rest, **more)


def number(
    value: Fraction | float | None, write: Callable[[Any], str] = decimal, tone: str = ""
) -> Cell:
    """Make a cell of a number, by default as a decimal; ``-`` where there is none."""
    return Cell("-", math.nan) if value is None else Cell(write(value), value, tone=tone)


def limit_cell(milliseconds: Fraction | None) -> Cell:
    """Make a cell of a latency limit."""
    return Cell("none", math.nan) if milliseconds is None else number(milliseconds, format_ms)


def key_cell(place: int) -> Cell:
    """Make a cell of the key of a service."""
    return Cell("", place + 1, place)


def format_ms(value: Fraction) -> str:
    """Write a time in milliseconds."""
    return f"{decimal(value)} ms"
