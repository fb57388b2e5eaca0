"""The shipped tables of loads: how much of its throughput an instance may use within a limit.

An instance has c processes that take at most b requests at once, each for a batch time L; the limit
is `ratio` times L. The rate (load times c b / L) that is sustained never falls when c, b, the ratio
or the tolerated late share grows, so each of them is rounded down to an entry.

``loads/certified.json`` holds the exact chain of one process; every entry is proved in integers
(``proofs_checks/queueing.py``), also for all lower rates. An instance of c processes counts as c of
them, fed at random. ``loads/simulated.json`` holds several processes on one queue: lower ends of
99 % intervals, at this load and every lower one of a grid, and the least over several shapes of the
times of batches that are not full.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

#: Within less than two batch times no load is sustained: requests wait for a batch they missed.
LEAST_RATIO = 2
_FOLDER = Path(__file__).parent / "loads"


class _Table(NamedTuple):
    """Loads in thousandths by late share, processes, sixteenths of ratio and batch, ascending."""

    late_shares: Sequence[Fraction]
    processes: Sequence[int]
    sixteenths: Sequence[int]
    batches: Sequence[int]
    thousandths: Sequence[Sequence[Sequence[Sequence[int]]]]


def sustainable_load(
    processes: int, batch: int, ratio: Fraction, late_share: Fraction, *, queue: str = "process"
) -> Fraction:
    """Look up the share of its throughput that an instance may be asked for, or of any less.

    `ratio` is the latency limit in batch times; nothing is sustained below 2, nor where fewer
    requests may be late than the table's least `late_share`. Requests wait in a `queue` of each
    ``"process"``, fed at random, or in one of the ``"instance"``.
    """
    return max(_entry(table, processes, batch, ratio, late_share) for table in _tables(queue))


def late_shares() -> list[Fraction]:
    """Return the late shares of the tables, ascending: from each on more may be sustained."""
    return sorted({share for table in _tables() for share in table.late_shares})


def next_ratio(ratio: Fraction, *, queue: str = "process") -> Fraction | None:
    """Return the next greater ratio of limit to batch time from which more may be sustained."""
    found = []
    for table in _tables(queue):
        at = bisect.bisect_right(table.sixteenths, 16 * ratio.numerator // ratio.denominator)
        if at < len(table.sixteenths):
            found.append(Fraction(table.sixteenths[at], 16))
    return min(found, default=None)


def _entry(
    table: _Table, processes: int, batch: int, ratio: Fraction, late_share: Fraction
) -> Fraction:
    at = [
        bisect.bisect_right(axis, value) - 1
        for axis, value in (
            (table.late_shares, late_share),
            (table.processes, processes),
            (table.sixteenths, 16 * ratio.numerator // ratio.denominator),
            (table.batches, batch),
        )
    ]
    if min(at) < 0:
        return Fraction(0)
    share, c, limit, b = at
    # a table of one process alone counts each of them
    served = processes if len(table.processes) == 1 else table.processes[c]
    thousandths = table.thousandths[share][c][limit][b]
    return Fraction(thousandths * served * table.batches[b], 1000 * processes * batch)


def _tables(queue: str = "instance") -> list[_Table]:
    """The tables that speak of a queue."""
    return [_table("certified"), *([] if queue == "process" else [_table("simulated")])]


@cache
def _table(name: str) -> _Table:
    document = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return _Table(
        [Fraction(each) for each in document["late_shares"]],
        document["processes"],
        [int(16 * Fraction(each)) for each in document["ratios"]],
        document["batches"],
        document["thousandths"],
    )


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a table's figures, which its file says beside them."""
    axes = ("late_shares", "processes", "ratios", "batches", "thousandths")
    figures = {name: document[name] for name in axes if name in document}
    return sha256(json.dumps(figures, separators=(",", ":")).encode()).hexdigest()
