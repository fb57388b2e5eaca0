"""Drawings: axes and curves by matplotlib, in pages and as SVG files with what a terminal shows."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from hashlib import sha256
from io import StringIO
from typing import Any

import matplotlib as mpl
from markupsafe import escape
from matplotlib.figure import Figure
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from ...values.words import printable
from .colours import TONES
from .page import Page, Picture, Section
from .terminal import render

_COLUMNS = 110  # of the text of a picture
_WIDTH = 6.4  # inches: of a drawing in a page
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_RC: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "cms", "text.parse_math": False, "font.size": 9.5,
    "font.family": ["DejaVu Sans"], "text.color": TONES["ink"], "axes.labelcolor": TONES["soft"],
    "axes.edgecolor": TONES["line"], "xtick.color": TONES["soft"], "ytick.color": TONES["soft"],
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.titlelocation": "left", "axes.titlesize": 9.5, "figure.facecolor": "none",
    "axes.facecolor": "none", "grid.color": TONES["line"], "grid.linewidth": 0.6,
    "hatch.linewidth": 0.8, "legend.frameon": False, "axes.formatter.useoffset": False,
}  # fmt: skip
#: Rich's own would fetch a typeface.
_TEXT = """<svg width="{terminal_width}" height="{terminal_height}" \
viewBox="0 0 {terminal_width} {terminal_height}">
<style>.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, monospace;
 line-height: {line_height}px }} {styles}</style>
<defs>{lines}</defs>{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></svg>"""


def inline(picture: Picture) -> str:
    """Return a drawing as an SVG element whose colours are those of the page around it."""
    text = _svg(picture)
    for name, colour in TONES.items():
        text = text.replace(colour, f"var(--{name})")
    return text


def drawing(page: Page) -> str:
    """Return the drawn sections of a page as one SVG file, which refers to nothing outside it."""
    head = Section("end", "", page.end, drawn=True)
    parts = [_text(replace(page, sections=[head], end=()))]
    for section in page.sections:
        for part in section.parts:
            if section.drawn and isinstance(part, Picture):
                parts.append((_svg(part), _WIDTH * 72, part.height * 72))
    if any(section.drawn for section in page.sections):
        parts.append(_text(replace(page, title="", lead="", end=())))
    across, drawn, y = max(width for _, width, _ in parts), [], 20.0
    for text, width, height in parts:
        high = height * across / width
        place = f'<svg x="20" y="{y:g}" width="{across:g}" height="{high:g}" '
        drawn.append(place + re.sub(r'^<svg |(?<= )(?:width|height)="[^"]*" ', "", text, count=3))
        y += high + 10
    words = (page.title or page.lead, *(each.text for each in page.end[:1]))
    said = escape(printable(": ".join(filter(None, words))))
    wide, high = across + 40, y + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" '
        f'width="{wide:g}" height="{high:g}" role="img">\n<title>{said}</title>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{"".join(drawn)}\n</svg>\n'
    )


def _text(page: Page) -> tuple[str, float, float]:
    """Return what a terminal would show, as an element with its width and height."""
    console = Console(
        width=_COLUMNS, record=True, file=StringIO(), markup=False, highlight=False, emoji=False,
        force_terminal=True, color_system="truecolor", legacy_windows=False,
    )  # fmt: skip
    for part in render(page, _COLUMNS, whole=True):
        console.print(part)
    text = console.export_svg(
        title="", theme=DEFAULT_TERMINAL_THEME, code_format=_TEXT,
        unique_id=f"cms-{sha256(console.export_text(clear=False).encode()).hexdigest()[:8]}",
    )  # fmt: skip
    width, height = (float(each) for each in re.findall(r'(?:width|height)="([0-9.]+)"', text)[:2])
    return text, width, height


def _svg(picture: Picture) -> str:
    with warnings.catch_warnings(), mpl.rc_context(_RC):
        warnings.filterwarnings("ignore", "Glyph")  # a browser has the letters of all languages
        figure = Figure((_WIDTH, picture.height))
        picture.draw(figure)
        stream = StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue().replace("'DejaVu Sans'", _FONTS)
    text = text[text.index("<svg ") :].replace("xlink:href", "href")
    return re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.S)
