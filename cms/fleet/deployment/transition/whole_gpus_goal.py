"""What has to become of each GPU where a tool can only cut a whole one anew.

A GPU stays as cut if it is to have as many instances of each profile as it has; then only what
they do may change. Any other is cut anew: all that is on it stops, and what is to be there comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....errors import InvalidProblem
from ..guesses import doubtful, in_doubt
from ..instance import Instance, Mode, Work
from ..model import Deployment, FleetGpu
from ..recounting import outdated
from .sides import Sides, goes_on

__all__ = ["Content", "Goal", "Thing", "Turn", "Use", "as_it_stays"]


class Use(NamedTuple):
    """What an instance can be used for: a service (-1: none) and its scaled supply."""

    work: Work | None
    service: int
    supply: int


class Thing(NamedTuple):
    """An instance on a GPU, as it counts."""

    instance: Instance
    service: int  # -1 if it supplies nothing
    supply: int
    pool: int = -1  # of what is wanted in its place; -1: nothing is
    stays: bool = False  # whether it is as it is to be


class Content(NamedTuple):
    """What one GPU is to be cut anew for."""

    mode: Mode
    instances: tuple[Instance, ...]
    pools: tuple[int, ...]  # of each instance
    where: frozenset[int]  # the GPUs it may come to lie on
    home: int  # the GPU of the target


class Turn(NamedTuple):
    """GPUs of a node that can only change together."""

    #: GPUs and what each is to have; -1: nothing, or, of a `loose` one, what is decided
    #: then.
    contents: tuple[tuple[int, int], ...]
    #: GPUs of the node that stay as cut, and on which everything stops meanwhile.
    drained: tuple[int, ...]
    is_loose: bool = False  # whether any content of their kind may come to lie on these GPUs

    @property
    def gpus(self) -> tuple[int, ...]:
        """All on which something stops."""
        return *(gpu for gpu, _ in self.contents), *self.drained


@dataclass
class Goal(Sides):
    """What does not change on the way.

    GPUs of the target that stay as cut have their instances where the start has them
    (`as_it_stays`). Where `is_late`, any content may come to lie on any free GPU; with `by_node` on
    any GPU of a node that is cut anew.
    """

    #: Whether the GPUs of a node change together, and all that works on it stops meanwhile.
    by_node: bool
    #: Whether nodes may be drained of which the target has all GPUs as they are cut.
    is_wide: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.firsts: list[tuple[Thing, ...]] = []  # of each GPU in the beginning
        self.needs: list[dict[Use, int]] = []  # by pool: ``{use: how many are wanted}``
        self.contents: list[Content] = []
        self.singles: list[int] = []  # GPUs that are cut anew one by one
        self.turns: list[Turn] = []
        #: By kind of GPU, contents that may come to lie on any node that is cut anew.
        self.loose: dict[object, tuple[int, ...]] = {}
        #: GPUs that are not cut and change what shares them: what comes.
        self.shared: dict[int, tuple[Instance, ...]] = {}
        self._pools: dict[object, int] = {}
        anew: list[int] = []
        loose = self._loose_nodes() if self.by_node and self.is_late else set[str]()
        for number, (card, end) in enumerate(zip(self.cards, self.ends, strict=True)):
            if card.node not in loose and card.mode is end.mode and is_as_cut(card, end):
                self.firsts.append(tuple(self._in_place(card, end)))
            elif card.mode is end.mode and card.mode is not Mode.MIG:
                self.firsts.append(self._sharing(number, card, end))
            else:
                self.firsts.append(tuple(map(self.thing, card.instances)))
                if card.instances or end.instances:
                    anew.append(number)
        self._group(anew, loose)
        self.covers = self._covers()

    def use(self, work: Work | None) -> Use:
        """Return work as it counts."""
        return Use(work, *self.counted(work))

    def thing(self, instance: Instance, *, pool: int = -1, stays: bool = False) -> Thing:
        """Return an instance as it counts; one that does not run supplies nothing."""
        return Thing(
            instance, *self.counted(instance.work if instance.supply_rps else None), pool, stays
        )

    def _pool(self, card: FleetGpu, wanted: Instance) -> int:
        use = self.use(wanted.work)
        key: object = (card.gpu.key, wanted.profile, use)
        if self.is_late:
            key = card.gpu.key, wanted.profile
        pool = self._pools.setdefault(key, len(self._pools))
        if pool == len(self.needs):
            self.needs.append({})
        self.needs[pool][use] = self.needs[pool].get(use, 0) + 1
        return pool

    def _in_place(self, card: FleetGpu, end: FleetGpu) -> Iterator[Thing]:
        for now, then in zip(card.instances, end.instances, strict=True):
            stays = goes_on(now, then) or not now.is_managed
            wants = not stays and then.work is not None
            yield self.thing(now, pool=self._pool(card, then) if wants else -1, stays=stays)

    def _sharing(self, number: int, card: FleetGpu, end: FleetGpu) -> tuple[Thing, ...]:
        left, found = list(end.instances), []
        for now in card.instances:
            same = next((then for then in left if goes_on(now, then)), None)
            if same is not None:
                left.remove(same)
            elif not now.is_managed:
                raise _not_ours(card, now)
            found.append(self.thing(now, stays=same is not None))
        self.shared[number] = tuple(left)
        return tuple(found)

    def _group(self, anew: Sequence[int], loose: set[str]) -> None:
        by_node: dict[str, list[int]] = {}
        for number in anew:
            by_node.setdefault(self.cards[number].node, []).append(number)
        whole = {name for name, own in by_node.items() if self.by_node or self._resets(own)}
        self.singles = [number for number in anew if self.cards[number].node not in whole]
        for number in self.singles:
            end = self.ends[number]
            if end.instances:
                self._content(number, self._where(number, whole))
        if self.by_node and self.is_late:
            self._loosen(by_node, loose)
        else:
            self.turns += [self._homed(name, by_node[name]) for name in sorted(whole)]

    def _homed(self, name: str, anew: Sequence[int]) -> Turn:
        pairs = []
        for number in anew:
            is_used = bool(self.ends[number].instances)
            pairs.append((number, self._content(number, frozenset()) if is_used else -1))
        others = [n for n, card in enumerate(self.cards) if card.node == name]
        drained = tuple(n for n in others if n not in anew and self.cards[n].is_in_use)
        for number in drained:
            for thing in self.firsts[number]:
                if not thing.instance.is_managed:
                    raise _not_ours(self.cards[number], thing.instance, " is drained")
        return Turn(tuple(pairs), drained)

    def _loose_nodes(self) -> set[str]:
        """Return nodes that are drained, and on which no GPU changes its mode."""
        pairs = list(zip(self.cards, self.ends, strict=True))
        found = {card.node for card, end in pairs if card != end and not is_as_cut(card, end)}
        if self.is_wide:
            pinned = {card.node for card in self.cards if card.foreign}
            found |= {card.node for card, end in pairs if card.instances or end.instances} - pinned
        found -= {card.node for card, end in pairs if not card.mode is end.mode is Mode.MIG}
        for card in self.cards:
            if card.node in found and card.foreign:
                raise _not_ours(card, card.foreign[0], " is drained")
        return found

    def _loosen(self, by_node: Mapping[str, Sequence[int]], loose: set[str]) -> None:
        """Let contents lie on any node that is drained, or that is empty and would stay so."""
        kinds: dict[object, list[int]] = {}
        empty: list[Turn] = []
        for name in dict.fromkeys(card.node for card in self.cards):
            own = [n for n, card in enumerate(self.cards) if card.node == name]
            if name in loose:
                for n in own:
                    if any(each.work is not None for each in self.ends[n].instances):
                        kinds.setdefault(self.kind(n), []).append(self._content(n, frozenset()))
                self.turns.append(Turn(tuple((n, -1) for n in own), (), is_loose=True))
            elif name in by_node:
                self.turns.append(self._homed(name, by_node[name]))
            elif all(self.cards[n].leaves_mode and self.ends[n].leaves_mode for n in own):
                empty.append(Turn(tuple((n, -1) for n in own), (), is_loose=True))
        self.turns += empty
        self.loose = {kind: tuple(own) for kind, own in kinds.items()}

    def kind(self, number: int) -> object:
        """Return what GPUs have in common that can be cut for the same."""
        card = self.cards[number]
        return card.gpu.key, self.start.node(card.node).driver

    def _resets(self, numbers: Sequence[int]) -> bool:
        return any(
            self.cards[n].mode is not self.ends[n].mode
            and Mode.MIG in (self.cards[n].mode, self.ends[n].mode)
            and self.cards[n].gpu.mode_change_needs_reset is not False
            for n in numbers
        )

    def _content(self, number: int, where: frozenset[int]) -> int:
        card, end = self.cards[number], self.ends[number]
        pools = tuple(self._pool(card, each) for each in end.instances)
        self.contents.append(Content(end.mode, end.instances, pools, where, number))
        return len(self.contents) - 1

    def _where(self, number: int, whole: set[str]) -> frozenset[int]:
        home, end = self.cards[number], self.ends[number]
        if not self.is_late or home.mode is not end.mode:
            return frozenset((number,))
        profiles = {each.profile for each in end.instances}
        return frozenset(
            n
            for n, card in enumerate(self.cards)
            if (card.gpu.key, card.mode) == (home.gpu.key, home.mode)
            and card.node not in whole
            and (n in self.singles or not (card.instances or self.ends[n].instances))
            and (n == number or self.can_cut(n, profiles))
        )

    def can_cut(self, number: int, profiles: set[str]) -> bool:
        """Whether the driver of a GPU's node offers profiles."""
        card = self.cards[number]
        node = self.start.node(card.node)
        known = {profile.name: profile for profile in card.gpu.profiles}
        return all(name not in known or node.offers(known[name]) for name in profiles)

    def _covers(self) -> dict[tuple[str, str], list[Use]]:
        """Return what instances of a profile of a GPU can do, of what the new limits admit."""
        found: dict[tuple[str, str], dict[Use, None]] = {}
        old = outdated(self.start, self.target)
        for side in (self.start, self.target):
            for card, each in side.instances():
                use = self.use(each.work)
                if use.supply and card.mode is Mode.MIG and each.work not in old:
                    found.setdefault((card.gpu.key, each.profile), {})[use] = None
        return {key: list(uses) for key, uses in found.items()}


def is_as_cut(card: FleetGpu, end: FleetGpu) -> bool:
    """Whether a tool that counts instances leaves a GPU alone."""
    same = card.mode is end.mode is Mode.MIG and _counts(card) == _counts(end)
    return same and len(card.instances) > 0


def _counts(card: FleetGpu) -> Counter[tuple[str, bool]]:
    return Counter((each.profile, not each.is_whole) for each in card.instances)


def as_it_stays(
    start: Deployment, target: Deployment, *, by_node: bool, clears: bool
) -> Deployment:
    """Return a target as a tool that cuts whole GPUs reaches it.

    What is wanted of a GPU that stays as cut is wanted of the instances that are there.
    """
    cards: dict[tuple[str, int], FleetGpu] = {}
    others = {(card.node, card.index): card for card in target.gpus()}
    for node in start.nodes:
        doubts = doubtful(node)
        for card in node.gpus:
            end = others[card.node, card.index]
            doubt = in_doubt(card, doubts)
            if is_as_cut(card, end):
                end = replace(end, instances=_aligned(card, end), start_source=card.start_source)
                held = (*card.foreign, *doubt)
                if clears and not by_node and not held and _works(card) and not _works(end):
                    end = card.with_instances(())
            elif card.mode is Mode.MIG or card.mode is not end.mode:
                for each in (*card.foreign, *doubt):
                    raise _not_ours(card, each)
            cards[card.node, card.index] = end
    return target.with_gpus(cards)


def _works(card: FleetGpu) -> bool:
    return any(each.is_managed and each.work is not None for each in card.instances)


def _aligned(card: FleetGpu, end: FleetGpu) -> tuple[Instance, ...]:
    """Say what each instance is to do, as few of them as can be something else."""
    left, found = list(end.instances), dict[int, Instance]()
    for number, now in enumerate(card.instances):
        same = next((then for then in left if goes_on(now, then)), None)
        if same is None:  # the same work at another place goes on where it is
            same = next((then for then in left if _does_the_same(now, then)), None)
        if same is not None:
            left.remove(same)
            found[number] = replace(now, state=same.state)
    for number, now in enumerate(card.instances):
        if number not in found:
            then = next((each for each in left if _can_become(now, each)), None)
            if then is None:
                raise _not_ours(card, now)
            left.remove(then)
            found[number] = replace(now, work=then.work, state=then.state)
    return tuple(found[number] for number in range(len(card.instances)))


def _does_the_same(now: Instance, then: Instance) -> bool:
    return goes_on(replace(now, start=None), replace(then, start=None))


def _can_become(now: Instance, then: Instance) -> bool:
    is_alike = (now.profile, now.owner, not now.is_whole) == (
        then.profile, then.owner, not then.is_whole,
    )  # fmt: skip
    return is_alike and now.is_managed


def _not_ours(
    card: FleetGpu, instance: Instance, why: str = " would be cut anew"
) -> InvalidProblem:
    whose = "not ours" if not instance.is_managed else "perhaps another's"
    return InvalidProblem(
        f"{card.name} has {instance}, which is {whose}, and{why} as a whole; expected it to stay "
        "as it is cut (--tool nvidia-smi cuts parts of a GPU), or --reclaim"
    )
