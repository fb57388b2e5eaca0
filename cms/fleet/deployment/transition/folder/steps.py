"""The steps of a transition in parts: what is done on one GPU, and what has to be done before.

A step is a level of the order. A part may begin as soon as all that it waits for has ended,
whatever becomes of the rest of its step; so parts, and not steps, can run side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...export.export import word
from ...instance import Instance, Mode, State
from ...model import FleetGpu
from ..model import Action, Transition
from ..order import rewrites

__all__ = ["Part", "Step", "steps_of"]

_Place = tuple[str, int | None]


@dataclass(frozen=True)
class Part:
    """What a step does on one GPU.

    Attributes
    ----------
    name : str
        ``07-node-b-gpu3``, unique in its transition.
    card : FleetGpu
        The GPU, with what is on it at the start.
    positions : tuple of int
        Of its actions in the transition's sequence.
    removes, adds : tuple of Instance
        A place in both is restarted: its work changes, its instance stays.
    mode, mode_before : Mode
    after : tuple of str
        The parts that must have ended before it begins; all of earlier steps.
    others : tuple of Instance
        What else is on this GPU at some time, each place once for each work there.
    is_telling : bool
        Whether it leaves a place as it never was before: then what is there shows that it is done.
    may_be_hidden : bool
        Whether a later part leaves a place as it was before this one: then what is there may not
        show that it was done.
    undoes, undone_by : tuple of str
        The parts that changed its places last, and those that change them next.
    """

    name: str
    card: FleetGpu
    positions: tuple[int, ...]
    removes: tuple[Instance, ...]
    adds: tuple[Instance, ...]
    mode: Mode
    mode_before: Mode
    after: tuple[str, ...]
    others: tuple[Instance, ...] = ()
    is_telling: bool = True
    may_be_hidden: bool = False
    undoes: tuple[str, ...] = ()
    undone_by: tuple[str, ...] = ()

    @property
    def restored(self) -> tuple[Instance, ...]:
        """What comes back when it is undone: no more than what ran."""
        return tuple(each for each in self.removes if each.state is State.RUNNING)


@dataclass(frozen=True)
class Step:
    """A level of the order.

    Attributes
    ----------
    number : int
        From 1 on.
    parts : tuple of Part
    """

    number: int
    parts: tuple[Part, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of its actions in the transition's sequence."""
        return tuple(sorted(at for part in self.parts for at in part.positions))


def steps_of(transition: Transition) -> tuple[Step, ...]:
    """Return the steps of a transition in their parts.

    Parameters
    ----------
    transition : Transition

    Raises
    ------
    InvalidProblem
        If the name of a node cannot stand in the name of a script.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import Deployment, FleetNode
    >>> from cms.fleet.deployment.transition import transition
    >>> card = FleetGpu("a", 0, gpu("a100-80gb"), instances=(Instance("3g.40gb", 0),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> for step in steps_of(transition(now, then)):
    ...     print(*(f"{part.name} after {part.after}" for part in step.parts))
    01-a-gpu0 after ()
    02-a-gpu0 after ('01-a-gpu0',)
    """
    actions, levels = transition.actions, transition.steps
    digits = max(2, len(str(len(levels))))
    names: dict[int, str] = {}
    parts: list[list[str]] = []
    members: dict[str, list[int]] = {}
    for number, level in enumerate(levels, 1):
        ordered = sorted(level, key=lambda at: (actions[at].gpu, at))
        for at in ordered:
            node, index = actions[at].gpu
            names[at] = f"{number:0{digits}}-{word(node, 'node')}-gpu{index}"
            members.setdefault(names[at], []).append(at)
        parts.append(list(dict.fromkeys(names[at] for at in ordered)))
    made = _parts(transition, members, names)
    return tuple(
        Step(number, tuple(made[name] for name in level)) for number, level in enumerate(parts, 1)
    )


def _parts(
    transition: Transition, members: dict[str, list[int]], names: dict[int, str]
) -> dict[str, Part]:
    actions = transition.actions
    cards = {(card.node, card.index): card for card in transition.start.gpus()}
    on_gpu: dict[tuple[str, int], list[str]] = {}
    for name, positions in members.items():
        on_gpu.setdefault(actions[positions[0]].gpu, []).append(name)
    modes = _modes(transition, members)
    made = {}
    for gpu, here in on_gpu.items():
        own = {name: [actions[at] for at in members[name]] for name in here}
        every = [*cards[gpu].instances, *(i for a in own.values() for one in a for i in one.adds)]
        chains = _Chains(cards[gpu], own)
        for name in here:
            removes = tuple(each for action in own[name] for each in action.removes)
            adds = tuple(each for action in own[name] for each in action.adds)
            made[name] = Part(
                name, cards[gpu], tuple(members[name]), removes, adds, *modes[name],
                tuple(sorted({names[b] for action in own[name] for b in action.after})),
                tuple(i for i in dict.fromkeys(every) if i not in removes and i not in adds),
                *chains.telling(name),
                *chains.neighbours(name),
            )  # fmt: skip
    return made


def _modes(transition: Transition, members: dict[str, list[int]]) -> dict[str, tuple[Mode, Mode]]:
    """Return the mode of its GPU after and before each part."""
    modes = {(card.node, card.index): card.mode for card in transition.start.gpus()}
    found = {}
    for name, positions in members.items():  # a change of mode is alone on its GPU at its level
        gpu = transition.actions[positions[0]].gpu
        before = modes[gpu]
        for at in positions:
            modes[gpu] = transition.actions[at].mode or modes[gpu]
        found[name] = modes[gpu], before
    return found


class _Chains:
    """What becomes of each place of a GPU, part after part."""

    def __init__(self, card: FleetGpu, parts: dict[str, list[Action]]) -> None:
        self.touched: dict[str, list[_Place]] = {}
        self.chains: dict[_Place, list[tuple[str, frozenset[object]]]] = {}
        held: dict[_Place, list[object]] = {}
        for each in card.instances:
            held.setdefault(_place(each), []).append(each.work)
        first = {place: frozenset(works) for place, works in held.items()}
        self.rewritten = [name for name, actions in parts.items() if any(map(rewrites, actions))]
        self.order = list(parts)
        for name, actions in parts.items():
            touched = {}
            for action in actions:
                for each in action.removes:
                    held[_place(each)].remove(each.work)
                    touched[_place(each)] = True
                for each in action.adds:
                    held.setdefault(_place(each), []).append(each.work)
                    touched[_place(each)] = True
            self.touched[name] = list(touched)
            for place in touched:
                chain = self.chains.setdefault(place, [("", first.get(place, frozenset()))])
                chain.append((name, frozenset(held[place])))

    def telling(self, name: str) -> tuple[bool, bool]:
        """Return whether a part shows by what is there, and whether that may be hidden later."""
        is_telling, is_hidden = name in self.rewritten, False
        for place in self.touched[name]:
            chain, at = self._at(place, name)
            former = {state for _, state in chain[:at]}
            is_telling = is_telling or chain[at][1] not in former
            is_hidden = is_hidden or any(state in former for _, state in chain[at + 1 :])
        return is_telling, is_hidden

    def neighbours(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the parts that changed its places last, and those that change them next."""
        before: list[str] = []
        later: list[str] = []
        for place in self.touched[name]:
            chain, at = self._at(place, name)
            before += [part for part, _ in chain[at - 1 : at] if part]
            later += [part for part, _ in chain[at + 1 : at + 2]]
        number = self.order.index(name)
        later += [part for part in self.order[number + 1 :] if part in self.rewritten][:1]
        return tuple(dict.fromkeys(before)), tuple(dict.fromkeys(later))

    def _at(self, place: _Place, name: str) -> tuple[list[tuple[str, frozenset[object]]], int]:
        chain = self.chains[place]
        return chain, next(number for number, (part, _) in enumerate(chain) if part == name)


def _place(instance: Instance) -> _Place:
    return instance.profile, instance.start
