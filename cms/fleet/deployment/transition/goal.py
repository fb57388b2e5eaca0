"""What a transition has to do, in whole numbers: what stays, goes and comes on each GPU.

A tool says what can happen at once. ``nvidia-smi`` creates and deletes single instances, and
restarts them in place. ``mig-parted`` repartitions a GPU; the GPU Operator and Slurm repartition
GPUs of a node, on which everything stops meanwhile. With these, work on GPUs that stay as they are
cut restarts in place. Without a tool, processes under MPS are switched.

Supplies and floors are scaled so that nothing is rounded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import lcm
from operator import or_
from typing import NamedTuple

from ....errors import InvalidProblem
from ..checking import check_gpu
from ..instance import UNKNOWN_OWNER, WHOLE, Instance, Mode, StartSource, Work
from ..model import Deployment, FleetGpu
from ..recounting import outdated
from .model import Floor, slots_of
from .whole_gpus import PartitioningTool, foreign_error, has_equal_counts, is_kept

#: What is interchangeable: instances or layouts that any of several places can have.
Pool = Hashable


class Use(NamedTuple):
    """What an instance can be used for: a service (-1: it idles) and its scaled supply."""

    gpu: str
    profile: str
    service: int
    supply: int
    work: Work | None
    slots: int  # as bits, at start 0


class TrackedInstance(NamedTuple):
    """An instance on a GPU."""

    instance: Instance
    slots: int  # as bits
    service: int  # -1 if it supplies nothing
    supply: int  # what it supplies, or will once it runs
    goes: bool  # whether it is not there at the end


class GpuState(NamedTuple):
    """A GPU now."""

    held: tuple[TrackedInstance, ...]
    slots: int
    mode: Mode


class TargetLayout(NamedTuple):
    """What a GPU is to be repartitioned for."""

    mode: Mode
    instances: tuple[Instance, ...]
    pools: tuple[Pool, ...]  # of each instance
    is_movable: bool  # whether it may come to other GPUs


class Opening(NamedTuple):
    """Where something is to come.

    An instance at its place, with any use of a pool; the layouts of a batch; or, where `switched`
    is not None, processes beside those that stay on a GPU.
    """

    gpus: tuple[int, ...]  # on which something stops, or comes
    slots: int = 0
    instance: Instance | None = None
    pool: Pool = None
    batch: int = -1
    switched: tuple[Instance, ...] | None = None


class Blockage(NamedTuple):
    """What has to go before something comes to an opening."""

    gone: tuple[tuple[int, TrackedInstance], ...]  # each with its GPU
    needs: dict[int, int]  # what the floors must be able to miss, by service
    is_restart: bool = False  # whether the one that goes is in the very place

    @property
    def is_free(self) -> bool:
        """Whether nothing has to go, but perhaps what does nothing and takes up work in place."""
        return not self.gone or (self.is_restart and not self.needs and not self.gone[0][1].goes)


@dataclass
class TransitionGoal:
    """What does not change on the way.

    `start`, `target`: With supplies counted alike. `is_late`: Whether any wanted instance of a
    profile may take any place of it, and any layout any GPU that can have it; otherwise each has
    its own. `tool`: None switches processes. `is_wide`: Whether nodes may be drained of which the
    target has all GPUs as they are cut. `given_up`: An instance that could stay, and goes to come
    again.
    """

    start: Deployment
    target: Deployment
    floors: Mapping[str, Floor]
    is_late: bool
    tool: PartitioningTool | None = PartitioningTool.NVIDIA_SMI
    is_wide: bool = False
    given_up: tuple[FleetGpu, Instance] | None = None

    def __post_init__(self) -> None:
        self.cards, self.ends = list(self.start.gpus()), list(self.target.gpus())
        self._scale_services()
        self.cuts_parts = self.tool is PartitioningTool.NVIDIA_SMI
        self.is_whole = self.tool is not None and not self.cuts_parts
        self.number = {(card.node, card.index): n for n, card in enumerate(self.cards)}
        self._fits: dict[tuple[str, Mode, tuple[str, ...]], bool] = {}
        self.uses: list[Use] = []
        self._use: dict[tuple[str, str, Work | None], int] = {}
        #: The profiles that each GPU's node can cut.
        self.allowed = [
            frozenset(p.name for p in card.gpu.profiles if self.start.node(card.node).offers(p))
            for card in self.cards
        ]
        self.openings: list[Opening] = []
        #: By pool: ``{use: how many are wanted}``; of a pool of layouts, ``{~number: 1}``.
        self.needs = defaultdict[Pool, dict[int, int]](dict)
        self.layouts: list[TargetLayout] = []
        self.batches: list[tuple[int, ...]] = []  # GPUs that are repartitioned at once
        self.batch_of: dict[int, int] = {}  # by GPU that is repartitioned as a whole
        self.layout_pool: dict[int, Pool] = {}  # by such GPU; None: no layout comes to it
        self.pools: list[tuple[Pool, ...]] = []  # by batch, those of its GPUs
        self.firsts: list[GpuState] = []
        if self.is_whole:
            self._group_gpus()
        for number, (card, end) in enumerate(zip(self.cards, self.ends, strict=True)):
            if number in self.batch_of:
                every = (self.track(number, each, goes=True) for each in card.instances)
                self.firsts.append(hold(every, card.mode))
            else:
                self._compare(number, card, end)
        self.openings += [Opening(gpus, batch=at) for at, gpus in enumerate(self.batches)]
        for card, each in self.start.instances():
            self._use_of(card, each)
        #: By service, the uses of instances of MIG that supply it within the new limits.
        self.covers: list[list[int]] = [[] for _ in self.services]
        old = outdated(self.start, self.target)
        for number, use in enumerate(self.uses):
            if use.supply and use.slots and use.work not in old:
                self.covers[use.service].append(number)

    def _scale_services(self) -> None:
        both = (*self.start.services, *self.target.services)
        self.services = list(dict.fromkeys(service.name for service in both))
        self._service = {name: number for number, name in enumerate(self.services)}
        #: By service, what its supplies and its floor are multiplied by.
        self._scale = [1] * len(self.services)
        works = (each.work for side in (self.start, self.target) for _, each in side.instances())
        rates = [(work.service, work.supply_rps) for work in works if work is not None]
        for name, rps in (*rates, *((name, floor.rps) for name, floor in self.floors.items())):
            number = self._service[name]
            self._scale[number] = lcm(self._scale[number], rps.denominator)
        self.floor = [
            int(self.floors[name].rps * scale) if name in self.floors else 0
            for name, scale in zip(self.services, self._scale, strict=True)
        ]
        #: What one unit is of a floor; services without one wait for nothing.
        self.weight = [1 / floor if floor else 0.0 for floor in self.floor]

    def count(self, work: Work | None) -> tuple[int, int]:
        """Return the number of the service that work is for, and the scaled supply."""
        if work is None:
            return -1, 0
        number = self._service[work.service]
        return number, int(work.supply_rps * self._scale[number])

    def subtract(self, needs: Mapping[int, int], come: Iterable[Instance]) -> dict[int, int]:
        """Return what is still needed of each service beside what comes."""
        left = Counter(needs)
        for service, supply in (self.count(each.work) for each in come):
            left[service] -= supply
        return {service: left[service] for service in needs if left[service] > 0}

    def _use_of(self, card: FleetGpu, instance: Instance) -> int:
        key = card.gpu.key, instance.profile, instance.work
        if key not in self._use:
            self._use[key] = len(self.uses)
            number, supply = self.count(instance.work)
            slots = slots_of(card.gpu, instance.profile) if card.mode is not Mode.FIXED else 0
            self.uses.append(Use(*key[:2], number, supply, instance.work, slots))
        return self._use[key]

    def track(self, gpu: int, instance: Instance, *, goes: bool) -> TrackedInstance:
        """Return an instance as it counts; one that does not run supplies nothing."""
        card = self.cards[gpu]
        number, supply = self.count(instance.work if instance.supply_rps else None)
        # nothing comes to a GPU that is fixed, whose profiles may not be known
        is_fixed = card.mode is Mode.FIXED
        slots = 0 if is_fixed else slots_of(card.gpu, instance.profile, instance.start)
        return TrackedInstance(instance, slots, number, supply, goes)

    def _want(self, card: FleetGpu, instance: Instance) -> tuple[Pool, Instance]:
        """Note that an instance is wanted; returns its pool, and it as it comes."""
        use = self._use_of(card, instance)
        pool = (card.gpu.key, instance.profile) if self.is_late else use
        self.needs[pool][use] = self.needs[pool].get(use, 0) + 1
        return pool, replace(instance, gpu_instance=None, uuid=None)

    def _compare(self, number: int, card: FleetGpu, end: FleetGpu) -> None:
        """Tell what stays on a GPU from what goes and what is to come."""
        left = list(end.instances)
        is_same_mode = card.mode is end.mode or not left
        in_place = self.is_whole and card.mode is Mode.MIG
        held = []
        for each in card.instances:
            same = next((o for o in left if is_kept(each, o)), None) if is_same_mode else None
            if self.given_up == (card, each):
                same = None
            if same is not None:
                left.remove(same)
            elif not each.is_managed:
                raise InvalidProblem(
                    f"{each} is on {card.name} and not ours, and the target has it no more; "
                    "expected it to stay, or --reclaim"
                )
            # what only becomes idle, in place, does so at the end
            goes = same is None and not (in_place and each.work is None)
            held.append(self.track(number, each, goes=goes))
        is_blind = card.mode is Mode.MIG and card.start_source is StartSource.UNKNOWN
        if is_blind and card.instances and card.counts != end.counts:
            raise InvalidProblem(
                f"the starts of the instances on {card.name} are not known, and it is to be cut "
                "anew; observe it with nvidia-smi mig -lgi"
            )
        self.firsts.append(hold(held, card.mode))
        if self.tool is None:
            if left or any(each.goes for each in held):
                self.openings.append(Opening((number,), switched=tuple(left)))
            return
        for each in left:
            if not each.is_managed:
                raise InvalidProblem(f"the target has {each} on {card.name}, which is not ours")
            if not in_place or each.work is not None:
                slots = slots_of(card.gpu, each.profile, each.start)
                pool, new = self._want(card, each)
                self.openings.append(Opening((number,), slots, new, pool))

    def _group_gpus(self) -> None:
        """Say which GPUs are repartitioned at once, and which layouts may come to which."""
        by_node = self.tool is not None and self.tool.drains_nodes
        nodes: dict[str, list[int]] = {}
        for number, card in enumerate(self.cards):
            told = any((e.profile, e.owner) != (WHOLE, UNKNOWN_OWNER) for e in card.instances)
            if card.mode is not Mode.FIXED or told:  # else nothing is known to be on it
                nodes.setdefault(card.node, []).append(number)
        anew = {
            n for n, (card, end) in enumerate(zip(self.cards, self.ends, strict=True))
            if (card.instances or end.instances) and not has_equal_counts(card, end)
            if card.mode is not end.mode or card.mode is Mode.MIG
        }  # fmt: skip
        resets = {
            card.node for card, end in zip(self.cards, self.ends, strict=True)
            if card.mode is not end.mode and Mode.MIG in (card.mode, end.mode)
            if card.gpu.mode_change_needs_reset is not False and (card.instances or end.instances)
        }  # fmt: skip
        movable = self._list_movable_nodes(nodes, anew) if by_node and self.is_late else set()
        for name, every in nodes.items():
            own = [n for n in every if n in anew]
            free = [n for n in every if self.cards[n].leaves_mode and self.ends[n].leaves_mode]
            if name in movable or (own and by_node) or name in resets:
                self._add_batch(every, is_late=name in movable)
            elif not by_node:
                for n in sorted({*own, *free}):
                    self._add_batch([n], is_late=self.is_late)
            elif len(free) == len(every):
                self._add_batch(every, is_late=self.is_late)

    def _list_movable_nodes(self, nodes: Mapping[str, Sequence[int]], anew: set[int]) -> set[str]:
        """Return nodes that are drained, and on which no GPU changes its mode."""
        found = {self.cards[n].node for n in anew}
        if self.is_wide:
            foreign = {card.node for card in self.cards if card.foreign}
            works = {end.node for end in self.ends if end.instances}
            found |= works.union(card.node for card in self.cards if card.instances) - foreign
        return {
            name for name in found
            if all(self.cards[n].mode is self.ends[n].mode is Mode.MIG for n in nodes[name])
        }  # fmt: skip

    def _add_batch(self, gpus: Sequence[int], *, is_late: bool) -> None:
        for card, each in ((self.cards[n], each) for n in gpus for each in self.cards[n].foreign):
            raise foreign_error(card, each, "is drained")
        for n in gpus:
            card, end = self.cards[n], self.ends[n]
            self.batch_of[n] = len(self.batches)
            is_movable = is_late and card.mode is end.mode
            is_wanted = bool(end.instances)
            if is_movable and self.tool is not PartitioningTool.MIG_PARTED:
                is_wanted = any(each.work for each in end.instances)  # what idles need not come
            self.layout_pool[n] = None
            if is_movable or is_wanted:
                key = (card.gpu.key, card.mode, self.allowed[n]) if is_movable else n
                self.layout_pool[n] = "layouts", key
                need = self.needs[self.layout_pool[n]]
                if is_wanted:
                    pools, come = zip(*(self._want(card, e) for e in end.instances), strict=True)
                    need[~len(self.layouts)] = 1
                    self.layouts.append(TargetLayout(end.mode, come, pools, is_movable))
        self.batches.append(tuple(gpus))
        self.pools.append(tuple(self.layout_pool[n] for n in gpus))

    def fits(self, number: int, state: GpuState, profile: str, slots: int) -> bool:
        """Whether an instance has a place beside what is on a GPU, whose mode is right."""
        if slots & state.slots:
            return False
        gpu = self.cards[number].gpu
        profiles = tuple(sorted([profile, *(each.instance.profile for each in state.held)]))
        key = gpu.key, state.mode, profiles
        if key not in self._fits:  # disjoint as they are, they can break the other rules alone
            every = tuple(map(Instance, profiles))
            card = FleetGpu("", 0, gpu, state.mode, every, start_source=StartSource.UNKNOWN)
            self._fits[key] = not check_gpu(card)
        return self._fits[key]

    def find_blockage(self, states: Sequence[GpuState], opening: Opening) -> Blockage | None:
        """Say what has to go before an opening is filled; None if what stays is in its way."""
        if opening.instance is None:
            stops = opening.switched is None  # what stays as well
            every = [(gpu, each) for gpu in opening.gpus for each in states[gpu].held]
            gone = tuple(one for one in every if stops or one[1].goes)
            needs = sum_supplies(each for _, each in gone)
            return Blockage(gone, self.subtract(needs, opening.switched or ()))
        (number,), slots, instance = opening.gpus, opening.slots, opening.instance
        state = states[number]
        held = state.held
        if state.mode is not self.ends[number].mode:
            blockers = list(held)
        elif instance.start is None and state.mode is Mode.MIG:  # as cut: work changes in place
            alike = (e for e in held if e.instance.profile == instance.profile)
            there = [e for e in alike if e.goes or (self.is_whole and e.instance.work is None)]
            blockers = there[:1]
            if not there:
                return None
        else:
            blockers = [each for each in held if each.slots & slots]
            rest = [each for each in held if not each.slots & slots]
            rest.sort(key=lambda e: (not e.goes, e.instance.profile != instance.profile))
            while not self.fits(number, hold(rest, state.mode), instance.profile, slots):
                if not rest or not rest[0].goes:
                    return None
                blockers.append(rest.pop(0))
        here = blockers[0].instance if len(blockers) == 1 else None
        place = instance.profile, instance.start
        is_restart = here is not None and here.is_whole and (here.profile, here.start) == place
        in_place = self.is_whole and state.mode is Mode.MIG  # where what idles is used as well
        if (in_place and not is_restart) or not all(each.goes or in_place for each in blockers):
            return None
        gone = tuple((number, each) for each in blockers)
        return Blockage(gone, sum_supplies(blockers), is_restart)


def sum_supplies(held: Iterable[TrackedInstance]) -> dict[int, int]:
    """Return what instances supply, by service."""
    found: dict[int, int] = {}
    for each in held:
        if each.supply:
            found[each.service] = found.get(each.service, 0) + each.supply
    return found


def hold(held: Iterable[TrackedInstance], mode: Mode) -> GpuState:
    """Return a GPU with these instances."""
    every = tuple(held)
    return GpuState(every, reduce(or_, (each.slots for each in every), 0), mode)
