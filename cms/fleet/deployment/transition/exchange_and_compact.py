"""Exchange and compact: the controller of MIG-serving (arXiv 2109.11067), to compare with.

What its description leaves open is decided here: a new instance is paired with old ones of its
service by largest first; rooms are by best fit over legal layouts, the GPU with fewest free slots
first and empty ones last; target GPUs are walked by largest overlap with what is there. Its
sequence then goes through the same order and the same check as ours: only the planning differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ....solving.solution import Proof
from ....values.numbers import Number
from ..instance import Instance, Mode, Work
from ..model import Deployment, FleetGpu
from ..placing import place
from ..recounting import recounted
from ..unplaceable import Unplaceable
from ..wanted import Wanted
from .durations import Durations
from .floors import floors_of
from .model import Action, Kept, Transition, What
from .planning import Impossible, arrived, checked
from .shortening import shortened

__all__ = ["exchange_and_compact"]

#: Content of a GPU: how many instances of each profile and work.
_Content = Counter[tuple[str, Work]]


def exchange_and_compact(
    start: Deployment,
    wanted: Wanted,
    *,
    floor: Number = 1,
    durations: Durations | None = None,
    max_parallel: int | None = None,
) -> Transition | Impossible:
    """Plan the way to a plan's own groups by exchange and compact.

    Parameters
    ----------
    start : Deployment
    wanted : Wanted
        With a plan, whose groups say what lies on one GPU.
    floor, durations, max_parallel
        As for `transition`.

    Returns
    -------
    Transition or Impossible
        The latter if the fleet has too few empty GPUs for what it borrows.
    """
    start = recounted(start, wanted.services, wanted.rule, [kind.work for kind in wanted.counts])
    placed = place(wanted, start.with_gpus(_emptied(start)), as_grouped=True)
    if isinstance(placed, Unplaceable):
        return Impossible(placed.reasons, placed.proof)
    contents = [content for card in placed.deployment.gpus() if (content := _content(card))]
    walk = _Walk(start)
    if not (walk.exchange(sum(contents, _Content())) and walk.compact(contents)):
        return Impossible(("it borrows more GPUs than the fleet has",), Proof.NONE)
    target, kept = arrived(start, placed.deployment, walk.actions)
    floors = floors_of(start, target, floor)
    before = max(len(start.used_gpus()), len(target.used_gpus()))
    _, actions = shortened(
        start, walk.actions, floors, walk.most, durations or Durations(), max_parallel
    )
    most = Kept(kept, sum((start.kinds() & Counter(wanted.counts)).values()), Proof.NONE)
    return checked(start, target, floors, actions, walk.most - before, most)


def _emptied(start: Deployment) -> Mapping[tuple[str, int], FleetGpu]:
    return {
        (card.node, card.index): card.with_instances(card.pinned)
        for card in start.gpus()
        if not card.is_empty
    }


def _content(card: FleetGpu) -> _Content:
    return _Content(
        (each.profile, each.work)
        for each in card.instances
        if each.is_ours and each.work is not None
    )


class _Walk:
    """The GPUs, and what has been done to them."""

    def __init__(self, start: Deployment) -> None:
        self.sources = list(start.gpus())
        self.held = [list(card.instances) for card in self.sources]
        self.actions: list[Action] = []
        self.most = sum(bool(held) for held in self.held)
        for gpu, held in enumerate(self.held):  # what does nothing makes room first
            for each in [*held]:
                if each.is_ours and each.work is None:
                    self.delete(gpu, each)

    # --- the fleet's multiset becomes the target's, on too many GPUs

    def exchange(self, wanted: _Content) -> bool:
        """Create what is new before what it replaces is deleted; False if there is no room."""
        there = _Content()
        for gpu in range(len(self.sources)):
            there.update(self._here(gpu))
        new, old = list((wanted - there).elements()), list((there - wanted).elements())
        for kind in sorted(new, key=_largest):
            replaced, rest = [], kind[1].supply_rps
            for each in sorted(old, key=_largest):
                if each[1].service == kind[1].service and each[1].supply_rps <= rest:
                    replaced.append(each)
                    rest -= each[1].supply_rps
            if replaced:
                if not self.create_anywhere(kind):
                    return False
                new.remove(kind)
                for each in replaced:
                    old.remove(each)
                    self.delete_somewhere(each)
        for kind in sorted(new, key=_largest):
            if not self.create_anywhere(kind):
                return False
        for each in old:
            self.delete_somewhere(each)
        return True

    # --- then GPU by GPU becomes one of the target's

    def compact(self, contents: list[_Content]) -> bool:
        """Have each content on a GPU; False if there is no room."""
        left = list(contents)
        done: set[int] = set()
        while left:
            gpu, content = max(
                (
                    (gpu, content)
                    for gpu in range(len(self.sources))
                    if gpu not in done
                    for content in left
                    if self._can_hold(gpu, content)
                ),
                key=lambda pair: (
                    (self._here(pair[0]) & pair[1]).total(),
                    -(self._here(pair[0]) - pair[1]).total(),
                    bool(self.held[pair[0]]),
                    -pair[0],
                ),
            )
            if not self._fill(gpu, content, done):
                return False
            done.add(gpu)
            left.remove(content)
        return all(gpu in done or not self._here(gpu) for gpu in range(len(self.sources)))

    def _can_hold(self, gpu: int, content: _Content) -> bool:
        card = self.sources[gpu]
        pinned = [(each.profile, each.start or 0) for each in card.pinned]
        counts = Counter(profile for profile, _ in content.elements())
        return card.mode is Mode.MIG and card.gpu.place(counts, around=pinned) is not None

    def _fill(self, gpu: int, content: _Content, done: set[int]) -> bool:
        """Give a GPU its content: what is not of it goes elsewhere, what lacks is pulled in."""
        stay, lacks = self._stays(gpu, content)
        for each in [e for e in self.held[gpu] if e.is_ours and e not in stay]:
            if not self.create_anywhere((each.profile, _work(each)), done | {gpu}):
                return False
            self.delete(gpu, each)
        card = self.sources[gpu]
        around = [(each.profile, each.start or 0) for each in self.held[gpu]]
        layout = card.gpu.place(Counter(profile for profile, _ in lacks), around=around)
        assert layout is not None
        for spot in layout:
            kind = next(each for each in lacks if each[0] == spot.profile)
            lacks.remove(kind)
            self.create(gpu, Instance(spot.profile, spot.start, kind[1]))
            self.delete_somewhere(kind, done | {gpu})
        return True

    def _stays(self, gpu: int, content: _Content) -> tuple[list[Instance], list[tuple[str, Work]]]:
        """Choose the instances that can stay where they are, so that the rest has a place."""
        card = self.sources[gpu]
        left, stay = Counter(content), [each for each in self.held[gpu] if not each.is_ours]
        for each in self.held[gpu]:
            if not each.is_ours or each.work is None or not left[(each.profile, each.work)]:
                continue
            rest = Counter(left)
            rest[(each.profile, each.work)] -= 1
            around = [(e.profile, e.start or 0) for e in (*stay, each)]
            counts = Counter(profile for profile, _ in rest.elements())
            if card.gpu.place(counts, around=around) is not None:
                stay.append(each)
                left = rest
        return stay, list(left.elements())

    # --- actions

    def _here(self, gpu: int) -> _Content:
        return _content(replace(self.sources[gpu], instances=tuple(self.held[gpu])))

    def create_anywhere(self, kind: tuple[str, Work], shut: set[int] | None = None) -> bool:
        """Create an instance on the GPU with fewest free slots that has room."""
        best: tuple[tuple[bool, int, int], int] | None = None
        for gpu, card in enumerate(self.sources):
            if card.mode is not Mode.MIG or (shut and gpu in shut):
                continue
            if not _has(card, kind[0]):
                continue
            held = self.held[gpu]
            starts = card.gpu.room([(e.profile, e.start or 0) for e in held], kind[0])
            if starts:
                taken = sum(card.gpu.profile(each.profile).memory for each in held)
                score = not held, card.gpu.memory_slices - taken, gpu
                if best is None or score < best[0]:
                    best = score, starts[-1]
        if best is None:
            return False
        self.create(best[0][2], Instance(kind[0], best[1], kind[1]))
        return True

    def delete_somewhere(self, kind: tuple[str, Work], shut: set[int] | None = None) -> None:
        """Delete an instance from the least filled GPU that has one."""
        found = [
            (len(self.held[gpu]), gpu, each)
            for gpu in range(len(self.sources))
            if not (shut and gpu in shut)
            for each in self.held[gpu]
            if each.is_ours and (each.profile, each.work) == kind
        ]
        _, gpu, each = min(found, key=lambda one: one[:2])
        self.delete(gpu, each)

    def create(self, gpu: int, instance: Instance) -> None:
        """Create an instance."""
        card = self.sources[gpu]
        self.held[gpu].append(instance)
        self.most = max(self.most, sum(bool(held) for held in self.held))
        self.actions.append(Action(What.CREATE, card.node, card.index, adds=(instance,)))

    def delete(self, gpu: int, instance: Instance) -> None:
        """Delete an instance."""
        card = self.sources[gpu]
        self.held[gpu].remove(instance)
        self.actions.append(Action(What.DELETE, card.node, card.index, removes=(instance,)))


def _has(card: FleetGpu, profile: str) -> bool:
    return any(each.name == profile for each in card.gpu.profiles)


def _work(instance: Instance) -> Work:
    assert instance.work is not None
    return instance.work


def _largest(kind: tuple[str, Work]) -> tuple[float, str]:
    return -float(kind[1].supply_rps), kind[0]
