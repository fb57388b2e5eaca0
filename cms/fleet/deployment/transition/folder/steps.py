"""The steps of a transition in parts: what is done at once, and what has to be done before.

A step is a level of the order. A part is what it does on one GPU, or on a node whose GPUs can only
be cut together. It may begin as soon as all that it waits for has ended, whatever becomes of the
rest of its step; so parts, and not steps, can run side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...export.export import require_word
from ...instance import Mode, State
from ...model import FleetGpu
from ..model import Action, Transition
from ..order import repartitions
from ..whole_gpus import PartitioningTool
from .chains import Chains, Place

__all__ = ["Part", "Step", "steps_of"]


@dataclass(frozen=True)
class Part:
    """What a step does on one GPU, or on one node."""

    name: str  # ``07-node-b-gpu3``, or ``07-node-b-all`` of a node; unique in its transition
    #: The GPUs, with what is on them at the start: one, or all of the node.
    cards: tuple[FleetGpu, ...]
    befores: tuple[FleetGpu, ...]  # the same before and after it
    afters: tuple[FleetGpu, ...]
    positions: tuple[int, ...]  # of its actions in the transition's sequence
    removes: tuple[Place, ...]  # a place in both is restarted: its work changes, its instance stays
    adds: tuple[Place, ...]
    after: tuple[str, ...]  # the parts that must have ended before it begins; all of earlier steps
    #: What else is on these GPUs at some time, each place once for each work there.
    others: tuple[Place, ...] = ()
    #: Whether it leaves a place as it never was before: then what is there shows that it is
    #: done.
    is_telling: bool = True
    #: Whether what is there may not show that it was done, since a later part leaves a place
    #: as it was before this one, or several later ones change its places.
    may_be_hidden: bool = False
    #: The parts that changed its places last, and those that change them next.
    undoes: tuple[str, ...] = ()
    undone_by: tuple[str, ...] = ()
    repartitions: bool = False  # whether GPUs are cut anew as a whole
    by_start: bool = True  # whether instances are told apart by their starts

    @property
    def is_of_a_node(self) -> bool:
        """Whether it is on a node whose GPUs are cut together."""
        return self.name.endswith("-all")

    @property
    def node(self) -> str:
        """The name of its node."""
        return self.cards[0].node

    @property
    def where(self) -> str:
        """``node-b/3``, or ``node-b``."""
        return self.node if self.is_of_a_node else self.cards[0].name

    @property
    def card(self) -> FleetGpu:
        """The GPU of a part that is on one, with what is on it at the start."""
        (card,) = self.cards
        return card

    def seat(self, place: Place) -> tuple[int, str, str, str]:
        """Return what tells a place from others in scripts: GPU, profile, start, number."""
        start = place.instance.start
        if self.by_start:
            return place.gpu, place.instance.profile, "-" if start is None else str(start), "-"
        return place.gpu, place.instance.profile, "-", str(place.number)

    @property
    def restored(self) -> tuple[Place, ...]:
        """What comes back when it is undone: no more than what ran."""
        return tuple(each for each in self.removes if each.instance.state is State.RUNNING)


@dataclass(frozen=True)
class Step:
    """A level of the order."""

    number: int  # from 1 on
    parts: tuple[Part, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of its actions in the transition's sequence."""
        return tuple(sorted(at for part in self.parts for at in part.positions))


def steps_of(transition: Transition, tool: str = PartitioningTool.NVIDIA_SMI) -> tuple[Step, ...]:
    """Return the steps of a transition in their parts.

    Where a tool drains nodes, all that a step does on one is one part; where it chooses starts
    itself, instances are told apart by their numbers.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import Deployment, FleetNode, Instance
    >>> from cms.fleet.deployment.transition import transition
    >>> card = FleetGpu("a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 0),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> for step in steps_of(transition(now, then)):
    ...     print(*(f"{part.name} after {part.after}" for part in step.parts))
    01-a-gpu0 after ()
    02-a-gpu0 after ('01-a-gpu0',)
    """
    actions, levels = transition.actions, transition.steps
    digits = max(2, len(str(len(levels))))
    tool = PartitioningTool(tool)
    together = _together(transition, tool)
    names: dict[int, str] = {}
    parts: list[list[str]] = []
    members: dict[str, list[int]] = {}
    for number, level in enumerate(levels, 1):
        ordered = sorted(level, key=lambda at: (actions[at].gpu, at))
        for at in ordered:
            node, index = actions[at].gpu
            what = "all" if (number, node) in together else f"gpu{index}"
            names[at] = f"{number:0{digits}}-{require_word(node, 'node')}-{what}"
            members.setdefault(names[at], []).append(at)
        parts.append(list(dict.fromkeys(names[at] for at in ordered)))
    for positions in members.values():
        positions.sort()
    made = _parts(transition, members, names, by_start=tool is PartitioningTool.NVIDIA_SMI)
    return tuple(
        Step(number, tuple(made[name] for name in level)) for number, level in enumerate(parts, 1)
    )


def _together(transition: Transition, tool: PartitioningTool) -> set[tuple[int, str]]:
    modes = {(card.node, card.index): card.mode for card in transition.start.gpus()}
    cards = {(card.node, card.index): card.gpu for card in transition.start.gpus()}
    found = set()
    for number, level in enumerate(transition.steps, 1):
        for at in level:
            action = transition.actions[at]
            if tool is PartitioningTool.NVIDIA_SMI or not repartitions(action):
                continue
            before = modes[action.gpu]
            modes[action.gpu] = action.mode or before
            changes = (before is Mode.MIG) is not (modes[action.gpu] is Mode.MIG)
            # for that mig-parted resets all GPUs of the node
            resets = changes and cards[action.gpu].mode_change_needs_reset is not False
            if tool.drains_nodes or resets:
                found.add((number, action.node))
    return found


def _parts(
    transition: Transition,
    members: Mapping[str, list[int]],
    names: Mapping[int, str],
    *,
    by_start: bool,
) -> dict[str, Part]:
    actions = transition.actions
    on_node: dict[str, dict[str, list[Action]]] = {}
    for name, positions in members.items():
        own = [actions[at] for at in positions]
        on_node.setdefault(own[0].node, {})[name] = own
    made = {}
    for node, parts in on_node.items():
        cards = transition.start.node(node).gpus
        chains = Chains(cards, parts, by_start=by_start)
        for name, own in parts.items():
            indices = {action.index for action in own}
            if name.endswith("-all"):
                indices = {card.index for card in cards}
            now, before, after = (
                tuple(card for card in side if card.index in indices)
                for side in (cards, chains.befores[name], chains.afters[name])
            )
            made[name] = Part(
                name, now, before, after, tuple(members[name]),
                chains.removes[name], chains.adds[name],
                tuple(sorted({names[b] for action in own for b in action.after})),
                chains.others(name), *chains.telling(name), *chains.neighbours(name),
                repartitions=any(map(repartitions, own)), by_start=by_start,
            )  # fmt: skip
    return made
