"""Events from a CSV table, and arrivals and surges from the words of a command."""

from __future__ import annotations

import re

from ...errors import InvalidOption
from ...files.source import StrPath
from ...files.tables import Cell, TableRow, read_table
from ...values.numbers import exact
from .arrivals import Arrivals, Bursts, Gamma, Poisson
from .events import Event, Failure, RateChange, Weights

EVENT_COLUMNS = ("seconds", "what", "target", "value")
_KINDS = ("rate", "fail", "weight")


def read_events(path: StrPath) -> tuple[Event, ...]:
    """Read events from a CSV table with columns ``seconds,what,target,value``.

    - ``rate``: the rate of a service, or of all if the target is empty, is its own times the value;
    - ``fail``: a GPU (``gpu:3``) or an instance (``chat:2``) fails, and is repaired after so many
      seconds, or never if the value is empty;
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
    name, number = _numbered(target)
    if kind == "weight":
        return Weights(at, name, number, value.number())
    repair = None if value.is_missing else value.number()
    if name == "gpu":
        return Failure(at, gpu=number, repair_seconds=repair)
    return Failure(at, service=name, instance=number, repair_seconds=repair)


def _numbered(cell: Cell) -> tuple[str, int]:
    name, _, number = cell.text.rpartition(":")
    if not (name and re.fullmatch("[0-9]{1,9}", number)):
        raise cell.error(
            f"target is {cell.text!r}",
            expected="a service and the number of its instance (chat:2), or gpu:3; both from 0 on",
        )
    return name, int(number)


def surge_of(text: str) -> tuple[Event, ...]:
    """Read ``1.3@60+30``: from second 60 on, for 30 seconds, all rates are 1.3 times their own."""
    match = re.fullmatch(r"([^@+]+)@([^@+]+)\+([^@+]+)", text)
    if match is None:
        raise InvalidOption(
            f"the surge is {text!r}; expected FACTOR@START+SECONDS, for example 1.3@60+30"
        )
    parts = zip(match.groups(), ("factor", "start", "length"), strict=True)
    factor, start, length = (
        exact(part.strip(), f"the {what} of the surge", error=InvalidOption) for part, what in parts
    )
    return RateChange(start, factor), RateChange(start + length, 1)


def arrivals_of(text: str) -> Arrivals | None:
    """Read ``poisson``, ``gamma:CV2`` or ``bursts:RATIO,SHARE,SECONDS``; None for another word."""
    kind, _, values = text.partition(":")
    numbers = [part.strip() for part in values.split(",")] if values else []
    if kind == "poisson" and not numbers:
        return Poisson()
    if kind == "gamma" and len(numbers) == 1:
        return Gamma(numbers[0])
    if kind == "bursts" and len(numbers) == 3:
        return Bursts(*numbers)
    if kind in ("poisson", "gamma", "bursts"):
        raise InvalidOption(
            f"the arrivals are {text!r}; expected poisson, gamma:CV2 or "
            "bursts:RATIO,SHARE,SECONDS, for example bursts:3,0.2,10"
        )
    return None
