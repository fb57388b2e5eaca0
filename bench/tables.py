"""Tables: values with a heading and a caption, for the terminal and for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from cms.files import number_to_json

from .row import Outcome, RunRow

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_GIB = 2**30
#: Beyond it a float is infinite.
_FLOATS = 10**308


def plain(value: Any) -> str:
    """Write a name or a count."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def seconds(value: float) -> str:
    """Write a time with three digits."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def times(value: float) -> str:
    """Write a ratio."""
    return f"{seconds(value)}x"


def ratio(value: float) -> str:
    """Write a ratio to a bound or an optimum with its thousandths; 1 is exactly 1."""
    if value == 1:
        return "1"
    return "1.000+" if 1 < value < 1.0005 else f"{value:.3f}"


def exact(value: Fraction) -> str:
    """Write a cost exactly, or with three digits if that is long."""
    text = str(number_to_json(value))
    if len(text) <= 10:
        return text
    return f"{float(value):.3g}" if abs(value) < _FLOATS else f"{Decimal(int(value)):.3g}"


def amount(value: Fraction) -> str:
    """Write a mean of costs, or a bound that is not rounded, with its hundredths."""
    return str(value) if value.denominator == 1 else f"{float(value):.2f}"


def percent(value: float) -> str:
    """Write a share."""
    if 0.99995 <= value < 1:
        return "<100 %"
    return f"{100 * value:.4g} %"


def gibibytes(value: float) -> str:
    """Write a size of memory."""
    return f"{value / _GIB:.2g} GiB"


class AtLeast(NamedTuple):
    """A figure that is only known to be at least this, if ``open`` is true."""

    figure: float
    open: bool


def at_least(write: Callable[[float], str]) -> Callable[[AtLeast], str]:
    """Write a figure that may be open upwards."""
    return lambda value: f"{'>' if value.open else ''}{write(value.figure)}"


class Column(NamedTuple):
    """A column: its heading, how a value is written, and to which side."""

    name: str
    write: Callable[[Any], str] = plain
    left: bool = False


#: How values are written, by the word after a heading; without one they are names or counts.
_WRITERS: dict[str, Callable[[Any], str]] = {
    "": plain, "text": plain, "seconds": seconds, "times": times, "ratio": ratio, "exact": exact,
    "amount": amount, "percent": percent, "memory": gibibytes, ">seconds": at_least(seconds),
    ">times": at_least(times),
}  # fmt: skip


def columns(*headings: str, **own: Callable[[Any], str]) -> tuple[Column, ...]:
    """Read headings like ``"family:text | share:percent"``; a table may have its own words."""
    writers = {**_WRITERS, **own}
    found = []
    for heading in " | ".join(headings).split(" | "):
        name, _, how = heading.partition(":")
        found.append(Column(name, writers[how], left=how == "text"))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under named columns, None where there is none; ``red`` ones tell of faults.

    The caption says how the table is to be read.
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Any, ...]] = field(default_factory=list)
    red: Collection[int] = field(default_factory=set)

    def add(self, *cells: Any, red: bool = False) -> None:
        """Append a row to a table that was made without any."""
        assert isinstance(self.rows, list)
        assert isinstance(self.red, set)
        if red:
            self.red.add(len(self.rows))
        self.rows.append(cells)

    def texts(self) -> list[list[str]]:
        """Return every row's cells as texts."""
        return [
            [
                "-" if value is None else column.write(value)
                for column, value in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def rich(self) -> RichTable:
        """Return it for the terminal."""
        from rich import box
        from rich.markup import escape
        from rich.table import Table as RichTable

        shown = RichTable(
            title=escape(self.title), caption=escape(self.caption), box=box.SIMPLE_HEAD,
            title_justify="left", caption_justify="left",
        )  # fmt: skip
        for column in self.columns:
            shown.add_column(column.name, justify="left" if column.left else "right")
        for number, texts in enumerate(self.texts()):
            style = "red" if number in self.red else None
            shown.add_row(*map(escape, texts), style=style)
        return shown

    def latex(self) -> str:
        r"""Return it as a LaTeX table; it needs the packages booktabs and, for red, xcolor."""
        sides = "".join("l" if column.left else "r" for column in self.columns)
        lines = []
        for number, texts in enumerate(self.texts()):
            cells = [_escaped(text) for text in texts]
            if number in self.red:
                cells = [rf"\textcolor{{red}}{{{cell}}}" for cell in cells]
            lines.append(" & ".join(cells) + r" \\")
        heading = " & ".join(_escaped(column.name) for column in self.columns)
        caption = f"{self.title}. {self.caption}".strip()
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_escaped(caption)}}}",
                rf"\begin{{tabular}}{{{sides}}}",
                r"\toprule",
                heading + r" \\",
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values, exact where they are exact."""
        names = [column.name for column in self.columns]
        return {
            "title": self.title,
            "caption": self.caption,
            "rows": [dict(zip(names, map(_value, row), strict=True)) for row in self.rows],
        }


#: What LaTeX takes for commands, and how it is written.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    }
)  # fmt: skip


def _escaped(text: str) -> str:
    """Write a text for LaTeX: on one line, and never taken for an option of the line before."""
    words = " ".join(text.split()).translate(_LATEX)
    return "{}" + words if words[:1] in ("[", "*") else words


def _value(value: Any) -> Any:
    if isinstance(value, AtLeast):
        return {"at_least" if value.open else "exactly": value.figure}
    return number_to_json(value) if isinstance(value, Fraction) else value


def failures(rows: Iterable[RunRow]) -> Table | None:
    """Return the failed runs, in red; None if there are none."""
    failed = [row for row in rows if row.outcome is Outcome.FAILED]
    if not failed:
        return None
    return Table(
        f"{len(failed)} failed run{'s' if len(failed) > 1 else ''}",
        "A run fails if it crashes, does not stop, or says what the checkers refuse.",
        columns("instance:text | algorithm:text | why:text"),
        [(row.instance, row.algorithm, row.error) for row in failed],
        range(len(failed)),
    )


def grouped(rows: Sequence[RunRow], key: Callable[[RunRow], Any]) -> dict[Any, list[RunRow]]:
    """Return the rows by a key, in the order in which the keys first come."""
    groups: dict[Any, list[RunRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
