"""A simulation as a picture: a bar a service in units of its limit, and latency over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ...values.words import count, percent
from .canvas import EDGE, FONT, LINE, WIDTH, Canvas, cut, draw_key, escaped
from .palette import colour

if TYPE_CHECKING:
    from ..simulation import ServiceResult, Simulation

MOST_BARS = 60
"""Services that a picture draws; where there are more, those with the longest latencies."""
MOST_LINES = 8
"""Services that are drawn over time: those with the most late requests."""
_NAMES = 190  # where the bars begin
_VERDICTS = 175  # right of the bars
_LEFT, _RIGHT = EDGE + _NAMES, WIDTH - EDGE - _VERDICTS
_MARKS = {"kept": "good", "broken": "bad", "undecided": "fair"}
_BAR, _GAP = 14, 8
_HEIGHT = 220


def latency_picture(simulation: Simulation, title: str) -> str:
    """Draw a simulation.

    Parameters
    ----------
    simulation : Simulation
    title : str
        What was replayed.

    Returns
    -------
    str
        An SVG document that refers to nothing outside itself; all names are escaped.

    Examples
    --------
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
    >>> instance = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 4)
    >>> chat = ModelledService("<b>", Fraction(250), 40_000_000, Fraction(1, 100), (instance,))
    >>> picture = latency_picture(simulate([chat], requests=5000), "chat")
    >>> picture.startswith("<svg"), "&lt;b&gt;" in picture, "<b>" in picture
    (True, True, False)
    """
    canvas = Canvas()
    canvas.text(title, EDGE, 20, "title", down=30)
    canvas.paragraph(simulation.sentence, 15, "verdict")
    canvas.y += 8
    draw_latencies(canvas, simulation)
    return canvas.document(f"{title}: {simulation.sentence}")


def draw_latencies(canvas: Canvas, simulation: Simulation) -> None:
    """Draw the services' latencies in units of their limits below what is there."""
    drawn = [each for each in simulation.services if each.requests]
    if len(drawn) > MOST_BARS:
        longest = sorted(drawn, key=lambda each: -(each.p99_share or 0))
        keep = {each.name for each in longest[:MOST_BARS]}
        drawn = [each for each in drawn if each.name in keep]
    if limited := [each for each in drawn if each.limit_ns is not None]:
        _bars(canvas, limited)
    for each in drawn:
        if each.limit_ns is None:
            said = f"{each.name}: {each.verdict}, {_units(each.p50_ns)} median, "
            said += f"{_units(each.p99_ns)} p99, {_units(each.max_ns)} longest"
            canvas.text(said, EDGE, FONT, "soft", down=LINE)
    if left := len(simulation.services) - len(drawn):
        canvas.text(f"... and {count(left, 'more service')}", EDGE, FONT, "soft", down=LINE)
    note = "latency over the limit: full bar from the median to the 99th percentile, line to the "
    canvas.paragraph(note + "longest; right of 1 is late", 11, "small soft")
    lines = sorted(
        (each for each in limited if each.timeline is not None), key=lambda each: -each.late_share
    )[:MOST_LINES]
    if lines:
        canvas.y += 16
        _over_time(canvas, lines, simulation)


def _bars(canvas: Canvas, drawn: Sequence[ServiceResult]) -> None:
    shares = [
        (each.p50_ns / limit, each.p99_ns / limit, each.max_ns / limit)
        for each in drawn
        if (limit := each.limit_ns) is not None
    ]
    least = math.floor(math.log10(max(min(median for median, _, _ in shares), 1e-3)))
    most = max(math.ceil(math.log10(max(1.0, *(longest for _, _, longest in shares)))), 1)
    low, high = min(least, -1), min(most, 6)

    def place(share: float) -> float:
        at = (math.log10(max(share, 1e-9)) - low) / (high - low)
        return _LEFT + min(max(at, 0.0), 1.0) * (_RIGHT - _LEFT)

    top, bottom = canvas.y + 14, canvas.y + 18 + len(drawn) * (_BAR + _GAP)
    for power in range(low, high + 1):
        x, style = place(10.0**power), "" if power == 0 else ' stroke-dasharray="2 3"'
        mark = "#1b1f24" if power == 0 else "#c3cad3"
        label = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        canvas.add(
            f'<text x="{x:.1f}" y="{canvas.y + 9:g}" class="small soft" text-anchor="middle">'
            f'{label}</text><line x1="{x:.1f}" y1="{top:g}" x2="{x:.1f}" y2="{bottom:g}" '
            f'stroke="{mark}"{style}/>'
        )
    canvas.y += 20
    for each, (median, p99, longest) in zip(drawn, shares, strict=True):
        _bar(canvas, each, place(median), place(p99), place(longest))
    canvas.y += 6


def _bar(canvas: Canvas, each: ServiceResult, median: float, p99: float, longest: float) -> None:
    y, mark = canvas.y, _MARKS[each.verdict]
    middle, end = y + _BAR / 2, max(p99, median + 2.0)
    tip = f"{each.name}: {_units(each.p50_ns)} median, {_units(each.p99_ns)} p99, "
    tip += f"{_units(each.max_ns)} longest, limit {_units(each.limit_ns or 0)}"
    verdict = each.verdict.upper()
    small = 0 < each.late_share < Fraction(1, 1000)
    late = f"{'&lt; 0.1 %' if small else percent(each.late_share, up=True)} late"
    name = escaped(cut(each.name, _NAMES - 16, FONT))
    canvas.add(
        f"<g><title>{escaped(tip)}</title>"
        f'<text x="{_LEFT - 10}" y="{y + 12:g}" class="right">{name}</text>'
        f'<line x1="{end:.1f}" y1="{middle:g}" x2="{longest:.1f}" y2="{middle:g}" '
        f'class="{mark} line" stroke-width="2"/>'
        f'<rect x="{median:.1f}" y="{y:g}" width="{end - median:.1f}" '
        f'height="{_BAR}" rx="3" class="{mark}"/>'
        f'<text x="{_RIGHT + 10}" y="{y + 12:g}" class="{mark}">{verdict}</text>'
        f'<text x="{WIDTH - EDGE}" y="{y + 12:g}" class="small soft right">{late}</text></g>'
    )
    canvas.y += _BAR + _GAP


def _units(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.4g} ms"


def _over_time(canvas: Canvas, lines: Sequence[ServiceResult], simulation: Simulation) -> None:
    """Mean latency over the limit in each cell of time, and where the events are."""
    curves = []
    for each in lines:
        line = each.timeline
        assert line is not None
        assert each.limit_ns is not None
        points = [
            ((at + 0.5) * line.cell_ns / 1e9, mean / each.limit_ns)
            for at, (mean, requests) in enumerate(zip(line.mean_ns, line.requests, strict=True))
            if requests
        ]
        curves.append((each, points))
    end = max(points[-1][0] for _, points in curves)
    high = max([1.0, *(share for _, points in curves for _, share in points)]) * 1.05
    canvas.text("mean latency over the limit, by when requests arrived", EDGE, FONT, "head",
                down=LINE + 4)  # fmt: skip
    left, right, top = EDGE + 50, WIDTH - EDGE, canvas.y
    bottom = top + _HEIGHT

    def x(seconds: float) -> float:
        return left + seconds / end * (right - left)

    def y(share: float) -> float:
        return bottom - share / high * _HEIGHT

    for share in (0.0, 1.0, high / 1.05):
        if share <= 1.0 or high > 1.5:
            canvas.add(
                f'<text x="{left - 8}" y="{y(share) + 4:.1f}" class="small soft right">'
                f'{share:.3g}</text><line x1="{left}" y1="{y(share):.1f}" x2="{right}" '
                f'y2="{y(share):.1f}" stroke="#c3cad3"/>'
            )
    times = {one.event: float(one.seconds) for each in lines for one in each.recoveries}
    for number, seconds in sorted(times.items()):
        if seconds <= end:
            event = simulation.events[number]
            canvas.add(
                f'<g><title>{escaped(event)}</title><line x1="{x(seconds):.1f}" y1="{top:g}" '
                f'x2="{x(seconds):.1f}" y2="{bottom:g}" stroke="#59636e" '
                'stroke-dasharray="4 3"/></g>'
            )
    for place, (each, points) in enumerate(curves):
        path = " ".join(f"{x(seconds):.1f},{y(share):.1f}" for seconds, share in points)
        canvas.add(
            f'<g><title>{escaped(each.name)}</title><polyline points="{path}" fill="none" '
            f'stroke="{colour(place)}" stroke-width="2"/></g>'
        )
        # the key stands where the curve is highest, or, of flat ones, one beside the other
        seconds, share = max(points, key=lambda point: (round(point[1], 1), -point[0]))
        at = x(seconds) if share > high / 10 else left + 14 + 18 * place
        canvas.add(f'<text x="{at:.1f}" y="{y(share) - 4:.1f}" class="key">{place + 1}</text>')
    canvas.y = bottom + 4
    for seconds in (0.0, end / 2, end):
        anchor = {0.0: "start", end: "end"}.get(seconds, "middle")
        canvas.add(
            f'<text x="{x(seconds):.1f}" y="{canvas.y + 11:g}" class="small soft" '
            f'text-anchor="{anchor}">{seconds:.4g} s</text>'
        )
    canvas.y += 24
    for event in simulation.events:
        canvas.text(event, EDGE, 11, "small soft", down=16)
    canvas.y += 6
    for place, (each, _) in enumerate(curves):
        draw_key(canvas, place, each.name)
        canvas.y += LINE
