"""Pages in a terminal: words, tables, and bars drawn with characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.table import Column as TableColumn
from rich.table import Table
from rich.text import Text

from ...values.words import count, printable
from .colours import COLOURS
from .page import Bar, Bars, Box, Bullets, Section, Words, legend
from .tables import Cell, Grid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from .page import Page, Part

_WIDEST_SLICE, _NARROWEST_SLICE = 15, 4
_BRIEF = 8  # columns; in fewer, a name would be cut to a letter or two
_LEAST_FILL = 2  # columns; a shorter run of hatching looks like a slip of the keyboard
_CAPTION = 46  # columns of the words after a bar on one line
_LEAST_NAME, _LEAST_LONG = 8, 24  # columns that a folded name, and a folded sentence, has
_MOST_ROWS = 120  # of a table in a picture
_TONES = {
    "head": "bold", "soft": "dim", "good": "green", "fair": "yellow", "bad": "bold red",
    "best": "bold green", "open": "bold yellow",
}  # fmt: skip
#: Lines that go up (1), down (2), left (4) and right (8), by the sum of these.
_JUNCTIONS = "     ┘┐┤ └┌├─┴┬┼"


def render(page: Page, width: int, *, whole: bool = False) -> Iterator[RenderableType]:
    """Yield the parts of a page to print, `width` columns wide.

    `whole`: the drawn sections alone, with bars and rows that a terminal leaves out.
    """
    if page.title or page.lead:
        head = Text(printable(page.title), "bold")
        lead = f"{chr(10) * bool(page.title)}{printable(page.lead)}" if page.lead else ""
        yield head.append(lead, "not bold")
    begun = bool(page.title or page.lead)
    for section in page.sections:
        if section.drawn if whole else section.only != "web":
            yield from (parts := list(_section(section, width, whole, begun=begun)))
            begun |= bool(parts)
    for at, each in enumerate(page.end):
        yield Text(f"{'' if at else chr(10)}{printable(each.text)}", _TONES.get(each.tone, ""))


def _section(section: Section, width: int, whole: bool, *, begun: bool) -> Iterator[RenderableType]:
    last: object = None if begun else section
    drawn: list[Bars] = []
    for part in section.parts:
        is_bars = isinstance(part, Bars)
        if not isinstance(part, str) and part.only == "web" and not (whole and is_bars):
            continue
        if whole and isinstance(part, Grid):
            if part.folded:
                continue
            part = replace(part, most=_MOST_ROWS)
        if whole and isinstance(part, Bars) and part.size == "small":
            part = replace(part, size="line")
        if drawn and not is_bars:
            yield _key(drawn)
            drawn = []
        joined = isinstance(last, Words | str) and isinstance(part, Words | Bullets | str)
        soft = isinstance(part, Words) and part.tone == "soft" and last is not None
        bare = isinstance(part, Bars) and (
            not part.head or (isinstance(last, Bars) and not part.note)
        )
        if part != "" and not (joined or soft or bare or last is section):
            yield Text()
        yield from _part(part, width)
        if isinstance(part, Bars) and part.size != "small":
            drawn.append(part)
        last = part
    if drawn:
        yield _key(drawn)


def _key(drawn: Sequence[Bars]) -> Text:
    return Text(f"      {legend(drawn, '/// free', '░░░ idle', '### foreign')}", "dim")


def _part(part: Part, width: int) -> Iterator[RenderableType]:
    if isinstance(part, str):
        yield Text(printable(part))
    elif isinstance(part, Words):
        yield Text(printable(part.text), _TONES.get(part.tone, ""))
    elif isinstance(part, Bullets):  # sentences are folded under themselves
        grid = Table.grid("", "", TableColumn(overflow="fold"), padding=(0, 2, 0, 0))
        for first, second in part.items:
            grid.add_row("", Text(printable(first), no_wrap=True), Text(printable(second)))
        yield grid
    elif isinstance(part, Grid):
        yield from _grid(part, width)
    elif isinstance(part, Bars):
        yield from _bars(part, width)


def _grid(grid: Grid, width: int) -> Iterator[RenderableType]:
    rows, left = grid.rows[: grid.most], len(grid.rows) - grid.most
    every = [at for at, column in enumerate(grid.columns) if column.rank < 9]
    lines = {at: [line for row in rows for line in _shown(row[at]).split("\n")] for at in every}
    wide = {at: max(map(cell_len, [grid.columns[at].name, *lines[at]])) for at in every}
    texts = [at for at in every if not grid.columns[at].number]
    named = max(texts, key=lambda at: wide[at], default=None)  # is folded
    least = dict(wide)
    if named is not None:
        least[named] = min(wide[named], _LEAST_LONG if grid.columns[named].long else _LEAST_NAME)

    def excess(columns: Sequence[int], sizes: dict[int, int]) -> int:
        return sum(sizes[at] for at in columns) + 2 * (len(columns) - 1) - width

    # what does not fit without folding even in the fewest columns is folded before one is left out
    fewest = [at for at in every if not grid.columns[at].rank]
    columns, sizes = every, least if excess(fewest, wide) > 0 else wide
    while excess(columns, sizes) > 0 and len(columns) > len(fewest):
        rank = max(grid.columns[at].rank for at in columns)
        columns = [at for at in columns if grid.columns[at].rank < rank]
    if excess(columns, least) > 0:
        for nth, row in enumerate(rows):  # lines of a head and a value: the columns are too many
            card = Table.grid("", TableColumn(overflow="fold"), padding=(0, 2, 0, 0))
            for at in every:
                card.add_row(Text(printable(grid.columns[at].name), "dim"), _cell(row[at]))
            if nth:
                yield Text()
            yield card
    else:
        result = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for at in columns:
            head, beyond = grid.columns[at], excess(columns, wide) if at == named else 0
            result.add_column(
                head.name, justify="right" if head.number else "left", no_wrap=head.number,
                overflow="fold", max_width=wide[at] - beyond if beyond > 0 else None,
            )  # fmt: skip
        for row in rows:
            result.add_row(*(_cell(row[at]) for at in columns))
        yield result
    if left > 0:
        noun, _, more = grid.rest.partition("|")
        yield Text(f"... and {count(left, noun)}{more}", "dim")


def _shown(cell: Cell) -> str:
    text = "\n".join(printable(line) for line in cell.text.split("\n"))
    return text if cell.place is None else f"{cell.place + 1} {text}".rstrip()


def _cell(cell: Cell) -> Text:
    if cell.place is None:
        return Text(_shown(cell), _TONES.get(cell.tone, ""))
    style = Style(color="#000000", bgcolor=COLOURS[cell.place % len(COLOURS)])
    key = Text(str(cell.place + 1), style)
    return (
        key.append(f" {printable(cell.text)}", "not bold default on default") if cell.text else key
    )


def _bars(part: Bars, width: int) -> Iterator[RenderableType]:
    if part.size == "small":
        yield Text(f"      {printable(part.head)}", "dim")
        return
    if part.head:
        yield Text(printable(part.head), "bold").append(printable(part.note), "not bold")
    group: list[Bar] = []
    for bar in part.bars:
        if part.size == "line":
            yield _line(bar, width)
            continue
        if group and bar.caption:  # those without words between them share their edges
            yield _draw(group, width)
            group = []
        if bar.caption:
            yield Text(f" {printable(bar.caption)}")
        if not bar.caption or any(box.profile for box in bar.boxes):
            group.append(bar)  # of a free GPU there is nothing to be seen
    if group:
        yield _draw(group, width)


def _line(bar: Bar, width: int) -> Text:
    line = Text(f"{bar.name:>9} ", "bold")
    line.append_text(draw_line(bar, max(33, width - 10 - (_CAPTION if bar.caption else 0))))
    line.append(f" {printable(bar.caption)}" if bar.caption else "", "not bold")
    line.truncate(width, overflow="ellipsis")  # the console forgets what a text says of wrapping
    return line


def draw_line(bar: Bar, width: int) -> Text:
    """Draw a bar on one line: the services' keys and names where their instances are."""
    text, edges = Text(no_wrap=True, overflow="crop"), _edges(bar, width - 1)
    for box, low, high in zip(bar.boxes, edges, edges[1:], strict=False):
        if high > low:
            text.append("│", "dim")
            _append(text, box, high - low - 1, 1, box.sign, brief=high - low <= _BRIEF)
    return text.append("│", "dim")


def _edges(bar: Bar, room: int, widest: int = 10**6) -> list[int]:
    """Return the columns of the edges of a bar's boxes; slices are equally wide if they can be."""
    wide = max(_NARROWEST_SLICE * min(8, bar.slices), room)
    if bar.slices <= _WIDEST_SLICE:
        wide = bar.slices * min(widest, wide // bar.slices)
    return [wide * box.start // bar.slices for box in bar.boxes] + [wide]


def _draw(bars: Sequence[Bar], width: int) -> Text:
    """Draw bars one below the other, in two lines each; on one line where they are too narrow."""
    margin = max(5, *(len(bar.name) for bar in bars)) + 1
    every = [_edges(bar, width - margin - 1, _WIDEST_SLICE) for bar in bars]
    if any(low == high for edges in every for low, high in pairwise(edges)):
        return Text("\n").join(_line(bar, width) for bar in bars)
    text = Text(no_wrap=True, overflow="crop")
    above: set[int] = set()
    for bar, edges in zip(bars, every, strict=True):
        text.append(" " * margin + _rule(above, set(edges)) + "\n", "dim")
        for line in (0, 1):
            text.append(("" if line else bar.name).rjust(margin - 1) + " ", "bold")
            for box, (low, high) in zip(bar.boxes, pairwise(edges), strict=True):
                text.append("│", "dim")
                _append(text, box, high - low - 1, line, "" if line else box.sign)
            text.append("│\n", "dim")
        above = set(edges)
    return text.append(" " * margin + _rule(above, set()), "dim")


def _rule(above: set[int], below: set[int]) -> str:
    right = max(above | below)
    return "".join(
        _JUNCTIONS[(at in above) + 2 * (at in below) + 4 * (at > 0) + 8 * (at < right)]
        for at in range(right + 1)
    )


def _append(text: Text, box: Box, room: int, line: int, sign: str, *, brief: bool = False) -> None:
    """Append a line of a box: its profile, or its service; a sign goes to its right end."""
    if room <= 0:  # a share of a few per cent in a narrow terminal: only its edge is seen
        return
    fill = {"free": "/", "blank": " ", "foreign": "#"}.get(box.look, "░")
    ground = _ground(box.place, bold=line == 1, italic=bool(box.state))
    served = box.service is not None
    if box.look in ("free", "blank"):
        text.append(fill * room, "dim")
    elif brief:
        key = f"{box.place + 1}{sign}".center(room) if served else fill * (room - len(sign)) + sign
        text.append(fit(key, room), ground if served else "dim")
    elif box.slots:
        head = fit(f" {box.profile} {box.point}", room)
        for slot in box.slots:
            start, end = (round(at * room / 1000) for at in (slot.start, slot.start + slot.width))
            own = f"{'┊' if start else ' '}{printable(slot.doing)} {slot.point}"
            text.append(fit(own, end - start) if line else head[start:end], _ground(slot.place))
    else:
        tail = f" {sign}" if sign and len(sign) + 1 < room else sign[:room]
        label, room = f" {printable(box.doing) if line else box.profile}", room - len(tail)
        if served and not line and cell_len(label) + len(box.point) + 1 <= room:
            label += f" {box.point}"
        if not served and cell_len(label) + 1 + _LEAST_FILL <= room:
            label += " " + fill * (room - cell_len(label) - 1)
        plain = "dim" if box.mark in ("", "kept") else ""
        text.append(fit(label, room) + tail, ground if served else plain)


def _ground(place: int, *, bold: bool = False, italic: bool = False) -> Style:
    return Style(color="#000000", bgcolor=COLOURS[place % len(COLOURS)], bold=bold, italic=italic)


def fit(text: str, width: int) -> str:
    """Cut or fill a text to a width in columns; an ellipsis marks a cut."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width) if width > 0 else ""
