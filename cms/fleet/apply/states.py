"""What is there on the way of a transition, and what is known of each place at any time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..deployment.difference import join_services
from ..deployment.instance import Kind, Mode, StartSource, State, Work
from ..deployment.model import Deployment
from ..deployment.transition import Transition, What
from .units import replay

__all__ = ["on_the_way", "open_starts", "shorten"]


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


def shorten(
    transition: Transition, positions: Collection[int], under_way: Collection[int] = ()
) -> Transition:
    """Return a transition up to where it has come: with these of its actions alone.

    `under_way`: Those of them of which it is not known that what they add serves.
    """
    number = {at: new for new, at in enumerate(sorted(positions))}
    actions = []
    for at in sorted(positions):
        action = transition.actions[at]
        if at in under_way:
            adds = tuple(replace(each, state=State.STARTING) for each in action.adds)
            action = replace(action, adds=adds)
        actions.append(replace(action, after=tuple(number[before] for before in action.after)))
    both = _both(transition)
    cards = {(card.node, card.index): card for card in both.gpus()}
    there = both.with_gpus(replay(cards, actions))
    return replace(transition, actions=tuple(actions), target=there)


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
    services = join_services(target, start)
    return replace(start, services=services, rule=target.rule or start.rule)
