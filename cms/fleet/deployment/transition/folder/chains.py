"""What becomes of each place of the GPUs, part after part: what shows, and what changes it again.

A place is an instance's profile and start; for tools that choose starts themselves, its profile and
which of the GPU's instances of that profile it is. How a GPU is cut is a place of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...instance import Instance, Mode
from ...model import FleetGpu
from ..model import Action, What
from ..order import repartitions

__all__ = ["Chains", "Place"]

_Key = tuple[int, str, int | None]


class Place(NamedTuple):
    """An instance on a GPU of a node."""

    gpu: int  # its index
    instance: Instance
    #: Which of the GPU's instances of its profile it is, from 1 on, until it is cut anew.
    number: int


class _Slots:
    """A GPU on the way, and which of its instances of a profile is which."""

    def __init__(self, card: FleetGpu) -> None:
        self.card, self.held = card, list[Place]()
        for each in card.instances:
            self._add(each)

    def _add(self, instance: Instance, number: int = 0) -> Place:
        taken = {p.number for p in self.held if p.instance.profile == instance.profile}
        first = next(n for n in range(1, len(taken) + 2) if n not in taken)
        self.held.append(Place(self.card.index, instance, number or first))
        return self.held[-1]

    def do(self, action: Action) -> tuple[list[Place], list[Place]]:
        """Do an action; return what it removes and what it adds."""
        gone = []
        for each in action.removes:
            place = next(p for p in self.held if p.instance == each)
            self.held.remove(place)
            gone.append(place)
        again = iter(gone if action.what is What.RESTART else ())
        come = []
        for each in sorted(action.adds, key=lambda each: each.order):  # as they are read again
            former = next(again, None)
            come.append(self._add(each, former.number if former else 0))
        mode = action.mode or self.card.mode
        seen = self.card.start_source
        self.card = self.card.with_instances((p.instance for p in self.held), mode)
        if not repartitions(action):
            self.card = replace(self.card, start_source=seen)
        return gone, come


def _cut_of(card: FleetGpu) -> tuple[Mode, Counter[tuple[str, bool]]]:
    """Return how a GPU is cut: its mode, and its instances by profile, whole and half made ones."""
    kinds = ((each.profile, not each.is_whole) for each in card.instances)
    return card.mode, Counter(kinds if card.mode is Mode.MIG else ())


class Chains:
    """What becomes of each place of a node's GPUs."""

    def __init__(
        self, cards: Iterable[FleetGpu], parts: Mapping[str, Sequence[Action]], *, by_start: bool
    ) -> None:
        self.by_start = by_start  # whether instances are told apart by their starts
        slots = {card.index: _Slots(card) for card in cards}
        #: All that is anywhere at some time.
        self.ever = [place for one in slots.values() for place in one.held]
        self.removes: dict[str, tuple[Place, ...]] = {}  # by part
        self.adds: dict[str, tuple[Place, ...]] = {}
        self.befores: dict[str, tuple[FleetGpu, ...]] = {}  # the GPUs before and after it
        self.afters: dict[str, tuple[FleetGpu, ...]] = {}
        self._order = list(parts)
        self._gpus = {name: {a.index for a in own} for name, own in parts.items()}
        self._rewritten = {
            name: {a.index for a in own if repartitions(a)} for name, own in parts.items()
        }  # fmt: skip
        self._touched: dict[str, dict[_Key, None]] = {}
        self._chains: dict[_Key, list[tuple[str, object]]] = {}
        for name, actions in parts.items():
            self._do(name, actions, slots)

    def key(self, place: Place) -> _Key:
        """Return what tells a place apart from others."""
        number = place.instance.start if self.by_start else place.number
        return place.gpu, place.instance.profile, number

    def _do(self, name: str, actions: Sequence[Action], slots: Mapping[int, _Slots]) -> None:
        before = self._states(slots)
        self.befores[name] = tuple(one.card for one in slots.values())
        gone, come = list[Place](), list[Place]()
        for action in actions:
            removed, added = slots[action.index].do(action)
            gone += removed
            come += added
        self.afters[name] = tuple(one.card for one in slots.values())
        self.removes[name], self.adds[name] = tuple(gone), tuple(come)
        self.ever += come
        touched = dict.fromkeys(map(self.key, (*gone, *come)))
        touched.update(dict.fromkeys((index, "", None) for index in self._rewritten[name]))
        after = self._states(slots)
        self._touched[name] = touched
        for key in touched:
            nothing = frozenset[object]()
            chain = self._chains.setdefault(key, [("", before.get(key, nothing))])
            chain.append((name, after.get(key, nothing)))

    def _states(self, slots: Mapping[int, _Slots]) -> dict[_Key, object]:
        works: dict[_Key, set[object]] = {}
        for place in (place for one in slots.values() for place in one.held):
            found = works.setdefault(self.key(place), set())
            if self.by_start or place.instance.work is not None:
                found.add(place.instance.work)
        states: dict[_Key, object] = {key: frozenset(found) for key, found in works.items()}
        for index, one in slots.items():
            mode, kinds = _cut_of(one.card)
            states[index, "", None] = mode, frozenset(() if self.by_start else kinds.items())
        return states

    def telling(self, name: str) -> tuple[bool, bool]:
        """Return whether a part shows by what is there, and whether that may be hidden later."""
        is_telling, is_hidden = False, len(self.neighbours(name)[1]) > 1
        for key in self._touched[name]:
            chain, at = self._at(key, name)
            former = {state for _, state in chain[:at]}
            is_telling = is_telling or chain[at][1] not in former
            is_hidden = is_hidden or any(state in former for _, state in chain[at + 1 :])
        return is_telling, is_hidden

    def neighbours(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the parts that changed its places last, and those that change them next."""
        before: list[str] = []
        later: list[str] = []
        for key in self._touched[name]:
            chain, at = self._at(key, name)
            before += [part for part, _ in chain[at - 1 : at] if part]
            later += [part for part, _ in chain[at + 1 : at + 2]]
        rest = self._order[self._order.index(name) + 1 :]
        later += [part for part in rest if self._rewritten[part] & self._gpus[name]][:1]
        return tuple(dict.fromkeys(before)), tuple(dict.fromkeys(later))

    def others(self, name: str) -> tuple[Place, ...]:
        """Return what else is on a part's GPUs at some time."""
        own = {*self.removes[name], *self.adds[name]}
        return tuple(
            place
            for place in dict.fromkeys(self.ever)
            if place.gpu in self._gpus[name] and place not in own
        )

    def _at(self, key: _Key, name: str) -> tuple[list[tuple[str, object]], int]:
        chain = self._chains[key]
        return chain, next(number for number, (part, _) in enumerate(chain) if part == name)
