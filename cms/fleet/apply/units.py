"""What is done at once on the way of a transition, and what is known of each place meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...errors import InvalidProblem
from ..deployment.difference import join_services
from ..deployment.export.mig_parted import refuse_doubtful
from ..deployment.instance import Instance, Kind, Mode, StartSource, State
from ..deployment.model import Deployment, FleetGpu, doubtful
from ..deployment.transition import Action, PartitioningTool, Transition, What
from ..deployment.transition.replay import change_gpus

#: Profile and start.
Place: TypeAlias = tuple[str, int | None]
_Key: TypeAlias = tuple[str, int]  # of a GPU: node and index


def find_place(instance: Instance) -> Place:
    """Return the place of an instance."""
    return instance.profile, instance.start


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

    `step`: The level of the order that it is in, from 1 on. `positions`: Of its actions in the
    transition. `befores`, `afters`: The GPUs before and after it. `stops`, `starts`: The work that
    ends and begins. `after`: The units that must have ended before it begins.
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
            Counter(map(find_place, a.removes)) != Counter(map(find_place, a.adds)) or a.mode
            for a in self.actions
        )

    @property
    def gpus(self) -> frozenset[str]:
        """The names of its GPUs."""
        return frozenset(card.name for card in self.befores)

    def places(self, index: int) -> tuple[dict[Place, Instance], dict[Place, Instance]]:
        """Return what it removes from a GPU and what it adds there, by place."""
        own = [action for action in self.actions if action.index == index]
        removed = {find_place(each): each for action in own for each in action.removes}
        return removed, {find_place(each): each for action in own for each in action.adds}

    def __str__(self) -> str:
        return "; ".join(" ".join(str(action).split()) for action in self.actions)


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
    groups: dict[tuple[int, str, int], list[int]] = {}
    whole = set()
    for step, level in enumerate(transition.steps, 1):
        nodes = {actions[at].node for at in level if _takes_node(actions[at], cards, tool)}
        whole |= {(step, node) for node in nodes}
        for at in sorted(level, key=lambda at: (actions[at].gpu, at)):
            node = actions[at].node
            groups.setdefault((step, node, -1 if node in nodes else at), []).append(at)
    number = {at: unit for unit, positions in enumerate(groups.values()) for at in positions}
    found = []
    for unit, ((step, node, _), positions) in enumerate(groups.items()):
        own = tuple(actions[at] for at in positions)
        keys = [key for key in cards if key[0] == node] if (step, node) in whole else []
        keys = keys or sorted({action.gpu for action in own})
        befores = tuple(cards[key] for key in keys)
        cards.update(change_gpus(cards, own))
        afters = tuple(cards[key] for key in keys)
        stops = tuple(seat for a in own for seat in _seats(befores, a.index, a.removes))
        starts = tuple(seat for a in own for seat in _seats(afters, a.index, a.adds))
        after = frozenset(number[before] for a in own for before in a.after)
        found.append(
            Unit(unit, step, node, tuple(positions), own, befores, afters, stops, starts, after)
        )
    return tuple(found)


def _takes_node(action: Action, cards: Mapping[_Key, FleetGpu], tool: PartitioningTool) -> bool:
    if action.what is not What.REPARTITION or tool is PartitioningTool.NVIDIA_SMI:
        return False
    # for a change of mode mig-parted resets all GPUs of the node
    needs_reset = cards[action.gpu].gpu.mode_change_needs_reset is not False
    return tool.drains_nodes or (action.mode is not None and needs_reset)


def _seats(cards: Iterable[FleetGpu], index: int, wanted: Iterable[Instance]) -> Iterator[Seat]:
    """Yield the seats of what does work, of some instances of a GPU."""
    card, left, numbers = next(c for c in cards if c.index == index), [*wanted], Counter[str]()
    for each in card.instances:
        numbers[each.profile] += 1
        if each in left:
            left.remove(each)
            if each.work is not None and each.is_whole:
                yield Seat(card, each, numbers[each.profile])


def refuse_units(transition: Transition, units: Iterable[Unit], tool: PartitioningTool) -> None:
    """Refuse to delete what may be foreign, and what a tool cannot do or tell apart."""
    by_start = tool is PartitioningTool.NVIDIA_SMI
    for unit in units:
        doubts = doubtful(transition.start.node(unit.node))
        for card in (card for card in unit.befores if card.mode is Mode.MIG):
            own = [action for action in unit.actions if action.index == card.index]
            gone, come = ([i for a in own for i in getattr(a, s)] for s in ("removes", "adds"))
            works: dict[str, set[object]] = {}
            for each in card.instances if not by_start else (*gone, *come):
                if each.start is None:
                    works.setdefault(each.profile, set()).add(each.work)
            if any(len(found) > 1 or by_start for found in works.values()):
                raise InvalidProblem(
                    f"the starts of the instances on {card.name} are not known, which {tool} needs "
                    f"here; observe node {card.node!r} with: nvidia-smi mig -lgi"
                )
            for action in () if by_start else own:
                if action.what in (What.CREATE, What.DELETE):
                    raise InvalidProblem(
                        f"{action}: this cuts part of a GPU, which {tool} cannot; expected a "
                        "transition planned for it (--tool), or the tool nvidia-smi"
                    )
            if unit.partitions:
                refuse_doubtful(card, doubts, [each for each in gone if each not in come])


def open_starts(transition: Transition, state: Deployment) -> Deployment:
    """Return a state on the way in which counts tell of GPUs that a tool cuts anew as a whole.

    But starts where one layout alone has these counts.
    """
    cards = {(card.node, card.index): card for card in state.gpus()}
    open_ = {
        at: replace(cards[at], start_source=StartSource.UNKNOWN)
        for at in _cut_anew(transition) & cards.keys()
        if cards[at].mode is Mode.MIG and len(cards[at].gpu.layouts_of(cards[at].counts)) > 1
    }
    return state.with_gpus(open_)


def _cut_anew(transition: Transition) -> set[_Key]:
    actions = (each for each in transition.actions if each.what is What.REPARTITION)
    return {action.gpu for action in actions if action.adds or action.removes}


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
    there = both.with_gpus(change_gpus(cards, actions))
    return replace(transition, actions=tuple(actions), target=there)


def on_the_way(transition: Transition) -> tuple[Deployment, tuple[Kind, ...]]:
    """Return what is known of each place at any time, and all kinds of instances there are.

    A place that serves several services one after the other is left out: what it does now cannot
    be told from its place. So is what is on a GPU for which a tool chooses the starts.
    """
    cut, both = _cut_anew(transition), _both(transition)
    every = {(card.node, card.index): dict.fromkeys(card.instances) for card in both.gpus()}
    for action in transition.actions:
        every[action.gpu].update(dict.fromkeys(action.adds))
    plain: dict[str, Any]
    plain = {"state": State.RUNNING, "gpu_instance": None, "uuid": None, "is_guessed": False}
    kinds: dict[Kind, None] = {}
    known = {}
    for card in both.gpus():
        at = card.node, card.index
        for each in every[at]:
            if each.work is not None and each.is_managed:
                kinds[Kind(card.gpu.key, each.profile, each.work)] = None
        does = Counter(place for place, _ in {(find_place(each), each.work) for each in every[at]})
        held = {
            find_place(each): replace(each, **plain)
            for each in every[at]
            if does[find_place(each)] == 1 and (card.mode is not Mode.MIG or at not in cut)
        }
        known[at] = replace(card, instances=tuple(held.values()))
    return both.with_gpus(known), tuple(kinds)


def _both(transition: Transition) -> Deployment:
    start, target = transition.start, transition.target
    return replace(start, services=join_services(target, start), rule=target.rule or start.rule)
