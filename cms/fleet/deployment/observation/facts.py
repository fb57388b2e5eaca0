"""Facts about nodes as one source tells them, each with the place where it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....errors import FileError
from ....values.frozen import FrozenMap
from ..instance import State

__all__ = [
    "SHARED", "Counted", "GpuFacts", "InstanceFacts", "NodeFacts", "PodFacts", "Stated", "fault_at",
]  # fmt: skip

#: What a pod holds of a GPU that others may hold, too, in parts that the source does not know.
SHARED = "shared"


def fault_at(where: str, what: str, expected: str | None = None) -> FileError:
    """Build an error at ``lgi.txt:14``."""
    name, _, line = where.rpartition(":")
    if name and line.isdigit():
        return FileError(name, what, line=int(line), expected=expected)
    return FileError(where, what, expected=expected)


@dataclass(frozen=True, slots=True)
class Stated:
    """Something a source says, and where: ``lgi.txt:14``."""

    value: str
    where: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """A GPU instance.

    Parameters
    ----------
    profile : str
        As the source calls it.
    where : str
    start, size : int, optional
        In memory slices.
    gpu_instance : int, optional
    uuid : str, optional
    state : State
        Running, without a compute instance, or with others than the one that is all of it.
    multiprocessors : int, optional
        Those of its only compute instance, where that may be a part of it.
    """

    profile: str
    where: str = field(compare=False)
    start: int | None = None
    size: int | None = None
    gpu_instance: int | None = None
    uuid: str | None = None
    state: State = State.RUNNING
    multiprocessors: int | None = None


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What a source says of one GPU; None where it says nothing.

    Parameters
    ----------
    index : int
        Its number; an order alone if `NodeFacts.is_numbered` is False.
    where : str
    uuid : Stated, optional
    product : Stated, optional
        Its name, as drivers print it (``NVIDIA A100-SXM4-80GB``), or a PCI device id.
    mig, pending : Stated, optional
        ``on`` or ``off``: MIG now, and after a reset.
    instances : tuple of InstanceFacts, optional
        All of them, placed.
    counts : Mapping[str, int], optional
        All of them, by profile.
    listing : str, optional
        Where `instances` are listed, or said to be none, if that is not `where`.
    unclaimed : Stated, optional
        MIG mode if no source says it: nobody holds any of the GPU, and its driver cuts it as asked.
    is_guessed : bool
        Whether what it holds may be what another GPU of the node holds, and the reverse.
    unfit : Stated, optional
        Why nothing can be planned on it, whatever else is said: ``GPU requires reset``.
    """

    index: int
    where: str = field(compare=False)
    uuid: Stated | None = None
    product: Stated | None = None
    mig: Stated | None = None
    pending: Stated | None = None
    instances: tuple[InstanceFacts, ...] | None = None
    counts: Mapping[str, int] | None = None
    listing: str | None = field(default=None, compare=False)
    unclaimed: Stated | None = None
    is_guessed: bool = False
    unfit: Stated | None = None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Work that holds instances or GPUs of a node, as a cluster knows it.

    Parameters
    ----------
    name : str
        ``team-x/trainer``: its namespace and name.
    where : str
    profiles : tuple of str
        One entry an instance it holds: ``3g.40gb``; :data:`~cms.fleet.deployment.WHOLE` for a GPU,
        :data:`SHARED` for a part of one.
    service, point : str, optional
        Its labels, if it is managed: see :mod:`cms.fleet.deployment.labels`.
    state : State
    places : tuple of (int, str, int or None), optional
        Exactly which (GPU's index, profile, start) it holds, where the cluster knows (DRA).
    is_tied : bool
        Whether it can run on this node alone.
    """

    name: str
    where: str = field(compare=False)
    profiles: tuple[str, ...]
    service: str | None = None
    point: str | None = None
    state: State = State.RUNNING
    places: tuple[tuple[int, str, int | None], ...] = ()
    is_tied: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """What a device plug-in counts on a node, of whose GPUs it tells nothing one by one.

    Parameters
    ----------
    where : str
    number : int, optional
        How many GPUs there are; None if only how many instances, of one profile on all of them.
    totals : Mapping[str, int]
        By profile, those that are out of order included.
    """

    where: str = field(compare=False)
    number: int | None
    totals: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a source says of a node.

    Parameters
    ----------
    source : str
        The file, or ``<stdin>``.
    node : Stated, optional
        Its name; None where the source has none, so that the user has to name it.
    at : str, optional
        When it was read, ``2026-11-23T10:15:00Z``.
    driver : Stated, optional
    product : Stated, optional
        Of all of its GPUs, where a source says it of the node.
    labels : FrozenMap
    gpus : tuple of GpuFacts
    pods : tuple of PodFacts, optional
        All that hold GPUs or instances of the node; None where the source knows no pods.
    allocatable, capacity : Mapping[str, int], optional
        How many instances of each profile (and :data:`~cms.fleet.deployment.WHOLE` GPUs) the
        cluster can give away, those in use included; and with those that are out of order.
    counted : Counted, optional
    mig_state : Stated, optional
        ``success``, ``pending``, ``rebooting`` or ``failed``: how the last change ended.
    unknown : tuple of str
        What it cannot tell of the node, for the user.
    unfit : Stated, optional
        Why nothing can be planned on any of its GPUs.
    is_numbered : bool
        Whether the indices of `gpus`, and of what pods hold, are those of ``nvidia-smi``.
    """

    source: str
    node: Stated | None = None
    at: str | None = None
    driver: Stated | None = None
    product: Stated | None = None
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    gpus: tuple[GpuFacts, ...] = ()
    pods: tuple[PodFacts, ...] | None = None
    allocatable: Mapping[str, int] | None = None
    capacity: Mapping[str, int] | None = None
    counted: Counted | None = None
    mig_state: Stated | None = None
    unknown: tuple[str, ...] = ()
    unfit: Stated | None = None
    is_numbered: bool = True
