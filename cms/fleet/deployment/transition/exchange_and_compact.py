"""Exchange and compact: the controller of MIG-serving (arXiv 2109.11067), to compare with.

What its description leaves open is decided here: a new instance is paired with old ones of its
service by largest first; rooms are by best fit over legal layouts, the GPU with fewest free slots
first and empty ones last; target GPUs are walked by largest overlap with what is there. Its
sequence then goes through the same order and the same check as ours: only the planning differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from ....solving.solution import Proof
from ....values.numbers import Number
from ...placement import PlacementInfeasible, place
from ..instance import Instance, Mode, Work
from ..model import Deployment, FleetGpu
from ..recounting import recounted, with_known_curves
from ..wanted import DesiredState
from .durations import Durations
from .floors import floors_of, refuse_unlike
from .model import Action, Kept, Transition, What
from .planner import Impossible, check_result
from .replay import count_kept, find_end
from .waits import find_short_order

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
    wanted, routings = with_known_curves(wanted, start), (start.routing, wanted.routing)
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
    target = placed.deployment.with_gpus(find_end(start, walk.actions))
    floors, target = floors_of(start, target, floor), replace(target, plan=None)
    refuse_unlike(start, target, floors, routings)
    found = find_short_order(
        start, walk.actions, floors, walk.most, durations or Durations(), max_parallel
    )
    both = (start.kinds() & Counter(wanted.counts)).total()
    kept = Kept(count_kept(start, walk.actions), both, Proof.NONE)
    return check_result(start, target, floors, found.actions, found.gpus, kept)


class _Walk:
    """The fleet on the way; instances at work are counted by the numbers of their kinds."""

    def __init__(self, start: Deployment) -> None:
        self.sources = list(start.gpus())
        self.kinds: dict[int, tuple[str, Work]] = {}  # profile and work, by number
        self._numbers: dict[tuple[str, Work], int] = {}
        self.held = [list(card.instances) for card in self.sources]  # by GPU
        #: By GPU, what of it is ours and at work.
        self.here = [self.content(card) for card in self.sources]
        self.actions: list[Action] = []
        self.most = sum(map(bool, self.held))
        #: By GPU, what contents go with it: how well, and which.
        self._overlaps: dict[int, list[tuple[tuple[int, int, bool, int], int]]] = {}
        for gpu, held in enumerate(self.held):  # what does nothing makes room first
            for each in [*held]:
                if each.is_managed and each.work is None:
                    self._change(gpu, each, What.DELETE)

    def number(self, instance: Instance) -> int:
        """Return the number of the kind of an instance; -1 if it is not ours, or idle."""
        if not instance.is_managed or instance.work is None:
            return -1
        kind = instance.profile, instance.work
        number = self._numbers.setdefault(kind, len(self._numbers))
        self.kinds[number] = kind
        return number

    def content(self, card: FleetGpu) -> _Content:
        """Return what of a GPU is ours and at work."""
        return _Content(n for each in card.instances if (n := self.number(each)) >= 0)

    def _largest(self, kind: int) -> tuple[float, str]:
        profile, work = self.kinds[kind]
        return -float(work.supply_rps), profile

    def exchange(self, wanted: _Content) -> bool:
        """Make the fleet's multiset the target's, what is new first; False if there is no room."""
        there = sum(self.here, _Content())
        old = sorted((there - wanted).elements(), key=self._largest)
        alone = []  # what replaces nothing comes last
        for kind in sorted((wanted - there).elements(), key=self._largest):
            work = self.kinds[kind][1]
            replaced, rest = [], work.supply_rps
            for each in old:
                other = self.kinds[each][1]
                if other.service == work.service and other.supply_rps <= rest:
                    replaced.append(each)
                    rest -= other.supply_rps
            if not replaced:
                alone.append(kind)
            elif not self._create_anywhere(kind):
                return False
            for each in replaced:
                old.remove(each)
                self._delete_somewhere(each)
        if not all(map(self._create_anywhere, alone)):
            return False
        for each in old:
            self._delete_somewhere(each)
        return True

    def compact(self, contents: list[_Content]) -> bool:
        """Make GPU by GPU one of the target's; False if there is no room."""
        kinds = [each for at, each in enumerate(contents) if each not in contents[:at]]
        left = [contents.count(content) for content in kinds]
        done: set[int] = set()
        while any(left):
            _, gpu, minus_at = max(
                (overlap, gpu, -at)
                for gpu in range(len(self.sources))
                if gpu not in done
                for overlap, at in self._overlaps_of(gpu, kinds)
                if left[at]
            )
            if not self._fill(gpu, kinds[-minus_at], done):
                return False
            done.add(gpu)
            left[-minus_at] -= 1
        return all(gpu in done or not self.here[gpu] for gpu in range(len(self.sources)))

    def _overlaps_of(
        self, gpu: int, contents: list[_Content]
    ) -> list[tuple[tuple[int, int, bool, int], int]]:
        """Return how well contents that a GPU can hold go with what is there, the largest best.

        What is there already, less what is in the way, whether the GPU is in use, and its number,
        negative.
        """
        if gpu not in self._overlaps:
            here, card = self.here[gpu], self.sources[gpu]
            foreign = [(each.profile, each.start or 0) for each in card.foreign]
            found = self._overlaps[gpu] = []
            for at, content in enumerate(contents if card.mode is Mode.MIG else ()):
                if card.gpu.place(self._profiles(content.elements()), around=foreign) is not None:
                    there = (here & content).total()
                    overlap = there, there - here.total(), bool(self.held[gpu]), -gpu
                    found.append((overlap, at))
        return self._overlaps[gpu]

    def _profiles(self, kinds: Iterable[int]) -> Counter[str]:
        return Counter(self.kinds[kind][0] for kind in kinds)

    def _fill(self, gpu: int, content: _Content, done: set[int]) -> bool:
        """Give a GPU its content: what is not of it goes elsewhere, what lacks is pulled in."""
        card, lacks = self.sources[gpu], Counter(content)
        stay = [each for each in self.held[gpu] if not each.is_managed]
        for each in self.held[gpu]:  # stays, if the rest then has a place
            if lacks[self.number(each)]:
                rest = lacks - Counter([self.number(each)])
                around = [(one.profile, one.start or 0) for one in (*stay, each)]
                if card.gpu.place(self._profiles(rest.elements()), around=around) is not None:
                    stay.append(each)
                    lacks = rest
        for each in [each for each in self.held[gpu] if each not in stay]:
            if not self._create_anywhere(self.number(each), done | {gpu}):
                return False
            self._change(gpu, each, What.DELETE)
        around = [(each.profile, each.start or 0) for each in self.held[gpu]]
        layout = card.gpu.place(self._profiles(lacks.elements()), around=around)
        assert layout is not None
        queue = list(lacks.elements())
        for spot in layout:
            kind = next(each for each in queue if self.kinds[each][0] == spot.profile)
            queue.remove(kind)
            new = Instance(spot.profile, spot.start, self.kinds[kind][1])
            self._change(gpu, new, What.CREATE)
            self._delete_somewhere(kind, done | {gpu})
        return True

    def _create_anywhere(self, kind: int, shut: Collection[int] = ()) -> bool:
        """Create an instance on the GPU with fewest free slots that has room."""
        profile, work = self.kinds[kind]
        rooms = []
        for gpu, card in enumerate(self.sources):
            known = {each.name for each in card.gpu.profiles}
            if card.mode is Mode.MIG and gpu not in shut and profile in known:
                held = [(each.profile, each.start or 0) for each in self.held[gpu]]
                taken = sum(card.gpu.profile(name).memory for name, _ in held)
                if starts := card.gpu.room(held, profile):
                    rooms.append((not held, card.gpu.memory_slices - taken, gpu, starts[-1]))
        if rooms:
            *_, gpu, start = min(rooms)
            self._change(gpu, Instance(profile, start, work), What.CREATE)
        return bool(rooms)

    def _delete_somewhere(self, kind: int, shut: Collection[int] = ()) -> None:
        """Delete an instance from the least filled GPU that has one."""
        there = (n for n, here in enumerate(self.here) if here[kind] and n not in shut)
        gpu = min(there, key=lambda n: len(self.held[n]))
        each = next(each for each in self.held[gpu] if self.number(each) == kind)
        self._change(gpu, each, What.DELETE)

    def _change(self, gpu: int, instance: Instance, what: What) -> None:
        is_new, own, kind = what is What.CREATE, (instance,), self.number(instance)
        if is_new:
            self.held[gpu].append(instance)
            self.most = max(self.most, sum(map(bool, self.held)))
        else:
            self.held[gpu].remove(instance)
        if kind >= 0:
            self.here[gpu] += Counter({kind: 1 if is_new else -1})
        self._overlaps.pop(gpu, None)
        removes, adds = ((), own) if is_new else (own, ())
        card = self.sources[gpu]
        self.actions.append(Action(what, card.node, card.index, removes, adds))
