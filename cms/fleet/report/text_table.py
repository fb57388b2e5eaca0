"""The one look of the tables in reports, and of their last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ...solving.words import circumstances, verdict
from ...values.words import printable

if TYPE_CHECKING:
    from ...solving.solution import Solution


def table(*heads: str) -> Table:
    """Return an empty table; a head that begins with ``>`` is of a column of numbers.

    Examples
    --------
    >>> from rich.console import Console
    >>> numbers = table("job", ">demand")
    >>> numbers.add_row("bert", "1,200")
    >>> Console(width=40, color_system=None).print(numbers)
    job   demand
    ────────────
    bert   1,200
    """
    result = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for head in heads:
        number = head.startswith(">")
        result.add_column(
            head.lstrip(">"),
            justify="right" if number else "left",
            no_wrap=number,
            overflow="ellipsis" if number else "fold",  # a number that is cut must not look whole
        )
    return result


def hanging(*rows: tuple[str, str]) -> Table:
    """Return rows of two columns whose second one is folded under itself, never under the first."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for first, second in rows:
        grid.add_row("", text(first), text(second))
    return grid


def verdict_line(solution: Solution, machine: str = "machine") -> Text:
    """Return how a report ends: what is proved, green if it was checked, and how it was found."""
    style = "bold green" if solution.proof == "checked" else "bold yellow"
    end = Text("\n").append(verdict(solution, machine), style)
    return end.append(f"\n({circumstances(solution)})", "dim")


def text(name: str) -> Text:
    """Return a name as it is, whatever markup or control characters it holds."""
    return Text(printable(name))
