"""What the package ships as data: devices, and the loads that instances sustain.

These are files that say where their figures come from. They are read here, by a reader of its own,
because a document may not contradict them: not describe a known card otherwise, and not count a
point for more than the tables do.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .reading import parse_document

_PACKAGE = Path(__file__).parents[2] / "cms" / "fleet"


@cache
def catalogue() -> dict[str, Any]:
    """The device files by key, as they are."""
    files = sorted((_PACKAGE / "hardware" / "devices").glob("*.json"))
    return {path.stem: parse_document(path.read_text("utf-8")) for path in files}


class Entry(NamedTuple):
    """An entry of a table: so many ``served`` processes sustain the load within the ratio."""

    served: int
    batch: int
    ratio: Fraction
    late_share: Fraction
    load: Fraction

    @property
    def per_batch_time(self) -> Fraction:
        """The items that come in a batch time."""
        return self.load * self.served * self.batch


def looked_up(
    table: str, processes: int, batch: int, ratio: Fraction, late_share: Fraction
) -> Entry | None:
    """Look up what is sustained; None: a table has nothing as small as that.

    It never falls when the processes, the batch, the ratio of the limit to a batch time or the
    tolerated late share grows: each of them is rounded down to an entry. A table of one process
    alone counts each process.
    """
    document = _table(table)
    at = []
    for axis, value in (
        ("late_shares", late_share), ("processes", processes), ("ratios", ratio),
        ("batches", batch),
    ):  # fmt: skip
        below = [number for number, each in enumerate(document[axis]) if each <= value]
        if not below:
            return None
        at.append(below[-1])
    share_at, process_at, ratio_at, batch_at = at
    counted = document["processes"]
    return Entry(
        processes if len(counted) == 1 else counted[process_at],
        document["batches"][batch_at],
        document["ratios"][ratio_at],
        document["late_shares"][share_at],
        Fraction(document["thousandths"][share_at][process_at][ratio_at][batch_at], 1000),
    )


def ratios() -> list[Fraction]:
    """List where the tables change: limits in batch times."""
    return sorted({*_table("certified")["ratios"], *_table("simulated")["ratios"]})


@cache
def _table(name: str) -> Any:
    document = parse_document((_PACKAGE / "serving" / "loads" / f"{name}.json").read_text("utf-8"))
    for axis in ("late_shares", "ratios"):
        document[axis] = [Fraction(each) for each in document[axis]]
    return document
