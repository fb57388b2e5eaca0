"""A state on the way where whole GPUs are cut anew, and all that can be done next.

GPUs are tuples that are replaced, never changed: a copy of a state is cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ..instance import Instance, Mode, State
from .model import Action, What
from .whole_gpus_goal import Goal, Thing, Turn, Use

__all__ = ["Way"]


class Way:
    """A state on the way, and how it was reached."""

    def __init__(self, goal: Goal, most: int) -> None:
        self.goal, self.most = goal, most  # GPUs that may be in use at once
        self.held = list(goal.firsts)  # by GPU
        self.slack = [-floor for floor in goal.floor]  # by service: what can be missed now
        self.old = [0] * len(self.slack)  # by service: what those supply that do not stay
        for thing in chain.from_iterable(self.held):
            if thing.supply:
                self.slack[thing.service] += thing.supply
                self.old[thing.service] += 0 if thing.stays else thing.supply
        #: By pool: ``{use: how many are still to come}``.
        self.need = [dict(each) for each in goal.needs]
        self.in_use = self.peak = sum(map(bool, self.held))
        #: What still has to be done, as in the goal.
        self.contents = {number: each for number, each in enumerate(goal.contents) if each.where}
        self.singles = {n for n in goal.singles if self.held[n]}
        self.turns: set[Turn] = set(goal.turns)
        self.loose = dict(goal.loose)
        self.shared = set(goal.shared)
        #: The node of which GPUs are being cut for covers, and in which turn.
        self.lending, self._lent_in = "", 0
        self.actions: list[Action] = []
        #: For each action the number of the turn that it is part of; 0: of none.
        self.groups: list[int] = []
        self._turn = self._turns = 0
        self._skip_turns()

    def copy(self) -> Way:
        """Return the same state, to go on from in another way."""
        other = object.__new__(Way)
        other.__dict__.update(self.__dict__)
        other.held, other.slack, other.old = self.held[:], self.slack[:], self.old[:]
        other.need = [dict(each) for each in self.need]
        other.contents, other.singles = dict(self.contents), set(self.singles)
        other.turns, other.shared = set(self.turns), set(self.shared)
        other.loose = dict(self.loose)
        other.actions, other.groups = self.actions[:], self.groups[:]
        return other

    @property
    def is_done(self) -> bool:
        """Whether all is as it is to be."""
        left = self.contents or self.singles or self.turns or self.shared
        return not left and next(self.places(), None) is None

    def places(self) -> Iterator[tuple[int, int, Thing]]:
        """Iterate over what does not yet do what it is to do, on GPUs that stay as cut.

        That is: GPU, position there, and what is there.
        """
        busy = {*self.singles, *self.shared, *self.waiting()}
        for gpu, held in enumerate(self.held):
            if gpu not in busy:
                for at, thing in enumerate(held):
                    if not thing.stays and (thing.pool >= 0 or thing.instance.work is not None):
                        yield gpu, at, thing

    def waiting(self) -> Iterator[int]:
        """Iterate over GPUs of nodes that are still to change as a whole."""
        for turn in self.turns:
            yield from turn.gpus

    def idle(self) -> Iterator[tuple[int, int, Thing]]:
        """Iterate over instances that do nothing now."""
        for gpu, held in enumerate(self.held):
            if self.goal.cards[gpu].mode is Mode.MIG:
                for at, thing in enumerate(held):
                    own = thing.instance
                    if own.work is None and own.is_managed and own.state is State.RUNNING:
                        yield gpu, at, thing

    def can_miss(self, things: Iterable[Thing]) -> bool:
        """Whether the floors hold without some instances."""
        return not self.lacks(things)

    def lacks(self, things: Iterable[Thing]) -> dict[int, int]:
        """Return by how much services fall below their floors without some instances."""
        gone: dict[int, int] = {}
        for thing in things:
            if thing.supply:
                gone[thing.service] = gone.get(thing.service, 0) + thing.supply
        return {s: n - self.slack[s] for s, n in gone.items() if n > self.slack[s]}

    def urgency(self, service: int) -> float:
        """How much of a floor still has to come before all that goes can go."""
        return self.goal.urgency(service, self.old, self.slack)

    def work(self, gpu: int, at: int, use: Use, *, stays: bool) -> None:
        """Have an instance do something else, in place; with `stays` it is what is to be there."""
        thing = self.held[gpu][at]
        if stays and thing.pool >= 0:
            self._take(thing.pool, use)
        instance = replace(thing.instance, work=use.work, state=State.RUNNING, is_guessed=False)
        new = self.goal.thing(
            instance, pool=-1 if stays else thing.pool, stays=stays and thing.pool >= 0
        )
        held = self.held[gpu]
        self._change(What.RESTART, gpu, (thing,), (*held[:at], new, *held[at + 1 :]), (new,))

    def cut(self, gpu: int, content: int) -> None:
        """Cut a GPU anew for what is to lie on it; -1: clear it."""
        self._cut(gpu, content)
        self.contents.pop(content, None)
        self.singles.discard(gpu)

    def _cut(self, gpu: int, content: int) -> None:
        mode, things = self.goal.cards[gpu].mode, list[Thing]()
        if content >= 0:
            whole = self.goal.contents[content]
            mode = whole.mode
            for instance, pool in zip(whole.instances, whole.pools, strict=True):
                use = self.best(pool)
                self._take(pool, use)
                new = replace(instance, work=use.work, gpu_instance=None, uuid=None)
                things.append(self.goal.thing(new, stays=True))
        self._rewrite(gpu, things, mode)

    def _next_turn(self) -> None:
        self._turns += 1
        self._turn = self._turns

    def lend(self, gpu: int, instances: Sequence[Instance]) -> None:
        """Cut a free GPU for instances that go again; with `by_node` those of a node together."""
        node = self.goal.cards[gpu].node
        if self.goal.by_node:
            if node != self.lending:
                self._next_turn()
                self.lending, self._lent_in = node, self._turn
            self._turn = self._lent_in
        things = [self.goal.thing(each) for each in instances]
        self._rewrite(gpu, things, self.goal.cards[gpu].mode)
        self.singles.add(gpu)
        self._turn = 0

    def clear(self, gpus: Iterable[int]) -> None:
        """Clear GPUs together."""
        if self.goal.by_node:
            self._next_turn()
        for gpu in gpus:
            self._rewrite(gpu, (), self.goal.cards[gpu].mode)
            self.singles.discard(gpu)
        self._turn = 0

    def _rewrite(self, gpu: int, things: Sequence[Thing], mode: Mode) -> None:
        held = self.held[gpu]
        new = mode if mode is not self.goal.cards[gpu].mode else None
        if held or things:
            self._change(What.REPARTITION, gpu, held, tuple(things), things, new)

    def fills(self, turn: Turn) -> dict[object, range]:
        """Return how many contents of each kind a loose turn may take: what is left has room.

        One at least, where one of any kind is left: else the turn can wait.
        """
        room: Counter[object] = Counter()
        for other in self.turns - {turn}:
            if other.is_loose:
                room.update(self.goal.kind(gpu) for gpu, _ in other.contents)
        own = Counter(self.goal.kind(gpu) for gpu, _ in turn.contents)
        return {
            kind: range(max(0, len(left) - room[kind]), min(own[kind], len(left)) + 1)
            for kind, left in self.loose.items()
            if own[kind]
        }

    def turn(self, turn: Turn, fills: Mapping[object, int] | None = None) -> None:
        """Have a whole node cut anew: all that is on it stops, and what is to be there comes.

        Of a loose one, `fills` says how many contents of each kind: those that wait most.
        """
        self.turns.discard(turn)
        self._next_turn()
        taking = Counter(dict(fills or {}))
        pairs = []
        # what is in use already is filled first: so fewer are in use in the end
        for gpu, content in sorted(turn.contents, key=lambda p: (not self.held[p[0]], p)):
            kind = self.goal.kind(gpu)
            takes = turn.is_loose and taking[kind] > 0
            taking[kind] -= takes
            pairs.append((gpu, content, takes))
        # what is filled is in use while what is cleared still is
        pairs.sort(key=lambda each: (bool(self.held[each[0]]), not each[2], each[0]))
        for gpu, content, takes in pairs:
            self._cut(gpu, self._longest_waiting(gpu) if takes else content)
        self.singles.difference_update(turn.gpus)
        for gpu in turn.drained:
            for at, thing in enumerate(self.held[gpu]):
                if thing.instance.work is None and thing.pool < 0:
                    continue
                if thing.stays:
                    self._again(gpu, at)
                else:
                    use = self.best(thing.pool) if thing.pool >= 0 else self.goal.use(None)
                    self.work(gpu, at, use, stays=True)
        self._turn = 0
        self._skip_turns()

    def _longest_waiting(self, gpu: int) -> int:
        kind = self.goal.kind(gpu)
        best = max(self.loose[kind], key=lambda content: (self.waits(content), -content))
        self.loose[kind] = tuple(each for each in self.loose[kind] if each != best)
        return best

    def waits(self, content: int) -> float:
        """How much waits for what a content has places for."""
        pools = self.goal.contents[content].pools
        return sum(
            max((max(0.0, self.urgency(use.service)) for use in self.need[pool]), default=0.0)
            for pool in pools
        )

    def _skip_turns(self) -> None:
        """Leave out nodes that nothing has to come to or go from any more."""
        if not any(self.loose.values()):
            self.turns -= {
                turn for turn in self.turns
                if turn.is_loose and not any(self.held[gpu] for gpu, _ in turn.contents)
            }  # fmt: skip

    def _again(self, gpu: int, at: int) -> None:
        """Have an instance stop and come again as it is to be."""
        thing, held = self.held[gpu][at], self.held[gpu]
        instance = replace(thing.instance, state=State.RUNNING)
        new = self.goal.thing(instance, stays=True)
        self._change(What.RESTART, gpu, (thing,), (*held[:at], new, *held[at + 1 :]), (new,))

    def share(self, gpu: int) -> None:
        """Change what shares a GPU that is not cut."""
        self.shared.discard(gpu)
        for thing in self.held[gpu]:
            if not thing.stays:
                held = tuple(each for each in self.held[gpu] if each is not thing)
                self._change(What.DELETE, gpu, (thing,), held, ())
        for instance in self.goal.shared[gpu]:
            new = self.goal.thing(replace(instance, gpu_instance=None, uuid=None), stays=True)
            self._change(What.CREATE, gpu, (), (*self.held[gpu], new), (new,))

    def best(self, pool: int) -> Use:
        """Return what waits most of what is wanted of a pool."""
        return max(self.need[pool], key=lambda use: (self.urgency(use.service), use.supply))

    def _take(self, pool: int, use: Use) -> None:
        need = self.need[pool]
        need[use] -= 1
        if not need[use]:
            del need[use]

    def _change(
        self,
        what: What,
        gpu: int,
        gone: Sequence[Thing],
        held: tuple[Thing, ...],
        come: Sequence[Thing],
        mode: Mode | None = None,
    ) -> None:
        for things, sign in ((gone, -1), (come, 1)):
            for each in things:
                if each.supply:
                    self.slack[each.service] += sign * each.supply
                    self.old[each.service] += 0 if each.stays else sign * each.supply
        self.in_use += bool(held) - bool(self.held[gpu])
        self.peak = max(self.peak, self.in_use)
        self.held[gpu] = held
        card = self.goal.cards[gpu]
        removes, adds = (tuple(each.instance for each in part) for part in (gone, come))
        self.actions.append(Action(what, card.node, card.index, removes, adds, mode=mode))
        self.groups.append(self._turn)
