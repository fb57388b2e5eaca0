"""Curves of pages: GPUs against rates; and the improvements of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from ...values.words import at_least, count, decimal, printable
from .colours import TONES
from .page import Part, Picture
from .tables import Cell, Grid, number, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..serving.rate_curve import RatePoint

#: Numbers beyond it are not drawn: the table says them.
_MOST = 10**150
#: Of several lines, so that they are told apart without colours.
DASHES = ("-", "--", ":", "-.", (0, (9, 3)), (0, (5, 2, 1, 2)), (0, (1, 4)), (0, (9, 2, 3, 2)))


def history_table(
    history: Iterable[tuple[float, Fraction | None, Fraction, str]], best: str, *, up: bool
) -> Grid:
    """List the best value, called `best`, and its bound after each improvement of a run.

    `up`: whether the best is rounded up and its bound down.
    """
    above, below = (partial(decimal, rounding=each) for each in (math.ceil, math.floor))
    rows = [
        [number(seconds, "{:.3f} s".format), number(value, above if up else below),
         number(bound, below if up else above), source]
        for seconds, value, bound, source in history
    ]  # fmt: skip
    return table("Each improvement", f">time|>{best}|>bound|by", rows)


def make_axes(sheet: Figure, x: str, y: str = "", right: float = 0.97) -> Axes:
    """Make the axes of a drawing; right of them there may be room for a legend."""
    sheet.subplots_adjust(left=0.1, right=right, top=0.88, bottom=0.17)
    axes: Axes = sheet.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(axis="y")
    return axes


def legend_beside(axes: Axes) -> None:
    """Put a legend right of the axes."""
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def legend_name(name: str) -> str:
    """Return a name for a legend, which ignores names that begin with an underscore."""
    short = printable(f"{name[:22]}…" if len(name) > 23 else name)
    return f"\u200b{short}" if short.startswith("_") else short


def rates_parts(curve: Sequence[RatePoint], unit: str, missing: int) -> list[Part]:
    """Draw and list the fewest GPUs, or the least cost, at multiples of all rates."""
    open_ = sum(each.cost is not None and each.cost != each.bound for each in curve)
    never = sum(each.status == "infeasible" for each in curve)
    lost = sum(each.cost is None for each in curve) - never
    said = [f"{count(len(curve) - open_ - lost - never, 'point')} proved optimal"]
    said += [f"{open_:,} open (hollow, with the lower bound below)"] * bool(open_)
    said += [f"{never:,} cannot be served (proved)"] * bool(never)
    said += [f"{lost:,} not known (time ended)"] * bool(lost)
    said += [f"no time for {count(missing, 'further one')}"] * bool(missing)
    again = "Planned again at each multiple of all rates; every point is rechecked"
    parts: list[Part] = [f"{again}: {'; '.join(said)}."]
    known = [each.cost for each in curve if each.cost is not None]
    if known and max(known) <= _MOST:
        told = (f"{decimal(each.rate)} times: {_found(each, unit)[0]}" for each in curve)
        said_all = f"{unit} by the multiple of all rates: {', '.join(told)}"
        parts.append(Picture(said_all, lambda sheet: _draw_rates(sheet, curve, unit)))
    rows = [
        [number(each.rate, lambda rate: f"{decimal(rate)} ×"), Cell(*_found(each, "")),
         Cell("-" if each.status == "infeasible" else at_least(each.bound)
              if each.bound or each.cost == 0 else "not known", each.bound),
         each.status.replace("_", " ")]
        for each in curve
    ]  # fmt: skip
    heads = f">all rates|>{unit}|>lower bound|status"
    return [*parts, table(f"{unit} at each multiple of the rates", heads, rows, folded=True)]


def _found(point: RatePoint, unit: str) -> tuple[str, Fraction | float]:
    if point.cost is not None:
        return f"{decimal(point.cost, rounding=math.ceil)} {unit}".rstrip(), point.cost
    never = point.status == "infeasible"
    return ("cannot be served", math.inf) if never else ("not known", math.nan)


def _draw_rates(sheet: Figure, curve: Sequence[RatePoint], unit: str) -> None:
    axes = make_axes(sheet, "all rates multiplied by", unit)
    every = [float(each.rate) for each in curve]
    never = [each.status == "infeasible" for each in curve]
    # the lines end where nothing is known
    costs = [math.nan if each.cost is None else float(each.cost) for each in curve]
    known = (each.bound and each.status != "infeasible" for each in curve)
    bounds = [
        float(each.bound) if own else math.nan for each, own in zip(curve, known, strict=True)
    ]
    axes.plot(every, bounds, "--", c=TONES["bound"], label="lower bound")
    axes.plot(every, costs, "-", c=TONES["best"], lw=1.8, label="found")
    axes.fill_between(every, costs, bounds, color=TONES["soft"], alpha=0.15)
    for each, at, value in zip(curve, every, costs, strict=True):
        if each.cost is not None:
            fill = TONES["best"] if each.cost == each.bound else TONES["paper"]
            axes.plot([at], [value], "o", ms=5, mec=TONES["best"], mfc=fill)
            words = decimal(each.cost, rounding=math.ceil)
            axes.annotate(words, (at, value), (0, 6), textcoords="offset points", ha="center")
    axes.set_ylim(0, 1.15 * max(each for each in [*costs, *bounds, 0.0] if each == each) or 1)
    if lost := [float(e.rate) for e in curve if e.cost is None and e.status != "infeasible"]:
        low = [0.04 * axes.get_ylim()[1]] * len(lost)
        axes.plot(lost, low, "x", c=TONES["fair"], label="not known")
    if any(never):
        first, last = every[never.index(True)], every[-1]
        last = last if last > first else 1.05 * first
        axes.axvspan(first, last, color=TONES["bad"], alpha=0.12, label="cannot be served", lw=0)
    axes.xaxis.set_major_formatter("{x:g} ×")
    above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderpad": 0}
    axes.legend(ncols=4, columnspacing=1, **above)
