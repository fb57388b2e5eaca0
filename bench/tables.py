"""Tables: values with a heading and a caption, for the terminal and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
    """Write a name or a count.

    Examples
    --------
    >>> plain(12345), plain("sparse")
    ('12,345', 'sparse')
    """
    return f"{value:,}" if isinstance(value, int) else str(value)


def seconds(value: float) -> str:
    """Write a time with three digits.

    Examples
    --------
    >>> seconds(0.01234), seconds(12.34), seconds(1234.5)
    ('0.0123', '12.3', '1234')
    """
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def times(value: float) -> str:
    """Write a ratio.

    Examples
    --------
    >>> times(52.34), times(0.1234)
    ('52.3x', '0.123x')
    """
    return f"{seconds(value)}x"


def ratio(value: float) -> str:
    """Write a ratio to a bound or an optimum with its thousandths; 1 is exactly 1.

    Examples
    --------
    >>> ratio(1.0), ratio(1.03456), ratio(1.0001), ratio(12.5)
    ('1', '1.035', '1.000+', '12.500')
    """
    if value == 1:
        return "1"
    return "1.000+" if 1 < value < 1.0005 else f"{value:.3f}"


def exact(value: Fraction) -> str:
    """Write a cost exactly, or with three digits if that is long.

    Examples
    --------
    >>> exact(Fraction(5, 2)), exact(Fraction(1, 3))
    ('2.5', '1/3')
    """
    text = str(number_to_json(value))
    if len(text) <= 10:
        return text
    return f"{float(value):.3g}" if abs(value) < _FLOATS else f"{Decimal(int(value)):.3g}"


def amount(value: Fraction) -> str:
    """Write a mean of costs, or a bound that is not rounded, with its hundredths.

    Examples
    --------
    >>> amount(Fraction(12)), amount(Fraction(82, 7))
    ('12', '11.71')
    """
    return str(value) if value.denominator == 1 else f"{float(value):.2f}"


def percent(value: float) -> str:
    """Write a share.

    Examples
    --------
    >>> percent(0.995), percent(0.00012), percent(0.99999), percent(1)
    ('99.5 %', '0.012 %', '<100 %', '100 %')
    """
    if 0.99995 <= value < 1:
        return "<100 %"
    return f"{100 * value:.4g} %"


def gibibytes(value: float) -> str:
    """Write a size of memory.

    Examples
    --------
    >>> gibibytes(3 * 2**29)
    '1.5 GiB'
    """
    return f"{value / _GIB:.2g} GiB"


class AtLeast(NamedTuple):
    """A figure that is only known to be at least this, if ``open`` is true."""

    figure: float
    open: bool


def at_least(write: Callable[[float], str]) -> Callable[[AtLeast], str]:
    """Write a figure that may be open upwards.

    Examples
    --------
    >>> at_least(seconds)(AtLeast(20.0, True))
    '>20'
    """
    return lambda value: f"{'>' if value.open else ''}{write(value.figure)}"


class Column(NamedTuple):
    """A column: its heading, how a value is written, and to which side."""

    name: str
    write: Callable[[Any], str] = plain
    left: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under named columns.

    Parameters
    ----------
    title, caption : str
        The caption says how the table is to be read.
    rows : tuple of tuples
        A value for each column; None where there is none.
    red : frozenset of int, optional
        Rows that tell of something wrong.

    Examples
    --------
    >>> table = Table("sizes", "", (Column("n"), Column("time", seconds)), ((10, 0.5), (20, None)))
    >>> table.texts()
    [['10', '0.5'], ['20', '-']]
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    red: frozenset[int] = frozenset()

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
        r"""Return it as a LaTeX table; it needs the packages booktabs and, for red, xcolor.

        Examples
        --------
        >>> table = Table("a_b", "", (Column("name", left=True), Column("n")), (("x & y", 2),))
        >>> print(table.latex())
        \begin{table}
        \caption{a\_b.}
        \begin{tabular}{lr}
        \toprule
        name & n \\
        \midrule
        x \& y & 2 \\
        \bottomrule
        \end{tabular}
        \end{table}
        """
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
        (Column("instance", left=True), Column("algorithm", left=True), Column("why", left=True)),
        tuple((row.instance, row.algorithm, row.error) for row in failed),
        frozenset(range(len(failed))),
    )


def grouped(rows: Sequence[RunRow], key: Callable[[RunRow], Any]) -> dict[Any, list[RunRow]]:
    """Return the rows by a key, in the order in which the keys first come."""
    groups: dict[Any, list[RunRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
