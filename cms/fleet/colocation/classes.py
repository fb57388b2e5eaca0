"""What is alike counts as one: GPUs in online classes, workloads in offline classes."""

from __future__ import annotations

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
#: Steps in which waiting counts, in each scale: so classes stay few.
WAITING_STEPS = 4


@dataclass(frozen=True, slots=True, init=False)
class OnlineClass:
    """GPUs that are alike: in device, in what runs on them online, in what that leaves."""

    name: str  #: By default what tells it apart: device, activity, model, memory, limit, what runs.
    count: int  #: Of GPUs
    device: str  #: Its name, such as ``a100-80gb``
    #: Of the online side, in per cent of the SMs, 0 to 100; shares round it up.
    sm_activity: Fraction
    memory_mib: Fraction  #: What the online side occupies
    memory_total_mib: Fraction | None  #: What the device has; None if nobody asks for memory.
    model: str  #: What runs online, as tables of measured pairs call it
    #: How many times slower its requests may become, >= 1; None for no limit.
    slowdown_limit: Fraction | None
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
        if name is None:
            parts = (
                f"{device} {shown(activity)}%", model, f"{shown(memory)} MiB" if memory else "",
                "" if limit is None else f"limit {shown(limit)}",
                "" if running is None else f"running {running}",
            )  # fmt: skip
            name = ", ".join(part for part in parts if part)
        name = checked_name(name, "online class")
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
        total = None
        if memory_total_mib is not None:
            total = exact(memory_total_mib, f"memory_total_mib {of}")
            if memory > total:
                said = f"memory_mib {of} is {shown(memory)}; expected at most its memory_total_mib"
                raise InvalidProblem(f"{said}, {shown(total)}")
        number = whole(count, f"count {of}", least=0)
        values = name, number, device, activity, memory, total, model, limit, running
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def again(self, **changed: Any) -> OnlineClass:
        """Return the class with some parameters changed, called by what then tells it apart."""
        own = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return OnlineClass(**{**own, **changed})


@dataclass(frozen=True, slots=True, init=False)
class OfflineClass:
    """Offline workloads that are alike: each wants a share of one GPU beside an online service."""

    name: str
    count: int
    memory_mib: Fraction  #: What one of them needs
    model: str  #: As tables of measured pairs call it; by default the name.
    priority: Fraction  #: How much its throughput counts, > 0, at most a million

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

    It is what activity, rounded up, and margin leave, in whole per cent; 0, so nobody, if that is
    below the lowest share, or that one all the same where it is to clamp: busy GPUs then have less
    free than the margin. It never rises with activity or margin. The activity is best a high
    quantile of the time until shares change.

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
    left = 100 + (-part.numerator // part.denominator) - margin
    if left >= lowest:
        return max(left, 0)
    return lowest if clamp else 0


def checked_percent(value: object, what: str) -> int:
    """Return a whole number from 0 to 100, or raise InvalidProblem."""
    number = whole(value, what, least=0)
    if number > 100:
        raise InvalidProblem(f"{what} is {shown(number)}; expected whole per cent, 0 to 100")
    return number


def waited_priority(priority: Number, waiting: Number, scale: Number) -> Fraction:
    """Return priority x (1 + waiting / scale), with the quotient rounded down to quarters.

    It is a priority like any other: matching stays exact, with a proof for these weights. Waiting
    and scale are in the same unit.
    """
    of, waited, unit = exact(priority, "priority"), exact(waiting, "waiting"), exact(scale, "scale")
    if unit == 0:
        raise InvalidOption(f"scale is {shown(unit)}; expected a time > 0")
    return of + of * (WAITING_STEPS * waited // unit) / WAITING_STEPS
