"""What instances do: given to the pods that hold them, or to what was meant to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ....errors import FileError
from ..instance import WHOLE, Instance, Mode, State
from ..model import FleetGpu
from .counting import base_of, resource_of
from .facts import SHARED, NodeFacts, PodFacts
from .merging import Merging, fault_at

__all__ = ["as_known", "compare_allocatable", "with_pods"]


def as_known(merging: Merging, card: FleetGpu) -> FleetGpu:
    """Say what instances do where no cluster is asked: what was meant to run in their places."""
    if card.mode is Mode.FIXED:
        return card
    try:
        known = merging.known.node(card.node)
    except KeyError:
        return card
    meant = {
        each.place: each
        for other in known.gpus
        if other.index == card.index
        for each in other.instances
    }
    return replace(card, instances=tuple(_with(each, meant) for each in card.instances))


def _with(instance: Instance, meant: Mapping[str, Instance]) -> Instance:
    other = meant.get(instance.place)
    if other is None or not instance.is_whole:
        return instance
    return replace(instance, work=other.work, owner=other.owner)


def with_pods(
    merging: Merging,
    node: str,
    cards: Sequence[FleetGpu],
    pods: Sequence[PodFacts],
    resources: Collection[str],
) -> list[FleetGpu]:
    """Give the instances of a node to its pods; which GPU it is, a plug-in does not tell."""
    held = {card.index: list(card.instances) for card in cards}
    free = {
        (card.index, at)
        for card in cards
        if card.mode is not Mode.FIXED
        for at, each in enumerate(card.instances)
        if each.is_whole
    }
    fixed = {card.index for card in cards if card.mode is Mode.FIXED}
    by_profile: dict[str, list[Instance]] = {}
    exactly: dict[tuple[int, str, int | None], list[tuple[PodFacts, Instance]]] = {}
    types = {card.gpu.key for card in cards}
    for pod in pods:
        doing = _doing(merging, pod, types)
        for held_exactly in pod.places:
            exactly.setdefault(held_exactly, []).append((pod, doing))
        for profile in (Counter(pod.profiles) - Counter(each[1] for each in pod.places)).elements():
            by_profile.setdefault(profile, []).append(doing)
    for (index, profile, start), users in exactly.items():
        if index in fixed:  # all on it is another's in any case
            continue
        if profile == WHOLE:
            _take_whole(cards, held, index, free)
        place = _index_of(held.get(index, []), profile, start)
        if place is None or (index, place) not in free:
            name = profile if start is None else f"{profile}@{start}"
            raise fault_at(
                users[0][0].where,
                f"pod {users[0][0].name} holds {name} of {node}/{index}, which is not there or "
                "another's",
                "sources of one time; observe again",
            )
        free.discard((index, place))
        held[index][place] = _give(held[index][place], _together(merging, node, index, users))
    if SHARED in by_profile:
        _share(cards, held, by_profile.pop(SHARED), [p for p in pods if SHARED in p.profiles])
    for profile, doing_all in sorted(by_profile.items()):
        names = _advertised_as(cards, profile, resources)
        _deal(merging, node, held, free, profile, doing_all, pods, cards, names)
    for index, at in free:
        held[index][at] = replace(held[index][at], owner=None, work=None)
    return [replace(card, instances=tuple(held[card.index])) for card in cards]


def _take_whole(
    cards: Sequence[FleetGpu],
    held: dict[int, list[Instance]],
    index: int,
    free: set[tuple[int, int]],
) -> None:
    """Give an uncut GPU the one place that it has, once."""
    for card in cards:
        if card.index == index and card.mode is Mode.WHOLE and not held[index]:
            held[index].append(Instance(WHOLE))
            free.add((index, 0))


def _together(
    merging: Merging, node: str, index: int, users: Sequence[tuple[PodFacts, Instance]]
) -> Instance:
    """Return what the pods do that hold one place; of several, nobody knows who does how much."""
    if len(users) == 1:
        return users[0][1]
    names = ", ".join(pod.name for pod, _ in users)
    merging.warnings.append(
        f"{node}/{index}: {names} share it in parts that are not known; it counts as another's"
    )
    return Instance("", owner=f"pods {names}")


def _share(
    cards: Sequence[FleetGpu],
    held: dict[int, list[Instance]],
    doing: Sequence[Instance],
    pods: Sequence[PodFacts],
) -> None:
    """Keep all uncut GPUs of a node from us, of which pods share some, nobody knows which."""
    names = ", ".join(pod.name for pod in pods)
    state = doing[0].state if len(doing) == 1 else State.RUNNING
    for card in cards:
        if card.mode is Mode.WHOLE and not held[card.index]:
            held[card.index].append(Instance(WHOLE, owner=f"pods {names}", state=state))


def _doing(merging: Merging, pod: PodFacts, types: Collection[str]) -> Instance:
    """Return an instance without a place that does what a pod does."""
    work = merging.work(pod.service, pod.point, pod.profiles, types) if pod.service else None
    if work is not None:
        merging.of_pods[work] = merging.of_pods.get(work, True) and pod.is_tied
        return Instance("", work=work, state=pod.state)
    if pod.service:
        merging.warnings.append(
            f"pod {pod.name} says that it serves {pod.service!r} at {pod.point!r}, which no plan "
            "or deployment that was given knows: it counts as another's"
        )
    return Instance("", owner=f"pod {pod.name}", state=pod.state)


def _give(instance: Instance, doing: Instance) -> Instance:
    return replace(instance, work=doing.work, owner=doing.owner, state=doing.state)


def _index_of(instances: Sequence[Instance], profile: str, start: int | None) -> int | None:
    for at, each in enumerate(instances):
        if (each.profile, each.start) == (profile, start):
            return at
    return None


def _deal(
    merging: Merging,
    node: str,
    held: dict[int, list[Instance]],
    free: set[tuple[int, int]],
    profile: str,
    doing: Sequence[Instance],
    pods: Sequence[PodFacts],
    cards: Sequence[FleetGpu],
    names: Collection[str],
) -> None:
    if profile == WHOLE:
        for card in cards:
            if card.mode is Mode.WHOLE and not held[card.index]:
                held[card.index].append(Instance(WHOLE))
                free.add((card.index, 0))
    own = sorted((index, at) for index, at in free if held[index][at].profile in names)
    # some may hold what is on GPUs on which nothing is planned
    fixed = [each for c in cards if c.mode is Mode.FIXED for each in c.instances]
    more = sum(each.profile in names for each in fixed)
    if len(own) + more < len(doing):
        where = next(pod.where for pod in pods if profile in pod.profiles)
        raise fault_at(
            where,
            f"{len(doing)} pods of node {node!r} hold {profile}, but it has {len(own)} of these",
            "sources of one time, and a device plug-in that has looked since the GPUs were cut",
        )
    kinds = {(each.work, each.is_ours) for each in doing}
    places = len(own) + more
    is_guess = bool(own) and places > 1 and (places > len(doing) or len(kinds) > 1)
    if is_guess:
        merging.warnings.append(
            f"{node}: which of its {len(own)} x {profile} serve what is not known, since the "
            "device plug-in does not tell"
        )
    before = len(doing)
    for number, (index, at) in enumerate(own):
        given = doing[number] if number < before else Instance("")
        held[index][at] = replace(_give(held[index][at], given), is_guessed=is_guess)
        free.discard((index, at))
    # A whole GPU that nobody holds is empty; that another's pod may hold it is not forgotten.
    may_be_anothers = is_guess and not all(each.is_ours for each in doing)
    for card in cards:
        held[card.index] = [
            each
            for each in held[card.index]
            if each.profile != WHOLE
            or each.work
            or each.owner
            or (profile == WHOLE and may_be_anothers)
        ]


def _called(cards: Sequence[FleetGpu], profile: str) -> set[str]:
    """Return the names under which a node's GPUs know a profile."""
    names = {profile}
    for card in cards:
        for each in card.gpu.profiles:
            if profile in (each.name, *each.other_names):
                names.add(each.name)
    return names


def _advertised_as(cards: Sequence[FleetGpu], profile: str, resources: Collection[str]) -> set[str]:
    """Return the profiles that a resource stands for: also those with media engines of their own.

    The device plug-in counts ``1g.10gb+me`` as ``nvidia.com/mig-1g.10gb`` where it has no resource
    of its own.
    """
    names = _called(cards, profile)
    others = {each.name for card in cards for each in card.gpu.profiles}
    own = {name for resource in resources for name in _called(cards, resource)}
    return names | {each for each in others - own if base_of(each) in names}


def compare_allocatable(
    merging: Merging,
    node: str,
    cards: Sequence[FleetGpu],
    told: Sequence[NodeFacts],
    resources: Collection[str],
) -> None:
    """Compare what the cluster can give away with what the GPUs hold; less is no contradiction."""
    found = Counter({WHOLE: sum(not card.is_cut for card in cards)})
    for card in cards:
        if card.is_cut:
            found.update(i.profile for i in card.instances if i.is_whole)
    for facts in told:
        given, capacity = facts.allocatable or {}, facts.capacity or {}
        # A device plug-in that gives anything away is to give away all; claims are told of apart.
        parts = {name for name in found if name != WHOLE} if given and not facts.gpus else set()
        done: set[str] = set()
        for profile in sorted({*given, *capacity, *parts}, key=lambda p: (p not in given, p)):
            names = _advertised_as(cards, profile, resources) - done
            if not names:
                continue
            done |= names
            here, count = sum(found[name] for name in names), given.get(profile, 0)
            most, what = max(here, capacity.get(profile, 0)), resource_of(profile)
            if count > here and any(c.mode is Mode.FIXED and not c.is_cut for c in cards):
                continue  # on a GPU of which nobody knows what it holds
            if count > here and profile != WHOLE:
                raise FileError(
                    facts.source,
                    f"node {node!r} can give away {count} x {profile}, but its GPUs hold {here}",
                    expected="what all of them hold (nvidia-smi mig -lgi); if nobody has cut them "
                    "since the one was read, restart the device plug-in of the node, which has "
                    "not looked since",
                )
            if count > here or (most and not here):
                are_all = facts.labels.get("nvidia.com/gpu.count") == str(len(cards))
                unless = "" if are_all else " (unless it has GPUs that no source tells of)"
                merging.warnings.append(
                    f"{node}: {most - here} x {what} that are counted are stale{unless}: its GPUs "
                    "do not hold them; restart its device plug-in, or pods may be sent to what is "
                    "not there"
                )
            elif most > count:
                merging.warnings.append(
                    f"{node}: {most - count} of its {most} x {what} cannot be given away: out of "
                    "order, or not registered since they were made; the log of its device plug-in "
                    "says which"
                )
