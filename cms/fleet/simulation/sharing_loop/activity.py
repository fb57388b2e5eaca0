"""How busy the online side of each GPU is, minute by minute: drawn, or as a trace has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ....errors import InvalidOption
from ....values.fields import CheckedFields
from ....values.names import nearest
from ....values.numbers import Number, exact, shown
from .fleet import Fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...reconciling.rates import Rates
    from ...sharing.problem import SharingProblem

__all__ = ["Diurnal", "Noise", "Traced"]

_DAY = 1440
_ALL = 10_000
#: Minutes over which the noise of a GPU forgets itself.
_MEMORY = 20
#: GPUs that share an hour of the day in which they are busiest.
_PHASES = 4


def _text(number: Number) -> str:
    return shown(exact(number, "activity"))


@dataclass(frozen=True)
class Noise(CheckedFields):
    """What comes on top of a GPU's day: noise, and surges now and then.

    Parameters
    ----------
    deviation : number, default 2
        Standard deviation of the noise, in per cent of the SMs; it lasts for some minutes.
    surges : number, default 3
        A day and GPU, on average.
    height : number, default 50
        Of a surge, in per cent of the SMs.
    minutes : int, default 12
        The mean time that a surge lasts.
    """

    refusal = InvalidOption
    deviation: Number = 2
    surges: Number = 3
    height: Number = 50
    minutes: int = 12

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

    def drawn(self, gpus: int, ticks: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return what is added, in hundredths of a per cent; shape (ticks, gpus)."""
        found = np.zeros((ticks, gpus))
        keep, scale = 1 - 1 / _MEMORY, 100 * float(exact(self.deviation, "deviation"))
        now = random.standard_normal(gpus) * scale
        fresh = scale * (1 - keep**2) ** 0.5
        for tick in range(ticks):
            found[tick] = now
            now = keep * now + fresh * random.standard_normal(gpus)
        chance = float(exact(self.surges, "surges")) / _DAY
        height = 100 * float(exact(self.height, "height"))
        left = np.zeros(gpus, dtype=np.int64)
        for tick in range(ticks):
            begins = random.random(gpus) < chance
            lasts = random.geometric(1 / self.minutes, gpus)
            left = np.where(begins, np.maximum(left, lasts), left)
            found[tick] += height * (left > 0)
            left = np.maximum(left - 1, 0)
        return np.rint(found).astype(np.int64)


@dataclass(frozen=True)
class Diurnal(CheckedFields):
    """A day as a sine: a GPU's activity is that of its class at most, in the busiest hour.

    Parameters
    ----------
    swing : number, default 0.5
        How much of it is lost in the quietest hour, 0 to 1.
    peak : number, default 14
        The busiest hour of most GPUs; a quarter each is busiest 0, 2, 4 and 6 hours later.
    noise : Noise

    Examples
    --------
    >>> from cms.fleet.sharing import OnlineClass, SharingProblem
    >>> problem = SharingProblem(
    ...     online=[OnlineClass("a30", count=1, sm_activity=40)], offline=[], weights=[[]]
    ... )
    >>> day = Diurnal(noise=Noise(0, 0)).minutes(problem, Fleet.of(problem), 0, 1440, seed=0)
    >>> int(day[14 * 60, 0]), int(day[2 * 60, 0])
    (4000, 2000)
    """

    refusal = InvalidOption
    swing: Number = "0.5"
    peak: Number = 14
    noise: Noise = field(default_factory=Noise)

    def __post_init__(self) -> None:
        self._number("swing", most=1)
        self._number("peak", most=24)

    def __str__(self) -> str:
        """Say how activities are made, for documents.

        Examples
        --------
        >>> str(Diurnal(noise=Noise(0, 0)))
        'diurnal: swing 0.5, peak at 14 h; noise of 0 %, 0 surges a day of 50 % for 12 minutes'
        """
        swing, peak = _text(self.swing), _text(self.peak)
        return f"diurnal: swing {swing}, peak at {peak} h; {self.noise}"

    def minutes(
        self, problem: SharingProblem, fleet: Fleet, begin: int, end: int, seed: int
    ) -> NDArray[np.int64]:
        """Return activities in hundredths of a per cent, shape (end - begin, G).

        Parameters
        ----------
        problem : SharingProblem
        fleet : Fleet
            Of this problem.
        begin, end : int
            Minutes after midnight of the first day; may be negative.
        seed : int
        """
        random = np.random.Generator(np.random.PCG64([seed, 1]))
        at = np.arange(begin, end)[:, None] / _DAY
        peak = float(exact(self.peak, "peak")) / 24 + (np.arange(fleet.gpus) % _PHASES) / 12
        lost = float(exact(self.swing, "swing")) * (0.5 - 0.5 * np.cos(2 * np.pi * (at - peak)))
        shape = np.rint(fleet.base * (1 - lost)).astype(np.int64)
        added = self.noise.drawn(fleet.gpus, end - begin, random)
        return np.asarray(np.clip(shape + added, 0, _ALL), dtype=np.int64)


@dataclass(frozen=True)
class Traced:
    """Activities as they were recorded, by online class, by model, or for all.

    Parameters
    ----------
    activities : Rates
        In per cent of the SMs, at even steps; ``cms.fleet.read_rates`` reads a table. A class goes
        by the column of its name, else by that of its model, else by one called ``activity``.
        After its end a trace begins again. A value that is missing is the one before it.
    noise : Noise
        On top; none by default.
    """

    activities: Rates
    noise: Noise = Noise(0, 0)

    def __str__(self) -> str:
        known = self.activities.rates_rps
        moments = len(next(iter(known.values())))
        every = shown(self.activities.step_s)
        return f"trace of {', '.join(known)}: {moments} moments, every {every} s; {self.noise}"

    def minutes(
        self, problem: SharingProblem, fleet: Fleet, begin: int, end: int, seed: int
    ) -> NDArray[np.int64]:
        """Return activities; see :meth:`Diurnal.minutes`.

        Raises
        ------
        InvalidOption
            If a class has no column, or an activity is no per cent.
        """
        random = np.random.Generator(np.random.PCG64([seed, 1]))
        at = np.arange(begin, end) * 60
        columns = np.array(
            [self._column(gpus.name, gpus.model, at) for gpus in problem.online], dtype=np.int64
        ).reshape(len(problem.online), len(at))
        found = columns.T[:, fleet.of_class]
        added = self.noise.drawn(fleet.gpus, end - begin, random)
        return np.asarray(np.clip(found + added, 0, _ALL), dtype=np.int64)

    def _column(self, name: str, model: str, at: NDArray[np.int64]) -> NDArray[np.int64]:
        rates = self.activities.rates_rps
        key = next((each for each in (name, model, "activity") if each in rates), None)
        if key is None:
            raise InvalidOption(
                f"the trace of activities has no column for online class {name!r}"
                f"{nearest(model or name, rates)}; expected one of its name, of its model "
                f"{model!r}, or one called activity"
            )
        steps = []
        last: Fraction | None = next((each for each in rates[key] if each is not None), None)
        for each in rates[key]:
            last = last if each is None else each
            if last is None or last > 100:
                raise InvalidOption(
                    f"the trace has an activity of {'nothing' if last is None else last} for "
                    f"{key!r}; expected per cent, 0 to 100"
                )
            steps.append(round(100 * last))
        if 0 < max(steps) < 100:
            raise InvalidOption(
                f"all activities of {key!r} in the trace are below 1, which looks like a "
                "fraction; expected per cent, 0 to 100"
            )
        step = self.activities.step_s
        place = at * step.denominator // step.numerator % len(steps)
        found: NDArray[np.int64] = np.array(steps, dtype=np.int64)[place]
        return found
