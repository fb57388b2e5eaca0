"""What has to happen on each GPU for one deployment to become another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import InvalidProblem
from ...values.words import count
from ..serving.service import Service
from .instance import WHOLE, Instance, Mode, State
from .model import Deployment, FleetGpu


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
        touched, done = len(self.touched), self.counts
        parts = ", ".join(f"{done[what]} {what}" for what in ("restarted", "created", "deleted"))
        changes = f"{count(touched, 'GPU')} change{'s' * (touched == 1)}"
        rest, kept = len(self.gpus) - touched, f"{count(done['kept'], 'instance')} kept"
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
    empty = {at: card.with_instances(()) for at, card in (others | cards).items()}
    pairs = ((cards.get(at, empty[at]), others.get(at, empty[at])) for at in sorted(empty))
    return Difference(tuple(compare_gpus(*pair) for pair in pairs))


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


def compare_gpus(now: FleetGpu, then: FleetGpu) -> GpuDifference:
    """Compare what is with what is to be on one GPU; see `difference`."""
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
    for card in (now, then):
        if card.mode is Mode.MIG and any(each.start is None for each in card.instances):
            raise InvalidProblem(
                f"the starts of the instances on {card.name} are not known; observe it with "
                "nvidia-smi mig -lgi"
            )
    # that a GPU is not partitioned and has no managed work is nothing
    left, right = (
        [i for i in card.instances if i.profile != WHOLE or not i.is_managed or i.work is not None]
        for card in (now, then)
    )
    # what stays as it is goes first: under MPS several instances have one place
    stays = [one for one, _ in pair_off(left, right, _is_same)]
    restarted = tuple(pair_off(left, right, _can_restart))
    kept, foreign = (tuple(i for i in stays if i.is_managed is ours) for ours in (True, False))
    return GpuDifference(now, then, kept, restarted, tuple(right), tuple(left), foreign)


def pair_off(
    left: list[Instance], right: list[Instance], fits: Callable[[Instance, Instance], bool]
) -> list[tuple[Instance, Instance]]:
    """Take out of two lists what fits to each other, and return it."""
    pairs = []
    for one in [*left]:
        if other := next((each for each in right if fits(one, each)), None):
            left.remove(one)
            right.remove(other)
            pairs.append((one, other))
    return pairs


def _is_same(one: Instance, other: Instance) -> bool:
    """Whether nothing has to happen: the same work of the same owner, and it goes on.

    A managed instance that drains is restarted if it is to stay.
    """
    if one.is_managed and State.DRAINING in (one.state, other.state) and one.state != other.state:
        return False
    does, should = ((i.place, i.work, i.owner, i.is_whole) for i in (one, other))
    return does == should


def _can_restart(one: Instance, other: Instance) -> bool:
    return one.place == other.place and one.is_managed and other.is_managed and one.is_whole
