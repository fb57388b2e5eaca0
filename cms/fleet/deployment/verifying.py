"""Whether what should be there is there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ...schedule.faults import Violation
from .difference import GpuDifference, compare_gpus, with_fixed
from .instance import (
    UNKNOWN_OWNER,
    WHOLE,
    Instance,
    Mode,
    StartSource,
    State,
    Work,
    list_counts,
)  # fmt: skip
from .model import Deployment, FleetGpu, FleetNode


def verify(
    observed: Deployment, target: Deployment, of_pods: Mapping[Work, bool] = MappingProxyType({})
) -> tuple[Violation, ...]:
    """Say what of a target is not there, by node, GPU and start, then what is of no GPU.

    Of an instance of which no source says what it does, the place alone is compared; of GPUs whose
    starts are not known, how many instances of each profile there are, and what those of a node do
    together; of work that is known for the node alone (`Instance.is_guessed`), whether the node has
    it. Observed GPUs that the target does not have do not matter. Of work that pods do (`of_pods`
    says whether they are tied to their nodes) the number on the node, or on all nodes, is compared,
    since a scheduler chooses which of the instances each gets.
    """
    target = with_fixed(target, observed)
    observed, of_states, _ = settle_pods(settle_guesses(observed, target), target, of_pods)
    found: dict[str, list[Violation]] = {}
    there = {card.name: card for card in observed.gpus()}
    counted: dict[str, list[tuple[FleetGpu, FleetGpu]]] = {}
    for card in target.gpus():
        other = there.get(card.name)
        found[card.name] = faults = list(_of_gpu(other, card))
        if faults or other is None:
            continue
        if StartSource.UNKNOWN in (other.start_source, card.start_source):
            counted.setdefault(card.node, []).append((other, card))
        else:
            faults += _of_instances(compare_gpus(_as_meant(other, card), card))
    for alike in counted.values():
        found[alike[0][1].name] += _of_counted(alike, of_pods)
    return tuple(
        fault
        for name in (*found, *of_states)
        for fault in (*found.pop(name, ()), *of_states.pop(name, ()))
    )


def _of_gpu(seen: FleetGpu | None, meant: FleetGpu) -> Iterator[Violation]:
    """What is wrong with a GPU before its instances are looked at."""
    if seen is None:
        yield Violation("gpu", meant.name, "not been observed", "an observation")
        return
    sources = seen.start_source, meant.start_source
    if seen.mode is Mode.FIXED and meant.mode is not Mode.FIXED:
        held = ", ".join(map(str, meant.instances))
        yield Violation("mode", meant.name, "been found not fit for a plan", held)
    elif seen.gpu.key != meant.gpu.key:
        yield Violation("device", meant.name, f"the type {seen.gpu.key}", meant.gpu.key)
    elif seen.uuid and meant.uuid and seen.uuid != meant.uuid:
        yield Violation("device", meant.name, f"the UUID {seen.uuid}", meant.uuid)
    elif seen.is_cut != meant.is_cut and not meant.leaves_mode:
        words = {True: "MIG on", False: "MIG off"}
        yield Violation("mode", meant.name, words[seen.is_cut], words[meant.is_cut])
    elif StartSource.UNKNOWN in sources and seen.counts != meant.counts:
        yield Violation("count", meant.name, *map(list_counts, (seen.counts, meant.counts)))


def _of_counted(
    pairs: Sequence[tuple[FleetGpu, FleetGpu]], of_pods: Mapping[Work, bool]
) -> Iterator[Violation]:
    """Compare what the instances of some GPUs of a node do, wherever on them they are."""
    seen = [each for card, _ in pairs for each in card.instances if each.owner != UNKNOWN_OWNER]
    does, should = (
        Counter(
            # which of those that pods may be on they are on does not matter: `settle_pods` counts
            (each.profile, None if _is_loose(each, of_pods) else each.work, each.owner)
            for each in instances
        )
        for instances in (seen, [each for _, card in pairs for each in card.instances])
    )
    names = ", ".join(card.name for _, card in pairs)
    if wrong := does - should:
        yield Violation("work", names, _listed(wrong), _listed(should - does))
    for each in seen:
        if each.state in (State.STARTING, State.DRAINING):
            yield Violation("state", names, str(each), "it running")


def _listed(doing: Counter[tuple[str, Work | None, str | None]]) -> str:
    named = (str(Instance(profile, None, work, owner)) for profile, work, owner in doing.elements())
    return list_counts(Counter(named))


def settle_guesses(observed: Deployment, target: Deployment) -> Deployment:
    """Return what was observed, guessed work where a target has it as far as the node has it.

    A device plug-in does not tell which of a node's equal instances a pod has: work that is known
    for the node alone (`Instance.is_guessed`) is as good wherever it fits.
    """
    if not any(each.is_guessed for _, each in observed.instances()):
        return observed
    cards = (card for node in observed.nodes for card in _settled(node, target))
    return observed.with_gpus({(card.node, card.index): card for card in cards})


def _settled(node: FleetNode, target: Deployment) -> Iterator[FleetGpu]:
    cards = next((other.gpus for other in target.nodes if other.name == node.name), ())
    meant = {(c.index, i.place): (i.work, i.owner) for c in cards for i in c.instances}
    held = {(c.index, at): i for c in node.gpus for at, i in enumerate(c.instances)}
    guessed = {at: each for at, each in held.items() if each.is_guessed}
    pools: defaultdict[str, list[Instance]] = defaultdict(list)
    for each in guessed.values():
        pools[each.profile].append(each)

    def give(at: tuple[int, int], one: Instance) -> None:
        pools[one.profile].remove(one)
        held[at] = replace(guessed[at], work=one.work, owner=one.owner, state=one.state)

    left = []
    for at, each in guessed.items():
        should = meant.get((at[0], each.place))
        fits = [one for one in pools[each.profile] if (one.work, one.owner) == should]
        if fits:  # what runs goes to who needs it before what only starts
            give(at, min(fits, key=lambda one: one.state is not State.RUNNING))
        else:
            left.append(at)
    for at in left:
        give(at, pools[guessed[at].profile][0])
    for card in node.gpus:
        parts = range(len(card.instances))
        yield replace(card, instances=tuple(held[card.index, part] for part in parts))


def settle_pods(
    observed: Deployment, target: Deployment, of_pods: Mapping[Work, bool]
) -> tuple[Deployment, dict[str, list[Violation]], int]:
    """Let instances do what they should as far as enough pods do that, wherever these are.

    Returns also the faults by GPU (pods that do not run yet, or no longer) and by node, or for all
    nodes (too few pods of a kind, or too many); and how many instances do not do the work that they
    should, and are taken as if they did.
    """
    if not of_pods:
        return observed, {}, 0
    wanted = {c.name: {each.place: each for each in _parts(c)} for c in target.gpus()}
    there, needed = Counter[_Lot](), Counter[_Lot]()
    inside, faults = Counter[_Lot](), dict[str, list[Violation]]()
    for card, each in target.instances():
        needed.update(_lots(card, each, of_pods))
    moved, cards = 0, {}
    for card in observed.gpus():
        instances = []
        for each in _parts(card):
            there.update(_lots(card, each, of_pods))
            if card.name in wanted:
                inside.update(_lots(card, each, of_pods))
            should = wanted.get(card.name, {}).get(each.place)
            if should and _is_loose(each, of_pods) and _is_loose(should, of_pods):
                if each.state is not State.RUNNING:
                    fault = Violation("state", card.name, str(each), "it running")
                    faults.setdefault(card.name, []).append(fault)
                moved += should.work not in (None, each.work)
                each = replace(each, work=should.work, state=State.RUNNING)
            if each.profile != WHOLE or each.work or each.owner:  # a free GPU has nothing on it
                instances.append(each)
        cards[card.node, card.index] = replace(card, instances=tuple(instances))
    for lot in sorted({*there, *needed}, key=str):
        # more of them on GPUs that the target does not have are none of its business
        has = min(there[lot], max(inside[lot], needed[lot]))
        if has != needed[lot]:
            node, _, profile, work = lot
            says = (f"{n} x {profile} {work}" for n in (has, needed[lot]))
            fault = Violation("work", node or "the fleet", *says)
            faults.setdefault(node or "the fleet", []).append(fault)
    return observed.with_gpus(cards), faults, moved


def _parts(card: FleetGpu) -> tuple[Instance, ...]:
    """Return what pods may be on: of a GPU that is not cut all of it, also while nothing is."""
    return card.instances or ((Instance(WHOLE),) if card.mode is Mode.WHOLE else ())


#: Node, if pods are tied to it; type of GPU, profile and work: which pod is which does not matter.
_Lot = tuple[str | None, str, str, Work]


def _lots(card: FleetGpu, each: Instance, of_pods: Mapping[Work, bool]) -> Iterator[_Lot]:
    if each.work is not None and each.work in of_pods and each.is_managed:
        yield card.node if of_pods[each.work] else None, card.gpu.key, each.profile, each.work


def _is_loose(each: Instance, of_pods: Mapping[Work, bool]) -> bool:
    """Whether a pod is on it that could as well be elsewhere, or it is free for one."""
    if not of_pods or not each.is_managed or each.state is State.NO_COMPUTE_INSTANCE:
        return False
    return each.work is None or each.work in of_pods


def _as_meant(seen: FleetGpu, meant: FleetGpu) -> FleetGpu:
    """Let instances whose work is not known do what they should."""
    doing = {each.place: each for each in meant.instances}

    def told(each: Instance) -> Instance:
        should = doing.get(each.place)
        if should is None or each.owner != UNKNOWN_OWNER:
            return each
        return replace(each, work=should.work, owner=should.owner)

    return replace(seen, instances=tuple(map(told, seen.instances)))


def _of_instances(each: GpuDifference) -> Iterator[Violation]:
    name = each.then.name
    extra = {one.place: one for one in each.deleted}
    wrong: list[tuple[Instance, str, str, str]] = []  # where, kind, what is there, what is to be
    for other in each.created:
        one = extra.pop(other.place, None)
        has = ("missing", f"nothing at {other.place}") if one is None else ("work", str(one))
        wrong.append((other, *has, str(other)))
    wrong += ((one, "extra", str(one), "nothing there") for one in extra.values())
    for one, other in each.restarted:
        same = one.work == other.work
        kind, needs = ("state", "it running") if same else ("work", str(other))
        wrong.append((other, kind, str(one), needs))
    for one in (*each.kept, *each.foreign):
        if one.state in (State.STARTING, State.DRAINING):
            wrong.append((one, "state", str(one), "it running"))
    for _, kind, has_it, needs in sorted(wrong, key=lambda told: told[0].order):
        yield Violation(kind, name, has_it, needs)
