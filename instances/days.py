"""Days of changing rates: services whose rates go in daily waves.

Policies of planning again are tried on them. Seeded, and the same on every machine: a rate is
rounded to tenths of an item per second.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import pi, sin

from cms.fleet.serving.operating_point import OperatingPoint
from cms.fleet.serving.service import Service

from . import published
from .families.time_sharing import CURVES
from .load_changes import pool

_DAY_S = 86_400
#: Waves go up and down by these shares of the mean rate; noise has this standard deviation.
_LEAST_SWING, _MOST_SWING, _NOISE = 0.2, 0.8, 0.03
#: Rates of the published scenarios times this: then 16 services of seed 0 take 30 GPUs at the peak.
_FACTOR = 2
#: Latency limits of the made-up services in milliseconds, and the GPU that their points are of.
_LIMITS, _SHARED_GPU = (60, 110, 180), "a100-80gb"


@dataclass(frozen=True)
class Days:
    """Services with their highest rates, and their rates at 0, `step_s`, 2 `step_s`, ... seconds.

    The last moment of the last day is included.
    """

    services: tuple[Service, ...]
    operating_points: tuple[OperatingPoint, ...]
    rates_rps: Mapping[str, tuple[Fraction, ...]]
    step_s: int


def draw(
    *, services: int = 16, days: int = 8, step_s: int = 3600, seed: int = 0, sharing: bool = False
) -> Days:
    """Draw services and their rates, the same waves every day.

    Each service is one of the 61 of S1 to S6 (its model and its limit) or, `sharing` GPUs in time,
    one of 30 of made-up models (:mod:`instances.families.time_sharing`). Its rate is a wave with a
    period of a day, a swing of 20 to 80 % of the mean and a phase of its own, and 3 % of noise at
    each step; a step divides a day.
    """
    chance = random.Random(seed)
    known, points = _shared() if sharing else _published()
    drawn, rates = [], {}
    for each in chance.sample(known, services):
        swing, phase = chance.uniform(_LEAST_SWING, _MOST_SWING), chance.uniform(0, 2 * pi)
        mean = float(each.rate_rps)
        own = []
        for at in range(days * _DAY_S // step_s + 1):
            wave = 1 + swing * sin(2 * pi * at * step_s / _DAY_S + phase)
            own.append(Fraction(max(0, round(10 * mean * wave * chance.gauss(1, _NOISE))), 10))
        drawn.append(replace(each, rate_rps=max(own)))
        rates[each.name] = tuple(own)
    return Days(tuple(drawn), points, rates, step_s)


def _published() -> tuple[list[Service], tuple[OperatingPoint, ...]]:
    services = [replace(each, rate_rps=each.rate_rps * _FACTOR) for each in pool()]
    return services, published.scenario("S1").operating_points


def _shared() -> tuple[list[Service], tuple[OperatingPoint, ...]]:
    services = [
        Service(f"{curve.name}-{limit}ms", curve.name, 100 + 150 * ((3 * at + nth) % 7), limit)
        for at, curve in enumerate(CURVES)
        for nth, limit in enumerate(_LIMITS)
    ]
    points = [
        OperatingPoint(curve.name, _SHARED_GPU, block, 1, batch, batch / length, 1000 * length)
        for curve in CURVES
        for block, own in curve.points().items()
        for batch, length in own
    ]
    return services, tuple(points)
