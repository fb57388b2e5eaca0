"""What happens while a service runs: its rate changes, a GPU fails, instances come and go.

An event acts on the arrays of a service between two calls of its loop. At one nanosecond events
come first, in the order they were given, then completions, then arrivals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption
from ...values.names import nearest
from ...values.numbers import Number, exact, shown
from .model import LONGEST_NS, SECOND, ModelledInstance, ModelledService, Station, stations_of

__all__ = ["Action", "Change", "Event", "Failure", "RateChange", "Script", "Weights", "script_of"]


@dataclass(frozen=True, slots=True)
class RateChange:
    """A service's rate is multiplied from now on.

    Parameters
    ----------
    seconds : number
        When.
    factor : number
        What its own rate is multiplied by; 1 is back to normal.
    service : str, optional
        None for all services.
    """

    seconds: Number
    factor: Number
    service: str | None = None

    def __post_init__(self) -> None:
        _numbers(self, "seconds", "factor")


@dataclass(frozen=True, slots=True)
class Failure:
    """A GPU fails, or one instance: what it works on is lost, and it gets nothing.

    Parameters
    ----------
    seconds : number
        When.
    gpu : int, optional
        Its number: GPUs are counted from 0 in the order of the plan's groups.
    service, instance : str and int, optional
        In place of a GPU: one instance of a service, counted from 0 in the same order.
    repair_seconds : number, optional
        After so long it is back, as good as new; None for never.
    """

    seconds: Number
    gpu: int | None = None
    service: str | None = None
    instance: int | None = None
    repair_seconds: Number | None = None

    def __post_init__(self) -> None:
        _numbers(self, "seconds", "repair_seconds")
        if (self.gpu is None) == (self.service is None or self.instance is None):
            raise InvalidOption("a failure is of a gpu, or of an instance of a service; name one")


@dataclass(frozen=True, slots=True)
class Weights:
    """An instance gets another share of the requests from now on.

    Parameters
    ----------
    seconds : number
        When.
    service : str
    instance : int
        Counted from 0 in the order of the plan's groups.
    factor : number
        What its own weight is multiplied by; 0 for no more requests.
    """

    seconds: Number
    service: str
    instance: int
    factor: Number

    def __post_init__(self) -> None:
        _numbers(self, "seconds", "factor")


@dataclass(frozen=True, slots=True)
class Change:
    """Instances of a service appear, and others drain and go.

    Parameters
    ----------
    seconds : number
        When.
    service : str
    appear : tuple of ModelledInstance
        They are counted on after the instances that are there already.
    warm_up_seconds : number
        So long after they appear they get their first request.
    leave : tuple of int
        Instances that get no more requests; they still work off what waits for them.
    """

    seconds: Number
    service: str
    appear: tuple[ModelledInstance, ...] = ()
    warm_up_seconds: Number = 0
    leave: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _numbers(self, "seconds", "warm_up_seconds")


LARGEST_FACTOR = 10**6
#: Of so many characters a number in a message is short enough to be exact.
BRIEF = 30

Event = RateChange | Failure | Weights | Change
"""What may happen in a run."""


def _numbers(event: object, *fields: str) -> None:
    for field in fields:
        value = getattr(event, field)
        if value is not None:
            what = f"the {field} of a {type(event).__name__}"
            number = exact(value, what, error=InvalidOption)
            if field.endswith("seconds"):
                nanoseconds(number)
            elif number > LARGEST_FACTOR:
                raise InvalidOption(
                    f"{what} is {shown(number, BRIEF)}; expected at most {LARGEST_FACTOR:,}"
                )
            object.__setattr__(event, field, number)


class Action(NamedTuple):
    """What an event does to one service.

    Attributes
    ----------
    at : int
        Nanoseconds.
    kind : str
        ``weigh``, ``fail`` or ``repair``.
    stations : tuple of int
    factor : Fraction
        Of the weights, for ``weigh``.
    """

    at: int
    kind: str
    stations: tuple[int, ...]
    factor: Fraction = Fraction(1)


class Script(NamedTuple):
    """All that happens to one service.

    Attributes
    ----------
    stations : list of Station
        All that it ever has.
    present : list of bool
        Whether each gets requests from the beginning.
    rates : list of (int, Fraction)
        When its rate is multiplied by what.
    actions : list of Action
        In the order of their times.
    marks : list of (int, int)
        The events that concern it: when, and which of all.
    """

    stations: list[Station]
    present: list[bool]
    rates: list[tuple[int, Fraction]]
    actions: list[Action]
    marks: list[tuple[int, int]]


def nanoseconds(seconds: Number) -> int:
    """Turn seconds into whole nanoseconds.

    Raises
    ------
    InvalidOption
        If it is more than nine years.
    """
    time = exact(seconds, "a time")
    if time * SECOND > LONGEST_NS:
        raise InvalidOption(f"{shown(time, BRIEF)} s is longer than nine years")
    return round(time * SECOND)


def check_events(events: Sequence[Event], services: Sequence[ModelledService]) -> None:
    """Refuse events about what the plan does not have.

    Raises
    ------
    InvalidOption
        It names the service, GPU or instance, and what there is.
    """
    names = {each.name: each for each in services}
    gpus = {one.gpu for each in services for one in each.instances}
    for event in events:
        service = None if isinstance(event, Failure) and event.gpu is not None else event.service
        if service is not None and service not in names:
            raise InvalidOption(
                f"there is no service {service!r}; expected one of {', '.join(names)}"
                f"{nearest(service, names)}"
            )
        if isinstance(event, Failure) and event.gpu is not None and event.gpu not in gpus:
            raise InvalidOption(
                f"there is no GPU {event.gpu} that serves anything; GPUs are counted from 0 in "
                f"the order of the plan's groups, to {max(gpus, default=0)}"
            )


def script_of(service: ModelledService, events: Iterable[Event]) -> Script:
    """Work out what a list of events means for one service.

    Raises
    ------
    InvalidOption
        If an instance is named that the service does not have.
    """
    instances = list(service.instances)
    absent: set[int] = set()
    rates: list[tuple[int, Fraction]] = []
    steps: list[tuple[int, str, tuple[int, ...], Fraction]] = []  # of instances
    marks = []
    for number, event in enumerate(events):
        at, before = nanoseconds(event.seconds), len(rates) + len(steps)
        if isinstance(event, RateChange):
            if event.service in (None, service.name):
                rates.append((at, exact(event.factor, "a factor")))
        elif isinstance(event, Failure):
            hit = _hit(event, service.name, instances)
            if hit:
                steps.append((at, "fail", hit, Fraction(1)))
                if event.repair_seconds is not None:
                    back = at + nanoseconds(event.repair_seconds)
                    steps.append((back, "repair", hit, Fraction(1)))
        elif event.service == service.name and isinstance(event, Weights):
            which = _known((event.instance,), instances, service.name)
            steps.append((at, "weigh", which, exact(event.factor, "a factor")))
        elif event.service == service.name and isinstance(event, Change):
            leaving = _known(event.leave, instances, service.name)
            new = tuple(range(len(instances), len(instances) + len(event.appear)))
            instances += event.appear
            absent.update(new)
            if leaving:
                steps.append((at, "weigh", leaving, Fraction(0)))
            if new:
                ready = at + nanoseconds(event.warm_up_seconds)
                steps.append((ready, "weigh", new, Fraction(1)))
        if len(rates) + len(steps) > before:
            marks.append((at, number))
    stations = stations_of(instances)
    actions = [
        Action(at, kind, tuple(s for s, one in enumerate(stations) if one.instance in which), by)
        for at, kind, which, by in sorted(steps, key=lambda step: step[0])
    ]
    return Script(
        stations,
        [one.instance not in absent for one in stations],
        sorted(rates, key=lambda change: change[0]),
        actions,
        sorted(marks),
    )


def _hit(event: Failure, service: str, instances: Sequence[ModelledInstance]) -> tuple[int, ...]:
    if event.gpu is not None:
        return tuple(at for at, one in enumerate(instances) if one.gpu == event.gpu)
    if event.service != service or event.instance is None:
        return ()
    return _known((event.instance,), instances, service)


def _known(
    which: tuple[int, ...], instances: Sequence[ModelledInstance], service: str
) -> tuple[int, ...]:
    for at in which:
        if not 0 <= at < len(instances):
            raise InvalidOption(
                f"service {service!r} has no instance {at}; it has {len(instances)}, counted from 0"
            )
    return which
