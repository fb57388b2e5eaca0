"""What is wrong with whole rows and columns of a table that a user wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Literal, TypeVar

from ...errors import InvalidOption, InvalidProblem
from ...files.source import shortened
from ...files.tables import Table, TableRow
from ...values.names import nearest

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Names, with ``_`` around every word, of limits and rates, if there are numbers below them.
_FIGURES = re.compile(
    r"latenc|deadline|timeout|ttft|tpot|percentile|e2_?e|throughput|concurren|qps|rps_"
    r"|_(limit|sl[oa]|itl|tbt|quantile|turnaround|qos|rate|[rt]p|[rq]p[mhd]|ip|arrival)s?_"
    r"|_[muµμn]s(ecs?)?_|_secs?_|_(milli|micro)s_|(milli|micro|nano|_)seconds_|_(p\d\d+|\d\dth)_"
    r"|response_?time|time_?(to|per|between)"
    r"|_(response|delay|target|goal|objective|rt|wait|waiting|traffic|demand|peak|load)s?_$"
    r"|_(request|querie|req|user|call|hit)s_$|_(s|h|req|second|(minute|min|hour)s?)_$"
    r"|_per_?(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)_$"
)
#: Of limits in a table of measurements, which are latencies and rates themselves.
_LIMITS = re.compile(r"_(limits?|sl[oa]s?)_|deadline")
#: Of figures that are neither: those of devices, prices and shares of requests.
_OTHERS = re.compile(
    r"power|memory|cpu|clock|_temp|usd|eur|cost|price|error|hit_?rate|sampl|discount"
)
_WISHES = re.compile(
    r"replica|priorit|affinit|allowed|_(copies|instances|spread|profiles?)_|_weights?_$"
    r"|(min|max)(imum)?_?(instance|gpu|per|copies|batch|process|cost)"
)
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+\d*|[A-Z]+\d*|\d+[^\W\d_]*")


def refuse_unknown_columns(
    table: Table,
    known: Collection[str] = (),
    asking: Literal["nothing", "limits", "all"] = "nothing",
) -> None:
    """Refuse unknown columns that look as if they should count; any other is a note.

    These are what is nearly called as a `known` one that is absent, and what by its name is
    `asking`: for limits, or for limits and rates, with a number below it, or for wishes as well.
    """
    absent = [name for name in known if name not in table.index]
    for name in (name for name in table.extra if name not in known):
        apart = _WORD.findall(name.replace("'", "").replace("/", " per "))
        words = f"_{'_'.join(apart)}_".casefold()
        hint = nearest(name, absent, lead="", alike=0.75)
        figures = _FIGURES if asking == "all" else _LIMITS
        asks = figures.search(words) and not _OTHERS.search(words)
        asks = asks and any(_DIGIT.search(row[name].text) for row in table)
        wishes = asking == "all" and _WISHES.search(words)
        if hint or wishes or (asks and asking != "nothing"):
            raise table.error(
                f"the column {shortened(repr(name))} is not known",
                expected=f"one of {', '.join(known)}" if known else "a known column",
                fix=hint or "rename or remove it, or say what it is: --map YOURS=COLUMN",
            )


def refuse_second_row(row: TableRow, lines: dict[K, int], key: K, said: str, per: str) -> None:
    """Refuse a row of a key that another row has, said so; else note its line."""
    if key in lines:
        named = per in row.table.index
        raise (row[per] if named else row).error(
            f"a second row for {said}; the first is line {lines[key]}",
            expected=f"one row a {per}",
            fix="keep one of them" + ", or rename one" * named,
        )
    lines[key] = row.line


def read_keyed(
    rows: Iterable[TableRow],
    make: Callable[[TableRow], tuple[K, V]],
    per: str,
    said: Callable[[K, V], str] = lambda key, _: str(key),
) -> dict[K, V]:
    """Make a key and a value of each row, and refuse a second row of a key, which is `said` so."""
    lines: dict[K, int] = {}
    found: dict[K, V] = {}
    for row in rows:
        try:
            key, value = make(row)
        except (InvalidOption, InvalidProblem) as fault:
            raise row.error(str(fault)) from None
        refuse_second_row(row, lines, key, said(key, value), per)
        found[key] = value
    return found
