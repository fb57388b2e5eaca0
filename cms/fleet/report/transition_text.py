"""The Gantt and the capacities of a transition, drawn with characters on one time axis."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ...values.words import printable
from ..deployment.transition.curves import Curve, Steps, seconds_below
from ..deployment.transition.model import What
from .drawing import fit
from .fleet_bars import names
from .palette import colour
from .transition_gantt import Gantt, Row, Span, in_lanes
from .transition_words import clock, lowest_words, short, ticks

__all__ = ["Axis", "chart", "middled", "rows"]

_MOST_LABEL = 26  # columns for the name of a GPU
_STAY = 3  # columns that say how many instances stay
_TICK = 11  # columns that a tick of the time axis needs
_HEIGHT = 3  # lines of a chart above the floor
_FILLS = {What.CREATE: "━", What.DELETE: "┄", What.RESTART: "≈", What.REWRITE: "═",
    What.SWITCH: "─",
}  # fmt: skip
_EMPTY, _GRID, _RATE, _SHORT = " ", "┊", "·", "×"


@dataclass(frozen=True)
class Axis:
    """Where time is on the lines.

    Parameters
    ----------
    end : Fraction
        Seconds on it.
    label : int
        Columns of the names before it.
    room : int
        Columns of the time itself.
    """

    end: Fraction
    label: int
    room: int

    @classmethod
    def of(cls, gantt: Gantt, width: int) -> Axis:
        """Give the names of GPUs what they need, and the time the rest."""
        longest = max((cell_len(_name(row)) for row in gantt.rows), default=0)
        label = max(13, min(longest, _MOST_LABEL, width // 4))
        return cls(gantt.end, label, max(10, width - label - _STAY - 3))

    def column(self, seconds: Fraction) -> int:
        """Return the column of a moment."""
        return int(seconds * self.room / self.end) if self.end else 0

    def edges(self, span: Span) -> tuple[int, int]:
        """Return the first column of an action and the one after its last: at least one."""
        begin = min(self.column(span.begin), self.room - 1)
        return begin, max(begin + 1, self.column(span.end))

    @property
    def ticks(self) -> dict[int, str]:
        """What stands at which column."""
        every = ticks(self.end, max(1, self.room // _TICK))
        return {min(self.column(at), self.room - 1): clock(at) for at in every}

    def head(self) -> Text:
        """Draw the axis."""
        line, ruler = "", ""
        for column, word in self.ticks.items():
            if column + cell_len(word) <= self.room:
                line += " " * (column - cell_len(line)) + word
            ruler += "─" * (column - len(ruler)) + ("┬" if column else "─")
        ruler += "─" * (self.room - len(ruler))
        before = " " * (self.label + _STAY + 1)
        return Text(f"{before} {line}\n{before}┌{ruler}", "dim", no_wrap=True, overflow="crop")


def _name(row: Row) -> str:
    times = f"{len(row.gpus)} × " if len(row.gpus) > 1 else ""
    return times + printable(names(row.places))


def middled(text: str, width: int) -> str:
    """Cut a text in the middle: of names with numbers the end says most.

    Examples
    --------
    >>> middled("gpu-node-eu-west-1a-0017/3", 15), middled("a/3", 4)
    ('gpu-nod…-0017/3', 'a/3 ')
    """
    if cell_len(text) <= width:
        return fit(text, width)
    tail = text[-(width // 2) :]
    while cell_len(tail) > width // 2:
        tail = tail[1:]
    return fit(fit(text, width - cell_len(tail)) + tail, width)


def rows(gantt: Gantt, axis: Axis, places: Mapping[str, int], most: int) -> Iterator[Text]:
    """Draw rows: one line for a GPU, or for several alike, and further ones for what overlaps."""
    for row in gantt.rows[:most]:
        name = _name(row)
        if len(row.gpus) > 1 and cell_len(name) > axis.label:
            yield Text(name, "dim", overflow="fold")
            name = f"{len(row.gpus)} GPUs ×"
        stay = f"{len(row.kept)}=" if row.kept else ""
        lanes = in_lanes(row.drawn, [axis.edges(span) for span in row.drawn])
        for number, lane in enumerate(lanes):
            line = Text(no_wrap=True, overflow="crop")
            line.append(middled(name if not number else "", axis.label), "bold")
            line.append((stay if not number else "").rjust(_STAY) + " ", "dim")
            line.append("│", "dim")
            at = 0
            for span, begin, end in lane:
                line.append(_blank(axis, at, begin), "dim")
                _append_span(line, span, end - begin, places)
                at = end
            yield line.append(_blank(axis, at, axis.room).rstrip(), "dim")


def _blank(axis: Axis, begin: int, end: int) -> str:
    marks = axis.ticks
    return "".join(_GRID if at in marks and at else _EMPTY for at in range(begin, end))


def _append_span(line: Text, span: Span, room: int, places: Mapping[str, int]) -> None:
    come, gone = ([places[name] for name in part] for part in (span.come, span.gone))
    style = Style(italic=span.action.is_temporary)
    if shown := come or gone:
        ground = colour(shown[0])
        style += Style(color="#000000", bgcolor=ground, bold=True)
    said = span.sign
    keys = ",".join(str(place + 1) for place in shown)
    if span.action.what is What.RESTART and come and gone:
        keys = f"{gone[0] + 1}>{come[0] + 1}"
    if len(said) + len(keys) <= room:
        said += keys
    said = said[:room]
    line.append(said + _FILLS[span.action.what] * (room - len(said)), style)


# --- capacities -----------------------------------------------------------------------------------


def chart(curve: Curve, axis: Axis, place: int, rates: Steps = ()) -> Iterator[Text]:
    """Draw a service's capacity as steps, with its floor, its lowest point and what comes.

    Nothing above the floor is drawn on the floor's line, however little it is above. What comes is
    drawn over the capacity where it is more than that, though it be on the same line.
    """
    key = Style(color="#000000", bgcolor=colour(place), bold=True)
    head = Text(overflow="fold").append(f" {place + 1} ", key)
    head.append(f" {printable(curve.service)}", "bold")
    was, then = short(curve.before, up=False), short(curve.after, up=False)
    head.append(f" {was} -> {then} items/s; {lowest_words(curve)}", "not bold")
    coming = [rate for when, rate in rates if when <= axis.end]
    if coming:
        most = short(max(coming), up=True)
        head.append(f"; at most {most} items/s come", "not bold")
        if below := seconds_below(curve, rates, axis.end):
            head.append(f", above it for {clock(below)}", "not bold")
    yield head
    moments = [axis.end * (2 * at + 1) / (2 * axis.room) for at in range(axis.room)]
    values = [curve.at(when) for when in moments]
    mark = min(axis.column(curve.lowest_s), axis.room - 1)
    values[-1] = curve.after
    values[mark] = curve.lowest
    top = max(curve.highest, curve.floor, *coming)
    levels = [_level(value, curve.floor, top) for value in values]
    drawn = _steps([_level(curve.before, curve.floor, top), *levels])
    marked = _HEIGHT - levels[mark], mark
    dots = {
        (_HEIGHT - _level(rate, curve.floor, top), column): _SHORT if rate > value else _RATE
        for column, (when, value) in enumerate(zip(moments, values, strict=True))
        if (rate := _rate_at(rates, when)) is not None
    }
    for line in range(_HEIGHT + 1):
        label = ""
        if line == _HEIGHT:
            label = f"floor {short(curve.floor, up=True)}"
        elif line == 0 and top > curve.floor:
            label = short(top, up=False)
        text = Text(no_wrap=True, overflow="crop")
        text.append(fit(label, axis.label + _STAY).rstrip().rjust(axis.label + _STAY) + " ", "dim")
        text.append("┤" if label else "│", "dim")
        for column, char in enumerate(drawn[line]):
            dot = dots.get((line, column))
            if (line, column) == marked:
                text.append("●", "bold")
            elif dot == _SHORT or (dot and char == _EMPTY):
                text.append(dot)
            elif char == _EMPTY and line == _HEIGHT:
                text.append("┄", "dim")
            else:
                text.append(char)
        yield text


def _rate_at(rates: Steps, when: Fraction) -> Fraction | None:
    """Return how much comes at a moment; None before the first that is known."""
    at = bisect_right(rates, when, key=lambda step: step[0])
    return rates[at - 1][1] if at else None


def _level(value: Fraction, floor: Fraction, top: Fraction) -> int:
    """The line of a value, from 0 for the floor: only what is on it, or below, is drawn there."""
    if value <= floor:
        return 0
    return max(1, ceil(_HEIGHT * (value - floor) / (top - floor)))


def _steps(levels: Sequence[int]) -> list[list[str]]:
    """Draw levels as a line that goes up and down in steps, the highest line first.

    The first level is what was before, which is seen only where the second one is another.
    """
    drawn = [[_EMPTY] * (len(levels) - 1) for _ in range(_HEIGHT + 1)]
    for at, (last, level) in enumerate(pairwise(levels)):
        if last == level:
            drawn[_HEIGHT - level][at] = "─"
            continue
        low, high = sorted((last, level))
        for between in range(low + 1, high):
            drawn[_HEIGHT - between][at] = "│"
        drawn[_HEIGHT - level][at] = "┌" if level > last else "└"
        drawn[_HEIGHT - last][at] = "┘" if level > last else "┐"
    return drawn
