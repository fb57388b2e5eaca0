"""A state on the way: what is where, what is still to come, and what floors can miss now.

GPUs are values that are replaced, never changed: a copy of a state is cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..instance import Instance
from .manner import Manner
from .model import Action, What
from .state import Entry, Fleet, Item, made

__all__ = ["Way"]


class Way:
    """A state on the way, and how it was reached."""

    def __init__(self, fleet: Fleet, most: int, manner: Manner | None = None) -> None:
        self.fleet, self.most, self.manner = fleet, most, manner or Manner()
        self.cards = list(fleet.firsts)
        self.slack = [-floor for floor in fleet.floor]  # by service: what can be missed now
        self.old = [0] * len(fleet.services)  # by service: what those supply that go
        for card in self.cards:
            for each in card.items:
                if each.supply:
                    self.slack[each.service] += each.supply
                    self.old[each.service] += each.supply if each.goes else 0
        #: By pool: ``{use: how many are still to come}``.
        self.need = [dict(each) for each in fleet.needs]
        self.in_use = sum(bool(card.items) for card in self.cards)
        self.actions: list[Action] = []
        #: By service: what is being created, and counts only for how much still has to
        #: come.
        self.withheld = [0] * len(fleet.services)
        self.busy: set[int] = set()  # GPUs on which nothing can begin now
        self.open_on: dict[int, tuple[int, ...]] = {}
        #: ``{position: what has to go before it is filled}``, of those not yet filled.
        self.entries: dict[int, Entry | None] = {}
        for number, position in enumerate(fleet.positions):
            self.open_on[position.gpu] = (*self.open_on.get(position.gpu, ()), number)
            self.entries[number] = fleet.entry(self.cards[position.gpu], position)

    def copy(self, manner: Manner | None = None) -> Way:
        """Return the same state, to go on from in another way."""
        other = object.__new__(Way)
        other.manner = self.manner if manner is None else manner
        other.fleet, other.most, other.in_use = self.fleet, self.most, self.in_use
        other.cards, other.slack, other.old = self.cards[:], self.slack[:], self.old[:]
        other.need = [dict(each) for each in self.need]
        other.actions = self.actions[:]
        other.withheld, other.busy = self.withheld[:], set(self.busy)
        other.open_on, other.entries = dict(self.open_on), dict(self.entries)
        return other

    @property
    def is_done(self) -> bool:
        """Whether all is there that is to be there, and nothing else."""
        return not self.entries and not any(e.goes for card in self.cards for e in card.items)

    def can_miss(self, needs: Iterable[tuple[int, int]]) -> bool:
        """Whether the floors hold without so much of some services."""
        return all(amount <= self.spared(service) for service, amount in needs)

    def spared(self, service: int) -> int:
        """Return what can be missed of a service by what has ended."""
        return self.slack[service] - self.withheld[service]

    def can_take(self, gpu: int) -> bool:
        """Whether something may be put on a GPU now, without too many being in use."""
        return gpu not in self.busy and (bool(self.cards[gpu].items) or self.in_use < self.most)

    def urgency(self, service: int) -> float:
        """How much of a floor still has to come before all that goes can go."""
        return self.fleet.urgency(service, self.old, self.slack)

    def fill(self, number: int, use: int) -> None:
        """Create what is wanted at a position, or restart what is in the very place as it."""
        position, entry = self.fleet.positions[number], self.entries[number]
        assert entry is not None
        source = self.fleet.cards[position.gpu]
        instance = replace(
            position.instance, work=self.fleet.uses[use].work, gpu_instance=None, uuid=None
        )
        new = self.fleet.item(source, instance, goes=False, temporary=False)
        need = self.need[position.pool]
        need[use] -= 1
        if not need[use]:
            del need[use]
        del self.entries[number]
        rest = tuple(each for each in self.open_on[position.gpu] if each != number)
        self.open_on[position.gpu] = rest
        if entry.blockers and not entry.is_restart:
            self.delete(position.gpu, entry.blockers)
            entry = entry._replace(blockers=())
        self._switch(position.gpu)
        if entry.blockers:
            (old,) = entry.blockers
            instance = replace(
                instance, gpu_instance=old.instance.gpu_instance, uuid=old.instance.uuid
            )
            self._change(What.RESTART, position.gpu, old, new._replace(instance=instance))
        else:
            self._change(What.CREATE, position.gpu, None, new)

    def _switch(self, gpu: int) -> None:
        mode = self.fleet.ends[gpu].mode
        if self.cards[gpu].mode is not mode:
            source = self.fleet.cards[gpu]
            self.actions.append(Action(What.REPARTITION, source.node, source.index, mode=mode))
            self.cards[gpu] = made((), mode)

    def cover(self, gpu: int, instance: Instance) -> Item:
        """Create an instance that goes again."""
        source = self.fleet.cards[gpu]
        new = self.fleet.item(source, instance, goes=True, temporary=True)
        self._change(What.CREATE, gpu, None, new)
        return new

    def delete(self, gpu: int, items: Iterable[Item]) -> None:
        """Delete instances of a GPU."""
        for each in items:
            self._change(What.DELETE, gpu, each, None)

    def _change(self, what: What, gpu: int, old: Item | None, new: Item | None) -> None:
        card, source = self.cards[gpu], self.fleet.cards[gpu]
        items = list(card.items)
        if old is not None:
            items.remove(old)
            if old.supply:
                self.slack[old.service] -= old.supply
                self.old[old.service] -= old.supply
        if new is not None:
            items.append(new)
            if new.supply:
                self.slack[new.service] += new.supply
                self.old[new.service] += new.supply if new.goes else 0
        self.in_use += bool(items) - bool(card.items)
        self.cards[gpu] = made(items, card.mode)
        for number in self.open_on.get(gpu, ()):
            self.entries[number] = self.fleet.entry(self.cards[gpu], self.fleet.positions[number])
        temporary = any(each is not None and each.is_temporary for each in (old, new))
        self.actions.append(
            Action(
                what, source.node, source.index,
                () if old is None else (old.instance,),
                () if new is None else (new.instance,),
                is_temporary=temporary,
            )
        )  # fmt: skip

    def leaving(self) -> Iterator[tuple[int, Item]]:
        """Iterate over what goes and is still there."""
        for number, card in enumerate(self.cards):
            for each in card.items:
                if each.goes:
                    yield number, each
