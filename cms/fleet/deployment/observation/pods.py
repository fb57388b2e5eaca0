"""What instances do: what their pods do, what was meant to run, or what the user says."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....errors import FileError, InvalidOption
from ....values.names import nearest
from ...hardware import Gpu
from ...hardware.catalogue import is_called
from ..instance import WHOLE, Instance, Mode, Work
from ..labels import label_value, point_label
from ..model import Deployment, FleetGpu
from .counting import base_of, describe_profile
from .facts import NodeFacts, PodFacts, fault_at

_PLACE = re.compile(r"(.+/[0-9]{1,9})(?::([0-9]{1,9}))?", re.ASCII)


@dataclass
class MergeContext:
    """What the user said beside the sources, and what is said to the user."""

    known: Deployment
    devices: Mapping[str, Gpu]
    device: Gpu | None
    places: Deployment | None = None
    of_pods: dict[Work, bool] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def warn(self, whose: str, *said: str) -> None:
        """Say something of a node or GPU."""
        self.warnings += (f"{whose}: {each}" for each in said)

    def meant(self, node: str) -> Iterable[FleetGpu]:
        """Return what was meant to be on a node."""
        every = (*self.known.nodes, *(self.places.nodes if self.places else ()))
        return (card for each in every if each.name == node for card in each.gpus)

    def work(
        self, service: str, point: str | None, profiles: Collection[str], gpus: Collection[str]
    ) -> Work | None:
        """Find the work that a pod's labels name; without a point, the only one there can be.

        Points of other types of GPU than the node's have the same label, and are others. A label
        that two services have names neither.
        """
        found = {
            instance.work: None
            for card, instance in self.known.instances()
            if instance.work is not None
            and card.gpu.key in gpus
            and service in (instance.work.service, label_value(instance.work.service))
            and (point is None or point_label(instance.work) == point)
            and (point is not None or instance.profile in profiles)
        }
        if len({each.service for each in found}) > 1 or (point is None and len(found) > 1):
            return None
        return next(iter(found), None)


def assign_known(context: MergeContext, card: FleetGpu) -> FleetGpu:
    """Say what instances do where no cluster is asked: what was meant to run in their places."""
    if card.mode is Mode.FIXED:
        return card
    cards = (c for node in context.known.nodes if node.name == card.node for c in node.gpus)
    meant = {each.place: each for c in cards if c.index == card.index for each in c.instances}
    held = (
        replace(each, work=meant[each.place].work, owner=meant[each.place].owner)
        if each.is_whole and each.place in meant
        else each
        for each in card.instances
    )
    return replace(card, instances=tuple(held))


def assign_pods(
    context: MergeContext, node: str, cards: Sequence[FleetGpu], told: Sequence[NodeFacts]
) -> list[FleetGpu]:
    """Give the instances of a node to its pods; which GPU it is, a plug-in does not tell."""
    pods = [pod for each in told for pod in each.pods or ()]
    types = {card.gpu.key for card in cards}
    doing = {pod.name: _doing(context, pod, types) for pod in pods}
    dealt = _Assignment(context, node, cards, _resources(told))
    exactly: defaultdict[tuple[int, str, int | None], list[PodFacts]] = defaultdict(list)
    by_profile: defaultdict[str, list[PodFacts]] = defaultdict(list)
    for pod in pods:
        for place in pod.places:
            exactly[place].append(pod)
        for profile in (Counter(pod.profiles) - Counter(p for _, p, _ in pod.places)).elements():
            by_profile[profile].append(pod)
    for place, users in exactly.items():
        if place[0] in dealt.fixed:  # all on it is foreign in any case
            continue
        does, names = doing[users[0].name], ", ".join(pod.name for pod in users)
        if len(users) > 1:
            said = f"{names} share it in parts that are not known; it counts as foreign"
            context.warn(f"{node}/{place[0]}", said)
            does = Instance("", owner=f"pods {names}")
        dealt.give(place, does, users[0])
    for profile, users in sorted(by_profile.items()):
        dealt.deal(profile, [doing[pod.name] for pod in users], users[0].where)
    return dealt.cards_held()


def _doing(context: MergeContext, pod: PodFacts, types: Collection[str]) -> Instance:
    """Return an instance without a place that does what a pod does."""
    work = context.work(pod.service, pod.point, pod.profiles, types) if pod.service else None
    if work is not None:
        context.of_pods[work] = context.of_pods.get(work, True) and pod.is_tied
        return Instance("", work=work, state=pod.state)
    if pod.service:
        context.warnings.append(
            f"pod {pod.name} says that it serves {pod.service!r} at {pod.point!r}, which no plan "
            "or deployment that was given knows: it counts as foreign"
        )
    return Instance("", owner=f"pod {pod.name}", state=pod.state)


class _Assignment:
    """The instances of a node, as they are given to pods one by one."""

    def __init__(
        self, context: MergeContext, node: str, cards: Sequence[FleetGpu],
        resources: Collection[str],
    ) -> None:  # fmt: skip
        self.context, self.node, self.cards, self.resources = context, node, cards, resources
        whole = {card.index: [Instance(WHOLE)] for card in cards if card.mode is Mode.WHOLE}
        self.held = {c.index: [*c.instances] or whole.get(c.index, []) for c in cards}
        self.fixed = {card.index for card in cards if card.mode is Mode.FIXED}
        self.free = {
            (index, at)
            for index in self.held.keys() - self.fixed
            for at, each in enumerate(self.held[index])
            if each.is_whole
        }
        self.may_be_held = False  # a whole GPU of which no pod is known, by a foreign one

    def give(self, place: tuple[int, str, int | None], does: Instance, pod: PodFacts) -> None:
        index, profile, start = place
        held, name = self.held.get(index, []), Instance(profile, start).place
        places = [at for at, each in enumerate(held) if each.place == name]
        if not places or (index, places[0]) not in self.free:
            holds = f"pod {pod.name} holds {name} of {self.node}/{index}"
            again = "sources of one time; observe again"
            raise fault_at(pod.where, f"{holds}, which is not there or foreign", again)
        self.free.discard((index, places[0]))
        held[places[0]] = _with(held[places[0]], does)

    def deal(self, profile: str, doing: Sequence[Instance], where: str) -> None:
        """Give instances of a profile to pods: any to any, so that what they do is guessed."""
        names = _advertised_as(self.cards, profile, self.resources)
        own = sorted((i, at) for i, at in self.free if self.held[i][at].profile in names)
        # some may hold what is on GPUs on which nothing is planned
        fixed = (each for card in self.cards if card.index in self.fixed for each in card.instances)
        places = len(own) + sum(each.profile in names for each in fixed)
        if places < len(doing):
            raise fault_at(
                where,
                f"{len(doing)} pods of node {self.node!r} hold {profile}, but it has {len(own)} of "
                "these",
                "sources of one time, and a device plug-in that has looked since the GPUs were cut",
            )
        kinds = {(each.work, each.is_managed) for each in doing}
        is_guess = bool(own) and places > 1 and (places > len(doing) or len(kinds) > 1)
        if is_guess:
            what = f"which of its {len(own)} x {profile} serve what is not known"
            self.context.warn(self.node, f"{what}, since the device plug-in does not tell")
        for number, (index, at) in enumerate(own):
            given = doing[number] if number < len(doing) else Instance("")
            self.held[index][at] = replace(_with(self.held[index][at], given), is_guessed=is_guess)
            self.free.discard((index, at))
        if profile == WHOLE and is_guess:
            self.may_be_held = not all(each.is_managed for each in doing)

    def cards_held(self) -> list[FleetGpu]:
        """Return the GPUs; what no pod holds does nothing, and a whole GPU is empty then."""
        for index, at in self.free:
            self.held[index][at] = replace(self.held[index][at], owner=None, work=None)
        return [
            replace(card, instances=tuple(
                each
                for each in self.held[card.index]
                if self.may_be_held or each.profile != WHOLE or each.work or each.owner
            ))
            for card in self.cards
        ]  # fmt: skip


def _with(instance: Instance, doing: Instance) -> Instance:
    return replace(instance, work=doing.work, owner=doing.owner, state=doing.state)


def _resources(told: Sequence[NodeFacts]) -> set[str]:
    """Return the profiles of which a device plug-in has some under their own names."""
    every = (each.capacity or each.allocatable or {} for each in told)
    return {name for counts in every for name, count in counts.items() if count}


def _called(cards: Sequence[FleetGpu], profile: str) -> set[str]:
    """Return the names under which a node's GPUs know a profile."""
    every = (each for card in cards for each in card.gpu.profiles)
    return {profile, *(p.name for p in every if profile in (p.name, *p.other_names))}


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
    context: MergeContext, node: str, cards: Sequence[FleetGpu], told: Sequence[NodeFacts]
) -> None:
    """Compare what the cluster can give away with what the GPUs hold; less is no contradiction."""
    cut = [card for card in cards if card.is_cut]
    found = Counter(each.profile for card in cut for each in card.instances if each.is_whole)
    found[WHOLE] = len(cards) - len(cut)
    is_unclear = any(card.mode is Mode.FIXED and not card.is_cut for card in cards)
    resources = _resources(told)
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
            most, what = max(here, capacity.get(profile, 0)), describe_profile(profile)
            if count > here and is_unclear:
                continue  # on a GPU whose contents are not known
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
                said = f"{most - here} x {what} that are counted are stale{unless}: its GPUs do not"
                more = "hold them; restart its device plug-in, or pods may be sent to what is not"
                context.warn(node, f"{said} {more} there")
            elif most > count:
                said = f"{most - count} of its {most} x {what} cannot be given away: out of order,"
                more = "or not registered since they were made; the log of its device plug-in says"
                context.warn(node, f"{said} {more} which")


def release(deployment: Deployment, place: str) -> Deployment:
    """Say that an instance may be deleted; InvalidOption if there is no such place."""
    return adopt(deployment, place, None)


def adopt(
    deployment: Deployment, place: str, doing: str | None, works: Iterable[Work] = ()
) -> Deployment:
    """Say that an instance is managed, and which of the works that are known it does, if any.

    A place is ``NODE/GPU:START``, or ``NODE/GPU`` where something without a start is alone on the
    GPU. `doing` is ``SERVICE@POINT``, where a point is ``2x8`` (processes x batch) or its whole
    label, ``3g.40gb-2x8``; ``SERVICE`` alone does where only one point fits.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        raise InvalidOption(f"{place!r}: expected NODE/GPU:START, for example node-a/3:4")
    cards = {card.name: card for card in deployment.gpus()}
    if match[1] not in cards:
        raise InvalidOption(f"{place!r}: there is no GPU {match[1]!r}{nearest(match[1], cards)}")
    card = cards[match[1]]
    start = None if match[2] is None else int(match[2])
    found = [at for at, each in enumerate(card.instances) if each.start == start]
    if len(found) != 1:
        there = ", ".join(each.place for each in card.instances) or "nothing"
        what = "nothing" if not found else f"{len(found)} instances without a start"
        raise InvalidOption(f"{place!r}: {what} there; {card.name} has {there}")
    if card.mode is Mode.FIXED:
        raise InvalidOption(f"{place!r}: nothing is planned on {card.name}, whoever uses it")
    held = list(card.instances)
    work = None if doing is None else _find_work(card, held[found[0]], doing, works)
    held[found[0]] = replace(held[found[0]], owner=None, work=work, is_guessed=False)
    replaced = replace(card, instances=tuple(held))
    return deployment.with_gpus({(card.node, card.index): replaced})


def _find_work(card: FleetGpu, instance: Instance, doing: str, works: Iterable[Work]) -> Work:
    service, _, point = doing.rpartition("@") if "@" in doing else (doing, "", "")
    every = sorted({*works}, key=lambda work: (work.service, point_label(work)))
    # shares under MPS have no other name
    names = {other: p.name for p in card.gpu.profiles for other in (p.name, *p.other_names)}
    fits = [
        work
        for work in every
        if work.service == service
        and is_called(card.gpu, work.point.device)
        and names.get(work.point.profile, work.point.profile) == instance.profile
    ]
    where = f"{card.name} {instance.place}"
    known = sorted({work.service for work in every})
    short = {f"{work.point.processes}x{work.point.batch}": work for work in fits}
    labels = {point_label(work): work for work in fits} | short
    fault = ""
    if service not in known:
        fault = f"no service {service!r} is known{nearest(service, known)}"
        fault += "; give the plan or deployment that has it with --plan"
    elif not fits:
        fault = f"no point of {service!r} is of {where}"
    elif point not in labels and (point or len(fits) > 1):
        points = ", ".join(f"{service}@{each}" for each in short)
        fault = f"expected a point of {where}: {points}"
    if fault:
        raise InvalidOption(f"{doing!r}: {fault}")
    return labels[point] if point else fits[0]
