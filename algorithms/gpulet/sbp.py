"""Squishy bin packing: whole GPUs that services share in time (Nexus; gpulet's "temporal")."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..time_sharing.hosting import Hosted, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cms.problem.parts import Configuration
    from cms.time_sharing.model import BatchPoint
    from cms.time_sharing.problem import TimeSharedProblem

    from ..time_sharing.hosting import Hosting


class Duty(NamedTuple):
    """Jobs that take turns on a whole GPU, once in every duty cycle.

    Their turns take no longer than the cycle together; each takes no less than arrives in it.
    """

    cycle: Fraction
    rates: dict[str, Fraction]
    points: dict[str, BatchPoint]

    @property
    def occupancy(self) -> Fraction:
        """The part of the cycle in which the GPU is at work."""
        return sum((point.length for point in self.points.values()), Fraction(0)) / self.cycle


class SquishyBinPacking:
    """The steps of squishy bin packing on one problem, whose ``whole`` is a GPU not cut."""

    def __init__(self, hosting: Hosting, whole: Configuration) -> None:
        self._hosting, self._whole = hosting, whole
        self._problem: TimeSharedProblem = hosting.problem
        (self._block,) = whole.blocks
        self._points = self._problem.usable_points(self._block)

    def machines(self, stopped: Callable[[], bool]) -> Sequence[Machine] | None:
        """Return the machines; None if stopped."""
        machines: list[Machine] = []
        rests: list[Duty] = []
        for job in self._problem.jobs:
            if not job.demand:
                continue
            most = self._hosting.saturated[job.name][self._block]
            full = job.demand // most
            if full:
                machines.append(Machine(self._whole, int(full)))
                machines[-1].blocks[0].hosted = self._hosting.most(self._block, {}, job.name)
            if rest := job.demand - full * most:
                rests.append(self.residual(job.name, rest))
        bins: list[Duty] = []
        for rest_of_job in sorted(rests, key=lambda duty: -duty.occupancy):
            if stopped():
                return None
            self._pack(bins, rest_of_job)
        return machines + [self._machine(duty) for duty in bins]

    def residual(self, job: str, rate: Fraction) -> Duty:
        """Return a job alone, for less than a saturated GPU: the largest batch that fills in time.

        As published, a cycle and its batch take no longer than the limit together: round robin.
        Under another rule the cycle is as long as that admits. Where every batch that is large
        enough would take too long to fill, the one that occupies the GPU least runs unfilled, as
        seldom as the rule lets it.
        """
        limit, rule = self._problem.job(job).limit, self._problem.rule
        filled: list[Duty] = []
        unfilled: list[Duty] = []
        for point in self._points[job]:
            fills, longest = point.amount / rate, rule.longest(point.length, limit)
            if point.length <= min(fills, longest):
                duty = Duty(min(fills, longest), {job: rate}, {job: point})
                (filled if fills <= longest else unfilled).append(duty)
        return filled[-1] if filled else min(unfilled, key=lambda duty: duty.occupancy)

    def merged(self, one: Duty, other: Duty) -> Duty | None:
        """Return two sets of jobs in the shorter of their cycles, with new batches, if that works.

        They must differ in all jobs.
        """
        cycle = min(one.cycle, other.cycle)
        rates = {**one.rates, **other.rates}
        most = self._problem.max_jobs
        if most is not None and len(rates) > most:
            return None
        points: dict[str, BatchPoint] = {}
        for job, rate in rates.items():
            point = next((p for p in self._points[job] if p.amount >= rate * cycle), None)
            limit = self._problem.job(job).limit
            if point is None or not self._problem.rule.admits(cycle, point.length, limit):
                return None
            points[job] = point
        duty = Duty(cycle, rates, points)
        return duty if duty.occupancy <= 1 else None

    def _pack(self, bins: list[Duty], duty: Duty) -> None:
        """Merge a set of jobs into the bin that is fullest then, or give it one of its own."""
        fits = [
            (merged.occupancy, -at, merged)
            for at, other in enumerate(bins)
            if (merged := self.merged(other, duty)) is not None
        ]
        if fits:
            _, place, merged = max(fits, key=lambda fit: fit[:2])
            bins[-place] = merged
        else:
            bins.append(duty)

    def _machine(self, duty: Duty) -> Machine:
        machine = Machine(self._whole)
        amounts = {job: point.amount for job, point in duty.points.items()}
        machine.blocks[0].hosted = Hosted(duty.rates, amounts)
        return machine
