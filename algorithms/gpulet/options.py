"""The options of gpulet and its baselines: where the published programs deviate from the check."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem
from cms.mixes.model import Point, TimeSharedJob
from cms.values.fields import CheckedFields
from cms.values.numbers import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cms.mixes.problem import TimeSharedProblem

#: Batches of a job on a share, which are listed one by one.
_MOST_BATCHES = 10_000


@dataclass(frozen=True)
class PublishedOptions(CheckedFields):
    """Deviations of the published programs, all off unless asked for.

    With the first three a schedule may miss a demand, break a limit or take a batch that was never
    measured. The driver then refuses it, and says which.

    Parameters
    ----------
    dropped_rate : number, default 0
        Jobs with a demand of at most this are not served; 15 requests/s as published.
    limit_slack : number, default 0
        The part by which latency limits are taken longer than they are; 1/20 as published.
    interpolate : bool, default False
        Whether batches between two measured ones count as measured, on a straight line; at most
        10,000 of a job on a share.
    skipped_amount : number, default 0
        A batch that is never used; 32 as published, by a slip in a binary search. 0 is none.
    """

    dropped_rate: Fraction = Fraction(0)
    limit_slack: Fraction = Fraction(0)
    interpolate: bool = False
    skipped_amount: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self._number("dropped_rate")
        self._number("limit_slack", most=10)
        self._flag("interpolate")
        self._number("skipped_amount")

    def applied(self, problem: TimeSharedProblem) -> TimeSharedProblem:
        """Return the problem as the published program sees it; itself where nothing deviates."""
        if not (self.dropped_rate or self.limit_slack or self.interpolate or self.skipped_amount):
            return problem
        return problem.replace(
            jobs=[
                TimeSharedJob(
                    job.name,
                    job.demand if job.demand > self.dropped_rate else 0,
                    job.limit * (1 + self.limit_slack),
                    self._points(job.points),
                )
                for job in problem.jobs
            ]
        )

    def _points(self, table: Mapping[str, Sequence[Point]]) -> dict[str, list[Point]]:
        return {
            block: [
                point
                for point in (interpolated(own) if self.interpolate else own)
                if point.amount != self.skipped_amount
            ]
            for block, own in table.items()
        }


@dataclass(frozen=True)
class GpuletOptions(PublishedOptions):
    """Options of :class:`~algorithms.gpulet.Gpulet`.

    Parameters
    ----------
    dropped_rate, limit_slack, interpolate, skipped_amount
        As :class:`PublishedOptions` has them.
    enough : number, default 1
        A job is served when this part of its demand is; 17/20 as published. With less than 1 a
        schedule may miss a demand, and is then refused.
    uncut_first : bool, default False
        Whether an uncut GPU is taken before a free share that would leave less, as published.
    short_scan : bool, default False
        Whether the search for the share that pays most stops before the step to the whole GPU, as
        published.
    """

    enough: Fraction = Fraction(1)
    uncut_first: bool = False
    short_scan: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("enough", above=0, most=1)
        self._flag("uncut_first")
        self._flag("short_scan")


def interpolated(points: Sequence[Point]) -> list[Point]:
    """Add a point for every whole amount between two measured ones, on a straight line."""
    added = list(points)
    for low, high in pairwise(points):
        slope = (high.length - low.length) / (high.amount - low.amount)
        first, last = int(low.amount) + 1, ceil(high.amount) - 1
        if len(added) + last - first >= _MOST_BATCHES:
            raise UnsupportedProblem(
                f"batches of {shown(low.amount)} and {shown(high.amount)} were measured, and all "
                f"between them would count; at most {_MOST_BATCHES} of a job on a share do: leave "
                "out interpolate"
            )
        added += [
            Point(Fraction(amount), low.length + slope * (amount - low.amount))
            for amount in range(first, last + 1)
        ]
    return added
