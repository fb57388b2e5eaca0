"""Who shares a GPU with whom, by classes and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from ...errors import InvalidProblem, InvalidSchedule
from ...schedule.schedule import Excerpt
from ...values.frozen import FrozenMap, Immutable
from ...values.names import checked_name
from ...values.numbers import shown, whole


class Pair(NamedTuple):
    """GPUs of an online class that each take a workload of an offline class."""

    online: str
    offline: str
    count: int  # type: ignore[assignment]


class SharingPlan(Immutable):
    """How many GPUs of each online class take a workload of each offline class; immutable.

    Parameters
    ----------
    counts : Mapping of (str, str) to int
        By the names of the two classes, each >= 1. Without any, no GPU is shared.
    """

    __slots__ = ("counts",)
    counts: FrozenMap[tuple[str, str], int]
    machine_count: ClassVar[None] = None

    def __init__(self, counts: Mapping[tuple[str, str], int] | None = None) -> None:
        given = {} if counts is None else counts
        if not isinstance(given, Mapping):
            raise InvalidSchedule(
                f"counts is {given!r}; expected a mapping of pairs of names to whole numbers, such "
                'as {("quiet", "train"): 3}'
            )
        table: dict[tuple[str, str], int] = {}
        pair: Any
        for pair, count in given.items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise InvalidSchedule(f"counts has the key {pair!r}; expected a pair of names")
            try:
                online = checked_name(pair[0], "online class")
                offline = checked_name(pair[1], "offline class")
            except InvalidProblem as fault:
                raise InvalidSchedule(str(fault)) from None
            what = f"the count of {offline!r} on {online!r}"
            table[online, offline] = whole(count, what, least=1, error=InvalidSchedule)
        object.__setattr__(self, "counts", FrozenMap(table))

    def __iter__(self) -> Iterator[Pair]:
        return (Pair(online, offline, n) for (online, offline), n in self.counts.items())

    @property
    def placed(self) -> int:
        """How many workloads it places."""
        return sum(self.counts.values())

    def excerpt(self, most: int) -> Excerpt:
        """Return at most so many pairs for a printed solution."""
        rows = [(shown(pair.count), pair.online, pair.offline) for pair in [*self][:most]]
        more = len(self.counts) - len(rows)
        return Excerpt(("GPUs", "online", "offline"), rows, f"... and {more} more" if more else "")

    def __eq__(self, other: object) -> bool:
        return self.counts == other.counts if isinstance(other, SharingPlan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return SharingPlan, (dict(self.counts),)

    def __repr__(self) -> str:
        return f"SharingPlan({self.placed} workloads in {len(self.counts)} pairs of classes)"
