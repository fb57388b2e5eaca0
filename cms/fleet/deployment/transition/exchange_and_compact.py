"""Exchange and compact: the controller of MIG-serving (arXiv 2109.11067), to compare with.

What its description leaves open is decided here: a new instance is paired with old ones of its
service by largest first; rooms are by best fit over legal layouts, the GPU with fewest free slots
first and empty ones last; target GPUs are walked by largest overlap with what is there. Its
sequence then goes through the same order and the same check as ours: only the planning differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ....solving.solution import Proof
from ....values.numbers import Number
from ...placement import PlacementInfeasible, place
from ..instance import Instance, Mode, Work
from ..model import Deployment, FleetGpu
from ..recounting import recounted, with_known_curves
from ..wanted import DesiredState
from .durations import Durations
from .floors import floors_of
from .model import Action, Kept, Transition, What
from .outcome import Impossible, check_result, find_end
from .short_order import find_short_order

__all__ = ["exchange_and_compact"]

#: Content of a GPU: how many instances of each kind, by number.
_Content = Counter[int]


def exchange_and_compact(
    start: Deployment,
    wanted: DesiredState,
    *,
    floor: Number = 1,
    durations: Durations | None = None,
    max_parallel: int | None = None,
) -> Transition | Impossible:
    """Plan the way to a plan's own groups by exchange and compact.

    `wanted`: With a plan, whose groups say what lies on one GPU. `floor`, `durations`,
    `max_parallel`: As for `transition`.

    Returns
    -------
    Transition or Impossible
        The latter if the fleet has too few empty GPUs for what it borrows.
    """
    wanted = with_known_curves(wanted, start)
    start = recounted(start, wanted.services, wanted.rule, [kind.work for kind in wanted.counts])
    empty = {
        (card.node, card.index): card.with_instances(card.foreign)
        for card in start.gpus()
        if not card.is_empty
    }
    placed = place(wanted, start.with_gpus(empty), as_grouped=True)
    if isinstance(placed, PlacementInfeasible):
        return Impossible(placed.reasons, placed.proof)
    walk = _Walk(start)
    contents = [content for card in placed.deployment.gpus() if (content := walk.content(card))]
    if not (walk.exchange(sum(contents, _Content())) and walk.compact(contents)):
        return Impossible(("it borrows more GPUs than the fleet has",), Proof.NONE)
    target, kept = find_end(start, placed.deployment, walk.actions)
    floors = floors_of(start, target, floor)
    before = max(len(start.used_gpus()), len(target.used_gpus()))
    found = find_short_order(
        start, walk.actions, floors, walk.most, durations or Durations(), max_parallel
    )
    most = Kept(kept, sum((start.kinds() & Counter(wanted.counts)).values()), Proof.NONE)
    return check_result(start, target, floors, found.actions, found.gpus - before, most)


#: How well a content goes with what is on a GPU, the largest best: what is there already, less what
#: is in the way, whether the GPU is in use, and its number, negative.
_Overlap = tuple[int, int, bool, int]


class _Walk:
    def __init__(self, start: Deployment) -> None:
        self.sources = list(start.gpus())
        self.kinds: list[tuple[str, Work]] = []  # profile and work, by number
        self._numbers: dict[tuple[str, Work], int] = {}
        self.held = [list(card.instances) for card in self.sources]  # by GPU
        #: By GPU, what of it is ours and at work.
        self.here = [self.content(card) for card in self.sources]
        self.actions: list[Action] = []
        self.most = sum(bool(held) for held in self.held)
        self._overlaps: list[list[_Overlap | None] | None] = [None] * len(self.sources)
        for gpu, held in enumerate(self.held):  # what does nothing makes room first
            for each in [*held]:
                if each.is_managed and each.work is None:
                    self.delete(gpu, each)

    def number(self, instance: Instance) -> int:
        """Return the number of the kind of an instance; -1 if it is not ours, or idle."""
        if not instance.is_managed or instance.work is None:
            return -1
        kind = instance.profile, instance.work
        if kind not in self._numbers:
            self._numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._numbers[kind]

    def content(self, card: FleetGpu) -> _Content:
        """Return what of a GPU is ours and at work."""
        return _Content(n for each in card.instances if (n := self.number(each)) >= 0)

    def _largest(self, kind: int) -> tuple[float, str]:
        profile, work = self.kinds[kind]
        return -float(work.supply_rps), profile

    def exchange(self, wanted: _Content) -> bool:
        """Make the fleet's multiset the target's, what is new first; False if there is no room."""
        there = sum(self.here, _Content())
        new, old = list((wanted - there).elements()), list((there - wanted).elements())
        for kind in sorted(new, key=self._largest):
            work = self.kinds[kind][1]
            replaced, rest = [], work.supply_rps
            for each in sorted(old, key=self._largest):
                other = self.kinds[each][1]
                if other.service == work.service and other.supply_rps <= rest:
                    replaced.append(each)
                    rest -= other.supply_rps
            if replaced:
                if not self.create_anywhere(kind):
                    return False
                new.remove(kind)
                for each in replaced:
                    old.remove(each)
                    self.delete_somewhere(each)
        for kind in sorted(new, key=self._largest):
            if not self.create_anywhere(kind):
                return False
        for each in old:
            self.delete_somewhere(each)
        return True

    def compact(self, contents: list[_Content]) -> bool:
        """Make GPU by GPU one of the target's; False if there is no room."""
        kinds: list[_Content] = []
        for content in contents:
            if content not in kinds:
                kinds.append(content)
        left = [contents.count(content) for content in kinds]
        self._overlaps = [None] * len(self.sources)
        done: set[int] = set()
        while any(left):
            _, gpu, minus_at = max(
                (overlap, gpu, -at)
                for gpu in range(len(self.sources))
                if gpu not in done
                for at, overlap in enumerate(self._overlaps_of(gpu, kinds))
                if left[at] and overlap is not None
            )
            if not self._fill(gpu, kinds[-minus_at], done):
                return False
            done.add(gpu)
            left[-minus_at] -= 1
        return all(gpu in done or not self.here[gpu] for gpu in range(len(self.sources)))

    def _overlaps_of(self, gpu: int, contents: list[_Content]) -> list[_Overlap | None]:
        """Return how well contents go with what is on a GPU; None for those it cannot hold."""
        known = self._overlaps[gpu]
        if known is None:
            here = self.here[gpu]
            size = here.total()
            known = []
            for content in contents:
                overlap = None
                if self._can_hold(gpu, content):
                    there = sum(min(n, content[kind]) for kind, n in here.items())
                    overlap = there, there - size, bool(self.held[gpu]), -gpu
                known.append(overlap)
            self._overlaps[gpu] = known
        return known

    def _can_hold(self, gpu: int, content: _Content) -> bool:
        card = self.sources[gpu]
        pinned = [(each.profile, each.start or 0) for each in card.foreign]
        counts = self._profiles(content)
        return card.mode is Mode.MIG and card.gpu.place(counts, around=pinned) is not None

    def _profiles(self, content: Iterable[int]) -> Counter[str]:
        every = content.elements() if isinstance(content, Counter) else content
        return Counter(self.kinds[kind][0] for kind in every)

    def _fill(self, gpu: int, content: _Content, done: set[int]) -> bool:
        """Give a GPU its content: what is not of it goes elsewhere, what lacks is pulled in."""
        stay, lacks = self._stays(gpu, content)
        for each in [e for e in self.held[gpu] if e.is_managed and e not in stay]:
            if not self.create_anywhere(self.number(each), done | {gpu}):
                return False
            self.delete(gpu, each)
        card = self.sources[gpu]
        around = [(each.profile, each.start or 0) for each in self.held[gpu]]
        layout = card.gpu.place(self._profiles(lacks), around=around)
        assert layout is not None
        for spot in layout:
            kind = next(each for each in lacks if self.kinds[each][0] == spot.profile)
            lacks.remove(kind)
            self.create(gpu, Instance(spot.profile, spot.start, self.kinds[kind][1]))
            self.delete_somewhere(kind, done | {gpu})
        return True

    def _stays(self, gpu: int, content: _Content) -> tuple[list[Instance], list[int]]:
        """Choose the instances that can stay where they are, so that the rest has a place."""
        card = self.sources[gpu]
        left, stay = Counter(content), [each for each in self.held[gpu] if not each.is_managed]
        for each in self.held[gpu]:
            if not left[self.number(each)]:
                continue
            rest = Counter(left)
            rest[self.number(each)] -= 1
            around = [(e.profile, e.start or 0) for e in (*stay, each)]
            if card.gpu.place(self._profiles(rest), around=around) is not None:
                stay.append(each)
                left = rest
        return stay, list(left.elements())

    def create_anywhere(self, kind: int, shut: set[int] | None = None) -> bool:
        """Create an instance on the GPU with fewest free slots that has room."""
        profile, work = self.kinds[kind]
        best: tuple[tuple[bool, int, int], int] | None = None
        for gpu, card in enumerate(self.sources):
            known = {each.name for each in card.gpu.profiles}
            if card.mode is not Mode.MIG or (shut and gpu in shut) or profile not in known:
                continue
            held = self.held[gpu]
            starts = card.gpu.room([(e.profile, e.start or 0) for e in held], profile)
            if starts:
                taken = sum(card.gpu.profile(each.profile).memory for each in held)
                score = not held, card.gpu.memory_slices - taken, gpu
                if best is None or score < best[0]:
                    best = score, starts[-1]
        if best is None:
            return False
        self.create(best[0][2], Instance(profile, best[1], work))
        return True

    def delete_somewhere(self, kind: int, shut: set[int] | None = None) -> None:
        """Delete an instance from the least filled GPU that has one."""
        found = [
            (len(self.held[gpu]), gpu, each)
            for gpu in range(len(self.sources))
            if self.here[gpu][kind] and not (shut and gpu in shut)
            for each in self.held[gpu]
            if self.number(each) == kind
        ]
        _, gpu, each = min(found, key=lambda one: one[:2])
        self.delete(gpu, each)

    def create(self, gpu: int, instance: Instance) -> None:
        self.held[gpu].append(instance)
        self.most = max(self.most, sum(bool(held) for held in self.held))
        self._note(gpu, instance, 1)

    def delete(self, gpu: int, instance: Instance) -> None:
        self.held[gpu].remove(instance)
        self._note(gpu, instance, -1)

    def _note(self, gpu: int, instance: Instance, by: int) -> None:
        if (kind := self.number(instance)) >= 0:
            self.here[gpu][kind] += by
            if not self.here[gpu][kind]:
                del self.here[gpu][kind]
        self._overlaps[gpu] = None
        card, own = self.sources[gpu], (instance,)
        what, gone, come = (What.CREATE, (), own) if by > 0 else (What.DELETE, own, ())
        self.actions.append(Action(what, card.node, card.index, gone, come))
