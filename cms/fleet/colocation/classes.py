"""Classes of equal GPUs (online) and of equal workloads (offline)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from ...errors import InvalidOption, InvalidProblem
from ...values.names import checked_name
from ...values.numbers import Number, exact, shown, whole

#: Of a workload of priority 1 that runs as fast as alone.
FULL_WEIGHT = 10**6
#: Weights stay below 2^40, so that sums along any path of prices fit into int64.
HIGHEST_PRIORITY = 10**6
#: Steps of waiting in each scale: few, so that classes stay few.
WAITING_STEPS = 4


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
        said = f"sm_activity {of} is {shown(activity)}"
        if activity > 100:
            raise InvalidProblem(f"{said}; expected per cent, 0 to 100")
        if 0 < activity < 1:
            more = f"expected per cent: {shown(100 * activity)}"
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
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

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
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

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


def sm_share(activity: Number, margin: int, lowest: int, *, clamp: bool = False) -> int:
    """Return the share of the SMs that offline work may have beside an online activity.

    It is 100 less activity, rounded up, and margin, in whole per cent. Below the lowest share it is
    0; with `clamp` it is the lowest share, so that busy GPUs have less free than the margin. It
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
    return max(left, 0) if left >= lowest else lowest * clamp


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
