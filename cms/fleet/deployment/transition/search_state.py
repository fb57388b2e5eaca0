"""A partial transition in the search: what is where, what is still to come, what can be missed.

States of GPUs are values that are replaced, never changed: a copy of a search state is cheap.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import NamedTuple, TypeVar

from ..instance import Instance, Mode, State
from .goal import Blockage, Pool, TrackedInstance, TransitionGoal, hold
from .model import Action, What

T = TypeVar("T")

#: Of changed settings: one service in this many gets another weight, times e to this deviation.
_ONE_IN, _DEVIATION = 6, 0.7


@dataclass(frozen=True)
class SearchSettings:
    """What decides between equal choices; equal settings find equal sequences."""

    seed: int | None = None  # of what is random; None: always the best by the rules
    #: Whether a free opening goes to the service that frees most room soonest, instead of
    #: the one that waits most.
    room_first: bool = False
    side_by_side: bool = True  # whether covers of several openings are made at once
    #: By service, how much sooner it gets a free opening; empty: at random.
    weights: tuple[float, ...] = ()
    rng: random.Random | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rng = None if self.seed is None else random.Random(self.seed)
        object.__setattr__(self, "rng", rng)

    def noise(self, by: float) -> float:
        """Return a factor from 1 to 1 + `by`; 1 where nothing is random."""
        return 1.0 if self.rng is None else 1.0 + by * self.rng.random()

    def weight(self, service: int) -> float:
        """Return the factor of a service that waits."""
        return self.weights[service] if self.weights and service >= 0 else self.noise(0.5)

    def vary(self, services: int, rng: random.Random) -> SearchSettings:
        """Return settings that differ a little."""
        weights = list(self.weights or [1.0] * services)
        for at in rng.sample(range(services), -(-services // _ONE_IN)):
            weights[at] *= exp(rng.gauss(0.0, _DEVIATION))
        seed = self.seed if rng.random() < 0.5 else rng.randrange(2**32)
        return replace(self, seed=seed, weights=tuple(weights))


class Cover(NamedTuple):
    """Temporary instances that come at once, each on a GPU.

    `old`: What restarts as the one that comes. `opening`: Of which the processes come to another
    GPU, to stay there.
    """

    places: tuple[tuple[int, Instance], ...]
    old: TrackedInstance | None = None
    opening: int = -1


class SearchState:
    """A partial transition, and how it was reached."""

    def __init__(
        self, goal: TransitionGoal, most: int, settings: SearchSettings | None = None
    ) -> None:
        self.goal, self.most, self.settings = goal, most, settings or SearchSettings()
        self.gpus = list(goal.firsts)
        self.slack = [-floor for floor in goal.floor]  # by service: what can be missed now
        #: By service: how many go that have so much supply and so many slots.
        self.going: list[dict[tuple[int, int], int]] = [{} for _ in goal.services]
        for state in self.gpus:
            for each in state.held:
                self._count(each, 1)
        #: By pool: ``{use: how many are still to come}``.
        self.need = {pool: dict(each) for pool, each in goal.needs.items()}
        self.in_use = sum(bool(state.held) for state in self.gpus)
        self.actions: list[Action] = []
        #: By action: the number of what happens at once, 0 where it happens alone.
        self.groups: list[int] = []
        self._group = 0
        #: By service: what is being created, and counts only for how much still has to
        #: come.
        self.withheld = [0] * len(goal.services)
        self.busy: set[int] = set()  # GPUs on which nothing can begin now
        self.open_on: dict[int, tuple[int, ...]] = {}
        #: ``{opening: what has to go before it is filled}``, of those not yet filled.
        self.blockages: dict[int, Blockage | None] = {}
        self.free: set[int] = set()  # openings that nothing is in the way of
        #: Openings of which the processes have come to another GPU.
        self.moved: frozenset[int] = frozenset()
        self.filled: frozenset[int] = frozenset()  # batches to which layouts have come
        self.room: Counter[Pool] = Counter()  # by pool of layouts: GPUs that can have one
        for number, opening in enumerate(goal.openings):
            if opening.batch < 0 or self._is_wanted(opening.batch):
                for gpu in opening.gpus:
                    self.open_on[gpu] = (*self.open_on.get(gpu, ()), number)
                self._look_at(number)
            if opening.batch >= 0:
                self.room.update(goal.pools[opening.batch])

    def copy(self, settings: SearchSettings | None = None) -> SearchState:
        """Return the same state, to go on from in another way."""
        other = object.__new__(SearchState)
        for name, value in self.__dict__.items():
            other.__dict__[name] = value.copy() if isinstance(value, list | dict | set) else value
        other.need = {pool: dict(each) for pool, each in self.need.items()}
        other.settings = self.settings if settings is None else settings
        return other

    @property
    def is_done(self) -> bool:
        """Whether all is there that is to be there, and nothing else."""
        return not self.blockages and next(self.leaving(), None) is None

    def leaving(self) -> Iterator[tuple[int, TrackedInstance]]:
        """Iterate over what goes and is still there."""
        for number, state in enumerate(self.gpus):
            for each in state.held:
                if each.goes:
                    yield number, each

    def leaving_at_once(self) -> Iterator[tuple[tuple[int, TrackedInstance], ...]]:
        """Iterate over what goes and is still there, together with all that goes with it."""
        seen = set[int]()
        for gpu, each in self.leaving():
            at = self.find_batch(gpu)
            if at < 0:
                if self.goal.tool is not None:
                    yield ((gpu, each),)
            elif at not in seen:
                seen.add(at)
                yield tuple((n, one) for n in self.goal.batches[at] for one in self.gpus[n].held)

    def find_batch(self, gpu: int) -> int:
        """Return the batch with which a GPU is still to be repartitioned; -1 if with none."""
        at = self.goal.batch_of.get(gpu, -1)
        return -1 if at in self.filled else at

    def can_miss(self, needs: Mapping[int, int]) -> bool:
        """Whether the floors hold without so much of some services."""
        return all(amount <= self.spared(service) for service, amount in needs.items())

    def spared(self, service: int) -> int:
        """Return what can be missed of a service by what has ended."""
        return self.slack[service] - self.withheld[service]

    def can_take(self, gpu: int) -> bool:
        """Whether something may be put on a GPU now, without too many being in use."""
        return gpu not in self.busy and (bool(self.gpus[gpu].held) or self.in_use < self.most)

    def urgency(self, service: int) -> float:
        """Return how much of a floor still has to come before all that goes can go."""
        if service < 0:
            return -2.0
        weight = self.goal.weight[service]
        goes = sum(supply * n for (supply, _), n in self.going[service].items())
        return (goes - self.slack[service]) * weight if weight else -1.5

    def layout_urgency(self, use: int) -> float:
        """Return how much waits for what a layout has places for."""
        return sum(
            max([0.0, *(self.urgency(self.goal.uses[u].service) for u in self.need[pool])])
            for pool in self.goal.layouts[~use].pools
        )

    def share_out(self, at: int, *, is_random: bool = False) -> dict[Pool, int] | None:
        """Say how many layouts of each pool a batch takes; None if it cannot, or can wait.

        As many as are left and fit, or some at random; what is left must have room elsewhere.
        """
        own = Counter(self.goal.pools[at])
        found, spare, rng = dict[Pool, int](), self.most - self.in_use, self.settings.rng
        for pool, size in own.items():
            left = len(self.need.get(pool, ()))
            least, most = max(0, left - self.room[pool] + size), min(size, left)
            if is_random and rng is not None and rng.random() < 0.5 and most:
                most = rng.randint(max(least, 1), most)
            used = sum(
                bool(self.gpus[gpu].held) and self.goal.layout_pool[gpu] == pool
                for gpu in self.goal.batches[at]
            )
            found[pool] = max(least, min(most, used + max(0, spare)))
            spare -= max(0, found[pool] - used)
        return found if any(found.values()) and spare >= 0 else None

    # --- what is done -----------------------------------------------------------------------------

    def fill(self, number: int, use: int | None) -> None:
        """Have something come to an opening; what is in its way goes."""
        opening, blockage = self.goal.openings[number], self.blockages[number]
        assert blockage is not None
        gpu = opening.gpus[0]
        if opening.batch >= 0:
            self.repartition(opening.batch, self.share_out(opening.batch, is_random=True), use)
            return
        self._close(number)
        if opening.switched is not None:
            come = () if number in self.moved else opening.switched
            every = [self.goal.track(gpu, each, goes=False) for each in come]
            self._change(What.SWITCH, gpu, [each for _, each in blockage.gone], every)
            return
        assert opening.instance is not None
        new = self._take(gpu, opening.instance, opening.pool, use)
        if blockage.is_restart:
            self._restart(gpu, blockage.gone[0][1], new)
            return
        for _, each in blockage.gone:
            self._change(What.DELETE, gpu, (each,), ())
        mode = self.goal.ends[gpu].mode
        if self.gpus[gpu].mode is not mode:
            self._change(What.REPARTITION, gpu, (), (), mode)
        self._change(What.CREATE, gpu, (), (new,))

    def _take(
        self, gpu: int, instance: Instance, pool: Pool, use: int | None = None
    ) -> TrackedInstance:
        """Return an instance that is wanted, with a use of its pool, or with what waits most."""
        need, uses = self.need[pool], self.goal.uses
        if use is None:
            use = max(need, key=lambda u: (self.urgency(uses[u].service), uses[u].supply))
        _add(need, use, -1)
        if instance.work is not uses[use].work:
            instance = replace(instance, work=uses[use].work)
        return self.goal.track(gpu, instance, goes=False)

    def _restart(self, gpu: int, old: TrackedInstance, new: TrackedInstance) -> None:
        known = old.instance
        instance = replace(
            new.instance, gpu_instance=known.gpu_instance, uuid=known.uuid, is_guessed=False
        )
        self._change(What.RESTART, gpu, (old,), (new._replace(instance=instance),))

    def cover(self, cover: Cover) -> None:
        """Have temporary instances come."""
        goal = self.goal
        if cover.opening >= 0:
            (home,) = goal.openings[cover.opening].gpus
            self.moved |= {cover.opening}
            going = (each._replace(goes=each.instance.is_managed) for each in self.gpus[home].held)
            self.gpus[home] = hold(going, self.gpus[home].mode)
            ((gpu, _), *_) = cover.places
            come = [goal.track(gpu, each, goes=False) for _, each in cover.places]
            self._change(What.SWITCH, gpu, (), come)
            self._refresh(home)
            return
        if goal.is_whole and cover.old is None:
            self._begin_group(goal.batch_of[cover.places[0][0]])
        for gpu in dict.fromkeys(gpu for gpu, _ in cover.places):
            come = [goal.track(gpu, each, goes=True) for on, each in cover.places if on == gpu]
            if cover.old is not None:
                self._restart(gpu, cover.old, come[0])
            else:
                self._change(What.REPARTITION if goal.is_whole else What.CREATE, gpu, (), come)
        self._group = 0

    def remove(self, gone: Sequence[tuple[int, TrackedInstance]]) -> None:
        """Have instances go that go at once."""
        for gpu, each in gone:
            at = self.find_batch(gpu)
            if at >= 0:
                self.repartition(at)
                return
            if self.goal.is_whole and self.goal.cards[gpu].mode is Mode.MIG:
                idle = replace(each.instance, work=None, state=State.RUNNING)
                self._restart(gpu, each, self.goal.track(gpu, idle, goes=False))
            else:
                self._change(What.DELETE, gpu, (each,), ())

    def repartition(
        self, at: int, take: dict[Pool, int] | None = None, use: int | None = None
    ) -> None:
        """Repartition the GPUs of a batch for layouts of each pool, for `use` alone, or for none.

        What waits most comes; all else on them goes.
        """
        goal, gpus = self.goal, self.goal.batches[at]
        self._begin_group(at)
        left = Counter(take or {})
        fills = set[int]()
        # what is in use already is filled first: so fewer are in use in the end
        for gpu in sorted(gpus, key=lambda gpu: (not self.gpus[gpu].held, gpu)):
            if left[goal.layout_pool[gpu]] > 0:
                left[goal.layout_pool[gpu]] -= 1
                fills.add(gpu)
        # what is filled is in use while what is cleared still is
        for gpu in sorted(gpus, key=lambda n: (bool(self.gpus[n].held), n not in fills, n)):
            self._fill_gpu(gpu, use if len(gpus) == 1 else None, is_filled=gpu in fills)
        self._group = 0
        for number in list(self.blockages):
            other = goal.openings[number].batch
            if other >= 0 and ((other == at and fills) or not self._is_wanted(other)):
                self._close(number)
        if fills:
            self.room.subtract(goal.pools[at])
            self.filled |= {at}

    def _fill_gpu(self, gpu: int, use: int | None, *, is_filled: bool) -> None:
        state, come, is_as_cut = self.gpus[gpu], list[TrackedInstance](), False
        held, mode = state.held, state.mode
        if is_filled:
            need = self.need[self.goal.layout_pool[gpu]]
            if use is None:
                use = max(need, key=lambda use: (self.layout_urgency(use), use))
            _add(need, use, -1)
            mode, instances, pools, is_movable = self.goal.layouts[~use]
            pairs = zip(instances, pools, strict=True)
            come = [self._take(gpu, instance, pool) for instance, pool in pairs]
            places = sorted(each.instance.place for each in held if each.instance.is_whole)
            is_same = places == sorted(each.place for each in instances) and mode is state.mode
            is_as_cut = is_same and not is_movable and len(places) == len(held)
        if is_as_cut:  # all stops, and starts again
            for old in held:
                new = next(each for each in come if each.instance.place == old.instance.place)
                come.remove(new)
                self._restart(gpu, old, new)
        elif held or come:
            self._change(What.REPARTITION, gpu, held, come, None if mode is state.mode else mode)

    def _begin_group(self, at: int) -> None:
        tool = self.goal.tool
        if len(self.goal.batches[at]) > 1 or (tool is not None and tool.drains_nodes):
            self._group = 1 + len(self.actions)

    def _is_wanted(self, at: int) -> bool:
        return any(self.need.get(pool) for pool in self.goal.pools[at])

    def _close(self, number: int) -> None:
        del self.blockages[number]
        self.free.discard(number)
        for gpu in self.goal.openings[number].gpus:
            self.open_on[gpu] = tuple(each for each in self.open_on[gpu] if each != number)

    def _look_at(self, number: int) -> None:
        """Find out what is in the way of an opening."""
        opening = self.goal.openings[number]
        if number in self.moved:
            opening = opening._replace(switched=())
        self.blockages[number] = found = self.goal.find_blockage(self.gpus, opening)
        (self.free.add if found is not None and found.is_free else self.free.discard)(number)

    def _refresh(self, gpu: int) -> None:
        for number in self.open_on.get(gpu, ()):
            self._look_at(number)

    def _change(
        self,
        what: What,
        gpu: int,
        gone: Sequence[TrackedInstance],
        come: Sequence[TrackedInstance],
        mode: Mode | None = None,
    ) -> None:
        state, source = self.gpus[gpu], self.goal.cards[gpu]
        held = list(state.held)
        for each in gone:
            held.remove(each)
            self._count(each, -1)
        for each in come:
            held.append(each)
            self._count(each, 1)
        self.in_use += bool(held) - bool(state.held)
        self.gpus[gpu] = hold(held, mode or state.mode)
        self._refresh(gpu)
        if what is What.RESTART and gone[0].instance.work is None is come[0].instance.work:
            return  # it idles, and goes on
        removes, adds = (tuple(each.instance for each in part) for part in (gone, come))
        self.actions.append(Action(what, source.node, source.index, removes, adds, mode=mode))
        self.groups.append(self._group)

    def _count(self, each: TrackedInstance, by: int) -> None:
        """Take note that an instance has come, or has gone."""
        if each.supply:
            self.slack[each.service] += by * each.supply
            if each.goes:
                going = self.going[each.service] = dict(self.going[each.service])
                _add(going, (each.supply, each.slots.bit_count()), by)


def _add(counts: dict[T, int], key: T, by: int) -> None:
    """Count something; what there is none of is left out."""
    counts[key] = counts.get(key, 0) + by
    if not counts[key]:
        del counts[key]
