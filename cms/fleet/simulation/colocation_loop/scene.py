"""What all policies of a day share: GPUs and jobs one by one, the truth, activities and terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from ....errors import InvalidOption, InvalidProblem
from ....values.fields import CheckedFields
from ....values.names import nearest
from ....values.numbers import Number, exact, shown
from ...colocation.problem import (
    ColocationPlan,
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    WeightFunction,
    misfits,
    sm_share,
)
from ...colocation.weights import MeasuredPair, by_models
from ...published.muxflow_monitor import MonitorTimes, monitor_preset
from ...replanner.rates import Rates
from ..model import Ints, Shorts

MILLION = 10**6
#: Ticks an hour.
MINUTE = 60
MOST_GPUS = 10_000
MOST_JOBS = 10**6
#: GPUs times minutes: noise takes some tens of bytes each while it is drawn.
_MOST_MINUTES = 3 * 10**7
UNLIMITED = 2**62  #: A GPU without a limit of its slowdown
NOBODY = -1
_ALL = 10_000  #: Hundredths of a per cent of the SMs
_NO_LIMIT = 100  #: A share that is none
_DAY = 1440
#: Minutes over which the noise of a GPU forgets itself.
_MEMORY = 20
#: GPUs that share an hour of the day in which they are busiest.
_PHASES = 4


class Fleet:
    """GPUs one by one, by their profiles: what is told apart but activity and running workload.

    Activities are in hundredths of a per cent, shares in per cent, throughputs and slowdowns in
    millionths of a workload that runs alone. Arrays with an entry a GPU: its profile, the activity
    that its class has, the limit of its slowdown, and its online class in the problem, ascending.
    """

    def __init__(self, problem: ColocationProblem) -> None:
        for what, classes, most in (
            ("GPUs", problem.online, MOST_GPUS), ("workloads", problem.offline, MOST_JOBS),
        ):  # fmt: skip
            total = sum(each.count for each in classes)
            if total > most:
                said = f"the problem has {shown(total)} {what}; at most {most:,} are simulated"
                raise InvalidOption(f"{said}, one by one; take a share of each class")
        profiles: dict[OnlineClass, int] = {}
        counts = [each.count for each in problem.online]

        def spread(values: Iterable[int]) -> Ints:
            return np.repeat(np.array([*values], dtype=np.int64), counts)

        self.profile = spread(
            profiles.setdefault(_active(each, 0), len(profiles)) for each in problem.online
        )
        self.base = spread(-(-each.sm_activity * 100 // 1) for each in problem.online)
        limits = (each.slowdown_limit for each in problem.online)
        self.limit = spread(UNLIMITED if at is None else at * MILLION // 1 for at in limits)
        self.of_class = spread(range(len(counts)))
        self.gpus = len(self.profile)
        self.online, self.work, self.profiles = problem.online, problem.offline, tuple(profiles)
        #: Whether the memory of a profile suffices for a workload
        self.fits = ~misfits(self.profiles, self.work)


def _active(gpus: OnlineClass, activity: int) -> OnlineClass:
    """Return a class at an activity, without its running workload."""
    return gpus.again(count=0, sm_activity=activity, running=None)


class Beliefs:
    """The weights that a scheduler uses, computed once at each activity."""

    def __init__(self, fleet: Fleet, weights: WeightFunction, margin: int, lowest: int) -> None:
        self._fleet, self._rows = fleet, dict[int, Ints]()
        told: dict[str, Any] = {"weights": weights, "margin": margin, "lowest_share": lowest}
        self._pose = partial(ColocationProblem, offline=fleet.work, **told)

    def rows(self, profile: Ints, activity: Ints) -> Ints:
        """Return weights by GPUs' profiles and activities in per cent: (n, K), -1 if forbidden."""
        wanted, back = np.unique(profile * 101 + activity, return_inverse=True)
        new = [key for key in wanted.tolist() if key not in self._rows]
        if new:
            classes = [_active(self._fleet.profiles[key // 101], key % 101) for key in new]
            self._rows |= zip(new, self._pose(online=classes).weights, strict=True)
        table = np.array([self._rows[key] for key in wanted.tolist()], dtype=np.int64)
        return table.reshape(len(wanted), len(self._fleet.work))[back]


class Truth:
    """Throughput and slowdown of every profile beside every workload, at every share.

    Between two shares that were measured both are on a straight line, which begins at a share of 0
    with no throughput and no slowdown; beyond the largest share they stay as they are. A pair that
    was measured at a share of 100 alone, which is no limit, is the same at every share. Unmeasured
    pairs of known models cannot run; a model or device that was not measured at all is refused.

    Where the online side and the share together want more SMs than there are, each gets its part
    of them: with a demand of d > 100 per cent the throughput is 100 / d times as much, and the
    slowdown d / 100 times. That is a model, and no measurement.
    """

    def __init__(self, fleet: Fleet, pairs: Iterable[MeasuredPair]) -> None:
        table = _lines_by_models(pairs)
        for place, what, names in (
            (0, "online model", {gpus.model for gpus in fleet.profiles}),
            (1, "offline model", {work.model for work in fleet.work}),
            (2, "device", {gpus.device for gpus in fleet.profiles}),
        ):
            known = sorted({key[place] for key in table})
            for name in sorted(names.difference(known)):
                if not name:
                    said = "an online class has no model, by which pairs are measured"
                    raise InvalidProblem(f"{said}; give it one, in the column 'model' of its table")
                said = f"the {what} {name!r} is nowhere in the measured pairs that are the truth"
                raise InvalidProblem(f"{said}{nearest(name, known)}")
        shape = len(fleet.profiles), len(fleet.work)
        # by profile, workload and share: whether it was measured, and in millionths
        self.runs = np.zeros(shape, dtype=np.bool_)
        self.throughput = np.zeros((*shape, 101), dtype=np.int64)
        self.slowdown = np.full((*shape, 101), MILLION, dtype=np.int64)
        for p, gpus in enumerate(fleet.profiles):
            for k, work in enumerate(fleet.work):
                if lines := table.get((gpus.model, work.model, gpus.device)):
                    self.runs[p, k] = True
                    self.throughput[p, k], self.slowdown[p, k] = lines

    def felt(self, profile: Ints, work: Ints, share: Ints, activity: Ints) -> tuple[Ints, Ints]:
        """Return throughputs, rounded down, and slowdowns, rounded up, of GPUs."""
        wanted = np.maximum(activity + 100 * share, _ALL)
        return (
            self.throughput[profile, work, share] * _ALL // wanted,
            -(-self.slowdown[profile, work, share] * wanted // _ALL),
        )


class LineWeights:
    """Weights by measured pairs as :class:`Truth` reads them: on lines between the shares measured.

    :func:`cms.fleet.colocation.table_weights` is more careful: it interpolates nothing. A pair is
    forbidden if it was not measured, or its slowdown is beyond the limit.
    """

    def __init__(self, pairs: Iterable[MeasuredPair], margin: int, lowest_share: int) -> None:
        self._lines = _lines_by_models(pairs)
        self._left_at = cache(partial(sm_share, margin=margin, lowest=lowest_share))

    def __call__(self, online: OnlineClass, offline: OfflineClass) -> int | None:
        """Return a pair's weight; None if it is forbidden."""
        lines = self._lines.get((online.model, offline.model, online.device))
        if lines is None:
            return None
        share = self._left_at(online.sm_activity)
        part, slower = int(lines[0][share]), int(lines[1][share])
        if online.slowdown_limit is not None and slower > MILLION * online.slowdown_limit:
            return None
        return part * offline.priority.numerator // offline.priority.denominator


def _lines_by_models(
    pairs: Iterable[MeasuredPair],
) -> dict[tuple[str, str, str], tuple[Ints, Ints]]:
    """Return throughput and slowdown at every share, on straight lines, as measured by models."""
    found = {}
    for models, measured in by_models(pairs).items():
        shares = sorted(measured)
        parts = [int(measured[s].offline_throughput * MILLION // 1) for s in shares]
        slower = [int(-measured[s].online_slowdown * MILLION // 1) for s in shares]
        if shares == [_NO_LIMIT]:
            found[models] = np.full(101, parts[0]), np.full(101, -slower[0])
        else:  # rounded down is a throughput, and up a slowdown
            slowdown = -_line(shares, [-MILLION, *slower])
            found[models] = _line(shares, [0, *parts]), slowdown
    return found


def _line(shares: list[int], values: list[int]) -> Ints:
    """Interpolate at every share from 0 on in whole numbers, rounded down; beyond, it is flat."""
    ends, high = np.array([0, *shares, 101]), np.array([*values, values[-1]])
    every = np.arange(101)
    at = np.searchsorted(ends, every, "right") - 1
    left, right = ends[at], ends[at + 1]
    line = high[at] * (right - every) + high[at + 1] * (every - left)
    return np.asarray(line // (right - left), dtype=np.int64)


def _text(number: Number) -> str:
    return shown(exact(number, "activity"))


@dataclass(frozen=True)
class Noise(CheckedFields):
    """Noise of a GPU's activity, and surges now and then."""

    refusal = InvalidOption
    #: Standard deviation of the noise, in per cent of the SMs; it lasts for some minutes.
    deviation: Number = 2
    surges: Number = 3  #: A day and GPU, on average
    height: Number = 50  #: Of a surge, in per cent of the SMs
    minutes: int = 12  #: The mean time that a surge lasts

    def __post_init__(self) -> None:
        self._number("deviation", most=100)
        self._number("surges", most=_DAY)
        self._number("height", most=100)
        self._whole("minutes", least=1, most=_DAY)

    def __str__(self) -> str:
        return (
            f"noise of {_text(self.deviation)} %, {_text(self.surges)} surges a day of "
            f"{_text(self.height)} % for {self.minutes} minutes"
        )

    def added(self, shape: Ints, seed: int) -> Ints:
        """Return activities in hundredths of a per cent with noise, shape (ticks, gpus)."""
        random = np.random.Generator(np.random.PCG64([seed, 1]))
        ticks, gpus = shape.shape
        keep, scale = 1 - 1 / _MEMORY, 100 * float(self.deviation)
        found = random.standard_normal((ticks + 1, gpus))
        found[0] *= scale
        found[1:] *= scale * (1 - keep**2) ** 0.5
        chance, height = float(self.surges) / _DAY, 100 * float(self.height)
        now, left = np.zeros(gpus), np.zeros(gpus, dtype=np.int64)
        for tick in range(ticks):
            begins = random.random(gpus) < chance
            left = np.maximum(left, begins * random.geometric(1 / self.minutes, gpus))
            now = keep * now + found[tick]
            found[tick] = now + height * (left > 0)
            left = np.maximum(left - 1, 0)
        noise = np.rint(found[:ticks]).astype(np.int64)
        return np.asarray(np.clip(shape + noise, 0, _ALL), dtype=np.int64)


@dataclass(frozen=True)
class Diurnal(CheckedFields):
    """A day as a sine: a GPU's activity is that of its class at most, in the busiest hour."""

    refusal = InvalidOption
    swing: Number = "0.5"  #: How much of it is lost in the quietest hour, 0 to 1
    #: The busiest hour of most GPUs; a quarter each is busiest 0, 2, 4 and 6 hours later.
    peak: Number = 14
    noise: Noise = field(default_factory=Noise)

    def __post_init__(self) -> None:
        self._number("swing", most=1)
        self._number("peak", most=24)

    def __str__(self) -> str:
        return f"diurnal: swing {_text(self.swing)}, peak at {_text(self.peak)} h; {self.noise}"

    def minutes(self, fleet: Fleet, begin: int, end: int, seed: int) -> Ints:
        """Return hundredths of a per cent, (end - begin, G), between minutes after midnight."""
        at = np.arange(begin, end)[:, None] / _DAY
        peak = float(self.peak) / 24 + (np.arange(fleet.gpus) % _PHASES) / 12
        lost = float(self.swing) * (0.5 - 0.5 * np.cos(2 * np.pi * (at - peak)))
        return self.noise.added(np.rint(fleet.base * (1 - lost)).astype(np.int64), seed)


@dataclass(frozen=True)
class Traced:
    """Activities as they were recorded, by online class, by model, or for all."""

    #: In per cent of the SMs, at even steps; ``cms.fleet.read_rates`` reads a table. A class takes
    #: the column of its name, else that of its model, else one called ``activity``. After its end a
    #: trace begins again. A missing value is the one before it.
    activities: Rates
    noise: Noise = Noise(0, 0)  #: None by default

    def __str__(self) -> str:
        known = self.activities.rates_rps
        moments = len(next(iter(known.values())))
        every = shown(self.activities.step_s)
        return f"trace of {', '.join(known)}: {moments} moments, every {every} s; {self.noise}"

    def minutes(self, fleet: Fleet, begin: int, end: int, seed: int) -> Ints:
        """Return activities; see :meth:`Diurnal.minutes`."""
        at = np.arange(begin, end) * 60
        columns = [self._column(gpus.name, gpus.model, at) for gpus in fleet.online]
        table = np.array(columns, dtype=np.int64).reshape(-1, len(at))
        return self.noise.added(table.T[:, fleet.of_class], seed)

    def _column(self, name: str, model: str, at: Ints) -> Ints:
        rates = self.activities.rates_rps
        key = next((each for each in (name, model, "activity") if each in rates), None)
        if key is None:
            said = f"the trace of activities has no column for online class {name!r}"
            known = f"one of its name, of its model {model!r}, or one called activity"
            raise InvalidOption(f"{said}{nearest(model or name, rates)}; expected {known}")
        said, needs = f"the trace has activities of {key!r}", "expected per cent, 0 to 100"
        steps = []
        last: Fraction | None = next((each for each in rates[key] if each is not None), None)
        for each in rates[key]:
            last = last if each is None else each
            if last is None or last > 100:
                what = "that are all missing" if last is None else f"and an activity of {last}"
                raise InvalidOption(f"{said} {what}; {needs}")
            steps.append(round(100 * last))
        if 0 < max(steps) < 100:
            raise InvalidOption(f"{said} that are all below 1, like fractions; {needs}")
        step = self.activities.step_s
        place = at * step.denominator // step.numerator % len(steps)
        return np.array(steps, dtype=np.int64)[place]


@dataclass(frozen=True)
class Terms(CheckedFields):
    """How a day is played."""

    refusal = InvalidOption
    hours: int = 24
    interval: int = 15  #: Minutes from one matching to the next
    #: Shares leave room for this quantile of the activities of the last interval
    quantile: Number = "0.95"
    stay: int = 50_000  #: The worth of a job that stays, in millionths, as for ``muxflow``
    #: A job that stays keeps its share, unless the one that is left now differs by this much
    dead_band: int = 5
    #: Minutes in which a job that was started gets nothing done; a new share is a new process.
    restart: int = 1
    job_hours: Number = 4  #: Mean length of a job alone (exponential, at least a minute)
    arrivals_per_hour: Number = 0  #: Jobs that come beside the first ones
    #: Minutes of waiting for the first start after which a job counts twice, and so on in quarters,
    #: up to ten scales (:func:`cms.fleet.colocation.waited_priority`). 0: waiting counts for
    #: nothing. The policy that foresees heeds none.
    waiting_scale: int = 0
    tolerated: Number = "0.01"  #: The part of the shared GPU-hours that may be over the limit
    sample: int = 4  #: GPUs whose requests are simulated one by one
    protection: bool = True  #: Whether the monitor watches every GPU

    def __post_init__(self) -> None:
        for name, least, most in (
            ("hours", 1, 31 * 24), ("interval", 1, _DAY), ("stay", 0, 10**12),
            ("dead_band", 0, 100), ("restart", 0, _DAY), ("waiting_scale", 0, 10**6),
            ("sample", 0, 100),
        ):  # fmt: skip
            self._whole(name, least=least, most=most)
        self._number("quantile", above=0, most=1)
        self._number("job_hours", above=0, most=10**4)
        self._number("arrivals_per_hour", most=10**6)
        self._number("tolerated", most=1)
        self._flag("protection")

    @property
    def ticks(self) -> int:
        """Minutes."""
        return MINUTE * self.hours


class Scene:
    """The fleet, jobs, activities and terms that all policies share; see ``colocation_day``."""

    def __init__(
        self, problem: ColocationProblem, truth: Iterable[MeasuredPair],
        sees: WeightFunction | None, activity: Diurnal | Traced, terms: Terms,
        times: MonitorTimes | None, seed: int, plan: ColocationPlan | None,
    ) -> None:  # fmt: skip
        self.problem, self.terms, self.seed, self.plan = problem, terms, seed, plan
        self.fleet, measured = Fleet(problem), tuple(truth)
        if self.fleet.gpus * (terms.ticks + terms.interval) > _MOST_MINUTES:
            said = f"{self.fleet.gpus:,} GPUs for {terms.hours} hours are more than"
            fix = "simulate fewer hours, or a share of each class"
            raise InvalidOption(f"{said} {_MOST_MINUTES:,} minutes; {fix}")
        minutes = activity.minutes(self.fleet, -terms.interval, terms.ticks, seed)
        #: In hundredths of a per cent, from one interval before the beginning on
        self.activity: Shorts = minutes.astype(np.int16)
        numbers = problem.margin, problem.lowest_share
        known, self.truth = LineWeights(measured, *numbers), Truth(self.fleet, measured)
        #: The weights that a scheduler uses, and those of one that knows the truth
        self.beliefs = Beliefs(self.fleet, sees or known, *numbers)
        self.knowledge = Beliefs(self.fleet, known, *numbers)
        #: Of all monitors, in minutes
        self.times = times or monitor_preset("muxflow-assumed").times(60)
        #: The share that each activity leaves, 0 to 100 per cent
        self.shares = np.array([sm_share(active, *numbers) for active in range(101)])

    def quantile(self, tick: int) -> Ints:
        """Return each GPU's high activity in the interval before a tick, in per cent."""
        window = np.sort(self.activity[tick : tick + self.terms.interval], axis=0)
        part = exact(self.terms.quantile, "quantile") * len(window)
        place = max(-(-part.numerator // part.denominator), 1) - 1
        return np.asarray(-(-window[place].astype(np.int64) // 100))
