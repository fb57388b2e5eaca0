"""What a GPU can be cut into: profiles, and instances of them at a start slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

#: Of an instance with one of these, a GPU holds one at most: its JPEG and OFA engines exist once.
MEDIA_ATTRIBUTES = frozenset({"me", "me.all"})


@dataclass(frozen=True)
class Profile:
    """One kind of GPU instance, as a device file describes it.

    Parameters
    ----------
    name : str
        As the driver prints it: ``3g.40gb``. It says how much memory only roughly.
    family : str
        The name without the card's memory: ``3g``, ``1g.double`` (double memory), ``1g+me``.
    id : int or None
        The driver's profile id; None if nobody has seen it.
    compute, memory : int
        Slices it takes. Compute is not linear in them: see `sms`.
    starts : tuple of int
        The memory slices at which an instance can start.
    max : int
        At most this many on one GPU.
    sms : int or None
        Streaming multiprocessors.
    memory_mib : int or None
        Memory in MiB as the driver gives it; never computed from the name.
    attributes : tuple of str
        ``("me",)`` for ``1g.10gb+me``; an engine left out is written with its sign: ``("-me",)``.
    since_driver : str or None
        The first driver branch that offers it.
    other_names : tuple of str
        What other drivers call the same profile (``7g.79gb``).
    named_since : str or None
        The first driver branch that calls it `name`; those before it take the first of
        `other_names`.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> three = gpu("h100-80gb").profile("3g.40gb")
    >>> three.starts, three.memory, three.sms
    ((0, 4), 4, 60)
    """

    name: str
    family: str
    id: int | None
    compute: int
    memory: int
    starts: tuple[int, ...]
    max: int
    sms: int | None = None
    memory_mib: int | None = None
    attributes: tuple[str, ...] = ()
    since_driver: str | None = None
    other_names: tuple[str, ...] = ()
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
    """An instance in its place: a profile's name and its first memory slice.

    Examples
    --------
    >>> print(Placement("3g.40gb", 4))
    3g.40gb@4
    """

    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


#: A set of instances on one GPU, in the order of their starts.
Layout: TypeAlias = tuple[Placement, ...]


@dataclass(frozen=True)
class Evidence:
    """Where figures of a device file come from.

    Parameters
    ----------
    fields : tuple of str
        The fields it vouches for.
    evidence : str
        ``page`` (a published page), ``code`` (public source code), ``capture`` (read from a
        device) or ``measured``.
    source : str
        The document, repository or device.
    driver : str or None
        The driver's version, where one was running.
    date : str or None
        Of the document or capture, ``YYYY-MM-DD``.
    """

    fields: tuple[str, ...]
    evidence: str
    source: str
    driver: str | None = None
    date: str | None = None
