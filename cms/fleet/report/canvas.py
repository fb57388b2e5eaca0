"""A sheet that SVG elements are laid on from top to bottom, and how a bar is drawn on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap

from ...values.words import count, decimal, printable
from .bars import Bar, Cell, Slot
from .palette import colour

WIDTH = 960
EDGE = 24  # around everything
MARGIN = 64  # left of the bars, for the counts
BARS_WIDTH = WIDTH - 2 * EDGE - MARGIN
LINE = 20
FONT = 13
_BAR, _GAP = 38, 8  # height of a bar, and space below it
_SMALL = 13  # height of a small one
MOST_SMALL = 960
"""Small bars, or small ones above each other, that are drawn."""
_COLUMNS = 6
_ROW = 34  # height of a row of small bars, with the names above them
_SIGN = 14  # width of a letter in the corner of a cell
_PADDING = 10  # left and right of a label, together
_FURTHER = 15  # height of a further line of a name
_FEWEST = 6  # letters; a name is not broken into shorter lines
# Where a few letters are a line, wide ones may come together: of the widest usual type, by kind.
_NARROW, _WIDE = frozenset("ijltfrI|'.,:;!()[]/- "), frozenset("mwMW&<>@%=+~#")
# A letter of the wider sans-serif types is on average 0.6 times as wide as the type is high. Labels
# are cut by this; whoever wants all of a name finds it in the legend and in the cell's tooltip.
_LETTER = 0.61
_FORBIDDEN_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")

_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_MONO = "ui-monospace, Menlo, Consolas, monospace"
_STYLE = {
    "text": f"font: 13px {_FONTS}; fill: #1b1f24",
    ".title": "font-size: 20px; font-weight: 700",
    ".verdict": "font-size: 15px; font-weight: 600",
    ".head": "font-weight: 600",
    ".small": "font-size: 11px",
    ".soft": "fill: #59636e",
    ".count": "font-weight: 700; text-anchor: end",
    ".right": "text-anchor: end",
    ".tiny": "font-size: 9px",
    ".on": "fill: #1b1f24",
    ".pale": "fill: #ffffff",
    ".good": "fill: #1a7f37",
    ".fair": "fill: #9a6700",
    ".bad": "fill: #cf222e",
    ".line.good": "stroke: #1a7f37",
    ".line.fair": "stroke: #9a6700",
    ".line.bad": "stroke: #cf222e",
    ".floor": "fill: #8a4600; font-weight: 700",
    ".sign": f"font: 700 13px {_MONO}; fill: #ffffff; text-anchor: middle",
    ".key": "font-weight: 700; text-anchor: middle",
}

HATCHES = """
<pattern id="idle" width="7" height="7" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<rect width="7" height="7" fill="#ffffff"/><rect width="2" height="7" fill="#c3cad3"/></pattern>
<pattern id="free" width="9" height="9" patternUnits="userSpaceOnUse"
 patternTransform="rotate(-45)">
<rect width="9" height="9" fill="#f3f5f7"/><rect width="1" height="9" fill="#d5dae0"/></pattern>
<pattern id="others" width="8" height="8" patternUnits="userSpaceOnUse">
<rect width="8" height="8" fill="#e6e8eb"/>
<path d="M0 0L8 8M8 0L0 8" stroke="#8b949e" stroke-width="1"/></pattern>
""".strip()


class Canvas:
    """Elements from top to bottom.

    Attributes
    ----------
    y : float
        Where the next element goes.
    """

    def __init__(self) -> None:
        self.y = float(EDGE)
        self._elements: list[str] = []

    def add(self, element: str) -> None:
        """Add an element as it is; names in it must be escaped."""
        self._elements.append(element)

    def text(self, text: str, x: float, size: int, style: str, *, down: float = 0) -> None:
        """Write a line of text below what is there, cut where the picture ends."""
        line = cut(text, WIDTH - EDGE - x, size)
        self.add(f'<text x="{x:g}" y="{self.y + size:g}" class="{style}">{escaped(line)}</text>')
        self.y += down

    def paragraph(self, text: str, size: int, style: str) -> None:
        """Write a text below what is there, on as many lines as it takes."""
        for line in wrap(printable(text), int((WIDTH - 2 * EDGE) / (size * _LETTER))):
            self.text(line, EDGE, size, style, down=size + 5)

    def inline(self, description: str) -> str:
        """Return an element for a page that has `style` and the definitions once for all of them.

        Without the edge: a page has its own.
        """
        box = f"{EDGE} {EDGE} {WIDTH - 2 * EDGE} {max(self.y - EDGE, 1):g}"
        return "\n".join(
            (
                f'<svg class="picture" viewBox="{box}" role="img" '
                f'aria-label="{escaped(description)}">',
                *self._elements,
                "</svg>",
            )
        )

    def document(self, description: str) -> str:
        """Return the whole SVG document, described for those who cannot see it."""
        height = self.y + EDGE
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
                f'width="{WIDTH}" height="{height:g}" role="img">',
                f"<title>{escaped(description)}</title>",
                f"<style>\n{style()}\n</style>",
                f"<defs>{HATCHES}</defs>",
                f'<rect width="{WIDTH}" height="{height:g}" fill="#ffffff"/>',
                *self._elements,
                "</svg>\n",
            )
        )


def style(within: str = "") -> str:
    """Return the style sheet of pictures, of those inside an element where one is named.

    Examples
    --------
    >>> style(".picture ").splitlines()[1]
    '.picture .title { font-size: 20px; font-weight: 700 }'
    """
    return "\n".join(f"{within}{which} {{ {what} }}" for which, what in _STYLE.items())


def draw_key(canvas: Canvas, place: int, name: str) -> None:
    """Draw a legend's entry: the key in its colour, and the name."""
    y = canvas.y
    canvas.add(
        f'<rect x="{EDGE}" y="{y:g}" width="26" height="17" rx="3" fill="{colour(place)}" '
        f'stroke="#59636e" stroke-width="0.8"/>'
        f'<text x="{EDGE + 13}" y="{y + 13:g}" class="key on">{place + 1}</text>'
        f'<text x="{EDGE + 34}" y="{y + 13:g}">{escaped(cut(name, 250, FONT))}</text>'
    )


def draw_ruler(canvas: Canvas, slices: int) -> None:
    """Number the memory slices above the bars."""
    y = canvas.y + 9
    canvas.add(f'<text x="{EDGE + MARGIN - 10}" y="{y:g}" class="small soft right">slice</text>')
    for slot in range(slices):
        x = EDGE + MARGIN + (slot + 0.5) * BARS_WIDTH / slices
        canvas.add(
            f'<text x="{x:g}" y="{y:g}" class="small soft" text-anchor="middle">{slot}</text>'
        )
    canvas.y += 14


def draw_bar(canvas: Canvas, bar: Bar, places: Mapping[str, int], label: str | None = None) -> None:
    """Draw one bar below what is there, with its count, or another label, before it."""
    x, y, scale = EDGE + MARGIN, canvas.y, BARS_WIDTH / bar.slices
    lines = max(len(_name_lines(cell, cell.width * scale, places)) for cell in bar.cells)
    height = _BAR + _FURTHER * max(lines - 1, 0)
    before = f"{decimal(bar.count)} ×" if label is None else label
    number = cut(before, MARGIN + EDGE - 12, FONT)
    canvas.add(f'<text x="{x - 10}" y="{y + height / 2 + 5:g}" class="count">{number}</text>')
    for cell in bar.cells:
        box = x + cell.start * scale, y, cell.width * scale, height
        _draw_cell(canvas, cell, box, places)
    canvas.y += height + _GAP


def draw_small_bar(
    canvas: Canvas, bar: Bar, places: Mapping[str, int], at: tuple[float, float], width: float
) -> None:
    """Draw a bar without words, at a place of the sheet: keys where they fit, the rest in tips."""
    x, y = at
    scale = width / bar.slices
    for cell in bar.cells:
        fill, tip = _fill(cell, places), _tip(cell)
        left, wide = x + cell.start * scale, cell.width * scale
        canvas.add(
            f'<g><title>{escaped(tip)}</title><rect x="{left:g}" y="{y:g}" width="{wide:g}" '
            f'height="{_SMALL}" fill="{fill}" stroke="#59636e" stroke-width="0.6"{_edge(cell)}/>'
        )
        key = "" if cell.service is None else str(places[cell.service] + 1)
        key += cell.sign
        if key and fits(key, wide - 3, 9):
            canvas.add(
                f'<text x="{left + wide / 2:g}" y="{y + 10:g}" class="tiny on" '
                f'text-anchor="middle">{escaped(key)}</text>'
            )
        canvas.add("</g>")


def draw_small_bars(
    canvas: Canvas, named: Sequence[tuple[str, Sequence[Bar]]], places: Mapping[str, int]
) -> None:
    """Draw bars without words in columns below what is there, their names above them.

    Parameters
    ----------
    canvas : Canvas
    named : sequence of (str, sequence of Bar)
        A name, and one bar or several below it; those beyond :data:`MOST_SMALL` are counted.
    places : Mapping of str to int
    """
    if not named:
        return
    pitch = (WIDTH - 2 * EDGE) / _COLUMNS
    row = _ROW + 15 * (max(len(bars) for _, bars in named) - 1)
    shown = named[:MOST_SMALL]
    for number, (name, bars) in enumerate(shown):
        x = EDGE + number % _COLUMNS * pitch
        y = canvas.y + number // _COLUMNS * row
        short = name if len(name) <= 22 else f"{name[:21]}…"
        canvas.add(
            f'<text x="{x:g}" y="{y + 10:g}" class="tiny soft"><title>{escaped(name)}</title>'
            f"{escaped(short)}</text>"
        )
        for place, bar in enumerate(bars):
            draw_small_bar(canvas, bar, places, (x, y + 14 + 15 * place), pitch - 10)
    canvas.y += -(-len(shown) // _COLUMNS) * row
    if rest := named[MOST_SMALL:]:
        gpus = count(sum(bars[0].count for _, bars in rest), "GPU")
        canvas.text(
            f"... and {count(len(rest), 'more way')} on {gpus}", EDGE, FONT, "soft", down=LINE
        )


def _fill(cell: Cell, places: Mapping[str, int]) -> str:
    if not cell.profile:
        return "url(#free)"
    if cell.service is not None:
        return colour(places[cell.service])
    if cell.owner:
        return "url(#others)"
    return "#ffffff" if cell.state == "hollow" else "url(#idle)"


def _edge(cell: Cell) -> str:
    """The border of what does not serve (yet, or any more) is broken."""
    return ' stroke-dasharray="4 2"' if cell.state else ""


def _tip(cell: Cell) -> str:
    if not cell.profile:
        return f"no instance on {count(cell.width, 'slice')}"
    if cell.service is None:
        tip = f"{cell.profile}, {cell.owner or cell.state or 'idle'}"
    elif cell.slots:
        turns = " | ".join(f"{slot.service} {slot.point}" for slot in cell.slots)
        tip = f"{cell.profile}: {turns}, {cell.point}"
    else:
        tip = f"{cell.service}: {cell.profile} {cell.point}"
    more = [word for word in (cell.state, cell.mark) if word and word not in tip]
    return ", ".join([tip, *more])


def _name_lines(cell: Cell, width: float, places: Mapping[str, int]) -> list[str]:
    """What an instance does, in as many lines as it takes; a short word where it is too narrow."""
    room = width - _PADDING
    if cell.slots:
        own = (_slot_lines(slot, width * float(slot.share), places) for slot in cell.slots)
        return max(own, key=len)
    if not cell.profile:
        return []
    if cell.service is None:
        return [line for line in [cut(cell.owner or cell.state or "idle", room, FONT)] if line]
    key = str(places[cell.service] + 1)
    return broken(f"{key} {cell.service}", room) or ([key] if fits(key, room, FONT) else [])


def _slot_lines(slot: Slot, width: float, places: Mapping[str, int]) -> list[str]:
    """The same for the part of an instance that one of several services has."""
    key, room = str(places[slot.service] + 1), width - 6
    named = f"{key} {printable(slot.service)}"
    if fits(f"{named} {slot.point}", room, FONT):
        return [f"{named} {slot.point}"]
    return broken(named, room) or ([key] if fits(key, room, FONT) else [])


def broken(text: str, room: float, size: int = FONT) -> list[str]:
    """Break a text into lines of so many pixels, between its words where it can be.

    Returns
    -------
    list of str
        Empty where there is room for a few letters alone, which would say nothing.

    Examples
    --------
    >>> broken("5 team-a/inceptionv3", 96), broken("5 inceptionv3", 20)
    (['5 team-a/', 'inceptionv3'], [])
    """
    if room < _FEWEST * size * _LETTER:
        return []
    lines = [""]
    for part in re.findall(r"[^-_/. ]*[-_/. ]|[^-_/. ]+", printable(text)):
        if lines[-1] and _width(lines[-1] + part.rstrip(), size) > room:
            lines.append("")
        for letter in part:
            if lines[-1] and _width(lines[-1] + letter.strip(), size) > room:
                lines.append("")
            lines[-1] += letter
    return [line.rstrip() for line in lines]


def _width(text: str, size: int) -> float:
    letters = sum(
        0.42 if each in _NARROW else 0.98 if each in _WIDE or not each.isascii() else 0.66
        for each in text
    )
    return letters * size


def _draw_cell(
    canvas: Canvas, cell: Cell, box: tuple[float, float, float, float], places: Mapping[str, int]
) -> None:
    x, y, width, height = box
    if cell.slots:
        _draw_slots(canvas, cell, box, places)
        return
    first, sign = cell.profile, cell.sign
    room = width - _PADDING - (_SIGN * len(sign) if sign else 0)
    if cell.service is not None and fits(f"{first} {cell.point}", room, 11):
        first += f" {cell.point}"
    drawn = max(width - 2, 0.5)  # a gap between cells, but never less than nothing
    canvas.add(
        f'<g><title>{escaped(_tip(cell))}</title><rect x="{x + 1:g}" y="{y:g}" width="{drawn:g}" '
        f'height="{height:g}" rx="3" fill="{_fill(cell, places)}" stroke="#59636e" '
        f'stroke-width="0.8"{_edge(cell)}/>'
    )
    lines = [(cut(first, room, 11), 11, 15.0, "small on")]
    for at, name in enumerate(_name_lines(cell, width, places)):
        lines.append((name, FONT, 31.0 + at * _FURTHER, "on"))
    for line, size, down, look in lines:
        if line:
            if cell.profile and cell.service is None:
                # letters on a hatching are hard to read without a ground of their own
                ground = len(line) * size * _LETTER + 6
                canvas.add(
                    f'<rect x="{x + 4:g}" y="{y + down - size:g}" width="{ground:g}" '
                    f'height="{size + 3}" fill="#ffffff" fill-opacity="0.85"/>'
                )
            canvas.add(
                f'<text x="{x + 7:g}" y="{y + down:g}" class="{look}">{escaped(line)}</text>'
            )
    if sign and width >= _SIGN + 4:
        wide = _SIGN * len(sign)
        canvas.add(
            f'<rect x="{x + width - wide - 3:g}" y="{y + 2:g}" width="{wide}" height="15" rx="3" '
            f'fill="#1b1f24"/><text x="{x + width - wide / 2 - 3:g}" y="{y + 13.5:g}" '
            f'class="sign">{escaped(sign)}</text>'
        )
    canvas.add("</g>")


def _draw_slots(
    canvas: Canvas, cell: Cell, box: tuple[float, float, float, float], places: Mapping[str, int]
) -> None:
    """Draw a cell that services share: each slot as wide as the part of the frame it takes."""
    x, y, width, height = box
    wide = max(width - 2, 0.5)
    canvas.add(f"<g><title>{escaped(_tip(cell))}</title>")
    left = x + 1
    for slot in cell.slots:
        own = wide * float(slot.share)
        canvas.add(
            f'<rect x="{left:g}" y="{y:g}" width="{own:g}" height="{height:g}" '
            f'fill="{colour(places[slot.service])}" stroke="#59636e" stroke-width="0.4"/>'
        )
        for at, line in enumerate(_slot_lines(slot, own, places)):
            canvas.add(
                f'<text x="{left + 4:g}" y="{y + 31 + at * _FURTHER:g}" class="on">'
                f"{escaped(line)}</text>"
            )
        left += own
    if line := cut(f"{cell.profile}, {cell.point}", width - _PADDING, 11):
        canvas.add(f'<text x="{x + 7:g}" y="{y + 15:g}" class="small on">{escaped(line)}</text>')
    canvas.add(
        f'<rect x="{x + 1:g}" y="{y:g}" width="{wide:g}" height="{height:g}" rx="3" fill="none" '
        'stroke="#59636e" stroke-width="1.2"/></g>'
    )


def fits(text: str, width: float, size: int) -> bool:
    """Whether a text of this size takes at most about so many pixels."""
    return len(text) * size * _LETTER <= width


def cut(text: str, width: float, size: int) -> str:
    """Cut a text to about so many pixels; an ellipsis says that something is missing."""
    shown = printable(text)
    if fits(shown, width, size):
        return shown
    letters = int(width / (size * _LETTER)) - 1
    return f"{shown[:letters]}…" if letters > 0 else ""


def escaped(text: str) -> str:
    """Escape a text for SVG; what XML cannot hold at all becomes a question mark."""
    return escape(_FORBIDDEN_IN_XML.sub("?", text))
