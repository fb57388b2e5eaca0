"""An instance on a GPU: a part of it in its place, and what it does."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ...errors import InvalidProblem
from ...values.words import short
from ..serving.operating_point import OperatingPoint
from ..serving.service import require_name

#: What drivers call GPUs and their parts: ``GPU-...``, ``MIG-...``, and ``MIG-GPU-.../3/0`` of old.
UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z][0-9A-Za-z/-]*", re.ASCII)

#: What stands in the place of a profile where work has a GPU that is not cut for itself.
WHOLE = "whole"
#: Whose an instance is of which no source says what it does.
UNKNOWN_OWNER = "unknown"


class Mode(StrEnum):
    """How a GPU is shared."""

    MIG = "mig"
    WHOLE = "whole"
    MPS = "mps"
    FIXED = "fixed"  # its instances stay as they are, and nothing is planned on it


class StartSource(StrEnum):
    """How the starts of a GPU's instances are known."""

    OBSERVED = "observed"  # read from the GPU, or decided by a plan
    INFERRED = "inferred"  # only the counts were read, and one layout alone has them
    UNKNOWN = "unknown"  # only the counts were read; several layouts have them


class State(StrEnum):
    """What an instance does."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    NO_COMPUTE_INSTANCE = "no_compute_instance"  # what a creation that failed half-way leaves
    SPLIT = "split"  # its compute instances are others than the one that is all of it


def require_uuid(uuid: str | None, what: str) -> None:
    """Raise InvalidProblem for what is no UUID: it stands in a column of the tables of scripts."""
    if uuid is not None and not UUID.fullmatch(uuid):
        raise InvalidProblem(f"{what} is {uuid!r}; expected GPU-... or MIG-...")


def list_counts(counts: Mapping[str, int], joint: str = " + ") -> str:
    """List how many instances of each profile there are: ``2 x 1g.10gb + 1 x 3g.40gb``."""
    return joint.join(f"{n} x {profile}" for profile, n in sorted(counts.items())) or "nothing"


@dataclass(frozen=True, slots=True)
class Work:
    """What an instance does for a service.

    `point`: What it runs. `supply_rps`: Items per second that it counts for under the rule of its
    deployment.
    """

    service: str
    point: OperatingPoint
    supply_rps: Fraction

    def __str__(self) -> str:
        processes, batch = self.point.processes, self.point.batch
        rate = short(self.supply_rps, math.floor)
        return f"{self.service} ({processes}p b{batch}, {rate} requests/s)"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of instance: those of one kind can stand for each other.

    `gpu`: The key of a GPU. `profile`: ``3g.40gb``, ``mps:40``.
    """

    gpu: str
    profile: str
    work: Work

    @property
    def order(self) -> tuple[str, str, str, int, int]:
        """What kinds are sorted by: service, GPU, profile, processes, batch."""
        point = self.work.point
        return self.work.service, self.gpu, self.profile, point.processes, point.batch

    def __str__(self) -> str:
        return f"{self.work} on {self.profile} of {self.gpu}"


@dataclass(frozen=True, slots=True)
class Instance:
    """A part of a GPU in its place, and what it does.

    `profile`: A MIG profile of the GPU, a share under MPS (``mps:40``), or :data:`WHOLE`. `start`:
    Its first memory slice; of a share that services take turns in, its first per cent, the same for
    all of them; None for a share of its own, a whole GPU, and where it is not known. `work`: What
    it serves; None if it idles, or what it does is not known. `owner`: Owner of a foreign instance:
    ``pod team-x/trainer``, ``unknown``. It is never moved or deleted. `gpu_instance`: The number
    under which the driver knows it. `is_guessed`: Whether its work is known for the node but not
    for the GPU: it may be exchanged with that of another guessed instance of this profile on the
    node.

    Examples
    --------
    >>> print(Instance("3g.40gb", 4), Instance("1g.10gb", 0, owner="pod team-x/trainer"), sep=", ")
    3g.40gb@4 idle, 1g.10gb@0 of pod team-x/trainer
    """

    profile: str
    start: int | None = None
    work: Work | None = None
    owner: str | None = None
    state: State = State.RUNNING
    gpu_instance: int | None = None
    uuid: str | None = None
    is_guessed: bool = False

    def __post_init__(self) -> None:
        # What an owner is called stands in scripts and reports: a line end would end a comment.
        if self.owner is not None:
            require_name(self.owner, "owner")
        require_uuid(self.uuid, "the UUID of an instance")

    @property
    def is_managed(self) -> bool:
        """Whether a plan may move or remove it."""
        return self.owner is None

    @property
    def is_whole(self) -> bool:
        """Whether it has the one compute instance that is all of it, so that work can use it."""
        return self.state not in (State.NO_COMPUTE_INSTANCE, State.SPLIT)

    @property
    def place(self) -> str:
        """Its profile and, if it has one, its start: ``3g.40gb@4``."""
        return self.profile if self.start is None else f"{self.profile}@{self.start}"

    @property
    def supply_rps(self) -> Fraction:
        """What it supplies now: nothing unless it runs."""
        running = self.work is not None and self.state is State.RUNNING
        return self.work.supply_rps if running and self.work else Fraction(0)

    @property
    def order(self) -> tuple[int, str, tuple[str, int, int], str, str, str]:
        """What the instances of a GPU are sorted by."""
        work = self.work
        what = (work.service, work.point.processes, work.point.batch) if work else ("", 0, 0)
        start = -1 if self.start is None else self.start
        return start, self.profile, what, self.owner or "", self.uuid or "", self.state.value

    def __str__(self) -> str:
        doing = str(self.work) if self.work else "idle"
        if self.owner is not None:
            doing = f"of {self.owner}"
        state = "" if self.state is State.RUNNING else f", {self.state}"
        return f"{self.place} {doing}{state}"
