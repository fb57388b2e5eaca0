"""A plan as a picture: one self-contained SVG file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from .bars import Bar, Cell, bars, occupancy
from .palette import colour
from .reasons import reasons
from .scarcity import worth_line, worths
from .words import circumstances, count, decimal, percent, printable, verdict

if TYPE_CHECKING:
    from ..serving import Plan, ServicePlan

MOST_BARS = 48
"""Distinct GPUs of one type that a picture draws before it says how many more there are."""
MOST_SERVICES = 120

_WIDTH = 960
_EDGE = 24  # around everything
_MARGIN = 64  # left of the bars, for the counts
_BAR, _GAP = 38, 8
_LINE = 20
_FONT = 13
_PADDING = 10  # left and right of a label, together
# A sans-serif letter is on average a little more than half as wide as the type is high. Labels are
# cut by this; whoever wants all of a name finds it in the legend and in the cell's tooltip.
_LETTER = 0.56
_FORBIDDEN_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")

_STYLE = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif;
  fill: #1b1f24 }
.title { font-size: 20px; font-weight: 700 }
.verdict { font-size: 15px; font-weight: 600 }
.head { font-weight: 600 }
.small { font-size: 11px }
.soft { fill: #59636e }
.count { font-weight: 700; text-anchor: end }
.right { text-anchor: end }
.key { font-weight: 700; text-anchor: middle }
""".strip()

_HATCHES = """
<pattern id="idle" width="7" height="7" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<rect width="7" height="7" fill="#ffffff"/><rect width="2" height="7" fill="#c3cad3"/></pattern>
<pattern id="free" width="9" height="9" patternUnits="userSpaceOnUse"
 patternTransform="rotate(-45)">
<rect width="9" height="9" fill="#f3f5f7"/><rect width="1" height="9" fill="#d5dae0"/></pattern>
""".strip()


def plan_picture(plan: Plan, title: str) -> str:
    """Draw a plan: its GPUs as bars of slices, a legend of its services, its bound and proof.

    Parameters
    ----------
    plan : Plan
    title : str
        What is planned.

    Returns
    -------
    str
        An SVG document that refers to nothing outside itself; all names are escaped.

    Examples
    --------
    >>> from cms.solve import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
    >>> service = Service("chat <b>", "bert", rate_rps=100, latency_limit_ms=100)
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, "60.5", 33)
    >>> serving = as_problem([service], [point], ["a30-24gb"])
    >>> picture = plan_picture(Plan(serving, solve(serving.problem)), "chat")
    >>> picture.startswith("<svg"), "chat &lt;b&gt;" in picture, "<b>" in picture
    (True, True, False)
    """
    canvas = _Canvas()
    solution = plan.solution
    canvas.text(title, _EDGE, 20, "title", down=30)
    mark = "#1a7f37" if solution.proof == "checked" else "#9a6700"
    canvas.text(verdict(solution, "GPU"), _EDGE, 15, "verdict", down=_LINE, fill=mark)
    keys = ", ".join(gpu.key for gpu in plan.serving.gpus)
    facts = f"{count(len(plan.services), 'service')} on {keys}; {circumstances(solution)}"
    canvas.text(facts, _EDGE, _FONT, "soft", down=_LINE + 8)
    for reason in reasons(plan):
        canvas.paragraph(reason, _FONT, "")
    drawn = bars(plan)
    for part in _gpus(plan, drawn):
        _draw_bars(canvas, *part)
    if drawn:
        _draw_legend(canvas, plan)
        if (found := worths(solution, plan.serving.problem)) is not None:
            canvas.paragraph(worth_line(found, "GPU"), 11, "small soft")
        note = "p: processes, b: batch size; an instance is as wide as the memory slices it takes"
        canvas.paragraph(note, 11, "small soft")
    return canvas.document(f"{title}: {verdict(solution, 'GPU')}")


class _Canvas:
    """Elements from top to bottom; ``y`` is where the next one goes."""

    def __init__(self) -> None:
        self.y = float(_EDGE)
        self._elements: list[str] = []

    def add(self, element: str) -> None:
        self._elements.append(element)

    def text(
        self, text: str, x: float, size: int, style: str, *, down: float = 0, fill: str = ""
    ) -> None:
        """Write a line of text below what is there, cut where the picture ends."""
        line = _cut(text, _WIDTH - _EDGE - x, size)
        colour_of = f' style="fill:{fill}"' if fill else ""
        self.add(
            f'<text x="{x:g}" y="{self.y + size:g}" class="{style}"{colour_of}>'
            f"{_escaped(line)}</text>"
        )
        self.y += down

    def paragraph(self, text: str, size: int, style: str) -> None:
        """Write a text below what is there, on as many lines as it takes."""
        for line in wrap(printable(text), int((_WIDTH - 2 * _EDGE) / (size * _LETTER))):
            self.text(line, _EDGE, size, style, down=size + 5)

    def document(self, description: str) -> str:
        height = self.y + _EDGE
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
                f'width="{_WIDTH}" height="{height:g}" role="img">',
                f"<title>{_escaped(description)}</title>",
                f"<style>{_STYLE}</style>",
                f"<defs>{_HATCHES}</defs>",
                f'<rect width="{_WIDTH}" height="{height:g}" fill="#ffffff"/>',
                *self._elements,
                "</svg>\n",
            )
        )


def _gpus(plan: Plan, drawn: Sequence[Bar]) -> Iterator[tuple[str, list[Bar], Mapping[str, int]]]:
    """Each GPU type that is in use: a headline, its bars, and each service's place."""
    places = {service.name: place for place, service in enumerate(plan.serving.services)}
    for gpu in plan.serving.gpus:
        own = [bar for bar in drawn if bar.gpu == gpu.key]
        for shared, group in groupby(own, key=lambda bar: bar.shared):
            alike = list(group)
            there = occupancy(gpu, alike)
            head = f"{decimal(there.gpus)} × {gpu.key}"
            if shared:
                head += ", shared by MPS: a bar is 100 % of a GPU"
            else:
                head += (
                    f": {there.compute:,} of {there.cut * gpu.compute_slices:,} compute and "
                    f"{there.memory:,} of {there.cut * gpu.memory_slices:,} memory slices serve"
                )
            yield head, alike, places


def _draw_bars(canvas: _Canvas, head: str, alike: list[Bar], places: Mapping[str, int]) -> None:
    canvas.text(head, _EDGE, _FONT, "head", down=_LINE + 4)
    slices = alike[0].slices
    scale = (_WIDTH - 2 * _EDGE - _MARGIN) / slices
    if not alike[0].shared:
        for slot in range(slices):
            x = _EDGE + _MARGIN + (slot + 0.5) * scale
            canvas.add(
                f'<text x="{x:g}" y="{canvas.y + 9:g}" class="small soft" text-anchor="middle">'
                f"{slot}</text>"
            )
        canvas.add(
            f'<text x="{_EDGE + _MARGIN - 10}" y="{canvas.y + 9:g}" class="small soft right">'
            "slice</text>"
        )
        canvas.y += 14
    for bar in alike[:MOST_BARS]:
        x, y = _EDGE + _MARGIN, canvas.y
        number = _cut(f"{decimal(bar.count)} ×", _MARGIN + _EDGE - 12, _FONT)
        canvas.add(f'<text x="{x - 10}" y="{y + _BAR / 2 + 5:g}" class="count">{number}</text>')
        for cell in bar.cells:
            _draw_cell(canvas, cell, x + cell.start * scale, y, cell.width * scale, places)
        canvas.y += _BAR + _GAP
    if rest := alike[MOST_BARS:]:
        gpus = count(sum(bar.count for bar in rest), "GPU")
        more = f"... and {count(len(rest), 'more layout')} on {gpus}"
        canvas.text(more, _EDGE + _MARGIN, _FONT, "soft", down=_LINE)
    canvas.y += 10


def _draw_cell(
    canvas: _Canvas, cell: Cell, x: float, y: float, width: float, places: Mapping[str, int]
) -> None:
    if not cell.profile:
        fill, first, second = "url(#free)", "", ""
        tip = f"no instance on {count(cell.width, 'slice')}"
    elif cell.service is None:
        fill, first, second = "url(#idle)", cell.profile, "idle"
        tip = f"{cell.profile}, idle"
    else:
        place = places[cell.service]
        fill = colour(place)
        first = cell.profile
        if _fits(f"{first} {cell.point}", width - _PADDING, 11):
            first += f" {cell.point}"
        second = f"{place + 1} {cell.service}"
        tip = f"{cell.service}: {cell.profile} {cell.point}"
    canvas.add(
        f'<g><title>{_escaped(tip)}</title><rect x="{x + 1:g}" y="{y:g}" width="{width - 2:g}" '
        f'height="{_BAR}" rx="3" fill="{fill}" stroke="#59636e" stroke-width="0.8"/>'
    )
    for text, size, down, style in ((first, 11, 15, "small"), (second, _FONT, 31, "")):
        if line := _cut(text, width - _PADDING, size):
            if cell.profile and cell.service is None:
                # letters on a hatching are hard to read without a ground of their own
                ground = len(line) * size * _LETTER + 6
                canvas.add(
                    f'<rect x="{x + 4:g}" y="{y + down - size:g}" width="{ground:g}" '
                    f'height="{size + 3}" fill="#ffffff" fill-opacity="0.85"/>'
                )
            canvas.add(
                f'<text x="{x + 7:g}" y="{y + down:g}" class="{style}">{_escaped(line)}</text>'
            )
    canvas.add("</g>")


def _draw_legend(canvas: _Canvas, plan: Plan) -> None:
    """One line a service: its key in its colour, its name, what it wants and gets."""
    columns = ((390, "wanted/s"), (480, "served/s"), (560, "spare"))
    for x, head in columns:
        canvas.add(f'<text x="{x}" y="{canvas.y + 11:g}" class="small soft right">{head}</text>')
    canvas.add(f'<text x="590" y="{canvas.y + 11:g}" class="small soft">instances</text>')
    canvas.y += 18
    for place, service in enumerate(plan.services[:MOST_SERVICES]):
        _draw_service(canvas, place, service, columns)
    if (more := len(plan.services) - MOST_SERVICES) > 0:
        canvas.text(f"... and {decimal(more)} more", _EDGE + 34, _FONT, "soft", down=_LINE)
    canvas.y += 8


def _draw_service(
    canvas: _Canvas, place: int, service: ServicePlan, columns: Sequence[tuple[int, str]]
) -> None:
    y = canvas.y
    canvas.add(
        f'<rect x="{_EDGE}" y="{y:g}" width="26" height="17" rx="3" fill="{colour(place)}" '
        f'stroke="#59636e" stroke-width="0.8"/>'
        f'<text x="{_EDGE + 13}" y="{y + 13:g}" class="key">{place + 1}</text>'
    )
    name = _cut(service.service.name, 250, _FONT)
    canvas.add(f'<text x="{_EDGE + 34}" y="{y + 13:g}">{_escaped(name)}</text>')
    spare = percent(service.headroom) if service.headroom is not None else "-"
    numbers = (decimal(service.wanted_rps), decimal(service.provided_rps), spare)
    for (x, _), number in zip(columns, numbers, strict=True):
        canvas.add(f'<text x="{x}" y="{y + 13:g}" class="right">{number}</text>')
    uses = ", ".join(f"{decimal(use.count)} × {use.profile}" for use in service.uses)
    canvas.add(
        f'<text x="590" y="{y + 13:g}" class="soft">'
        f"{_escaped(_cut(uses, _WIDTH - _EDGE - 590, _FONT))}</text>"
    )
    canvas.y += _LINE


def _fits(text: str, width: float, size: int) -> bool:
    return len(text) * size * _LETTER <= width


def _cut(text: str, width: float, size: int) -> str:
    """Cut a text to about so many pixels; an ellipsis says that something is missing."""
    shown = printable(text)
    if _fits(shown, width, size):
        return shown
    letters = int(width / (size * _LETTER)) - 1
    return f"{shown[:letters]}…" if letters > 0 else ""


def _escaped(text: str) -> str:
    return escape(_FORBIDDEN_IN_XML.sub("?", text))
