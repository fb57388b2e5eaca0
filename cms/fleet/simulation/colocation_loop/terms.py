"""How a day of shared GPUs is played: its hours and jobs, and how busy the online side is."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ....errors import InvalidOption
from ....values.fields import CheckedFields
from ....values.names import nearest
from ....values.numbers import Number, exact, shown
from ...colocation.problem import ColocationProblem
from ...replanner.rates import Rates
from .fleet import MINUTE, Fleet, Ints

_DAY = 1440
_ALL = 10_000
#: Minutes over which the noise of a GPU forgets itself.
_MEMORY = 20
#: GPUs that share an hour of the day in which they are busiest.
_PHASES = 4


def _float(number: Number) -> float:
    return float(exact(number, "activity"))


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
        found = np.zeros((ticks, gpus))
        keep, scale = 1 - 1 / _MEMORY, 100 * _float(self.deviation)
        now = random.standard_normal(gpus) * scale
        fresh = scale * (1 - keep**2) ** 0.5
        for tick in range(ticks):
            found[tick] = now
            now = keep * now + fresh * random.standard_normal(gpus)
        chance, height = _float(self.surges) / _DAY, 100 * _float(self.height)
        left = np.zeros(gpus, dtype=np.int64)
        for tick in range(ticks):
            begins = random.random(gpus) < chance
            lasts = random.geometric(1 / self.minutes, gpus)
            left = np.maximum(left, np.where(begins, lasts, 0))
            found[tick] += height * (left > 0)
            left = np.maximum(left - 1, 0)
        noise = np.rint(found).astype(np.int64)
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

    def minutes(
        self, problem: ColocationProblem, fleet: Fleet, begin: int, end: int, seed: int
    ) -> Ints:
        """Return hundredths of a per cent, (end - begin, G), between minutes after midnight."""
        at = np.arange(begin, end)[:, None] / _DAY
        peak = _float(self.peak) / 24 + (np.arange(fleet.gpus) % _PHASES) / 12
        lost = _float(self.swing) * (0.5 - 0.5 * np.cos(2 * np.pi * (at - peak)))
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

    def minutes(
        self, problem: ColocationProblem, fleet: Fleet, begin: int, end: int, seed: int
    ) -> Ints:
        """Return activities; see :meth:`Diurnal.minutes`."""
        at = np.arange(begin, end) * 60
        columns = np.array(
            [self._column(gpus.name, gpus.model, at) for gpus in problem.online], dtype=np.int64
        ).reshape(len(problem.online), len(at))
        return self.noise.added(columns.T[:, fleet.of_class], seed)

    def _column(self, name: str, model: str, at: Ints) -> Ints:
        rates = self.activities.rates_rps
        key = next((each for each in (name, model, "activity") if each in rates), None)
        if key is None:
            said = f"the trace of activities has no column for online class {name!r}"
            known = f"one of its name, of its model {model!r}, or one called activity"
            raise InvalidOption(f"{said}{nearest(model or name, rates)}; expected {known}")
        steps = []
        last: Fraction | None = next((each for each in rates[key] if each is not None), None)
        for each in rates[key]:
            last = last if each is None else each
            if last is None or last > 100:
                said = f"the trace has an activity of {'nothing' if last is None else last}"
                raise InvalidOption(f"{said} for {key!r}; expected per cent, 0 to 100")
            steps.append(round(100 * last))
        if 0 < max(steps) < 100:
            said = f"all activities of {key!r} in the trace are below 1, as if they were fractions"
            raise InvalidOption(f"{said}; expected per cent, 0 to 100")
        step = self.activities.step_s
        place = at * step.denominator // step.numerator % len(steps)
        return np.asarray(np.array(steps, dtype=np.int64)[place])


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
