"""Deployments, and what differs between two, as one self-contained SVG file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...values.words import count, decimal
from .canvas import (
    BARS_WIDTH,
    EDGE,
    FONT,
    LINE,
    MARGIN,
    Canvas,
    draw_bar,
    draw_key,
    draw_ruler,
    draw_small_bars,
    escaped,
)
from .deployments import legend, places_of, room_words
from .fleet_bars import Folded, fold, fold_differences, names

if TYPE_CHECKING:
    from ..deployment.difference import Difference
    from ..deployment.model import Deployment

__all__ = ["MOST_BARS", "deployment_picture", "difference_picture"]

MOST_BARS = 40
"""Ways of use that are drawn with words in them."""
_MOST_KEYS = 120


def deployment_picture(deployment: Deployment, title: str, said: str = "") -> str:
    """Draw what runs where: every GPU a bar true to the hardware, equal ones once.

    Parameters
    ----------
    deployment : Deployment
    title : str
    said : str
        A line below it.

    Returns
    -------
    str
        An SVG document that refers to nothing outside itself; all names are escaped.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
    >>> held = Instance("2g.12gb", 2, owner="pod <b>/trainer")
    >>> card = FleetGpu("a", 0, gpu("a30-24gb"), instances=(held,))
    >>> picture = deployment_picture(Deployment((FleetNode("a", (card,)),)), "now")
    >>> picture.startswith("<svg"), "pod &lt;b&gt;/trainer" in picture
    (True, True)
    """
    canvas = _head(title, f"{deployment}{f'; {said}' if said else ''}")
    drawn = draw_deployment(canvas, deployment)
    _foot(canvas, drawn, deployment, places_of(deployment))
    return canvas.document(f"{title}: {deployment}")


def draw_deployment(canvas: Canvas, deployment: Deployment) -> tuple[Folded, ...]:
    """Draw the GPUs of a deployment below what is there; return them, alike ones together."""
    places = places_of(deployment)
    by_node = [(node, fold(node.gpus)) for node in deployment.nodes if node.gpus]
    if sum(len(folded) for _, folded in by_node) <= MOST_BARS:
        for node, own in by_node:
            types = Counter(card.gpu.key for card in node.gpus)
            held = ", ".join(f"{number} × {key}" for key, number in types.items())
            canvas.text(f"{node.name}: {held}", EDGE, FONT, "head", down=LINE + 2)
            _ruler(canvas, own)
            for each in own:
                where = names(each.places).rpartition("/")[2]
                _large(canvas, each, f"GPU {where}: {room_words(each.gpus[0])}", places)
            canvas.y += 8
        folded = fold(deployment.gpus())
    else:
        folded = fold(deployment.gpus())
        types = Counter(card.gpu.key for card in deployment.gpus())
        for key, number in sorted(types.items()):
            alike = [each for each in folded if each.bars[0].gpu == key]
            head = f"{decimal(number)} × {key}, used in {count(len(alike), 'way')}"
            canvas.text(head, EDGE, FONT, "head", down=LINE + 2)
            _ruler(canvas, alike)
            _both_sizes(canvas, alike, places, MOST_BARS * len(alike) // len(folded))
    return folded


def difference_picture(found: Difference, deployment: Deployment, title: str) -> str:
    """Draw each GPU that changes before and after, equal ones once.

    Parameters
    ----------
    found : Difference
    deployment : Deployment
        Whose services give the colours.
    title : str
    """
    canvas = _head(title, str(found))
    places = places_of(deployment)
    touched = fold_differences(found.touched)
    _ruler(canvas, touched)
    for each in touched[:MOST_BARS]:
        times = f"{decimal(len(each.gpus))} × " if len(each.gpus) > 1 else ""
        head = f"{times}{names(each.places, 90)} {each.note}"
        canvas.text(head.rstrip(), EDGE, FONT, "head", down=LINE)
        for bar, label in zip(each.bars, ("now", "then"), strict=True):
            draw_bar(canvas, bar, places, label)
        canvas.y += 8
    rest = touched[MOST_BARS:]
    if rest:
        canvas.text("further GPUs: now, and below it then", EDGE, FONT, "head", down=LINE + 2)
        _small(canvas, rest, places)
    still = [each.now for each in found.gpus if each.is_untouched]
    if still:
        where = names(((card.node, card.index) for card in still), 600)
        canvas.paragraph(f"{count(len(still), 'GPU')} untouched: {where}", FONT, "soft")
        canvas.y += 8
    if touched:
        _foot(canvas, touched, deployment, places, "then ")
    return canvas.document(f"{title}: {found}")


def _head(title: str, said: str) -> Canvas:
    canvas = Canvas()
    canvas.text(title, EDGE, 20, "title", down=30)
    canvas.paragraph(said, 15, "verdict")
    canvas.y += 8
    return canvas


def _ruler(canvas: Canvas, drawn: Sequence[Folded]) -> None:
    """Number the memory slices, where all bars that are cut have the same."""
    slices = {bar.slices for each in drawn for bar in each.bars if not bar.shared}
    if len(slices) == 1:
        draw_ruler(canvas, slices.pop())


def _large(canvas: Canvas, each: Folded, caption: str, places: dict[str, int]) -> None:
    canvas.text(caption, EDGE + MARGIN, 11, "small soft", down=16)
    draw_bar(canvas, each.bars[0], places, None if len(each.gpus) > 1 else "")


def _both_sizes(canvas: Canvas, own: Sequence[Folded], places: dict[str, int], most: int) -> None:
    for each in own[:most]:
        words = room_words(each.gpus[0])
        _large(canvas, each, f"{words}: {names(each.places, 60)}", places)
    _small(canvas, own[most:], places)
    canvas.y += 8


def _small(canvas: Canvas, own: Sequence[Folded], places: dict[str, int]) -> None:
    """Draw bars in columns, their names above them."""
    draw_small_bars(canvas, [(_brief(each), each.bars) for each in own], places)


def _brief(each: Folded) -> str:
    times = f"{decimal(len(each.gpus))} × " if len(each.gpus) > 1 else ""
    return f"{times}{names(each.places, 1).partition(' (')[0]}"


def _foot(
    canvas: Canvas,
    drawn: Iterable[Folded],
    deployment: Deployment,
    places: dict[str, int],
    when: str = "",
) -> None:
    """The services and their capacities, and what the signs mean."""
    for place, service in enumerate(deployment.services[:_MOST_KEYS]):
        draw_key(canvas, place, service.name)
        capacity = deployment.capacity(service.name)
        short = "" if capacity >= service.rate_rps else ", too little"
        line = f"{when}{decimal(capacity)} of {decimal(service.rate_rps)} items/s{short}"
        x = EDGE + MARGIN + BARS_WIDTH / 2 - 80
        canvas.add(f'<text x="{x:g}" y="{canvas.y + 13:g}">{escaped(line)}</text>')
        canvas.y += LINE
    if (more := len(deployment.services) - _MOST_KEYS) > 0:
        canvas.text(f"... and {decimal(more)} more", EDGE + 34, FONT, "soft", down=LINE)
    canvas.y += 6
    hatched = "grey, finely hatched: free", "hatched: idle", "crossed: another's"
    canvas.paragraph(legend(drawn, *hatched), 11, "small soft")
