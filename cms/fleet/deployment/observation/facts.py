"""Facts about nodes as one source tells them, each with the place where it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....errors import FileError
from ....values.frozen import FrozenMap
from ..instance import State

#: What is expected where sources contradict each other.
SAME_TIME = "sources of the same node, read at the same time"


def fault_at(where: str, what: str, expected: str | None = None) -> FileError:
    """Build an error at ``lgi.txt:14``."""
    name, _, line = where.rpartition(":")
    if name and line.isdigit():
        return FileError(name, what, line=int(line), expected=expected)
    return FileError(where, what, expected=expected)


@dataclass(frozen=True, slots=True)
class Statement:
    """Something a source says, and where: ``lgi.txt:14``."""

    value: str
    where: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """A GPU instance."""

    profile: str  # as the source calls it
    where: str = field(compare=False)
    start: int | None = None  # in memory slices, as its size
    size: int | None = None
    gpu_instance: int | None = None
    uuid: str | None = None
    state: State = State.RUNNING
    multiprocessors: int | None = None  # of its only compute instance, which may be a part of it


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What a source says of one GPU; None where it says nothing."""

    index: int  # its number; an order alone if `NodeFacts.is_numbered` is False
    where: str = field(compare=False)
    uuid: Statement | None = None
    product: Statement | None = None  # as drivers print it, or a PCI device id
    mig: Statement | None = None  # "on" or "off"
    pending: Statement | None = None  # MIG after a reset
    instances: tuple[InstanceFacts, ...] | None = None  # all of them, placed
    counts: Mapping[str, int] | None = None  # all of them, by profile
    listing: str | None = field(default=None, compare=False)  # of the instances, if not `where`
    # MIG if no source says it: no pod holds any of the GPU, and its driver cuts it as asked
    unclaimed: Statement | None = None
    is_guessed: bool = False  # what it holds may be what another GPU of the node holds
    unfit: Statement | None = None  # why nothing can be planned on it, whatever else is said


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Work that holds instances or GPUs of a node, as a cluster knows it."""

    name: str  # ``team-x/trainer``: its namespace and name
    where: str = field(compare=False)
    profiles: tuple[str, ...]  # one an instance: ``3g.40gb``, or WHOLE
    service: str | None = None  # its labels, if it is managed: see cms.fleet.deployment.labels
    point: str | None = None  # if not told, the only one of the service on such a profile
    state: State = State.RUNNING
    # which it holds, where the cluster knows (DRA): GPU's index, profile, start
    places: tuple[tuple[int, str, int | None], ...] = ()
    is_tied: bool = False  # it can run on this node alone


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """What a device plug-in counts on a node, of whose GPUs it tells nothing one by one."""

    where: str = field(compare=False)
    number: int | None  # of GPUs; None if only instances of one profile on all of them are counted
    totals: Mapping[str, int]  # by profile, those that are out of order included


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a source says of a node."""

    source: str  # the file, or ``<stdin>``
    node: Statement | None = None  # its name; None where the user has to name it
    at: str | None = None  # when it was read, ``2026-11-23T10:15:00Z``
    driver: Statement | None = None
    product: Statement | None = None  # of all of its GPUs, where a source says it of the node
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    gpus: tuple[GpuFacts, ...] = ()
    pods: tuple[PodFacts, ...] | None = None  # all that hold GPUs; None where pods are not known
    allocatable: Mapping[str, int] | None = None  # by profile or WHOLE, those in use included
    capacity: Mapping[str, int] | None = None  # with those that are out of order
    counted: NodeCounts | None = None
    mig_state: Statement | None = None  # success, pending, rebooting or failed: of the last change
    unknown: tuple[str, ...] = ()  # what it cannot tell of the node, for the user
    unfit: Statement | None = None  # why nothing can be planned on any of its GPUs
    is_numbered: bool = True  # indices of GPUs, and of what pods hold, are those of nvidia-smi
