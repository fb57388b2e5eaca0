"""A fleet in whole numbers: what is on each GPU, and what stays, goes and comes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....errors import InvalidProblem
from ...hardware import MPS_CLIENTS, Gpu
from ...serving.operating_point import mps_share
from ..instance import WHOLE, Instance, Mode, StartSource, Work
from ..model import FleetGpu
from ..recounting import outdated
from .sides import Sides, goes_on

__all__ = ["Card", "Entry", "Fleet", "Item", "Position", "Use", "made", "supplied"]


class Facts(NamedTuple):
    """What a profile takes of a GPU: its slots as a mask at start 0, and its other rows."""

    slots: int
    compute: int
    most: int
    has_media: bool
    share: int


class Use(NamedTuple):
    """What an instance can be used for: a service (-1: it idles) and its scaled supply."""

    gpu: str
    profile: str
    service: int
    supply: int
    work: Work | None


class Item(NamedTuple):
    """An instance on a GPU."""

    instance: Instance
    slots: int  # as bits
    service: int  # -1 if it supplies nothing
    supply: int  # what it supplies, or will once it runs
    goes: bool  # whether it is not there at the end
    is_temporary: bool = False


class Card(NamedTuple):
    """A GPU now."""

    items: tuple[Item, ...]
    slots: int
    mode: Mode


class Position(NamedTuple):
    """A place that is to be filled, with any use of its pool."""

    gpu: int
    instance: Instance
    slots: int
    pool: int


class Entry(NamedTuple):
    """What has to go before a position can be filled."""

    blockers: tuple[Item, ...]
    needs: tuple[tuple[int, int], ...]  # what they supply, by service
    is_restart: bool  # whether the one blocker is in the very place


@dataclass
class Fleet(Sides):
    """What does not change on the way."""

    #: An instance that could stay, and goes to come again.
    given_up: tuple[FleetGpu, Instance] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.devices = {card.gpu.key: card.gpu for card in self.cards}
        self.number = {(card.node, card.index): n for n, card in enumerate(self.cards)}
        self._facts: dict[tuple[str, str], Facts] = {}
        self.uses: list[Use] = []
        self._use: dict[tuple[str, str, Work | None], int] = {}
        #: The profiles that each GPU's node can cut.
        self.allowed = [
            frozenset(p.name for p in card.gpu.profiles if self.start.node(card.node).offers(p))
            for card in self.cards
        ]
        self.positions: list[Position] = []
        self.needs: list[dict[int, int]] = []
        self.firsts: list[Card] = []
        pools: dict[object, int] = {}
        for number, (card, end) in enumerate(zip(self.cards, self.ends, strict=True)):
            self._read(number, card, end, pools)
        for each in self.start.instances():
            self._use_of(*each)
        self.covers = self._covers()

    def facts(self, gpu: Gpu, name: str) -> Facts:
        """Return what a profile takes."""
        found = self._facts.get((gpu.key, name))
        if found is None:
            share = mps_share(name)
            if name == WHOLE:
                found = Facts(0, 0, 1, False, 100)
            elif share is not None:
                found = Facts(0, 0, MPS_CLIENTS, False, share)
            else:
                own = gpu.profile(name)
                slots = (1 << own.memory) - 1
                found = Facts(slots, own.compute, own.max, own.has_media_engines, 0)
            self._facts[gpu.key, name] = found
        return found

    def slots(self, gpu: Gpu, instance: Instance) -> int:
        """Return the slots of an instance, as bits."""
        if instance.start is None:
            return 0
        return self.facts(gpu, instance.profile).slots << instance.start

    def _use_of(self, card: FleetGpu, instance: Instance) -> int:
        key = card.gpu.key, instance.profile, instance.work
        if key not in self._use:
            self._use[key] = len(self.uses)
            number, supply = self.counted(instance.work)
            self.uses.append(Use(card.gpu.key, instance.profile, number, supply, instance.work))
        return self._use[key]

    def item(self, card: FleetGpu, instance: Instance, *, goes: bool, temporary: bool) -> Item:
        """Return an instance as it counts; one that does not run supplies nothing."""
        number, supply = self.counted(instance.work if instance.supply_rps else None)
        # nothing comes to a GPU that is fixed, whose profiles may not be known
        slots = 0 if card.mode is Mode.FIXED else self.slots(card.gpu, instance)
        return Item(instance, slots, number, supply, goes, temporary)

    def _read(self, number: int, card: FleetGpu, end: FleetGpu, pools: dict[object, int]) -> None:
        """Tell what stays on a GPU from what goes and what is to come."""
        left = list(end.instances)
        same_mode = card.mode is end.mode or not left
        items = []
        for each in card.instances:
            same = next((o for o in left if goes_on(each, o)), None) if same_mode else None
            if self.given_up == (card, each):
                same = None
            if same is not None:
                left.remove(same)
            elif not each.is_managed:
                raise InvalidProblem(
                    f"{each} is on {card.name} and not ours, and the target has it no more; "
                    "expected it to stay, or --reclaim"
                )
            items.append(self.item(card, each, goes=same is None, temporary=False))
        if _is_blind(card) and card.counts != end.counts:
            raise InvalidProblem(
                f"the starts of the instances on {card.name} are not known, and it is to be cut "
                "anew; observe it with nvidia-smi mig -lgi"
            )
        for each in left:
            if not each.is_managed:
                raise InvalidProblem(f"the target has {each} on {card.name}, which is not ours")
            use = self._use_of(card, each)
            key: object = (card.gpu.key, each.profile) if self.is_late else use
            pool = pools.setdefault(key, len(pools))
            if pool == len(self.needs):
                self.needs.append({})
            self.needs[pool][use] = self.needs[pool].get(use, 0) + 1
            self.positions.append(Position(number, each, self.slots(card.gpu, each), pool))
        self.firsts.append(made(items, card.mode))

    def _covers(self) -> list[list[int]]:
        """Return the uses that supply each service within the new limits, MIG's only."""
        found: list[list[int]] = [[] for _ in self.services]
        old = outdated(self.start, self.target)
        for number, use in enumerate(self.uses):
            if use.work in old or mps_share(use.profile) is not None or use.profile == WHOLE:
                continue
            if use.supply:
                found[use.service].append(number)
        return found

    def fits(self, number: int, card: Card, profile: str, slots: int) -> bool:
        """Whether an instance has a place beside what is on a GPU, whose mode is right."""
        gpu = self.cards[number].gpu
        facts = self.facts(gpu, profile)
        if card.mode is not Mode.MIG:
            shares = sum(self.facts(gpu, each.instance.profile).share for each in card.items)
            return shares + facts.share <= 100 and len(card.items) < facts.most
        if slots & card.slots:
            return False
        compute, alike, media = facts.compute, 1, facts.has_media
        for each in card.items:
            own = self.facts(gpu, each.instance.profile)
            compute += own.compute
            alike += each.instance.profile == profile
            if media and own.has_media:
                return False
        return compute <= gpu.compute_slices and alike <= facts.most

    def entry(self, card: Card, position: Position) -> Entry | None:
        """Say what has to go before a position is filled; None if what stays is in its way."""
        number, instance, slots, _ = position
        items = card.items
        if card.mode is not self.ends[number].mode:
            blockers = list(items)
        elif instance.start is None and card.mode is Mode.MIG:  # as cut: work changes in place
            there = [e for e in items if e.goes and e.instance.profile == instance.profile]
            blockers = there[:1]
            if not there:
                return None
        else:
            blockers = [each for each in items if each.slots & slots]
            rest = [each for each in items if not each.slots & slots]
            left = made(rest, card.mode)
            if not self.fits(number, left, instance.profile, slots):
                rest.sort(key=lambda e: (not e.goes, e.instance.profile != instance.profile))
                while rest and rest[0].goes:
                    blockers.append(rest.pop(0))
                    left = made(rest, card.mode)
                    if self.fits(number, left, instance.profile, slots):
                        break
                else:
                    return None
        if not all(each.goes for each in blockers):
            return None
        return Entry(tuple(blockers), supplied(blockers), _is_restart(blockers, instance))


def supplied(items: Iterable[Item]) -> tuple[tuple[int, int], ...]:
    """Return what instances supply, by service."""
    found: dict[int, int] = {}
    for each in items:
        if each.supply:
            found[each.service] = found.get(each.service, 0) + each.supply
    return tuple(found.items())


def made(items: Iterable[Item], mode: Mode) -> Card:
    """Return a GPU with these instances."""
    held = tuple(items)
    slots = 0
    for each in held:
        slots |= each.slots
    return Card(held, slots, mode)


def _is_blind(card: FleetGpu) -> bool:
    return (
        card.mode is Mode.MIG and card.start_source is StartSource.UNKNOWN and bool(card.instances)
    )


def _is_restart(blockers: Sequence[Item], instance: Instance) -> bool:
    if len(blockers) != 1:
        return False
    (one,) = blockers
    here = one.instance
    same = (here.profile, here.start) == (instance.profile, instance.start)
    return same and here.is_whole
