"""Deployments, differences between two, losses to fragmentation, and exports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...solving.words import verdict
from ...values.words import count, decimal, percent
from ..deployment import Deployment, Difference, FleetGpu, Mode, StartSource, desired_state
from ..deployment.export import Export, advertise
from ..deployment.room import Fragmentation, fragmentation, room_of
from ..deployment.turns import shares_of, takes_turns
from ..serving.operating_point import mps_share
from ..serving.rate_curve import RatePoint
from .bars import MOST_LINES, fold, fold_differences, format_gpus, list_bars
from .page import Bar, Bars, Bullets, Fact, Page, Part, Section, Words
from .plans import format_headroom, plan_sections
from .proofs import list_reasons, list_rechecks
from .tables import Grid, key_cell, limit_cell, number, table

#: Bars that a terminal draws with all words in them.
MOST_LARGE = 6
_NAMES = 60  # characters for the names of GPUs that are alike
_NODES = 24  # for the names of nodes
_WHEN = "now", "then"  # of the bars of a GPU that changes
_MOST_LOSSES, _SHOWN_LOSSES = 16, 8


def deployment_page(
    deployment: Deployment,
    title: str,
    source: str = "",
    curve: Sequence[RatePoint] | str = (),
    end: str = "",
    *,
    lost: bool = False,
) -> Page:
    """Describe a deployment, however large the fleet is: GPUs that look alike are drawn once.

    `curve`: as of a plan, of the one that it realises. `end`: the last lines of a terminal. `lost`:
    whether losses to fragmentation are listed.
    """
    sections = [fleet_section(deployment, "fleet", "The GPUs")]
    if deployment.services:
        sections.append(Section("services", "Services", [_services(deployment)], drawn=True))
    if lost and (parts := list(_lost_parts(deployment))):
        sections.append(Section("lost", "Lost because free slices lie apart", parts))
    said = [Words(line, "head") for line in end.split("\n") if line]
    if deployment.plan is not None:
        sections += plan_sections(deployment.plan, source, curve)
        wanted = desired_state(deployment.plan)
        gpus = count(sum(wanted.gpus.values()), "GPU")
        least = verdict(deployment.plan.solution, "GPU", deployment.plan.serving.currency)
        if wanted.counts == deployment.kinds() and (line := format_headroom(deployment.plan)):
            said.insert(0, Words(line, "soft"))
        said.insert(0, Words(f"of a plan with {gpus}: {least}", "soft"))
    else:
        commands = list_rechecks(source or "deployment.json")
        sections.append(Section("proof", "How to recheck it", [commands], only="web"))
    return Page(title, str(deployment), list(_facts(deployment)), sections, source, said)


def number_services(deployment: Deployment) -> dict[str, int]:
    """Return each service's place, which gives its colour and key."""
    return {service.name: place for place, service in enumerate(deployment.services)}


def fleet_section(deployment: Deployment, name: str, title: str) -> Section:
    """Draw the GPUs of a deployment, node by node or, of a large fleet, type by type."""
    places = number_services(deployment)
    parts: list[Part] = []
    by_node = [(node, fold(node.gpus, places)) for node in deployment.nodes if node.gpus]
    bars = sum(len(folded) for _, folded in by_node)
    for node, folded in by_node if bars <= MOST_LINES else ():
        drawn = []
        for each in folded:
            where = format_gpus(each.places).rpartition("/")[2]
            caption = f"{where}: {format_room(each.gpus[0])}"
            label = None if len(each.gpus) > 1 else ""
            drawn.append(replace(each.bars[0], caption=caption, label=label))
        said = [f"{n} x {key}" for key, n in Counter(card.gpu.key for card in node.gpus).items()]
        said += ["numbers of the GPUs not known"] * (not node.is_numbered)
        said += [f"driver {node.driver}"] if node.driver else []
        said += [f"zone {zone}"] if (zone := node.labels.get("zone")) else []
        said += [] if node.observed is None else [f"observed {node.observed.at}"]
        size = "large" if bars <= MOST_LARGE else "line"
        parts.append(Bars(drawn, node.name, "".join(f", {each}" for each in said), size))
    if bars > MOST_LINES:
        every = fold(deployment.gpus(), places)
        types = sorted({each.bars[0].gpu for each in every})
        most = max(1, MOST_LINES // len(types))
        for key in types:
            own = [each for each in every if each.bars[0].gpu == key]
            head = f"{decimal(sum(len(each.gpus) for each in own))} x {key}"
            note, lines = f", used in {count(len(own), 'way')}", []
            for each in own:
                caption = f"{format_room(each.gpus[0])}: {format_gpus(each.places, _NAMES)}"
                lines.append(replace(each.bars[0], caption=caption, label=each.times.strip()))
            parts += list_bars(lines, head, note, large=False, most=most, what="more way")
    return Section(name, title, parts, drawn=True)


def format_room(card: FleetGpu) -> str:
    """Say how much of a GPU is used, and which profile still fits."""
    if card.mode is Mode.MPS:
        own = (each.profile for each in card.instances if not takes_turns(card, each))
        taken = [*own, *(held[0].profile for held in shares_of(card).values())]
        return f"MPS, {sum(mps_share(profile) or 0 for profile in taken)} % used"
    if card.mode is Mode.FIXED:
        return "fixed: nothing is planned there"
    if card.mode is Mode.WHOLE:
        return "MIG off, in use" if card.instances else "MIG off, free"
    if card.start_source is StartSource.UNKNOWN:
        return "starts not known"
    room, slices = room_of(card), card.gpu.memory_slices
    assert room is not None
    fits = f"{room.largest} fits" if room.largest else "nothing fits"
    return f"{slices - room.memory} of {slices} slices used, {fits}"


def _facts(deployment: Deployment) -> Iterator[Fact]:
    used, free = len(deployment.used_gpus()), len(deployment.free_gpus())
    nodes = count(sum(bool(node.gpus) for node in deployment.nodes), "node")
    yield Fact("GPUs in use", decimal(used), f"of {decimal(used + free)} on {nodes}")
    managed = sum(each.work is not None for _, each in deployment.instances())
    every = sum(1 for _ in deployment.instances())
    note = "all serve" if managed == every else f"{decimal(every - managed)} idle or foreign"
    yield Fact("Instances", decimal(every), note)
    if every := len(deployment.services):
        met = sum(deployment.capacity(s.name) >= s.rate_rps for s in deployment.services)
        said = f"{decimal(met)} of {decimal(every)}"
        yield Fact("Rates met", said, "of the services", "good" if met == every else "bad")


def _services(deployment: Deployment) -> Grid:
    counts: dict[str, Counter[str]] = {}
    for _, each in deployment.instances():
        if each.work is not None:
            counts.setdefault(each.work.service, Counter())[each.profile] += 1
    rows = []
    for place, service in enumerate(deployment.services):
        capacity, rate = deployment.capacity(service.name), service.rate_rps
        own, tone = counts.get(service.name, Counter()), "" if capacity >= rate else "bad"
        held = ", ".join(f"{n} x {name}" for name, n in sorted(own.items())) or "none"
        rows.append([
            key_cell(place), service.name, limit_cell(service.latency_limit_ms), number(rate),
            number(capacity, tone=tone),
            number(capacity / rate - 1 if rate else None, percent, tone), held,
        ])  # fmt: skip
    heads = ">#|service|>limit:9|>wanted/s|>capacity/s|>headroom|instances*"
    return table("Services", heads, rows, "more service")


def difference_page(found: Difference, deployment: Deployment, title: str) -> Page:
    """Describe the changes on each GPU; `deployment` has the services that give colours."""
    touched = fold_differences(found.touched, number_services(deployment))
    what = ("GPUs that change", "kept", "restarted", "created", "deleted", "foreign")
    nodes = defaultdict[str, Counter[str]](Counter)
    for change in found.touched:
        counts = {name: len(getattr(change, name)) for name in what[1:]}
        nodes[change.now.node].update({what[0]: 1, **counts})
    rows = [[node, *(decimal(own[name]) for name in what)] for node, own in nodes.items()]
    grid = table("Nodes", " | >".join(("node", *what)), rows, rest="more node")
    parts, small = list[Part]([grid] if touched else []), list[Bar]()
    for at, each in enumerate(touched):
        now, then = (replace(bar, label=when) for bar, when in zip(each.bars, _WHEN, strict=True))
        if at >= MOST_LINES:
            caption = f"{each.times}{format_gpus(each.places, 1)}"
            small += [replace(bar, caption=caption) for bar in (now, then)]
            continue
        alike = now.slices == then.slices and len(touched) <= MOST_LARGE
        head, size = f"{each.times}{format_gpus(each.places, _NAMES)}", "large" if alike else "line"
        parts.append(Bars([now, then], head, f" {each.note}" * bool(each.note), size))
    if small:
        gpus = count(sum(len(each.gpus) for each in touched[MOST_LINES:]), "GPU")
        parts.append(Bars(small, f"... and {gpus} more that change, now and then", size="small"))
    if still := [each.now for each in found.gpus if each.is_untouched]:
        where = format_gpus(((card.node, card.index) for card in still), 6 * _NAMES)
        parts.append(f"{count(len(still), 'GPU')} untouched: {where}")
    return Page(title, str(found), (), [Section("gpus", "The GPUs", parts, drawn=True)])


def _lost_parts(deployment: Deployment) -> Iterator[Part]:
    """List the losses of each node whose free slices lie apart."""
    alike: dict[tuple[Fragmentation, ...], list[str]] = {}
    total: dict[str, Counter[str]] = {}
    for node in deployment.nodes:
        if lost := fragmentation(node):
            alike.setdefault(lost, []).append(node.name)
            for each in lost:
                own = total.setdefault(each.profile, Counter())
                own.update(together=each.together, fitting=each.fitting)
    if not alike:
        return
    yield Words("Lost because free slices lie apart", "head", "terminal")
    yield Words("(what they would hold together in a node, less what fits)", "soft")
    worst = sorted(alike, key=lambda lost: -sum(each.cost for each in lost) * len(alike[lost]))
    shown = worst if len(worst) <= _MOST_LOSSES else worst[:_SHOWN_LOSSES]
    rows = []
    for lost in shown:
        named = format_gpus((name, 0) for name in alike[lost]).replace("/0", "")
        brief = f"{alike[lost][0]} and {len(alike[lost]) - 1} more"
        rows.append((named if len(named) <= _NODES else brief, _lost(lost)))
    if more := sum(len(alike[lost]) for lost in worst[len(shown) :]):
        rows.append(("...", count(more, "more node")))
    if sum(map(len, alike.values())) > 1:
        every = (Fragmentation(p, n["together"], n["fitting"]) for p, n in total.items())
        rows.append(("in all", _lost(every)))
    yield Bullets(rows)


def _lost(lost: Iterable[Fragmentation]) -> str:
    parts = ((each, decimal(each.together), decimal(each.fitting)) for each in lost)
    return ", ".join(f"{decimal(e.cost)} x {e.profile} ({both} - {fit})" for e, both, fit in parts)


def export_page(
    exports: Mapping[str, Export], deployment: Deployment, where: str, *, offers: bool
) -> Page:
    """Describe exports: files, what they cannot say, their order, offers of nodes."""
    sections = []
    for name, export in exports.items():
        files = sorted(export.files)
        shown = ", ".join(files[:6]) + (f" and {len(files) - 6} more" if len(files) > 6 else "")
        parts: list[Part] = [Words(f"{name}: {shown}", "head"), "nothing is lost"]
        if export.losses:
            parts[1:] = [Words("not said in these files", "fair")]
            parts.append(list_reasons(export.losses))
        order = Bullets([(f"{number}.", step) for number, step in enumerate(export.order, 1)])
        sections.append(Section(name, name, [*parts, "in this order", order]))
    if offers:
        sections.append(Section("offers", "What nodes will offer", list(_offers(deployment))))
    end = [Words(f"{deployment}: {where}", "head")] if exports else []
    return Page("", "", (), sections, end=end)


def _offers(deployment: Deployment) -> Iterator[Part]:
    """List the offers of nodes; those with the same offer are one line."""
    alike: dict[tuple[tuple[str, int], ...], list[str]] = {}
    needs: set[str] = set()
    for offer in advertise(deployment):
        needs.add(offer.strategy)
        alike.setdefault(tuple(sorted(offer.resources.items())), []).append(offer.node)
    strategy = "mixed" if "mixed" in needs or len(needs) > 1 else next(iter(needs), "none")
    yield Words("What nodes will offer", "head")
    yield Words(f"(MIG strategy mixed; {strategy} is the least that shows all)", "soft")
    rows = [
        [format_gpus((node, 0) for node in nodes).replace("/0", ""),
         ", ".join(f"{name}: {number}" for name, number in resources) or "nothing"]
        for resources, nodes in alike.items()
    ]  # fmt: skip
    yield table("Offers", "nodes | resources", rows, rest="more kind| of nodes")
