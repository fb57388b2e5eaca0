"""What a page is made of: facts at its head, then sections of words, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from ..palette import COLOURS

if TYPE_CHECKING:
    from ..canvas import Canvas

__all__ = ["Cell", "Column", "Commands", "Fact", "Grid", "Page", "Part", "Picture", "Section"]

MOST_ROWS = 10_000
"""Rows of a table that a page holds; a browser sorts so many in a moment."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A number at the head of a page.

    Parameters
    ----------
    name, value : str
    note : str
        In a sentence, what it says.
    tone : {"", "good", "fair", "bad"}
        How it is marked; the words say it, too.
    """

    name: str
    value: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    text : str
        A line break is one on the page.
    order : Fraction, int, float or str, optional
        What rows are sorted by; by default the text.
    place : int, optional
        Of a service, whose key and colour stand before the text.
    tone : {"", "good", "fair", "bad"}
    """

    text: str
    order: Fraction | float | str | None = None
    place: int | None = None
    tone: str = ""

    @property
    def key(self) -> str:
        """What a script compares: digits, or words in small letters."""
        if self.order is None:
            return self.text.casefold()
        if isinstance(self.order, str):
            return self.order.casefold()
        return repr(_number(self.order))

    @property
    def lines(self) -> list[str]:
        """The text, line by line."""
        return self.text.split("\n")

    @property
    def colour(self) -> int:
        """Which of the colours the service's key has."""
        return (self.place or 0) % len(COLOURS)


def _number(value: Fraction | float) -> float:
    """What a script can compare; beyond all floats, the largest."""
    try:
        return float(value)
    except OverflowError:
        return 1.7e308 if value > 0 else -1.7e308


@dataclass(frozen=True, slots=True)
class Column:
    """A column's head, whether numbers stand below it, and whether whole lines do."""

    name: str
    number: bool = False
    long: bool = False

    @property
    def look(self) -> str:
        """The class of its cells."""
        return "number" if self.number else "long" if self.long else ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table whose heads sort it.

    Parameters
    ----------
    name : str
        What it lists, for those who hear it read.
    columns : sequence of Column
    rows : sequence of sequences of Cell
    folded : bool
        Whether it is opened by a click.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    kind: str = "grid"

    @property
    def shown(self) -> Sequence[Sequence[Cell]]:
        """The rows that the page holds."""
        return self.rows[:MOST_ROWS]

    @property
    def rest(self) -> int:
        """How many it leaves out."""
        return len(self.rows) - len(self.shown)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, described for those who cannot see it."""

    canvas: Canvas
    description: str
    kind: str = "picture"

    @property
    def svg(self) -> str:
        """The element; every text in it is escaped."""
        return self.canvas.inline(self.description)


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to type, each with what it does."""

    lines: Sequence[tuple[str, str]]
    kind: str = "commands"


#: A paragraph, or one of the others.
Part: TypeAlias = "str | Grid | Picture | Commands"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it.

    Parameters
    ----------
    name : str
        What links to it.
    title : str
    parts : sequence of Part
    """

    name: str
    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Page:
    """A report.

    Parameters
    ----------
    title : str
    lead : str
        What it is about, in a sentence.
    facts : sequence of Fact
    sections : sequence of Section
    source : str
        The file it was made from.
    """

    title: str
    lead: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    source: str = ""
