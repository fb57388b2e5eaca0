"""Exchange and compact: the controller of MIG-serving (arXiv 2109.11067), to compare with.

What its description leaves open is decided here: a new instance is paired with old ones of its
service by largest first; rooms are by best fit over legal layouts, the GPU with fewest free slots
first and empty ones last; target GPUs are taken by their largest overlap with a present GPU. Its
sequence then goes through the same order and the same check as ours: only the planning differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import itemgetter

from ....errors import UnsupportedProblem
from ....solving.solution import Proof
from ....values.numbers import Number
from ...hardware import Layout
from ...placement import PlacementInfeasible, place
from ..instance import Instance, Kind, Mode
from ..model import Deployment, FleetGpu
from ..recounting import recounted, with_known_curves
from ..wanted import DesiredState
from .durations import Durations
from .floors import floors_of, refuse_unlike
from .kept import count_kept
from .model import Action, Kept, Transition, What
from .planner import Impossible, check_result
from .replay import find_end
from .waits import find_short_order

#: Content of a GPU: how many instances of each kind.
_Content = Counter[Kind]


def exchange_and_compact(
    start: Deployment,
    wanted: DesiredState,
    *,
    floor: Number = 1,
    durations: Durations | None = None,
) -> Transition | Impossible:
    """Plan the way to a plan's own groups by exchange and compact.

    `start`: With instances of ours alone, that work, on GPUs that MIG cuts. `wanted`: With a plan,
    whose groups say what lies on one GPU. `floor`, `durations`: As for `transition`.

    Returns
    -------
    Transition or Impossible
        The latter if the fleet has too few empty GPUs for what it borrows.

    UnsupportedProblem if anything else is on a GPU.
    """
    for card, each in start.instances():
        if card.mode is not Mode.MIG or not each.is_managed or None in (each.work, each.start):
            raise UnsupportedProblem(
                f"{card.name} has {each}; exchange and compact is for instances of MIG that are "
                "ours and work: expected no others"
            )
    wanted, routings = with_known_curves(wanted, start), (start.routing, wanted.routing)
    start = recounted(start, wanted.services, wanted.rule, [kind.work for kind in wanted.counts])
    empty = {(card.node, card.index): card.with_instances(()) for card in start.gpus()}
    placed = place(wanted, start.with_gpus(empty), as_grouped=True)
    if isinstance(placed, PlacementInfeasible):
        return Impossible(placed.reasons, placed.proof)
    walk = _Walk(start, placed.deployment)
    if not (walk.exchange() and walk.compact()):
        return Impossible(("it borrows more GPUs than the fleet has",), Proof.NONE)
    target = placed.deployment.with_gpus(find_end(start, walk.actions))
    floors, target = floors_of(start, target, floor), replace(target, plan=None)
    refuse_unlike(start, target, floors, routings)
    found = find_short_order(start, walk.actions, floors, walk.most, durations or Durations())
    both = (start.kinds() & Counter(wanted.counts)).total()
    kept = Kept(count_kept(start, walk.actions), both, Proof.NONE)
    return check_result(start, target, floors, found.actions, found.gpus, kept)


class _Walk:
    """The fleet on the way; instances are kept with their kinds."""

    def __init__(self, start: Deployment, target: Deployment) -> None:
        self.cards = [card for card in start.gpus() if card.mode is Mode.MIG]
        self.held = [_list_kinds(card) for card in self.cards]
        self.contents = [Counter(kind for kind, _ in _list_kinds(c)) for c in target.used_gpus()]
        self.actions: list[Action] = []
        self.most = sum(map(bool, self.held))

    def _here(self, *gpus: int) -> _Content:
        return _Content(kind for gpu in gpus for kind, _ in self.held[gpu])

    def exchange(self) -> bool:
        """Make the fleet's multiset the target's, what is new first; False if there is no room."""
        there, wanted = self._here(*range(len(self.held))), sum(self.contents, _Content())
        old = sorted((there - wanted).elements(), key=_rank)
        alone = []  # what replaces nothing comes last
        for kind in sorted((wanted - there).elements(), key=_rank):
            replaced, rest = [], kind.work.supply_rps
            for each in old:
                if each.work.service == kind.work.service and each.work.supply_rps <= rest:
                    replaced.append(each)
                    rest -= each.work.supply_rps
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

    def compact(self) -> bool:
        """Make GPU by GPU one of the target's; False if there is no room.

        First where most is there already, then least is in the way, then on a GPU in use.
        """
        kinds = [each for at, each in enumerate(self.contents) if each not in self.contents[:at]]
        left, done = [self.contents.count(content) for content in kinds], set[int]()
        fits = [
            (gpu, at) for gpu in range(len(self.held)) for at, content in enumerate(kinds)
            if self._place(gpu, content) is not None
        ]  # fmt: skip
        while any(left):
            here = [self._here(gpu) for gpu in range(len(self.held))]
            _, _, _, gpu, at = max(
                ((kept := (here[gpu] & kinds[at]).total()), kept - here[gpu].total(),
                 bool(self.held[gpu]), -gpu, -at)
                for gpu, at in fits if left[at] and gpu not in done
            )  # fmt: skip
            if not self._fill(-gpu, kinds[-at], done):
                return False
            done.add(-gpu)
            left[-at] -= 1
        return all(gpu in done or not held for gpu, held in enumerate(self.held))

    def _place(self, gpu: int, content: _Content, beside: Iterable[Instance] = ()) -> Layout | None:
        """Find starts for a content beside some instances."""
        if any(kind.gpu != self.cards[gpu].gpu.key for kind in content):
            return None
        around = [(each.profile, each.start or 0) for each in beside]
        profiles = Counter(kind.profile for kind in content.elements())
        return self.cards[gpu].gpu.place(profiles, around=around)

    def _fill(self, gpu: int, content: _Content, done: set[int]) -> bool:
        """Give a GPU its content: what is not of it goes elsewhere, what lacks is pulled in."""
        lacks, stay = Counter(content), list[Instance]()
        for kind, each in self.held[gpu]:  # stays, if the rest then has a place
            rest = lacks - Counter([kind])
            if lacks[kind] and self._place(gpu, rest, (*stay, each)) is not None:
                stay.append(each)
                lacks = rest
        for kind, each in [one for one in self.held[gpu] if one[1] not in stay]:
            if not self._create_anywhere(kind, done | {gpu}):
                return False
            self._change(gpu, kind, each, What.DELETE)
        layout, queue = self._place(gpu, lacks, stay), list(lacks.elements())
        assert layout is not None
        for spot in layout:
            kind = next(each for each in queue if each.profile == spot.profile)
            queue.remove(kind)
            new = Instance(spot.profile, spot.start, kind.work)
            self._change(gpu, kind, new, What.CREATE)
            self._delete_somewhere(kind, done | {gpu})
        return True

    def _create_anywhere(self, kind: Kind, shut: Collection[int] = ()) -> bool:
        """Create an instance on the GPU with fewest free slots that has room."""
        rooms = []
        for gpu, card in enumerate(self.cards):
            if card.gpu.key == kind.gpu and gpu not in shut:
                held = [(each.profile, each.start or 0) for _, each in self.held[gpu]]
                taken = sum(card.gpu.profile(name).memory for name, _ in held)
                if starts := card.gpu.room(held, kind.profile):
                    rooms.append((not held, card.gpu.memory_slices - taken, gpu, starts[-1]))
        if rooms:
            *_, gpu, start = min(rooms)
            new = Instance(kind.profile, start, kind.work)
            self._change(gpu, kind, new, What.CREATE)
        return bool(rooms)

    def _delete_somewhere(self, kind: Kind, shut: Collection[int] = ()) -> None:
        """Delete an instance from the least filled GPU that has one."""
        there = (
            (len(held), gpu, each)
            for gpu, held in enumerate(self.held) if gpu not in shut
            for other, each in held if other == kind
        )  # fmt: skip
        _, gpu, each = min(there, key=itemgetter(0))
        self._change(gpu, kind, each, What.DELETE)

    def _change(self, gpu: int, kind: Kind, instance: Instance, what: What) -> None:
        is_new, own, card = what is What.CREATE, (instance,), self.cards[gpu]
        (self.held[gpu].append if is_new else self.held[gpu].remove)((kind, instance))
        self.most = max(self.most, sum(map(bool, self.held)))
        removes, adds = ((), own) if is_new else (own, ())
        self.actions.append(Action(what, card.node, card.index, removes, adds))


def _list_kinds(card: FleetGpu) -> list[tuple[Kind, Instance]]:
    return [(Kind(card.gpu.key, e.profile, e.work), e) for e in card.instances if e.work]


def _rank(kind: Kind) -> tuple[float, str]:
    """Rank the largest first."""
    return -float(kind.work.supply_rps), kind.profile
