"""What a GPU can be partitioned into: instances of profiles at a start, or shares under MPS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption
from ...problem.parts import SizeBoundedConfigurations
from ...values.numbers import Number, exact, format_exact

#: Of an instance with one of these, a GPU holds one at most: its JPEG and OFA engines exist once.
MEDIA_ATTRIBUTES = frozenset({"me", "me.all"})


@dataclass(frozen=True)
class Profile:
    """One kind of GPU instance, as a device file describes it; None is unknown."""

    name: str  #: as the driver prints it: ``3g.40gb``; it says how much memory only roughly
    family: str  #: without the card's memory: ``3g``, ``1g.double`` (double memory), ``1g+me``
    id: int | None  #: the driver's profile id
    compute: int  #: slices it takes, in which compute is not linear: see `sms`
    memory: int  #: slices it takes
    starts: tuple[int, ...]  #: the memory slices at which an instance can start
    max: int  #: at most this many on one GPU
    sms: int | None = None  #: streaming multiprocessors
    memory_mib: int | None = None  #: as the driver gives it; never computed from the name
    #: ``("me",)`` for ``1g.10gb+me``; an engine left out is written with its sign: ``("-me",)``.
    attributes: tuple[str, ...] = ()
    since_driver: str | None = None  #: the first driver branch that offers it
    other_names: tuple[str, ...] = ()  #: what other drivers call the same profile (``7g.79gb``)
    #: The first driver branch that calls it `name`; those before it take the first other name.
    named_since: str | None = None

    @property
    def is_base(self) -> bool:
        """Whether it is a plain profile: no attributes, and not the one with double memory."""
        return self.family == f"{self.compute}g"

    @property
    def has_media_engines(self) -> bool:
        """Whether it holds the engines of which a GPU can give away one set only."""
        return not MEDIA_ATTRIBUTES.isdisjoint(self.attributes)


class Placement(NamedTuple):
    """An instance in its place: a profile's name and its first memory slice."""

    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


#: A set of instances on one GPU, in the order of their starts.
Layout: TypeAlias = tuple[Placement, ...]


@dataclass(frozen=True)
class Evidence:
    """Where figures of a device file come from."""

    fields: tuple[str, ...]  #: which it vouches for
    evidence: str  #: ``page``, ``code`` (both public), ``capture`` (of a device) or ``measured``
    source: str  #: the document, repository or device
    driver: str | None = None  #: its version, where one was running
    date: str | None = None  #: of the document or capture, ``YYYY-MM-DD``


#: An MPS daemon serves at most this many clients of one GPU.
MPS_CLIENTS = 48


def mps_shares(
    steps: Iterable[Number], *, machine: str, prefix: str = ""
) -> SizeBoundedConfigurations:
    """Share a whole GPU by MPS: any clients whose active-thread percentages sum to at most 100.

    MPS and MIG do not mix on one GPU here: the shares are of a GPU whose MIG mode is off, of the
    machine type `machine`. `steps` are the shares that a client can have, each once, in per cent of
    the GPU: > 0, at most 100. The block of 40 per cent is called ``mps:40``, after a `prefix`. MPS
    allows at most 48 clients on a GPU. InvalidOption names a wrong step.

    Examples
    --------
    >>> shares = mps_shares([10, 25, 40], machine="a100-80gb-mps")
    >>> shares.capacity, shares.max_blocks, list(shares.sizes)
    (Fraction(100, 1), 48, ['mps:10', 'mps:25', 'mps:40'])
    """
    sizes = {}
    for step in steps:
        share = exact(step, "MPS step", error=InvalidOption)
        if not 0 < share <= 100:
            raise InvalidOption(
                f"MPS step is {format_exact(share)}; expected per cent of a GPU, "
                "more than 0 and at most 100"
            )
        block = f"{prefix}mps:{format_exact(share)}"
        if block in sizes:
            raise InvalidOption(f"MPS step {format_exact(share)} occurs twice; give it once")
        sizes[block] = share
    if not sizes:
        raise InvalidOption("no MPS steps; give the shares a client can have, such as [10, 25, 50]")
    return SizeBoundedConfigurations(sizes, capacity=100, machine=machine, max_blocks=MPS_CLIENTS)
