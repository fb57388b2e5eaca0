"""Two charts: both bounds over the time of a run, and GPUs against what all rates are times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ....values.words import at_least, count, decimal
from ..canvas import EDGE, FONT, LINE, WIDTH, Canvas, escaped

if TYPE_CHECKING:
    from ....solving.solution import Incumbent
    from ...serving.rate_curve import RatePoint

__all__ = ["Known", "bounds_chart", "known_of", "rates_chart"]

_LEFT = EDGE + 70
_RIGHT = WIDTH - EDGE - 130  # what the lines are called stands right of them
_HEIGHT = 230
_INSET = 14  # so that what stands on the first point is beside the scale
_MOST_STEPS = 2000
_TICKS = 5
_SOONEST = 1e-3  # seconds; what is quicker is drawn here
#: Of several lines, so that they are told apart without colours.
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "14 4", "5 2 1 2 1 2", "1 5", "12 2 4 2")


class Known(NamedTuple):
    """What was known from a moment on.

    Attributes
    ----------
    seconds : float
    best : Fraction or None
        What was found; None while nothing was.
    bound : Fraction
        What no answer is better than.
    source : str
    """

    seconds: float
    best: Fraction | None
    bound: Fraction
    source: str


def known_of(history: Sequence[Incumbent]) -> list[Known]:
    """Turn a solution's history into the lines of a chart."""
    return [Known(line.seconds, line.cost, line.lower_bound, line.source) for line in history]


def bounds_chart(history: Sequence[Known], seconds: float, best: str, bound: str) -> Canvas:
    """Draw what was found and what was proved over the time of a run.

    Parameters
    ----------
    history : sequence of Known
        Not empty.
    seconds : float
        How long the run took.
    best, bound : str
        What the two are called.
    """
    canvas = Canvas()
    lines = _thinned(history)
    end = max(seconds, lines[-1].seconds) or 1.0
    values = [line.bound for line in lines] + [x.best for x in lines if x.best is not None]
    sheet = _Sheet(canvas, (0.0, end), _span(values), f"{best} and {bound} over seconds")
    sheet.across([end * at / _TICKS for at in range(_TICKS + 1)], lambda at: f"{at:.3g} s")
    found = [(line.seconds, line.best) for line in lines if line.best is not None]
    sheet.steps([(line.seconds, line.bound) for line in lines], end, "bound")
    sheet.steps(found, end, "best")
    names = [(lines[-1].bound, bound, "bound")]
    if found:
        names.append((found[-1][1], best, "best"))
    sheet.names(names)
    return canvas


def rates_chart(points: Sequence[RatePoint], unit: str) -> Canvas:
    """Draw the fewest GPUs against what all rates are multiplied by.

    Where the two bounds differ, what lies between them is open, and filled.

    Parameters
    ----------
    points : sequence of RatePoint
        Ascending; at least one with a schedule.
    unit : str
        What costs are: "GPUs".
    """
    canvas = Canvas()
    known = [each for each in points if each.cost is not None]
    bounded = [each for each in points if each.status != "infeasible"]
    values = [Fraction(0), *(each.cost or Fraction(0) for each in known)]
    across = float(points[0].rate), float(points[-1].rate)
    sheet = _Sheet(canvas, across, _span(values), f"{unit} over the multiple of all rates")
    sheet.across([float(each.rate) for each in points], lambda at: f"{at:g} ×")
    for one, other in pairwise(points):
        if None not in (one.cost, other.cost):
            sheet.between(one, other)
    sheet.line([(float(each.rate), each.bound) for each in bounded], "bound", broken=True)
    if len(bounded) < len(points):
        sheet.end(float(points[len(bounded)].rate), "from here on they cannot be served")
    sheet.line([(float(each.rate), each.cost or Fraction(0)) for each in known], "best")
    for each in known:
        assert each.cost is not None
        proved = each.cost == each.bound
        least = "proved fewest" if proved else f"proved >= {at_least(each.bound)}"
        tip = f"{decimal(each.rate)} times all rates: {decimal(each.cost)} {unit}, {least}"
        sheet.dot((float(each.rate), each.cost), tip, filled=proved)
    last = bounded[-1]
    if known:
        together = known[-1] is last and last.cost == last.bound
        found = (known[-1].cost or Fraction(0), "found, proved" if together else "found", "best")
        sheet.names([found] if together else [found, (last.bound, "proved >=", "bound")])
    return canvas


def _thinned(history: Sequence[Known]) -> Sequence[Known]:
    """As many lines as a picture shows, the last among them."""
    step = -(-len(history) // _MOST_STEPS)
    return [*history[:-1:step], history[-1]]


def _span(values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Where the scale begins and ends: at 0 where what is drawn is not far from it."""
    low, high = min(values), max(values)
    if 4 * low < 3 * high:
        low = min(Fraction(0), low)
    else:
        low -= (high - low) / 4 or high / 10
    return (low, high) if high > low else (low, low + 1)


class _Sheet:
    """Axes, and lines between them."""

    def __init__(
        self,
        canvas: Canvas,
        across: tuple[float, float],
        up: tuple[Fraction, Fraction],
        head: str,
    ) -> None:
        self._canvas, self._low, self._high = canvas, *up
        self._from, self._to = across
        canvas.text(head, EDGE, FONT, "head", down=LINE + 4)
        self._top = canvas.y
        self._bottom = canvas.y + _HEIGHT
        for value in _ticks(*up):
            y = self._y(value)
            canvas.add(
                f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" class="small soft right">'
                f'{escaped(decimal(value))}</text><path d="M{_LEFT} {y:.1f}H{_RIGHT}" '
                'stroke="#c3cad3" stroke-width="0.8"/>'
            )
        canvas.y = self._bottom + 30

    def _x(self, at: float) -> float:
        room = self._to - self._from or 1.0
        return _LEFT + _INSET + (at - self._from) / room * (_RIGHT - _LEFT - 2 * _INSET)

    def _y(self, value: Fraction) -> float:
        share = (value - self._low) / (self._high - self._low)
        return self._bottom - float(share) * _HEIGHT

    def across(self, at: Sequence[float], write: Callable[[float], str]) -> None:
        """Write what the axis counts, as often as there is room."""
        free = 0.0
        for value in at:
            x, words = self._x(value), write(value)
            half = len(words) * 11 * 0.61 / 2
            self._canvas.add(
                f'<path d="M{x:.1f} {self._bottom:g}v5" stroke="#8b949e" stroke-width="1"/>'
            )
            if x - half >= free:
                free = x + half + 4
                self._canvas.add(
                    f'<text x="{x:.1f}" y="{self._bottom + 18:g}" class="small soft" '
                    f'text-anchor="middle">{escaped(words)}</text>'
                )

    def steps(self, points: Sequence[tuple[float, Fraction]], end: float, look: str) -> None:
        """Draw a line that stays as it is until it changes."""
        if not points:
            return
        parts = [f"M{self._x(points[0][0]):.1f} {self._y(points[0][1]):.1f}"]
        parts += [f"H{self._x(at):.1f}V{self._y(value):.1f}" for at, value in points[1:]]
        self._path("".join(parts) + f"H{self._x(end):.1f}", look, broken=look == "bound")

    def line(
        self, points: Sequence[tuple[float, Fraction]], look: str, *, broken: bool = False
    ) -> None:
        """Draw a line through points."""
        path = "L".join(f"{self._x(at):.1f} {self._y(value):.1f}" for at, value in points)
        self._path(f"M{path}", look, broken=broken)

    def _path(self, path: str, look: str, *, broken: bool) -> None:
        dash = _DASHES[1] if broken else ""
        if look.startswith("several"):
            dash, look = _DASHES[int(look.removeprefix("several"))], "best"
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._canvas.add(
            f'<path d="{path}" class="line {look}" fill="none" stroke-width="2.2"{dashes}/>'
        )

    def end(self, at: float, words: str) -> None:
        """Say from where on there is nothing."""
        x, left = self._x(at), self._x(at) > (_LEFT + _RIGHT) / 2
        self._canvas.add(
            f'<path d="M{x:.1f} {self._top:g}V{self._bottom:g}" stroke="#8b949e" '
            f'stroke-dasharray="2 3"/><text x="{x + (-4 if left else 4):.1f}" '
            f'y="{self._top + 12:g}" class="small soft{" right" if left else ""}">{words}</text>'
        )

    def between(self, one: RatePoint, other: RatePoint) -> None:
        """Fill what is open between two points."""
        corners = [
            (one.rate, one.cost), (other.rate, other.cost), (other.rate, other.bound),
            (one.rate, one.bound),
        ]  # fmt: skip
        path = "L".join(
            f"{self._x(float(at)):.1f} {self._y(value):.1f}"
            for at, value in corners
            if value is not None
        )
        self._canvas.add(f'<path d="M{path}Z" class="between"/>')

    def dot(self, at: tuple[float, Fraction], tip: str, *, filled: bool) -> None:
        """Mark a point, with its value above it; one that is proved is filled."""
        x, y = self._x(at[0]), self._y(at[1])
        look = "best" if filled else "line best"
        self._canvas.add(
            f'<g><title>{escaped(tip)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="4" '
            f'class="{look}" stroke-width="2"/><text x="{x:.1f}" y="{y - 9:.1f}" '
            f'class="small" text-anchor="middle">{escaped(decimal(at[1], rounding=math.ceil))}'
            "</text></g>"
        )

    def names(self, names: Sequence[tuple[Fraction, str, str]]) -> None:
        """Write at the right ends what the lines are, one above the other where they meet."""
        free = float("inf")
        for value, words, look in sorted(names, key=lambda each: (each[0], each[2] == "best")):
            y = min(self._y(value) + 4, free)
            free = y - 16
            self._canvas.add(
                f'<text x="{_RIGHT + 12}" y="{y:.1f}" class="{look}">{escaped(words)}</text>'
            )


def _ticks(low: Fraction, high: Fraction) -> list[Fraction]:
    """About five round numbers in a span."""
    raw = (high - low) / _TICKS
    power = Fraction(10) ** (len(str(raw.numerator // raw.denominator)) - 1 if raw >= 1 else 0)
    while power > raw:
        power /= 10
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= raw)
    first = math.ceil(low / step)
    return [step * at for at in range(first, int(high // step) + 1)]


def words_of(points: Sequence[RatePoint], unit: str) -> str:
    """Describe a chart of rates for those who cannot see it."""
    found = [
        f"{decimal(each.rate)} times: "
        + ("cannot be served" if each.cost is None else decimal(each.cost))
        for each in points
        if each.cost is not None or each.status == "infeasible"
    ]
    return f"{unit} by the multiple of all rates, {count(len(points), 'point')}: {', '.join(found)}"


def counts_chart(series: Sequence[tuple[str, Sequence[float]]], head: str) -> Canvas:
    """Draw how many of something had happened by when, a line each.

    Parameters
    ----------
    series : sequence of (str, sequence of float)
        A name, and when each happened, in seconds, ascending; at least one happened.
    head : str
    """
    canvas = Canvas()
    every = [max(at, _SOONEST) for _, times in series for at in times]
    first, last = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    last = max(last, first + 1)
    most = max(len(times) for _, times in series)
    sheet = _Sheet(canvas, (float(first), float(last)), (Fraction(0), Fraction(most)), head)
    sheet.across([float(at) for at in range(first, last + 1)], lambda at: f"{10.0**at:g} s")
    ends = []
    for place, (name, times) in enumerate(series):
        points = [(float(first), Fraction(0))]
        points += [(math.log10(max(at, _SOONEST)), Fraction(n)) for n, at in enumerate(times, 1)]
        sheet.steps(_kept(points), float(last), f"several{place % len(_DASHES)}")
        ends.append((Fraction(len(times)), name, "soft"))
    sheet.names(ends)
    return canvas


def _kept(points: Sequence[tuple[float, Fraction]]) -> Sequence[tuple[float, Fraction]]:
    step = -(-len(points) // _MOST_STEPS)
    return [*points[:-1:step], points[-1]]
