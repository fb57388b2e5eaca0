"""What has to happen on each GPU for one deployment to become another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ...errors import InvalidProblem
from ..serving.service import Service
from .instance import WHOLE, Instance, Mode, State
from .model import Deployment, FleetGpu

__all__ = ["Difference", "GpuDifference", "difference", "join_services", "with_fixed"]


@dataclass(frozen=True, slots=True)
class GpuDifference:
    """What differs on one GPU.

    `now`, `then`: Both have its name. `kept`: Ours, in place, doing what they do. `restarted`: Same
    profile and start, other work, or the same that is being drained: before and after. `foreign`:
    Another's, in place before and after.
    """

    now: FleetGpu
    then: FleetGpu
    kept: tuple[Instance, ...]
    restarted: tuple[tuple[Instance, Instance], ...]
    created: tuple[Instance, ...]
    deleted: tuple[Instance, ...]
    foreign: tuple[Instance, ...]

    @property
    def changes_mode(self) -> bool:
        """Whether MIG is to be switched on or off; where nothing is to be it stays as it is."""
        return self.now.is_cut != self.then.is_cut and not self.then.leaves_mode

    @property
    def is_untouched(self) -> bool:
        """Whether nothing happens on it."""
        return not (self.restarted or self.created or self.deleted or self.changes_mode)


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two deployments on the same GPUs.

    `gpus`: Of all GPUs, by node and index.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
    >>> card = FleetGpu("a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> print(difference(now, then))
    1 GPU changes, 0 stay: 0 instances kept, 0 restarted, 1 created, 1 deleted
    """

    gpus: tuple[GpuDifference, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to happen."""
        return all(each.is_untouched for each in self.gpus)

    @property
    def touched(self) -> tuple[GpuDifference, ...]:
        """The GPUs on which something happens."""
        return tuple(each for each in self.gpus if not each.is_untouched)

    @property
    def counts(self) -> dict[str, int]:
        """How many instances are kept, restarted, created, deleted and foreign."""
        every = "kept", "restarted", "created", "deleted", "foreign"
        return {what: sum(len(getattr(each, what)) for each in self.gpus) for what in every}

    def __str__(self) -> str:
        touched = len(self.touched)
        done = self.counts
        parts = ", ".join(f"{done[what]} {what}" for what in ("restarted", "created", "deleted"))
        kept = f"{done['kept']} instance{'s' * (done['kept'] != 1)} kept"
        changes = f"{touched} GPU{'s change' if touched != 1 else ' changes'}"
        rest = len(self.gpus) - touched
        return f"{changes}, {rest} stay{'s' * (rest == 1)}: {kept}, {parts}"


def difference(now: Deployment, then: Deployment) -> Difference:
    """Compare what is with what is to be.

    `now`, `then`: A node or GPU that only one of them has counts as empty in the other.

    InvalidProblem if a GPU has another type or, where both know it, another UUID in the two, or one
    has instances whose starts are not known.
    """
    then = with_fixed(then, now)
    cards = {(c.node, c.index): c for c in now.gpus()}
    others = {(c.node, c.index): c for c in then.gpus()}
    return Difference(
        tuple(
            _compared(
                cards.get(at) or others[at].with_instances(()),
                others.get(at) or cards[at].with_instances(()),
            )
            for at in sorted({*cards, *others})
        )
    )


def with_fixed(target: Deployment, now: Deployment) -> Deployment:
    """Return a target in which GPUs that are fixed, in it or now, are as now.

    But those on which it has something: that one of them has become unfit cannot be passed over.
    """
    cards = {}
    there = {card.name: card for card in now.gpus()}
    for card in target.gpus():
        today = there.get(card.name, card)
        is_free = card.mode is Mode.FIXED or card.is_empty
        if is_free and Mode.FIXED in (card.mode, today.mode) and card.mode is not today.mode:
            cards[card.node, card.index] = today
    return target.with_gpus(cards) if cards else target


def join_services(*deployments: Deployment) -> tuple[Service, ...]:
    """Return the services of deployments; of those with one name the first."""
    found: dict[str, Service] = {}
    for service in (service for each in deployments for service in each.services):
        found.setdefault(service.name, service)
    return tuple(found.values())


def _compared(now: FleetGpu, then: FleetGpu) -> GpuDifference:
    if now.mode is Mode.FIXED and then.mode is not Mode.FIXED:
        raise InvalidProblem(
            f"{now.name} is to have {then.instances[0]}, and was found not fit for a plan; "
            "expected a target that was placed on what was observed last: cms plan --current"
        )
    for what, first, second in (
        ("a", now.gpu.key, then.gpu.key),
        ("the GPU with UUID", now.uuid or then.uuid, then.uuid or now.uuid),
    ):
        if first != second:
            raise InvalidProblem(
                f"{now.name} is {what} {first} in the one deployment and {second} in the other; "
                "expected the same GPU: observe the node again"
            )
    before, after = Counter(map(_at, now.instances)), Counter(map(_at, then.instances))
    for card, counted in ((now, before), (then, after)):
        if card.mode is Mode.MIG and any(start is None for _, start in counted):
            raise InvalidProblem(
                f"the starts of the instances on {card.name} are not known; observe it with "
                "nvidia-smi mig -lgi"
            )
    left, right = (
        [each for each in card.instances if not _is_nothing(each)] for card in (now, then)
    )
    kept: list[Instance] = []
    foreign: list[Instance] = []
    restarted: list[tuple[Instance, Instance]] = []
    # what stays as it is goes first: under MPS several instances have one place
    for one in [*left]:
        same = next((other for other in right if _is_same(one, other)), None)
        if same is not None:
            left.remove(one)
            right.remove(same)
            (kept if one.is_managed else foreign).append(one)
    for one in [*left]:
        there = next((other for other in right if _can_restart(one, other)), None)
        if there is not None:
            left.remove(one)
            right.remove(there)
            restarted.append((one, there))
    return GpuDifference(
        now, then, tuple(kept), tuple(restarted), tuple(right), tuple(left), tuple(foreign)
    )


def _at(instance: Instance) -> tuple[str, int | None]:
    return instance.profile, instance.start


def _is_nothing(instance: Instance) -> bool:
    """Whether it says only that a GPU is not partitioned and has no managed work."""
    return instance.profile == WHOLE and instance.is_managed and instance.work is None


def _is_same(one: Instance, other: Instance) -> bool:
    """Whether nothing has to happen: the same work of the same owner, and it goes on.

    A managed instance that drains is restarted if it is to stay.
    """
    if one.is_managed and State.DRAINING in (one.state, other.state) and one.state != other.state:
        return False
    does, should = ((i.work, i.owner, i.is_whole) for i in (one, other))
    return _at(one) == _at(other) and does == should


def _can_restart(one: Instance, other: Instance) -> bool:
    return _at(one) == _at(other) and one.is_managed and other.is_managed and one.is_whole
