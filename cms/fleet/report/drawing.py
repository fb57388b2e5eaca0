"""Bars of slices drawn with characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from .bars import Bar, Cell
from .palette import colour
from .words import decimal, printable

_WIDEST_SLICE = 15
_NARROWEST_SLICE = 4
_LEAST_FILL = 2  # columns; a shorter run of hatching looks like a slip of the keyboard

# (line goes up, goes down, goes left, goes right)
_JUNCTIONS = {
    (False, True, False, True): "┌", (False, True, True, False): "┐",
    (True, False, False, True): "└", (True, False, True, False): "┘",
    (True, True, False, True): "├", (True, True, True, False): "┤",
    (False, True, True, True): "┬", (True, False, True, True): "┴",
    (True, True, True, True): "┼", (False, False, True, True): "─",
}  # fmt: skip


def draw(bars: Sequence[Bar], places: Mapping[str, int], width: int) -> Text:
    """Draw bars of GPUs of one type, one below the other.

    Parameters
    ----------
    bars : sequence of Bar
        All with the same number of slices.
    places : Mapping of str to int
        Each service's place in the services' list; its key on the bars is the place + 1.
    width : int
        Columns there are.

    Returns
    -------
    Text
        Four lines for the first bar and three for every other one; or one line a bar, with its
        instances in words, where they are too small for this width.
    """
    slices = bars[0].slices
    counts = [f"{decimal(bar.count)} ×" for bar in bars]
    margin = max(5, *map(len, counts)) + 1
    scale = _scale(bars, width - margin - 1)
    if any(_is_too_fine(bar, scale) for bar in bars):
        return _listed(bars, counts, places)
    text = Text(no_wrap=True, overflow="crop")
    above: set[int] = set()
    for bar, count in zip(bars, counts, strict=True):
        below = _edges(bar, scale)
        text.append(" " * margin + _rule(above, below, scale[slices]) + "\n", "dim")
        for line in (0, 1):
            text.append((count if line == 0 else "").rjust(margin - 1) + " ", "bold")
            for cell in bar.cells:
                text.append("│", "dim")
                room = scale[cell.start + cell.width] - scale[cell.start] - 1
                _append_cell(text, cell, places, room, line)
            text.append("│\n", "dim")
        above = below
    text.append(" " * margin + _rule(above, set(), scale[slices]), "dim")
    return text


def _is_too_fine(bar: Bar, scale: Sequence[int]) -> bool:
    """Whether two edges would fall into one column: the frame could not be drawn."""
    return any(scale[cell.start + cell.width] == scale[cell.start] for cell in bar.cells)


def _listed(bars: Sequence[Bar], counts: Sequence[str], places: Mapping[str, int]) -> Text:
    text = Text(overflow="fold")
    for bar, count in zip(bars, counts, strict=True):
        alike = Counter((cell.profile, cell.point, cell.service) for cell in bar.cells)
        parts = []
        for (profile, point, service), number in alike.items():
            if service is not None:
                who = f"{places[service] + 1} {printable(service)}"
                parts.append(f"{decimal(number)} x {profile} {point} for {who}")
            elif profile:
                parts.append(f"{decimal(number)} x {profile} idle")
        text.append("\n" if text else "").append(f"{count} ", "bold").append(", ".join(parts))
    return text


def _scale(bars: Sequence[Bar], room: int) -> list[int]:
    """The column of the left edge of each slice, and of the right edge of the last."""
    slices = bars[0].slices
    if not bars[0].shared:
        pitch = max(_NARROWEST_SLICE, min(_WIDEST_SLICE, room // slices))
        return [pitch * edge for edge in range(slices + 1)]
    wide = max(4 * _NARROWEST_SLICE, min(8 * _WIDEST_SLICE, room))
    return [wide * edge // slices for edge in range(slices + 1)]


def _edges(bar: Bar, scale: Sequence[int]) -> set[int]:
    return {scale[cell.start] for cell in bar.cells} | {scale[bar.slices]}


def _rule(above: set[int], below: set[int], right: int) -> str:
    return "".join(
        _JUNCTIONS[column in above, column in below, column > 0, column < right]
        for column in range(right + 1)
    )


def _append_cell(text: Text, cell: Cell, places: Mapping[str, int], room: int, line: int) -> None:
    if room <= 0:  # a share of a few per cent in a narrow terminal: only its edge is seen
        return
    if not cell.profile:
        text.append("/" * room, "dim")
    elif cell.service is None:
        label = f" {cell.profile}" if line == 0 else " idle"
        if cell_len(label) + 1 + _LEAST_FILL <= room:
            label += " " + "░" * (room - cell_len(label) - 1)
        text.append(fit(label, room), "dim")
    else:
        place = places[cell.service]
        style = Style(color="#000000", bgcolor=colour(place), bold=line == 1)
        label = f" {cell.profile}"
        if line == 1:
            label = f" {place + 1} {printable(cell.service)}"
        elif cell_len(label) + len(cell.point) + 1 <= room:
            label += f" {cell.point}"
        text.append(fit(label, room), style)


def fit(text: str, width: int) -> str:
    """Cut or fill a text to exactly ``width`` columns; an ellipsis says that something is missing.

    Examples
    --------
    >>> fit("densenet169", 8), fit("bert", 6), fit("漢字", 3)
    ('densene…', 'bert  ', '漢…')
    """
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)
