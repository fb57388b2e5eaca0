"""``colocation_day``: from a co-location problem to the results of a day, and their document."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ....checker.kinds import check
from ....errors import InvalidOption, InvalidSchedule
from ....files import fields as f
from ....files import model as m
from ....files.parsed import Parsed
from ....solving.driver import CancelEvent
from ....values.names import nearest
from ....values.numbers import exact
from ...colocation.files import part_of
from ...colocation.problem import ColocationPlan, ColocationProblem, WeightFunction
from ...colocation.weights import MeasuredPair
from ...published.muxflow_monitor import MonitorTimes
from ..model import SECOND, Ints
from ..statistics import Verdict
from .loop import FINEST, POLICIES, PolicyRun
from .scene import MILLION, MINUTE, UNLIMITED, Diurnal, Scene, Terms, Traced


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
    def verdict(self) -> Verdict:
        """Whether the first policy met the limit on all but the tolerated GPU-hours."""
        if not self.limited:
            return Verdict.NO_LIMIT
        met = self.policies[0].over_share <= exact(self.terms.tolerated, "tolerated")
        return Verdict.MET if met else Verdict.VIOLATED

    @property
    def of_clairvoyant(self) -> Fraction | None:
        """The first policy's throughput as a part of that of the one that foresees."""
        best = next((each for each in self.policies if each.name == "clairvoyant"), None)
        return self.policies[0].throughput / best.throughput if best and best.throughput else None


def colocation_day(
    problem: ColocationProblem,
    truth: Iterable[MeasuredPair],
    *,
    sees: WeightFunction | None = None,
    activity: Diurnal | Traced | None = None,
    terms: Terms | None = None,
    policies: Iterable[str] = ("muxflow", "dedicated", "time_sharing", "random", "clairvoyant"),
    plan: ColocationPlan | None = None,
    times: MonitorTimes | None = None,
    seed: int = 0,
    cancel: CancelEvent | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> SharedDay:
    """Play a day of shared GPUs, minute by minute, with a matching every quarter of an hour.

    Activities change; a share leaves room for the activities of the last interval. Jobs run where
    the scheduler matches them, at the speeds of the truth, until a GPU's monitor evicts them. All
    policies have the same activities and jobs. The one that foresees knows the truth and the
    activities until the next matching, and has the same rule of shares, intervals and worth of
    staying as ``muxflow``; it is best interval by interval, and no bound of a whole day. The same
    arguments give the same day, to the last digit.

    `problem`: its online classes are the fleet, each with its activity in its busiest hour; its
    offline classes are the first jobs; its weights are not used. `truth`: the effects of pairs
    (:class:`Truth`); others cannot run. `sees`: the weights that the scheduler uses; by default
    those of the truth, so that only activities are not known before. `policies`: names in
    :data:`POLICIES`; the first is judged. `plan`: the first matching of ``muxflow``, if there is
    one. `times`: of the monitors, in minutes; by default those of the preset ``muxflow-assumed``.
    Progress is in minutes of all policies, done and in all.
    """
    how, doing, names = terms or Terms(), activity or Diurnal(), list(policies)
    expected = f"expected some of {', '.join(POLICIES)}"
    for name in names:
        if name not in POLICIES:
            raise InvalidOption(f"{name!r} is no policy{nearest(name, POLICIES)}; {expected}")
    if not names:
        raise InvalidOption(f"there is no policy; {expected}")
    if plan is not None and (faults := check(problem, plan)):
        raise InvalidSchedule(f"the plan is none of the problem: {faults[0]}")
    scene = Scene(problem, truth, sees, doing, how, times, seed, plan)
    fleet = scene.fleet
    wanted = min(how.sample, fleet.gpus)
    sample = np.arange(wanted) * fleet.gpus // max(wanted, 1)  # evenly in the fleet
    played: list[PlayedPolicy] = []
    minutes = how.ticks

    def on_tick(tick: int) -> bool:
        if cancel is not None and cancel.is_set():
            return True
        if on_progress is not None:
            on_progress(len(played) * how.ticks + tick, len(names) * how.ticks)
        return False

    for name in names:
        sampled = sample[:0] if played else sample
        run = PolicyRun(scene, POLICIES[name], sampled).play(on_tick)
        played.append(_told(run))
        if (minutes := run.ticks) < how.ticks:
            break
    return SharedDay(
        problem_sha256=problem.sha256, gpus=fleet.gpus, activity=str(doing), terms=how,
        seed=seed, minutes=minutes, stopped=minutes < how.ticks,
        limited=bool((fleet.limit < UNLIMITED).any()),
        unmeasured=int((~scene.truth.runs).sum()), policies=tuple(played),
    )  # fmt: skip


def _told(run: PolicyRun) -> PlayedPolicy:
    scene, backlog, passed = run.scene, run.backlog, run.ticks
    mean = p99 = Fraction(1)
    if run.minutes:
        mean = Fraction(-(-run.slowed // run.minutes), MILLION)
        place = int(np.searchsorted(np.cumsum(run.bins), -(-run.minutes * 99 // 100)))
        p99 = Fraction(place * FINEST, MILLION)
    ended = (backlog.ended - backlog.arrived)[backlog.ended >= 0]  # minutes from the arrival
    waits = backlog.waited(np.flatnonzero(backlog.arrived < passed), passed)
    active = scene.activity[scene.terms.interval :].astype(np.int64)
    sample = [
        replayed(gpu, active[: len(slowdowns), gpu], slowdowns, scene.seed)
        for gpu, slowdowns in zip(run.sample.tolist(), np.array(run.sampled).T, strict=False)
    ]
    jobs = DayOfJobs(
        arrived=int((backlog.arrived < passed).sum()), begun=int((backlog.begun >= 0).sum()),
        ended=len(ended), mean_completion_minutes=_mean(ended),
        p99_completion_minutes=_high(ended, 99), mean_wait_minutes=_mean(waits),
        largest_wait_minutes=_high(waits, 100),
    )  # fmt: skip
    same = {name: getattr(run, name) for name in ("evictions", "moves", "restarts", "starts")}
    return PlayedPolicy(
        name=run.policy.name, gpu_hours=Fraction(run.minutes, MINUTE),
        shared_gpu_hours=Fraction(run.shared, MINUTE), over_gpu_hours=Fraction(run.over, MINUTE),
        throughput=Fraction(run.done, MINUTE * MILLION), mean_slowdown=mean, p99_slowdown=p99,
        **same, jobs=jobs, sample=tuple(sample),
    )  # fmt: skip


def _mean(values: Ints) -> Fraction | None:
    """Return the mean to a hundredth, up."""
    return Fraction(-(-int(values.sum()) * 100 // len(values)), 100) if len(values) else None


def _high(values: Ints, per_cent: int) -> Fraction | None:
    place = -(-len(values) * per_cent // 100) - 1
    return Fraction(int(np.sort(values)[place])) if len(values) else None


#: How long a batch of 1, 2, ... requests takes alone, in nanoseconds: of a service that is made up.
BATCH_NS = tuple(25_000_000 + 5_000_000 * n for n in range(1, 6))
_SPAN = 2 * SECOND  #: The part of each minute that is simulated
#: The activity counts for at most 90 %: a service that is never idle has no 99th percentile.
_BUSIEST = 9_000


def replayed(gpu: int, activity: Ints, slowdown: Ints, seed: int) -> SampledGpu:
    """Send requests to a GPU all day, beside offline work and alone.

    The service is a made-up one: a process with batches of up to 5 requests, :data:`BATCH_NS`; its
    rate makes it as busy as the activity, in hundredths of a per cent. Two seconds stand for each
    minute. Slowdowns are in millionths.
    """
    random = np.random.Generator(np.random.PCG64([seed, 3, gpu]))
    fullest = len(BATCH_NS) * SECOND / BATCH_NS[-1]
    arrivals: list[int] = []
    for minute, active in enumerate(np.minimum(activity, _BUSIEST).tolist()):
        count = int(random.poisson(_SPAN // SECOND * fullest * active / 10_000))
        arrivals += np.sort(random.integers(minute * _SPAN, (minute + 1) * _SPAN, count)).tolist()
    took = (latencies(arrivals, each) for each in (slowdown.tolist(), [MILLION] * len(slowdown)))
    p99s = (Fraction(_high(np.array(each), 99) or 0, MILLION) for each in took)
    return SampledGpu(gpu, len(arrivals), *p99s)


def latencies(arrivals: list[int], factors: list[int]) -> list[int]:
    """Let a process work off arrivals; factors of a batch's time are by minute, in millionths.

    A batch takes the factor of the minute of the first request that is not before its start, or of
    the minute after that of the last request before it, if that is sooner.
    """
    found: list[int] = []
    end, n = 0, len(arrivals)

    def minute(at: int) -> int:
        return arrivals[at] // _SPAN if at < n else len(factors) - 1

    while (first := len(found)) < n:
        start = max(end, arrivals[first])
        later = bisect_left(arrivals, start, first)
        taken = min(max(later - first, 1), len(BATCH_NS))
        factor = factors[min(minute(later), minute(max(later - 1, first)) + 1)]
        end = start + -(-BATCH_NS[taken - 1] * factor // MILLION)
        found += [end - arrival for arrival in arrivals[first : first + taken]]
    return found


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
    verdict: Literal[Verdict.MET, Verdict.VIOLATED, Verdict.NO_LIMIT]
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
