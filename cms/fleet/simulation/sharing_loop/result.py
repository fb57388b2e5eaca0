"""What a day of shared GPUs came to, policy by policy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from ....values.numbers import exact
from .latency import SampledGpu
from .terms import Terms


class LimitVerdict(StrEnum):
    """Whether the online side was kept within its limits."""

    KEPT = "kept"
    BROKEN = "broken"
    NO_LIMIT = "no limit"


class DayOfJobs(NamedTuple):
    """What became of the offline jobs."""

    arrived: int
    begun: int
    ended: int
    #: From arrival to end, of those that have ended
    mean_completion_minutes: Fraction | None
    p99_completion_minutes: Fraction | None
    #: From arrival to first start, or to the end of the day for those that have not begun
    mean_wait_minutes: Fraction | None
    largest_wait_minutes: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPolicy:
    """A policy on the day."""

    name: str  #: One of :data:`POLICIES`.
    #: In all; with offline work beside the online side; and of these, with a slowdown beyond the
    #: limit.
    gpu_hours: Fraction
    shared_gpu_hours: Fraction
    over_gpu_hours: Fraction
    throughput: Fraction  #: Offline work done, in hours that it takes alone on a GPU
    #: Of the online side, over all GPUs and minutes; to a millionth, and to a thousandth, up.
    mean_slowdown: Fraction
    p99_slowdown: Fraction
    #: Jobs that the monitor took from a GPU; that a matching did; that got another share, in a new
    #: process; and starts but for these last.
    evictions: int
    moves: int
    restarts: int
    starts: int
    jobs: DayOfJobs
    sample: tuple[SampledGpu, ...] = ()

    @property
    def oversold_gpu(self) -> Fraction:
        """Offline work a GPU and hour: what is sold of a GPU beyond its online side."""
        return self.throughput / self.gpu_hours if self.gpu_hours else Fraction(0)

    @property
    def over_share(self) -> Fraction:
        """The GPU-hours beyond the limit, of those that were shared."""
        return self.over_gpu_hours / self.shared_gpu_hours if self.over_gpu_hours else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDay:
    """Some policies on the same day; the first is the one that is judged."""

    problem_sha256: str
    gpus: int
    activity: str  #: What the activities are
    terms: Terms
    seed: int
    minutes: int  #: That were played; fewer than the terms say if it was stopped.
    stopped: bool
    limited: bool  #: Whether any GPU has a limit
    #: Pairs of what is there, online and offline, that the truth does not have: they never run.
    unmeasured: int
    policies: tuple[PlayedPolicy, ...]

    def __getitem__(self, name: str) -> PlayedPolicy:
        """Return a policy by its name."""
        return next(each for each in self.policies if each.name == name)

    @property
    def verdict(self) -> LimitVerdict:
        """Whether the first policy kept the limit on all but the tolerated GPU-hours."""
        if not self.limited:
            return LimitVerdict.NO_LIMIT
        kept = self.policies[0].over_share <= exact(self.terms.tolerated, "tolerated")
        return LimitVerdict.KEPT if kept else LimitVerdict.BROKEN

    @property
    def of_clairvoyant(self) -> Fraction | None:
        """The first policy's throughput as a part of that of the one that foresees."""
        best = next((each for each in self.policies if each.name == "clairvoyant"), None)
        return self.policies[0].throughput / best.throughput if best and best.throughput else None
