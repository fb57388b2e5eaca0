"""A plan of sharing as one self-contained SVG file: a bar of 100 % of the SMs for each use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ...values.words import count, decimal
from .canvas import (
    BARS_WIDTH,
    EDGE,
    FONT,
    LINE,
    MARGIN,
    WIDTH,
    Canvas,
    cut,
    draw_key,
    escaped,
    fits,
)
from .palette import colour
from .sharing import headline

if TYPE_CHECKING:
    from ..sharing.problem import SharingProblem
    from ..sharing.solution import SharingSolution

__all__ = ["MEANT", "MOST_BARS", "MOST_SMALL", "draw_sharing", "sharing_picture"]

MOST_BARS = 24
"""Uses that are drawn with words in them."""
MOST_SMALL = 300
"""Further ones that are drawn small."""
_MOST_KEYS = 60
_COLUMNS = 5
#: Where there are more uses than bars, classes whose activity is in the same ten per cent are one.
_STEP = 10
_BAR, _SMALL, _ROW = 30, 12, 32
_ONLINE = "#4a5563"
MEANT = (
    "A bar is 100 % of a GPU's SMs: dark, the online side; finely hatched, the margin; in "
    "colour and with its number, the share of the offline workload; hatched, idle."
)
"""How the picture is read."""


@dataclass(frozen=True, slots=True)
class _Use:
    """GPUs with the same workload beside an online side; of several classes, their mean.

    Parameters
    ----------
    place : int or None
        Of the workload among the offline classes; None if nothing runs there.
    gpus : int
    activity, share : Fraction
        In per cent.
    margin : int
        What is kept free of offline work.
    says : str
        Whose GPUs they are.
    """

    place: int | None
    gpus: int
    activity: Fraction
    share: Fraction
    margin: int
    says: str


def sharing_picture(problem: SharingProblem, solution: SharingSolution, title: str) -> str:
    """Draw what share of their GPUs online sides, margin and workloads take, classes as bars.

    Parameters
    ----------
    problem : SharingProblem
    solution : SharingSolution
        Of this problem.
    title : str

    Returns
    -------
    str
        An SVG document that refers to nothing outside itself; all names are escaped. Where there
        are too many classes, those that are alike are drawn as one, and the picture says so.

    Examples
    --------
    >>> from cms.fleet.sharing import share
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> problem = posed([2], [5, 1], [[640_000, 550_000]])
    >>> picture = sharing_picture(problem, share(problem), "now")
    >>> picture.startswith("<svg"), picture.count("g0: online 0 %, margin 10 %, w0 90 %")
    (True, 1)
    """
    canvas = Canvas()
    canvas.text(title, EDGE, 20, "title", down=30)
    canvas.paragraph(headline(problem, solution), 15, "verdict")
    canvas.y += 8
    draw_sharing(canvas, problem, solution)
    _foot(canvas, problem, solution)
    canvas.paragraph(MEANT, 11, "small soft")
    return canvas.document(f"{title}: {headline(problem, solution)}")


def draw_sharing(canvas: Canvas, problem: SharingProblem, solution: SharingSolution) -> None:
    """Draw what online sides, margin and workloads take of GPUs, below what is there."""
    uses = _uses(problem, solution)
    if len(uses) > MOST_BARS:
        classes = len(problem.online)
        uses = _folded(uses)
        said = (
            f"{decimal(classes)} online classes in {count(len(uses), 'bar')}: those with the same "
            f"workload and an activity within the same {_STEP} % are one, as their mean"
        )
        canvas.paragraph(said, 11, "small soft")
        canvas.y += 4
    names = [work.name for work in problem.offline]
    _axis(canvas)
    for use in uses[:MOST_BARS]:
        _large(canvas, use, names)
    _small(canvas, uses[MOST_BARS:], names)


def _uses(problem: SharingProblem, solution: SharingSolution) -> list[_Use]:
    """Return what is done with GPUs, the most frequent first of each class."""
    found = []
    placed: dict[str, list[tuple[int, int]]] = {}
    for pair in solution.plan:
        place = problem.offline_index[pair.offline]
        placed.setdefault(pair.online, []).append((pair.count, place))
    for gpus, share in zip(problem.online, problem.shares, strict=True):
        left = gpus.count
        for own, place in sorted(placed.get(gpus.name, []), key=lambda each: (-each[0], each[1])):
            found.append(
                _Use(place, own, gpus.sm_activity, Fraction(share), problem.margin, gpus.name)
            )
            left -= own
        if left:
            found.append(_Use(None, left, gpus.sm_activity, Fraction(0), problem.margin, gpus.name))
    return found


def _folded(uses: Sequence[_Use]) -> list[_Use]:
    """Return the means of uses that are alike, those of the most GPUs first."""
    groups: dict[tuple[int, int], list[_Use]] = {}
    for use in uses:
        bucket = min(int(use.activity // _STEP), 100 // _STEP - 1)
        groups.setdefault((-1 if use.place is None else use.place, bucket), []).append(use)
    found = []
    for (_, bucket), own in groups.items():
        gpus = sum(use.gpus for use in own)
        names = {use.says for use in own}
        within = f"{decimal(len(names))} classes with an activity of {bucket * _STEP} to "
        within += f"{bucket * _STEP + _STEP} %"
        found.append(
            _Use(
                own[0].place, gpus,
                sum((use.activity * use.gpus for use in own), Fraction(0)) / gpus,
                sum((use.share * use.gpus for use in own), Fraction(0)) / gpus,
                own[0].margin,
                own[0].says if len(names) == 1 else within,
            )
        )  # fmt: skip
    return sorted(found, key=lambda use: (-use.gpus, use.activity, use.place or 0))


def _parts(use: _Use, names: Sequence[str]) -> list[tuple[float, str, str, str]]:
    """Return the parts of a bar: width in per cent, fill, a word, and its place's key."""
    online = float(use.activity)
    margin = min(float(use.margin), 100 - online)
    share = float(use.share)
    parts = [(online, _ONLINE, "online", ""), (margin, "url(#free)", "margin", "")]
    if use.place is not None:
        parts.append((share, colour(use.place), names[use.place], str(use.place + 1)))
    idle = 100 - online - margin - share
    if idle > 0.05:
        parts.append((idle, "url(#idle)", "idle", ""))
    return [part for part in parts if part[0] > 0 or part[2] == "online"]


def _tip(use: _Use, names: Sequence[str]) -> str:
    said = ", ".join(
        f"{word} {decimal(Fraction(width).limit_denominator(10), rounding=math.ceil)} %"
        for width, _, word, _ in _parts(use, names)
    )
    return f"{use.says}: {said}"


def _axis(canvas: Canvas) -> None:
    """Number the per cents above the bars."""
    y = canvas.y + 9
    canvas.add(f'<text x="{EDGE + MARGIN - 10}" y="{y:g}" class="small soft right">GPUs</text>')
    for per_cent in range(0, 101, 10):
        x = EDGE + MARGIN + per_cent * BARS_WIDTH / 100
        anchor = "start" if not per_cent else "end" if per_cent == 100 else "middle"
        canvas.add(
            f'<text x="{x:g}" y="{y:g}" class="small soft" text-anchor="{anchor}">'
            f"{per_cent} %</text>"
        )
    canvas.y += 16


def _large(canvas: Canvas, use: _Use, names: Sequence[str]) -> None:
    canvas.text(use.says, EDGE + MARGIN, 11, "small soft", down=15)
    x, y = float(EDGE + MARGIN), canvas.y
    number = cut(f"{decimal(use.gpus)} ×", MARGIN + EDGE - 12, FONT)
    canvas.add(f'<text x="{x - 10:g}" y="{y + _BAR / 2 + 5:g}" class="count">{number}</text>')
    canvas.add(f"<g><title>{escaped(_tip(use, names))}</title>")
    for per_cent, fill, word, key in _parts(use, names):
        width = per_cent * BARS_WIDTH / 100
        drawn = max(width - 2, 0.5)  # a gap between parts, but never less than nothing
        canvas.add(
            f'<rect x="{x + 1:g}" y="{y:g}" width="{drawn:g}" height="{_BAR}" rx="3" '
            f'fill="{fill}" stroke="#59636e" stroke-width="0.8"/>'
        )
        text = f"{key} {word}".lstrip()
        whole = f"{text} {per_cent:.0f} %"
        if line := whole if fits(whole, width - 12, FONT) else cut(text, width - 12, FONT):
            if fill.startswith("url"):  # letters on a hatching want a ground of their own
                ground = len(line) * FONT * 0.61 + 6
                canvas.add(
                    f'<rect x="{x + 4:g}" y="{y + 8:g}" width="{ground:g}" height="16" '
                    'fill="#ffffff" fill-opacity="0.85"/>'
                )
            ink = "pale" if fill == _ONLINE else "on"
            canvas.add(f'<text x="{x + 7:g}" y="{y + 20:g}" class="{ink}">{escaped(line)}</text>')
        x += width
    canvas.add("</g>")
    canvas.y += _BAR + 8


def _small(canvas: Canvas, uses: Sequence[_Use], names: Sequence[str]) -> None:
    """Draw bars without words in columns, their counts above them."""
    if not uses:
        return
    canvas.text("further ones, of fewer GPUs", EDGE, FONT, "head", down=LINE + 2)
    pitch = (WIDTH - 2 * EDGE) / _COLUMNS
    shown = uses[:MOST_SMALL]
    for number, use in enumerate(shown):
        left = EDGE + number % _COLUMNS * pitch
        y = canvas.y + number // _COLUMNS * _ROW
        what = "nothing" if use.place is None else f"{use.place + 1} {names[use.place]}"
        line = cut(f"{decimal(use.gpus)} × {what}", pitch - 10, 9)
        canvas.add(f"<g><title>{escaped(_tip(use, names))}</title>")
        canvas.add(f'<text x="{left:g}" y="{y + 10:g}" class="tiny soft">{escaped(line)}</text>')
        x = float(left)
        for per_cent, fill, _, key in _parts(use, names):
            width = per_cent * (pitch - 10) / 100
            canvas.add(
                f'<rect x="{x:g}" y="{y + 14:g}" width="{max(width, 0.3):g}" height="{_SMALL}" '
                f'fill="{fill}" stroke="#59636e" stroke-width="0.6"/>'
            )
            if key and width > 7 * len(key):
                canvas.add(
                    f'<text x="{x + width / 2:g}" y="{y + 23:g}" class="tiny on" '
                    f'text-anchor="middle">{key}</text>'
                )
            x += width
        canvas.add("</g>")
    canvas.y += -(-len(shown) // _COLUMNS) * _ROW
    if rest := uses[MOST_SMALL:]:
        gpus = count(sum(use.gpus for use in rest), "GPU")
        canvas.text(
            f"... and {count(len(rest), 'more use')} on {gpus}", EDGE, FONT, "soft", down=LINE
        )


def _foot(canvas: Canvas, problem: SharingProblem, solution: SharingSolution) -> None:
    """The workloads with what is placed of them, and what the hatchings mean."""
    canvas.y += 8
    placed: dict[str, int] = {}
    for pair in solution.plan:
        placed[pair.offline] = placed.get(pair.offline, 0) + pair.count
    shown = problem.offline[:_MOST_KEYS]
    half = (WIDTH - 2 * EDGE) / 2
    top = canvas.y
    rows = -(-len(shown) // 2)
    for place, work in enumerate(shown):
        column, row = divmod(place, rows)
        canvas.y = top + row * LINE
        x = EDGE + column * half
        line = f"{decimal(placed.get(work.name, 0))} of {decimal(work.count)} placed"
        if column:
            canvas.add(f'<g transform="translate({half:g} 0)">')
        draw_key(canvas, place, work.name)
        if column:
            canvas.add("</g>")
        canvas.add(
            f'<text x="{x + half - 16:g}" y="{canvas.y + 13:g}" class="right">'
            f"{escaped(line)}</text>"
        )
    canvas.y = top + rows * LINE
    if (more := len(problem.offline) - len(shown)) > 0:
        canvas.text(f"... and {decimal(more)} more", EDGE + 34, FONT, "soft", down=LINE)
    canvas.y += 8
