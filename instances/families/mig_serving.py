"""Services as in MIG-serving's evaluation: what is asked of a model has nothing to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cms.values.numbers import Number, exact

from .a100 import EXPONENTS, NOISE
from .family import Family
from .machines import mig
from .rows import Integers, drawn, power_law

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: What a slice gives the middle model, in units of 1/100 request/s.
SPEED = 10_000
#: The standard deviation of the logarithm of what a slice gives.
SPEED_SPREAD = 1.0
#: A normal rate is at least this share of the mean.
LEAST_RATE = 1 / 20
#: The kinds of rates, with the spread that is taken where none is given.
SPREADS: Mapping[str, Number] = {"normal": "0.5", "lognormal": "0.75"}


@dataclass(frozen=True)
class MigServing(Family):
    """Models of very different speed on an A100, with required rates drawn independently of it.

    So a service needs anything from a fraction of an instance to several GPUs. What a slice gives
    a model is lognormal around 100 requests/s, with a standard deviation of its logarithm of 1;
    supply grows like size^e, e uniform from 0.65 to 1.35, a model's own, with noise. Every model
    fits the smallest instance, or the baseline of smallest instances alone would have no schedule.

    Parameters
    ----------
    rates : str, default "normal"
        ``"normal"``: rates are normal, but at least a twentieth of their mean. ``"lognormal"``: a
        few services ask for far more than the others.
    m : number, default 4
        The mean of normal rates and the median of lognormal ones, in sevenths of what a whole GPU
        gives the middle model (that of the middle speed and exponent).
    spread : number, optional
        The standard deviation of normal rates relative to their mean, by default 1/2, or of the
        logarithm of lognormal rates, by default 3/4.

    Notes
    -----
    Of the source are the setting (services on GPUs under MIG, each with a required throughput) and
    that throughput is not linear in the size, sub- and super-linear models both being common. The
    exponents are about as far from 1 as those that ParvaGPU measured (:mod:`.a100`). Rates of two
    kinds, and 24 and 49 services (the source profiled 49 models), are meant to be of its workloads'
    kind. All other figures are ours: speeds, spreads, `m`.

    References
    ----------
    C. Tan et al., Serving DNN Models with Multi-Instance GPUs: A Case of the Reconfigurable Machine
    Scheduling Problem, 2021, arXiv:2109.11067.
    """

    name = "mig-serving"
    number = 15
    title = "rates independent of the models' speeds, on an A100"
    stresses = "jobs of less than one instance beside jobs of several GPUs"
    source = "after the evaluation of MIG-serving (arXiv:2109.11067); the figures are ours"

    rates: str = "normal"
    m: Number = 4
    spread: Number | None = None

    def __post_init__(self) -> None:
        self._one_of("rates", tuple(SPREADS))
        self._number("m", above=0, most=10**6)
        if self.spread is not None:
            self._number("spread", least=0, most=2)

    def _problem(self, rng: np.random.Generator, n: int) -> Problem:
        machines = mig()

        def draw(count: int) -> tuple[Integers, Integers]:
            speeds = SPEED * rng.lognormal(0.0, SPEED_SPREAD, count)
            supply = power_law(rng, count, machines.slices, EXPONENTS, NOISE, speeds)
            return self._rates(rng, count), supply

        return machines.problem(*drawn(n, len(machines.blocks), draw))

    def _rates(self, rng: np.random.Generator, count: int) -> Integers:
        # the middle model is linear: m sevenths of a whole GPU are what m slices give it
        middle = SPEED * float(exact(self.m, "m"))
        given = SPREADS[self.rates] if self.spread is None else self.spread
        spread = float(exact(given, "spread"))
        if self.rates == "lognormal":
            rates = middle * rng.lognormal(0.0, spread, count)
        else:
            rates = middle * np.maximum(rng.normal(1.0, spread, count), LEAST_RATE)
        return np.maximum(np.rint(rates), 1).astype(np.int64)
