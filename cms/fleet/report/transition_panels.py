"""Small pictures of each service's capacity while a transition runs, against its floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from ...errors import InvalidOption
from ...values.names import nearest
from ...values.numbers import exact
from ...values.words import count, printable
from ..deployment.transition.curves import Curve, Steps, seconds_below
from .canvas import EDGE, FONT, LINE, WIDTH, Canvas, cut, escaped
from .palette import colour
from .transition_words import clock, lowest_words, short

__all__ = ["MOST_PANELS", "draw_panels", "rates_of"]

MOST_PANELS = 60
"""Services whose capacity is drawn: those that come nearest to their floors."""
_COLUMNS = 3
_PITCH = (WIDTH - 2 * EDGE) / _COLUMNS
_WIDE = _PITCH - 16
_SCALE = 52  # pixels left of a panel's curve, for numbers
_HEADS, _TALL, _FOOT = 48, 72, 28  # heights: the words above, the curve, the time below
_BEYOND = Fraction(21, 20)  # so that what comes at the very end is seen
_NUMBER = 11  # pixels that a number on the scale needs
_RATE = "#8a3ffc"


def rates_of(
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]], services: Mapping[str, int]
) -> dict[str, Steps]:
    """Take rates over time as they may be given; see `transition_svg`."""
    found = {}
    for name, given in rates.items():
        if name not in services:
            raise InvalidOption(
                f"rates are given for the service {name!r}{nearest(name, services)}; expected one "
                f"of {', '.join(services) or 'none'}"
            )
        steps = tuple(
            (
                exact(when, f"a moment of the rates of {name}", error=InvalidOption),
                exact(rate, f"a rate of {name}", error=InvalidOption),
            )
            for when, rate in given
        )
        for (one, _), (other, _) in pairwise(steps):
            if other <= one:
                raise InvalidOption(
                    f"the rates of {name} have {clock(one)} before {clock(other)}; expected "
                    "ascending moments"
                )
        found[name] = steps
    return found


def draw_panels(
    canvas: Canvas,
    curves: Sequence[Curve],
    end: Fraction,
    places: Mapping[str, int],
    rates: Mapping[str, Steps],
) -> None:
    """Draw the capacity of each service that changes, or whose rate is known, below what is there.

    Parameters
    ----------
    canvas : Canvas
    curves : sequence of Curve
    end : Fraction
        When all is done, in seconds.
    places : Mapping of str to int
        Each service's place, which gives its colour and key.
    rates : Mapping of str to steps
        How many items per second come, by service.
    """
    moving = [each for each in curves if each.changes or each.service in rates]
    if not moving:
        return
    near = sorted(moving, key=lambda each: each.lowest / each.floor if each.floor else 10**9)
    shown = {each.service for each in near[:MOST_PANELS]}
    words = "Capacity in items/s: floor dashed, ring where it is lowest"
    if rates:
        words += ", rate dotted"
    canvas.text(words, EDGE, FONT, "head", down=LINE + 6)
    drawn = [each for each in moving if each.service in shown]
    tall = _HEADS + _TALL + _FOOT
    for number, curve in enumerate(drawn):
        x, y = EDGE + number % _COLUMNS * _PITCH, canvas.y + number // _COLUMNS * tall
        _draw_panel(canvas, curve, end, places[curve.service], rates.get(curve.service, ()), (x, y))
    canvas.y += -(-len(drawn) // _COLUMNS) * tall
    if left := len(moving) - len(drawn):
        rest = f"... and {count(left, 'more service')}, further from their floors"
        canvas.text(rest, EDGE, FONT, "soft", down=LINE)


def _draw_panel(
    canvas: Canvas, curve: Curve, end: Fraction, place: int, rate: Steps, at: tuple[float, float]
) -> None:
    x, y = at
    name = printable(curve.service)
    canvas.add(
        f'<g class="panel"><title>{escaped(name)}: {escaped(lowest_words(curve))} items/s</title>'
        f'<rect x="{x:g}" y="{y:g}" width="26" height="16" rx="3" fill="{colour(place)}" '
        f'stroke="#59636e" stroke-width="0.8"/>'
        f'<text x="{x + 13:g}" y="{y + 13:g}" class="key on">{place + 1}</text>'
        f'<text x="{x + 34:g}" y="{y + 13:g}" class="head">'
        f"{escaped(cut(name, _WIDE - 34, FONT))}</text>"
    )
    was, then = short(curve.before, up=False), short(curve.after, up=False)
    lines = f"{was} → {then}", lowest_words(curve)
    if rate and (below := seconds_below(curve, rate, end)):
        lines = f"{was} → {then}; rate above it for {clock(below)}", lines[1]
    for line, down in zip(lines, (28, 42), strict=True):
        canvas.add(
            f'<text x="{x:g}" y="{y + down:g}" class="small">{escaped(cut(line, _WIDE, 11))}</text>'
        )
    _draw_curve(canvas, curve, end, rate, (x + _SCALE, y + _HEADS + 4))
    canvas.add("</g>")


def _draw_curve(
    canvas: Canvas, curve: Curve, end: Fraction, rate: Steps, at: tuple[float, float]
) -> None:
    left, top = at
    room, tall = _WIDE - _SCALE, _TALL - 8
    asked = [rps for when, rps in rate if when <= end * _BEYOND]
    high = max([curve.highest, curve.floor, *asked]) or Fraction(1)
    low = min([curve.lowest, curve.floor, *asked])
    base = Fraction(0) if 2 * low < high else max(Fraction(0), low - (high - low) / 4)

    last = end * _BEYOND

    def across(seconds: Fraction) -> float:
        return left + (float(min(seconds, last) / last) * room if end else 0.0)

    def down(rps: Fraction) -> float:
        return top + tall * (1 - float((rps - base) / (high - base)))

    steps = [(Fraction(0), curve.before), *curve.steps]
    line = _path(steps, last, across, down)
    floor = down(curve.floor)
    canvas.add(
        f'<path d="M{left:g} {top:g}V{top + tall:g}H{left + room:g}" fill="none" '
        f'stroke="#8b949e" stroke-width="0.8"/>'
        f'<path d="{line}V{floor:g}H{left:g}Z" fill="#59636e" fill-opacity="0.12"/>'
        f'<path d="M{left:g} {floor:g}H{left + room:g}" stroke="#b35900" stroke-width="1.4" '
        f'stroke-dasharray="6 3" fill="none"/>'
        f'<path d="{line}" fill="none" stroke="#1b1f24" stroke-width="1.6"/>'
    )
    if rate:
        dots = _path(rate, last, across, down)
        canvas.add(
            f'<path d="{dots}" fill="none" stroke="{_RATE}" stroke-width="1.8" '
            f'stroke-dasharray="1.5 3"/>'
        )
    canvas.add(
        f'<circle cx="{across(curve.lowest_s):g}" cy="{down(curve.lowest):g}" r="3.6" '
        f'fill="#ffffff" stroke="#1b1f24" stroke-width="1.6"/>'
    )
    _number(canvas, left, floor, short(curve.floor, up=True), "floor")
    for edge, rps in ((top, high), (top + tall, base)):
        if abs(edge - floor) >= _NUMBER:
            _number(canvas, left, edge, short(rps, up=False))
    for moment, anchor in ((Fraction(0), "start"), (end, "end")) if end else ():
        canvas.add(
            f'<text x="{across(moment):g}" y="{top + tall + 13:g}" class="small soft" '
            f'text-anchor="{anchor}">{clock(moment)}</text>'
        )


def _number(canvas: Canvas, left: float, y: float, text: str, style: str = "soft") -> None:
    canvas.add(
        f'<text x="{left - 6:g}" y="{y + 3:g}" class="tiny {style} right">'
        f"{cut(text, _SCALE, 9)}</text>"
    )


def _path(
    steps: Sequence[tuple[Fraction, Fraction]],
    end: Fraction,
    across: Callable[[Fraction], float],
    down: Callable[[Fraction], float],
) -> str:
    parts: list[str] = []
    for when, rps in steps:
        if when <= end:
            x, y = across(when), down(rps)
            parts.append(f"H{x:g}V{y:g}" if parts else f"M{x:g} {y:g}")
    return "".join(parts) + (f"H{across(end):g}" if parts else "")
