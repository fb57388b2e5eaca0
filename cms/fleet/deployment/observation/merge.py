"""Facts of several sources become one deployment; what they contradict each other in is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ....errors import CmsError, FileError, InvalidProblem
from ....values.frozen import FrozenMap
from ....values.words import count
from ...hardware import Gpu, Layout
from ..checking import check_gpu
from ..instance import UNKNOWN_OWNER, WHOLE, Instance, Mode, Seen, State, Work
from ..model import Deployment, FleetGpu, FleetNode, Observation, driver_branch
from .counting import Content, contents_of, facts_of_contents, resource_of
from .devices import check_uuid, device_of, fixed, joined, odd_profile
from .facts import Counted, GpuFacts, InstanceFacts, NodeFacts, Stated
from .merging import Merging, fault_at
from .numbering import numbered
from .pods import as_known, compare_allocatable, with_pods

__all__ = ["Observed", "merge"]


class Observed(NamedTuple):
    """What is there now.

    Attributes
    ----------
    deployment : Deployment
    warnings : tuple of str
        What no source says, and what that means.
    of_pods : Mapping[Work, bool]
        ``{work: whether all pods that do it are tied to their nodes}``.
    """

    deployment: Deployment
    warnings: tuple[str, ...]
    of_pods: Mapping[Work, bool] = MappingProxyType({})


def merge(
    facts: Sequence[NodeFacts],
    known: Deployment | None = None,
    *,
    devices: Mapping[str, Gpu] | None = None,
    device: Gpu | None = None,
    places: Deployment | None = None,
) -> Observed:
    """Join what sources say of nodes.

    Parameters
    ----------
    facts : sequence of NodeFacts
        Each with its node's name.
    known : Deployment, optional
        What was meant to run: its services, rule and operating points say what the labels of pods
        stand for, and what stands where no source knows what an instance does.
    devices : Mapping[str, Gpu], optional
        Devices of one's own by key, beside the catalogue's.
    device : Gpu, optional
        What a GPU is of which no source says so.
    places : Deployment, optional
        What was meant to be where, if not `known`: GPUs of a node that differ, of which only
        counts are told, are taken for what they were meant to be, and refused if they cannot be.

    Returns
    -------
    Observed

    Raises
    ------
    FileError
        If two sources contradict each other, both places named; if one has what cannot be; if
        what a GPU is, or whether it is cut, is said nowhere.

    Notes
    -----
    A GPU of which something cannot be read, or that no device file describes, hinders nothing: it
    is `Mode.FIXED`, with a warning.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from cms.fleet import gpu
    >>> from cms.files.source import Source
    >>> from cms.fleet.deployment.observation.nvidia_smi import read_nvidia_smi
    >>> text = "|   0  MIG 3g.40gb    9    2    4:4     |"
    >>> told = replace(read_nvidia_smi(Source("lgi.txt", text)), node=Stated("a", "--node"))
    >>> print(*merge([told], device=gpu("a100-80gb")).deployment.gpus())
    a/0 a100-80gb: 3g.40gb@4 of unknown
    """
    merging = Merging(known or Deployment(()), devices or {}, device, places or known)
    names: dict[str, list[NodeFacts]] = {}
    for each in facts:
        if each.node is None:
            raise FileError(
                each.source, "it does not say of which node it is",
                expected="NODE=FILE", fix="or --node NAME for all files without a name",
            )  # fmt: skip
        names.setdefault(each.node.value, []).append(each)
    nodes = tuple(_node(merging, name, told) for name, told in sorted(names.items()))
    found = Deployment(nodes, merging.known.services, merging.known.rule)
    return Observed(found, tuple(merging.warnings), MappingProxyType(merging.of_pods))


# --- one node -------------------------------------------------------------------------------------


def _node(merging: Merging, name: str, told: Sequence[NodeFacts]) -> FleetNode:
    driver = _agreed(f"driver of {name}", [each.driver for each in told], _without_zeros)
    if driver is not None:
        try:
            driver_branch(driver.value)
        except InvalidProblem as fault:
            raise fault_at(driver.where, str(fault)) from None
    _refuse_half_changed(name, told)
    told, is_numbered = numbered(merging, name, told)
    for each in told:
        merging.warnings += [f"{name}: {said}" for said in each.unknown]
        if each.mig_state is not None and each.mig_state.value == "failed":
            merging.warnings.append(
                f"{name}: the last change of its GPUs has failed ({each.mig_state.where})"
            )
    labels: dict[str, str] = {}
    for each in told:
        labels |= each.labels
    product = _agreed(f"product of {name}", [each.product for each in told])
    told, unclear = _with_counted(merging, name, told, product)
    indices = sorted({card.index for each in told for card in each.gpus})
    merging.fixed.clear()
    cards = [_gpu(merging, name, index, told, product) for index in indices]
    for why, places in merging.fixed.items():
        numbers = ", ".join(str(index) for index, _ in places)
        merging.warnings.append(
            f"{name}/{numbers}: fixed, so that nothing is planned there: {why} ({places[0][1]})"
        )
    if not cards and (unfit := next((each.unfit for each in told if each.unfit), None)):
        merging.warnings.append(
            f"{name}: nothing is planned on its GPUs, and none is shown: {unfit.value} "
            f"({unfit.where})"
        )
    elif not cards:
        where = ", ".join(each.source for each in told)
        raise FileError(
            where, f"no GPU of node {name!r} is told of{unclear}",
            expected="what a device plugin does not tell: nvidia-smi mig -lgi and -L of the node",
        )  # fmt: skip
    pods = [pod for each in told for pod in each.pods or ()]
    if any(each.pods is not None for each in told):
        cards = with_pods(merging, name, cards, pods, _resources(told))
        compare_allocatable(merging, name, cards, told, _resources(told))
    else:
        cards = [as_known(merging, card) for card in cards]
    times = [each.at for each in told if each.at is not None]
    seen = Observation(min(times), tuple(each.source for each in told)) if times else None
    version = driver.value if driver else None
    return FleetNode(name, tuple(cards), FrozenMap(labels), version, seen, is_numbered)


def _resources(told: Sequence[NodeFacts]) -> set[str]:
    """Return the profiles of which a device plug-in has some under their own names."""
    every = (each.capacity or each.allocatable or {} for each in told)
    return {name for counts in every for name, count in counts.items() if count}


def _with_counted(
    merging: Merging, name: str, told: Sequence[NodeFacts], product: Stated | None
) -> tuple[Sequence[NodeFacts], str]:
    """Add what the counts of a node tell of GPUs of which nothing else does; else say why not."""
    source = next((each for each in told if each.counted is not None), None)
    if source is None or source.counted is None:
        return told, ""
    counted = source.counted
    facts: dict[int, list[GpuFacts]] = {}
    for each in told:
        for one in each.gpus:
            facts.setdefault(one.index, []).append(one)
    clear = {index for index, own in facts.items() if any(map(_tells_cuts, own))}
    card, odd = device_of(merging, name, [GpuFacts(0, counted.where)], product, None)
    odd = odd or odd_profile(card, [GpuFacts(0, counted.where, counts=counted.totals)])
    if odd is not None and counted.number is not None:
        rest = [index for index in range(counted.number) if index not in facts]
        unfit = tuple(GpuFacts(index, counted.where, unfit=odd) for index in rest)
        return [*told, NodeFacts(source.source, source.node, gpus=unfit)], ""
    others = [_content(_gpu(merging, name, index, told, product)) for index in sorted(clear)]
    found, stale = contents_of(card, counted, others, source.allocatable or {})
    contents = found[0] if len(found) == 1 else ()
    numbers = range(len(clear) + len(contents))
    indices = [index for index in numbers if index not in clear]
    is_known = len(indices) == len(contents) > 0 and {*facts} <= {*numbers}
    if len({*contents}) > 1:
        meant = {
            each.index: _content(each)
            for node in (merging.places.nodes if merging.places else ())
            if node.name == name
            for each in node.gpus
        }
        as_meant = tuple(meant[index] for index in indices if index in meant)
        is_known = is_known and Counter(as_meant) == Counter(contents)
        contents = as_meant
    if not is_known:
        if counted.number is not None and facts and counted.number > len(facts):
            merging.warnings.append(
                f"{name}: of its {counted.number} GPUs, {len(facts)} are told of; what the others "
                "hold tells: nvidia-smi mig -lgi"
            )
        return told, _unclear(counted, found, stale)
    if len({*contents}) > 1:
        merging.warnings.append(
            f"{name}: which of its GPUs holds which of "
            f"{', '.join(_said(each) for each in dict.fromkeys(contents))} is not known, since the "
            "device plug-in does not tell: they are taken for what they were meant to hold; "
            "nvidia-smi mig -lgi tells"
        )
    more = facts_of_contents(contents, indices, counted.where)
    return [*told, NodeFacts(source.source, source.node, gpus=tuple(more))], ""


def _tells_cuts(facts: GpuFacts) -> bool:
    said = facts.mig, facts.instances, facts.counts, facts.unclaimed
    return any(each is not None for each in said)


def _content(card: FleetGpu) -> Content:
    return FrozenMap(card.counts if card.is_cut else {WHOLE: 1})


def _said(content: Content) -> str:
    if WHOLE in content:
        return "MIG off"
    return " + ".join(_of(content)) or "nothing"


def _unclear(counted: Counted, found: Sequence[Sequence[Content]], stale: Collection[str]) -> str:
    totals = {name: n for name, n in counted.totals.items() if n and name not in stale}
    if not totals:
        return ""
    there = "its GPUs" if counted.number is None else f"its {counted.number} GPUs"
    gone = f" (beside stale {', '.join(map(resource_of, stale))})" if stale else ""
    counts = ", ".join(f"{n} x {resource_of(name)}" for name, n in sorted(totals.items()))
    held = f": {counts} are counted on {there} together{gone}"
    if not found:
        return f"{held}, more than they can hold"
    ways = (
        " and ".join(f"{count(n, 'GPU')} with {_said(each)}" for each, n in Counter(way).items())
        for way in found
    )
    return f"{held}, which can be {', or '.join(ways)}, in any order"


def _refuse_half_changed(name: str, told: Sequence[NodeFacts]) -> None:
    for each in told:
        state = each.mig_state
        if state is not None and state.value in ("pending", "rebooting"):
            raise fault_at(
                state.where,
                f"node {name!r} is being changed: nvidia.com/mig.config.state is {state.value!r}",
                "success or failed; observe again when the change has ended",
            )


def _without_zeros(driver: str) -> str:
    """Return a driver's version as semantic versions have it: 535.104.5 of 535.104.05."""
    return ".".join(part.lstrip("0") or "0" for part in driver.split("."))


def _agreed(
    what: str, said: Sequence[Stated | None], same: Callable[[str], str] = str
) -> Stated | None:
    """Return what all sources that say something say; refuse two answers, naming both places."""
    first: Stated | None = None
    for each in said:
        if each is None:
            continue
        if first is not None and same(first.value) != same(each.value):
            raise fault_at(
                each.where,
                f"the {what} is {each.value} here, and {first.value} in {first.where}",
                "sources of the same node, read at the same time",
            )
        first = first or each
    return first


def _gpu(
    merging: Merging,
    node: str,
    index: int,
    told: Sequence[NodeFacts],
    product: Stated | None,
) -> FleetGpu:
    facts = [card for each in told for card in each.gpus if card.index == index]
    name = f"{node}/{index}"
    uuid = _agreed(f"UUID of {name}", [card.uuid for card in facts])
    if uuid is not None:
        check_uuid(name, uuid.value, uuid.where)
    said = [*(each.unfit for each in facts), *(each.unfit for each in told)]
    unfit = next((each for each in said if each is not None), None)
    card, unknown = device_of(merging, node, facts, product, unfit)
    mig = _agreed(f"MIG mode of {name}", [each.mig for each in facts])
    mig = mig or next((each.unclaimed for each in facts if each.unclaimed), None)
    pending = _agreed(f"pending MIG mode of {name}", [each.pending for each in facts])
    if mig is not None and pending is not None and mig.value != pending.value:
        merging.warnings.append(
            f"{name}: MIG is {mig.value} and will be {pending.value} after a reset "
            f"({pending.where})"
        )
    unfit = unfit or unknown or odd_profile(card, facts)
    if unfit is not None:
        merging.fixed.setdefault(unfit.value, []).append((index, unfit.where))
        return fixed(node, card, facts, uuid)
    where = facts[0].where
    placed = [each for each in facts if each.instances is not None]
    counted = [each for each in facts if each.counts is not None]
    if mig is None and not placed and not counted:
        raise fault_at(where, f"whether MIG is on is said nowhere of {name}", "mig.mode.current")
    if mig is not None and mig.value == "off":
        for each in placed:
            for held in each.instances or ():
                raise fault_at(
                    held.where,
                    f"{name} has {held.profile} here, and MIG is off in {mig.where}",
                    "sources of the same node, read at the same time",
                )
        seen = Seen.UNKNOWN if any(each.is_guessed for each in facts) else Seen.SEEN
        return FleetGpu(
            node, index, card, Mode.WHOLE, uuid=uuid.value if uuid else None, seen=seen
        )  # fmt: skip
    if mig is None and not any(each.instances or each.counts for each in facts):
        raise fault_at(
            where, f"{name} has no instances, and whether MIG is on is said nowhere",
            "the output of: nvidia-smi --query-gpu=index,uuid,name,mig.mode.current --format=csv",
        )  # fmt: skip
    if not placed and not counted:
        raise fault_at(
            mig.where if mig else where,
            f"MIG is on on {name}, and its instances are listed nowhere",
            "the output of: nvidia-smi mig -lgi",
        )  # fmt: skip
    instances, seen = _instances(name, card, placed, counted)
    return FleetGpu(
        node, index, card, Mode.MIG, instances, uuid.value if uuid else None, seen
    )  # fmt: skip


def _instances(
    name: str, card: Gpu, placed: Sequence[GpuFacts], counted: Sequence[GpuFacts]
) -> tuple[tuple[Instance, ...], Seen]:
    layouts = [(_placed(name, card, each), _where(each)) for each in placed]
    for layout, where in layouts[1:]:
        first, before = layouts[0]
        if sorted(_places(first)) != sorted(_places(layout)):
            raise fault_at(
                where,
                f"{name} has {_listed(_places(layout))} here, and {_listed(_places(first))} in "
                f"{before}",
                "sources of the same node, read at the same time",
            )
    for each in counted:
        counts = {card.profile(p).name: n for p, n in (each.counts or {}).items() if n}
        if layouts and counts != dict(Counter(i.profile for i in layouts[0][0])):
            raise fault_at(
                each.where,
                f"{name} has {_listed(_of(counts))} here, and "
                f"{_listed(_places(layouts[0][0]))} in {layouts[0][1]}",
                "sources of the same node, read at the same time",
            )
    if layouts:
        return joined([found for found, _ in layouts]), Seen.SEEN
    return _from_counts(name, card, counted[0])


def _where(facts: GpuFacts) -> str:
    return facts.instances[0].where if facts.instances else facts.listing or facts.where


def _placed(name: str, card: Gpu, facts: GpuFacts) -> tuple[Instance, ...]:
    found: list[Instance] = []
    for each in facts.instances or ():
        profile = _profile(name, card, each)
        size = card.profile(profile).memory
        if each.size not in (None, size):
            raise fault_at(
                each.where, f"{name}: {each.profile} takes {each.size} memory slices here",
                f"{size}, as on {card.key}",
            )  # fmt: skip
        state = State.HOLLOW if each.is_hollow else State.SPLIT if each.is_split else State.RUNNING
        owner = None if state is State.HOLLOW else UNKNOWN_OWNER
        if each.uuid is not None:
            check_uuid(f"{name} {each.profile}", each.uuid, each.where)
        more = each.gpu_instance, each.uuid
        found.append(Instance(profile, each.start, None, owner, state, *more))
    for violation in check_gpu(FleetGpu(name, facts.index, card, instances=tuple(found))):
        raise fault_at(_where(facts), f"what {name} is said to hold cannot be: {violation}")
    return tuple(found)


def _profile(name: str, card: Gpu, facts: InstanceFacts) -> str:
    try:
        return card.profile(facts.profile).name
    except CmsError as fault:
        raise fault_at(facts.where, f"{name}: {fault}") from None


def _from_counts(name: str, card: Gpu, facts: GpuFacts) -> tuple[tuple[Instance, ...], Seen]:
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
        return tuple(only), Seen.ONLY_ONE
    names = (card.profile(p).name for p, n in counts.items() for _ in range(n))
    return tuple(Instance(p, owner=UNKNOWN_OWNER) for p in names), Seen.UNKNOWN


def _places(instances: Iterable[Instance]) -> list[str]:
    return [each.place for each in instances]


def _of(counts: Mapping[str, int]) -> list[str]:
    return [f"{count} x {profile}" for profile, count in sorted(counts.items())]


def _listed(what: Iterable[object]) -> str:
    return ", ".join(map(str, what)) or "nothing"
