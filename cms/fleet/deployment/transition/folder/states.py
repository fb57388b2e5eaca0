"""What is there after each step of a transition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .....files.numerals import is_whole
from ...instance import Kind, Mode, StartSource, State, Work
from ...model import Deployment
from ..model import Transition, What
from ..whole_gpus import PartitioningTool
from .steps import steps_of

__all__ = ["on_the_way", "open_starts", "state_after", "states"]


def states(transition: Transition) -> tuple[Deployment, ...]:
    """Return what is there at the start and after each step, with the services of both sides."""
    found = [_both(transition)]
    for level in transition.steps:
        found.append(_after(found[-1], transition, level))
    return tuple(found)


def state_after(transition: Transition, name: str) -> Deployment | None:
    """Return what should be there after a step (``07``), or on its GPU after a part of it."""
    every = states(transition)
    if is_whole(name):
        number = int(name)
        return open_starts(transition, every[number]) if 0 < number < len(every) else None
    for tool in (PartitioningTool.NVIDIA_SMI, PartitioningTool.MIG_PARTED, PartitioningTool.SLURM):
        for step in steps_of(transition, tool):
            for part in step.parts:
                if part.name == name:
                    gpus = {card.index for card in part.cards}
                    after = open_starts(transition, every[step.number])
                    nodes = (
                        replace(node, gpus=tuple(c for c in node.gpus if c.index in gpus))
                        for node in after.nodes
                        if node.name == part.node
                    )
                    return replace(after, nodes=tuple(nodes))
    return None


def open_starts(transition: Transition, state: Deployment) -> Deployment:
    """Return a state on the way where no starts count of what a tool chose them for.

    GPUs that are cut anew as a whole on the way are told by their counts, unless one layout alone
    has them.
    """
    cut = _cut_anew(transition)
    cards = {
        (card.node, card.index): replace(card, start_source=StartSource.UNKNOWN)
        for card in state.gpus()
        if (card.node, card.index) in cut
        and card.mode is Mode.MIG
        and len(card.gpu.layouts_of(card.counts)) > 1
    }
    return state.with_gpus(cards)


def _cut_anew(transition: Transition) -> set[tuple[str, int]]:
    return {
        action.gpu
        for action in transition.actions
        if action.what is What.REPARTITION and (action.adds or action.removes)
    }


def on_the_way(transition: Transition) -> tuple[Deployment, tuple[Kind, ...]]:
    """Return what is known of each place at any time, and all kinds of instances there are.

    A place that serves several services one after the other is left out: what it does now cannot
    be told from its place. So is what is on a GPU for which a tool chooses the starts.
    """
    cut = _cut_anew(transition)
    both = _both(transition)
    cards = {(card.node, card.index): dict.fromkeys(card.instances) for card in both.gpus()}
    for action in transition.actions:
        cards[action.gpu].update(dict.fromkeys(action.adds))
    kinds: dict[Kind, None] = {}
    known = {}
    for card in both.gpus():
        does: dict[tuple[str, int | None], set[Work | None]] = {}
        for each in cards[card.node, card.index]:
            does.setdefault((each.profile, each.start), set()).add(each.work)
            if each.work is not None and each.is_managed:
                kinds[Kind(card.gpu.key, each.profile, each.work)] = None
        held = {
            (each.profile, each.start): replace(
                each, state=State.RUNNING, gpu_instance=None, uuid=None, is_guessed=False
            )
            for each in cards[card.node, card.index]
            if len(does[each.profile, each.start]) == 1
            and (card.mode is not Mode.MIG or (card.node, card.index) not in cut)
        }
        known[card.node, card.index] = replace(card, instances=tuple(held.values()))
    return both.with_gpus(known), tuple(kinds)


def _both(transition: Transition) -> Deployment:
    start, target = transition.start, transition.target
    own = {service.name for service in target.services}
    gone = (service for service in start.services if service.name not in own)
    return replace(start, services=(*target.services, *gone), rule=target.rule or start.rule)


def _after(state: Deployment, transition: Transition, level: Iterable[int]) -> Deployment:
    cards = {(card.node, card.index): card for card in state.gpus()}
    for at in level:
        action = transition.actions[at]
        held = list(cards[action.gpu].instances)
        for each in action.removes:
            held.remove(each)
        card = cards[action.gpu]
        instances = (*held, *action.adds)
        cards[action.gpu] = replace(card, instances=instances, mode=action.mode or card.mode)
    return state.with_gpus(cards)
