"""Facts of several sources become one deployment; what they contradict each other in is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ....errors import CmsError, FileError, InvalidProblem
from ....values.frozen import FrozenMap
from ....values.words import count
from ...hardware import Gpu, Layout
from ..checking import check_gpu
from ..instance import UNKNOWN_OWNER, WHOLE, Instance, Mode, StartSource, State, Work, list_counts
from ..model import Deployment, FleetGpu, FleetNode, Observation, driver_branch
from .counting import Content, describe_profile, facts_of_contents, find_contents
from .devices import (
    build_fixed_gpu,
    check_uuid,
    find_device,
    find_unknown_profile,
    number_gpus,
    read_instance,
)
from .facts import SAME_TIME, GpuFacts, NodeCounts, NodeFacts, Statement, fault_at
from .pods import MergeContext, assign_known, assign_pods, compare_allocatable


class ObservationResult(NamedTuple):
    """What is there now."""

    deployment: Deployment
    warnings: tuple[str, ...]  # what no source says, and what that means
    #: Work of pods, and whether all that do it are tied to their nodes.
    of_pods: Mapping[Work, bool] = MappingProxyType({})


def merge(
    facts: Sequence[NodeFacts], known: Deployment | None = None, *,
    devices: Mapping[str, Gpu] | None = None, device: Gpu | None = None,
    places: Deployment | None = None,
) -> ObservationResult:  # fmt: skip
    """Join what sources say of nodes; refuse, with both places, what they contradict each other in.

    A GPU that cannot be read, or that no device file describes, is `Mode.FIXED`, with a warning.
    `known` is what was meant to run: it says what pods' labels stand for, and what instances do of
    which no source says it. `devices` are beside the catalogue's; `device` is what no source names.
    `places`, by default `known`, says which of a node's GPUs is which where counts alone are told.
    """
    context = MergeContext(known or Deployment(()), devices or {}, device, places or known)
    names: dict[str, list[NodeFacts]] = {}
    for each in facts:
        if each.node is None:
            raise FileError(
                each.source, "it does not say of which node it is",
                expected="NODE=FILE", fix="or --node NAME for all files without a name",
            )  # fmt: skip
        names.setdefault(each.node.value, []).append(each)
    nodes = tuple(_node(context, name, told) for name, told in sorted(names.items()))
    found = Deployment(nodes, context.known.services, context.known.rule)
    said = tuple(dict.fromkeys(context.warnings))
    return ObservationResult(found, said, MappingProxyType(context.of_pods))


def _node(context: MergeContext, name: str, told: Sequence[NodeFacts]) -> FleetNode:
    driver = _agreed(  # 535.104.05 is 535.104.5
        f"driver of {name}", [each.driver for each in told],
        lambda version: ".".join(part.lstrip("0") or "0" for part in version.split(".")),
    )  # fmt: skip
    if driver is not None:
        try:
            driver_branch(driver.value)
        except InvalidProblem as fault:
            raise fault_at(driver.where, str(fault)) from None
    labels: dict[str, str] = {}
    for each in told:
        labels |= each.labels
        context.warn(name, *each.unknown)
        state = each.mig_state
        if state is not None and state.value in ("pending", "rebooting"):
            what = f"is being changed: nvidia.com/mig.config.state is {state.value!r}"
            expected = "success or failed; observe again when the change has ended"
            raise fault_at(state.where, f"node {name!r} {what}", expected)
        if state is not None and state.value == "failed":
            context.warn(name, f"the last change of its GPUs has failed ({state.where})")
    told, is_numbered = number_gpus(name, told, context.meant(name))
    product = _agreed(f"product of {name}", [each.product for each in told])
    told, unclear = _with_counted(context, name, told, product)
    unfit: dict[str, list[tuple[int, str]]] = {}
    cards = [
        _gpu(context, name, index, told, product, unfit)
        for index in sorted({card.index for each in told for card in each.gpus})
    ]
    for why, places in unfit.items():
        where = f"{name}/{', '.join(str(index) for index, _ in places)}"
        said = f"fixed, so that nothing is planned there: {why} ({places[0][1]})"
        context.warn(where, said)
    none = next((each.unfit for each in told if each.unfit), None)
    if not cards and none is None:
        asked = "what a device plugin does not tell: nvidia-smi mig -lgi and -q -x of the node"
        sources = ", ".join(each.source for each in told)
        what = f"no GPU of node {name!r} is told of{unclear}"
        raise FileError(sources, what, expected=asked)
    if not cards and none is not None:
        said = f"nothing is planned on its GPUs, and none is shown: {none.value} ({none.where})"
        context.warn(name, said)
    if any(each.pods is not None for each in told):
        cards = assign_pods(context, name, cards, told)
        compare_allocatable(context, name, cards, told)
    else:
        cards = [assign_known(context, card) for card in cards]
    times = [each.at for each in told if each.at is not None]
    seen = Observation(min(times), tuple(each.source for each in told)) if times else None
    version = driver.value if driver else None
    return FleetNode(name, tuple(cards), FrozenMap(labels), version, seen, is_numbered)


def _agreed(
    what: str, said: Iterable[Statement | None], same: Callable[[str], str] = str
) -> Statement | None:
    """Return what all sources that say something say; refuse two answers, naming both places."""
    first: Statement | None = None
    for each in said:
        if each is not None and first is not None and same(first.value) != same(each.value):
            says = f"the {what} is {each.value} here, and {first.value} in {first.where}"
            raise fault_at(each.where, says, SAME_TIME)
        first = first or each
    return first


def _with_counted(
    context: MergeContext, name: str, told: Sequence[NodeFacts], product: Statement | None
) -> tuple[Sequence[NodeFacts], str]:
    """Add what the counts of a node tell of GPUs of which nothing else does; else say why not."""
    source = next((each for each in told if each.counted is not None), None)
    if source is None or source.counted is None:
        return told, ""
    counted = source.counted
    cards = [card for each in told for card in each.gpus]
    indices = {card.index for card in cards}
    layouts = ((c.index, c.mig, c.instances, c.counts, c.unclaimed) for c in cards)
    clear = sorted({index for index, *known in layouts if known != [None] * 4})
    all_of_it = GpuFacts(0, counted.where, counts=counted.totals)
    card, odd = find_device(context, name, [all_of_it], product, None)
    odd = odd or find_unknown_profile(card, [all_of_it])
    if odd is not None and counted.number is not None:
        rest = [index for index in range(counted.number) if index not in indices]
        more = tuple(GpuFacts(index, counted.where, unfit=odd) for index in rest)
        return [*told, NodeFacts(source.source, source.node, gpus=more)], ""
    others = [_content(_gpu(context, name, index, told, product, {})) for index in clear]
    found, stale = find_contents(card, counted, others, source.allocatable or {})
    contents = found[0] if len(found) == 1 else ()
    numbers = range(len(clear) + len(contents))
    rest = [index for index in numbers if index not in clear]
    is_known = len(rest) == len(contents) > 0 and indices <= {*numbers}
    if len({*contents}) > 1:
        every = context.places.gpus() if context.places else ()
        meant = {each.index: _content(each) for each in every if each.node == name}
        as_meant = tuple(meant[index] for index in rest if index in meant)
        is_known = is_known and Counter(as_meant) == Counter(contents)
        contents = as_meant
    if not is_known:
        if counted.number is not None and 0 < len(indices) < counted.number:
            said = f"of its {counted.number} GPUs, {len(indices)} are told of"
            context.warn(name, f"{said}; what the others hold tells: nvidia-smi mig -lgi")
        return told, _unclear(counted, found, stale)
    if len({*contents}) > 1:
        which = ", ".join(map(_said, dict.fromkeys(contents)))
        context.warn(
            name,
            f"which of its GPUs holds which of {which} is not known, since the device plug-in does "
            "not tell: they are taken for what they were meant to hold; nvidia-smi mig -lgi tells",
        )
    more = facts_of_contents(contents, rest, counted.where)
    return [*told, NodeFacts(source.source, source.node, gpus=more)], ""


def _content(card: FleetGpu) -> Content:
    return FrozenMap(card.counts if card.is_cut else {WHOLE: 1})


def _said(content: Content) -> str:
    return "MIG off" if WHOLE in content else list_counts(content)


def _unclear(
    counted: NodeCounts, found: Sequence[Sequence[Content]], stale: Collection[str]
) -> str:
    named = {describe_profile(p): n for p, n in counted.totals.items() if n and p not in stale}
    if not named:
        return ""
    there = "its GPUs" if counted.number is None else f"its {counted.number} GPUs"
    gone = f" (beside stale {', '.join(map(describe_profile, stale))})" if stale else ""
    held = f": {list_counts(named, ', ')} are counted on {there} together{gone}"
    if not found:
        return f"{held}, more than they can hold"
    ways = (
        " and ".join(f"{count(n, 'GPU')} with {_said(each)}" for each, n in Counter(way).items())
        for way in found
    )
    return f"{held}, which can be {', or '.join(ways)}, in any order"


def _gpu(
    context: MergeContext, node: str, index: int, told: Sequence[NodeFacts],
    product: Statement | None, unfits: dict[str, list[tuple[int, str]]],
) -> FleetGpu:  # fmt: skip
    facts = [card for each in told for card in each.gpus if card.index == index]
    name = f"{node}/{index}"
    stated = _agreed(f"UUID of {name}", (card.uuid for card in facts))
    uuid = None if stated is None else check_uuid(name, stated.value, stated.where)
    said = [*(each.unfit for each in facts), *(each.unfit for each in told)]
    unfit = next(filter(None, said), None)
    card, unknown = find_device(context, node, facts, product, unfit)
    mig = _agreed(f"MIG mode of {name}", (each.mig for each in facts))
    mig = mig or next((each.unclaimed for each in facts if each.unclaimed), None)
    pending = _agreed(f"pending MIG mode of {name}", (each.pending for each in facts))
    if mig is not None and pending is not None and mig.value != pending.value:
        then = f"{pending.value} after a reset ({pending.where})"
        context.warn(name, f"MIG is {mig.value} and will be {then}")
    unfit = unfit or unknown or find_unknown_profile(card, facts)
    if unfit is not None:
        unfits.setdefault(unfit.value, []).append((index, unfit.where))
        return build_fixed_gpu(node, card, facts, uuid)
    placed = [each for each in facts if each.instances is not None]
    counted = [each for each in facts if each.counts is not None]
    if mig is not None and mig.value == "off":
        for held in (held for each in placed for held in each.instances or ()):
            what = f"{name} has {held.profile} here, and MIG is off in {mig.where}"
            raise fault_at(held.where, what, SAME_TIME)
        is_guessed = any(each.is_guessed for each in facts)
        seen = StartSource.UNKNOWN if is_guessed else StartSource.OBSERVED
        return FleetGpu(node, index, card, Mode.WHOLE, uuid=uuid, start_source=seen)
    if mig is None and not any(each.instances or each.counts for each in facts):
        what = f"{name} has no instances that are listed, and whether MIG is on is said nowhere"
        raise fault_at(facts[0].where, what, "the output of: nvidia-smi -q -x")
    if mig is not None and not (placed or counted):
        what = f"MIG is on on {name}, and its instances are listed nowhere"
        raise fault_at(mig.where, what, "the output of: nvidia-smi mig -lgi")
    instances, seen = _instances(name, card, placed, counted)
    return FleetGpu(node, index, card, Mode.MIG, instances, uuid, seen)


def _instances(
    name: str, card: Gpu, placed: Sequence[GpuFacts], counted: Sequence[GpuFacts]
) -> tuple[tuple[Instance, ...], StartSource]:
    if not placed:
        return _from_counts(name, card, counted[0])
    layouts = [(_placed(name, card, each), _where(each)) for each in placed]
    first, before = layouts[0]
    by_place = {each.place: each for each in first}
    said = [
        (where, _listed(own))
        for own, where in layouts
        if sorted(i.place for i in own) != sorted(i.place for i in first)
    ]
    for each in counted:
        counts = {card.profile(p).name: n for p, n in (each.counts or {}).items() if n}
        if counts != dict(Counter(i.profile for i in first)):
            said.append((each.where, list_counts(counts, ", ")))
    for where, has in said:
        what = f"{name} has {has} here, and {_listed(first)} in {before}"
        raise fault_at(where, what, SAME_TIME)
    for one in (instance for layout, _ in layouts[1:] for instance in layout):
        known = by_place[one.place]
        number = one.gpu_instance if known.gpu_instance is None else known.gpu_instance
        by_place[one.place] = replace(
            one if known.is_whole else known, gpu_instance=number, uuid=known.uuid or one.uuid
        )
    return tuple(by_place.values()), StartSource.OBSERVED


def _where(facts: GpuFacts) -> str:
    return facts.instances[0].where if facts.instances else facts.listing or facts.where


def _placed(name: str, card: Gpu, facts: GpuFacts) -> tuple[Instance, ...]:
    found: list[Instance] = []
    for each in facts.instances or ():
        try:
            size = card.profile(each.profile).memory
        except CmsError as fault:
            raise fault_at(each.where, f"{name}: {fault}") from None
        if each.size not in (None, size):
            what = f"{name}: {each.profile} takes {each.size} memory slices here"
            raise fault_at(each.where, what, f"{size}, as on {card.key}")
        held = read_instance(name, each, card)
        found.append(replace(held, owner=None) if held.state is State.NO_COMPUTE_INSTANCE else held)
    for violation in check_gpu(FleetGpu(name, facts.index, card, instances=tuple(found))):
        raise fault_at(_where(facts), f"what {name} is said to hold cannot be: {violation}")
    return tuple(found)


def _from_counts(name: str, card: Gpu, facts: GpuFacts) -> tuple[tuple[Instance, ...], StartSource]:
    """Place counts: exactly where one layout alone has them."""
    counts = dict(facts.counts or {})
    try:
        layouts: Sequence[Layout] = card.layouts_of(counts) if any(counts.values()) else [()]
        why = "" if layouts else card.why_not(counts)
    except CmsError as fault:
        raise fault_at(facts.where, f"{name}: {fault}") from None
    if not layouts:
        raise fault_at(facts.where, f"what {name} is said to hold cannot be: {why}")
    if len(layouts) == 1 and not facts.is_guessed:
        only = (Instance(p.profile, p.start, owner=UNKNOWN_OWNER) for p in layouts[0])
        return tuple(only), StartSource.INFERRED
    names = (card.profile(p).name for p, n in counts.items() for _ in range(n))
    return tuple(Instance(p, owner=UNKNOWN_OWNER) for p in names), StartSource.UNKNOWN


def _listed(instances: Iterable[Instance]) -> str:
    return ", ".join(each.place for each in instances) or "nothing"
