"""What is done at once: an action, or all that happens together on a node that is drained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..deployment.instance import Instance, State
from ..deployment.model import FleetGpu
from ..deployment.transition import Action, PartitioningTool, Transition, What

__all__ = ["Seat", "Unit", "list_units", "replay"]


@dataclass(frozen=True)
class Seat:
    """An instance that does work.

    `number`: Which of the GPU's instances of its profile it is by start, from 1 on: what tells it
    apart where a tool chooses the starts.
    """

    gpu: FleetGpu
    instance: Instance
    number: int

    @property
    def key(self) -> tuple[str, int, Instance]:
        """What tells it apart."""
        return self.gpu.name, self.number, self.instance

    def __str__(self) -> str:
        return f"{self.instance} on {self.gpu.name}"


@dataclass(frozen=True)
class Unit:
    """Actions that are done together.

    `positions`: Theirs in the transition. `befores`, `afters`: The GPUs before and after it.
    `stops`, `starts`: The work that ends and begins. `after`: The units that must have ended before
    it begins. `step`: The level of the order that it is in, from 1 on.
    """

    number: int
    step: int
    node: str
    positions: tuple[int, ...]
    actions: tuple[Action, ...]
    befores: tuple[FleetGpu, ...]
    afters: tuple[FleetGpu, ...]
    stops: tuple[Seat, ...]
    starts: tuple[Seat, ...]
    after: frozenset[int]

    @property
    def partitions(self) -> bool:
        """Whether it changes instances, and not their work alone."""
        return any(
            Counter(map(_place, a.removes)) != Counter(map(_place, a.adds)) or a.mode is not None
            for a in self.actions
        )

    @property
    def gpus(self) -> frozenset[str]:
        """The names of its GPUs."""
        return frozenset(card.name for card in self.befores)

    def __str__(self) -> str:
        return "; ".join(" ".join(str(action).split()) for action in self.actions)


def _place(instance: Instance) -> tuple[str, int | None]:
    return instance.profile, instance.start


def list_units(transition: Transition, tool: PartitioningTool) -> tuple[Unit, ...]:
    """Return the units of a transition, none before what it waits for.

    Where a tool drains nodes, or resets all GPUs of a node for a change of mode, all that a step
    does on a node whose GPUs are cut anew is one unit.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import Deployment, FleetNode
    >>> from cms.fleet.deployment.transition import transition
    >>> card = FleetGpu("a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 0),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> for unit in list_units(transition(now, then), PartitioningTool.NVIDIA_SMI):
    ...     print(unit, "after", sorted(unit.after))
    delete on a/0: 3g.40gb@0 idle after []
    create on a/0: 4g.40gb@0 idle after [0]
    """
    actions = transition.actions
    cards = {(card.node, card.index): card for card in transition.start.gpus()}
    groups: list[tuple[int, list[int]]] = []
    for step, level in enumerate(transition.steps, 1):
        own: dict[object, list[int]] = {}
        together = {
            actions[at].node
            for at in level
            if _takes_node(actions[at], cards[actions[at].gpu], tool)
        }
        for at in sorted(level, key=lambda at: (actions[at].gpu, at)):
            node = actions[at].node
            own.setdefault(node if node in together else at, []).append(at)
        groups += ((step, positions) for positions in own.values())
    number = {at: unit for unit, (_, positions) in enumerate(groups) for at in positions}
    found = []
    for unit, (step, positions) in enumerate(groups):
        own_actions = tuple(actions[at] for at in positions)
        node = own_actions[0].node
        indices = {action.index for action in own_actions}
        if any(_takes_node(a, cards[a.gpu], tool) for a in own_actions):
            indices = {index for name, index in cards if name == node}
        befores = tuple(cards[node, index] for index in sorted(indices))
        cards.update(replay(cards, own_actions))
        afters = tuple(cards[node, index] for index in sorted(indices))
        after = frozenset(number[before] for action in own_actions for before in action.after)
        stops = tuple(_seats(befores, ((a.index, a.removes) for a in own_actions)))
        starts = tuple(_seats(afters, ((a.index, a.adds) for a in own_actions)))
        found.append(
            Unit(unit, step, node, tuple(positions), own_actions, befores, afters, stops, starts,
                 after - {unit})
        )  # fmt: skip
    return tuple(found)


def _takes_node(action: Action, card: FleetGpu, tool: PartitioningTool) -> bool:
    if action.what is not What.REPARTITION or tool is PartitioningTool.NVIDIA_SMI:
        return False
    # for a change of mode mig-parted resets all GPUs of the node
    return tool.drains_nodes or (
        action.mode is not None and card.gpu.mode_change_needs_reset is not False
    )


def replay(
    cards: dict[tuple[str, int], FleetGpu], actions: Iterable[Action]
) -> dict[tuple[str, int], FleetGpu]:
    """Return the GPUs that actions change, as they are after them."""
    changed: dict[tuple[str, int], FleetGpu] = {}
    for action in actions:
        card = changed.get(action.gpu, cards[action.gpu])
        held = list(card.instances)
        for each in action.removes:
            held.remove(each)
        source = card.start_source
        card = card.with_instances((*held, *action.adds), action.mode)
        is_cut = action.what is What.REPARTITION
        changed[action.gpu] = card if is_cut else replace(card, start_source=source)
    return changed


def _seats(
    cards: tuple[FleetGpu, ...], parts: Iterable[tuple[int, tuple[Instance, ...]]]
) -> Iterator[Seat]:
    on = {card.index: card for card in cards}
    for index, instances in parts:
        left = list(on[index].instances)
        numbers: Counter[str] = Counter()
        wanted = list(instances)
        for each in left:
            numbers[each.profile] += 1
            if each in wanted:
                wanted.remove(each)
                if each.work is not None and each.state is not State.NO_COMPUTE_INSTANCE:
                    yield Seat(on[index], each, numbers[each.profile])
