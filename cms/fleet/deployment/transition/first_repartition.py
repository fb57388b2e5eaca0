"""How many empty GPUs are needed at least where whole GPUs are cut anew: proved by prices.

Theorem. Consider transitions whose actions give instances other work in place, or cut a whole GPU
anew, all that is on it stopping for that (and all that works on its node, where nodes are drained).
Let what is wanted have no room on the GPUs in use as they are cut and on e empty ones. Then every
such transition that has e empty GPUs to use at a time cuts a GPU in use anew; look at the first.
Until that is done, all other GPUs in use are as they are cut, and do whatever is best; at most e
more are in use; and it has nothing that is not ours. Let every service have a price, an instance
the worth of the best that it can do, and a GPU the worth of its best layout. If the floors are
worth more than all the other GPUs' instances and e empty GPUs, some service is below its floor. So
e must be larger; whichever GPU is the first. ∎

Where nodes are drained, look at the first node in use that is. Until then an empty GPU is cut only
on a node of which nothing is in use: there are so many of them and no more, however many GPUs may
be lent. If e has to be larger than that, there is no transition at all.

What instances can do are the points that the transition names, on any instance of their profile;
what is not ours stays, and what starts counts as if it ran. All of it is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from math import ceil

from ....errors import InvalidOption
from ...hardware import Gpu
from ...serving.measurements import is_measured_on
from ..instance import Instance, Mode, State, Work
from ..model import Deployment, FleetGpu
from .ground import works_of
from .model import Action, FirstCut, Floor, Transition, What

__all__ = ["Block", "Cutting", "first_repartition_fault"]

#: The key of a GPU and the name of a profile.
Block = tuple[str, str]


class Cutting:
    """All that a proof about the first GPU to be cut anew speaks of.

    Parameters
    ----------
    start, target : Deployment
        On the same GPUs, all cut by MIG.
    floors : Mapping[str, Floor]
    works : iterable of Work
        What instances may do on the way.
    by_node : bool
        Whether all that works on a node stops when a GPU of it is cut anew.

    Attributes
    ----------
    held : dict
        By GPU in use, its instances that are ours.
    owed : dict
        By service with a floor, what ours have to supply of it, in items per second.
    uses : dict
        By block, ``(service, items per second)`` of what an instance of it can do.
    firsts : set
        The GPUs in use, or the nodes of such, of which one can be the first to be cut anew.
    room : int
        With so many empty GPUs nothing in use may have to be cut anew.
    open : int
        Empty GPUs that can be cut before: of nodes that nothing is on, where nodes are drained.
    """

    def __init__(
        self,
        start: Deployment,
        target: Deployment,
        floors: Mapping[str, Floor],
        works: Iterable[Work],
        *,
        by_node: bool,
    ) -> None:
        self.by_node = by_node
        self.devices = start.devices
        cards = [card for card in start.gpus() if card.instances]
        self.held = {(card.node, card.index): Counter(_blocks(card)) for card in cards}
        busy = {card.node for card in cards}
        self.open = sum(
            card.is_empty and not (by_node and card.node in busy) for card in start.gpus()
        )  # fmt: skip
        self.firsts = {self._unit(card.node, card.index) for card in cards if not card.foreign}
        pinned: Counter[str] = Counter()
        for card in cards:
            for each in card.foreign:
                if each.work is not None and each.state in (State.RUNNING, State.STARTING):
                    pinned[each.work.service] += each.work.supply_rps  # type: ignore[assignment]
        self.owed = {
            name: max(Fraction(0), floor.rps - pinned[name]) for name, floor in floors.items()
        }
        self.uses: dict[Block, list[tuple[str, Fraction]]] = {}
        for work in set(works):
            for block in _where(work, self.devices):
                self.uses.setdefault(block, []).append((work.service, work.supply_rps))
        self.room = self._room(target)

    def _unit(self, node: str, index: int) -> str | tuple[str, int]:
        return node if self.by_node else (node, index)

    def blocks(self) -> Counter[Block]:
        """Count the instances that are ours."""
        return sum(self.held.values(), Counter[Block]())

    def _room(self, target: Deployment) -> int:
        """Bound the empty GPUs that hold what is wanted beside what is cut: as one is cut, all."""
        wanted = Counter(
            (card.gpu.key, card.gpu.profile(each.profile).name)
            for card, each in target.instances()
            if each.is_managed and each.work is not None
        )
        lacks = wanted - self.blocks()
        total = 0
        for key, gpu in self.devices.items():
            mine = {gpu.profile(name): n for (own, name), n in lacks.items() if own == key}
            memory = sum(profile.memory * n for profile, n in mine.items())
            compute = sum(profile.compute * n for profile, n in mine.items())
            single = max((-(-n // profile.max) for profile, n in mine.items()), default=0)
            total += max(
                -(-memory // gpu.memory_slices), -(-compute // gpu.compute_slices), single
            )  # fmt: skip
        return total

    def needed(self, prices: Mapping[str, Fraction]) -> int:
        """Return the least number of empty GPUs that prices do not show to be too few.

        Parameters
        ----------
        prices : Mapping[str, Fraction]
            Of an item per second of a service; one without has none.
        """
        worth = {
            block: max(prices.get(service, Fraction(0)) * supply for service, supply in uses)
            for block, uses in self.uses.items()
        }
        total, firsts = Fraction(0), dict.fromkeys(self.firsts, Fraction(0))
        for place, held in self.held.items():
            own, unit = _worth(worth, held), self._unit(*place)
            total += own
            if unit in firsts:
                firsts[unit] += own
        owed = sum(
            (prices.get(name, Fraction(0)) * rps for name, rps in self.owed.items()), Fraction(0)
        )
        if not firsts:
            return self.room
        lack = owed - total + min(firsts.values())
        if lack <= 0:
            return 0
        best = max((_best(gpu, key, worth) for key, gpu in self.devices.items()), default=0)
        return min(self.room, ceil(lack / best)) if best else self.room


def _blocks(card: FleetGpu) -> Iterator[Block]:
    return (
        (card.gpu.key, card.gpu.profile(each.profile).name)
        for each in card.instances
        if each.is_managed
    )


def _where(work: Work, devices: Mapping[str, Gpu]) -> Iterator[Block]:
    """Iterate over what can do some work; shares of a GPU are no profiles of it."""
    for key, gpu in devices.items():
        if is_measured_on(work.point, gpu):
            with suppress(InvalidOption):
                yield key, gpu.profile(work.point.profile).name


def _worth(worth: Mapping[Block, Fraction], held: Mapping[Block, int]) -> Fraction:
    return sum((n * worth.get(block, Fraction(0)) for block, n in held.items()), Fraction(0))


def _best(gpu: Gpu, key: str, worth: Mapping[Block, Fraction]) -> Fraction:
    """Return the worth of the best layout of a GPU."""
    profiles = sorted(name for own, name in worth if own == key)
    return max(
        _worth(worth, Counter((key, name) for name, _ in layout))
        for layout in gpu.maximal_layouts_around((), profiles)
    )


def first_repartition_fault(transition: Transition, most: int, proof: FirstCut) -> str:
    """Say why a proof does not hold; nothing if it does.

    Parameters
    ----------
    transition : Transition
    most : int
        So many GPUs may be in use at once.
    proof : FirstCut
    """
    start, target = transition.start, transition.target
    if any(card.mode is not Mode.MIG for side in (start, target) for card in side.gpus()):
        return "nothing is proved of GPUs that are not cut by MIG"
    if fault := _kind_fault(transition, by_node=proof.by_node):
        return fault
    if unknown := sorted(proof.prices.keys() - transition.floors.keys()):
        return f"{unknown[0]} has a price, and no floor"
    works = works_of(transition)
    cutting = Cutting(start, target, transition.floors, works, by_node=proof.by_node)
    needed, empty = cutting.needed(proof.prices), most - len(start.used_gpus())
    if needed > empty:
        return ""
    return f"by its prices {needed} empty GPUs may do, and {empty} could be used"


def _kind_fault(transition: Transition, *, by_node: bool) -> str:
    """Say why a transition is not of those of which something is proved."""
    for at, action in enumerate(transition.actions):
        if action.what not in (What.RESTART, What.REPARTITION) or action.mode is not None:
            return f"action {at} ({action}) cuts a part of a GPU, or changes its mode"
    if by_node and (left := _goes_on(transition)) is not None:
        return f"{left} goes on while its node is drained"
    return ""


def _goes_on(transition: Transition) -> Instance | None:
    """Return an instance that works on while a GPU of its node is cut anew.

    All that happens on a drained node waits for the same.
    """
    held = {(card.node, card.index): Counter(card.instances) for card in transition.start.gpus()}
    together: dict[tuple[str, tuple[int, ...]], list[Action]] = {}
    for action in transition.actions:
        together.setdefault((action.node, action.after), []).append(action)
    seen = set[tuple[str, tuple[int, ...]]]()
    for action in transition.actions:
        step = action.node, action.after
        own = together[step]
        if step not in seen and any(each.what is What.REPARTITION for each in own):
            left = {place: there.copy() for place, there in held.items() if place[0] == action.node}
            for each in own:
                left[each.gpu].subtract(each.removes)
            for there in left.values():
                for instance, n in there.items():
                    if n > 0 and instance.is_managed and instance.work is not None:
                        return instance
        seen.add(step)
        held[action.gpu].subtract(action.removes)
        held[action.gpu].update(action.adds)
    return None
