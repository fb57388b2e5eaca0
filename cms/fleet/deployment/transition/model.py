"""A transition: actions on GPUs, each with those that must have ended before it begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from operator import or_

from ....solving.solution import Proof
from ....values.numbers import shown
from ....values.words import count
from ...hardware import Gpu
from ...serving.operating_point import mps_share
from ..instance import WHOLE, Instance, Mode, Work
from ..model import Deployment

_NOTHING = Fraction(0)


class What(StrEnum):
    """What an action does to a GPU."""

    CREATE = "create"  # an instance that was not there
    DELETE = "delete"
    RESTART = "restart"  # other work in the same place: no MIG change
    REPARTITION = "repartition"  # the whole GPU: all on it goes, then all that is to be there comes
    SWITCH = "switch"  # shares: what comes is prepared beside what goes, then all changes at once


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done on one GPU.

    What is removed supplies nothing from the action's beginning on, and its slots are free at its
    end; what is added takes its slots from the beginning on, and supplies from the end on. All
    that is said of floors and layouts follows from these two lines.

    A switch is of shares that services take turns in. The processes that come are prepared while
    those that go still serve; at its end, all at once, these take over. So a service has at every
    moment what it had or what it will have: what it loses is taken off from the beginning on, and
    what it gains is added at the end. Nothing else happens on the GPU meanwhile.

    `after`: Positions, in the transition's sequence, of the actions that must have ended before
    this one begins; ascending, all before its own. `mode`: What the GPU's mode becomes; None if it
    stays. `is_temporary`: Whether what it adds goes again, or what it removes had been added on the
    way.
    """

    what: What
    node: str
    index: int
    removes: tuple[Instance, ...] = ()
    adds: tuple[Instance, ...] = ()
    after: tuple[int, ...] = ()
    mode: Mode | None = None
    is_temporary: bool = False

    @property
    def gpu(self) -> tuple[str, int]:
        """The node and the index of its GPU."""
        return self.node, self.index

    @property
    def name(self) -> str:
        """``node-a/3``."""
        return f"{self.node}/{self.index}"

    @property
    def has_its_gpu(self) -> bool:
        """Whether nothing else happens on its GPU meanwhile."""
        return self.what in (What.REPARTITION, What.SWITCH) or self.mode is not None

    def removed_rps(self, service: str) -> Fraction:
        """What it takes from a service, in items per second."""
        return self._net_rps(self.removes, self.adds, service)

    def added_rps(self, service: str) -> Fraction:
        """What it gives to a service once it has ended, in items per second."""
        return self._net_rps(self.adds, self.removes, service)

    def _net_rps(
        self, some: tuple[Instance, ...], others: tuple[Instance, ...], service: str
    ) -> Fraction:
        """What some supply; in switches, what comes as something goes has no moment between."""
        rps, back = (
            sum((e.supply_rps for e in part if e.work and e.work.service == service), _NOTHING)
            for part in (some, others)
        )
        return max(_NOTHING, rps - back) if self.what is What.SWITCH else rps

    @property
    def prepared(self) -> tuple[Instance, ...]:
        """The instances that it adds and that take a process which is not on the GPU yet.

        A process has a share and a service. Its batches, its cycle and with whom it takes turns
        may change while it runs.
        """
        if self.what is not What.SWITCH:
            return tuple(each for each in self.adds if each.work is not None)
        there, found = Counter(map(process_of, self.removes)), []
        for each in self.adds:
            there[process_of(each)] -= 1
            if there[process_of(each)] < 0:
                found.append(each)
        return tuple(found)

    @property
    def services(self) -> frozenset[str]:
        """The services whose capacity it changes."""
        return frozenset(
            each.work.service for each in (*self.removes, *self.adds) if each.work is not None
        )

    def __str__(self) -> str:
        gone, come = (", ".join(map(str, part)) for part in (self.removes, self.adds))
        says = {What.CREATE: come, What.DELETE: gone, What.RESTART: f"{gone} as {come}"}
        both = f"{gone or 'nothing'} to {come or 'nothing'}"
        return f"{self.what} on {self.name}: {says.get(self.what, both)}"


def process_of(instance: Instance) -> tuple[str, str | None]:
    """Return what tells a process of others: its share and its service."""
    return instance.profile, None if instance.work is None else instance.work.service


@dataclass(frozen=True, slots=True)
class Floor:
    """What a service keeps at every moment.

    `rps`: In items per second. `reason`: ``100 % of the smaller of 200 and 180 requests/s``.
    """

    rps: Fraction
    reason: str

    def __str__(self) -> str:
        return f"{shown(self.rps)} requests/s ({self.reason})"


@dataclass(frozen=True, slots=True)
class KeptPrices:
    """What proves that no more can be kept (:func:`~cms.fleet.placement.kept_bound.most_kept`)."""

    works: tuple[tuple[Work, Fraction], ...]  # of an instance that goes on with such work
    blocks: Mapping[tuple[str, str], Fraction]  # of an instance of a profile of a GPU
    gpus: Mapping[str, Fraction]  # of a GPU of a type


@dataclass(frozen=True, slots=True)
class Kept:
    """How many instances are never interrupted.

    `most`: No transition keeps more that ends with the target's instances, wherever they are, on no
    more GPUs of each type. `proof`: On whose word. ``CHECKED`` by the prices; without any, both
    sides have no more in common. `places`: Whether `most` is of the target as it stands alone.
    """

    count: int
    most: int
    proof: Proof
    places: bool = False
    prices: KeptPrices | None = None


@dataclass(frozen=True, slots=True)
class Frozen:
    """Why too few spare GPUs will not do: work that can never stop or begin is in the way.

    See :mod:`~cms.fleet.deployment.transition.necessity`.

    `stays`: No instance that does such work at the start ever stops. `never`: No instance ever
    begins such work, which none does at the start. `places`: Whether it is shown of the target as
    it stands; otherwise of every deployment with the target's instances on no more GPUs of each
    type.
    """

    stays: tuple[Work, ...]
    never: tuple[Work, ...]
    places: bool


@dataclass(frozen=True, slots=True)
class Spare:
    """How many GPUs are needed beyond the larger of before and after.

    `least`: With fewer it is impossible. `reason`: Why it is impossible with fewer, in words; empty
    if nothing is claimed. `borrowed`: The GPUs that are empty before and after, and used meanwhile.
    `proof`: That `least` - 1 will not do; None if `least` is 0.
    """

    count: int
    least: int = 0
    reason: str = ""
    borrowed: tuple[str, ...] = ()
    proof: Frozen | None = None

    @property
    def is_least(self) -> bool:
        """Whether fewer are proved not to do."""
        return self.count == self.least

    def __str__(self) -> str:
        what = count(self.count, "spare GPU")
        if self.is_least:
            return f"{what} (the least)"
        if self.least:
            return f"{what} (found; at least {self.least} proved necessary)"
        return f"{what} (found, not proved least)"


@dataclass(frozen=True)
class Transition:
    """A way from one deployment to another that keeps every floor.

    `start`, `target`: On the same GPUs, without plans, so that supplies are summed. `floors`: By
    service; a service without one has none to keep. `actions`: In a sequence after each prefix of
    which every floor holds; they may run in parallel as far as `Action.after` allows.
    """

    start: Deployment
    target: Deployment
    floors: Mapping[str, Floor]
    actions: tuple[Action, ...]
    spare: Spare
    kept: Kept

    @property
    def steps(self) -> tuple[tuple[int, ...], ...]:
        """The levels of the order: the positions of actions that may begin together."""
        level: list[int] = []
        for action in self.actions:
            level.append(1 + max((level[before] for before in action.after), default=-1))
        found: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
        for position, at in enumerate(level):
            found[at].append(position)
        return tuple(map(tuple, found))

    def __str__(self) -> str:
        moves, steps = count(len(self.actions), "action"), count(len(self.steps), "step")
        kept = f"{count(self.kept.count, 'instance')} kept of at most {self.kept.most}"
        return f"{moves} in {steps}; {kept}; {self.spare}"


def most_gpus(start: Deployment, target: Deployment) -> int:
    """Return the larger of the numbers of GPUs in use before and after."""
    return max(len(start.used_gpus()), len(target.used_gpus()))


def slots_of(gpu: Gpu, profile: str, start: int | None = 0) -> int:
    """Return the memory slices that an instance takes, as bits; none of what MIG does not cut."""
    if start is None or profile == WHOLE or mps_share(profile) is not None:
        return 0
    return ((1 << gpu.profile(profile).memory) - 1) << start


def all_slots(gpu: Gpu, instances: Iterable[Instance]) -> int:
    """Return the memory slices that instances take, as bits."""
    return reduce(or_, (slots_of(gpu, each.profile, each.start) for each in instances), 0)
