"""Bars of slices drawn with characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from ...values.words import decimal, printable
from .bars import Bar, Cell
from .palette import colour

_WIDEST_SLICE = 15
_NARROWEST_SLICE = 4
_BRIEF = 8  # columns; in fewer, a name would be cut to a letter or two
_LEAST_FILL = 2  # columns; a shorter run of hatching looks like a slip of the keyboard

# (line goes up, goes down, goes left, goes right)
_JUNCTIONS = {
    (False, True, False, True): "┌", (False, True, True, False): "┐",
    (True, False, False, True): "└", (True, False, True, False): "┘",
    (True, True, False, True): "├", (True, True, True, False): "┤",
    (False, True, True, True): "┬", (True, False, True, True): "┴",
    (True, True, True, True): "┼", (False, False, True, True): "─",
}  # fmt: skip


def draw(
    bars: Sequence[Bar],
    places: Mapping[str, int],
    width: int,
    labels: Sequence[str] | None = None,
) -> Text:
    """Draw bars of GPUs of one type, one below the other.

    Parameters
    ----------
    bars : sequence of Bar
        All with the same number of slices.
    places : Mapping of str to int
        Each service's place in the services' list; its key on the bars is the place + 1.
    width : int
        Columns there are.
    labels : sequence of str, optional
        What stands before each bar; by default, how many GPUs are used so.

    Returns
    -------
    Text
        Four lines for the first bar and three for every other one; or one line a bar, with its
        instances in words, where they are too small for this width.
    """
    slices = bars[0].slices
    counts = list(labels or (f"{decimal(bar.count)} ×" for bar in bars))
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
                _append_cell(text, cell, places, room, line, "" if line else cell.sign)
            text.append("│\n", "dim")
        above = below
    text.append(" " * margin + _rule(above, set(), scale[slices]), "dim")
    return text


def draw_line(bar: Bar, places: Mapping[str, int], width: int) -> Text:
    """Draw a bar on one line: the services' keys and names where their instances are.

    Parameters
    ----------
    bar : Bar
    places : Mapping of str to int
        As for :func:`draw`.
    width : int
        Columns there are; a bar is at least 33 wide, and cells that nothing fits in are only seen.

    Examples
    --------
    >>> bar = Bar("a30-24gb", 4, (Cell(0, 2, "2g.12gb", "chat"), Cell(2, 2)))
    >>> print(draw_line(bar, {"chat": 0}, 40).plain)
    │ 1 chat          │/////////////////│
    """
    if bar.shared:
        scale = [max(8 * _NARROWEST_SLICE, width - 1) * edge // bar.slices for edge in range(101)]
    else:
        pitch = max(_NARROWEST_SLICE, (width - 1) // bar.slices)
        scale = [pitch * edge for edge in range(bar.slices + 1)]
    text = Text(no_wrap=True, overflow="crop")
    for cell in bar.cells:
        room = scale[cell.start + cell.width] - scale[cell.start] - 1
        if room >= 0:
            text.append("│", "dim")
            if room < _BRIEF:
                _append_brief(text, cell, places, room)
            else:
                _append_cell(text, cell, places, room, 1, cell.sign)
    return text.append("│", "dim")


def _is_too_fine(bar: Bar, scale: Sequence[int]) -> bool:
    """Whether two edges would fall into one column: the frame could not be drawn."""
    return any(scale[cell.start + cell.width] == scale[cell.start] for cell in bar.cells)


def _listed(bars: Sequence[Bar], counts: Sequence[str], places: Mapping[str, int]) -> Text:
    text = Text(overflow="fold")
    for bar, count in zip(bars, counts, strict=True):
        alike = Counter((c.profile, c.point, c.service, c.owner, c.slots) for c in bar.cells)
        parts = []
        for (profile, point, service, owner, slots), number in alike.items():
            if slots:
                own = (f"{places[s.service] + 1} {printable(s.service)} {s.point}" for s in slots)
                parts.append(f"{decimal(number)} x {profile} {' | '.join(own)}, {point}")
            elif service is not None:
                who = f"{places[service] + 1} {printable(service)}"
                parts.append(f"{decimal(number)} x {profile} {point} for {who}")
            elif profile:
                parts.append(f"{decimal(number)} x {profile} {printable(owner) or 'idle'}")
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


def _append_cell(
    text: Text, cell: Cell, places: Mapping[str, int], room: int, line: int, sign: str
) -> None:
    """Append a line of a cell: its profile, or what it does; a sign goes to its right end."""
    if room <= 0:  # a share of a few per cent in a narrow terminal: only its edge is seen
        return
    if not cell.profile:
        text.append("/" * room, "dim")
        return
    end = f" {sign}" if sign and len(sign) + 1 < room else sign[:room]
    room -= len(end)
    if cell.service is None:
        label = f" {cell.profile}" if line == 0 else f" {_doing_nothing_for_us(cell)}"
        if cell_len(label) + 1 + _LEAST_FILL <= room:
            label += " " + ("#" if cell.owner else "░") * (room - cell_len(label) - 1)
        text.append(fit(label, room) + end, "dim" if cell.mark in ("", "kept") else "")
        return
    if cell.slots:
        _append_slots(text, cell, places, room, line)
        return
    place = places[cell.service]
    style = Style(color="#000000", bgcolor=colour(place), bold=line == 1, italic=bool(cell.state))
    label = f" {cell.profile}"
    if line == 1:
        label = f" {place + 1} {printable(cell.service)}"
    elif cell_len(label) + len(cell.point) + 1 <= room:
        label += f" {cell.point}"
    text.append(fit(label, room) + end, style)


def _append_slots(text: Text, cell: Cell, places: Mapping[str, int], room: int, line: int) -> None:
    """Append a line of a cell that services share: each slot as wide as the time it takes."""
    head = fit(f" {cell.profile} {cell.point}", room)
    edges = slot_edges(cell, room)
    for slot, start, end in zip(cell.slots, edges, edges[1:], strict=False):
        place = places[slot.service]
        style = Style(color="#000000", bgcolor=colour(place), bold=line == 1)
        label = f"{place + 1} {printable(slot.service)} {slot.point}"
        own = fit(f"{'┊' if start else ' '}{label}", end - start)
        text.append(own if line else head[start:end], style)


def slot_edges(cell: Cell, room: int) -> list[int]:
    """Return where the slots of a cell begin and end, as whole numbers from 0 to `room`.

    Each has one column at least, where there are as many.

    Examples
    --------
    >>> from cms.fleet.report.bars import Slot
    >>> slots = tuple(Slot("a", Fraction(n, 40), "b=1") for n in (1, 9, 30))
    >>> slot_edges(Cell(0, 8, "mps:60", "a", slots=slots), 8)
    [0, 1, 2, 8]
    """
    edges, past, left = [0], Fraction(0), len(cell.slots)
    for slot in cell.slots:
        past, left = past + slot.share, left - 1
        edges.append(min(max(edges[-1] + 1, round(past * room)), max(room - left, edges[-1])))
    return edges


def _append_brief(text: Text, cell: Cell, places: Mapping[str, int], room: int) -> None:
    """Append a cell that has room for a key and a sign alone."""
    if cell.service is None:
        fill = "/" if not cell.profile else "#" if cell.owner else "░"
        sign = cell.sign[:room]
        text.append(fill * (room - len(sign)) + sign, "dim")
        return
    place = places[cell.service]
    key = f"{place + 1}{cell.sign}".center(room)
    style = Style(color="#000000", bgcolor=colour(place), bold=True, italic=bool(cell.state))
    text.append(fit(key, room), style)


def _doing_nothing_for_us(cell: Cell) -> str:
    if cell.owner:
        return printable(cell.owner)
    return cell.state or "idle"


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
