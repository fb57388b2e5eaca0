"""The co-location problem: classes of equal GPUs (online) and of equal workloads, and its plans."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidOption, InvalidProblem, InvalidSchedule
from ...problem.checking import each_of
from ...schedule.schedule import Excerpt
from ...values.arrays import read_only
from ...values.frozen import FrozenMap, Immutable
from ...values.names import checked_name, nearest
from ...values.numbers import Number, exact, shown, shown_object, whole

#: Of a workload of priority 1 that runs as fast as alone.
FULL_WEIGHT = 10**6
#: Weights stay below 2^40, so that sums along any path of prices fit into int64.
HIGHEST_PRIORITY = 10**6
#: Steps of waiting in each scale: few, so that classes stay few.
WAITING_STEPS = 4


def set_fields(made: Any, values: Iterable[object]) -> None:
    """Give the fields of a frozen dataclass their values, in order."""
    for field, value in zip(fields(made), values, strict=True):
        object.__setattr__(made, field.name, value)


@dataclass(frozen=True, slots=True, init=False)
class OnlineClass:
    """GPUs that are alike: in device, online service, activity and memory."""

    name: str  #: By default all other properties but the count
    count: int  #: Of GPUs
    device: str  #: Its name, such as ``a100-80gb``
    #: Of the online side, in per cent of the SMs, 0 to 100; shares round it up.
    sm_activity: Fraction
    memory_mib: Fraction  #: Used by the online side
    memory_total_mib: Fraction | None  #: Of the device; needed if a workload needs memory
    model: str  #: Of the online service, as in tables of measured pairs
    slowdown_limit: Fraction | None  #: Of its requests, >= 1; None for no limit
    running: str | None  #: The offline class that runs there now, where that is known

    def __init__(
        self,
        device: str,
        *,
        count: int,
        sm_activity: Number,
        memory_mib: Number = 0,
        memory_total_mib: Number | None = None,
        model: str = "",
        slowdown_limit: Number | None = None,
        running: str | None = None,
        name: str | None = None,
    ) -> None:
        device = checked_name(device, "device")
        of = f"of an online class of {device!r}"
        model = checked_name(model, "model") if model else ""
        running = None if running is None else checked_name(running, "offline class")
        activity = exact(sm_activity, f"sm_activity {of}")
        memory = exact(memory_mib, f"memory_mib {of}")
        limit = None if slowdown_limit is None else exact(slowdown_limit, f"slowdown_limit {of}")
        parts = (
            f"{device} {shown(activity)}%", model, f"{shown(memory)} MiB" if memory else "",
            "" if limit is None else f"limit {shown(limit)}",
            "" if running is None else f"running {running}",
        )  # fmt: skip
        name = checked_name(
            ", ".join(filter(None, parts)) if name is None else name, "online class"
        )
        of = f"of online class {name!r}"
        said, needs = f"sm_activity {of} is {shown(activity)}", "expected per cent"
        if activity > 100:
            raise InvalidProblem(f"{said}; {needs}, 0 to 100")
        if 0 < activity < 1:
            more = f"{needs}: {shown(100 * activity)}"
            raise InvalidProblem(f"{said}, which looks like a fraction; {more}")
        if limit is not None and limit < 1:
            said = f"slowdown_limit {of} is {shown(limit)}"
            raise InvalidProblem(f"{said}; expected a factor >= 1, such as 1.2")
        total = memory_total_mib
        total = None if total is None else exact(total, f"memory_total_mib {of}")
        if total is not None and memory > total:
            said = f"memory_mib {of} is {shown(memory)}; expected at most its memory_total_mib"
            raise InvalidProblem(f"{said}, {shown(total)}")
        number = whole(count, f"count {of}", least=0)
        values = name, number, device, activity, memory, total, model, limit, running
        set_fields(self, values)

    def again(self, **changed: Any) -> OnlineClass:
        """Return the class with some parameters changed and the default name."""
        own = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return OnlineClass(**{**own, **changed})


@dataclass(frozen=True, slots=True, init=False)
class OfflineClass:
    """Offline workloads that are alike: each wants a share of one GPU beside an online service."""

    name: str
    count: int
    memory_mib: Fraction  #: Of one of them
    model: str  #: As in tables of measured pairs; by default the name
    priority: Fraction  #: The weight of its throughput, > 0, at most a million

    def __init__(
        self,
        name: str,
        *,
        count: int,
        memory_mib: Number = 0,
        model: str | None = None,
        priority: Number = 1,
    ) -> None:
        name = checked_name(name, "offline class")
        of = f"of offline class {name!r}"
        weight = exact(priority, f"priority {of}")
        if not 0 < weight <= HIGHEST_PRIORITY:
            raise InvalidProblem(
                f"priority {of} is {shown(weight)}; expected a number > 0 and <= {HIGHEST_PRIORITY}"
            )
        values = (
            name, whole(count, f"count {of}", least=0), exact(memory_mib, f"memory_mib {of}"),
            name if model is None else checked_name(model, "model"), weight,
        )  # fmt: skip
        set_fields(self, values)

    @property
    def most_weight(self) -> int:
        """The weight of one that runs as fast as alone: a million times its priority."""
        return FULL_WEIGHT * self.priority.numerator // self.priority.denominator


def misfit(online: OnlineClass, offline: OfflineClass) -> bool:
    """Whether a workload's memory does not fit beside the online side."""
    if not offline.memory_mib:
        return False
    if online.memory_total_mib is None:
        needs = f"offline class {offline.name!r} needs {shown(offline.memory_mib)} MiB"
        has = f"online class {online.name!r} has no memory_total_mib"
        raise InvalidProblem(f"{needs}, and {has}; give what its device has")
    return online.memory_mib + offline.memory_mib > online.memory_total_mib


def sm_share(activity: Number, margin: int, lowest: int) -> int:
    """Return the share of the SMs that offline work may have beside an online activity.

    It is 100 less activity, rounded up, and margin, in whole per cent; below the lowest share 0. It
    never rises with activity or margin. The activity is best a high quantile of the time until
    shares change.

    Examples
    --------
    >>> sm_share("22.5", margin=10, lowest=5)
    67
    """
    part = exact(activity, "activity")
    if part > 100:
        raise InvalidProblem(f"activity is {shown(part)}; expected per cent, 0 to 100")
    checked_percent(margin, "margin")
    checked_percent(lowest, "lowest share")
    left = 100 - math.ceil(part) - margin
    return max(left, 0) if left >= lowest else 0


def checked_percent(value: object, what: str) -> int:
    """Return a whole number from 0 to 100, or raise InvalidProblem."""
    number = whole(value, what, least=0)
    if number > 100:
        raise InvalidProblem(f"{what} is {shown(number)}; expected whole per cent, 0 to 100")
    return number


def waited_priority(priority: Number, waiting: Number, scale: Number) -> Fraction:
    """Return priority x (1 + waiting / scale), with the quotient rounded down to quarters.

    Matching stays exact, with a proof for these weights. Waiting and scale have the same unit.
    """
    of, waited, unit = exact(priority, "priority"), exact(waiting, "waiting"), exact(scale, "scale")
    if unit == 0:
        raise InvalidOption(f"scale is {shown(unit)}; expected a time > 0")
    return of + of * (WAITING_STEPS * waited // unit) / WAITING_STEPS


Ints: TypeAlias = NDArray[np.int64]
#: The weight of a workload beside a GPU's online side; None if that is forbidden.
WeightFunction: TypeAlias = Callable[[OnlineClass, OfflineClass], int | None]


class Pair(NamedTuple):
    """GPUs of an online class that each take a workload of an offline class."""

    online: str
    offline: str
    count: int  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, repr=False)
class ColocationPlan:
    """How many GPUs of each online class take a workload of each offline class; immutable.

    `counts`: by the names of the two classes, each >= 1. Without any, no GPU is shared.
    """

    counts: Mapping[tuple[str, str], int] = FrozenMap()
    machine_count: ClassVar[None] = None

    def __post_init__(self) -> None:
        table: dict[tuple[str, str], int] = {}
        for pair, count in self.counts.items():
            try:
                online, offline = map(checked_name, pair, ("online class", "offline class"))
            except (InvalidProblem, TypeError, ValueError) as fault:
                said = f"counts has the key {pair!r}; expected a pair of names"
                raise InvalidSchedule(f"{said}: {fault}") from None
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
        """Return at most `most` pairs for a printed solution."""
        rows = [(shown(pair.count), pair.online, pair.offline) for pair in [*self][:most]]
        more = len(self.counts) - len(rows)
        return Excerpt(("GPUs", "online", "offline"), rows, f"... and {more} more" if more else "")

    def __repr__(self) -> str:
        return f"ColocationPlan({self.placed} workloads in {len(self.counts)} pairs of classes)"


#: The weight of a pair that may not be used.
FORBIDDEN = -1


class ColocationProblem(Immutable):
    """Which offline workload runs beside which online service; immutable, hashed by content.

    Every GPU takes at most one workload, and gives it the share that its online side leaves:
    :func:`cms.fleet.colocation.sm_share`. A pair of classes has a weight, the throughput of one
    workload there, in millionths of its throughput alone, times its priority. The sum of the
    weights is maximised. After MuxFlow (arXiv:2303.13803), which matches single GPUs with single
    workloads.

    `weights`: a function of an online and an offline class, called once a pair, that returns a
    whole number, or None where the pair is forbidden; or an array of shape (G, K), with -1 where it
    is; at most a million times the workload's priority. `margin`: kept free on every GPU, in whole
    per cent. `lowest_share`: a GPU with a smaller share left takes no workload.
    """

    online: tuple[OnlineClass, ...]
    offline: tuple[OfflineClass, ...]
    #: Read-only, shape (G, K); -1 where a pair is forbidden, or lacks a share or memory
    weights: Ints
    margin: int
    lowest_share: int
    shares: tuple[int, ...]  #: Of each online class, in whole per cent

    def __init__(
        self,
        *,
        online: Iterable[OnlineClass],
        offline: Iterable[OfflineClass],
        weights: WeightFunction | ArrayLike,
        margin: int = 10,
        lowest_share: int = 5,
    ) -> None:
        gpus = each_of(online, OnlineClass, "online")
        work = each_of(offline, OfflineClass, "offline")
        for side, classes in (("online", gpus), ("offline", work)):
            for name, number in Counter(each.name for each in classes).items():
                if number > 1:
                    said = f"two {side} classes are called {name!r}; give each a name of its own"
                    raise InvalidProblem(said)
        names = dict.fromkeys(each.name for each in work)
        for each in gpus:
            if each.running is not None and each.running not in names:
                said = f"online class {each.name!r} runs {each.running!r}: no offline class"
                fix = "leave it out, or list it with a count of 0"
                raise InvalidProblem(f"{said}{nearest(each.running, names)}; {fix}")
        margin = checked_percent(margin, "margin")
        lowest_share = checked_percent(lowest_share, "lowest_share")
        shares = tuple(sm_share(each.sm_activity, margin, lowest_share) for each in gpus)
        closed = misfits(gpus, work) | (np.array(shares, dtype=np.int64) == 0)[:, None]
        table = read_only(_table(weights, gpus, work, closed))
        values = gpus, work, table, margin, lowest_share, shares
        vars(self).update(zip(ColocationProblem.__annotations__, values, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ColocationProblem.__annotations__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, weights=read_only(state["weights"]))

    @cached_property
    def online_index(self) -> FrozenMap[str, int]:
        """The place of each online class, by name."""
        return FrozenMap({each.name: place for place, each in enumerate(self.online)})

    @cached_property
    def offline_index(self) -> FrozenMap[str, int]:
        """The place of each offline class, by name."""
        return FrozenMap({each.name: place for place, each in enumerate(self.offline)})

    def weight(self, online: str, offline: str) -> int | None:
        """Return the weight of a pair of classes; None if it is forbidden."""
        found = int(self.weights[self.online_index[online], self.offline_index[offline]])
        return None if found == FORBIDDEN else found

    def value(self, plan: ColocationPlan) -> int:
        """Return the value of a plan, valid or not; unknown or forbidden pairs count for 0."""
        known = self.online_index.keys(), self.offline_index.keys()
        pairs = (pair for pair in plan if pair.online in known[0] and pair.offline in known[1])
        return sum((self.weight(pair.online, pair.offline) or 0) * pair.count for pair in pairs)

    @property
    def most(self) -> int:
        """A bound of all plans: every workload where it is worth most."""
        best = self.weights.max(axis=0, initial=0).tolist()
        return sum(w * each.count for w, each in zip(best, self.offline, strict=True))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of names and canonical reduced rationals, as in ``docs/guides/colocation.md``."""
        head = {"online": [*map(asdict, self.online)], "offline": [*map(asdict, self.offline)]} | {
            "margin": self.margin, "lowest_share": self.lowest_share,
        }  # fmt: skip
        text = json.dumps(head, separators=(",", ":"), sort_keys=True, default=str)  # of fractions
        found = hashlib.sha256(f"cms-sharing-problem-1\n{text}\n".encode())
        found.update(np.ascontiguousarray(self.weights, dtype="<i8").tobytes())
        return found.hexdigest()

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColocationProblem):
            return NotImplemented
        return self is other or self.sha256 == other.sha256

    def __repr__(self) -> str:
        gpus, work = sum(o.count for o in self.online), sum(f.count for f in self.offline)
        return (
            f"ColocationProblem({shown(gpus)} GPUs in {len(self.online)} classes, {shown(work)} "
            f"workloads in {len(self.offline)} classes)"
        )


def misfits(online: Sequence[OnlineClass], offline: Sequence[OfflineClass]) -> NDArray[np.bool_]:
    """Return which pairs memory forbids; few sizes are different, so few pairs are compared."""
    needs = {each.memory_mib: each for each in offline}
    sizes = {(gpu.memory_mib, gpu.memory_total_mib): gpu for gpu in reversed(online)}
    rows = {key: [misfit(gpu, each) for each in needs.values()] for key, gpu in sizes.items()}
    found = [rows[gpu.memory_mib, gpu.memory_total_mib] for gpu in online]
    places = {size: place for place, size in enumerate(needs)}
    columns = [places[each.memory_mib] for each in offline]
    return np.array(found, dtype=np.bool_).reshape(len(online), len(needs))[:, columns]


def _table(
    weights: Any,
    online: Sequence[OnlineClass],
    offline: Sequence[OfflineClass],
    closed: NDArray[np.bool_],
) -> Ints:
    shape = len(online), len(offline)
    if callable(weights):
        found = np.full(shape, FORBIDDEN, dtype=np.int64)
        for row, column in np.argwhere(~closed):
            gpu, work = online[row], offline[column]
            weight = weights(gpu, work)
            if weight is not None:
                found[row, column] = _checked(weight, gpu, work, least=0)
        return found
    try:
        given = np.array(weights) if shape[0] else np.empty(shape, dtype=np.int64)
    except (TypeError, ValueError) as fault:
        raise InvalidProblem(f"weights is no array: {fault}") from None
    if given.shape != shape:
        wanted = f"{shape}: a row for each online class, a column for each offline class"
        raise InvalidProblem(f"weights has shape {given.shape}; expected {wanted}")
    most = np.array([each.most_weight for each in offline], dtype=np.int64)
    suspects = np.ones(shape, np.bool_)
    if given.dtype.kind in "iu":
        suspects = (given < FORBIDDEN) | (given > most)
    for row, column in np.argwhere(suspects):
        _checked(given[row, column], online[row], offline[column], least=FORBIDDEN)
    found = given.astype(np.int64)
    found[closed] = FORBIDDEN
    return found


def _checked(value: object, online: OnlineClass, offline: OfflineClass, least: int) -> int:
    what = f"weight of {offline.name!r} beside {online.name!r}"
    number = whole(value.item() if isinstance(value, np.generic) else value, what, least=least)
    if number > offline.most_weight:
        said = f"{what} is {shown_object(number)}; expected at most {offline.most_weight}"
        raise InvalidProblem(f"{said}, a million times its priority: no faster than alone")
    return number
