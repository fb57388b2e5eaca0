"""Deployments, and what differs between two, for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ...solving.words import verdict
from ...values.words import count, decimal, percent, printable
from ..deployment.instance import Mode, Seen
from ..deployment.room import Fragmentation, fragmentation, room_of
from ..deployment.wanted import wanted_of
from .bars import MARKS, STATES, Bar, widths_of
from .drawing import draw, draw_line
from .fleet_bars import Folded, fold, fold_differences, names
from .palette import colour
from .text_table import hanging, table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..deployment.difference import Difference
    from ..deployment.model import Deployment, FleetGpu, FleetNode

__all__ = [
    "deployment_report",
    "difference_report",
    "fragmentation_report",
    "legend",
    "places_of",
    "room_words",
]

MOST_LARGE = 6
"""Bars that a report draws with all words in them."""
MOST_LINES = 40
"""Bars that it draws at all, where there are more one line each."""
_MOST_ROWS = 40
_NODES = 24  # columns for the names of nodes
_MOST_LOSSES, _SHOWN_LOSSES = 16, 8
_BESIDE = 46  # columns of the words after a bar on one line

_MEANT = {
    "=": "= kept", "~": "~ restarted in place", "+": "+ created", "-": "- deleted",
    "^": "^ starting", "v": "v draining", "!": "! hollow (no compute instance)",
    "%": "% split (compute instances other than the whole one)",
    "?": "? starts not known",
}  # fmt: skip


def deployment_report(
    deployment: Deployment, title: str, width: int, *, services: bool = True
) -> list[RenderableType]:
    """Describe what runs where for a person.

    Parameters
    ----------
    deployment : Deployment
    title : str
    width : int
        Columns of the terminal.
    services : bool
        Whether the services and their capacities are listed.

    Returns
    -------
    list of renderable
        Some hundred lines at most, however large the fleet is: GPUs that look alike are drawn once.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
    >>> held = Instance("2g.12gb", 2, owner="pod team-x/trainer")
    >>> cards = [FleetGpu("a", index, gpu("a30-24gb"), instances=(held,)) for index in range(2)]
    >>> console = Console(width=70, color_system=None)
    >>> for part in deployment_report(Deployment((FleetNode("a", tuple(cards)),)), "now", 70):
    ...     console.print(part)
    now
    2 GPUs on 1 node, 2 instances
    <BLANKLINE>
    a, 2 x a30-24gb
     2 × 0-1: 2 of 4 slices used, 2g.12gb fits
          ┌─────────────────────────────┬─────────────────────────────┐
      2 × │/////////////////////////////│ 2g.12gb ####################│
          │/////////////////////////////│ pod team-x/trainer #########│
          └─────────────────────────────┴─────────────────────────────┘
          width: memory slices; /// free; ### another's
    """
    head = Text(printable(title), style="bold").append(f"\n{deployment}", "not bold")
    report: list[RenderableType] = [head]
    places = places_of(deployment)
    drawn = list(deployment.gpus())
    by_node = [(node, fold(node.gpus)) for node in deployment.nodes if node.gpus]
    bars = sum(len(folded) for _, folded in by_node)
    if bars <= MOST_LINES:
        for node, folded in by_node:
            report.append(_node_line(node))
            for each in folded:
                here = names(each.places).rpartition("/")[2]
                report += _one(each, here, places, width, large=bars <= MOST_LARGE)
    else:
        folded = fold(drawn)
        report += _many(folded, places, width)
    if drawn:
        report.append(Text(f"      {legend(fold(drawn))}", "dim"))
    if services and deployment.services:
        report += [Text(), *_services(deployment)]
    if deployment.plan is not None:
        least = verdict(deployment.plan.solution, "GPU")
        wanted = sum(wanted_of(deployment.plan).gpus.values())
        report.append(Text(f"\nof a plan with {count(wanted, 'GPU')}: {least}", "dim"))
    return report


def difference_report(
    found: Difference, deployment: Deployment, title: str, width: int
) -> list[RenderableType]:
    """Describe what has to happen on each GPU.

    Parameters
    ----------
    found : Difference
    deployment : Deployment
        Whose services give the colours.
    title : str
    width : int

    Returns
    -------
    list of renderable
    """
    head = Text(printable(title), style="bold").append(f"\n{found}", "not bold")
    report: list[RenderableType] = [head]
    touched = fold_differences(found.touched)
    if touched:
        report += [Text(), _per_node(found)]
    places = places_of(deployment)
    for each in touched[:MOST_LINES]:
        head = Text(f"\n{_times(each)}{names(each.places, width)}", "bold")
        report.append(head.append(f" {each.note}" if each.note else "", "not bold"))
        pair, labels = each.bars, ("now ", "then")
        if pair[0].slices == pair[1].slices and len(touched) <= MOST_LARGE:
            report.append(draw(pair, places, width, labels))
            continue
        for bar, label in zip(pair, labels, strict=True):
            line = Text(f" {label} ", "bold")
            report.append(line.append_text(draw_line(bar, places, min(width - 6, 97))))
    if rest := touched[MOST_LINES:]:
        gpus = sum(len(each.gpus) for each in rest)
        report.append(Text(f"      ... and {count(gpus, 'GPU')} more that change", "dim"))
    if touched:
        report.append(Text(f"      {legend(touched)}", "dim"))
    still = [each.now for each in found.gpus if each.is_untouched]
    if still:
        where = names(((card.node, card.index) for card in still), 4 * width)
        report.append(Text(f"\n{count(len(still), 'GPU')} untouched: {where}"))
    return report


def _per_node(found: Difference) -> RenderableType:
    """One line a node on which something happens."""
    what = ("kept", "restarted", "created", "deleted", "foreign")
    nodes: dict[str, Counter[str]] = {}
    for each in found.touched:
        own = nodes.setdefault(each.now.node, Counter())
        own["GPUs"] += 1
        for name in what:
            own[name] += len(getattr(each, name))
    rows = table("node", ">GPUs that change", *(f">{name}" for name in what[:4]), ">another's")
    for node in list(nodes)[:_MOST_ROWS]:
        own = nodes[node]
        rows.add_row(text(node), *(decimal(own[name]) for name in ("GPUs", *what)))
    if (more := len(nodes) - _MOST_ROWS) > 0:
        rows.add_row(Text(f"... and {count(more, 'more node')}", "dim"))
    return rows


def fragmentation_report(deployment: Deployment) -> list[RenderableType]:
    """Say what each node loses because its free slices lie apart; nothing where nothing is lost."""
    alike: dict[tuple[Fragmentation, ...], list[str]] = {}
    total: dict[str, Counter[str]] = {}
    for node in deployment.nodes:
        if lost := fragmentation(node):
            alike.setdefault(lost, []).append(node.name)
            for each in lost:
                own = total.setdefault(each.profile, Counter())
                own.update(together=each.together, fitting=each.fitting)
    if not alike:
        return []
    report: list[RenderableType] = [
        Text("\nLost because free slices lie apart", "bold").append(
            " (what they would hold together in a node, less what fits)", "not bold"
        )
    ]
    worst = sorted(alike, key=lambda lost: -sum(each.cost for each in lost) * len(alike[lost]))
    shown = worst if len(worst) <= _MOST_LOSSES else worst[:_SHOWN_LOSSES]
    rows = [(_nodes(alike[lost]), _lost(lost)) for lost in shown]
    if more := sum(len(alike[lost]) for lost in worst[len(shown) :]):
        rows.append(("...", count(more, "more node")))
    if sum(map(len, alike.values())) > 1:
        every = (Fragmentation(p, n["together"], n["fitting"]) for p, n in total.items())
        rows.append(("in all", _lost(every)))
    return [*report, hanging(*rows)]


def _nodes(nodes: Sequence[str]) -> str:
    """Name some nodes, in a few words."""
    named = names((name, 0) for name in nodes).replace("/0", "")
    return named if len(named) <= _NODES else f"{nodes[0]} and {len(nodes) - 1} more"


def _lost(lost: Iterable[Fragmentation]) -> str:
    return ", ".join(
        f"{decimal(each.cost)} x {each.profile} ({decimal(each.together)} - "
        f"{decimal(each.fitting)})"
        for each in lost
    )


def places_of(deployment: Deployment) -> dict[str, int]:
    """Each service's place, which gives its colour and key."""
    return {service.name: place for place, service in enumerate(deployment.services)}


def legend(
    drawn: Iterable[Folded],
    free: str = "/// free",
    idle: str = "░░░ idle",
    others: str = "### another's",
) -> str:
    """Say what signs and hatchings mean, those that there are."""
    drawn = list(drawn)
    cells = {
        (cell.profile == "", cell.owner != "", cell.service is None, cell.point != "", cell.sign)
        for each in drawn
        for bar in each.bars
        for cell in bar.cells
    }
    parts = [f"width: {widths_of(bar for each in drawn for bar in each.bars)}"]
    if any(point for _, _, _, point, _ in cells):
        parts.append("p processes, b batch")
    if any(bare for bare, *_ in cells):
        parts.append(free)
    if any(not bare and none and not owned for bare, owned, none, _, _ in cells):
        parts.append(idle)
    if any(owned for _, owned, *_ in cells):
        parts.append(others)
    signs = {letter for *_, sign in cells for letter in sign}
    parts += [_MEANT[s] for s in (*MARKS.values(), *STATES.values()) if s in signs]
    return "; ".join(parts)


def room_words(card: FleetGpu) -> str:
    """Say how much of a GPU is used, and what still fits.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import FleetGpu, Instance
    >>> room_words(FleetGpu("a", 0, gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),)))
    '4 of 8 slices used, 4g.40gb fits'
    """
    if card.mode is Mode.MPS:
        from ..serving.operating_point import mps_share

        used = sum(mps_share(each.profile) or 0 for each in card.instances)
        return f"MPS, {used} % used"
    if card.mode is Mode.FIXED:
        return "fixed: nothing is planned there"
    if card.mode is Mode.WHOLE:
        return "MIG off, in use" if card.instances else "MIG off, free"
    if card.seen is Seen.UNKNOWN:
        return "starts not known"
    room, slices = room_of(card), card.gpu.memory_slices
    assert room is not None
    fits = f"{room.largest} fits" if room.largest else "nothing fits"
    return f"{slices - room.memory} of {slices} slices used, {fits}"


def _times(each: Folded) -> str:
    return f"{decimal(len(each.gpus))} × " if len(each.gpus) > 1 else ""


def _node_line(node: FleetNode) -> Text:
    types = Counter(card.gpu.key for card in node.gpus)
    parts = [printable(node.name), *(f"{n} x {printable(key)}" for key, n in types.items())]
    if not node.is_numbered:
        parts.append("numbers of the GPUs not known")
    if node.driver:
        parts.append(f"driver {printable(node.driver)}")
    if zone := node.labels.get("zone"):
        parts.append(f"zone {printable(zone)}")
    if node.observed is not None:
        parts.append(f"observed {printable(node.observed.at)}")
    first, *rest = parts
    return Text(f"\n{first}", "bold").append("".join(f", {part}" for part in rest), "not bold")


def _one(
    each: Folded, where: str, places: Mapping[str, int], width: int, *, large: bool
) -> Iterator[RenderableType]:
    words = room_words(each.gpus[0])
    if large:
        yield Text(f" {_times(each)}{where}: {words}")
        if each.gpus[0].is_empty:  # nothing to be seen
            return
        yield draw(each.bars, places, width, None if len(each.gpus) > 1 else [""])
        return
    yield _line(each.bars[0], _times(each), f"{where}: {words}", places, width)


def _line(bar: Bar, before: str, after: str, places: Mapping[str, int], width: int) -> Text:
    line = Text(f"{before:>9} ", "bold")
    line.append_text(draw_line(bar, places, max(33, width - 10 - _BESIDE)))
    line.append(f" {after}", "not bold")
    line.truncate(width, overflow="ellipsis")  # the console forgets what a text says of wrapping
    return line


def _many(
    folded: Sequence[Folded], places: Mapping[str, int], width: int
) -> Iterator[RenderableType]:
    """Draw a large fleet, type by type, the most frequent ways of use first."""
    types = Counter(card.gpu.key for each in folded for card in each.gpus)
    for key, total in sorted(types.items()):
        own = [each for each in folded if each.bars[0].gpu == key]
        line = Text(f"\n{decimal(total)} x {printable(key)}", "bold")
        yield line.append(f", used in {count(len(own), 'way')}", "not bold")
        most = max(1, MOST_LINES * len(own) // len(folded))
        shown = own if len(own) <= most + 1 else own[:most]
        for each in shown:
            card = each.gpus[0]
            words = room_words(card).replace(" slices used", "").replace(" of ", "/")
            where = names(each.places, _BESIDE)
            yield _line(each.bars[0], _times(each), f"{words}: {where}", places, width)
        if rest := own[len(shown) :]:
            gpus = count(sum(len(each.gpus) for each in rest), "GPU")
            yield Text(f"      ... and {count(len(rest), 'more way')} on {gpus}", "dim")


def _services(deployment: Deployment) -> Iterator[RenderableType]:
    counts: dict[str, Counter[str]] = {}
    for _, each in deployment.instances():
        if each.work is not None:
            counts.setdefault(each.work.service, Counter())[each.profile] += 1
    rows = table(">", "service", ">wanted/s", ">capacity/s", ">spare", "instances")
    for place, service in enumerate(deployment.services[:_MOST_ROWS]):
        capacity, rate = deployment.capacity(service.name), service.rate_rps
        spare = percent(capacity / rate - 1) if rate else "-"
        own = sorted(counts.get(service.name, Counter()).items())
        rows.add_row(
            Text(f" {place + 1} ", f"bold #000000 on {colour(place)}"),
            text(service.name),
            decimal(rate),
            Text(decimal(capacity), "" if capacity >= rate else "bold red"),
            Text(spare if capacity >= rate else f"{spare} !", "" if capacity >= rate else "red"),
            text(", ".join(f"{number} x {profile}" for profile, number in own) or "none"),
        )
    yield rows
    if (more := len(deployment.services) - _MOST_ROWS) > 0:
        yield Text(f"... and {count(more, 'more service')}", "dim")
