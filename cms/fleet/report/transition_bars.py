"""The rows of a transition's picture: actions in time, and arrows for waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...values.words import count, decimal, printable
from ..deployment.instance import Instance
from ..deployment.transition.model import What
from .canvas import EDGE, LINE, WIDTH, Canvas, escaped, fits
from .fleet_bars import names
from .palette import colour
from .transition_gantt import Gantt, Row, Span, in_lanes
from .transition_words import clock, said, ticks

__all__ = ["DEFINITIONS", "MOST_ROWS", "draw_gantt"]

MOST_ROWS = 160
"""Rows of GPUs that are drawn."""
_LABEL = 140  # pixels before the time axis
_LEFT = EDGE + _LABEL
_ROOM = WIDTH - EDGE - _LEFT
_LANE, _LOW_LANE, _MANY = 22, 15, 40  # height of an action, and where there are many rows
_KEPT, _GAP, _CAPTION = 3, 7, 14  # height of what stays, space below a row, names above it
_LEAST = 9  # pixels of the shortest action: its sign

# Beside its sign each kind of action has a hatching or a border of its own.
DEFINITIONS = """
<defs>
<pattern id="leaving" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="2.4" height="6" fill="#ffffff"/></pattern>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="#1b1f24"/></marker>
</defs>
""".strip()


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row with its place on the sheet."""

    row: Row
    top: float
    bottom: float
    caption: str
    lanes: list[list[tuple[Span, int, int]]]


def draw_gantt(
    canvas: Canvas, gantt: Gantt, places: Mapping[str, int], waits: Sequence[tuple[int, int]]
) -> None:
    """Draw a row a GPU below what is there, and under all of them what was left out.

    Parameters
    ----------
    canvas : Canvas
    gantt : Gantt
    places : Mapping of str to int
        Each service's place, which gives its colour and key.
    waits : sequence of (int, int)
        Positions of actions between which there is an arrow.
    """
    head = canvas.y
    height = _LANE if len(gantt.rows) <= _MANY else _LOW_LANE
    placed = list(_layout(gantt, head + 20, height))
    canvas.y = placed[-1].bottom
    _draw_grid(canvas, gantt.end, head, canvas.y)
    where: dict[int, tuple[float, float, float]] = {}
    for number, each in enumerate(placed):
        _draw_row(canvas, each, gantt.end, places, height, number % 2 == 1)
        for lane, own in enumerate(each.lanes):
            middle = each.top + len(each.caption and "x") * _CAPTION + (lane + 0.5) * height
            for span, begin, end in own:
                for at in _alike(each.row, span):
                    where[at] = begin, end, middle
    _draw_arrows(canvas, waits, where)
    canvas.y += 4
    if left := gantt.rows[MOST_ROWS:]:
        more = count(sum(len(own) for row in left for own in row.spans), "more action")
        gpus = count(sum(len(row.gpus) for row in left), "GPU")
        canvas.text(f"... and {more} on {gpus}", _LEFT, 13, "soft", down=LINE)


def _alike(row: Row, span: Span) -> list[int]:
    """The actions that one drawn action stands for."""
    at = row.drawn.index(span)
    return [own[at].position for own in row.spans]


def _x(seconds: Fraction, end: Fraction) -> int:
    return _LEFT + (int(seconds * _ROOM / end) if end else 0)


def _layout(gantt: Gantt, top: float, height: int) -> Iterator[_Placed]:
    for row in gantt.rows[:MOST_ROWS]:
        edges = []
        for span in row.drawn:
            begin = min(_x(span.begin, gantt.end), WIDTH - EDGE - _LEAST)
            edges.append((begin, max(begin + _LEAST, _x(span.end, gantt.end))))
        lanes = in_lanes(row.drawn, edges)
        caption = names(row.places)
        times = f"{len(row.gpus)} × " if len(row.gpus) > 1 else ""
        if fits(f"{times}{printable(caption)}", _LABEL - 8, 11):
            caption = ""
        bottom = top + len(lanes) * height + _KEPT * len(row.kept) + _GAP
        bottom += _CAPTION if caption else 0
        yield _Placed(row, top, bottom, caption, lanes)
        top = bottom


def _draw_grid(canvas: Canvas, end: Fraction, top: float, bottom: float) -> None:
    canvas.add(f'<text x="{_LEFT - 10}" y="{top + 10:g}" class="small soft right">time</text>')
    free = 0.0
    for tick in ticks(end, 8):
        x, words = _x(tick, end), clock(tick)
        half = len(words) * 11 * 0.61 / 2
        left = min(max(_LEFT, x - half), WIDTH - EDGE - 2 * half)
        canvas.add(
            f'<path d="M{x} {top + 15:g}V{bottom:g}" stroke="#c3cad3" stroke-width="0.8" '
            f'fill="none"/>'
        )
        if left >= free:  # near the end there may be no room for one more
            free = left + 2 * half + 4
            canvas.add(f'<text x="{left:g}" y="{top + 10:g}" class="small soft">{words}</text>')


def _draw_row(
    canvas: Canvas,
    each: _Placed,
    end: Fraction,
    places: Mapping[str, int],
    height: int,
    shaded: bool,
) -> None:
    row, y = each.row, each.top
    if shaded:
        canvas.add(
            f'<rect x="{EDGE}" y="{y - _GAP / 2:g}" width="{WIDTH - 2 * EDGE}" '
            f'height="{each.bottom - y:g}" fill="#59636e" fill-opacity="0.06"/>'
        )
    if each.caption:
        canvas.add(
            f'<text x="{_LEFT}" y="{y + 10:g}" class="small soft">'
            f"{escaped(_middled(each.caption, _ROOM, 11))}</text>"
        )
        y += _CAPTION
    several = len(row.gpus) > 1
    name = names(row.places)
    label = name
    if each.caption:
        label = f"{count(len(row.gpus), 'GPU')} alike" if several else ""
    if several and not each.caption:
        label = f"{decimal(len(row.gpus))} × {name}"
    canvas.add(
        f'<text x="{_LEFT - 8}" y="{y + height / 2 + 4:g}" class="small right">'
        f"<title>{escaped(printable(name))}</title>"
        f"{escaped(_middled(label, _LABEL - 8, 11))}</text>"
    )
    for lane in each.lanes:
        for span, begin, until in lane:
            _draw_span(canvas, span, (begin, y, until - begin, height - 2), places)
        y += height
    for instance in row.kept:
        _draw_kept(canvas, instance, y, places)
        y += _KEPT


def _middled(name: str, width: float, size: int) -> str:
    """Cut a name in the middle: of names with numbers the end says most."""
    shown = printable(name)
    if fits(shown, width, size):
        return shown
    letters = next((n for n in range(len(shown), 0, -1) if fits("x" * n, width, size)), 1)
    tail = letters // 2
    return f"{shown[: letters - tail - 1]}…{shown[len(shown) - tail :]}"


def _draw_kept(canvas: Canvas, kept: Instance, y: float, places: Mapping[str, int]) -> None:
    fill = "#8b949e" if kept.work is None or not kept.is_ours else colour(places[kept.work.service])
    canvas.add(
        f'<rect x="{_LEFT}" y="{y:g}" width="{_ROOM}" height="{_KEPT - 1}" fill="{fill}" '
        f'fill-opacity="0.55"><title>stays: {escaped(str(kept))}</title></rect>'
    )


def _draw_span(
    canvas: Canvas,
    span: Span,
    box: tuple[float, float, float, float],
    places: Mapping[str, int],
) -> None:
    """Draw an action: its colour, its hatching, its sign, and as many words as fit."""
    x, y, width, height = box
    what = span.action.what
    old, new = (colour(places[own[0]]) if own else "#e6e8eb" for own in (span.gone, span.come))
    border = 2.4 if what is What.REWRITE else 0.9
    broken = ' stroke-dasharray="4 2"' if span.action.is_temporary else ""
    tip = f"{said(span.action)}; {clock(span.begin)} to {clock(span.end)}"
    canvas.add(f'<g class="action"><title>{escaped(printable(tip))}</title>')
    leaving = width if what is What.DELETE else 0.0
    if what is What.RESTART or (what is What.REWRITE and span.action.removes):
        leaving = min(width / 3, 40.0)
    for left, wide, fill in ((x, leaving, old), (x + leaving, width - leaving, new)):
        if wide > 0:
            canvas.add(
                f'<rect x="{left:g}" y="{y:g}" width="{wide:g}" height="{height}" fill="{fill}"/>'
            )
    if leaving:
        canvas.add(
            f'<rect x="{x:g}" y="{y:g}" width="{leaving:g}" height="{height}" '
            f'fill="url(#leaving)"/>'
        )
    canvas.add(
        f'<rect x="{x:g}" y="{y:g}" width="{width - 1:g}" height="{height}" rx="2" fill="none" '
        f'stroke="#1b1f24" stroke-width="{border}"{broken}/>'
    )
    size = 11 if height > 14 else 9
    label = next(
        (each for each in _labels(span, places) if fits(each, width - 4, size)), span.sign[0]
    )
    if leaving:  # letters on a hatching are hard to read without a ground
        ground = min(leaving - 2, len(label) * size * 0.61 + 4)
        canvas.add(
            f'<rect x="{x + 1.5:g}" y="{y + 2:g}" width="{ground:g}" height="{height - 4:g}" '
            f'fill="#ffffff" fill-opacity="0.65"/>'
        )
    style = "small" if size == 11 else "tiny"
    canvas.add(
        f'<text x="{x + 3:g}" y="{y + height / 2 + size * 0.36:g}" class="{style} on">'
        f"{escaped(label)}</text></g>"
    )


def _labels(span: Span, places: Mapping[str, int]) -> Iterator[str]:
    """What may be written on an action, the longest first."""
    old, new = ([str(places[name] + 1) for name in part] for part in (span.gone, span.come))
    keys = ",".join(new or old)
    parts = span.action.adds or span.action.removes
    if span.action.what is What.RESTART and old and new:
        keys = f"{old[0]} → {new[0]}"
    if len(parts) == 1 and span.action.what is not What.REWRITE:
        (one,) = parts
        if one.work is not None:
            name = printable(one.work.service)
            yield f"{span.sign} {keys} {name} {one.profile}"
            yield f"{span.sign} {keys} {name}"
        else:
            yield f"{span.sign} {one.profile}"
    yield f"{span.sign} {keys}"
    yield f"{span.sign}{keys}".replace(" ", "")
    yield span.sign


def _draw_arrows(
    canvas: Canvas,
    waits: Sequence[tuple[int, int]],
    where: Mapping[int, tuple[float, float, float]],
) -> None:
    drawn = {
        (where[before][1], where[before][2], where[at][0], where[at][2])
        for before, at in waits
        if before in where and at in where
    }
    for x1, y1, x2, y2 in sorted(drawn):
        if y1 != y2:
            away = 9 if y2 > y1 else -9
            canvas.add(
                f'<path d="M{x1 - 1:g} {y1:g}C{x1 + 16:g} {y1 + away:g} {x2 - 18:g} '
                f'{y2 - away:g} {x2:g} {y2:g}" fill="none" stroke="#1b1f24" stroke-width="1.1" '
                f'stroke-opacity="0.75" marker-end="url(#tip)"/>'
            )
