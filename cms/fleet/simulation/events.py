"""What happens while a service runs: its rate changes, a GPU fails, instances get other shares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption
from ...files.source import StrPath
from ...files.tables import TableRow, read_table
from ...values.names import nearest
from ...values.numbers import Number, exact, shown
from .arrivals import Arrivals, Bursts, Gamma, Poisson
from .model import (
    BRIEF,
    LONGEST_NS,
    SECOND,
    BriefFields,
    ModelledService,
    Station,
    stations_of,
)

LARGEST_FACTOR = 10**6
LONGEST_SECONDS = LONGEST_NS // SECOND


@dataclass(frozen=True)
class _Timed(BriefFields):
    seconds: Number  #: When

    def __post_init__(self) -> None:
        for field in ("seconds", "factor", "repair_seconds"):
            if getattr(self, field, None) is not None:
                self._number(field, most=LARGEST_FACTOR if field == "factor" else LONGEST_SECONDS)

    def _what(self, field: str) -> str:
        return f"{field} of a {type(self).__name__}"


@dataclass(frozen=True)
class RateChange(_Timed):
    """A service's rate is multiplied from now on."""

    factor: Number  #: What its own rate is multiplied by; 1 is back to normal.
    service: str | None = None  #: None for all services

    def __str__(self) -> str:
        whose = "all rates" if self.service is None else f"the rate of {self.service}"
        return f"{_shown(self.seconds)} s: {whose} x {_shown(self.factor)}"


@dataclass(frozen=True)
class Failure(_Timed):
    """A GPU fails, or one instance: its requests are lost, and it gets no more."""

    #: Its number: GPUs are counted from 0 in the order of the plan's groups.
    gpu: int | None = None
    #: In place of a GPU: one instance of a service, counted from 0 in the same order.
    service: str | None = None
    instance: int | None = None
    repair_seconds: Number | None = None  #: From the failure to its repair; None for never

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.gpu is None) == (self.service is None or self.instance is None):
            raise InvalidOption("a failure is of a gpu, or of an instance of a service; name one")

    def __str__(self) -> str:
        what = f"{self.service}:{self.instance}" if self.gpu is None else f"GPU {self.gpu}"
        repair = self.repair_seconds
        back = "" if repair is None else f", repaired after {_shown(repair)} s"
        return f"{_shown(self.seconds)} s: {what} fails{back}"


@dataclass(frozen=True)
class Weights(_Timed):
    """An instance gets another share of the requests from now on."""

    service: str
    instance: int  #: Counted from 0 in the order of the plan's groups
    factor: Number  #: What its own weight is multiplied by; 0 for no more requests.

    def __str__(self) -> str:
        which = f"{self.service}:{self.instance}"
        return f"{_shown(self.seconds)} s: the weight of {which} x {_shown(self.factor)}"


Event = RateChange | Failure | Weights
"""What may happen in a run."""


def _shown(value: Number) -> str:
    return shown(exact(value, "a number"), BRIEF)


class Action(NamedTuple):
    """What an event does to some stations of a service, at a nanosecond."""

    at: int
    kind: str  #: ``weigh``, with a factor of the weights, ``fail`` or ``repair``
    stations: tuple[int, ...]
    factor: Fraction = Fraction(1)


class Script(NamedTuple):
    """The events of one service."""

    stations: list[Station]
    rates: list[tuple[int, Fraction]]  #: When its rate is multiplied, and by which factor
    actions: list[Action]  #: In the order of their times
    marks: list[tuple[int, int]]  #: The events that concern it: when, and which of all.


def nanoseconds(seconds: Number) -> int:
    """Turn seconds into whole nanoseconds."""
    return round(exact(seconds, "a time") * SECOND)


def concerned(event: Event) -> str | None:
    """Return the service that an event is about; None for all, or those on a GPU."""
    return None if isinstance(event, Failure) and event.gpu is not None else event.service


def check_events(events: Sequence[Event], services: Sequence[ModelledService]) -> None:
    """Refuse events about services and GPUs that the plan does not have."""
    names = {each.name: each for each in services}
    gpus = {one.gpu for each in services for one in each.instances}
    for event in events:
        service = concerned(event)
        if service is not None and service not in names:
            known = f"{', '.join(names)}{nearest(service, names)}"
            raise InvalidOption(f"there is no service {service!r}; expected one of {known}")
        if isinstance(event, Failure) and event.gpu is not None and event.gpu not in gpus:
            known = f"GPUs are counted from 0 in the order of the plan, to {max(gpus, default=0)}"
            raise InvalidOption(f"there is no GPU {event.gpu} that serves anything; {known}")


def script_of(service: ModelledService, events: Iterable[Event]) -> Script:
    """Work out what a list of events means for one service.

    An event acts on the arrays of a service between two calls of its loop. At one nanosecond events
    come first, in the order they were given, then completions, then arrivals.
    """
    rates: list[tuple[int, Fraction]] = []
    actions, marks = list[Action](), list[tuple[int, int]]()
    stations = stations_of(service.instances)
    for number, event in enumerate(events):
        at = nanoseconds(event.seconds)
        if concerned(event) not in (None, service.name):
            continue
        if isinstance(event, RateChange):
            rates.append((at, exact(event.factor, "a factor")))
        else:
            hit = _stations_hit(event, service, stations)
            if not hit:
                continue
            if isinstance(event, Weights):
                actions.append(Action(at, "weigh", hit, exact(event.factor, "a factor")))
            else:
                actions.append(Action(at, "fail", hit))
                if event.repair_seconds is not None:
                    actions.append(Action(at + nanoseconds(event.repair_seconds), "repair", hit))
        marks.append((at, number))
    actions.sort(key=lambda action: action.at)
    return Script(stations, sorted(rates, key=lambda change: change[0]), actions, sorted(marks))


def _stations_hit(
    event: Failure | Weights, service: ModelledService, stations: Sequence[Station]
) -> tuple[int, ...]:
    """Return the stations on an event's GPU, or those of its instance, which must be there."""
    if isinstance(event, Failure) and event.gpu is not None:
        return tuple(s for s, one in enumerate(stations) if one.gpu == event.gpu)
    number, which = len(service.instances), event.instance
    if which is None or not 0 <= which < number:
        said = f"service {service.name!r} has no instance {which}"
        raise InvalidOption(f"{said}; it has {number}, counted from 0")
    return tuple(s for s, one in enumerate(stations) if one.instance == which)


EVENT_COLUMNS = ("seconds", "what", "target", "value")
_KINDS = ("rate", "fail", "weight")


def read_events(path: StrPath) -> tuple[Event, ...]:
    """Read events from a CSV table with columns ``seconds,what,target,value``.

    - ``rate``: the rate of a service, or of all if the target is empty, is its own times the value;
    - ``fail``: a GPU (``gpu:3``) or an instance (``chat:2``) fails, and is repaired after the
      value's seconds, or never if it is empty;
    - ``weight``: the weight of an instance is its own times the value.

    GPUs, and the instances of a service, are counted from 0 in the order of the plan's groups.
    """
    found = []
    for row in read_table(path, EVENT_COLUMNS):
        try:
            found.append(_event(row))
        except InvalidOption as fault:
            raise row.error(str(fault)) from None
    return tuple(found)


def _event(row: TableRow) -> Event:
    seconds, what, target, value = (row[name] for name in EVENT_COLUMNS)
    at, kind = seconds.number(), what.text
    if kind not in _KINDS:
        raise what.error(f"what is {kind!r}", expected=f"one of {', '.join(_KINDS)}")
    if kind == "rate":
        return RateChange(at, value.number(), target.text or None)
    name, _, number = target.text.rpartition(":")
    if not (name and re.fullmatch("[0-9]{1,9}", number)):
        said = "a service and the number of its instance (chat:2), or gpu:3; both from 0 on"
        raise target.error(f"target is {target.text!r}", expected=said)
    if kind == "weight":
        return Weights(at, name, int(number), value.number())
    repair = None if value.is_missing else value.number()
    if name == "gpu":
        return Failure(at, gpu=int(number), repair_seconds=repair)
    return Failure(at, service=name, instance=int(number), repair_seconds=repair)


def surge_of(text: str) -> tuple[Event, ...]:
    """Read ``1.3@60+30``: from second 60 on, for 30 seconds, all rates are 1.3 times their own."""
    match = re.fullmatch(r"([^@+]+)@([^@+]+)\+([^@+]+)", text)
    if match is None:
        said = f"the surge is {text!r}; expected FACTOR@START+SECONDS, for example 1.3@60+30"
        raise InvalidOption(said)
    factor, start, length = (
        exact(part.strip(), f"a number of the surge {text!r}", error=InvalidOption)
        for part in match.groups()
    )
    return RateChange(start, factor), RateChange(start + length, 1)


def arrivals_of(text: str) -> Arrivals | None:
    """Read ``poisson``, ``gamma:CV2`` or ``bursts:RATIO,SHARE,SECONDS``; None for another word."""
    kind, _, values = text.partition(":")
    numbers = [part.strip() for part in values.split(",")] if values else []
    processes: dict[str, type[Poisson | Gamma | Bursts]]
    processes = {"poisson": Poisson, "gamma": Gamma, "bursts": Bursts}
    if kind not in processes:
        return None
    if len(numbers) != len(fields(processes[kind])):
        known = "poisson, gamma:CV2 or bursts:RATIO,SHARE,SECONDS, for example bursts:3,0.2,10"
        raise InvalidOption(f"the arrivals are {text!r}; expected {known}")
    return processes[kind](*numbers)
