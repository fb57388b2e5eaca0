"""A deployment: nodes, their GPUs, and the instances on them, each in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from ...errors import InvalidProblem
from ...files.numerals import is_whole
from ...values.frozen import FrozenMap
from ...values.numbers import exact
from ...values.views import Record, Tabular, Viewed
from ...values.words import count
from ..hardware import Gpu, Layout, Placement, Profile
from ..serving.plan import Plan
from ..serving.queueing import QueueingRule
from ..serving.service import Service, combine_supplies, require_name
from .instance import (
    WHOLE,
    Instance,
    Kind,
    Mode,
    StartSource,
    State,
    Work,
    require_uuid,
)

#: The column of a table of nodes, and label, that says what a node's GPUs cost.
PRICE = "price_per_hour"


@dataclass(frozen=True, slots=True)
class FleetGpu:
    """A GPU of a node.

    `index`: Its number on the node, >= 0. `mode`: `Mode.FIXED` of a GPU that MIG does not cut, or
    that is not fit for it now: what is on it is another's. `instances`: Sorted by start, whatever
    the order they are given in. `start_source`: How the starts are known.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> card = FleetGpu("node-a", 3, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),))
    >>> print(card)
    node-a/3 a100-80gb: 3g.40gb@4 idle
    """

    node: str
    index: int
    gpu: Gpu
    mode: Mode = Mode.MIG
    instances: tuple[Instance, ...] = ()
    uuid: str | None = None
    start_source: StartSource = StartSource.OBSERVED

    def __post_init__(self) -> None:
        require_uuid(self.uuid, f"the UUID of {self.name}")
        ordered = tuple(sorted(self.instances, key=lambda each: each.order))
        object.__setattr__(self, "instances", ordered)

    @property
    def name(self) -> str:
        """``node-a/3``."""
        return f"{self.node}/{self.index}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on it."""
        return not self.instances

    @property
    def leaves_mode(self) -> bool:
        """Whether MIG may be on or off: the GPU is empty, and no source says that MIG is off."""
        return self.mode is Mode.MIG and self.is_empty

    @property
    def layout(self) -> Layout:
        """The placed instances; those whose start is not known are left out."""
        return tuple(
            Placement(each.profile, each.start) for each in self.instances if each.start is not None
        )

    @property
    def foreign(self) -> tuple[Instance, ...]:
        """The foreign instances."""
        return tuple(each for each in self.instances if not each.is_managed)

    @property
    def is_cut(self) -> bool:
        """Whether MIG is on, as far as is known."""
        if self.mode is Mode.FIXED:
            return all(each.profile != WHOLE for each in self.instances)
        return self.mode is Mode.MIG

    @property
    def counts(self) -> dict[str, int]:
        """How many instances of each profile there are."""
        return dict(Counter(each.profile for each in self.instances))

    def with_instances(self, instances: Iterable[Instance], mode: Mode | None = None) -> FleetGpu:
        """Return the same GPU with other instances, whose starts are known."""
        known = StartSource.OBSERVED
        return replace(self, instances=tuple(instances), mode=mode or self.mode, start_source=known)

    def __str__(self) -> str:
        held = ", ".join(map(str, self.instances)) or "empty"
        mode = "" if self.mode is Mode.MIG else f" ({self.mode})"
        return f"{self.name} {self.gpu.key}{mode}: {held}"


@dataclass(frozen=True, slots=True)
class Observation:
    """When and from what a node's state was read.

    `at`: ``2026-11-23T10:15:00Z``. `sources`: Files or commands.
    """

    at: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetNode:
    """A machine with GPUs.

    `gpus`: Sorted by index, whatever the order they are given in. `labels`: ``{key: value}``,
    ``zone`` among them. `driver`: ``550.54.15``. `observed`: None if it was never observed.
    `is_numbered`: Whether its GPUs' indices are those of ``nvidia-smi``, and not an order alone.

    InvalidProblem if a GPU is of another node, or the driver is no version.
    """

    name: str
    gpus: tuple[FleetGpu, ...] = ()
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    driver: str | None = None
    observed: Observation | None = None
    is_numbered: bool = True

    def __post_init__(self) -> None:
        require_name(self.name, "node")
        for each in self.gpus:
            if each.node != self.name:
                raise InvalidProblem(
                    f"GPU {each.name} is on node {self.name!r}; expected {self.name}/{each.index}"
                )
        if self.driver is not None:
            driver_branch(self.driver)  # as every file's
        object.__setattr__(self, "gpus", tuple(sorted(self.gpus, key=lambda each: each.index)))

    @property
    def price(self) -> Fraction | None:
        """What each of its GPUs costs an hour, by its label ``price_per_hour``; None without it."""
        text = self.labels.get(PRICE)
        return None if text is None else exact(text, f"{PRICE} of node {self.name!r}")

    def calls(self, gpu: Gpu, name: str) -> str:
        """Return what its driver calls a profile; what is none has its own name."""
        profile = next((each for each in gpu.profiles if each.name == name), None)
        if self.driver is None or profile is None or profile.named_since is None:
            return name
        is_older = driver_branch(self.driver) < driver_branch(profile.named_since)
        return profile.other_names[0] if is_older else name

    def offers(self, profile: Profile) -> bool:
        """Whether its driver knows a profile, as far as that is known."""
        if self.driver is None or profile.since_driver is None:
            return True
        return driver_branch(self.driver) >= driver_branch(profile.since_driver)


def doubtful(node: FleetNode) -> dict[str, str]:
    """Return the profiles of a node of which a managed instance may be foreign, and the owner.

    It is what a device plug-in does not tell.
    """
    return {
        each.profile: each.owner
        for card in node.gpus
        for each in card.instances
        if each.is_guessed and each.owner is not None
    }


def in_doubt(card: FleetGpu, profiles: Collection[str]) -> tuple[Instance, ...]:
    """Return the managed instances of a GPU that may be foreign; see `doubtful` for `profiles`.

    What works there may change, since pods say so themselves; the instances have to stay.
    """
    own = (each for each in card.instances if each.is_managed and each.is_guessed)
    return tuple(each for each in own if each.profile in profiles)


def driver_branch(driver: str) -> int:
    """Return the branch of a driver: 550 of ``550.54.15`` and of ``R550``."""
    written = driver.removeprefix("R").partition(".")[0]
    if not is_whole(written) or len(written) > 8:  # as in files of devices
        raise InvalidProblem(
            f"the driver is {driver!r}; expected its version, as nvidia-smi prints it: 550.54.15"
        )
    return int(written)


@dataclass(frozen=True)
class Deployment(Viewed, Tabular):
    """What runs where, or is to run.

    Equal deployments are equal objects and equal files, whatever the order of their parts.

    `nodes`: Sorted by name, whatever the order they are given in. `services`: Those that the work
    on the instances names. `rule`: What the supplies were counted by; None where nothing is known
    of services. `plan`: What it realises: its certificate bounds the number of GPUs.

    InvalidProblem if two nodes have one name, or work is of a service that is not there.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> cards = [FleetGpu("node-a", index, get_gpu("a100-80gb")) for index in range(2)]
    >>> fleet = Deployment((FleetNode("node-a", tuple(cards)),))
    >>> print(fleet, len(fleet.free_gpus()))
    2 GPUs on 1 node, 0 instances 2
    """

    nodes: tuple[FleetNode, ...]
    services: tuple[Service, ...] = ()
    rule: QueueingRule | None = None
    plan: Plan | None = None
    #: The GPUs' types by key.
    devices: FrozenMap[str, Gpu] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(sorted(self.nodes, key=lambda each: each.name)))
        for name, n in Counter(node.name for node in self.nodes).items():
            if n > 1:
                raise InvalidProblem(f"there are {n} nodes {name!r}; expected one of a name")
        devices: dict[str, Gpu] = {}
        for card in self.gpus():
            if devices.setdefault(card.gpu.key, card.gpu) != card.gpu:
                raise InvalidProblem(
                    f"{card.name} is a {card.gpu.key} of another device file than GPUs before it; "
                    "expected one device of a key"
                )
        object.__setattr__(self, "devices", FrozenMap(devices))
        known = {service.name for service in self.services}
        for card, instance in self.instances():
            if instance.work is not None and instance.work.service not in known:
                raise InvalidProblem(
                    f"{card.name} has {instance}, but there is no service "
                    f"{instance.work.service!r}; expected it among the deployment's services"
                )

    def gpus(self) -> Iterator[FleetGpu]:
        """Iterate over all GPUs, by node and index."""
        return (card for node in self.nodes for card in node.gpus)

    def instances(self) -> Iterator[tuple[FleetGpu, Instance]]:
        """Iterate over all instances with their GPUs, by node, index and start."""
        return ((card, instance) for card in self.gpus() for instance in card.instances)

    def _tables(self) -> Mapping[str, Iterable[Record]]:
        cards = (
            {"node": card.node, "index": card.index, "gpu": card.gpu.key, "mode": card.mode.value,
             "instances": len(card.instances), "uuid": card.uuid}
            for card in self.gpus()
        )  # fmt: skip
        instances = (
            {"node": card.node, "index": card.index, "gpu": card.gpu.key, "profile": each.profile,
             "start": each.start, "service": each.work and each.work.service, "owner": each.owner,
             "state": each.state.value}
            for card, each in self.instances()
        )  # fmt: skip
        return {"instances": instances, "gpus": cards}

    def node(self, name: str) -> FleetNode:
        """Return a node; KeyError if there is none of this name."""
        return self._nodes[name]

    @cached_property
    def _nodes(self) -> dict[str, FleetNode]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _doubts(self) -> dict[str, dict[str, str]]:
        return {node.name: doubtful(node) for node in self.nodes}

    def in_doubt(self, card: FleetGpu) -> tuple[Instance, ...]:
        """Return the managed instances of one of its GPUs that may be foreign."""
        return in_doubt(card, self._doubts[card.node])

    def free_gpus(self) -> tuple[FleetGpu, ...]:
        """Return the GPUs that nothing is on."""
        return tuple(card for card in self.gpus() if card.is_empty)

    def used_gpus(self) -> tuple[FleetGpu, ...]:
        """Return the GPUs that something is on."""
        return tuple(card for card in self.gpus() if not card.is_empty)

    @property
    def routing(self) -> str:
        """How requests are spread over a service's instances: as the plan says, or weighted."""
        return "weighted" if self.plan is None else self.plan.routing

    @cached_property
    def _capacities(self) -> dict[str, Fraction]:
        running: dict[str, Counter[Fraction]] = {}
        for _, each in self.instances():
            if each.work is not None and each.state is State.RUNNING:
                running.setdefault(each.work.service, Counter())[each.work.supply_rps] += 1
        return {name: combine_supplies(own.items(), self.routing) for name, own in running.items()}

    def capacity(self, service: str) -> Fraction:
        """Return what the running instances of a service supply together, in items per second.

        Each counts with its own point's supply: instances of one service and profile may run at
        different points. For equal routing each counts as the smallest. 0 if none runs.
        """
        return self._capacities.get(service, Fraction(0))

    def kinds(self) -> Counter[Kind]:
        """Count our instances that have work, by kind."""
        return Counter(
            Kind(card.gpu.key, instance.profile, instance.work)
            for card, instance in self.instances()
            if instance.work is not None and instance.is_managed
        )

    def places(self) -> Counter[tuple[str, str, int | None, Work]]:
        """Count our instances that have work, by GPU, profile, start and work."""
        return Counter(
            (card.name, instance.profile, instance.start, instance.work)
            for card, instance in self.instances()
            if instance.work is not None and instance.is_managed
        )

    def with_gpus(self, cards: Mapping[tuple[str, int], FleetGpu]) -> Deployment:
        """Return the same with some GPUs replaced, given by node and index."""
        nodes = tuple(
            replace(node, gpus=tuple(cards.get((node.name, c.index), c) for c in node.gpus))
            for node in self.nodes
        )
        return replace(self, nodes=nodes)

    def with_uuids_of(self, other: Deployment) -> Deployment:
        """Return the same with the UUIDs that another one knows of the same GPUs."""
        known = {card.name: card.uuid for card in other.gpus()}
        cards = (replace(card, uuid=card.uuid or known.get(card.name)) for card in self.gpus())
        return self.with_gpus({(card.node, card.index): card for card in cards})

    def __str__(self) -> str:
        cards, held = (sum(1 for _ in each) for each in (self.gpus(), self.instances()))
        where = f"{count(cards, 'GPU')} on {count(len(self.nodes), 'node')}"
        return f"{where}, {count(held, 'instance')}"
