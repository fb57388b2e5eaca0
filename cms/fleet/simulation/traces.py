"""Recorded arrivals, replayed from a CSV table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ...errors import FileError, InvalidOption
from ...files.csv_records import folded
from ...files.source import StrPath, read_source
from ...files.tables import Table, read_table
from ...values.names import nearest
from ..reconciling.times import OneClock
from .arrivals import NEVER, PIECE
from .model import LONGEST_NS, SECOND

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What published traces call the time of an arrival: Azure's of language models (TIMESTAMP),
# BurstGPT's (Timestamp).
_KNOWN = ("timestamp", "arrival_seconds", "seconds")
_END, _DURATION = "end_timestamp", "duration"  # of Azure Functions 2021
_UNIT = re.compile(r"(?:^|_)\W?((?:milli|micro|nano)s?(?:ec(?:ond)?s?)?|[mun\u00b5]s(?:ecs?)?)\W?$")


@dataclass(frozen=True)
class Replay:
    """Arrivals as they were recorded.

    A trace says when requests came, not what they asked for: a fixed time a batch does not describe
    the continuous batching of language models, whose requests differ by what they read and write.
    """

    #: The arrivals of each service, from 0 on, in their order; of all services under the empty
    #: name.
    times_ns: dict[str, NDArray[np.int64]] = field(repr=False)
    name: str  #: What reports call it
    #: Whether the trace's time is stretched so that its mean rate is the service's
    scaled: bool = True

    def pieces(
        self, service: str, rate: Fraction, random: np.random.Generator, size: int = PIECE
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the times of arrivals; see :class:`Arrivals`. A trace has an end."""
        times = self.times_ns.get("", self.times_ns.get(service))
        if times is None:
            raise InvalidOption(
                f"the trace {self.name} has no arrival of service {service!r}"
                f"{nearest(service, self.times_ns)}; it has {', '.join(self.times_ns)}"
            )
        stretch = self._stretch(times, rate) if self.scaled else 1.0
        for first in range(0, len(times), size):
            piece = times[first : first + size]
            scaled = np.minimum(np.rint(piece * stretch), NEVER)
            yield scaled.astype(np.int64) if self.scaled else piece

    @staticmethod
    def _stretch(times: NDArray[np.int64], rate: Fraction) -> float:
        """A trace of n arrivals has n gaps: the last one, to its end, is as long as the mean."""
        n, span = len(times), int(times[-1])
        if n == 1 or not span:
            return 1.0
        return float(min(Fraction((n - 1) * SECOND, span) / rate, Fraction(NEVER)))


def read_trace(
    path: StrPath,
    column: str | None = None,
    service_column: str | None = None,
    *,
    scaled: bool = True,
) -> Replay:
    """Read recorded arrivals from a CSV table.

    Where all times are whole seconds, those of a second are spread evenly over it.

    Parameters
    ----------
    column : str, optional
        Where the times are: seconds, or ``2024-05-10 00:00:00.009930+00:00``, with or without a
        zone. By default one that a published trace has: ``TIMESTAMP`` (Azure LLM inference),
        ``Timestamp`` (BurstGPT), or ``end_timestamp`` less ``duration`` (Azure Functions 2021).
    service_column : str, optional
        Which column says whose arrival it is; without one, every service gets all of them.
    scaled : bool, default True
        Whether the trace's time is stretched so that its mean rate is the service's.
    """
    table = _table(path, column, service_column)
    if column and service_column and folded(column) == folded(service_column):
        service_column = column  # one column under two spellings
    times = _times(table, column)
    rows: dict[str, list[int]] = {}
    for row, time in zip(table, times, strict=True):
        rows.setdefault(row[service_column].word() if service_column else "", []).append(time)
    first = min(times)
    if max(times) - first > LONGEST_NS:
        last = table.rows[times.index(max(times))]
        raise last.error("the trace is longer than nine years")
    whole = all(time % SECOND == 0 for time in times)
    found = {}
    for name, own in rows.items():
        arrivals = np.sort(np.array([time - first for time in own], dtype=np.int64))
        found[name] = _spread(arrivals) if whole else arrivals
    return Replay(found, table.source.name, scaled)


def _table(path: StrPath, column: str | None, service_column: str | None) -> Table:
    """Read the table, and see that it has the columns."""
    source = read_source(path, holds="a CSV table")
    asked = {"time_column": column, "service_column": service_column}
    wanted = {folded(name): name for name in (service_column, column) if name is not None}
    known = () if column is not None else (*_KNOWN, _END, _DURATION)
    optional = [*wanted.values(), *(name for name in known if name not in wanted)]
    table = read_table(source, (), optional)
    for option, name in asked.items():
        if name is not None and wanted[folded(name)] not in table.index:
            if len(table.index) == 1:
                read_table(source, list(wanted.values()))  # may know what stands between them
            raise FileError(
                source.name, f"there is no column {name!r}", line=table.line,
                expected=f"one of {', '.join(table.index)}", fix=f"name it with {option}",
            )  # fmt: skip
    return table


def _times(table: Table, column: str | None) -> Sequence[int]:
    """The arrivals' times in nanoseconds, in the order of the rows."""
    clock = OneClock("{text} is no time")
    if column is None:
        if _END in table.index and _DURATION in table.index:
            return [
                round((clock.time_of(row[_END]) - row[_DURATION].number()) * SECOND)
                for row in table
            ]
        known = [name for name in _KNOWN if name in table.index]
        if not known:
            raise table.rows[0].error(
                f"no column is known to hold times: {', '.join(table.index)}",
                expected=f"one of {', '.join(_KNOWN)}",
                fix="name it as time_column in [traces] of fleet.toml",
            )
        column = known[0]
    if unit := _UNIT.search(folded(re.sub("(?<=[a-z])(?=[A-Z])", "_", column))):
        raise FileError(
            table.source.name,
            f"the column {column!r} holds times in {unit[1]}, by its name",
            line=table.line,
            expected="seconds, or a date and time",
            fix="divide them, or rename the column if they are seconds",
        )
    return [round(clock.time_of(row[column]) * SECOND) for row in table]


def _spread(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spread the arrivals of each second evenly over it."""
    _, first, counts = np.unique(times, return_index=True, return_counts=True)
    nth = np.arange(len(times)) - np.repeat(first, counts)
    return times + (2 * nth + 1) * SECOND // (2 * np.repeat(counts, counts))
