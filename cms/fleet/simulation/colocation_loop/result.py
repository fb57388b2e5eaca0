"""Results of a day of shared GPUs by policy, and their document (``cms-colocation-day``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, ClassVar, NamedTuple

from ....files import fields as f
from ....files import model as m
from ....files.parsed import Parsed
from ....values.numbers import exact
from ...colocation.files import part_of
from .loop import POLICIES
from .terms import Terms


class LimitVerdict(StrEnum):
    """Whether the online side met its limits."""

    MET = "met"
    VIOLATED = "violated"
    NO_LIMIT = "no limit"


class SampledGpu(NamedTuple):
    """Latencies of the requests to a GPU's online service."""

    gpu: int
    requests: int
    #: The 99th percentile beside the offline work, and of the same requests without any
    p99_ms: Fraction
    alone_p99_ms: Fraction


class DayOfJobs(NamedTuple):
    """Numbers of offline jobs, and their times."""

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
    #: In all; with offline work beside the online side; of these, with a slowdown beyond the limit
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
        """Offline work a GPU and hour, beyond the online side."""
        return self.throughput / self.gpu_hours if self.gpu_hours else Fraction(0)

    @property
    def over_share(self) -> Fraction:
        """The GPU-hours beyond the limit, of those that were shared."""
        return self.over_gpu_hours / self.shared_gpu_hours if self.shared_gpu_hours else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDay:
    """Some policies on the same day; the first is the one that is judged."""

    problem_sha256: str
    gpus: int
    activity: str  #: Of the online side, in words
    terms: Terms
    seed: int
    minutes: int  #: That were played; fewer than the terms say if it was stopped.
    stopped: bool
    limited: bool  #: Whether any GPU has a limit
    unmeasured: int  #: Pairs of online and offline classes that the truth lacks: they never run.
    policies: tuple[PlayedPolicy, ...]

    def __getitem__(self, name: str) -> PlayedPolicy:
        """Return a policy by its name."""
        return next(each for each in self.policies if each.name == name)

    @property
    def verdict(self) -> LimitVerdict:
        """Whether the first policy met the limit on all but the tolerated GPU-hours."""
        if not self.limited:
            return LimitVerdict.NO_LIMIT
        met = self.policies[0].over_share <= exact(self.terms.tolerated, "tolerated")
        return LimitVerdict.MET if met else LimitVerdict.VIOLATED

    @property
    def of_clairvoyant(self) -> Fraction | None:
        """The first policy's throughput as a part of that of the one that foresees."""
        best = next((each for each in self.policies if each.name == "clairvoyant"), None)
        return self.policies[0].throughput / best.throughput if best and best.throughput else None


def _build_policy(**told: Any) -> PlayedPolicy:
    found = PlayedPolicy(**told)
    f.refuse_unknown(found.name, "policy", POLICIES, "name")
    if not found.over_gpu_hours <= found.shared_gpu_hours <= found.gpu_hours:
        raise f.refusal("over_gpu_hours <= it <= gpu_hours", "shared_gpu_hours")
    return found


_PolicyPart = part_of(
    PlayedPolicy, _build_policy, jobs=Annotated[DayOfJobs, m.Built(part_of(DayOfJobs))],
    sample=tuple[Annotated[SampledGpu, m.Built(part_of(SampledGpu))], ...],
)  # fmt: skip


class SharedDayDocument(m.Document):
    """A simulated day of shared GPUs."""

    KIND: ClassVar[str] = "cms-colocation-day"
    problem_sha256: f.Text
    gpus: f.Count
    activity: f.Text
    seed: f.Count
    minutes: f.Count
    stopped: f.Flag
    limited: f.Flag
    unmeasured: f.Count
    verdict: LimitVerdict
    of_clairvoyant: f.Exact | None
    terms: Annotated[Terms, m.Built(part_of(Terms))]
    policies: tuple[Annotated[PlayedPolicy, m.Built(_PolicyPart)], ...]

    def build(self) -> SharedDay:
        """Build the day; its verdicts must follow from its policies."""
        if not self.policies:
            raise f.refusal("one policy or more", "policies")
        told = dict(self)
        derived = {key: told.pop(key) for key in ("verdict", "of_clairvoyant")}
        day = SharedDay(**told)
        for key, value in derived.items():
            if value != getattr(day, key):
                raise f.refusal(f"{getattr(day, key)}, as the first policy's figures say", key)
        return day


def shared_day_to_json(day: SharedDay) -> dict[str, Any]:
    """Turn a day into the document that :func:`shared_day_from_json` reads."""
    return SharedDayDocument.from_object(day).to_json()


def shared_day_from_json(document: Parsed | Mapping[str, Any]) -> SharedDay:
    """Turn a parsed document into a day; a FileError names the value at fault."""
    found: SharedDay = m.build(SharedDayDocument, document)
    return found
