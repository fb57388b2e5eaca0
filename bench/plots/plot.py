"""A figure: a name, what it shows, how it is to be read; written as PNG and SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cms.files.source import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours that are distinct in colour blindness (Okabe and Ito), and line styles.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F",
)  # fmt: skip
STYLES = ("-", "--", "-.", ":")
_WIDTH, _DOTS, _LETTERS = 9.0, 150, 118
#: Inches for a line of the caption.
_LINE = 0.17


class Plot(NamedTuple):
    """A figure with one pair of axes, inches high; the caption says how it is to be read."""

    name: str
    title: str
    caption: str
    fill: Callable[[Axes], None]
    height: float = 4.5


def figure(
    caption: str,
) -> Callable[[Callable[[Axes, Any], None]], Callable[[str, str, Any], Plot]]:
    """Make of a function that draws data on axes one from name, title and data to a plot."""

    def made(fill: Callable[[Axes, Any], None]) -> Callable[[str, str, Any], Plot]:
        return lambda name, title, data: Plot(name, title, caption, lambda axes: fill(axes, data))

    return made


def draw(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Write figures as PNG and SVG."""
    if not plots:
        return []
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in plots:
        caption = textwrap.fill(plot.caption, _LETTERS)
        below = _LINE * (caption.count("\n") + 1) + 0.15
        height = plot.height + below
        # The same rows give the same files: no date, no random names in the SVG.
        with rc_context({"svg.hashsalt": plot.name, "svg.fonttype": "none", "font.size": 10}):
            figure = Figure(figsize=(_WIDTH, height), dpi=_DOTS)
            figure.set_layout_engine("constrained", rect=(0, below / height, 1, 1 - below / height))
            axes = figure.add_subplot()
            axes.set_title(plot.title, loc="left", fontweight="bold")
            axes.spines[["top", "right"]].set_visible(False)
            plot.fill(axes)
            figure.text(0.012, 0.01, caption, fontsize=8.5, va="bottom", color="#333333")
            # Laid out once: what is saved would be laid out anew, twice for every file.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for ending, facts in (("png", {}), ("svg", {"Date": None})):
                path = folder / f"{plot.name}.{ending}"
                picture = BytesIO()
                figure.savefig(picture, format=ending, metadata=facts)
                write_bytes(picture.getvalue(), path)
                written.append(path)
    return written


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give every name a colour and a line style of its own, the same in every figure."""
    return {
        name: {
            "color": COLOURS[at % len(COLOURS)],
            "linestyle": STYLES[at // len(COLOURS) % len(STYLES)],
        }
        for at, name in enumerate(names)
    }


def legend(axes: Axes, **place: Any) -> None:
    """Add a legend, if there is anything to tell apart."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, **place)


def finish(axes: Axes, x: str, y: str) -> None:
    """Say what the axes are, the first of them logarithmic; add a grid and a legend."""
    axes.set_xscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    legend(axes)
